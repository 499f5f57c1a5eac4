"""Intervals of rates over independent trials."""

from __future__ import annotations

import math
from statistics import NormalDist


def wilson(hits: float, of: float, level: float = 0.95) -> tuple[float, float]:
    """Wilson score interval of hits / of; (NaN, NaN) of nothing.

    (p̂ + z²/2n ± z √(p̂(1−p̂)/n + z²/4n²)) / (1 + z²/n), with the exact normal quantile z.
    Reference: Wilson 1927; equals `statsmodels.stats.proportion.proportion_confint(method="wilson")`.

    >>> [round(x, 4) for x in wilson(8, 10)]
    [0.4902, 0.9433]
    """
    if of <= 0:
        return math.nan, math.nan
    z = NormalDist().inv_cdf(0.5 + level / 2)
    share = hits / of
    middle = share + z * z / (2 * of)
    half = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    unit = 1 + z * z / of
    low, high = (middle - half) / unit, (middle + half) / unit
    return (0.0 if hits == 0 else low), (1.0 if hits == of else high)
