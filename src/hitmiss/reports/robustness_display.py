"""A number over the strength of an attack or the level of a manipulation, as an object that can draw itself.

RobustnessDisplay.from_results(results, "robust_accuracy").plot()      # of `hitmiss score run -p ecg-attacks`
for display in RobustnessDisplay.from_slices(results, "manipulation", "eer"):
    display.plot()                                                     # of `hitmiss detect --manipulate`
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.metric_spec import MetricSpec, parse
from hitmiss.core.results import Estimate, Results
from hitmiss.core.sorting import Floats
from hitmiss.robustness.campaign import CLEAN, CONTROL, attack_name
from hitmiss.robustness.manipulation import CLEAN_NAMES

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class StrengthLine:
    """One attack: a number and its interval (NaN where it has none) at each strength."""

    name: str
    x: Floats
    value: Floats
    low: Floats
    high: Floats
    is_control: bool = False
    of: str = ""
    """The attack to which a control belongs."""
    run: str = ""
    """The attacked detector, if there are several."""


@dataclass(frozen=True, eq=False)
class RobustnessDisplay:
    """Lines over strength, and the number of the unchanged items for comparison.

    >>> rows = [Estimate("changed", v, run={"attack": "pgd", "strength": s}) for s, v in (("0.5", 0.8), ("0.1", 0.2))]
    >>> display = RobustnessDisplay.from_results(Results(tuple(rows)), "changed")
    >>> display.lines[0].x.tolist(), display.lines[0].value.tolist()
    ([0.1, 0.5], [0.2, 0.8])
    """

    kind: ClassVar[str] = "robustness"
    metric: str
    across: str
    lines: tuple[StrengthLine, ...]
    clean: float | None = None
    best: str = "high"
    title: str = ""

    @classmethod
    def from_results(cls, results: Results, metric: str) -> RobustnessDisplay:
        """Select one metric of an attack run; one line per attack (and aim, and place), with its control."""
        own = [e for e in results if e.metric == metric and not e.slice and e.average is None and e.value is not None]
        runs = list(dict.fromkeys(e.run.get("run", "") for e in own))
        groups: dict[tuple[str, str, bool], list[tuple[float, Estimate]]] = {}
        for e in own:
            strength, control = _number(e.run.get("strength")), e.run.get("attack", CLEAN).startswith(CONTROL)
            if strength is not None and e.run.get("attack", CLEAN) != CLEAN and not (control and len(runs) > 1):
                attack = attack_name({k: v for k, v in e.run.items() if k != "run"})
                groups.setdefault((attack, e.run.get("run", ""), control), []).append((strength, e))
        if not groups:
            raise DataError.of("results-hold-no-attack", metric=metric)
        order = list(dict.fromkeys(name for name, _, _ in groups))
        lines = []
        for name, run, control in sorted(groups, key=lambda key: (order.index(key[0]), runs.index(key[1]), key[2])):
            called = f"{CONTROL}{name}" if control else f"{name}, {run}" if run else name
            made = _line(called, groups[name, run, control], control, name)
            lines.append(replace(made, run=run))
        untouched = [e.value for e in own if e.run.get("attack") == CLEAN]
        clean = untouched[0] if len(untouched) == 1 else None
        return cls(metric, "strength", tuple(lines), clean, own[0].best)

    @classmethod
    def from_slices(
        cls, results: Results, column: str, metric: str, run: Mapping[str, str] | None = None
    ) -> list[RobustnessDisplay]:
        """Return one display per family of manipulations that was tried at several levels, such as noise(snr=20).

        Where several settings differ, the one with the most levels is the axis.
        """
        own = {
            e.slice[column]: e
            for e in results
            if e.metric == metric
            and tuple(e.slice) == (column,)
            and e.average is None
            and dict(e.run) == dict(run or {})
        }
        clean = next((own[name].value for name in CLEAN_NAMES if name in own), None)
        families: dict[str, list[tuple[MetricSpec, Estimate]]] = {}
        for text, e in own.items():
            spec = _spec(text)
            if spec is not None and e.value is not None:
                families.setdefault(spec.name, []).append((spec, e))
        made = [_family(cls, name, found, clean) for name, found in families.items()]
        return [display for display in made if display is not None]

    def plot(self, ax: Axes | None = None, *, name: str | None = None, color: str | None = None) -> Axes:
        """Draw into these axes, or into new ones with the width of a paper's column."""
        from hitmiss.reports.matplots import plot

        return plot(self, ax, name, color)


def _line(name: str, points: Iterable[tuple[float, Estimate]], control: bool = False, of: str = "") -> StrengthLine:
    ordered = sorted(points, key=lambda pair: pair[0])
    ends = [[np.nan if v is None else v for v in (e.value, e.low, e.high)] for _, e in ordered]
    value, low, high = np.array(ends, dtype=np.float64).T
    return StrengthLine(name, np.array([x for x, _ in ordered]), value, low, high, control, of or name)


def _number(text: str | None) -> float | None:
    try:
        found = float(text or "")
    except ValueError:
        return None
    return found if np.isfinite(found) else None


def _spec(text: str) -> MetricSpec | None:
    try:
        return parse(text)
    except UsageError:
        return None


def _family(
    cls: type[RobustnessDisplay], name: str, found: list[tuple[MetricSpec, Estimate]], clean: float | None
) -> RobustnessDisplay | None:
    """Return the display of one family: the setting with most levels is the axis, one line per text setting."""
    levels: dict[str, set[float]] = {}
    for spec, _ in found:
        for key, value in dict(spec.settings).items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                levels.setdefault(key, set()).add(float(value))
    across = max(levels, key=lambda key: len(levels[key]), default="")
    if not across or len(levels[across]) < 2:
        return None
    lines: dict[str, list[tuple[float, Estimate]]] = {}
    for spec, e in found:
        settings = dict(spec.settings)
        level = settings.get(across)
        if isinstance(level, int | float):
            words = [str(v) for v in settings.values() if isinstance(v, str)]
            lines.setdefault(", ".join([name, *words]), []).append((float(level), e))
    made = tuple(_line(label, points) for label, points in lines.items())
    return cls(found[0][1].metric, across, made, clean, found[0][1].best, name)
