"""How many units an interval needs: of fewer nothing can be resampled.

What k units show that lie symmetrically about the truth is all on the same side of it with probability 2^(1 − k), and what is
drawn from them then is too. So even the whole range of k units is an interval at no higher level than 1 − 2^(1 − k) (the
sign test): 50 % of two, 93.75 % of five.
"""

from __future__ import annotations

from itertools import count

import numpy as np
from numpy.typing import NDArray

from hitmiss.tally import Array

Sizes = tuple[Array, Array]
"""Positives and negatives of each unit."""
LEAST_EFFECTIVE = 3.0
"""Fewer effective units than this give no interval: no width would be wide enough."""


def enough(level: float) -> int:
    """The fewest units whose range can be an interval at this level: the least k with 1 − 2^(1 − k) ≥ level.

    >>> enough(0.9), enough(0.95), enough(0.99)
    (5, 6, 8)
    """
    return next(k for k in count(2) if 1.0 - 2.0 ** (1 - k) >= level)


def effective(sizes: Array) -> float:
    """How many units of equal size say as much: (Σ n)² / Σ n² (Kish 1965); 0 where there are none.

    >>> effective(np.array([10.0, 10.0, 10.0])), effective(np.array([98.0, 1.0, 1.0])) < 1.1
    (3.0, True)
    """
    held = sizes[sizes > 0].astype(np.float64)
    return float(held.sum() ** 2 / (held**2).sum()) if len(held) else 0.0


def unit_sizes(unit: NDArray[np.int64], positive: NDArray[np.bool_]) -> Sizes:
    """How many positives and how many negatives each unit holds."""
    n = int(unit.max(initial=-1)) + 1
    return np.bincount(unit[positive], minlength=n), np.bincount(unit[~positive], minlength=n)


def effective_units(*crossed: Sizes) -> float:
    """The effective number of units: that of the class in which it is smaller; of two crossed units the smaller.

    Of crossed units a class that has one value alone (bona fide trials, all without an attack) says nothing of how the
    values differ, and does not count.

    >>> effective_units((np.array([1, 1, 1]), np.array([2, 2, 2])))
    3.0
    """
    sizes = [own for pair in crossed for own in pair if own.any()]
    several = [own for own in sizes if np.count_nonzero(own) > 1]
    counted = sizes if len(crossed) == 1 else several
    return min(map(effective, counted), default=1.0)
