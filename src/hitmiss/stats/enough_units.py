"""How many units an interval needs: fewer units cannot be resampled.

If numbers of single units lie symmetrically about the true value, k units all lie on the same side of it with
probability 2^(1 − k), and so does everything that is drawn from them. So even the whole range of k units is an
interval at a level of at most 1 − 2^(1 − k) (the sign test): 50 % for two units, 93.75 % for five."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import count

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.sorting import Array

Sizes = tuple[Array, Array]
"""Positives and negatives of each unit."""
LEAST_EFFECTIVE = 3.0
"""With fewer effective units than this there is no interval, because none would be wide enough."""


def enough(level: float) -> int:
    """Return the least number of units whose range can be an interval at this level: k with 1 − 2^(1 − k) ≥ level.

    >>> enough(0.9), enough(0.95), enough(0.99)
    (5, 6, 8)
    """
    return next(k for k in count(2) if 1.0 - 2.0 ** (1 - k) >= level)


def effective(sizes: Array) -> float:
    """Return how many units of equal size carry the same information: (Σ n)² / Σ n² (Kish 1965); 0 without units.

    >>> effective(np.array([10.0, 10.0, 10.0])), effective(np.array([98.0, 1.0, 1.0])) < 1.1
    (3.0, True)
    """
    held = sizes.astype(np.float64)
    squares = float(np.square(held).sum())
    return float(held.sum()) ** 2 / squares if squares else 0.0


def effective_squares(sizes: Array) -> float:
    """Return how many units of equal size know an error as well if all variance is between units."""
    return max(effective(sizes.astype(np.float64) ** 2), 1.0)


def error_units(sizes: Array) -> float:
    """Return how many units of equal size would know the error of an estimate as well; at most their effective number.

    The degrees of freedom of an error lie between two ends: (Σ n)² / Σ n² − 1 if all variance is inside units, so that a
    unit adds as much to it as it has trials, and (Σ n²)² / Σ n⁴ − 1 if all is between units (Satterthwaite 1946). Which
    it is differs from number to number, so their geometric mean is taken.

    >>> error_units(np.array([10.0, 10.0, 10.0])), round(error_units(np.array([70, 10, 10, 10])), 2)
    (3.0, 1.34)
    """
    held = sizes.astype(np.float64)
    if not held.any():
        return 0.0
    return 1.0 + math.sqrt(max(effective(held) - 1.0, 0.0) * max(effective(held**2) - 1.0, 0.0))


def unit_sizes(unit: NDArray[np.int64], positive: NDArray[np.bool_]) -> Sizes:
    """Return how many positives and how many negatives each unit holds."""
    n = int(unit.max(initial=-1)) + 1
    return np.bincount(unit[positive], minlength=n), np.bincount(unit[~positive], minlength=n)


def effective_units(*crossed: Sizes, count: Callable[[Array], float] = effective) -> float:
    """Return the effective number of units: that of the class in which it is smaller; of crossed units the smaller.

    `count`: how the units of one class are counted (`effective` or `error_units`).

    For crossed units, a class with a single value (bona fide trials, all without an attack) does not show how the
    values differ, so it does not count.

    >>> effective_units((np.array([1, 1, 1]), np.array([2, 2, 2])))
    3.0
    """
    sizes = [own for pair in crossed for own in pair if own.any()]
    several = [own for own in sizes if np.count_nonzero(own) > 1]
    counted = sizes if len(crossed) == 1 else several
    return min(map(count, counted), default=1.0)
