"""The scores of cells, all of them in memory as keys: what `measure` reads its tallies from where everything was kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hitmiss.grouping import Rows
from hitmiss.scale.tallies import Binned
from hitmiss.stats.delong import Steps
from hitmiss.stats.keys import scores_of
from hitmiss.tally import Floats, Tally

SPARSE = 4
"""Scores with fewer repeats than this on average are written out one by one: sorting them is the quicker way."""


@dataclass(frozen=True, eq=False)
class ExactCells:
    """Cells of which every score is known."""

    binned: Sequence[Binned]

    def tally(self, positive: Rows, negative: Rows) -> Tally:
        """The scores of some positive and some negative cells, counted together."""
        sides = [[self.binned[row] for row in rows] for rows in (positive, negative)]
        total, held = (sum(f(b) for side in sides for b in side) for f in (lambda b: b.total, lambda b: len(b.bins)))
        if total <= SPARSE * held:
            return Tally.of_classes(*map(_written_out, sides))
        scores, counts = [], []
        for at, side in enumerate(sides):
            for binned in side:
                scores.append(scores_of(binned.bins))
                both = np.zeros((2, len(binned.bins)), dtype=np.int64)
                both[at] = binned.each
                counts.append(both)
        return Tally.of_counts(np.concatenate(scores), *np.concatenate(counts, axis=1))

    def steps(self, positive: Rows, negative: Rows) -> Steps:
        """What the AUC of some cells and its variance need."""
        return Steps.of_tally(self.tally(positive, negative))


def _written_out(side: Sequence[Binned]) -> Floats:
    """Every score as often as it occurs."""
    keys = [b.bins if b.counts is None else np.repeat(b.bins, b.counts) for b in side]
    return scores_of(np.concatenate(keys)) if keys else np.zeros(0)
