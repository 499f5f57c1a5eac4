"""What a difference says: its p value from replicates, and the least one that this many pairs would show."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from scipy.special import stdtr

from hitmiss.tally import Floats


def p_of_replicates(deltas: Floats, degrees: float = math.inf, by_units: bool = False) -> float:
    """Two-sided p of a difference from its bootstrap replicates: the level at which a percentile interval would touch 0.

    min(1, 2 (k + 1) / (m + 1)), k the number of replicates on the rarer side of 0, zeros counting on both. Where no
    replicate is there, the studentised mean goes on along the tail of Student's t with `degrees` of freedom (units less
    one), so that a family of many tests never asks for more replicates. `by_units`: the studentised mean decides
    throughout, since the replicates of few units are too close to each other. Undefined replicates are left out; NaN where
    none is defined.

    >>> p_of_replicates(np.array([1.0, 2.0, 3.0, -1.0, 2.0, 1.0, 4.0]))
    0.5
    >>> p_of_replicates(np.zeros(100))
    1.0
    >>> p_of_replicates(np.random.default_rng(0).normal(10.0, 1.0, 1000)) < 1e-20
    True
    """
    known = deltas[~np.isnan(deltas)]
    if not len(known):
        return math.nan
    rarer = min(int((known <= 0.0).sum()), int((known >= 0.0).sum()))
    p = min(1.0, 2.0 * (rarer + 1) / (len(known) + 1))
    if by_units and (known != known[0]).any():
        return min(1.0, _tail(known, degrees))
    return p if rarer else min(p, _tail(known, degrees))


def _tail(known: Floats, degrees: float) -> float:
    """The two-sided p of mean / deviation; 1 where there is no deviation to divide by."""
    error = float(np.std(known, ddof=1)) if len(known) > 1 and np.isfinite(known).all() else 0.0
    if not error > 0.0:
        return 1.0
    t = abs(float(known.mean())) / error
    shrunk = 1.0 if math.isinf(degrees) else math.sqrt(max(degrees, 1.0) / (max(degrees, 1.0) + 1.0))
    return 2.0 * float(stdtr(max(min(degrees, len(known) - 1.0), 1.0), -t * shrunk))


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
