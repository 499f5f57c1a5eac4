"""What is drawn, as an object that says all of itself: its numbers, its plate, its table, and how to read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np

from hitmiss.core.convert import fit
from hitmiss.core.errors import DataError
from hitmiss.core.sorting import Array, Floats
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials
from hitmiss.metrics.detection import bayes_threshold, dcf_weights, eer_point
from hitmiss.reports.displays.lines import AnyLines, NumberRows, PlateOptions
from hitmiss.reports.plate import Plate
from hitmiss.reports.readings import Reading
from hitmiss.reports.table import Table, TableCell
from hitmiss.reports.thinning import thin
from hitmiss.stats.forms.least_cost import MinimumCost

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STOPS: Final = 100
"""Number of points kept for the pointer, in addition to those that the line needs."""
DIGITS: Final = 5
"""Significant digits of stored numbers; half a pixel needs four."""


@dataclass(frozen=True)
class Costs:
    """The weights of a detection cost; the defaults are those of ASVspoof 5."""

    p_target: float = 0.95
    c_miss: float = 1.0
    c_fa: float = 10.0


@dataclass(frozen=True)
class Point:
    """An operating point: its name, its two error rates, and its threshold."""

    label: str
    far: float
    frr: float
    threshold: float


@dataclass(frozen=True, eq=False)
class Display:
    """What all displays share: the class names, the number of trials of each, and a JSON form."""

    kind: ClassVar[str] = ""
    reading: ClassVar[Reading]
    metric: ClassVar[str] = ""
    """The metric whose value the curve shows as a whole; empty if there is none."""
    positive: str
    negative: str
    n_positive: int
    n_negative: int

    def to_dict(self) -> dict[str, object]:
        """Return plain numbers and texts, with infinities as null."""
        held = [f.name for f in fields(self) if f.name not in OPTIONAL or len(getattr(self, f.name))]
        return {"kind": self.kind, **{name: plain(getattr(self, name)) for name in held}}

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Self:
        """Read the output of `to_dict`."""
        try:
            held = [f.name for f in fields(cls) if f.name not in OPTIONAL or f.name in data]
            given: dict[str, Any] = {name: unplain(name, data[name]) for name in held}
            return cls(**given)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError.of("malformed-curve", cls_kind=cls.kind, error=error) from None

    @staticmethod
    def plate(lines: AnyLines, how: PlateOptions) -> Plate:
        """Draw some displays of this kind, one line per run."""
        raise NotImplementedError

    @staticmethod
    def numbers(lines: AnyLines) -> NumberRows:
        """Return the numbers behind the figure."""
        raise NotImplementedError

    def plot(self, ax: Axes | None = None, *, name: str | None = None, color: str | None = None) -> Axes:
        """Draw into these axes, or into new ones with the width of a paper's column."""
        from hitmiss.reports.matplots import plot

        return plot(self, ax, name, color)

    def on_scale_of(self, trials: Trials) -> Self:
        """Return the display with its thresholds as scores of the file that the trials came from."""
        scale = trials.header.scale
        return replace(self, **self._turned(trials)) if scale.is_reversed else self

    def _turned(self, trials: Trials) -> dict[str, Any]:
        """Return the fields that change where the file's scores point the other way."""
        scale, changes = trials.header.scale, dict[str, Any]()
        if (points := getattr(self, "points", None)) is not None:
            changes["points"] = tuple(replace(p, threshold=scale.turned(p.threshold)) for p in points)
        if (bound := getattr(self, "threshold", None)) is not None:
            changes["threshold"] = np.where(np.isinf(bound), bound, scale.turned(bound))
        if hasattr(self, HIGHER):
            changes[HIGHER] = trials.header.negative
        return changes


HIGHER: Final = "higher"
OPTIONAL: Final = (HIGHER, "worth_negative", "worth_positive", "over")
"""Fields that a file holds only if they say something."""
"""The field that names the class of higher scores where it is not the positive one; left out of the JSON otherwise."""


def plain(value: object) -> object:
    """Convert a field for JSON: arrays become lists of numbers with five digits, values that are not finite null."""
    if isinstance(value, np.ndarray):
        return [plain(v) for v in value.tolist()]
    if isinstance(value, Point):
        return [plain(getattr(value, f.name)) for f in fields(value)]
    if isinstance(value, tuple):
        return [plain(v) for v in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None
    return value


def unplain(name: str, value: object) -> object:
    """Invert `plain`, except lost digits: null in a list of numbers is +inf (the threshold that accepts nothing)."""
    if name == "points":
        rows = fit(list[list[object]], value)
        return tuple(Point(str(p[0]), *(np.inf if v is None else fit(float, v) for v in p[1:4])) for p in rows)
    if isinstance(value, list):
        return np.array([np.inf if v is None else v for v in value], dtype=np.float64)
    return np.nan if value is None else value


def facts(trials: Trials, tally: Tally) -> tuple[str, str, int, int]:
    """Return the fields that all displays begin with."""
    return trials.header.positive, trials.header.negative, int(tally.n_positive), int(tally.n_negative)


def tally_of(trials: Trials, counted: Tally | None = None) -> Tally:
    """Count the scores of trials; trials without a score (failed calls) are left out, a single class is refused.

    `counted` is the outcome of an earlier call: several displays of the same trials are drawn from one count.
    """
    if counted is not None:
        return counted
    tally = trials.tally
    if not tally.has_both_classes:
        only = trials.header.positive if tally.n_positive else trials.header.negative
        raise DataError.of("no-curve", only=only) if len(tally.score) else DataError.of("no-curve/scores")
    return tally


def operating_points(
    tally: Tally, *, costs: Costs | None = None, is_llr: bool = False, threshold: float | None = None
) -> tuple[Point, ...]:
    """Return the EER point; with costs the minimum-cost point, for LLRs also the actual one; and a given threshold."""
    places = {"EER": eer_point(tally)}
    if costs is not None:
        miss, false_alarm, unit = dcf_weights(costs.p_target, costs.c_miss, costs.c_fa, True)
        places["min DCF"] = MinimumCost(miss, false_alarm, unit).best_point(tally)
        if is_llr:
            places["act DCF"] = tally.point_at(bayes_threshold(costs.p_target, costs.c_miss, costs.c_fa))
    if threshold is not None:
        places["threshold"] = tally.point_at(threshold)
    return tuple(_point(label, tally, i) for label, i in places.items())


def _point(label: str, tally: Tally, i: int) -> Point:
    far = (tally.n_negative - float(tally.negatives[i])) / tally.n_negative
    return Point(label, far, float(tally.positives[i]) / tally.n_positive, tally.threshold_of(i))


def require_llrs(trials: Trials, what: str) -> Trials:
    """Refuse scores that are not log-likelihood ratios."""
    if trials.header.score_kind != "llr":
        raise DataError.of("needs-llr-scores-declared", what=what, score_kind=trials.header.score_kind)
    return trials


def light(x: Floats, y: Floats) -> Array:
    """Return the indices of the points of a curve to keep, in pixels."""
    return thin(x, y, stops=STOPS)


def plate_of(lines: AnyLines, how: PlateOptions | None = None) -> Plate:
    """Return the plate of some displays of one kind, with one line per run."""
    plate: Plate = lines[0][1].plate(lines, how or PlateOptions())
    return plate


def numbers_of(lines: AnyLines) -> Table:
    """Return the numbers behind a figure, also for screen readers and browsers without scripts."""
    first = lines[0][1]
    header, rows = first.numbers(lines)
    cells = tuple((TableCell(name), *map(TableCell, texts)) for name, texts in rows)
    return Table(first.reading.title, ("attack" if first.kind == "robustness" else "run", *header), cells)
