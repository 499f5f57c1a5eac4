"""The least strength at which a record flips: bisection over all records at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitmiss.errors import UsageError

Floats = NDArray[np.float64]
Attempt = Callable[[NDArray[np.int64], Floats], Any]
"""Records (by place) and a strength for each, to the strength that each flipped at (no more than was allowed), or infinity.

Yes and no will do: a yes is taken for the strength that was allowed."""


def minimal_strength(
    attempt: Attempt, n: int, *, top: float = 1.0, rounds: int = 7, tolerance: float | None = None
) -> Floats:
    """For each record the least strength at which it was seen to flip; infinite where it does not even at `top`.

    Each round tries the middle of what is still open, for all records in one call; a record leaves after `rounds`, or once the
    open part is no wider than `tolerance` (2^−rounds). The figure is a strength that did succeed, so it errs upwards.

    >>> least = np.array([0.3, 0.9, 2.0])
    >>> minimal_strength(lambda at, s: s >= least[at], 3, rounds=10).round(2).tolist()
    [0.3, 0.9, inf]
    """
    if not 0.0 < top <= 1.0 or rounds < 1:
        raise UsageError(f"a search runs from above 0 to 1 in 1 or more rounds; found top {top} and {rounds} rounds")
    width = top * 2.0**-rounds if tolerance is None else tolerance
    low, high = np.zeros(n), _flipped_at(attempt, np.arange(n), np.full(n, top))
    for _ in range(rounds):
        rows = np.flatnonzero(np.isfinite(high) & (high - low > width))
        if not len(rows):
            break
        middle = (low[rows] + high[rows]) / 2
        found = _flipped_at(attempt, rows, middle)
        hit = np.isfinite(found)
        high[rows[hit]], low[rows[~hit]] = found[hit], middle[~hit]
        low = np.minimum(low, high)
    return high


def _flipped_at(attempt: Attempt, rows: NDArray[np.int64], strength: Floats) -> Floats:
    found = np.asarray(attempt(rows, strength))
    return (
        np.where(found, strength, np.inf)
        if found.dtype == bool
        else np.minimum(found.astype(np.float64), np.where(np.isinf(found), np.inf, strength))
    )
