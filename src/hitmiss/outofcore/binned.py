"""Keys of scores with their counts: in memory (`Binned`), or as several runs on disk (`Several`)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.score_keys import COARSE, EXACT, Keys, bins_of, first_key, keys_of
from hitmiss.core.sorting import in_order, let_go

Counts = NDArray[np.int64]
Cell = TypeVar("Cell", bound=Hashable)
LOWEST: Final = keys_of([-np.inf])[0]
HIGHEST: Final = np.uint64(2**64 - 1)
NO_KEYS: Final[Keys] = np.zeros(0, dtype=np.uint64)
FEW_RUNS: Final = 16
"""So many ascending runs are merged in less time than they are sorted."""


@dataclass(frozen=True, eq=False)
class Binned:
    """Keys (or the lowest keys of bins), ascending, and the number of trials with each; None: one each.

    `is_sorted` is false for keys as they were read, in any order and with repeats; merging sorts them.
    """

    bins: Keys
    counts: Counts | None = None
    is_sorted: bool = True

    @property
    def total(self) -> int:
        """The number of trials."""
        return len(self.bins) if self.counts is None else int(self.counts.sum())

    @property
    def each(self) -> Counts:
        """The number of trials at each key."""
        return np.ones(len(self.bins), dtype=np.int64) if self.counts is None else self.counts

    @property
    def ends(self) -> tuple[np.uint64, np.uint64]:
        """The lowest and the highest key."""
        return self.bins[0], self.bins[-1]

    def between(self, first: np.uint64, last: np.uint64) -> Binned:
        """Return the trials from one key to another, both included."""
        own = slice(int(np.searchsorted(self.bins, first)), int(np.searchsorted(self.bins, last, side="right")))
        return Binned(self.bins[own], None if self.counts is None else self.counts[own])

    def pieces(self, first: np.uint64, last: np.uint64) -> list[Binned]:
        """Return the same as a list."""
        return [self.between(first, last)]

    def coarse(self, cuts: tuple[float, ...]) -> Binned:
        """Return the same trials in the coarsest bins; a cut begins a new bin."""
        return self.by_bits(COARSE, cuts)

    def by_bits(self, bits: int, cuts: tuple[float, ...]) -> Binned:
        """Return the same trials in bins of so many bits."""
        if bits == EXACT or not len(self.bins):
            return self
        changed = np.diff(self.bins >> np.uint64(EXACT - bits)) != 0
        starts = np.flatnonzero(np.append(True, changed))
        if cuts:
            starts = np.unique(np.append(starts, np.searchsorted(self.bins, keys_of(cuts))))
            starts = starts[starts < len(self.bins)]
        sums = (
            np.diff(np.append(starts, len(self.bins))) if self.counts is None else np.add.reduceat(self.counts, starts)
        )
        return Binned(truncated(self.bins[starts], bits, cuts), sums)


NOTHING: Final = Binned(NO_KEYS)


@dataclass(frozen=True, eq=False)
class Several:
    """The trials of several runs on disk (memory maps), and how many of them are in each of the coarsest bins."""

    parts: tuple[Binned, ...]
    bins: Binned

    @property
    def total(self) -> int:
        """The number of trials."""
        return self.bins.total

    @property
    def ends(self) -> tuple[np.uint64, np.uint64]:
        """The lowest and the highest key."""
        return min(part.ends[0] for part in self.parts), max(part.ends[1] for part in self.parts)

    def between(self, first: np.uint64, last: np.uint64) -> Binned:
        """Return the trials from one key to another, both included."""
        return merge_binned(self.pieces(first, last))

    def pieces(self, first: np.uint64, last: np.uint64) -> list[Binned]:
        """Return the same, run by run, each in memory."""
        found = []
        for part in self.parts:
            own = part.between(first, last)
            found.append(Binned(np.array(own.bins), None if own.counts is None else np.array(own.counts)))
            let_go(part.bins)
        return found

    def coarse(self, _: tuple[float, ...]) -> Binned:
        """Return the same trials in the coarsest bins, which were counted when they were written."""
        return self.bins


KeptKeys = Binned | Several
"""The scores of a cell, wherever they are."""


def merge_kept(parts: Sequence[KeptKeys]) -> KeptKeys:
    """Return the trials of all parts, which are all in memory or all on disk."""
    runs = [part for part in parts if isinstance(part, Several)]
    if not runs:
        return merge_binned([part for part in parts if isinstance(part, Binned)])
    return Several(tuple(run for part in runs for run in part.parts), merge_binned([part.bins for part in runs]))


def merge_binned(parts: Sequence[Binned]) -> Binned:
    """Add up the counts of equal keys.

    >>> a, b = Binned(np.array([1, 4], dtype=np.uint64)), Binned(np.array([4, 9], dtype=np.uint64))
    >>> merge_binned([a, b]).bins.tolist(), merge_binned([a, b]).each.tolist()
    ([1, 4, 9], [1, 2, 1])
    """
    parts = [part for part in parts if len(part.bins)] or [NOTHING]
    if len(parts) == 1 and parts[0].is_sorted:
        return parts[0]
    single, counted = ([part for part in parts if (part.counts is None) == is_single] for is_single in (True, False))
    if single and counted:  # many trials of few scores are counted before they are merged with others
        own = merge_binned(single)
        parts = [Binned(own.bins, own.each), *counted]
    keys = np.concatenate([part.bins for part in parts])
    if not counted:
        return _summed(ordered(keys, len(parts) if all(part.is_sorted for part in parts) else None), None)
    order = np.argsort(keys, kind="stable")
    return _summed(keys[order], np.concatenate([part.each for part in parts])[order])


def _summed(keys: Keys, counts: Counts | None) -> Binned:
    """Add up the counts of ascending keys with repeats."""
    is_first = np.append(True, keys[1:] != keys[:-1])[: len(keys)]
    if is_first.all():
        return Binned(keys, counts)
    starts = np.flatnonzero(is_first)
    sums = np.diff(np.append(starts, len(keys))) if counts is None else np.add.reduceat(counts, starts)
    return Binned(keys[starts], sums)


def ordered(keys: Keys, runs: int | None = None) -> Keys:
    """Sort keys in ascending order; `runs` is how many ascending runs they consist of, if that is known."""
    if runs is not None and runs <= FEW_RUNS:
        return np.sort(keys, kind="stable")  # finds the runs and merges them
    return in_order(keys)


def truncated(keys: Keys, bits: int, cuts: tuple[float, ...]) -> Keys:
    """Return the lowest key of each key's bin; a cut begins a new bin.

    >>> truncated(keys_of([1.0, 1.3, 1.4]), 14, (1.35,)) == keys_of([1.0, 1.25, 1.35])
    array([ True,  True,  True])
    """
    if bits == EXACT:
        return keys
    lowest: Keys = np.maximum(first_key(bins_of(keys, bits), bits), LOWEST)
    for cut in keys_of(sorted(cuts)) if cuts else ():
        lowest[(keys >= cut) & (lowest < cut)] = cut
    return lowest


Ends = tuple[np.uint64, np.uint64]
"""The first and the last key of a stretch."""


def stretches(binned: Sequence[Binned], rows: int) -> list[Ends]:
    """Return stretches with about `rows` trials each, from low to high; a stretch begins at the start of a bin.

    >>> b = Binned(np.array([5, 7, 9], dtype=np.uint64), np.array([4, 4, 4]))
    >>> [(int(first), int(last)) for first, last in stretches([b], 8)] == [(0, 8), (9, int(HIGHEST))]
    True
    """
    every = merge_binned(binned)
    number = (np.cumsum(every.each) - 1) // max(rows, 1)
    first = np.append(np.uint64(0), every.bins[np.flatnonzero(number[1:] != number[:-1]) + 1])
    return list(zip(first, np.append(first[1:] - np.uint64(1), HIGHEST), strict=True))
