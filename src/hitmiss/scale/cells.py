"""The scores of cells, all of them in memory as keys: what `measure` reads its tallies from where everything was kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hitmiss.core.tally import Tally
from hitmiss.engine.resample import Rows
from hitmiss.scale.plan import Window
from hitmiss.scale.tallies import NOTHING, Binned, Cell, Counts, ShardTally, counted, merge_binned, truncated
from hitmiss.stats.intervals import Steps
from hitmiss.stats.sketch import COARSE, EXACT, Keys, keys_of, scores_of

SPARSE = 4
"""Scores with fewer repeats than this on average are written out one by one: sorting them is the quicker way."""


@dataclass(frozen=True, eq=False)
class ExactCells:
    """Cells of which every score is known."""

    binned: Sequence[Binned]

    def tally(self, positive: Rows, negative: Rows) -> Tally:
        """The scores of some positive and some negative cells, counted together."""
        classes = self.classes(positive, negative)
        if classes is not None:
            return Tally.of_sorted(scores_of(classes[0]), scores_of(classes[1]))
        sides = [merge_binned(side) if side else NOTHING for side in self._sides(positive, negative)]
        keys = np.sort(np.concatenate([side.bins for side in sides]), kind="stable")
        keys = keys[np.append(True, keys[1:] != keys[:-1])[: len(keys)]]
        return Tally(scores_of(keys), *(_below(keys, side) for side in sides))

    def steps(self, positive: Rows, negative: Rows) -> Steps:
        """What the AUC of some cells and its variance need."""
        classes: Any = self.classes(
            positive, negative
        )  # keys stand in the order of the scores, and that is all it needs
        return Steps.of_tally(self.tally(positive, negative)) if classes is None else Steps.of_classes(*classes)

    def classes(self, positive: Rows, negative: Rows) -> tuple[Keys, Keys] | None:
        """The keys of both classes, ascending, each as often as it occurs; None where they repeat much."""
        sides = self._sides(positive, negative)
        total, held = (sum(f(b) for side in sides for b in side) for f in (lambda b: b.total, lambda b: len(b.bins)))
        return (_in_order(sides[0]), _in_order(sides[1])) if total <= SPARSE * held else None

    def _sides(self, positive: Rows, negative: Rows) -> list[list[Binned]]:
        return [[self.binned[row] for row in rows] for rows in (positive, negative)]


@dataclass(frozen=True, eq=False)
class Resident:
    """Cells of which every score is known, asked for windows of them as if they had to be fetched."""

    plan: str
    names: tuple[str, ...]
    cells: Mapping[Cell, Binned]

    def __call__(self, window: Window) -> ShardTally:
        """The trials in a window."""
        found = {cell: self._within(binned, window) for cell, binned in self.cells.items()}
        return ShardTally(self.plan, self.names, (), {cell: b for cell, b in found.items() if len(b.bins)})

    def _within(self, binned: Binned, window: Window) -> Binned:
        first, last = (keys_of([ends[i] for ends in window.ranges or ()]) for i in (0, 1))
        starts = np.searchsorted(binned.bins, first, side="left")
        ends = np.searchsorted(binned.bins, last, side="right")
        where = np.concatenate([np.zeros(0, dtype=np.intp), *map(np.arange, starts, ends)])
        keys = truncated(binned.bins[where], window.bits, window.cuts)
        return summed(keys, None if binned.counts is None else binned.counts[where])


def coarsened(binned: Binned, cuts: tuple[float, ...]) -> Binned:
    """The same trials by the coarsest bins."""
    starts = np.append(0, np.flatnonzero(np.diff(binned.bins >> np.uint64(EXACT - COARSE))) + 1)
    starts = np.unique(np.append(starts, np.searchsorted(binned.bins, keys_of(list(cuts))) if cuts else []))
    starts = starts[starts < len(binned.bins)].astype(np.intp)
    counts = np.add.reduceat(binned.each, starts) if len(starts) else np.zeros(0, dtype=np.int64)
    return Binned(truncated(binned.bins[starts], COARSE, cuts), counts)


def summed(keys: Keys, counts: Counts | None) -> Binned:
    """Ascending keys with repeats, their counts added up."""
    if counts is None or not len(keys):
        return counted(keys)
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return Binned(keys[starts], np.add.reduceat(counts, starts))


def _below(keys: Keys, side: Binned) -> Counts:
    """How many trials of a side have one of the `i` lowest keys, for every i."""
    counts = np.zeros(len(keys) + 1, dtype=np.int64)
    np.add.at(counts, 1 + np.searchsorted(keys, side.bins), side.each)
    return np.cumsum(counts, out=counts)


def _in_order(side: Sequence[Binned]) -> Keys:
    """Every key as often as it occurs, ascending."""
    keys = [b.bins if b.counts is None else np.repeat(b.bins, b.counts) for b in side]
    if len(keys) < 2:
        return keys[0] if keys else np.zeros(0, dtype=np.uint64)
    return np.sort(np.concatenate(keys), kind="stable")  # it finds the runs that are in order already, and merges them
