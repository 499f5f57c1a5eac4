"""Variance of the ROC AUC, and of the difference of two, without resampling (DeLong, DeLong & Clarke-Pearson 1988)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from operator import mul
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from hitmiss.stats.unseen import area_score_interval
from hitmiss.tally import Array, Floats, Tally


@dataclass(frozen=True, eq=False)
class Steps:
    """Where the rarer class stands in the other: all that the AUC and its variance need.

    At each distinct score of the rarer class: `held`, how many of it have that score; `below` and `upto`, how many of the
    other class lie below it, and not above it.

    >>> s = Steps.of_classes(np.array([0.3, 0.8, 0.9]), np.array([0.1, 0.2, 0.6]))
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
    def of_classes(cls, positive: Floats, negative: Floats) -> Steps:
        """From the scores of each class, both ascending."""
        is_positive = len(positive) <= len(negative)
        few, many = (positive, negative) if is_positive else (negative, positive)
        return cls(*standing(few, many), len(few), len(many), is_positive)

    @classmethod
    def of_tally(cls, tally: Tally) -> Steps:
        """From a tally; the very numbers that `of_classes` gives for its trials."""
        is_positive = bool(tally.n_positive <= tally.n_negative)
        few, many = (tally.positives, tally.negatives) if is_positive else (tally.negatives, tally.positives)
        at = np.flatnonzero(few[1:] != few[:-1])
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

    @property
    def _twice(self) -> float:
        return whole_sum(self.held, self.below + self.upto)

    @cached_property
    def variance(self) -> float:
        """Var(AUC) = S10 / n⁺ + S01 / n⁻, S the sample variances of each trial's share of rightly ordered pairs.

        The shares of the other class are the same between two steps, so each step counts for all trials before it.
        """
        if self.n < 2 or self.n_other < 2:
            return math.nan
        mean = self._twice / (2 * self.n * self.n_other)
        own = (0.5 / self.n_other) * (self.below + self.upto) - mean
        passed = np.append(0, np.cumsum(self.held))  # of the rarer class, before each step and after the last
        between = np.append(self.below, self.n_other) - np.append(0, self.upto)
        apart = passed / self.n - (1.0 - mean)
        tied = (passed[:-1] + 0.5 * self.held) / self.n - (1.0 - mean)
        others = float(np.sum(between * apart * apart)) + float(np.sum((self.upto - self.below) * tied * tied))
        return float(np.sum(self.held * own * own)) / (self.n - 1) / self.n + others / (self.n_other - 1) / self.n_other

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """DeLong interval of the AUC, cut to 0..1; (NaN, NaN) with fewer than two trials of a class.

        Where the variance is 0 (no pair is wrongly ordered, all are, or all scores are equal) DeLong's has no width, which
        is no certainty: Newcombe's score interval stands for it there.
        """
        deviation = math.sqrt(self.variance)
        if math.isnan(deviation):
            return math.nan, math.nan
        if not deviation:
            return area_score_interval(self.area, int(self.n), int(self.n_other), level)
        half = NormalDist().inv_cdf(0.5 + level / 2) * deviation
        return max(self.area - half, 0.0), min(self.area + half, 1.0)


def standing(few: Array, many: Array) -> tuple[Array, Array, Array]:
    """Where values stand among others, both ascending: at each distinct one how many share it, how many others lie below
    it, and how many not above it.

    >>> [a.tolist() for a in standing(np.array([2, 3, 3]), np.array([1, 3, 5]))]
    [[1, 2], [1, 1], [1, 2]]
    """
    starts = np.flatnonzero(np.append(True, few[1:] != few[:-1])) if len(few) else np.zeros(0, dtype=np.intp)
    distinct = few if len(starts) == len(few) else few[starts]
    below = np.searchsorted(many, distinct, side="left")
    tied = many[np.minimum(below, len(many) - 1)] == distinct if len(many) else np.zeros(len(below), dtype=np.bool_)
    upto = below.copy() if tied.any() else below
    upto[tied] = np.searchsorted(many, distinct[tied], side="right")
    return np.diff(np.append(starts, len(few))), below, upto


def whole_sum(a: Array, b: Array) -> float:
    """Σ aᵢ bᵢ of counts, exact for whole numbers of any size: pairs of some billions of trials are more than 64 bits hold.

    >>> whole_sum(np.array([2**40, 1]), np.array([2**40, 3])) - 2**80
    3
    """
    if np.result_type(a, b).kind == "f" or not len(a) or int(a.sum()) * int(b.max()) < 2**63:
        return (a * b).sum().item()  # type: ignore[no-any-return]
    return int(sum(map(mul, a.tolist(), b.tolist())))


def auc_interval(tally: Tally, level: float = 0.95) -> tuple[float, float]:
    """DeLong interval of the AUC (see `Steps.interval`), cut to 0..1; (NaN, NaN) with fewer than two trials of a class.

    >>> [round(x, 3) for x in auc_interval(Tally.of([1, 1, 1, 0, 0, 0], [0.9, 0.8, 0.3, 0.6, 0.2, 0.1]))]
    [0.581, 1.0]
    """
    return Steps.of_tally(tally).interval(level)


def placements(positive: NDArray[np.bool_], score: Floats) -> Floats:
    """For each trial the share of the other class that its score is rightly ordered against, equal scores counting half.

    Their mean over positives, and over negatives, is the AUC. NaN where the other class is absent.

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
    """The AUCs of two systems on the same trials, and the standard error of the second less the first."""

    a: float
    b: float
    error: float

    @property
    def delta(self) -> float:
        """AUC of the second less that of the first."""
        return self.b - self.a

    @property
    def p_value(self) -> float:
        """Two-sided normal p; 1 where the systems order all pairs alike, NaN where there is no variance to judge by."""
        if self.error > 0.0:
            return math.erfc(abs(self.delta) / self.error / math.sqrt(2.0))
        return 1.0 if self.error == 0.0 and self.delta == 0.0 else math.nan

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """delta ± z · error, cut to −1..1."""
        half = NormalDist().inv_cdf(0.5 + level / 2) * self.error
        if math.isnan(half):
            return math.nan, math.nan
        return max(self.delta - half, -1.0), min(self.delta + half, 1.0)


def auc_difference(positive: NDArray[np.bool_], score_a: Floats, score_b: Floats) -> AucDifference:
    """Paired DeLong: var(AUC_b − AUC_a) = S10 / n⁺ + S01 / n⁻, S the sample variances of the trials' differences.

    That is var_a + var_b − 2 cov, without the loss of digits. The error is NaN with fewer than two trials of a class.

    >>> positive = np.array([True, True, True, False, False, False])
    >>> a, b = np.array([0.9, 0.8, 0.3, 0.6, 0.2, 0.1]), np.array([0.9, 0.8, 0.7, 0.6, 0.2, 0.1])
    >>> found = auc_difference(positive, a, b)
    >>> round(found.delta, 6), round(found.error, 6), round(found.p_value, 6)
    (0.111111, 0.157135, 0.4795)
    """
    return difference_of_placements(positive, placements(positive, score_a), placements(positive, score_b))


def difference_of_placements(positive: NDArray[np.bool_], first: Floats, second: Floats) -> AucDifference:
    """`auc_difference` where the placements are known."""
    gained = second - first
    if not 1 < int(positive.sum()) < len(positive) - 1:
        error = math.nan
    else:
        error = math.sqrt(sum(float(np.var(gained[m], ddof=1)) / int(m.sum()) for m in (positive, ~positive)))
    mean = np.mean if positive.any() else (lambda _: math.nan)
    return AucDifference(float(mean(first[positive])), float(mean(second[positive])), error)
