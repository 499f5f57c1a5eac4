"""What a difference says: its p value from replicates, and the least one that this many pairs would show."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from hitmiss.tally import Floats


def p_of_replicates(deltas: Floats) -> float:
    """Two-sided p of a difference from its bootstrap replicates: the level at which a percentile interval would touch 0.

    min(1, 2 (k + 1) / (m + 1)), k the number of replicates on the rarer side of 0, zeros counting on both. Undefined
    replicates are left out; NaN where none is defined.

    >>> p_of_replicates(np.array([1.0, 2.0, 3.0, -1.0, 2.0, 1.0, 4.0]))
    0.5
    >>> p_of_replicates(np.zeros(100))
    1.0
    """
    known = deltas[~np.isnan(deltas)]
    if not len(known):
        return math.nan
    rarer = min(int((known <= 0.0).sum()), int((known >= 0.0).sum()))
    return min(1.0, 2.0 * (rarer + 1) / (len(known) + 1))


def detectable(error: float, level: float = 0.95, power: float = 0.8) -> float | None:
    """Minimum detectable difference: (z₁₋α⸝₂ + z_power) · error, the standard error of the paired difference.

    A true difference of this size is found by a two-sided test at 1 − level in a share `power` of all repetitions
    (normal approximation, the error taken as it is here). None without an error, and where it is 0: runs that never
    differed say nothing of what could have been seen.

    >>> round(detectable(0.01), 6)
    0.028016
    >>> detectable(0.0) is None
    True
    """
    if not error > 0.0 or math.isinf(error):
        return None
    normal = NormalDist()
    return (normal.inv_cdf(0.5 + level / 2) + normal.inv_cdf(power)) * error
