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


def effective_units(unit: NDArray[np.int64], positive: NDArray[np.bool_]) -> float:
    """The effective number of units of trials: that of the class in which it is smaller, of the classes that are there.

    >>> effective_units(np.array([0, 0, 1, 1, 2, 2]), np.array([True, False] * 3))
    3.0
    """
    found = [effective(np.bincount(unit[side])) for side in (positive, ~positive) if side.any()]
    return min(found, default=0.0)
