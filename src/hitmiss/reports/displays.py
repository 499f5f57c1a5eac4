"""What is drawn, as objects that hold numbers and know their figure: curves, scores, confidences, attacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri

from hitmiss.core.convert import fit
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.kinds import FAILED
from hitmiss.core.registry import MetricSpec, parse
from hitmiss.core.results import Estimate, Results
from hitmiss.core.score_keys import COARSE, bins_of, first_key, keys_of, scores_of
from hitmiss.core.sorting import Array, Floats
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials
from hitmiss.core.weights import effective_weights
from hitmiss.engine.counted import TalliedTrials
from hitmiss.engine.interval import share_interval
from hitmiss.metrics.confidence import binned, judged
from hitmiss.metrics.curves import det_of_tally, pr_of_tally, roc_of_tally
from hitmiss.metrics.detection import bayes_threshold, dcf_weights, eer_point, pav_blocks
from hitmiss.metrics.ranking import average_precision_of_tally
from hitmiss.metrics.selective import risk_coverage
from hitmiss.robustness.campaign import CLEAN, CONTROL, attack_name
from hitmiss.robustness.manipulation import CLEAN_NAMES
from hitmiss.stats.forms.least_cost import MinimumCost

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# ----------------------------------------------------------------------
# Thinned curves: of a million points, the few that the eye can distinguish, without moving the drawn line.
#
# Coordinates are pixels of the plot, so a DET curve is thinned after its rates were mapped to normal deviates. Nothing is
# clipped: a point beyond the axes is kept, and one at infinity is not drawn.

Places = NDArray[np.intp]
PIXELS: Final = 600
"""The side length of the plot for which curves are thinned."""
HALF_PIXEL: Final = 0.5
GRAIN: Final = 0.1
"""Side of the squares within which neighbouring points count as one; a seventh of a pixel across."""


def thin(x: Floats, y: Floats, tolerance: float = HALF_PIXEL, stops: int = 0) -> Places:
    """Return the indices of the points to keep: every other point is within `tolerance` of the line through these.

    Neighbours inside one small square are joined first, then Ramer–Douglas–Peucker spends what is left of the tolerance.
    `stops` points, evenly spaced along the line, are kept in any case, so that a pointer finds real thresholds everywhere.

    >>> x = np.linspace(0, 600, 100_000)
    >>> thin(x, x).tolist()
    [0, 99999]
    """
    if len(x) != len(y) or not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("a curve to be thinned has as many x as y, all of them finite")
    if len(x) < 3:
        return np.arange(len(x))
    grain = GRAIN * min(1.0, tolerance / HALF_PIXEL)
    ends = _ends_of_runs(x, y, grain)
    x, y = x[ends], y[ends]
    return ends[_peucker(x, y, _stops(x, y, stops), tolerance - grain * np.sqrt(2.0))]


def _ends_of_runs(x: Floats, y: Floats, grain: float) -> Places:
    """Return the first and the last point of each run of neighbours that share a square."""
    column, row = np.floor(x / grain), np.floor(y / grain)
    moved = (column[1:] != column[:-1]) | (row[1:] != row[:-1])
    is_end = np.concatenate([moved, [True]]) | np.concatenate([[True], moved])
    return np.flatnonzero(is_end)


def _peucker(x: Floats, y: Floats, fixed: Places, tolerance: float) -> Places:
    """Run Ramer–Douglas–Peucker between fixed points, with the distance to the segment, without recursion."""
    keep = np.zeros(len(x), dtype=bool)
    keep[fixed] = True
    pending = list(pairwise(fixed.tolist()))
    while pending:
        first, last = pending.pop()
        if last - first < 2:
            continue
        away = distance_to_segment(x[first + 1 : last], y[first + 1 : last], (x[first], y[first]), (x[last], y[last]))
        far = int(np.argmax(away))
        if away[far] > tolerance:
            middle = first + 1 + far
            keep[middle] = True
            pending += [(first, middle), (middle, last)]
    return np.flatnonzero(keep)


def distance_to_segment(x: Floats, y: Floats, start: tuple[float, float], end: tuple[float, float]) -> Floats:
    """Return the distances of points from a segment.

    >>> distance_to_segment(np.array([0.0, 5.0]), np.array([1.0, 0.0]), (-1.0, 0.0), (1.0, 0.0)).tolist()
    [1.0, 4.0]
    """
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = dx * dx + dy * dy
    along = np.clip(((x - start[0]) * dx + (y - start[1]) * dy) / length, 0.0, 1.0) if length > 0 else 0.0
    return np.asarray(np.hypot(x - start[0] - along * dx, y - start[1] - along * dy))


def _stops(x: Floats, y: Floats, stops: int) -> Places:
    """Return the first index, the last, and some more between them, evenly spaced along the line."""
    ends = np.array([0, len(x) - 1])
    along = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))])
    if stops < 1 or not along[-1] > 0:
        return ends
    between = np.searchsorted(along, np.linspace(0.0, along[-1], stops))
    return np.union1d(ends, np.minimum(between, len(x) - 1))


# ----------------------------------------------------------------------
# Curves of a detector as objects that hold numbers and can draw themselves: DET, ROC, precision–recall.
#
#     DetDisplay.from_trials(trials).plot()                       # matplotlib axes
#     ax = DetDisplay.from_trials(a).plot(name="a")
#     DetDisplay.from_trials(b).plot(ax=ax, name="b")             # both in one figure
#
# Points are thinned to what the eye can distinguish (see above); each keeps its threshold.

STOPS: Final = 100
"""Number of points kept for the pointer, in addition to those that the line needs."""
PER_DEVIATE: Final = 200.0
"""Pixels of a DET plot per normal deviate: 600 for the three from 0.1 % to 50 %."""
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
    positive: str
    negative: str
    n_positive: int
    n_negative: int

    def to_dict(self) -> dict[str, object]:
        """Return plain numbers and texts, with infinities as null."""
        held = [f.name for f in fields(self) if f.name != HIGHER or getattr(self, HIGHER)]
        return {"kind": self.kind, **{name: plain(getattr(self, name)) for name in held}}

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Self:
        """Read the output of `to_dict`."""
        try:
            held = [f.name for f in fields(cls) if f.name != HIGHER or HIGHER in data]
            given: dict[str, Any] = {name: unplain(name, data[name]) for name in held}
            return cls(**given)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"this is not the {cls.kind} curve of a results file: {error}") from None

    def plot(self, ax: Axes | None = None, *, name: str | None = None, color: str | None = None) -> Axes:
        """Draw into these axes, or into new ones with the width of a paper's column."""
        from hitmiss.reports.matplots import plot

        return plot(self, ax, name, color)


HIGHER: Final = "higher"
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


D = TypeVar("D", bound=Display)


def of_file(display: D, trials: Trials) -> D:
    """Return a display with its thresholds, and the axis of a histogram, as scores of the file."""
    scale, changes = trials.header.scale, dict[str, Any]()
    if not scale.is_reversed:
        return display
    if (points := getattr(display, "points", None)) is not None:
        changes["points"] = tuple(replace(p, threshold=scale.turned(p.threshold)) for p in points)
    if (bound := getattr(display, "threshold", None)) is not None:
        changes["threshold"] = np.where(np.isinf(bound), bound, scale.turned(bound))
    if isinstance(display, HistogramDisplay):
        changes |= {"edges": scale.turned(display.edges)[::-1]}
        changes |= {"positives": display.positives[::-1], "negatives": display.negatives[::-1]}
    if hasattr(display, HIGHER):
        changes[HIGHER] = trials.header.negative
    return replace(display, **changes)


def tally_of(trials: Trials, counted: Tally | None = None) -> Tally:
    """Count the scores of trials; trials without a score (failed calls) are left out, a single class is refused.

    `counted` is the outcome of an earlier call: several displays of the same trials are drawn from one count.
    """
    if counted is not None:
        return counted
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
    weights = effective_weights(trials)
    if weights is None:
        return Tally.of(trials.label[there], scores.drop_nulls().to_numpy())
    return Tally.of(trials.label[there], scores.drop_nulls().to_numpy(), weights[there])


def area_text(name: str, area: float) -> str:
    """Return the legend text for an area; empty if the area is not known (curves from bins of scores).

    >>> area_text(" · AUC", 0.98765), area_text(" · AUC", float("nan"))
    (' · AUC 0.9877', '')
    """
    return "" if np.isnan(area) else f"{name} {area:.4f}"


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


def light(x: Floats, y: Floats) -> Array:
    """Return the indices of the points of a curve to keep, in pixels."""
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
    higher: str = ""
    """The class that higher scores of the file mean, if it is not the positive one."""

    @classmethod
    def from_trials(cls, trials: Trials, *, costs: Costs | None = None, tally: Tally | None = None) -> DetDisplay:
        """Compute the curve of scored trials with operating points; `costs` marks the minimum and the actual cost."""
        points = {"is_llr": trials.header.score_kind == "llr", "threshold": trials.header.decided_from}
        tally = tally_of(trials, tally)
        marks = operating_points(tally, costs=costs, **points)  # type: ignore[arg-type]
        return of_file(cls.from_tally(tally, *facts(trials, tally)[:2], marks), trials)

    @classmethod
    def from_tally(
        cls, tally: Tally, positive: str = "positive", negative: str = "negative", points: Sequence[Point] = ()
    ) -> DetDisplay:
        """Compute the curve of a tally."""
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
    def from_trials(cls, trials: Trials, *, costs: Costs | None = None, tally: Tally | None = None) -> RocDisplay:
        """Compute the curve of scored trials; `costs` marks the minimum and the actual cost."""
        tally = tally_of(trials, tally)
        marks = operating_points(tally, costs=costs, is_llr=trials.header.score_kind == "llr")
        return of_file(cls.from_tally(tally, *facts(trials, tally)[:2], marks), trials)

    @classmethod
    def from_tally(
        cls, tally: Tally, positive: str = "positive", negative: str = "negative", points: Sequence[Point] = ()
    ) -> RocDisplay:
        """Compute the curve of a tally."""
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
    def from_trials(cls, trials: Trials, *, tally: Tally | None = None) -> PrDisplay:
        """Compute the curve of scored trials."""
        tally = tally_of(trials, tally)
        return of_file(cls.from_tally(tally, *facts(trials, tally)[:2]), trials)

    @classmethod
    def from_tally(cls, tally: Tally, positive: str = "positive", negative: str = "negative") -> PrDisplay:
        """Compute the curve of a tally."""
        curve = pr_of_tally(tally)
        kept = light(PIXELS * curve.recall, PIXELS * curve.precision)
        lines = curve.recall[kept], curve.precision[kept], curve.thresholds[kept]
        counts = int(tally.n_positive), int(tally.n_negative)
        return cls(positive, negative, *counts, *lines, average_precision_of_tally(tally))


# ----------------------------------------------------------------------
# The value of scores and confidences, as objects that hold numbers and can draw themselves.
#
# Histograms of both classes, reliability, Bayes error rate (APE), Tippett, and risk against coverage.

BINS: Final = 60
PRIORS: Final = np.linspace(-7.0, 7.0, 141)
"""Prior log-odds at which Bayes error rates are shown: 0.1 % to 99.9 %."""
TAIL: Final = 0.0005
"""Share of the scores at each end that goes into the outer bins of a histogram, so that outliers cannot squash it."""


@dataclass(frozen=True, eq=False)
class HistogramDisplay(Display):
    """The scores of both classes in bins, each class as shares of itself. The outer bins hold what lies beyond.

    >>> h = HistogramDisplay.from_trials(Trials.of([1, 1, 0, 0], [1.0, 2.0, 0.0, 1.0]), bins=2)
    >>> h.edges.tolist(), h.positives.tolist(), h.negatives.tolist()
    ([0.0, 1.0, 2.0], [0.0, 1.0], [0.5, 0.5])
    """

    kind: ClassVar[str] = "histogram"
    edges: Floats
    positives: Floats
    negatives: Floats
    points: tuple[Point, ...] = ()
    higher: str = ""
    """The class that higher scores of the file mean, if it is not the positive one."""

    @classmethod
    def from_trials(cls, trials: Trials, *, bins: int = BINS, tally: Tally | None = None) -> HistogramDisplay:
        """Compute the histogram of scored trials; the threshold of the EER, or of the decisions, is marked."""
        tally = tally_of(trials, tally)
        marks = operating_points(tally, threshold=trials.header.decided_from)
        return of_file(cls.from_tally(tally, *facts(trials, tally)[:2], bins=bins, points=marks), trials)

    @classmethod
    def from_tally(
        cls,
        tally: Tally,
        positive: str = "positive",
        negative: str = "negative",
        *,
        bins: int = BINS,
        points: tuple[Point, ...] = (),
    ) -> HistogramDisplay:
        """Compute the histogram of a tally."""
        edges = _edges(tally, bins)
        counts = _spread(tally, edges) if tally.is_short else _placed(tally, edges)
        shares = counts[0] / tally.n_positive, counts[1] / tally.n_negative
        return cls(positive, negative, int(tally.n_positive), int(tally.n_negative), edges, *shares, points)


def _placed(tally: Tally, edges: Floats) -> list[Floats]:
    """Count the scores of each class between the edges."""
    inner, bins = np.clip(tally.score, edges[0], edges[-1]), len(edges) - 1
    place = np.minimum(np.searchsorted(edges, inner, side="right") - 1, bins - 1)
    counts = [np.bincount(place, weights=c, minlength=bins) for c in (tally.positive_counts, tally.negative_counts)]
    return [c.astype(np.float64) for c in counts]


def _spread(tally: Tally, edges: Floats) -> list[Floats]:
    """Count scores known only by their bins: those of a bin are assumed to be spread evenly in it."""
    keys = keys_of(tally.score)
    above = np.minimum(first_key(bins_of(keys, COARSE) + np.uint64(1), COARSE), keys_of([np.inf]))
    ends = np.minimum(scores_of(above), np.append(tally.score[1:], np.inf))
    points = np.clip(np.column_stack([tally.score, ends]), edges[0], edges[-1]).ravel()
    found = []
    for below in (tally.positives, tally.negatives):
        held = np.interp(edges, points, np.column_stack([below[:-1], below[1:]]).ravel().astype(np.float64))
        held[0], held[-1] = 0.0, float(below[-1])
        found.append(np.diff(held))
    return found


def _edges(tally: Tally, bins: int) -> Floats:
    """Return equal bins over the scores, except their outermost share."""
    finite = np.isfinite(tally.score)
    if not finite.any():
        raise DataError("there is no finite score to draw")
    score = tally.score[finite]
    below = np.cumsum((tally.positive_counts + tally.negative_counts)[finite])
    low, high = (float(score[np.searchsorted(below, share * below[-1])]) for share in (TAIL, 1 - TAIL))
    if low == high:
        low, high = float(score[0]), float(score[-1])
    half = 0.5 if low == high else 0.0
    return np.linspace(low - half, high + half, bins + 1)


@dataclass(frozen=True, eq=False)
class ReliabilityDisplay(Display):
    """What was stated against what happened, in bins of the statement, with Wilson intervals.

    `of` is `probability` (of the positive class, from scores) or `confidence` (that the verdict is right).
    """

    kind: ClassVar[str] = "reliability"
    stated: Floats
    happened: Floats
    low: Floats
    high: Floats
    n: Floats
    of: str = "probability"

    @classmethod
    def from_trials(cls, trials: Trials, *, bins: int = 10, tally: Tally | None = None) -> ReliabilityDisplay:
        """Compute it from stated confidences if there are any, else from scores: probabilities, log-odds or LLRs.

        An LLR becomes a probability at the share of positives in these trials.
        """
        if "confidence" in trials.frame.columns and "decision" in trials.frame.columns:
            tally = _judged(trials)
            made = cls._from_tally(tally, facts(trials, tally)[:2], bins, "confidence")
            pooled = trials.retitle(runs=())
            return made._by_items(pooled, bins) if pooled.is_repeated else made
        kind, tally = trials.header.score_kind, tally_of(trials, tally)
        if kind == "raw":
            raise DataError("raw scores state no probability; calibrate them first")
        shift = float(logit(tally.n_positive / (tally.n_positive + tally.n_negative))) if kind == "llr" else 0.0
        stated = tally if kind == "probability" else tally.rescored(expit(tally.score + shift))
        return cls._from_tally(stated, facts(trials, tally)[:2], bins, "probability")

    def _by_items(self, trials: Trials, bins: int) -> ReliabilityDisplay:
        """Recompute intervals over items: rows of one item are not independent, and Wilson's would be too narrow."""
        from hitmiss.verdicts.reliability import reliability

        found = [b for b in reliability(trials, bins=bins) if b.n]
        if len(found) != len(self.n):
            return self
        low, high = (np.array([getattr(b, name) for b in found]) for name in ("low", "high"))
        return replace(self, low=low, high=high)

    @classmethod
    def _from_tally(cls, tally: Tally, names: tuple[str, ...], bins: int, of: str) -> ReliabilityDisplay:
        found = binned(tally, bins)
        held = found.n > 0
        ends = np.array([share_interval(r, n) for r, n in zip(found.right[held], found.n[held], strict=True)]).reshape(
            -1, 2
        )
        n = found.n[held]
        shares = found.stated[held] / n, found.right[held] / n, ends[:, 0], ends[:, 1], n
        return cls(names[0], names[1], int(tally.n_positive), int(tally.n_negative), *shares, of)


def _judged(trials: Trials) -> Tally:
    decision = trials.column("decision").fill_null(FAILED).to_numpy()
    confidence = trials.column("confidence").cast(float).fill_null(np.nan).to_numpy()
    return judged(trials.label, decision, confidence, effective_weights(trials))


@dataclass(frozen=True, eq=False)
class BayesErrorDisplay(Display):
    """Applied probability of error (APE): the error rate of Bayes decisions over a range of priors.

    `actual` takes the scores as the LLRs they claim to be, `least` after the best monotone recalibration (PAV),
    `default` decides by the prior alone. Between actual and least lies what miscalibration costs.
    """

    kind: ClassVar[str] = "bayes_error"
    prior: Floats
    actual: Floats
    least: Floats
    default: Floats

    @classmethod
    def from_trials(cls, trials: Trials, *, tally: Tally | None = None) -> BayesErrorDisplay:
        """Compute the error rates of LLR scores."""
        tally = tally_of(_llrs(trials, "a Bayes error rate"), tally)
        return cls.from_tally(tally, *facts(trials, tally)[:2])

    @classmethod
    def from_tally(cls, tally: Tally, positive: str = "positive", negative: str = "negative") -> BayesErrorDisplay:
        """Compute the error rates of a tally of LLRs."""
        chance = expit(PRIORS)
        at = np.searchsorted(tally.score, -PRIORS, side="left")
        miss = tally.positives[at] / tally.n_positive
        alarm = (tally.n_negative - tally.negatives[at]) / tally.n_negative
        p, q = pav_blocks(tally)
        frr = np.concatenate([[0.0], np.cumsum(p) / tally.n_positive])
        far = 1.0 - np.concatenate([[0.0], np.cumsum(q) / tally.n_negative])
        least = np.min(chance[:, None] * frr + (1 - chance)[:, None] * far, axis=1)
        lines = PRIORS, chance * miss + (1 - chance) * alarm, least, np.minimum(chance, 1 - chance)
        return cls(positive, negative, int(tally.n_positive), int(tally.n_negative), *lines)


def _llrs(trials: Trials, what: str) -> Trials:
    if trials.header.score_kind != "llr":
        raise DataError(
            f"{what} needs llr scores and these are declared {trials.header.score_kind!r}; declare the kind if you know "
            "better, or calibrate on a development set"
        )
    return trials


@dataclass(frozen=True, eq=False)
class TippettDisplay(Display):
    """Tippett plot: the share of each class whose likelihood ratio is at least x, x in powers of ten."""

    kind: ClassVar[str] = "tippett"
    positive_lr: Floats
    positive_share: Floats
    negative_lr: Floats
    negative_share: Floats

    @classmethod
    def from_trials(cls, trials: Trials, *, tally: Tally | None = None) -> TippettDisplay:
        """Compute the cumulative shares of LLR scores."""
        tally = tally_of(_llrs(trials, "a Tippett plot"), tally)
        return cls.from_tally(tally, *facts(trials, tally)[:2])

    @classmethod
    def from_tally(cls, tally: Tally, positive: str = "positive", negative: str = "negative") -> TippettDisplay:
        """Compute the cumulative shares of a tally of LLRs."""
        finite = np.isfinite(tally.score)
        tens = tally.score[finite] / np.log(10.0)
        scale = PIXELS / max(float(np.ptp(tens)), 1e-9) if len(tens) else 1.0
        sides: list[Floats] = []
        for below, n in ((tally.positives, tally.n_positive), (tally.negatives, tally.n_negative)):
            share = (n - below[:-1][finite]) / n
            kept = light(scale * tens, PIXELS * share)
            sides += [tens[kept], share[kept]]
        return cls(positive, negative, int(tally.n_positive), int(tally.n_negative), *sides)


@dataclass(frozen=True, eq=False)
class RiskCoverageDisplay(Display):
    """The share of wrong verdicts among the answers that are kept, the most confident first."""

    kind: ClassVar[str] = "risk_coverage"
    coverage: Floats
    risk: Floats
    confidence: Floats

    @classmethod
    def from_trials(cls, trials: Trials) -> RiskCoverageDisplay:
        """Compute the curve of trials with decisions and confidences."""
        tally = _judged(trials)
        if not len(tally.score):
            raise DataError("no answered trial has a confidence")
        decision = trials.column("decision").fill_null(FAILED).to_numpy()
        confidence = trials.column("confidence").cast(float).fill_null(np.nan).to_numpy()
        curve = risk_coverage(trials.label, decision, confidence, effective_weights(trials))
        kept = light(PIXELS * curve.coverage, PIXELS * curve.risk)
        lines = curve.coverage[kept], curve.risk[kept], curve.threshold[kept]
        return cls(*facts(trials, tally), *lines)


def read_display(data: Mapping[str, object]) -> Display:
    """Read a display of any kind from its JSON form."""

    known: tuple[type[Display], ...] = (
        DetDisplay, RocDisplay, PrDisplay, HistogramDisplay, ReliabilityDisplay, BayesErrorDisplay, TippettDisplay, RiskCoverageDisplay,
    )  # fmt: skip
    kinds = {display.kind: display for display in known}
    if data.get("kind") not in kinds:
        raise DataError(f"unknown kind of curve {data.get('kind')!r}; known: {', '.join(kinds)}")
    return kinds[str(data["kind"])].from_dict(data)


# ----------------------------------------------------------------------
# A figure over the strength of an attack or the level of a manipulation, as an object that can draw itself.
#
# RobustnessDisplay.from_results(results, "robust_accuracy").plot()      # of `hitmiss score run -p ecg-attacks`
# for display in RobustnessDisplay.from_slices(results, "manipulation", "eer"):
#     display.plot()                                                     # of `hitmiss detect --manipulate`


@dataclass(frozen=True, eq=False)
class StrengthLine:
    """One attack: a figure and its interval (NaN where it has none) at each strength."""

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
    """Lines over strength, and the figure of the unchanged items for comparison.

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
            raise DataError(f"these results hold no {metric} of an attack at a strength")
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
