"""A number over the strength of an attack or the level of a manipulation, as an object that can draw itself.

RobustnessDisplay.from_results(results, "robust_accuracy").plot()      # of `hitmiss score run -p ecg-attacks`
for display in RobustnessDisplay.from_slices(results, "manipulation", "eer"):
    display.plot()                                                     # of `hitmiss detect --manipulate`
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.metric_spec import MetricSpec, parse
from hitmiss.core.results import Estimate, Results
from hitmiss.core.sorting import Floats
from hitmiss.findings.wording import explain, is_share, per_cent
from hitmiss.reports.displays.lines import Lines, NumberRows, PlateOptions
from hitmiss.reports.plate import MUTED, Axis, Curve, Dots, GuideLine, Mark, Plate, ticks
from hitmiss.reports.readings import Reading
from hitmiss.robustness.campaign import CLEAN, CONTROL, attack_name
from hitmiss.robustness.manipulation import CLEAN_NAMES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DASHES: Final = ("", "dash", "dot")
"""Line styles that distinguish runs where colours distinguish attacks."""


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
    reading: ClassVar[Reading] = Reading(
        "Robustness",
        "Each attack in its interval. An attack that does no more than noise of the same norm has found nothing.",
    )
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
            raise DataError.of("no-attack-numbers", metric=metric)
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

    @staticmethod
    def plate(lines: Lines[RobustnessDisplay], how: PlateOptions) -> Plate:
        """Draw a figure over strength: one line per attack with its intervals, its control dotted in the same colour."""
        del how
        d: RobustnessDisplay = lines[0][1]
        shade = {name: i for i, name in enumerate(dict.fromkeys(own.of for own in d.lines))}
        every = np.unique(np.concatenate([own.x for own in d.lines]))
        is_strength = d.across == "strength" and d.clean is not None
        span = float(every[-1] - (0.0 if is_strength else every[0])) or 1.0
        step = 0.012 * span
        marks: list[Mark] = [GuideLine(d.clean, False, "clean")] if d.clean is not None else []
        runs = list(dict.fromkeys(own.run for own in d.lines))
        for own in d.lines:
            i = shade[own.of]
            aside = step * (i - (len(shade) - 1) / 2)
            dash = "dot" if own.is_control else DASHES[runs.index(own.run) % len(DASHES)]
            marks.append(Curve(own.x + aside, own.value, i, own.name, dash, 1.4 if own.is_control else 2.0))
            about = tuple(f"{own.name} at {x:g}: {v:.3f}" for x, v in zip(own.x, own.value, strict=True))
            ends = (None, None) if own.is_control else (own.low, own.high)
            marks.append(Dots(own.x + aside, own.value, i, low=ends[0], high=ends[1], about=about, is_hollow=False))
        values = np.concatenate(
            [np.concatenate([o.value, o.low[np.isfinite(o.low)], o.high[np.isfinite(o.high)]]) for o in d.lines]
        )
        values = np.append(values, d.clean) if d.clean is not None else values
        share = is_share(d.metric)
        low = 0.0 if share or d.best == "low" else float(min(values.min(), 0.0))
        high = min(1.0, 1.06 * float(values.max())) if share else 1.06 * float(values.max())
        left = 0.0 if is_strength else float(every[0])
        x = Axis(
            d.across,
            left - (1 + len(shade) / 2) * step,
            float(every[-1]) + (1 + len(shade) / 2) * step,
            tuple((float(v), f"{v:g}") for v in ([0.0] if is_strength else []) + every.tolist()),
        )
        y = Axis(
            explain(d.metric).title,
            low,
            high if high > low else low + 1.0,
            ticks(low, high if high > low else low + 1.0, percent=share),
        )
        key = tuple((i, "", name) for name, i in shade.items())
        if len(runs) > 1:
            key = (*key, *((6, DASHES[i % len(DASHES)], run) for i, run in enumerate(runs)))
        if any(own.is_control for own in d.lines):
            key = (*key, (MUTED, "dot", "noise of the same norm"))
        return Plate(x, y, tuple(marks), _robust_finding(d), key=key)

    @staticmethod
    def numbers(lines: Lines[RobustnessDisplay]) -> NumberRows:
        """Return the numbers behind the figure."""
        d = lines[0][1]
        rows = [
            (own.name, [f"{x:g}", f"{v:.4f}", f"[{low:.4f}, {high:.4f}]" if np.isfinite(low) else ""])
            for own in d.lines
            for x, v, low, high in zip(own.x, own.value, own.low, own.high, strict=True)
        ]
        return (d.across, d.metric, "interval"), rows


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


def _robust_finding(d: RobustnessDisplay) -> str:
    own = [o for o in d.lines if not o.is_control and len(o.value)]
    if not own:
        return ""
    worst = (max if d.best == "low" or d.metric == "changed" else min)(own, key=lambda o: float(o.value[-1]))
    value = per_cent(worst.value[-1], 0) if is_share(d.metric) else f"{worst.value[-1]:.3f}"
    return f"{worst.name} is worst: {value} at {d.across} {worst.x[-1]:g}"
