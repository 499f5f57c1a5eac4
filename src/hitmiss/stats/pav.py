"""Pool adjacent violators: the blocks of the rising step function that fits positives against negatives best.

scipy has the same regression in `scipy.optimize`, whose import alone takes longer than scoring half a million trials.
Here whole counts are compared as whole numbers, so that no rounding decides whether two blocks of equal share are one:
they always are, and the blocks of shards that are pooled first and joined later are those of all trials at once.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.tally import Array, Floats

Starts = NDArray[np.intp]
ROUNDS: Final = 40
"""Rounds of pooling on whole arrays. Each round nearly halves the blocks; what is left then is pooled one by one."""
WHOLE: Final = 2**31
"""Counts below this can be multiplied in 64 bits."""


def pooled(positives: Array, negatives: Array) -> Starts:
    """Where each block begins when groups in ascending order of score are pooled until the share of positives rises.

    Parameters
    ----------
    positives, negatives
        What each group holds of the two classes, in ascending order of score; no group is empty.

    Returns
    -------
    The index of the first group of each block; the share of positives rises strictly from block to block.

    Examples
    --------
    >>> pooled(np.array([0, 1, 0, 1]), np.array([1, 0, 1, 0])).tolist()
    [0, 1, 3]
    """
    p, q = _comparable(positives), _comparable(negatives)
    starts: Starts = np.arange(len(p), dtype=np.intp)
    for _ in range(ROUNDS):
        # Neighbours whose share does not rise have one value in the solution, so a whole run of them is one block.
        rises = p[:-1] * q[1:] < p[1:] * q[:-1]
        if rises.all():
            return starts
        first = np.flatnonzero(np.append(True, rises))
        starts, p, q = starts[first], np.add.reduceat(p, first), np.add.reduceat(q, first)
    return starts[_one_by_one(p.tolist(), q.tolist())]


def rising_share(positives: Array, negatives: Array) -> Floats:
    """The share of positives of each group's block: isotonic regression of the labels on the order of the groups.

    Parameters
    ----------
    positives, negatives
        As for `pooled`.

    Returns
    -------
    One share per group, never falling.

    Examples
    --------
    >>> rising_share(np.array([0, 1, 0, 1]), np.array([1, 0, 1, 0]))
    array([0. , 0.5, 0.5, 1. ])
    """
    starts = pooled(positives, negatives)
    p, q = (np.add.reduceat(c.astype(np.float64), starts) for c in (positives, negatives))
    return np.repeat(p / (p + q), np.diff(np.append(starts, len(positives))))


def _comparable(counts: Array) -> Array:
    """Counts in a type in which products of sums of them are exact, or as exact as they can be."""
    if counts.dtype.kind == "f" and not (counts == np.floor(counts)).all():
        return counts.astype(np.float64)
    if counts.sum() < WHOLE:
        return counts.astype(np.int64)
    return counts.astype(np.float64)


def _one_by_one(p: list[float], q: list[float]) -> Starts:
    """The usual algorithm with a stack, for the rare order in which every round pools but a few."""
    stack: list[tuple[float, float, int]] = []
    for i, (more_p, more_q) in enumerate(zip(p, q, strict=True)):
        start = i
        while stack and stack[-1][0] * more_q >= more_p * stack[-1][1]:
            before_p, before_q, start = stack.pop()
            more_p, more_q = more_p + before_p, more_q + before_q
        stack.append((more_p, more_q, start))
    return np.array([start for _, _, start in stack], dtype=np.intp)
