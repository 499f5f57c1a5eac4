"""Variance of the ROC AUC, and of the difference of two, without resampling (DeLong, DeLong & Clarke-Pearson 1988)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import mul

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.sorting import Array, Floats
from hitmiss.core.tally import Tally
from hitmiss.stats.students_t import MANY


@dataclass(frozen=True, eq=False)
class RocSteps:
    """The positions of the rarer class among the other, which is all that the AUC and its variance need.

    At each distinct score of the rarer class: `held`, how many of it have that score; `below` and `upto`, how many of
    the other class lie below it, and at or below it.

    >>> s = RocSteps.of_classes(np.array([0.3, 0.8, 0.9]), np.array([0.1, 0.2, 0.6]))
    >>> s.below.tolist(), round(s.area, 4), round(s.variance, 4)
    ([2, 3, 3], 0.8889, 0.0247)
    """

    held: Array
    below: Array
    upto: Array
    n: float
    n_other: float
    is_positive: bool

    @classmethod
    def of_classes(cls, positive: Array, negative: Array, is_positive: bool | None = None) -> RocSteps:
        """Make them from the scores of each class, both ascending; `is_positive` names the class that is looped over."""
        is_positive = len(positive) <= len(negative) if is_positive is None else is_positive
        few, many = (positive, negative) if is_positive else (negative, positive)
        return cls(*standing(few, many), len(few), len(many), is_positive)

    @classmethod
    def of_tally(cls, tally: Tally, is_positive: bool | None = None) -> RocSteps:
        """Make them from a tally; the numbers are exactly those of `of_classes` for its trials."""
        is_positive = bool(tally.n_positive <= tally.n_negative) if is_positive is None else is_positive
        few, many = (tally.positives, tally.negatives) if is_positive else (tally.negatives, tally.positives)
        at = np.flatnonzero(few[1:] != few[:-1])
        # counts may be held in 32 bits, and the products of two would overflow; those of weights are floats and stay so
        below, upto, held = (
            c.astype(np.result_type(c, np.int64)) for c in (many[at], many[at + 1], few[at + 1] - few[at])
        )
        return cls(held, below, upto, few[-1].item(), many[-1].item(), is_positive)

    @cached_property
    def area(self) -> float:
        """The area under the ROC curve; NaN with one class. Counts are integers, so it is exact to the last bit."""
        twice, pairs = self._twice, self.n * self.n_other
        if not pairs:
            return math.nan
        return float((twice if self.is_positive else 2 * pairs - twice) / (2 * pairs))

    @cached_property
    def _twice(self) -> float:
        return whole_sum(self.held, self.below + self.upto)

    @cached_property
    def variance(self) -> float:
        """Var(AUC) = S10 / n⁺ + S01 / n⁻, S the sample variances of each trial's share of correctly ordered pairs.

        The shares of the other class do not change between two steps, so each step counts for all trials before it.
        """
        if self.n < 2 or self.n_other < 2:
            return math.nan
        own, others = self._moments[0]
        return own / (self.n - 1) / self.n + others / (self.n_other - 1) / self.n_other

    @cached_property
    def _moments(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The sums of squares and of fourth powers of the trials' shares of ordered pairs less their mean, per class."""
        squares, fourths = list[float](), list[float]()
        for parts in self.shares((self.n, self.n_other), self._twice / (2 * self.n * self.n_other)):
            powers = [(count, share * share) for count, share in parts]
            squares.append(sum(float(np.sum(count * square)) for count, square in powers))
            fourths.append(sum(float(np.sum(count * (square * square))) for count, square in powers))
        return (squares[0], squares[1]), (fourths[0], fourths[1])

    def shares(
        self, sizes: tuple[float, float], mean: float, before: tuple[int, int] = (0, 0)
    ) -> tuple[list[tuple[Array, Array]], list[tuple[Array, Array]]]:
        """Return how many trials of each class have which share of ordered pairs, less the mean.

        `sizes` are those of the classes, and `before` how many of each have lower scores than all trials here.
        """
        n, n_other = sizes
        own = (0.5 / n_other) * (self.below + self.upto + 2 * before[1]) - mean
        passed = np.append(0, np.cumsum(self.held)) + before[0]  # of the class that is looped over, around each step
        between = np.append(self.below, self.n_other) - np.append(0, self.upto)
        apart = passed / n - (1.0 - mean)
        tied = (passed[:-1] + 0.5 * self.held) / n - (1.0 - mean)
        return [(self.held, own)], [(between, apart), (self.upto - self.below, tied)]

    @cached_property
    def degrees(self) -> float:
        """The degrees of freedom of the variance (see `degrees_of`)."""
        return degrees_of((self.n, self.n_other), *self._moments)


@dataclass(eq=False)
class PassingSteps:
    """The sums of `RocSteps`, added while the scores of very many trials are read in ascending order, part by part.

    `guess` is a value near the mean of the shares. Powers are summed around it: around 0, the variance would be the
    difference of two large and nearly equal sums.
    """

    n_positive: int
    n_negative: int
    guess: float
    before: tuple[int, int] = (0, 0)
    twice: int = 0
    tied: int = 0
    """The trials whose score occurs in both classes."""
    powers: Floats = field(default_factory=lambda: np.zeros((2, 4)))
    """For each class, the sums of the shares and of their second to fourth powers."""

    def add(self, part: RocSteps) -> None:
        """Add the next part, whose steps are those of the positives."""
        at = part.upto - part.below
        self.twice += int(whole_sum(part.held, part.below + part.upto + 2 * self.before[1]))
        self.tied += int(np.sum((part.held + at)[at > 0]))
        sizes = max(self.n_positive, 1), max(self.n_negative, 1)
        for sums, parts in zip(self.powers, part.shares(sizes, self.guess, self.before), strict=True):
            for counts, share in parts:
                terms = counts * share
                for power in range(4):
                    sums[power] += float(np.sum(terms))
                    terms = terms * share
        self.before = self.before[0] + int(part.n), self.before[1] + int(part.n_other)

    def whole(self) -> RocSteps:
        """Return the steps of all parts, of which only the sums are known; the AUC is exact to the last bit."""
        sizes, nothing = (self.n_positive, self.n_negative), np.zeros(0, dtype=np.int64)
        found = RocSteps(nothing, nothing, nothing, *sizes, True)
        squares, fourths = list[float](), list[float]()
        for n, (one, two, three, four) in zip(sizes, self.powers.tolist(), strict=True):
            mean = one / max(n, 1)
            squares.append(two - one * mean)
            fourths.append(four - 4.0 * three * mean + 6.0 * two * mean**2 - 3.0 * one * mean**3)
        found.__dict__.update(_twice=self.twice, _moments=(tuple(squares), tuple(fourths)))
        return found


def degrees_of(sizes: Sequence[float], squares: Sequence[float], fourths: Sequence[float]) -> float:
    """Return the degrees of freedom of a variance: 3 (Σ l²)² / Σ l⁴ over what each trial adds to a mean of each class.

    That is the number of trials if what they add is normal, and about three times the number of errors if a few errors
    are all that the variance rests on. `squares` and `fourths` are sums of powers in each class, of these sizes.
    """
    second = sum(own / n**2 for own, n in zip(squares, sizes, strict=True))
    fourth = sum(own / n**4 for own, n in zip(fourths, sizes, strict=True))
    return max(3.0 * second * second / fourth, 1.0) if fourth > 0.0 else MANY


def standing(few: Array, many: Array) -> tuple[Array, Array, Array]:
    """Return the positions of values among others, both ascending.

    At each distinct value: how many share it, how many others lie below it, and how many at or below it.

    >>> [a.tolist() for a in standing(np.array([2, 3, 3]), np.array([1, 3, 5]))]
    [[1, 2], [1, 1], [1, 2]]
    """
    starts = np.flatnonzero(np.append(True, few[1:] != few[:-1])) if len(few) else np.zeros(0, dtype=np.intp)
    distinct = few if len(starts) == len(few) else few[starts]
    below = np.searchsorted(many, distinct, side="left")
    tied = many[np.minimum(below, len(many) - 1)] == distinct if len(many) else np.zeros(len(below), dtype=np.bool_)
    # the search is the cost here and most scores have no tie, so the second one is for tied values only
    upto = below.copy() if tied.any() else below
    upto[tied] = np.searchsorted(many, distinct[tied], side="right")
    return np.diff(np.append(starts, len(few))), below, upto


def whole_sum(a: Array, b: Array) -> float:
    """Return Σ aᵢ bᵢ of counts, exact for integers of any size.

    The pairs of some billions of trials are more than 64 bits can count.

    >>> whole_sum(np.array([2**40, 1]), np.array([2**40, 3])) - 2**80
    3
    """
    if np.result_type(a, b).kind == "f" or not len(a) or int(a.sum()) * int(b.max()) < 2**63:
        return (a * b).sum().item()  # type: ignore[no-any-return]
    return int(sum(map(mul, a.tolist(), b.tolist())))


def placements(positive: NDArray[np.bool_], score: Floats) -> Floats:
    """Return, for each trial, the share of the other class that its score is ordered correctly against.

    Equal scores count half. The mean over positives, and over negatives, is the AUC. NaN if the other class is absent.

    >>> placements(np.array([True, True, False, False]), np.array([0.9, 0.4, 0.6, 0.1]))
    array([1. , 0.5, 0.5, 1. ])
    """
    order = np.argsort(score, kind="stable")
    ordered, is_positive = score[order], positive[order]
    last = np.append(ordered[1:] != ordered[:-1], True) if len(ordered) else np.zeros(0, dtype=bool)
    group = np.cumsum(last) - last  # of equal scores, counted from 0
    ends = np.append(0, np.flatnonzero(last) + 1)
    below = np.append(0, np.cumsum(is_positive))[ends]  # positives up to the end of each group, then negatives
    sums = (ends - below, below)
    n0, n1 = (float(total[-1]) for total in sums)
    share = np.empty(len(score))
    with np.errstate(divide="ignore", invalid="ignore"):
        under, over = (0.5 * (s[:-1] + s[1:]) / n for s, n in zip(sums, (n0, n1), strict=True))
    share[order] = np.where(is_positive, under[group], 1.0 - over[group])
    return share


@dataclass(frozen=True)
class AucDifference:
    """The AUCs of two systems on the same trials, and the standard error of the second minus the first."""

    a: float
    b: float
    error: float

    @property
    def delta(self) -> float:
        """The AUC of the second minus that of the first."""
        return self.b - self.a

    @property
    def p_value(self) -> float:
        """The two-sided normal p value; 1 if the systems order all pairs alike, NaN if there is no variance."""
        if self.error > 0.0:
            return math.erfc(abs(self.delta) / self.error / math.sqrt(2.0))
        return 1.0 if self.error == 0.0 and self.delta == 0.0 else math.nan


def difference_of_placements(positive: NDArray[np.bool_], first: Floats, second: Floats) -> AucDifference:
    """Compare two AUCs, given by their placements, by paired DeLong: var(AUC_b − AUC_a) = S10 / n⁺ + S01 / n⁻.

    S are the sample variances of the trials' differences. This equals var_a + var_b − 2 cov, without the loss of
    digits. The error is NaN with fewer than two trials of a class.
    """
    gained = second - first
    if not 1 < int(positive.sum()) < len(positive) - 1:
        error = math.nan
    else:
        error = math.sqrt(sum(float(np.var(gained[m], ddof=1)) / int(m.sum()) for m in (positive, ~positive)))
    mean = np.mean if positive.any() else (lambda _: math.nan)
    return AucDifference(float(mean(first[positive])), float(mean(second[positive])), error)
