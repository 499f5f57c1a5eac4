"""Intervals of the spread over groups: the greatest less the least, and the least divided by the greatest.

The greatest of several noisy numbers is too high and the least too low, so groups that are all alike differ in every sample.
The interval here is made of intervals of all pairwise differences that hold at once (Tukey & Kramer: the level is that of
the range of as many normal variables, exact for equal errors, conservative for others). The true spread then lies between
the greatest of their lower ends and the greatest of their upper ends; both are 0 or more. Each difference is put together
from the intervals of both groups (MOVER: Zou & Donner 2008; ratios: Donner & Zou 2012), so they are skewed as those are.
Groups that share units vary together, mostly, so that it is then wider than necessary.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from hitmiss.core.sorting import Floats
from hitmiss.stats.scale import Ends

STEP = 0.01
REACH = 9.0


def range_tail(q: float, groups: int) -> float:
    """Return the chance that the range of independent normal variables exceeds q.

    >>> round(range_tail(3.314493, 3), 4)  # the studentised range, infinite degrees of freedom
    0.05
    """
    from scipy.special import ndtr

    z = np.arange(-REACH, REACH + max(q, 0.0), STEP)
    density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    inside = groups * STEP * float((density * (ndtr(z) - ndtr(z - q)) ** (groups - 1)).sum())
    return min(max(1.0 - inside, 0.0), 1.0)


def level_of_pairs(groups: int, level: float) -> float:
    """Return the level of each group's own interval with which all pairwise differences hold at once.

    >>> [round(level_of_pairs(k, 0.95), 4) for k in (2, 3, 7)]
    [0.95, 0.9809, 0.9968]
    """
    low, high = 0.0, 20.0
    while high - low > 1e-9:
        middle = (low + high) / 2.0
        low, high = (middle, high) if range_tail(middle, groups) > 1.0 - level else (low, middle)
    return 2.0 * NormalDist().cdf(low / math.sqrt(2.0)) - 1.0


def spread_interval(value: Floats, low: Floats, high: Floats) -> Ends:
    """Return the interval of greatest − least from numbers with intervals at `level_of_pairs`."""
    delta = value[:, None] - value[None, :]
    below, above = (value - low)[:, None], (high - value)[:, None]
    least, most = delta - np.hypot(below, above.T), delta + np.hypot(above, below.T)
    np.fill_diagonal(least, -np.inf)
    np.fill_diagonal(most, -np.inf)
    return max(float(least.max()), 0.0), float(most.max())


def ratio_interval(value: Floats, low: Floats, high: Floats) -> Ends:
    """Return the interval of least / greatest from numbers from 0 on, with intervals at `level_of_pairs`."""
    one, other = np.meshgrid(np.arange(len(value)), np.arange(len(value)), indexing="ij")
    apart = one != other
    i, j = one[apart], other[apart]
    product = value[i] * value[j]
    with np.errstate(divide="ignore", invalid="ignore"):
        down, up = high[j] * (2.0 * value[j] - high[j]), low[j] * (2.0 * value[j] - low[j])
        inner = low[i] * (2.0 * value[i] - low[i]), high[i] * (2.0 * value[i] - high[i])
        roots = [np.sqrt(np.maximum(product**2 - own * of, 0.0)) for own, of in zip(inner, (down, up), strict=True)]
        # the same as (product − root) / down, which is 0 / 0 where the upper end is twice the number
        least = inner[0] / (product + roots[0])
        most = (product + roots[1]) / up
    least = np.where(np.isnan(least), 0.0, least)
    most = np.where(np.isnan(most), math.inf, most)
    return max(float(least.min()), 0.0), min(float(most.min()), 1.0)
