"""Pool adjacent violators: the blocks of the non-decreasing step function that fits the share of positives best.

scipy has the same regression in `scipy.optimize`, but importing that module takes longer than scoring half a million
trials. Here whole counts are compared as integers, so that rounding cannot decide whether two blocks of equal share are
merged. They always are; so pooling shards first and joining them later gives the blocks of all trials at once.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.sorting import Array, Floats

Starts = NDArray[np.intp]
ROUNDS: Final = 40
"""Rounds of pooling on whole arrays. Each round nearly halves the number of blocks; the rest is pooled one by one."""
WHOLE: Final = 2**31
"""Counts below this can be multiplied in 64 bits."""


def pooled(positives: Array, negatives: Array) -> Starts:
    """Pool groups, in ascending order of score, until the share of positives rises; return where each block begins.

    Parameters
    ----------
    positives, negatives
        The counts of each group, in ascending order of score; no group is empty.

    Returns
    -------
    Starts
        The index of the first group of each block. The share of positives rises strictly from block to block.

    Examples
    --------
    >>> pooled(np.array([0, 1, 0, 1]), np.array([1, 0, 1, 0])).tolist()
    [0, 1, 3]
    """
    p, q = _comparable(positives), _comparable(negatives)
    starts: Starts = np.arange(len(p), dtype=np.intp)
    for _ in range(ROUNDS):
        # Neighbours whose share does not rise have the same value in the solution, so a whole sequence of them is one
        # block.
        rises = p[:-1] * q[1:] < p[1:] * q[:-1]
        if rises.all():
            return starts
        first = np.flatnonzero(np.append(True, rises))
        starts, p, q = starts[first], np.add.reduceat(p, first), np.add.reduceat(q, first)
    return starts[_one_by_one(p.tolist(), q.tolist())]


def rising_share(positives: Array, negatives: Array) -> Floats:
    """Return the share of positives in the block of each group: isotonic regression of the labels on the scores.

    Parameters
    ----------
    positives, negatives
        As for `pooled`.

    Returns
    -------
    Floats
        One share per group, never decreasing.

    Examples
    --------
    >>> rising_share(np.array([0, 1, 0, 1]), np.array([1, 0, 1, 0]))
    array([0. , 0.5, 0.5, 1. ])
    """
    starts = pooled(positives, negatives)
    p, q = (np.add.reduceat(c.astype(np.float64), starts) for c in (positives, negatives))
    return np.repeat(p / (p + q), np.diff(np.append(starts, len(positives))))


def _comparable(counts: Array) -> Array:
    """Return counts in a type in which products of their sums are exact, or as exact as possible."""
    if counts.dtype.kind == "f" and not (counts == np.floor(counts)).all():
        return counts.astype(np.float64)
    if counts.sum() < WHOLE:
        return counts.astype(np.int64)
    return counts.astype(np.float64)


def _one_by_one(p: list[float], q: list[float]) -> Starts:
    """Pool with a stack (the usual algorithm), for the rare orders in which each round pools only a few groups."""
    stack: list[tuple[float, float, int]] = []
    for i, (more_p, more_q) in enumerate(zip(p, q, strict=True)):
        start = i
        while stack and stack[-1][0] * more_q >= more_p * stack[-1][1]:
            before_p, before_q, start = stack.pop()
            more_p, more_q = more_p + before_p, more_q + before_q
        stack.append((more_p, more_q, start))
    return np.array([start for _, _, start in stack], dtype=np.intp)
