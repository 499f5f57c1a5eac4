"""The few shapes a score metric can have. A metric's form is all that the engine needs to resample it fast.

Crossing      read where a condition begins to hold along the thresholds (EER, TPR at an FPR)
MinimumCost   the least of  a · miss rate + b · false-alarm rate  over all thresholds (minDCF)
AtThreshold   read at one fixed threshold (actDCF, accuracy of a fixed rule)
ClassSums     a function of a sum over positives and a sum over negatives (Cllr, Brier)
PairShare     the share of (positive, negative) pairs in the right order (ROC AUC)
Whole         anything else that a tally determines (average precision, hull EER)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hitmiss.errors import UnknownName
from hitmiss.tally import Floats, Tally

Ties = Literal["grouped", "official", "interpolated"]
Number = Any  # a float, or an array with one entry a replicate: the arithmetic is the same
CHUNK = 1 << 15  # whole-array temporaries cost several times a chunked pass (page faults)


@dataclass(frozen=True, eq=False)
class ReadTally(Tally):
    """A tally that is short of single scores, with the figures that need every score: those were read before."""

    figures: Mapping[Form, float] = field(default_factory=dict)
    known_tied_mass: float | None = None

    @property
    def tied_mass(self) -> float:
        """Share of trials whose score both classes have, where it was read."""
        return super().tied_mass if self.known_tied_mass is None else self.known_tied_mass


@dataclass(frozen=True)
class Crossing:
    """A figure read where a condition that holds from some threshold on begins to hold.

    `passed(cp, cn, n1, n0)`: whether the point that rejects `cp` positives and `cn` negatives is past the crossing;
    `read(cp, cn, p, q, n1, n0)`: the figure, given the counts below and inside the group of equal scores that crosses.
    """

    passed: Callable[[Number, Number, Number, Number], Number]
    read: Callable[[Number, Number, Number, Number, Number, Number], Number]

    def value(self, tally: Tally) -> float:
        """The figure at the crossing; NaN without both classes."""
        if not tally.has_both_classes:
            return float("nan")
        n1, n0 = float(tally.n_positive), float(tally.n_negative)
        low = self.point(tally)
        high = min(low + 1, len(tally.score)) if not self.passed(0.0, 0.0, n1, n0) else low
        cp, cn, cp_high, cn_high = (float(c[i]) for i in (low, high) for c in (tally.positives, tally.negatives))
        return float(self.read(cp, cn, cp_high - cp, cn_high - cn, n1, n0))

    def point(self, tally: Tally) -> int:
        """The last point of the error curve that is not past the crossing (0 if all are)."""
        n1, n0 = float(tally.n_positive), float(tally.n_negative)
        low, high = 0, len(tally.score) + 1
        while high - low > 1:
            middle = (low + high) // 2
            if self.passed(float(tally.positives[middle]), float(tally.negatives[middle]), n1, n0):
                high = middle
            else:
                low = middle
        return low


def equal_error(ties: Ties) -> Crossing:
    """The equal error rate under a rule for ties."""
    if ties not in _AT_TIES:
        raise UnknownName("tie rule", ties, (*_AT_TIES, "hull"))
    return Crossing(lambda cp, cn, n1, n0: cp / n1 > (n0 - cn) / n0, _AT_TIES[ties])


@dataclass(frozen=True)
class MinimumCost:
    """min over thresholds of (miss · FRR + false_alarm · FAR) / unit."""

    miss: float
    false_alarm: float
    unit: float = 1.0

    def value(self, tally: Tally) -> float:
        """The least cost; NaN without both classes."""
        return self.cost(tally, self.best_point(tally)) if tally.has_both_classes else float("nan")

    def cost(self, tally: Tally, point: int) -> float:
        """The cost at one point of the error curve."""
        missed = float(tally.positives[point]) / tally.n_positive
        accepted = (tally.n_negative - float(tally.negatives[point])) / tally.n_negative
        return (self.miss * missed + self.false_alarm * accepted) / self.unit

    def at_best(self, tally: Tally) -> AtThreshold:
        """The cost at the threshold that is best for these trials: what is left when the choice is made."""

        def cost(missed: Number, positives: Number, accepted: Number, negatives: Number) -> Number:
            return (self.miss * (missed / positives) + self.false_alarm * (accepted / negatives)) / self.unit

        return AtThreshold(tally.threshold_of(self.best_point(tally)), cost)

    @property
    def trivial(self) -> float:
        """The cost of the better trivial system: no least cost is higher."""
        return min(self.miss, self.false_alarm) / self.unit

    def best_point(self, tally: Tally) -> int:
        """The first point of least cost."""
        a, b = self.miss / tally.n_positive, self.false_alarm / tally.n_negative
        best, place = np.inf, 0
        for start in range(0, len(tally.positives), CHUNK):
            part = slice(start, start + CHUNK)
            cost = a * tally.positives[part] - b * tally.negatives[part]
            index = int(np.argmin(cost))
            if cost[index] < best:
                best, place = float(cost[index]), start + index
        return place


@dataclass(frozen=True)
class AtThreshold:
    """A function of the counts at one fixed threshold (accept if score >= threshold).

    `combine(missed, positives, accepted, negatives)`: missed = positives below, accepted = negatives not below.
    """

    threshold: float
    combine: Callable[[Number, Number, Number, Number], Number]

    def value(self, tally: Tally) -> float:
        """The figure at the threshold; NaN without both classes."""
        if not tally.has_both_classes:
            return float("nan")
        point = tally.point_at(self.threshold)
        missed = tally.positives[point].item()
        accepted = tally.n_negative - tally.negatives[point].item()
        return float(self.combine(missed, tally.n_positive, accepted, tally.n_negative))


@dataclass(frozen=True)
class ClassSums:
    """combine(sum of positive(score) over positives, their number, sum of negative(score) over negatives, their number)."""

    positive: Callable[[Floats], Floats]
    negative: Callable[[Floats], Floats]
    combine: Callable[[Number, Number, Number, Number], Number]
    needs_both: bool = True

    def value(self, tally: Tally) -> float:
        """The figure; NaN without the classes that it needs."""
        if isinstance(tally, ReadTally):
            return tally.figures[self]
        total = tally.n_positive + tally.n_negative
        if not total or (self.needs_both and not tally.has_both_classes):
            return float("nan")
        sums = (
            weighted_sum(self.positive, tally.score, tally.positive_counts),
            weighted_sum(self.negative, tally.score, tally.negative_counts),
        )
        return float(self.combine(sums[0], tally.n_positive, sums[1], tally.n_negative))


@dataclass(frozen=True)
class PairShare:
    """Share of (positive, negative) pairs in which the positive scores higher; equal scores count half."""

    def value(self, tally: Tally) -> float:
        """The area under the ROC curve; NaN without both classes."""
        if not tally.has_both_classes:
            return float("nan")
        total = 0.0
        for start in range(0, len(tally.score), CHUNK):
            part, after = slice(start, start + CHUNK), slice(start + 1, start + CHUNK + 1)
            below = tally.negatives[: len(tally.score)][part].astype(np.float64)
            upto = tally.negatives[after]
            gained = np.diff(tally.positives[start : start + CHUNK + 1])
            total += float(np.sum(gained * (below + upto)))
        return 0.5 * total / (float(tally.n_positive) * float(tally.n_negative))


@dataclass(frozen=True)
class Whole:
    """Any function of a tally."""

    function: Callable[[Tally], float]

    def value(self, tally: Tally) -> float:
        """The figure."""
        return tally.figures[self] if isinstance(tally, ReadTally) else float(self.function(tally))


@dataclass(frozen=True)
class OfCounts:
    """Any function of the counts of decisions; vectorised over replicates."""

    function: Callable[..., Number]


Form = Crossing | MinimumCost | AtThreshold | ClassSums | PairShare | Whole


def weighted_sum(term: Callable[[Floats], Floats], score: Floats, counts: NDArray[Any]) -> float:
    """Sum of term(score) over the trials of one class; scores that the class does not have do not count."""
    total = 0.0
    for start in range(0, len(score), CHUNK):
        part = counts[start : start + CHUNK]
        present = part > 0
        total += float(np.sum(term(score[start : start + CHUNK][present]) * part[present]))
    return total


def _nearest_end(cp: Number, cn: Number, p: Number, q: Number, n1: Number, n0: Number) -> Number:
    frr, far = cp / n1, (n0 - cn) / n0
    frr_after, far_after = (cp + p) / n1, (n0 - cn - q) / n0
    first = np.abs(frr - far) <= np.abs(frr_after - far_after)
    return np.where(first, (frr + far) / 2, (frr_after + far_after) / 2)


def _on_the_straight_line(cp: Number, cn: Number, p: Number, q: Number, n1: Number, n0: Number) -> Number:
    frr, far = cp / n1, (n0 - cn) / n0
    rise, fall = p / n1, q / n0
    step = rise + fall
    return frr + rise * ((far - frr) / np.where(step > 0, step, 1.0))


def _along_the_tie(cp: Number, cn: Number, p: Number, q: Number, n1: Number, n0: Number) -> Number:
    """Walk the tied trials one by one, positives first, and stop where the two rates are nearest."""
    steps = tie_steps(cp, cn, p, q, n1, n0)
    frr = np.stack([np.asarray((cp + i) / n1, dtype=np.float64) for i, _ in steps])
    far = np.stack([np.asarray((n0 - (cn + j)) / n0, dtype=np.float64) for _, j in steps])
    nearest = np.argmin(np.abs(frr - far), axis=0)  # the first of equals, as the official package has it
    pick = np.expand_dims(nearest, 0)
    return (np.take_along_axis(frr, pick, 0)[0] + np.take_along_axis(far, pick, 0)[0]) / 2


def tie_steps(cp: Number, cn: Number, p: Number, q: Number, n1: Number, n0: Number) -> list[tuple[Number, Number]]:
    """The steps (positives taken, negatives taken) around the crossing inside one tie, in walking order."""
    up = np.floor((n0 - cn) / n0 * n1 - cp)  # positives that fit before the miss rate overtakes
    down = np.floor((n0 - cn) - (cp + p) / n1 * n0)  # then negatives, if all positives fit
    positives = [np.clip(up + d, 0, p) for d in (-1, 0, 1, 2)]
    negatives = [np.clip(down + d, 0, q) for d in (-1, 0, 1, 2)]
    return [(i, np.zeros_like(i)) for i in positives] + [(p + np.zeros_like(j), j) for j in negatives]


_AT_TIES = {"grouped": _nearest_end, "official": _along_the_tie, "interpolated": _on_the_straight_line}
