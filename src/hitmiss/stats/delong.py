"""Variance of the ROC AUC without resampling (DeLong, DeLong & Clarke-Pearson 1988)."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

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
    under = 0.5 * (tally.negatives[:-1] + tally.negatives[1:].astype(np.float64)) / n0
    over = 1.0 - 0.5 * (tally.positives[:-1] + tally.positives[1:].astype(np.float64)) / n1
    return _sample_variance(under, tally.positive_counts) / n1 + _sample_variance(over, tally.negative_counts) / n0


def _sample_variance(values: Floats, counts: Array) -> float:
    n = float(counts.sum())
    mean = float(values @ counts) / n
    return float(((values - mean) ** 2) @ counts) / (n - 1)
