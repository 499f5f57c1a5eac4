"""Cells whose scores are all in memory, as the source of tallies for `measure`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.score_keys import Keys, scores_of
from hitmiss.core.tally import Tally
from hitmiss.engine.columns import Rows
from hitmiss.outofcore.binned import NO_KEYS, Binned, Counts, merge_binned, ordered
from hitmiss.stats.delong import RocSteps
from hitmiss.stats.units import UnitSample

SPARSE: Final = 4
"""Scores with fewer repeats than this on average are written out one by one: sorting them is faster."""


@dataclass(frozen=True, eq=False)
class ExactCells:
    """Cells whose scores are all known."""

    binned: Sequence[Binned]
    is_short: ClassVar[bool] = False

    def tally(self, positive: Rows, negative: Rows) -> Tally:
        """Return the scores of some positive and some negative cells, counted together."""
        return tally_together(self._sides(positive, negative))

    def steps(self, positive: Rows, negative: Rows) -> RocSteps:
        """Return what the AUC of some cells and its variance need."""
        # keys have the order of the scores, and the AUC needs only the order
        classes = classes_of(self._sides(positive, negative))
        return RocSteps.of_tally(self.tally(positive, negative)) if classes is None else RocSteps.of_classes(*classes)

    def unit_sample(self, rows: Rows, positive: NDArray[np.bool_], unit: Counts, n_units: int) -> UnitSample:
        """Return the trials of some cells with their units."""
        keys = [np.repeat(own.bins, own.each) for own in (self.binned[row] for row in rows)]
        sizes, score = list(map(len, keys)), scores_of(np.concatenate([NO_KEYS, *keys]))
        return UnitSample.of(np.repeat(positive, sizes), score, np.repeat(unit, sizes), n_units)

    def _sides(self, positive: Rows, negative: Rows) -> list[list[Binned]]:
        return [[self.binned[row] for row in rows] for rows in (positive, negative)]


def classes_of(sides: Sequence[Sequence[Binned]]) -> tuple[Keys, Keys] | None:
    """Return the keys of both classes, ascending, with repeats; None if they repeat often."""
    total, held = (sum(f(b) for side in sides for b in side) for f in (lambda b: b.total, lambda b: len(b.bins)))
    return (_in_order(sides[0]), _in_order(sides[1])) if total <= SPARSE * held else None


def tally_together(sides: Sequence[Sequence[Binned]]) -> Tally:
    """Return the tally of both classes, each of which may be in several parts."""
    classes = classes_of(sides)
    if classes is not None:
        return Tally.of_sorted(scores_of(classes[0]), scores_of(classes[1]))
    return tally_of([merge_binned(side) for side in sides])


def tally_of(sides: Sequence[Binned]) -> Tally:
    """Return the tally of the positives and the negatives."""
    keys = merge_binned(sides).bins
    return Tally(scores_of(keys), *(_below(keys, side) for side in sides))


def _below(keys: Keys, side: Binned) -> Counts:
    """Return, for every i, how many trials of a side have one of the `i` lowest keys."""
    counts = np.zeros(len(keys) + 1, dtype=np.int64)
    np.add.at(counts, 1 + np.searchsorted(keys, side.bins), side.each)
    return np.cumsum(counts, out=counts)


def _in_order(side: Sequence[Binned]) -> Keys:
    """Return every key as often as it occurs, ascending."""
    keys = [b.bins if b.counts is None else np.repeat(b.bins, b.counts) for b in side]
    if len(keys) < 2:
        return keys[0] if keys else NO_KEYS
    return ordered(np.concatenate(keys), len(keys))
