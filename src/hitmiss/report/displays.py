"""Curves of a detector as objects that hold numbers and can draw themselves: DET, ROC, precision–recall.

    DetDisplay.from_trials(trials).plot()                       # matplotlib axes
    ax = DetDisplay.from_trials(a).plot(name="a")
    DetDisplay.from_trials(b).plot(ax=ax, name="b")             # both in one figure

Points are thinned to what the eye can tell (see `thinning`); each keeps its threshold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from scipy.special import ndtri

from hitmiss.core.errors import DataError
from hitmiss.core.tally import Floats, Tally
from hitmiss.core.trials import Trials
from hitmiss.engine.counted import TalliedTrials
from hitmiss.metrics.curves import det_of_tally, pr_of_tally, roc_of_tally
from hitmiss.metrics.detection import bayes_threshold, dcf_weights, eer_point
from hitmiss.metrics.ranking import average_precision_of_tally
from hitmiss.report.thinning import PIXELS, thin
from hitmiss.stats.forms import MinimumCost

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STOPS: Final = 100
"""Points kept for the pointer beside those that the line needs."""
PER_DEVIATE: Final = 200.0
"""Pixels of a DET plot per normal deviate: 600 for the three from 0.1 % to 50 %."""
DIGITS: Final = 5
"""Significant digits of stored numbers; half a pixel needs four."""


@dataclass(frozen=True)
class Costs:
    """What a detection cost weighs; the defaults are those of ASVspoof 5."""

    p_target: float = 0.95
    c_miss: float = 1.0
    c_fa: float = 10.0


@dataclass(frozen=True)
class Point:
    """An operating point: its name, its two error rates, the threshold that makes it."""

    label: str
    far: float
    frr: float
    threshold: float


@dataclass(frozen=True, eq=False)
class Display:
    """What all displays share: the class names, how many trials of each, and a form for JSON."""

    kind: ClassVar[str] = ""
    positive: str
    negative: str
    n_positive: int
    n_negative: int

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and texts; infinities as null."""
        return {"kind": self.kind, **{f.name: plain(getattr(self, f.name)) for f in fields(self)}}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Any:
        """What `to_dict` gave."""
        try:
            given = {f.name: data[f.name] for f in fields(cls)}
            return cls(**{name: unplain(name, value) for name, value in given.items()})
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"this is not the {cls.kind} curve of a results file: {error}") from None

    def plot(self, ax: Axes | None = None, *, name: str | None = None, color: str | None = None) -> Axes:
        """Draw into these axes, or into new ones of a paper's column width."""
        from hitmiss.report.matplots import plot

        return plot(self, ax, name, color)


def plain(value: Any) -> Any:
    """A field as JSON holds it: arrays as lists of numbers with five digits, what is not finite as null."""
    if isinstance(value, np.ndarray):
        return [plain(v) for v in value.tolist()]
    if isinstance(value, Point):
        return [plain(getattr(value, f.name)) for f in fields(value)]
    if isinstance(value, tuple):
        return [plain(v) for v in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None
    return value


def unplain(name: str, value: Any) -> Any:
    """The inverse of `plain`, lost digits apart: null in a list of numbers is +inf (no threshold accepts nothing)."""
    if name == "points":
        return tuple(Point(str(p[0]), *(np.inf if v is None else float(v) for v in p[1:4])) for p in value)
    if isinstance(value, list):
        return np.array([np.inf if v is None else v for v in value], dtype=np.float64)
    return np.nan if value is None else value


def facts(trials: Trials, tally: Tally) -> tuple[str, str, int, int]:
    """The fields that all displays begin with."""
    return trials.header.positive, trials.header.negative, int(tally.n_positive), int(tally.n_negative)


def tally_of(trials: Trials) -> Tally:
    """The scores of trials counted; trials without a score (failed calls) are left out, one class alone is refused."""
    tally = trials.whole.tally if isinstance(trials, TalliedTrials) else _counted(trials)
    if not tally.has_both_classes:
        only = trials.header.positive if tally.n_positive else trials.header.negative
        raise DataError(
            f"there is no curve to draw: every trial is {only}" if len(tally.score) else "no trial has a score"
        )
    return tally


def _counted(trials: Trials) -> Tally:
    scores = trials.column("score")
    there = scores.is_not_null().to_numpy()
    return Tally.of(trials.label[there], scores.drop_nulls().to_numpy())


def area_text(name: str, area: float) -> str:
    """What a legend says about an area; nothing where it is not known (curves from bins of scores).

    >>> area_text(" · AUC", 0.98765), area_text(" · AUC", float("nan"))
    (' · AUC 0.9877', '')
    """
    return "" if np.isnan(area) else f"{name} {area:.4f}"


def operating_points(
    tally: Tally, *, costs: Costs | None = None, is_llr: bool = False, threshold: float | None = None
) -> tuple[Point, ...]:
    """The EER; with costs the point of least cost, for LLRs also the one that is acted on; a threshold of one's own."""
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


def light(x: Floats, y: Floats) -> Any:
    """Places of the points to keep of a curve in pixels."""
    return thin(x, y, stops=STOPS)


@dataclass(frozen=True, eq=False)
class DetDisplay(Display):
    """Detection error trade-off on normal-deviate axes. Rates of 0 and 1 lie at infinity and are not drawn.

    >>> d = DetDisplay.from_trials(Trials.of([1, 1, 1, 0, 0, 0], [3.0, 2.0, 0.5, 1.0, 0.0, -1.0]))
    >>> [(p.label, round(p.far, 3), round(p.frr, 3)) for p in d.points]
    [('EER', 0.333, 0.333)]
    """

    kind: ClassVar[str] = "det"
    far: Floats
    frr: Floats
    threshold: Floats
    points: tuple[Point, ...] = ()

    @classmethod
    def from_trials(cls, trials: Trials, *, costs: Costs | None = None) -> DetDisplay:
        """The curve of scored trials, with its operating points; `costs` marks the least and the actual cost."""
        limit = trials.header.threshold
        points = {"is_llr": trials.header.score_kind == "llr", "threshold": limit.value if limit else None}
        tally = tally_of(trials)
        return cls.from_tally(tally, *facts(trials, tally)[:2], operating_points(tally, costs=costs, **points))  # type: ignore[arg-type]

    @classmethod
    def from_tally(
        cls, tally: Tally, positive: str = "positive", negative: str = "negative", points: Sequence[Point] = ()
    ) -> DetDisplay:
        """The curve of a tally."""
        curve = det_of_tally(tally)
        drawn = (curve.far > 0) & (curve.far < 1) & (curve.frr > 0) & (curve.frr < 1)
        far, frr, threshold = curve.far[drawn], curve.frr[drawn], curve.thresholds[drawn]
        kept = light(PER_DEVIATE * ndtri(far), PER_DEVIATE * ndtri(frr))
        counts = int(tally.n_positive), int(tally.n_negative)
        return cls(positive, negative, *counts, far[kept], frr[kept], threshold[kept], tuple(points))


@dataclass(frozen=True, eq=False)
class RocDisplay(Display):
    """Receiver operating characteristic: hits against false alarms."""

    kind: ClassVar[str] = "roc"
    fpr: Floats
    tpr: Floats
    threshold: Floats
    area: float
    points: tuple[Point, ...] = ()

    @classmethod
    def from_trials(cls, trials: Trials, *, costs: Costs | None = None) -> RocDisplay:
        """The curve of scored trials; `costs` marks the least and the actual cost."""
        tally = tally_of(trials)
        marks = operating_points(tally, costs=costs, is_llr=trials.header.score_kind == "llr")
        return cls.from_tally(tally, *facts(trials, tally)[:2], marks)

    @classmethod
    def from_tally(
        cls, tally: Tally, positive: str = "positive", negative: str = "negative", points: Sequence[Point] = ()
    ) -> RocDisplay:
        """The curve of a tally."""
        curve = roc_of_tally(tally)
        kept = light(PIXELS * curve.fpr, PIXELS * curve.tpr)
        counts = int(tally.n_positive), int(tally.n_negative)
        lines = curve.fpr[kept], curve.tpr[kept], curve.thresholds[kept]
        return cls(positive, negative, *counts, *lines, curve.area, tuple(points))


@dataclass(frozen=True, eq=False)
class PrDisplay(Display):
    """Precision against recall; `prevalence` is the precision of accepting everything."""

    kind: ClassVar[str] = "pr"
    recall: Floats
    precision: Floats
    threshold: Floats
    area: float

    @property
    def prevalence(self) -> float:
        """The share of positives."""
        return self.n_positive / (self.n_positive + self.n_negative)

    @classmethod
    def from_trials(cls, trials: Trials) -> PrDisplay:
        """The curve of scored trials."""
        tally = tally_of(trials)
        return cls.from_tally(tally, *facts(trials, tally)[:2])

    @classmethod
    def from_tally(cls, tally: Tally, positive: str = "positive", negative: str = "negative") -> PrDisplay:
        """The curve of a tally."""
        curve = pr_of_tally(tally)
        kept = light(PIXELS * curve.recall, PIXELS * curve.precision)
        lines = curve.recall[kept], curve.precision[kept], curve.thresholds[kept]
        counts = int(tally.n_positive), int(tally.n_negative)
        return cls(positive, negative, *counts, *lines, average_precision_of_tally(tally))
