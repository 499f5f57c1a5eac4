"""The few forms that a metric can have. A form knows how it is counted, resampled, paired and streamed.

Of scores (`Form`; a tally determines them):
    Crossing      read where a condition begins to hold along the thresholds (EER, TPR at an FPR)
    MinimumCost   the least of  a · miss rate + b · false-alarm rate  over all thresholds (minDCF)
    AtThreshold   read at one fixed threshold (actDCF, accuracy of a fixed rule)
    ClassSums     a function of a sum over positives and a sum over negatives (Cllr, Brier)
    PairShare     the share of (positive, negative) pairs in the right order (ROC AUC)
    Whole         anything else that a tally determines (average precision, hull EER)
Of decisions:
    OfCounts      a function of the counts of decisions
Of any columns:
    OfConfidences a function of how often each confidence was right and wrong
    OfTerms       a sum over trials divided by another (the drift of an error rate, a share of records)
    OfWeights     a function of arrays and of the weights of many replicates at once (the mean area of several classes)
    OfColumns     a function of arrays, called again for each replicate

The engines (`stats.bootstrap`, `stats.paired`, `stats.sketch`, `outofcore`) ask a form what it needs and give it their
draws.
"""

# ruff: noqa: ARG002  (a method of the base class answers for the forms that need nothing)

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.core.rates import Rate
from hitmiss.core.sorting import Array, Floats, Number, let_go
from hitmiss.core.tally import Tally
from hitmiss.stats import intervals
from hitmiss.stats.intervals import Steps, equal_error_at_most, placements, unseen_share

if TYPE_CHECKING:
    from hitmiss.stats.bootstrap import Stretches
    from hitmiss.stats.paired import Curve

Ties = Literal["grouped", "official", "interpolated"]
Kind = Literal["scores", "decisions", "columns"]
Mask = NDArray[np.bool_]
Indices = NDArray[np.intp]
CHUNK = 1 << 15  # whole-array temporaries cost several times a chunked pass (page faults)
MOST_WEIGHTS = 1 << 20
"""Number of weights of trials that are held at a time."""
FINE_GRID = 128
"""Number of stretches with equal numbers of trials per class, for sums over all trials."""


@dataclass(frozen=True, eq=False)
class ReadTally(Tally):
    """A tally without all single scores, with the figures that need every score, which were computed before."""

    figures: Mapping[Form, float] = field(default_factory=dict)
    known_tied_mass: float | None = None

    @property
    def tied_mass(self) -> float:
        """The share of trials whose score occurs in both classes, if it was computed."""
        return super().tied_mass if self.known_tied_mass is None else self.known_tied_mass

    @property
    def is_short(self) -> bool:
        """Always true."""
        return True

    def known(self, form: object) -> float | None:
        """Return the figure of a form that needs every score."""
        # A figure that nobody computed is a mistake in this package: better a KeyError than a figure of bins.
        return self.figures[form]  # type: ignore[index]


@dataclass(frozen=True, eq=False)
class DiskTally(Tally):
    """A tally whose arrays are on disk (memory maps): what needs every score is computed while they are read."""

    def known(self, form: object) -> float | None:
        """Compute the figure of a form that needs every score."""
        passing = form.passing(int(self.n_positive), int(self.n_negative)) if isinstance(form, Form) else None
        if passing is None:
            return None
        for start in range(0, len(self.score), CHUNK):
            p, q = (c[start : start + CHUNK + 1] for c in (self.positives, self.negatives))
            passing.add(Tally(self.score[start : start + CHUNK], p - p[0], q - q[0]))
            let_go(self.score, self.positives, self.negatives)
        return passing.value()


class Sampled(Protocol):
    """The trials of one sample, as a form uses them."""

    @property
    def positive(self) -> Mask: ...
    @property
    def score(self) -> Floats: ...
    @property
    def tally(self) -> Tally: ...
    @property
    def steps(self) -> Steps: ...
    @property
    def counts(self) -> object: ...
    @property
    def placements(self) -> Floats: ...
    @property
    def weight(self) -> Floats | None: ...

    def arrays(self, names: Sequence[str]) -> dict[str, Array]: ...


class Drawn(Protocol):
    """Replicates of one sample, as a form of scores uses them (see `bootstrap.DrawnCells` and `bootstrap.ByUnits`)."""

    def searched(self, form: Located) -> Floats: ...
    def counts_at(self, threshold: float) -> tuple[Floats, Floats, Floats, Floats]: ...
    def class_sums(self, form: ClassSums) -> tuple[Floats, Floats, Floats, Floats]: ...
    def pair_share(self) -> Floats: ...
    def whole(self, form: Whole) -> Floats: ...


class DrawnTrials(Protocol):
    """Replicates of one sample's trials, as forms of decisions and columns use them."""

    def counts(self) -> object: ...
    def confidences(self, function: Callable[..., Floats]) -> Floats: ...
    def rows(self, form: OfColumns) -> Floats: ...
    def ratio(self, form: OfTerms) -> Floats: ...
    def weighed(self, form: OfWeights) -> Floats: ...


@dataclass(frozen=True)
class Few:
    """What an interval from few units needs: degrees of freedom, the bounds of the figure, and the level."""

    degrees: float
    bounds: tuple[float, float]
    level: float


@dataclass(frozen=True, eq=False)
class Replicated:
    """A figure with its replicates; `beside`: the second form that it asked for (`Form.beside`), and its replicates."""

    value: float
    replicates: Floats
    beside: tuple[Form, Floats] | None = None


class Errors(NamedTuple):
    """Errors of one kind behind a figure: their name, how often they occurred, and by how much one more changes it."""

    name: str
    seen: int
    effect: float


class Passing(Protocol):
    """A figure that is computed while the scores of a sample are read in ascending order, stretch by stretch."""

    def add(self, part: Tally) -> None:
        """Read the next stretch of scores."""

    def value(self) -> float:
        """Return the figure, after all scores were read."""


L = TypeVar("L")
Bounds = intervals.Interval
Accelerated = Callable[["Form"], float]
"""Returns the acceleration of a form, for a BCa interval."""
Left = Callable[["Functional"], L | None]
"""Returns the figures of a form without one unit each; None without units."""


class Functional(ABC):
    """A figure as a function of the trials of a sample."""

    kind: ClassVar[Kind]
    is_fitted: bool = False
    """Whether it is a minimum over something fitted to the sample, so that draws do not show how uncertain it is."""
    is_area: ClassVar[bool] = False
    """Whether it is the ROC AUC, for which DeLong's variance is known."""
    needs_both: bool = False
    """Whether it is undefined with one class."""
    by_rank: ClassVar[bool] = False
    """Whether only the order of the scores matters."""
    fewest_errors: ClassVar[int] = 0
    """How many errors of each kind an interval needs (see `errors`), because draws contain none that was not seen."""
    most_of_width: ClassVar[float] = 0.2
    """With fewer errors of a kind: how much of an interval's width one more of them may add to the figure."""

    @abstractmethod
    def measure(self, sample: Sampled) -> float:
        """Return the figure of a sample."""

    def interval(self, of: Replicated, level: float, bounds: Bounds, acceleration: Accelerated) -> intervals.Interval:
        """Return the interval of the figure, which lies in `bounds`, from its replicates."""
        return intervals.percentile(of.replicates, level)

    def by_units(self, of: Replicated, few: Few, without: Left[intervals.LeftOut]) -> intervals.Interval:
        """Return the interval from replicates of units, which may be few: Student's, on a suitable scale."""
        return intervals.student(of.replicates, of.value, few.degrees, few.bounds, few.level, without(self))

    def for_averages(self, of: Replicated) -> Floats:
        """Return replicates for figures that are made of several figures."""
        return of.replicates

    def left_for_averages(self, of: Replicated, left: Left[Floats]) -> Floats | None:
        """Return the figures without one unit each, for figures that are made of several figures."""
        return left(self)

    def corrected(self, of: Replicated) -> float:
        """Return the figure without the optimism that it has in its own sample."""
        return of.value

    def most_unseen(self, n_positive: int, n_negative: int, level: float) -> float | None:
        """Return the upper end if the figure is 0 and no error was seen; None if no bound is known."""
        return None

    def merits(self, sample: Sampled, best: str) -> Floats | None:
        """Return how good each answer is for the figure, higher = better; None if single trials show nothing."""
        return None

    def errors(self, sample: Sampled) -> tuple[Errors, ...]:
        """Return the errors that the figure counts; empty if it is not made of errors at a threshold."""
        return ()


class Form(Functional):
    """A figure that a tally of scores determines."""

    kind = "scores"
    every_score: ClassVar[bool] = False
    """Whether it depends on every score, not only on those around a threshold."""
    is_summed: ClassVar[bool] = False
    """Whether it is made of one sum over positives and one over negatives."""
    fine_unit_cells: ClassVar[bool] = False
    """Whether replicates by units need many cells as well."""
    by_value: ClassVar[bool] = False
    """Whether the values of the scores matter, so that two systems exchange their scores and not their ranks."""

    @abstractmethod
    def value(self, tally: Tally) -> float:
        """Return the figure of a tally; NaN if it is undefined."""

    @abstractmethod
    def replicates(self, drawn: Drawn) -> Floats:
        """Return the figure of every replicate."""

    def measure(self, sample: Sampled) -> float:
        """Return the figure of a sample."""
        return self.value(sample.tally)

    def interval(self, of: Replicated, level: float, bounds: Bounds, acceleration: Accelerated) -> intervals.Interval:
        """Return the BCa interval."""
        return intervals.bca(of.replicates, of.value, acceleration(self), level)

    def beside(self, tally: Tally) -> Form | None:
        """Return a second form whose replicates the interval needs as well."""
        return None

    def merits(self, sample: Sampled, best: str) -> Floats | None:
        """Return the share of the other class that each score is ordered correctly against."""
        return sample.placements

    def exchanged(self, positive: Mask, score: Floats) -> float:
        """Return the figure after two systems exchanged answers."""
        return self.value(Tally.of_classes(score[positive], score[~positive]))

    # What the engines ask a form before they draw.

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The fixed thresholds at which it is read."""
        return ()

    def points(self, tally: Tally) -> list[int]:
        """Return the points of the error curve at which cells must be cut."""
        return []

    def can_hold(self, cp: Floats, cn: Floats, n1: float, n0: float, deviations: float) -> Mask:
        """Return between which neighbouring points the figure of the sample or of a replicate can be determined."""
        return np.zeros(len(cp) - 1, dtype=bool)

    def bound(self, tally: Tally, deviations: float) -> Bound | None:
        """Return the bound that excludes stretches that cannot determine the figure; None if there is none."""
        return None

    def expected(self, tally: Tally, deviations: float) -> tuple[int, int] | None:
        """Return the first and last group in which replicates are expected to determine the figure.

        None without a range.
        """
        return None

    def on_curve(self, curve: Curve) -> tuple[Floats, Mask] | None:
        """Return the figures of paired replicates and which are in doubt; None for forms that need every trial."""
        return None

    def passing(self, n_positive: int, n_negative: int) -> Passing | None:
        """Return the object that computes it from scores read in stretches; None for a form that needs few scores."""
        return None


class Located(Form):
    """A form that one place of the error curve determines: the search for this place in all replicates at once."""

    needs_both = True
    by_rank = True

    @abstractmethod
    def open_between(self, cp: Floats, cn: Floats, n1: Number, n0: Number) -> Mask:
        """Return between which neighbouring points (last axis) of a curve the figure can be determined."""

    @abstractmethod
    def begin(self, cp: Floats, cn: Floats) -> tuple[Floats, Mask]:
        """Return what the points of curves (replicate × point) show, and between which of them it is still open."""

    @abstractmethod
    def can_be_in(self, found: Floats, s: Stretches, n1: Floats, n0: Floats) -> Mask:
        """Return whether the figure can be determined inside stretches, given what was found so far."""

    def note_point(self, found: Floats, replicate: Indices, cp: Floats, cn: Floats, n1: Floats, n0: Floats) -> None:
        """Record a further point of the curves of some replicates."""

    def note_groups(self, found: Floats, s: Stretches, n1: Floats, n0: Floats) -> None:
        """Record stretches of one group of equal scores in which the figure can be determined."""

    @abstractmethod
    def note_inside(self, found: Floats, s: Stretches, cp: Floats, cn: Floats, n1: Floats, n0: Floats) -> None:
        """Record every point (stretch × point) inside stretches, the last being their ends."""

    def replicates(self, drawn: Drawn) -> Floats:
        """Return what the search found."""
        return drawn.searched(self)


@dataclass(frozen=True)
class Crossing(Located):
    """A figure read at the first threshold at which a condition holds; from there on it always holds.

    `passed(cp, cn, n1, n0)`: whether the point that rejects `cp` positives and `cn` negatives is past the crossing;
    `read(cp, cn, p, q, n1, n0)`: the figure, given the counts below and inside the group of equal scores that crosses;
    `unseen(n1, n0, level)`: the upper end if the figure is 0 and no error was seen, if it is known.
    """

    passed: Callable[[Number, Number, Number, Number], bool | Mask]
    read: Callable[[Number, Number, Number, Number, Number, Number], Number]
    unseen: Callable[[int, int, float], float] | None = None

    def by_units(self, of: Replicated, few: Few, without: Left[intervals.LeftOut]) -> intervals.Interval:
        """Return Student's interval without the jackknife error, which is not valid for what is read at a quantile."""
        left = without(self)
        return intervals.student(of.replicates, of.value, few.degrees, few.bounds, few.level, left, smooth=False)

    def value(self, tally: Tally) -> float:
        """Return the figure at the crossing; NaN without both classes."""
        if not tally.has_both_classes:
            return float("nan")
        n1, n0 = float(tally.n_positive), float(tally.n_negative)
        low = self.point(tally)
        # Where even the first point is past the crossing there is no group to read inside: it is empty.
        high = min(low + 1, len(tally.score)) if not self.passed(0.0, 0.0, n1, n0) else low
        cp, cn, cp_high, cn_high = (float(c[i]) for i in (low, high) for c in (tally.positives, tally.negatives))
        return float(self.read(cp, cn, cp_high - cp, cn_high - cn, n1, n0))

    def point(self, tally: Tally) -> int:
        """Return the last point of the error curve that is not past the crossing (0 if all are)."""
        n1, n0 = float(tally.n_positive), float(tally.n_negative)
        # Once the condition holds it always holds, so halving finds the place among millions of points.
        low, high = 0, len(tally.score) + 1
        while high - low > 1:
            middle = (low + high) // 2
            if self.passed(float(tally.positives[middle]), float(tally.negatives[middle]), n1, n0):
                high = middle
            else:
                low = middle
        return low

    def past(self, cp: Number, cn: Number, n1: Number, n0: Number) -> Mask:
        """Return which of many points are past the crossing."""
        return np.asarray(self.passed(cp, cn, n1, n0), dtype=np.bool_)

    def at_ends(self, n1: Number, n0: Number, zero: Floats) -> Floats:
        """Return what is read if the crossing lies before the first or after the last group."""
        return np.asarray(
            np.where(
                self.passed(zero, zero, n1, n0),
                self.read(zero, zero, zero, zero, n1, n0),
                self.read(zero + n1, zero + n0, zero, zero, n1, n0),
            ),
            dtype=np.float64,
        )

    def open_between(self, cp: Floats, cn: Floats, n1: Number, n0: Number) -> Mask:
        """Return where the condition begins to hold."""
        passed = self.past(cp, cn, n1, n0)
        # The condition holds from one point on, so at most one stretch per curve is open.
        return np.asarray(~passed[..., :-1] & passed[..., 1:])

    def begin(self, cp: Floats, cn: Floats) -> tuple[Floats, Mask]:
        """Return the ends of the curves, and the cell with the crossing."""
        n1, n0 = cp[:, -1], cn[:, -1]
        return self.at_ends(n1, n0, np.zeros(len(n1))), self.open_between(cp, cn, n1[:, None], n0[:, None])

    def can_be_in(self, found: Floats, s: Stretches, n1: Floats, n0: Floats) -> Mask:
        """Return whether the condition begins to hold inside."""
        return np.asarray(~self.past(s.cp, s.cn, n1, n0) & self.past(s.cp + s.p, s.cn + s.q, n1, n0))

    def note_groups(self, found: Floats, s: Stretches, n1: Floats, n0: Floats) -> None:
        """Read the figure there."""
        found[s.replicate] = self.read(s.cp, s.cn, s.p, s.q, n1, n0)

    def note_inside(self, found: Floats, s: Stretches, cp: Floats, cn: Floats, n1: Floats, n0: Floats) -> None:
        """Read the figure at the first point past the crossing."""
        row = np.flatnonzero(self.can_be_in(found, s, n1, n0))
        # The group that crosses begins where the point before it ends: at the start of the stretch for the first point.
        first = np.argmax(self.passed(cp[row], cn[row], n1[row, None], n0[row, None]), axis=1)
        a, b = (
            np.where(first > 0, c[row, np.maximum(first, 1) - 1], start[row]) for c, start in ((cp, s.cp), (cn, s.cn))
        )
        found[s.replicate[row]] = self.read(a, b, cp[row, first] - a, cn[row, first] - b, n1[row], n0[row])

    def most_unseen(self, n_positive: int, n_negative: int, level: float) -> float | None:
        """See `unseen`."""
        return None if self.unseen is None else self.unseen(n_positive, n_negative, level)

    def points(self, tally: Tally) -> list[int]:
        """Return both sides of the sample's own crossing."""
        low = self.point(tally)
        return [low, low + 1]

    def can_hold(self, cp: Floats, cn: Floats, n1: float, n0: float, deviations: float) -> Mask:
        """Return where the condition begins to hold within this many standard deviations of the counts."""
        # The number of drawn trials below a point is binomial. More of either class bring the crossing forward, fewer put
        # it off.
        away = [deviations * np.sqrt(c * (n - c) / n) for c, n in ((cp, n1), (cn, n0))]
        early = self.past(np.minimum(cp + away[0], n1), np.minimum(cn + away[1], n0), n1, n0)
        late = self.past(np.maximum(cp - away[0], 0.0), np.maximum(cn - away[1], 0.0), n1, n0)
        return np.asarray(early[1:] & ~late[:-1])

    def expected(self, tally: Tally, deviations: float) -> tuple[int, int] | None:
        """Return the groups between the crossings with this many standard deviations more and fewer."""
        n1, n0 = float(tally.n_positive), float(tally.n_negative)

        def first_passed(away: float) -> int:
            # As in `point`, on the curve moved by this many standard deviations; replicates that leave it are found later.
            low, high = -1, len(tally.score) + 1
            while high - low > 1:
                middle = (low + high) // 2
                cp, cn = float(tally.positives[middle]), float(tally.negatives[middle])
                cp += away * np.sqrt(cp * (n1 - cp) / n1)
                cn += away * np.sqrt(cn * (n0 - cn) / n0)
                low, high = (low, middle) if self.passed(cp, cn, n1, n0) else (middle, high)
            return high

        return first_passed(deviations) - 1, first_passed(-deviations)

    def on_curve(self, curve: Curve) -> tuple[Floats, Mask] | None:
        """See `Curve.at_crossing`."""
        return curve.at_crossing(self)


def equal_error(ties: Ties) -> Crossing:
    """Return the form of the equal error rate under a rule for ties."""
    if ties not in _AT_TIES:
        raise UnknownName("tie rule", ties, (*_AT_TIES, "hull"))
    # Strictly above: a point with equal rates is then the near end of the group that is read, and gives its own rate.
    return Crossing(lambda cp, cn, n1, n0: cp / n1 > (n0 - cn) / n0, _AT_TIES[ties], equal_error_at_most)


@dataclass(frozen=True, eq=False)
class Bound:
    """A bound on the costs between two points, compared with the cost at the sample's best point."""

    tally: Tally
    form: MinimumCost
    best: int
    deviations: float

    def cannot_win(self, low: Indices, high: Indices) -> Mask:
        """Return whether costs are higher even with the misses at `low` and false alarms at `high`, in likely draws."""
        t = self.tally
        best = float(t.positives[self.best]), float(t.negatives[self.best])
        return self.form.cannot_win(
            t.positives[low] - best[0], t.negatives[high] - best[1], t.n_positive, t.n_negative, self.deviations
        )


@dataclass(frozen=True)
class MinimumCost(Located):
    """The minimum over thresholds of (miss · FRR + false_alarm · FAR) / unit."""

    miss: float
    false_alarm: float
    unit: float = 1.0
    fewest_errors, most_of_width = 2, 0.1  # with one error, intervals held the truth 90 % of the time, with none 45 %

    def value(self, tally: Tally) -> float:
        """Return the least cost; NaN without both classes."""
        return self.cost(tally, self.best_point(tally)) if tally.has_both_classes else float("nan")

    def cost(self, tally: Tally, point: int) -> float:
        """Return the cost at one point of the error curve."""
        missed = float(tally.positives[point]) / tally.n_positive
        accepted = (tally.n_negative - float(tally.negatives[point])) / tally.n_negative
        return (self.miss * missed + self.false_alarm * accepted) / self.unit

    def costs(self, cp: Number, cn: Number, n1: Number, n0: Number) -> Number:
        """Return the costs at points that reject these numbers of each class."""
        return (self.miss * (cp / n1) + self.false_alarm * ((n0 - cn) / n0)) / self.unit

    def at_best(self, tally: Tally) -> AtThreshold:
        """Return the cost at the threshold that is best for these trials, as a form with this threshold fixed."""

        def cost(missed: Number, positives: Number, accepted: Number, negatives: Number) -> Number:
            return (self.miss * (missed / positives) + self.false_alarm * (accepted / negatives)) / self.unit

        return AtThreshold(tally.threshold_of(self.best_point(tally)), cost)

    @property
    def trivial(self) -> float:
        """The cost of the better trivial system; no least cost is higher."""
        return min(self.miss, self.false_alarm) / self.unit

    def best_point(self, tally: Tally) -> int:
        """Return the first point of least cost."""
        if self not in tally.places:
            tally.places[self] = self._best_point(tally)
        return tally.places[self]

    def _best_point(self, tally: Tally) -> int:
        # FAR is 1 − rejected / negatives: without the constant the least place is the same and a pass is saved. Only a lower
        # cost replaces an earlier one, so that of equal costs the first point counts, whatever the chunks are.
        a, b = self.miss / tally.n_positive, self.false_alarm / tally.n_negative
        best, place = np.inf, 0
        for start in range(0, len(tally.positives), CHUNK):
            part = slice(start, start + CHUNK)
            cost = a * tally.positives[part] - b * tally.negatives[part]
            index = int(np.argmin(cost))
            if cost[index] < best:
                best, place = float(cost[index]), start + index
            let_go(tally.positives, tally.negatives)
        return place

    def beside(self, tally: Tally) -> Form | None:
        """Return the cost at the sample's best threshold, which the interval needs as well."""
        return self.at_best(tally)

    def errors(self, sample: Sampled) -> tuple[Errors, ...]:
        """Return the errors at the sample's best threshold."""
        return self.at_best(sample.tally).errors(sample) if sample.tally.has_both_classes else ()

    def interval(self, of: Replicated, level: float, bounds: Bounds, acceleration: Accelerated) -> intervals.Interval:
        """Return the interval that corrects the optimism of a least cost, if costs at the best threshold were drawn."""
        if of.beside is None:
            return super().interval(of, level, bounds, acceleration)
        fixed, costs = of.beside
        # A threshold that was chosen on these trials suits them too well, and one chosen on a replicate even more so: its
        # costs lie too low. The cost at the fixed threshold has no such bias, so it gives the spread.
        low, high = intervals.of_least_cost(of.replicates, costs, of.value, acceleration(fixed), level)
        # No least cost is above that of the trivial system; the value itself stays inside.
        return low, min(high, max(self.trivial, of.value))

    def by_units(self, of: Replicated, few: Few, without: Left[intervals.LeftOut]) -> intervals.Interval:
        """Return Student's interval of the cost at the best threshold, moved up by the optimism of choosing it."""
        value = of.value
        if of.beside is None:
            left = without(self)
            return intervals.student(of.replicates, value, few.degrees, few.bounds, few.level, left, smooth=False)
        fixed, costs = of.beside
        growth = self._growth(of)
        # What is left out is raised like the rest: the spread then belongs to the same scale as the centre.
        left, bounds = without(fixed), (0.0, self.trivial)
        raised = None if left is None else left.each(lambda costs: costs * growth)
        low, high = intervals.student(costs * growth, value * growth, few.degrees, bounds, few.level, raised)
        return min(low, value), max(min(high, self.trivial), value)

    def for_averages(self, of: Replicated) -> Floats:
        """Return the costs at the best threshold, without the optimism."""
        return of.replicates if of.beside is None else of.beside[1] * self._growth(of)

    def left_for_averages(self, of: Replicated, left: Left[Floats]) -> Floats | None:
        """Return the costs at the best threshold without one unit each, without the optimism."""
        costs = left(self if of.beside is None else of.beside[0])
        return None if costs is None else costs * self._growth(of)

    def corrected(self, of: Replicated) -> float:
        """Return the least cost without the optimism of choosing the threshold."""
        return of.value * self._growth(of)

    def _growth(self, of: Replicated) -> float:
        """Return by how much a least cost grows on other trials; 1 if costs at the best threshold were not drawn."""
        return 1.0 if of.beside is None else intervals.growth_of_least_cost(of.replicates, of.value)

    def most_unseen(self, n_positive: int, n_negative: int, level: float) -> float | None:
        """Return the cost with both unseen shares as errors, or that of the trivial system.

        >>> round(MinimumCost(0.95, 0.5, 0.5).most_unseen(1000, 1000, 0.95), 4)
        0.0107
        """
        missed, accepted = unseen_share(n_positive, level), unseen_share(n_negative, level)
        return min((self.miss * missed + self.false_alarm * accepted) / self.unit, self.trivial)

    def open_between(self, cp: Floats, cn: Floats, n1: Number, n0: Number) -> Mask:
        """Return where the misses of the low end and the false alarms of the high end cost less than the best point."""
        missed, accepted = self.miss * (cp / n1), self.false_alarm * ((n0 - cn) / n0)
        # Misses only rise along the scores and false alarms only fall, so no point inside costs less than this sum.
        return np.asarray(missed[..., :-1] + accepted[..., 1:] < (missed + accepted).min(axis=-1, keepdims=True))

    def begin(self, cp: Floats, cn: Floats) -> tuple[Floats, Mask]:
        """Return the least cost at the cuts, and the cells that could contain a lower one."""
        n1, n0 = cp[:, -1:], cn[:, -1:]
        missed, accepted = self.miss * (cp / n1), self.false_alarm * ((n0 - cn) / n0)
        least = ((missed + accepted) / self.unit).min(axis=1)
        # Strictly: a cell that can only equal the least cost changes nothing.
        return least, (missed[:, :-1] + accepted[:, 1:]) / self.unit < least[:, None]

    def can_be_in(self, found: Floats, s: Stretches, n1: Floats, n0: Floats) -> Mask:
        """Return whether a cost inside could still be lower than the best one known.

        The bound combines the misses of the low end with the false alarms of the high end, which no point inside can
        undercut.
        """
        return np.asarray(self.costs(s.cp, s.cn + s.q, n1, n0) < found[s.replicate])

    def note_point(self, found: Floats, replicate: Indices, cp: Floats, cn: Floats, n1: Floats, n0: Floats) -> None:
        """Keep the cost at the point if it is lower."""
        # A replicate may have several stretches here; plain indexing would keep the last one only.
        np.minimum.at(found, replicate, self.costs(cp, cn, n1, n0))

    def note_inside(self, found: Floats, s: Stretches, cp: Floats, cn: Floats, n1: Floats, n0: Floats) -> None:
        """Keep the least cost of these points."""
        least = np.min(self.costs(cp, cn, n1[:, None], n0[:, None]), axis=1)
        np.minimum.at(found, s.replicate, least)

    def points(self, tally: Tally) -> list[int]:
        """Return the sample's own best point."""
        return [self.best_point(tally)]

    def cannot_win(self, missed: Array, rejected: Array, n1: float, n0: float, deviations: float) -> Mask:
        """Return whether this many more misses and rejected negatives than at the best point cost more.

        This holds for likely draws: within `deviations` standard deviations.
        """
        a, b = self.miss, self.false_alarm
        more, fewer = missed / n1, rejected / n0
        # Two points of one replicate share the trials below both: their difference varies only with the trials between them,
        # far less than either count does.
        spread = np.sqrt(a * a * np.abs(more) / n1 + b * b * np.abs(fewer) / n0)
        return np.asarray(a * more - b * fewer > deviations * spread)

    def can_hold(self, cp: Floats, cn: Floats, n1: float, n0: float, deviations: float) -> Mask:
        """Return where the misses of the low end and false alarms of the high end can cost less than the best edge."""
        best = int(np.argmin(self.miss / n1 * cp - self.false_alarm / n0 * cn))
        return ~self.cannot_win(cp[:-1] - cp[best], cn[1:] - cn[best], n1, n0, deviations)

    def bound(self, tally: Tally, deviations: float) -> Bound | None:
        """See `Bound`."""
        return Bound(tally, self, self.best_point(tally), deviations)

    def on_curve(self, curve: Curve) -> tuple[Floats, Mask] | None:
        """See `Curve.least_cost`."""
        return curve.least_cost(self)


@dataclass(frozen=True)
class AtThreshold(Form):
    """A function of the counts at one fixed threshold (accept if score >= threshold).

    `combine(missed, positives, accepted, negatives)`: missed = positives below, accepted = negatives not below.
    """

    threshold: float
    combine: Callable[[Number, Number, Number, Number], Number]
    needs_both = True
    by_value = True
    fewest_errors = 1

    def value(self, tally: Tally) -> float:
        """Return the figure at the threshold; NaN without both classes."""
        return float(self.combine(*self._counts(tally))) if tally.has_both_classes else float("nan")

    def errors(self, sample: Sampled) -> tuple[Errors, ...]:
        """Return the errors at the threshold."""
        if not sample.tally.has_both_classes:
            return ()
        missed, positives, accepted, negatives = self._counts(sample.tally)
        now = self.combine(missed, positives, accepted, negatives)
        one_missed = self.combine(missed + 1, positives, accepted, negatives) - now
        one_accepted = self.combine(missed, positives, accepted + 1, negatives) - now
        if sample.weight is not None:  # sums of weights are no numbers of errors
            passed = sample.score >= self.threshold
            missed, accepted = (sample.positive & ~passed).sum().item(), (~sample.positive & passed).sum().item()
        return (
            Errors("miss", int(missed), abs(float(one_missed))),
            Errors("false alarm", int(accepted), abs(float(one_accepted))),
        )

    def _counts(self, tally: Tally) -> tuple[float, float, float, float]:
        point = tally.point_at(self.threshold)
        accepted = tally.n_negative - tally.negatives[point].item()
        return tally.positives[point].item(), tally.n_positive, accepted, tally.n_negative

    def replicates(self, drawn: Drawn) -> Floats:
        """Return the figure from the counts on both sides of the threshold."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.combine(*drawn.counts_at(self.threshold)))

    def merits(self, sample: Sampled, best: str) -> Floats | None:
        """Return whether each decision is right."""
        return np.asarray((sample.score >= self.threshold) == sample.positive, dtype=np.float64)

    @property
    def thresholds(self) -> tuple[float, ...]:
        """Its own threshold."""
        return (self.threshold,)

    def points(self, tally: Tally) -> list[int]:
        """Return the point at the threshold."""
        return [tally.point_at(self.threshold)]

    def on_curve(self, curve: Curve) -> tuple[Floats, Mask] | None:
        """Read the figure at a point that is known in every replicate."""
        cp, cn = curve.at(self.threshold)
        # The threshold is a cut of every plan, so the counts on both sides are known and nothing is in doubt.
        return np.asarray(self.combine(cp, curve.n1, curve.n0 - cn, curve.n0)), np.zeros(len(cp), dtype=bool)


class Summed(Form):
    """A form made of one sum over positives and one over negatives."""

    is_summed = True
    every_score = True

    @abstractmethod
    def terms(self, positive: Mask, score: Floats) -> Floats:
        """Return what each trial adds to the sum of its class."""

    @abstractmethod
    def of_sums(self, sum1: Number, n1: Number, sum0: Number, n0: Number, area: float) -> Number:
        """Return the figure from sums of `terms`; `area` is the mean of the positives' terms in the sample."""


@dataclass(frozen=True)
class ClassSums(Summed):
    """A function `combine` of one sum over positives and one over negatives.

    Its arguments: the sum of positive(score) over positives, their number, the sum of negative(score) over negatives,
    and their number.
    """

    positive: Callable[[Floats], Floats]
    negative: Callable[[Floats], Floats]
    combine: Callable[[Number, Number, Number, Number], Number]
    needs_both: bool = True
    by_value = True

    def value(self, tally: Tally) -> float:
        """Return the figure; NaN without the classes that it needs."""
        known = tally.known(self)
        if known is not None:
            return known
        total = tally.n_positive + tally.n_negative
        if not total or (self.needs_both and not tally.has_both_classes):
            return float("nan")
        sums = (
            weighted_sum(self.positive, tally.score, tally.positive_counts),
            weighted_sum(self.negative, tally.score, tally.negative_counts),
        )
        return float(self.combine(sums[0], tally.n_positive, sums[1], tally.n_negative))

    def replicates(self, drawn: Drawn) -> Floats:
        """Return the figure of the sums."""
        return np.asarray(self.combine(*drawn.class_sums(self)))

    def terms(self, positive: Mask, score: Floats) -> Floats:
        """Return what each trial adds to the sum of its class."""
        out = np.empty(len(score))
        out[positive], out[~positive] = self.positive(score[positive]), self.negative(score[~positive])
        return out

    def of_sums(self, sum1: Number, n1: Number, sum0: Number, n0: Number, area: float) -> Number:
        """Return the figure from sums of `terms`."""
        return np.asarray(self.combine(sum1, n1, sum0, n0))

    def merits(self, sample: Sampled, best: str) -> Floats | None:
        """Return what each trial adds, with the sign that makes higher better."""
        terms = np.where(sample.positive, self.positive(sample.score), self.negative(sample.score))
        return np.asarray(terms if best == "high" else -terms, dtype=np.float64)

    def points(self, tally: Tally) -> list[int]:
        """Return cuts that separate scores with infinite terms, and make small cells at the ends."""
        # A cell is drawn as its mean term and a normal remainder. A few extreme terms are not normal: their cells are small.
        return [*self._infinite_ends(tally), *_graded_ends(tally)]

    def _infinite_ends(self, tally: Tally) -> list[int]:
        """Give scores with an infinite term their own cells, so that their neighbours keep finite sums."""
        if not len(tally.score):
            return []
        ends = tally.score[[0, -1]]
        infinite = ~np.isfinite(self.positive(ends)) | ~np.isfinite(self.negative(ends))
        return [place for place, found in zip((1, len(tally.score) - 1), infinite, strict=True) if found]

    def passing(self, n_positive: int, n_negative: int) -> Passing | None:
        """Return an object that adds up chunk by chunk."""
        return _PassingSums(self, n_positive, n_negative)


@dataclass(frozen=True)
class PairShare(Summed):
    """The share of (positive, negative) pairs in which the positive scores higher; equal scores count half."""

    is_area = True
    needs_both = True
    by_rank = True
    fine_unit_cells = True

    def value(self, tally: Tally) -> float:
        """Return the area under the ROC curve; NaN without both classes."""
        if not tally.has_both_classes:
            return float("nan")
        total = 0.0
        for start in range(0, len(tally.score), CHUNK):
            part, after = slice(start, start + CHUNK), slice(start + 1, start + CHUNK + 1)
            # In doubles: products of counts of billions pass the largest integer.
            below = tally.negatives[: len(tally.score)][part].astype(np.float64)
            upto = tally.negatives[after]
            gained = np.diff(tally.positives[start : start + CHUNK + 1])
            # A positive is above all negatives below its group and tied with those inside it, which count half.
            total += float(np.sum(gained * (below + upto)))
        return 0.5 * total / (float(tally.n_positive) * float(tally.n_negative))

    def measure(self, sample: Sampled) -> float:
        """Compute it from the positions of the rarer class among the other, which needs no tally."""
        return sample.steps.area

    def replicates(self, drawn: Drawn) -> Floats:
        """Return the share of the pairs drawn."""
        return drawn.pair_share()

    def terms(self, positive: Mask, score: Floats) -> Floats:
        """Return the share of the other class that each trial is ordered correctly against."""
        return placements(positive, score)

    def of_sums(self, sum1: Number, n1: Number, sum0: Number, n0: Number, area: float) -> Number:
        """Return the figure from sums of `terms`, to first order around the area of the sample."""
        # A mean over pairs is not a sum over trials. To first order (the projection that DeLong uses) it is one.
        return sum1 / n1 + sum0 / n0 - area


@dataclass(frozen=True)
class Whole(Form):
    """Any function of a tally.

    `unseen` is as for `Crossing`; `passes(n_positive, n_negative)` computes the function from stretches of scores, if
    this is possible; `of_cells(p, q)` computes it for many replicates at once, from the positives and negatives in
    cells (replicate × cell, ascending scores).
    """

    function: Callable[[Tally], float]
    unseen: Callable[[int, int, float], float] | None = None
    passes: Callable[[int, int], Passing] | None = None
    is_fitted: bool = False
    of_cells: Callable[[Floats, Floats], Floats] | None = None
    every_score = True

    def value(self, tally: Tally) -> float:
        """Return the figure."""
        known = tally.known(self)
        return float(self.function(tally)) if known is None else known

    def replicates(self, drawn: Drawn) -> Floats:
        """Return the function of each replicate's tally."""
        return drawn.whole(self)

    def most_unseen(self, n_positive: int, n_negative: int, level: float) -> float | None:
        """See `unseen`."""
        return None if self.unseen is None else self.unseen(n_positive, n_negative, level)

    def passing(self, n_positive: int, n_negative: int) -> Passing | None:
        """See `passes`."""
        if self.passes is None:
            # Bins would give another figure, so none is given.
            raise UsageError("this metric needs the whole tally, and the trials are too many to keep; raise --memory")
        return self.passes(n_positive, n_negative)


class OfTrials(Functional):
    """A figure that cannot be computed from a tally of scores."""

    @abstractmethod
    def drawn(self, trials: DrawnTrials) -> Floats:
        """Return the figure of every replicate."""


@dataclass(frozen=True)
class OfCounts(OfTrials):
    """Any function of the counts of decisions; vectorised over replicates."""

    function: Callable[..., Number]
    kind = "decisions"
    fewest_errors = 1

    def measure(self, sample: Sampled) -> float:
        """Return the figure of the counted decisions."""
        return cast(float, self.function(sample.counts))  # of numbers it is a number, of arrays an array

    def interval(self, of: Replicated, level: float, bounds: Bounds, acceleration: Accelerated) -> intervals.Interval:
        """Return the normal interval on the scale of the figure; percentiles are too narrow where errors are few."""
        return intervals.of_spread(of.replicates, of.value, bounds, level)

    def of_counts(self, counts: object) -> Floats:
        """Return the figure of counts that hold one entry per replicate."""
        return np.asarray(self.function(counts), dtype=np.float64)

    def drawn(self, trials: DrawnTrials) -> Floats:
        """Return the figure of every replicate."""
        return self.of_counts(trials.counts())


@dataclass(frozen=True, eq=False)
class OfColumns(OfTrials):
    """A function of arrays (columns of the trials), called again for each replicate."""

    function: Callable[..., float]
    columns: tuple[str, ...]
    settings: Mapping[str, object] = field(default_factory=dict)
    kind = "columns"

    def measure(self, sample: Sampled) -> float:
        """Return the function of the columns of a sample."""
        return self.of_arrays(sample.arrays(self.columns), sample.weight)

    def of_arrays(self, arrays: Mapping[str, Array], weight: Array | None = None) -> float:
        """Return the function of arrays; `weight` says how often each trial counts."""
        weighed = {} if weight is None else {"weight": weight}
        return self.function(**arrays, **weighed, **self.settings)

    def of_draws(self, arrays: Mapping[str, Array], places: Iterable[Indices]) -> Floats:
        """Return the figure of the trials at each list of indices."""
        return np.array([self.of_arrays({c: a[d] for c, a in arrays.items()}) for d in places])

    def drawn(self, trials: DrawnTrials) -> Floats:
        """Return the figure of every replicate."""
        return trials.rows(self)


@dataclass(frozen=True, eq=False)
class OfConfidences(OfColumns):
    """A metric of confidences; `judged` computes it from `metrics.confidence.Judged`, for many replicates at once."""

    judged: Callable[..., Floats] = field(kw_only=True)

    def interval(self, of: Replicated, level: float, bounds: Bounds, acceleration: Accelerated) -> intervals.Interval:
        """Return the normal interval on the scale of the figure; percentiles are too narrow where errors are few."""
        return intervals.of_spread(of.replicates, of.value, bounds, level)

    def drawn(self, trials: DrawnTrials) -> Floats:
        """Return the figure of every replicate, from how often each confidence was right and wrong."""
        return trials.confidences(lambda found: self.judged(found, **self.settings))


@dataclass(frozen=True, eq=False)
class OfTerms(OfColumns):
    """A sum over trials divided by another; `terms(**columns)` returns what each trial adds to both.

    `is_share`: each trial adds 0 or 1, so two runs can be tested like shares.
    """

    terms: Callable[..., tuple[Floats, Floats]] = field(kw_only=True)
    is_share: bool = field(default=False, kw_only=True)

    def measure(self, sample: Sampled) -> float:
        """Return the ratio of the sums over a sample, each trial with its weight."""
        if sample.weight is None:
            return super().measure(sample)
        above, below = (math.fsum(term * sample.weight) for term in self.terms(**sample.arrays(self.columns)))
        return Rate(above, below) if self.is_share else above / below if below else math.nan

    def interval(self, of: Replicated, level: float, bounds: Bounds, acceleration: Accelerated) -> intervals.Interval:
        """Return the normal interval on the scale of the figure, which is skewed as sums of positive terms are."""
        return intervals.of_spread(of.replicates, of.value, bounds, level)

    def of_draws(self, arrays: Mapping[str, Array], places: Iterable[Indices]) -> Floats:
        """Return the ratio of the sums over the trials at each list of indices."""
        above, below = self.terms(**arrays)
        sums = np.array([(above[d].sum(), below[d].sum()) for d in places])
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(sums[:, 0] / sums[:, 1])

    def drawn(self, trials: DrawnTrials) -> Floats:
        """Return the ratio of the sums of every replicate."""
        return trials.ratio(self)

    def shares(self, sample: Sampled) -> tuple[Mask, Mask] | None:
        """Return, for a share of trials, which trials are hits, and which trials it is a share of."""
        if not self.is_share:
            return None
        above, below = self.terms(**sample.arrays(self.columns))
        return above > 0, below > 0

    def merits(self, sample: Sampled, best: str) -> Floats | None:
        """Return what each trial adds to the sum; NaN for trials that do not count."""
        above, below = self.terms(**sample.arrays(self.columns))
        return np.where(below > 0, above if best == "high" else -above, np.nan)


@dataclass(frozen=True, eq=False)
class OfWeights(OfColumns):
    """A function of columns that takes the weights of many replicates at once (replicate × trial)."""

    @abstractmethod
    def of_weights(self, arrays: Mapping[str, Array], weights: Floats) -> Floats:
        """Return the figure of every replicate."""

    def of_draws(self, arrays: Mapping[str, Array], places: Iterable[Indices]) -> Floats:
        """Return the figure of the trials at each list of indices."""
        n = len(next(iter(arrays.values())))
        # Weights of all replicates at once would take replicates × trials numbers.
        rest, step, parts = iter(places), max(1, MOST_WEIGHTS // max(1, n)), []
        while drawn := list(islice(rest, step)):
            weights = np.stack([np.bincount(d, minlength=n) for d in drawn]).astype(np.float64)
            parts.append(self.of_weights(arrays, weights))
        return np.concatenate(parts)

    def drawn(self, trials: DrawnTrials) -> Floats:
        """Return the figure of every replicate, some at a time."""
        return trials.weighed(self)


def weighted_sum(term: Callable[[Floats], Floats], score: Floats, counts: Array) -> float:
    """Return the sum of term(score) over the trials of one class; scores that the class does not have are skipped."""
    total = 0.0
    for start in range(0, len(score), CHUNK):
        part = counts[start : start + CHUNK]
        # A term may be infinite where this class has no trial, and 0 × ∞ is NaN.
        present = part > 0
        with np.errstate(over="ignore"):  # a sum beyond every float is infinite
            total += float(np.sum(term(score[start : start + CHUNK][present]) * part[present]))
    return total


@dataclass(eq=False)
class _PassingSums:
    """Sums over both classes, in the same chunks as in memory (see `weighted_sum`): equal to the last bit."""

    form: ClassSums
    n_positive: int
    n_negative: int
    totals: list[float] = field(default_factory=lambda: [0.0, 0.0])
    waiting: list[tuple[Floats, Array, Array]] = field(default_factory=list)
    held: int = 0

    def add(self, part: Tally) -> None:
        self.waiting.append((part.score, part.positive_counts, part.negative_counts))
        self.held += len(part.score)
        # Only whole chunks are added: where a chunk begins may not depend on how the scores were cut into stretches, since
        # the order of additions decides the last bits.
        if self.held >= CHUNK:
            columns = [np.concatenate(c) for c in zip(*self.waiting, strict=True)]
            whole = self.held // CHUNK * CHUNK
            for start in range(0, whole, CHUNK):
                self._chunk(*(c[start : start + CHUNK] for c in columns))
            self.waiting, self.held = [(columns[0][whole:], columns[1][whole:], columns[2][whole:])], self.held - whole

    def _chunk(self, score: Floats, positives: Array, negatives: Array) -> None:
        for i, (term, counts) in enumerate(((self.form.positive, positives), (self.form.negative, negatives))):
            present = counts > 0
            with np.errstate(over="ignore"):
                self.totals[i] += float(np.sum(term(score[present]) * counts[present]))

    def value(self) -> float:
        if self.held:
            self._chunk(*(np.concatenate(c) for c in zip(*self.waiting, strict=True)))
            self.waiting, self.held = [], 0
        if self.form.needs_both and not (self.n_positive and self.n_negative):
            return math.nan
        return float(self.form.combine(self.totals[0], self.n_positive, self.totals[1], self.n_negative))


def _graded_ends(tally: Tally) -> list[int]:
    """Return cells of 1, 1, … then 8, 16, 32 … trials at both ends of each class.

    A few extreme terms can dominate a sum, so the ends are cut finely.
    """
    points: list[int] = []
    for cumulative in (tally.positives, tally.negatives):
        n = int(cumulative[-1])
        steps = [k for k in (*range(1, 9), *(2**i for i in range(4, 40))) if k <= n / FINE_GRID or k <= 8]
        points += np.searchsorted(cumulative, steps).tolist()
        points += (np.searchsorted(cumulative, n - np.array(steps), side="right") - 1).tolist()
    return points


def _nearest_end(cp: Number, cn: Number, p: Number, q: Number, n1: Number, n0: Number) -> Number:
    frr, far = cp / n1, (n0 - cn) / n0
    frr_after, far_after = (cp + p) / n1, (n0 - cn - q) / n0
    # Between two points there is no threshold: the nearer one is reported, of two equally near ones the first.
    first = np.abs(frr - far) <= np.abs(frr_after - far_after)
    return np.where(first, (frr + far) / 2, (frr_after + far_after) / 2)


def _on_the_straight_line(cp: Number, cn: Number, p: Number, q: Number, n1: Number, n0: Number) -> Number:
    frr, far = cp / n1, (n0 - cn) / n0
    rise, fall = p / n1, q / n0
    step = rise + fall
    # An empty group has no length to go along; its point is read.
    return frr + rise * ((far - frr) / np.where(step > 0, step, 1.0))


def _along_the_tie(cp: Number, cn: Number, p: Number, q: Number, n1: Number, n0: Number) -> Number:
    """Walk the tied trials one by one, positives first, and stop where the two rates are nearest."""
    if isinstance(cp, float):  # a single point, of which a jackknife asks for thousands: plain numbers are far quicker
        return _along_one_tie(cp, float(cn), float(p), float(q), float(n1), float(n0))
    steps = tie_steps(cp, cn, p, q, n1, n0)
    frr = np.stack([np.asarray((cp + i) / n1, dtype=np.float64) for i, _ in steps])
    far = np.stack([np.asarray((n0 - (cn + j)) / n0, dtype=np.float64) for _, j in steps])
    nearest = np.argmin(np.abs(frr - far), axis=0)  # the first of equal ones, as in the official package
    pick = np.expand_dims(nearest, 0)
    return np.asarray((np.take_along_axis(frr, pick, 0)[0] + np.take_along_axis(far, pick, 0)[0]) / 2)


def _along_one_tie(cp: float, cn: float, p: float, q: float, n1: float, n0: float) -> float:
    """Do the same for one tie, with the operations of `tie_steps` in the same order, so that no bit differs."""
    up, down = math.floor((n0 - cn) / n0 * n1 - cp), math.floor((n0 - cn) - (cp + p) / n1 * n0)
    nearest, found = math.inf, math.nan
    for i, j in (
        *((min(max(up + d, 0.0), p), 0.0) for d in (-1, 0, 1, 2)),
        *((p, min(max(down + d, 0.0), q)) for d in (-1, 0, 1, 2)),
    ):
        frr, far = (cp + i) / n1, (n0 - (cn + j)) / n0
        if abs(frr - far) < nearest:
            nearest, found = abs(frr - far), (frr + far) / 2
    return found


def tie_steps(cp: Number, cn: Number, p: Number, q: Number, n1: Number, n0: Number) -> list[tuple[Number, Number]]:
    """Return the steps (positives taken, negatives taken) around the crossing inside one tie, in walking order."""
    up = np.floor((n0 - cn) / n0 * n1 - cp)  # positives that fit before the miss rate overtakes
    down = np.floor((n0 - cn) - (cp + p) / n1 * n0)  # then negatives, if all positives fit
    # The nearest step is next to the crossing; one more on each side allows for rounding of the division.
    positives = [np.clip(up + d, 0, p) for d in (-1, 0, 1, 2)]
    negatives = [np.clip(down + d, 0, q) for d in (-1, 0, 1, 2)]
    return [(i, np.zeros_like(i)) for i in positives] + [(p + np.zeros_like(j), j) for j in negatives]


_AT_TIES = {"grouped": _nearest_end, "official": _along_the_tie, "interpolated": _on_the_straight_line}
