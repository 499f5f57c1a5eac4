"""`hitmiss show`: print everything that is known about one name."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Final

from hitmiss.cli import printing
from hitmiss.cli.options import arg
from hitmiss.cli.shared import JSON
from hitmiss.core.registry import Kind

if TYPE_CHECKING:
    from hitmiss.core.metric import Metric

OTHERS: Final[tuple[Kind, ...]] = ("protocol", "reader", "detector", "codec")


def show(
    name: Annotated[str, arg("A metric, as eer or 'min_dcf(c_fa=1)', a protocol, a reader or an attack.")],
    json: Annotated[bool, JSON] = False,
) -> None:
    """Show what a metric or an attack does and which settings it has, or what a protocol or a reader declares.

    $ hitmiss show eer
    """
    entries = find_all(name)
    if json:
        printing.out_json({"schema": 1, "name": name, "entries": entries})
        return
    for entry in entries:
        facts = [[TITLES.get(key, key), _text(value)] for key, value in stated_keys(entry).items()]
        printing.out("\n".join(printing.aligned(facts)))
        printing.out(f"\n{entry['doc']}" if entry["doc"] else "")


INNER: Final = ("name", "reader", "measured_by", "compared_by", "refuses", "claims_speaker", "engine", "call", "doc")
"""What only the code needs of a declaration; `--json` prints it too."""
TITLES: Final[Mapping[str, str]] = {
    "primary": "main metric", "slice_metrics": "by slice", "read": "files", "natural": "natural units",
    "both_eers": "both EERs", "zero_undefined": "0 / 0 is 0", "delong": "DeLong's interval", "by": "slices",
    "negative_only": "about negatives", "positive_only": "about positives", "names": "names in tables",
    "sample_rate": "sample rate", "asv": "speaker scores", "asv_columns": "their columns", "asv_key_columns": "their key",
}  # fmt: skip
"""What people call the fields of a declaration."""


def stated_keys(entry: Mapping[str, object]) -> dict[str, object]:
    """Return what people need of an entry: what it states, without what is empty, off or for the code alone.

    >>> stated_keys({"protocol": "mine", "reader": "", "bootstrap": 0, "read": {"positive": "fake", "dedupe": False}})
    {'protocol': 'mine', 'read': {'positive': 'fake'}}
    """
    found: dict[str, object] = {}
    for at, (key, value) in enumerate(entry.items()):  # the first is its kind and its name
        own = stated_keys(value) if key == "read" and isinstance(value, Mapping) else value
        if (at == 0 or key not in INNER) and own not in (None, "", 0, False, [], {}):
            found[key] = own
    return found


def find_all(text: str) -> list[dict[str, object]]:
    """Return everything with that name; an unknown name is an error that suggests the nearest name."""
    from hitmiss.core.metric_spec import parse
    from hitmiss.core.registry import all_metrics, all_of, known_text

    metrics, others = all_metrics(), {kind: all_of(kind) for kind in OTHERS}
    entries = [describe(kind, text, known[text]) for kind, known in others.items() if text in known]
    if entries and text not in metrics:
        return entries
    spec = parse(known_text(text))
    if spec.name not in metrics:
        return [describe_attack(spec.name, {*metrics, *(name for known in others.values() for name in known)})]
    return [describe_metric(metrics[spec.name], metrics[spec.name].settings(spec)), *entries]


def describe_attack(name: str, others: Iterable[str]) -> dict[str, object]:
    """Describe an attack family: what it does, to what, and its settings; raise an error if the name is unknown."""
    from hitmiss.attacks.catalogue import catalogue
    from hitmiss.core.errors import UnknownName

    known = {family.name: family for family in catalogue()}
    if name not in known:
        raise UnknownName("name", name, {*others, *known}, {})
    family = known[name]
    return {"attack": name, "for": family.medium, "settings": printing.plain(family.settings), "doc": family.about}


def describe_metric(metric: Metric, settings: Mapping[str, object]) -> dict[str, object]:
    """Describe a metric: its facts and its docstring with formula, undefined cases, reference and example."""
    return {
        "metric": metric.name,
        "columns": list(metric.columns),
        "settings": printing.plain(settings),
        "best": metric.best,
        "range": printing.plain(metric.range),
        "score kinds": list(metric.kinds) or ["any"],
        "doc": inspect.getdoc(metric.function) or "",
    }


def describe(kind: str, name: str, value: object) -> dict[str, object]:
    """Describe a protocol or a reader: its fields, or its signature if it has no fields, and its docstring."""
    if inspect.isroutine(value) or inspect.isclass(value):
        return {kind: name, "call": f"{name}{inspect.signature(value)}", "doc": inspect.getdoc(value) or ""}
    return {kind: name, **declared(value), "doc": ""}


def declared(value: object) -> Mapping[str, object]:
    """Return the fields of a declaration as plain values."""
    facts = printing.plain(value)
    return facts if isinstance(facts, dict) else {"value": facts}


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={_inner(inner)}" for key, inner in value.items()) or "none"
    return ", ".join(map(_text, value)) if isinstance(value, list) else str(value)


def _inner(value: object) -> str:
    """Put braces around a mapping inside a mapping."""
    return f"{{{_text(value)}}}" if isinstance(value, Mapping) else _text(value)
