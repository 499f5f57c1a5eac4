"""Variance of the ROC AUC, and of the difference of two, without resampling (DeLong, DeLong & Clarke-Pearson 1988)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from hitmiss.stats.forms import PairShare
from hitmiss.tally import Array, Floats, Tally


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
    under = (0.5 / n0) * (tally.negatives[:-1] + tally.negatives[1:].astype(np.float64))
    over = 1.0 - (0.5 / n1) * (tally.positives[:-1] + tally.positives[1:].astype(np.float64))
    return _sample_variance(under, tally.positive_counts) / n1 + _sample_variance(over, tally.negative_counts) / n0


def _sample_variance(values: Floats, counts: Array) -> float:
    n, weights = float(counts.sum()), counts.astype(np.float64)  # BLAS knows no product of floats with integers
    values = values - float(values @ weights) / n
    return float((values * values) @ weights) / (n - 1)


def placements(positive: NDArray[np.bool_], score: Floats) -> Floats:
    """For each trial the share of the other class that its score is rightly ordered against, equal scores counting half.

    Their mean over positives, and over negatives, is the AUC. NaN where the other class is absent.

    >>> placements(np.array([True, True, False, False]), np.array([0.9, 0.4, 0.6, 0.1]))
    array([1. , 0.5, 0.5, 1. ])
    """
    n1, n0 = int(positive.sum()), int((~positive).sum())
    share = np.full(len(positive), np.nan)
    if n0:
        share[positive] = _mean_rank(np.sort(score[~positive]), score[positive]) / n0
    if n1:
        share[~positive] = 1.0 - _mean_rank(np.sort(score[positive]), score[~positive]) / n1
    return share


def _mean_rank(ordered: Floats, score: Floats) -> Floats:
    """How many of the ordered scores lie below each score, equal ones counting half."""
    below, upto = (np.searchsorted(ordered, score, side=side) for side in ("left", "right"))
    return np.asarray(0.5 * (below + upto), dtype=np.float64)


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
    first, second = placements(positive, score_a), placements(positive, score_b)
    gained = second - first
    if not 1 < int(positive.sum()) < len(positive) - 1:
        error = math.nan
    else:
        error = math.sqrt(sum(float(np.var(gained[m], ddof=1)) / int(m.sum()) for m in (positive, ~positive)))
    mean = np.mean if positive.any() else (lambda _: math.nan)
    return AucDifference(float(mean(first[positive])), float(mean(second[positive])), error)
