"""What a difference shows: its p value from replicates, and the least difference that this many pairs could detect."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from hitmiss.core.sorting import Floats


def p_of_replicates(
    deltas: Floats, degrees: float = math.inf, delta: float | None = None, factor: float = 1.0
) -> float:
    """Return the two-sided p value of a difference from its bootstrap replicates.

    It is the level at which a percentile interval would touch 0: min(1, 2 (k + 1) / (m + 1)), where k is the number of
    replicates on the rarer side of 0, and zeros count on both sides. If there is no replicate on that side, the p value
    follows the tail of Student's t with `degrees` of freedom (units less one) at the studentised mean, so that a family
    of many tests does not need more replicates. With `delta`, the difference itself, the tail at delta / (`factor` ·
    deviation) is always used: the replicates of few units vary too little, and those of numbers that are read at a
    threshold of their own (EER, least costs) lie nearer to 0 than the difference does. Undefined replicates are left
    out; the result is NaN if none is defined.

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
    if delta is not None and (known != known[0]).any():
        return min(1.0, _tail(known, degrees, delta, factor))
    return p if rarer else min(p, _tail(known, degrees, float(known.mean()), factor))


def p_of_error(delta: float, error: float, degrees: float = math.inf) -> float:
    """Return the two-sided p value of a difference with a known error: by Student's t, or normal without degrees.

    >>> round(p_of_error(1.96, 1.0), 3), round(p_of_error(1.96, 1.0, 5.0), 3)
    (0.05, 0.107)
    """
    if math.isinf(degrees):
        return math.erfc(abs(delta) / error / math.sqrt(2.0))
    from scipy.special import stdtr  # slow to import, and needed only for tests

    return 2.0 * float(stdtr(max(degrees, 1.0), -abs(delta) / error))


def _tail(known: Floats, degrees: float, centre: float, factor: float) -> float:
    """Return the two-sided p value of centre / deviation; 1 if the deviation is 0."""
    error = float(np.std(known, ddof=1)) * factor if len(known) > 1 and np.isfinite(known).all() else 0.0
    if not error > 0.0:
        return 1.0
    t = abs(centre) / error
    shrunk = 1.0 if math.isinf(degrees) else math.sqrt(max(degrees, 1.0) / (max(degrees, 1.0) + 1.0))
    from scipy.special import stdtr  # slow to import, and needed only for tests

    return 2.0 * float(stdtr(max(min(degrees, len(known) - 1.0), 1.0), -t * shrunk))


def detectable(error: float, level: float = 0.95, power: float = 0.8) -> float | None:
    """Return the minimum detectable difference: (z₁₋α⸝₂ + z_power) · error.

    `error` is the standard error of the paired difference. A two-sided test at 1 − level finds a true difference of
    this size in a share `power` of all repetitions (normal approximation, with the error as estimated here). None if
    there is no error, or if it is 0: runs that never differed show nothing about which difference could have been seen.

    >>> round(detectable(0.01), 6)
    0.028016
    >>> detectable(0.0) is None
    True
    """
    if not error > 0.0 or math.isinf(error):
        return None
    normal = NormalDist()
    return (normal.inv_cdf(0.5 + level / 2) + normal.inv_cdf(power)) * error
