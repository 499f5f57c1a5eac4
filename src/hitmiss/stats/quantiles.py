"""The interval of a quantile from order statistics."""

from __future__ import annotations

import math
from collections.abc import Sequence


def quantile_interval(ordered: Sequence[float], share: float, level: float = 0.95) -> tuple[float, float]:
    """The interval between two of the ordered values that covers a quantile whatever the distribution.

    How many of n values lie below the quantile is binomial(n, share), so x₍ₗ₎ ≤ quantile ≤ x₍ᵤ₎ holds with probability
    P(l ≤ B < u) ≥ level. (NaN, NaN) where there are too few values: an end would lie beyond them.
    Reference: Hahn & Meeker 1991, section 5.2.

    >>> quantile_interval(range(1, 101), 0.5)
    (40.0, 61.0)
    >>> quantile_interval(range(20), 0.95)
    (nan, nan)
    """
    from scipy.stats import binom

    n, tail = len(ordered), (1.0 - level) / 2
    if not n:
        return math.nan, math.nan
    low, high = int(binom.ppf(tail, n, share)), int(binom.ppf(1.0 - tail, n, share)) + 1
    if low < 1 or high > n:
        return math.nan, math.nan
    return float(ordered[low - 1]), float(ordered[high - 1])
