"""Variance of the ROC AUC, and of the difference of two, without resampling (DeLong, DeLong & Clarke-Pearson 1988)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from hitmiss.stats.forms import CHUNK, PairShare
from hitmiss.tally import Floats, Tally


def auc_interval(tally: Tally, level: float = 0.95) -> tuple[float, float]:
    """DeLong interval of the AUC, cut to 0..1; (NaN, NaN) with fewer than two trials of a class.

    >>> [round(x, 3) for x in auc_interval(Tally.of([1, 1, 1, 0, 0, 0], [0.9, 0.8, 0.3, 0.6, 0.2, 0.1]))]
    [0.581, 1.0]
    """
    deviation = math.sqrt(auc_variance(tally))
    if math.isnan(deviation):
        return math.nan, math.nan
    area, z = PairShare().value(tally), NormalDist().inv_cdf(0.5 + level / 2)
    return max(area - z * deviation, 0.0), min(area + z * deviation, 1.0)


def auc_variance(tally: Tally) -> float:
    """Var(AUC) = S10 / n⁺ + S01 / n⁻, S the sample variances of each trial's share of rightly ordered pairs."""
    n1, n0 = float(tally.n_positive), float(tally.n_negative)
    if n1 < 2 or n0 < 2:
        return math.nan
    area = PairShare().value(tally)  # the mean of both kinds of shares
    by_positive = by_negative = 0.0
    for start in range(0, len(tally.score), CHUNK):
        p = tally.positives[start : start + CHUNK + 1].astype(np.float64)
        q = tally.negatives[start : start + CHUNK + 1].astype(np.float64)
        under = (0.5 / n0) * (q[:-1] + q[1:]) - area
        over = 1.0 - area - (0.5 / n1) * (p[:-1] + p[1:])
        by_positive += float(np.sum(np.diff(p) * under * under))
        by_negative += float(np.sum(np.diff(q) * over * over))
    return by_positive / (n1 - 1) / n1 + by_negative / (n0 - 1) / n0


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
