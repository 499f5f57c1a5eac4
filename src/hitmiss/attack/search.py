"""The least strength at which a record flips: bisection over all records at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitmiss.errors import UsageError

Floats = NDArray[np.float64]
Attempt = Callable[[NDArray[np.int64], Floats], Any]
"""Records (by place) and a strength for each, to whether each flips."""


def minimal_strength(attempt: Attempt, n: int, *, top: float = 1.0, rounds: int = 7, tolerance: float = 0.0) -> Floats:
    """For each record the least strength at which it was seen to flip; infinite where it does not even at `top`.

    Each round tries the middle of what is still open, for all records in one call; it ends after `rounds`, or once the open
    part is no wider than `tolerance`. The figure is a strength that did succeed, so it errs upwards, by at most the open part.

    >>> least = np.array([0.3, 0.9, 2.0])
    >>> minimal_strength(lambda at, s: s >= least[at], 3, rounds=10).round(2).tolist()
    [0.3, 0.9, inf]
    """
    if not 0.0 < top <= 1.0 or rounds < 1:
        raise UsageError(f"a search runs from above 0 to 1 in 1 or more rounds; found top {top} and {rounds} rounds")
    everyone = np.arange(n)
    flips = np.asarray(attempt(everyone, np.full(n, top)), dtype=bool)
    low, high = np.zeros(n), np.where(flips, top, np.inf)
    for _ in range(rounds):
        rows = np.flatnonzero(np.isfinite(high) & (high - low > tolerance))
        if not len(rows):
            break
        middle = (low[rows] + high[rows]) / 2
        hit = np.asarray(attempt(rows, middle), dtype=bool)
        high[rows[hit]], low[rows[~hit]] = middle[hit], middle[~hit]
    return high
