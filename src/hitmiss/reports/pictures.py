"""Pictures stored with results: the thinned displays of every run, as a further key of the results file.

Without them a results file would hold only numbers, and a report made from it later would have no curves. `save` adds the
displays (some ten kilobytes per run); readers of results that do not know them ignore them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import polars as pl

from hitmiss.core import artifacts
from hitmiss.core.columns import user_name
from hitmiss.core.convert import InvalidField, fit
from hitmiss.core.errors import DataError
from hitmiss.core.finding import Finding
from hitmiss.core.results import Results, load_results
from hitmiss.core.trials import Trials
from hitmiss.reports.displays.display import Costs, Display
from hitmiss.reports.displays.kinds import KINDS
from hitmiss.reports.displays.precision_recall import PrDisplay
from hitmiss.reports.displays.roc import RocDisplay
from hitmiss.reports.figures import displays
from hitmiss.reports.unit_bands import over_units
from hitmiss.verdicts.stability import is_repeated, pooled

MOST_RUNS: Final = 12
"""Number of runs that are drawn; more lines cannot be distinguished."""


@dataclass(frozen=True, eq=False)
class Picture:
    """The displays of one run, and facts about its trials."""

    run: Mapping[str, str]
    displays: tuple[Display, ...]

    def of(self, kind: str) -> Display | None:
        """Return the display of that kind, if there is one."""
        return next((d for d in self.displays if d.kind == kind), None)


def pictures(trials: Trials, results: Results | None = None) -> list[Picture]:
    """Return the displays of each run of some trials; the results determine which costs are marked.

    >>> [p.run for p in pictures(Trials.of([1, 0], [2.0, 1.0]))]
    [{}]
    """
    costs = costs_of(results) if results is not None else None
    if results is not None and is_repeated(trials) and any(e.average == "mean" for e in results):
        trials = pooled(trials)  # trials of one detector in one setting; the results hold their mean
    unit = (
        results.design.units if results is not None and results.design is not None and results.design.bootstrap else ()
    )
    return [
        Picture(run, tuple(over_units(d, own, unit) for d in _drawn(own, costs, run, results)))
        for run, own in runs_of(trials)[:MOST_RUNS]
    ]


def _drawn(trials: Trials, costs: Costs | None, run: Mapping[str, str], results: Results | None) -> Iterator[Display]:
    """Draw the displays of one run. Areas under binned curves are not exact, so the measured areas replace them."""
    is_short = trials.is_short
    for display in displays(trials, costs):
        if is_short and isinstance(display, RocDisplay | PrDisplay):
            whole = [
                e
                for e in results or ()
                if e.metric == display.metric and not e.slice and e.average is None and e.run == run
            ]
            value = whole[0].value if whole else None
            display = replace(display, area=math.nan if value is None else value)
        yield display


def drawn_of(
    trials: Trials, results: Results, development: Trials | None = None, method: str = "affine"
) -> list[Picture]:
    """Return the pictures of a measurement; of a calibrated one before and after, named as its two runs."""
    if development is None:
        return pictures(trials, results)
    from hitmiss.derive.score_model import calibrate

    sides = {"before": trials, f"after {method}": calibrate(development, trials, method)}
    made = [(name, p) for name, side in sides.items() for p in pictures(side, results)]
    return [Picture({"calibration": name, **p.run}, p.displays) for name, p in made]


def runs_of(trials: Trials) -> list[tuple[dict[str, str], Trials]]:
    """Return the trials of each run (and target, if there are several)."""
    names = [*trials.header.runs, *(["target"] if trials.frame["target"].n_unique() > 1 else [])]
    if not names:
        return [({}, trials)]
    keys = trials.frame.select(names).unique(maintain_order=True).rows(named=True)
    own = [trials.keep(pl.all_horizontal(*(pl.col(c) == v for c, v in key.items()))) for key in keys]
    return [({user_name(c): v for c, v in key.items()}, part) for key, part in zip(keys, own, strict=True)]


def costs_of(results: Results) -> Costs | None:
    """Return the costs with which the results were measured, if they include a detection cost."""
    for e in results:
        if {"p_target", "c_miss", "c_fa"} <= set(e.settings):
            return Costs(*(fit(float, e.settings[k]) for k in ("p_target", "c_miss", "c_fa")))
    return None


def save(results: Results, trials: Trials, path: str | Path, beside: Mapping[str, object] | None = None) -> None:
    """Write results with the pictures of their trials; `beside`: further keys of the file."""
    artifacts.write(path, to_json(results, pictures(trials, results), beside) + "\n")


def to_json(results: Results, drawn: Sequence[Picture], beside: Mapping[str, object] | None = None) -> str:
    """Return the JSON form of results with a key `pictures`, on one line, ending with the digest over everything."""
    plain = {**results.to_dict(), **(beside or {})}
    head = json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False).rstrip().removesuffix("}").rstrip()
    body = [{"run": dict(p.run), "displays": [d.to_dict() for d in p.displays]} for p in drawn]
    packed = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    seal = artifacts.digest({**plain, "pictures": json.loads(packed)})
    return f'{head},\n "pictures": {packed},\n "{artifacts.DIGEST}": "{seal}"\n}}'


def load(path: str | Path) -> tuple[Results, list[Picture]]:
    """Load results and their pictures from a file; a file without pictures gives none."""
    results, drawn, _ = load_whole(path)
    return results, drawn


def load_whole(path: str | Path) -> tuple[Results, list[Picture], Mapping[str, object]]:
    """Load results, their pictures, and the whole content of the file."""
    data = load_results(path)
    results = Results.from_dict(data)
    try:
        return results, read_pictures(fit(list[dict[str, object]], data.get("pictures", []), ("pictures",))), data
    except InvalidField as fault:
        raise artifacts.malformed("pictures", fault) from None
    except DataError as error:
        found = Finding("pictures-refused", values={"file": Path(path).name, "error": error.found})
        raise DataError.coded(found, error.code) from None


def read_pictures(stored: Sequence[Mapping[str, object]]) -> list[Picture]:
    """Read pictures from their JSON form."""
    try:
        return [
            Picture(
                fit(dict[str, str], p["run"]), tuple(map(read_display, fit(list[dict[str, object]], p["displays"])))
            )
            for p in stored
        ]
    except (TypeError, KeyError, AttributeError, ValueError, IndexError) as error:
        raise DataError.of("malformed-pictures", error=error) from None


def read_display(data: Mapping[str, object]) -> Display:
    """Read a display of any kind from its JSON form."""
    if data.get("kind") not in KINDS:
        raise DataError.of("malformed-curve/kind", data=data.get("kind"), kinds=tuple(KINDS))
    return KINDS[str(data["kind"])].from_dict(data)
