"""The JSON Schema of results, generated from the dataclass: the format of `--json`, `-o` and `Results.to_json()`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Final

from hitmiss.core.convert import schema_of
from hitmiss.core.design import Design
from hitmiss.core.kinds import Json
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.results import SCHEMA, Estimate
from hitmiss.reports.displays.kinds import KINDS

NUMBER: Final = {"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf"]}, {"type": "null"}]}
CELL: Final = {"type": "object", "additionalProperties": {"type": "string"}}
SETTINGS: Final = {
    "type": "object",
    "additionalProperties": {"type": ["number", "string", "boolean", "null", "array"]},
}
TYPES: Final[Mapping[str, Mapping[str, object]]] = {
    "str": {"type": "string"},
    "Best": {"type": "string"},
    "int": {"type": "integer", "minimum": 0},
    "int | None": {"type": ["integer", "null"], "minimum": 0},
    "float | None": NUMBER,
    "str | None": {"type": ["string", "null"]},
    "Mapping[str, str]": CELL,
    "Mapping[str, object]": SETTINGS,
}
ABOUT: Final = {
    "metric": "the metric's text; settings that differ from the protocol's are written in it",
    "value": "null where undefined (the note says why); infinities as text",
    "low": "lower end of the interval, null without one",
    "high": "upper end of the interval, null without one",
    "n": "trials",
    "n_positive": "positive trials",
    "n_failed": "failed calls",
    "run": "who answered: system, seed, calibration …",
    "slice": 'which trials; "*" in a macro average',
    "average": "null, macro, within, worst, gap; over runs mean, sd, min, max",
    "method": "how the interval was made",
    "note": "why undefined, how many slices, few trials",
    "settings": "every setting of the metric",
    "best": "low or high",
    "of": "over how many trials, where the number says",
    "title": "what the protocol calls the metric in tables",
    "units": "units that were drawn from, null where trials are drawn",
    "units_effective": "how many units of equal size would say as much",
    "weight": "sum of the sampling weights, only where there are any",
    "weight_positive": "sum of the sampling weights of the positive trials, only where there are any",
}


def results_schema() -> dict[str, object]:
    """Return the schema of a results file.

    >>> results_schema()["properties"]["schema"]
    {'const': 1}
    """
    properties = {f.name: {**TYPES[str(f.type)], "description": ABOUT.get(f.name, f.name)} for f in fields(Estimate)}
    properties["best"] = {"enum": ["low", "high"], "description": ABOUT["best"]}
    required = [f.name for f in fields(Estimate) if f.default is MISSING and f.default_factory is MISSING]
    display = {"type": "object", "required": ["kind"], "properties": {"kind": {"enum": list(KINDS)}}}
    picture = {
        "type": "object",
        "required": ["run", "displays"],
        "properties": {"run": CELL, "displays": _list(display)},
    }
    defs: dict[str, Json] = {}
    reading, design = schema_of(ReadSpec | None, defs), schema_of(Design | None, defs)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hitmiss results",
        "description": f"Results of hitmiss, schema version {SCHEMA}. Another shape has another number.",
        "type": "object",
        "required": ["schema", "signature", "warnings", "estimates"],
        "properties": {
            "schema": {"const": SCHEMA},
            "signature": {"type": "string", "description": "pins every choice; `hitmiss verify` recomputes it"},
            "digest": {
                "type": "string",
                "pattern": "^[0-9a-f]{64}$",
                "description": "SHA-256 over all other fields (names in order, ASCII); every reader of the file checks it",
            },
            "protocol": {"type": ["string", "null"]},
            "warnings": _list({"type": "string"}),
            "reading": {**reading, "description": "how the files were read; null or missing in older files"},
            "design": {**design, "description": "what was asked; null or missing in older files"},
            "content": {"type": "string", "description": "hash of the rows in any order; may be empty or missing"},
            "questions": {"type": "string", "description": "hash of items and true classes; may be empty or missing"},
            "facts": {**CELL, "description": "how the answers were made: models, prompts, temperature, cache …"},
            "decisions": {
                "type": "string",
                "description": "what the threshold means for scores of the file; missing where no threshold was used",
            },
            "estimates": _list(
                {"type": "object", "required": required, "additionalProperties": False, "properties": properties}
            ),
            "pictures": {**_list(picture), "description": "thinned curves, for a report drawn later; may be missing"},
        },
        "$defs": defs,
    }


def _list(items: Mapping[str, object]) -> dict[str, object]:
    return {"type": "array", "items": items}
