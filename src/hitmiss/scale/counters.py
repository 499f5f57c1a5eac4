"""Counting keys cell by cell in little memory: into bins, or every key kept."""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from hitmiss.errors import DataError
from hitmiss.scale.tallies import Binned, counted, merge_binned, ordered
from hitmiss.stats.keys import EXACT, Keys, bins_of, first_key, keys_of

Codes = NDArray[np.int64]
MOST_COUNTS: Final = 2**27
"""Counters that a pass may hold; 4 bytes each."""
_LOWEST: Final = keys_of([-np.inf])[0]
FLUSH: Final = 2**21
"""Keys that wait to be sorted."""


class Counter(Protocol):
    """Counts keys by the cell that they belong to (0, 1, 2 …)."""

    def add(self, cell: Codes, keys: Keys) -> None:
        """Count some trials."""

    def result(self) -> list[Binned]:
        """The bins of each cell, ascending, named by their lowest key."""


def counter(bits: int, cuts: tuple[float, ...]) -> Counter:
    """The counter of a plan."""
    return KeepAll() if bits == EXACT else IntoBins(bits, cuts)


def truncated(keys: Keys, bits: int, cuts: tuple[float, ...]) -> Keys:
    """The lowest key of each key's bin; a cut begins a bin of its own.

    >>> truncated(keys_of([1.0, 1.3, 1.4]), 14, (1.35,)) == keys_of([1.0, 1.25, 1.35])
    array([ True,  True,  True])
    """
    if bits == EXACT:
        return keys
    lowest: Keys = np.maximum(first_key(bins_of(keys, bits), bits), _LOWEST)
    for cut in keys_of(sorted(cuts)) if cuts else ():
        lowest[(keys >= cut) & (lowest < cut)] = cut
    return lowest


class KeepAll:
    """Every key kept, sorted at the end."""

    def __init__(self) -> None:
        self._parts: list[list[Binned]] = []
        self._waiting: list[tuple[Codes, Keys]] = []
        self._n = 0

    def add(self, cell: Codes, keys: Keys) -> None:
        """Keep some trials."""
        self._waiting.append((cell, keys))
        self._n += len(keys)
        if self._n >= FLUSH:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        cell, keys = (np.concatenate(part) for part in zip(*self._waiting, strict=True))
        self._waiting, self._n = [], 0
        size = int(cell.max()) + 1
        small = cell.astype(np.uint16) if size < 2**16 else cell  # small integers are sorted by radix
        order = np.argsort(small, kind="stable")
        ends = np.cumsum(np.bincount(cell, minlength=size))
        self._parts += [[] for _ in range(size - len(self._parts))]
        for place, part in enumerate(np.split(keys[order], ends[:-1])):
            if len(part):
                self._parts[place].append(counted(ordered(part)))

    def result(self) -> list[Binned]:
        """All keys of each cell."""
        self._flush()
        found = []
        for place, parts in enumerate(self._parts):
            found.append(merge_binned(parts) if parts else Binned(np.zeros(0, dtype=np.uint64)))
            self._parts[place] = []
        return found


class IntoBins:
    """Counts per bin in a dense table with one column a bin that occurs: few bins do, so it stays small."""

    def __init__(self, bits: int, cuts: tuple[float, ...]) -> None:
        self._bits = bits
        self._cuts = np.unique(keys_of(list(cuts))) if cuts else np.zeros(0, dtype=np.uint64)
        self._column = np.full((1 << bits) + len(self._cuts), -1, dtype=np.int32)
        self._bins: list[int] = []
        self._counts = np.zeros((1, 1 << 12), dtype=np.uint32)

    def add(self, cell: Codes, keys: Keys) -> None:
        """Count some trials."""
        if not len(keys):
            return
        place = bins_of(keys, self._bits).astype(np.int64)
        for i, cut in enumerate(self._cuts):  # the part of its bin that lies above a cut is a bin of its own
            place[(keys >= cut) & (keys <= self._last_key(int(cut)))] = (1 << self._bits) + i
        column = self._column[place]
        new = column < 0
        if new.any():
            self._enlist(np.unique(place[new]))
            column = self._column[place]
        self._make_room(int(cell.max()) + 1)
        np.add.at(self._counts.reshape(-1), cell * self._counts.shape[1] + column, np.uint32(1))

    def _last_key(self, key: int) -> np.uint64:
        """The last key of the bin that a key lies in."""
        return np.uint64(key | ((1 << (EXACT - self._bits)) - 1))

    def _enlist(self, places: NDArray[np.int64]) -> None:
        self._column[places] = np.arange(len(self._bins), len(self._bins) + len(places))
        self._bins += places.tolist()

    def _make_room(self, cells: int) -> None:
        rows, columns = self._counts.shape
        if cells <= rows and len(self._bins) <= columns:
            return
        shape = (max(rows, 1 << (cells - 1).bit_length()), max(columns, 1 << (len(self._bins) - 1).bit_length()))
        if shape[0] * shape[1] > MOST_COUNTS:
            raise DataError(
                f"{cells:,} combinations of slices with {len(self._bins):,} bins of scores are too many to count at a time; "
                "group by fewer columns at once"
            )
        wider = np.zeros(shape, dtype=np.uint32)
        wider[:rows, :columns] = self._counts
        self._counts = wider

    def result(self) -> list[Binned]:
        """Bins and counts of each cell."""
        places = np.array(self._bins, dtype=np.uint64)
        is_cut = places >= np.uint64(1 << self._bits)
        lowest = first_key(np.where(is_cut, np.uint64(0), places), self._bits)
        lowest = np.maximum(lowest, _LOWEST)  # below −inf there are only NaNs
        lowest[is_cut] = self._cuts[(places[is_cut] - np.uint64(1 << self._bits)).astype(np.int64)]
        order = np.argsort(lowest)
        found = []
        for row in self._counts[:, : len(places)]:
            held = order[row[order] > 0]
            found.append(Binned(lowest[held], row[held].astype(np.int64)))
        return found
