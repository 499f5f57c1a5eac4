"""Blocks of units that are left out one at a time: the jackknife's weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.sorting import Floats
from hitmiss.stats.random import generator

MOST_BLOCKS = 100
"""Number of blocks of units that are left out one at a time for the acceleration of a BCa interval."""
MOST_TIMES = 100
"""How often a trial is repeated at most, so that the weights of a row are nearly whole."""
MOST_REPEATED = 2_000_000
"""Number of trials that are made by repeating them, at most."""


@dataclass(frozen=True, eq=False)
class UnitKind:
    """Units that vary on their own: a number for each cell (−1: never left out), and the stratum of each.

    `apart`: they are drawn within strata, so the others of a stratum weigh more if one of it is left out.
    """

    number: NDArray[np.int64]
    stratum: NDArray[np.int64]
    apart: bool = False

    def sizes(self, kept: NDArray[np.bool_] | None = None) -> Floats:
        """Return how many units each stratum has, or how many of those that are kept."""
        mine = np.ones(len(self.number), dtype=bool) if kept is None else kept
        pairs = np.unique(np.stack([self.number[mine], self.stratum[mine]]), axis=1)
        return np.bincount(pairs[1], minlength=4).astype(np.float64)


@dataclass(frozen=True, eq=False)
class UnitBlocks:
    """Weights (block × cell) that leave out one block of units each, and the group of each block.

    Units that vary together are one group. Where every unit holds one class, each class is a group; of two crossed
    units, either is one, and blocks of pairs of them are a last one, which does not count as a group. A cell is a unit,
    or a pair of crossed units.
    """

    weights: Floats
    group: NDArray[np.int64]
    groups: int
    is_pooled: bool = False
    """Whether some block holds several units, because they are too many to be left out one by one."""

    @classmethod
    def of(cls, kinds: Sequence[UnitKind], groups: int) -> UnitBlocks:
        """Make them from the units that vary on their own."""
        most = MOST_BLOCKS // len(kinds)
        weights, group, is_pooled = [], [], False
        for k, kind in enumerate(kinds):
            place = np.unique(kind.number, return_inverse=True)[1] - int(kind.number.min() < 0)
            # Thousands of units one at a time would cost more than the replicates; blocks of them show the same skewness.
            # Which units share a block is random: by their order, a block could follow the way a file is sorted.
            count = int(place.max(initial=-1)) + 1
            order = generator(0, "blocks").permutation(count) if count > most else np.arange(count)
            block = np.where(kind.number >= 0, order[place] % most, -1)
            is_pooled |= count > most
            for left in np.unique(block[block >= 0]).tolist():
                row = (block != left).astype(np.float64)
                if kind.apart:
                    # The number of units of a stratum is part of the design: those that stay count for the missing one as well.
                    row *= (kind.sizes() / np.maximum(kind.sizes(block != left), 1.0))[kind.stratum]
                weights.append(row)
                group.append(k)
        made = np.array(weights).reshape(len(group), len(kinds[0].number))
        return cls(made, np.array(group, dtype=np.int64), groups, is_pooled)


def whole_weights(weights: Floats, trials: int) -> NDArray[np.int64]:
    """Return weights (block × cell) as numbers of trials, each row times the number that makes it whole, or nearly so.

    Repeating all trials equally often changes no metric, so 16/15 and 1 may be 16 and 15 trials. Where that takes more
    trials than `MOST_REPEATED`, weights are as near to it as so many trials allow.
    """
    times = np.arange(1, max(1, min(MOST_TIMES, MOST_REPEATED // max(trials, 1))) + 1)
    rows = []
    for row in weights:
        scaled = np.multiply.outer(times, np.unique(row))
        error = np.abs(scaled - np.rint(scaled)).max(axis=1) / times
        rows.append(np.rint(row * times[np.argmax(error < error.min() + 1e-9)]))  # the fewest of those as near
    return np.array(rows, dtype=np.int64).reshape(weights.shape)
