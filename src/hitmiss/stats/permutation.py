"""Permutation tests of paired answers: if two detectors are alike, it does not matter which gave which answer.

Each unit's two answers are exchanged or not. With few units every permutation is counted. Otherwise permutations are
drawn, and the observed one counts among them: p = (b + 1) / (m + 1) (Phipson & Smyth 2010)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.progress import report
from hitmiss.core.sorting import Floats
from hitmiss.stats.random import Random

PERMUTATION_EXACT_UP_TO: Final = 16
"""Up to this many units, all 2ⁿ permutations are counted, if the statistic is a sum."""
FEW: Final = 10
"""Up to this many units, all 2ⁿ permutations are counted, if a metric must be computed again each time."""
AT_A_TIME: Final = 1 << 22
NEARLY: Final = 1e-9
"""Sums that differ by less than this, relative to their terms, are equal: rounding must not break ties."""
Swaps = NDArray[np.bool_]


def sign_flip(differences: Floats, replicates: int, rng: Random) -> float:
    """Return the two-sided p value of a sum of differences, one per unit, under changes of sign; 1 if no unit differs.

    Exact up to 16 units that differ. For differences of −1, 0 and 1 this is the exact McNemar test.

    >>> from hitmiss.stats.random import generator
    >>> sign_flip(np.array([1.0, 1.0, 1.0, 1.0, 1.0, -1.0]), 0, generator(0))
    0.21875
    """
    moving = differences[differences != 0.0]
    if not len(moving):
        return 1.0
    bar = abs(float(moving.sum())) - NEARLY * float(np.abs(moving).sum())
    if len(moving) <= PERMUTATION_EXACT_UP_TO:
        sums = _all_ways(len(moving)) @ moving
        return float(np.mean(np.abs(sums) >= bar))
    beyond = sum(int((np.abs(s) >= bar).sum()) for s in _drawn_sums(moving, replicates, rng))
    return (beyond + 1) / (replicates + 1)


def _all_ways(n: int) -> Floats:
    bits = np.arange(1 << n)[:, None] >> np.arange(n)
    return np.asarray(1.0 - 2.0 * (bits & 1), dtype=np.float64)


def _drawn_sums(moving: Floats, replicates: int, rng: Random) -> Iterator[Floats]:
    step = max(1, AT_A_TIME // len(moving))
    for start in range(0, replicates, step):
        report("permutations", start, replicates)
        size = (min(step, replicates - start), len(moving))
        yield np.asarray((1.0 - 2.0 * rng.heads(size[0] * size[1]).reshape(size)) @ moving, dtype=np.float64)


def swap(statistic: Callable[[Swaps], float], n_units: int, replicates: int, rng: Random) -> float:
    """Return the two-sided p value of any difference of two numbers, by exchanging the answers of units.

    `statistic` computes the difference after exchanging the marked units. Permutations in which the number is undefined
    are left out; NaN if the observed number is undefined, and 1 if exchanging changes nothing.

    >>> from hitmiss.stats.random import generator
    >>> gained = np.array([1.0, 1.0, -1.0])
    >>> swap(lambda swapped: float(np.where(swapped, -gained, gained).sum()), 3, 0, generator(0))
    1.0
    """
    observed = statistic(np.zeros(n_units, dtype=bool))
    if np.isnan(observed):
        return float("nan")
    values = np.array([statistic(way) for way in _ways(n_units, replicates, rng)])
    values = values[~np.isnan(values)]
    beyond = int((np.abs(values) >= abs(observed) - NEARLY).sum())
    if n_units <= FEW:
        return beyond / len(values)
    return (beyond + 1) / (len(values) + 1)


def _ways(n_units: int, replicates: int, rng: Random) -> Iterator[Swaps]:
    if n_units <= FEW:
        yield from (_all_ways(n_units) < 0)
        return
    for done in range(replicates):
        report("permutations", done, replicates)
        yield rng.heads(n_units)
