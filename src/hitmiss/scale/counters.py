"""Counting keys cell by cell in little memory: into bins, or every key kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import DataError
from hitmiss.core.tally import Floats
from hitmiss.scale.spilling import Parts, Writer
from hitmiss.scale.tallies import Binned, Cell, counted, merge_binned, ordered
from hitmiss.stats.sketch import EXACT, Keys, bins_of, first_key, keys_of

Codes = NDArray[np.int64]
NEW: Final = -1
APART: Final = -2
STEP: Final = 1 << 15
BATCH: Final = 1 << 19
"""Trials that wait to be counted together."""
MANY: Final = 1 << 21
"""Keys after which it is looked whether they share few values."""
SAMPLE: Final = 1 << 10
MOST_COUNTS: Final = 2**24
"""Counters that a table may have, 4 bytes each; beyond that most would be 0, and only those that are not are held."""
SPAN: Final = 2**32
NOTHING: Final = Binned(np.zeros(0, dtype=np.uint64))
CHANGED: Final = "the files changed while they were read; evaluate them again when nobody writes to them"
_LOWEST: Final = keys_of([-np.inf])[0]


class Counter(Protocol):
    """Counts scores by the cell that they belong to (0, 1, 2 …)."""

    def add(self, cell: Codes, score: Floats) -> None:
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
    """Every key kept, or its highest bits, sorted at the end; where many share few values they are counted on the way."""

    def __init__(self, bits: int = EXACT, cuts: tuple[float, ...] = ()) -> None:
        self._bits, self._cuts = bits, cuts
        self._parts: list[list[Keys]] = []
        self._counted: dict[int, Binned] = {}
        self._held = 0

    def add(self, cell: Codes, score: Floats) -> None:
        """Keep some trials."""
        for start in range(0, len(score), STEP):  # what is worked on stays in the cache
            self._add(cell[start : start + STEP], score[start : start + STEP])

    def _add(self, cell: Codes, score: Floats) -> None:
        keys = truncated(keys_of(score), self._bits, self._cuts)
        sizes = np.bincount(cell)
        self._parts += [[] for _ in range(len(sizes) - len(self._parts))]
        small = cell.astype(np.uint16) if len(sizes) < 2**16 else cell  # small integers are sorted by radix
        keys = keys[np.argsort(small, kind="stable")]
        ends = np.cumsum(sizes).tolist()
        for place in np.flatnonzero(sizes).tolist():
            self._parts[place].append(keys[ends[place] - sizes[place] : ends[place]])
        self._held += len(keys)
        if self._held >= MANY:
            if len(np.unique(keys[:: len(keys) // SAMPLE + 1])) < SAMPLE // 4:
                self._count()
            self._held = 0

    def _count(self) -> None:
        for place, parts in enumerate(self._parts):
            if parts:
                fresh = counted(ordered(np.concatenate(parts)))
                known = self._counted.get(place)
                self._counted[place] = fresh if known is None else merge_binned([known, fresh])
                parts.clear()

    def result(self) -> list[Binned]:
        """All keys of each cell."""
        self._count()
        return [self._counted.get(place, NOTHING) for place in range(len(self._parts))]


class IntoBins:
    """Counts per bin in a dense table with one column a bin that occurs: few bins do, so it stays small.

    The highest bits of a score as they stand name its bin too, if not in order: bins are put in order at the end. Only
    −0.0 and the bins that a cut goes through need a closer look; their trials are counted apart.
    """

    def __init__(self, bits: int, cuts: tuple[float, ...]) -> None:
        self._bits = bits
        self._mask = np.int64((1 << bits) - 1)
        self._column = np.full(1 << bits, NEW, dtype=np.int32)
        self._column[self._places(np.array([-0.0, *cuts]))] = APART
        self._apart = KeepAll(bits, cuts)
        self._bins: list[int] = []
        self._counts: NDArray[Any] = np.zeros((1, 1 << 12), dtype=np.uint32)
        self._flat = np.empty(BATCH, dtype=np.int64)
        self._waiting = self._total = 0
        self._few: Few | None = None

    def _places(self, score: Floats) -> Codes:
        """The highest bits of scores, as they stand."""
        place = score.view(np.int64) >> np.int64(EXACT - self._bits)
        place &= self._mask
        return place

    def add(self, cell: Codes, score: Floats) -> None:
        """Count some trials."""
        if not len(score):
            return
        self._make_room(int(cell.max()) + 1)
        for start in range(0, len(score), STEP):  # what is worked on stays in the cache
            self._add(cell[start : start + STEP], score[start : start + STEP])

    def _add(self, cell: Codes, score: Floats) -> None:
        place = self._places(score)
        column = self._column[place]
        if column.min() < 0:
            apart = column == APART
            if apart.any():
                self._apart.add(cell[apart], score[apart])
                cell, place, column = cell[~apart], place[~apart], column[~apart]
            new = np.flatnonzero(column == NEW)
            if len(new):
                self._enlist(place[new])
                column[new] = self._column[place[new]]
        if self._waiting + len(cell) > BATCH:
            self._settle()
        flat = self._flat[self._waiting : self._waiting + len(cell)]
        np.multiply(cell, SPAN if self._few is not None else self._counts.shape[1], out=flat)
        flat += column
        self._waiting += len(cell)

    def _settle(self) -> None:
        """Count what waits: of many at once, a histogram takes a fraction of what adding one by one does."""
        waiting = self._flat[: self._waiting]
        self._total += len(waiting)
        if self._few is not None:
            self._few.add(waiting)
            self._waiting = 0
            return
        if self._total >= 2**32 and self._counts.itemsize < 8:
            self._counts = self._counts.astype(np.uint64)
        counts = self._counts.reshape(-1)
        if len(counts) <= BATCH:
            counts += np.bincount(waiting, minlength=len(counts)).astype(counts.dtype)
        else:
            np.add.at(counts, waiting, counts.dtype.type(1))
        self._waiting = 0

    def _enlist(self, places: Codes) -> None:
        at = np.arange(len(places), dtype=np.int32)
        self._column[places] = at  # of equal places the last one stays: one of each is told without a sort
        new = places[self._column[places] == at]
        self._column[new] = np.arange(len(self._bins), len(self._bins) + len(new))
        self._bins += new.tolist()
        self._make_room(1)

    def _make_room(self, cells: int) -> None:
        rows, columns = self._counts.shape
        if self._few is not None or (cells <= rows and len(self._bins) <= columns):
            return
        shape = (max(rows, 1 << (cells - 1).bit_length()), max(columns, 1 << (len(self._bins) - 1).bit_length()))
        self._settle()
        if shape[0] * shape[1] > MOST_COUNTS:
            self._few = Few.of_table(self._counts)
            self._counts = self._counts[:0]
            return
        wider = np.zeros(shape, dtype=self._counts.dtype)
        wider[:rows, :columns] = self._counts
        self._counts = wider

    def result(self) -> list[Binned]:
        """Bins and counts of each cell."""
        self._settle()
        lowest = self._lowest()
        order = np.argsort(lowest)
        if self._few is not None:
            found = self._few.result(lowest)
        else:
            found = []
            for row in self._counts[:, : len(lowest)]:
                held = order[row[order] > 0]
                found.append(Binned(lowest[held], row[held].astype(np.int64)))
        apart = self._apart.result()
        found += [NOTHING] * (len(apart) - len(found))
        return [merge_binned([b, apart[i]]) if i < len(apart) else b for i, b in enumerate(found)]

    def _lowest(self) -> Keys:
        """The lowest key of each bin that occurs: the bits in order, and nothing below −inf, where there are only NaNs."""
        place, sign = np.array(self._bins, dtype=np.uint64), np.uint64(1 << (self._bits - 1))
        bins = np.where(place < sign, place | sign, ~place & np.uint64(self._mask))
        lowest: Keys = np.maximum(first_key(bins, self._bits), _LOWEST)
        return lowest


class Few:
    """Counts of the pairs of a cell and a bin that occur, for very many cells: `cell · SPAN + bin`, ascending."""

    def __init__(self, pairs: Codes, counts: Codes) -> None:
        self._held = [(pairs, counts)]
        self._waiting = 0

    @classmethod
    def of_table(cls, counts: NDArray[Any]) -> Few:
        """What a table holds."""
        rows, columns = np.nonzero(counts)
        return cls(rows * SPAN + columns, counts[rows, columns].astype(np.int64))

    def add(self, pairs: Codes) -> None:
        """Count some trials."""
        distinct, counts = np.unique(pairs, return_counts=True)
        self._held.append((distinct, counts.astype(np.int64)))
        self._waiting += len(distinct)
        if self._waiting > len(self._held[0][0]) + BATCH:  # merging sorts: it is put off until there is enough to merge
            self._merge()

    def _merge(self) -> None:
        pairs, counts = (np.concatenate(column) for column in zip(*self._held, strict=True))
        order = np.argsort(pairs, kind="stable")
        pairs, counts = pairs[order], counts[order]
        starts = np.flatnonzero(np.append(True, pairs[1:] != pairs[:-1])) if len(pairs) else np.zeros(0, dtype=np.intp)
        self._held = [(pairs[starts], np.add.reduceat(counts, starts) if len(starts) else counts)]
        self._waiting = 0

    def result(self, lowest: Keys) -> list[Binned]:
        """The bins of each cell, given the lowest key of each bin."""
        self._merge()
        pairs, counts = self._held[0]
        cells, bins = np.divmod(pairs, SPAN)
        ends = np.cumsum(np.bincount(cells)).tolist()
        found = []
        for start, end in zip([0, *ends[:-1]], ends, strict=True):
            keys = lowest[bins[start:end]]
            order = np.argsort(keys)
            found.append(Binned(keys[order], counts[start:end][order]))
        return found


class ToDisk:
    """Nothing counted: the key of every trial is put on disk, with the place of its cell among all cells."""

    def __init__(self, parts: Parts, cells: tuple[Cell, ...]) -> None:
        self._parts = parts
        self._place = {cell: place for place, cell in enumerate(cells)}
        self._writer: Writer | None = None

    def begun(self, known: Mapping[Cell, int]) -> ToDisk:
        """From the beginning of a file; what was put before is taken back. `known` numbers the cells as they are met."""
        if self._writer is not None:
            self._writer.discard()
        self._writer, self._known = Writer(self._parts), known
        self._number = np.zeros(0, dtype=np.int64)
        return self

    def add(self, cell: Codes, score: Floats) -> None:
        """Put some trials."""
        assert self._writer is not None
        if len(self._known) > len(self._number):
            self._number = np.array([self._place.get(known, -1) for known in self._known], dtype=np.int64)
        place = self._number[cell]
        if len(place) and place.min() < 0:
            raise DataError(CHANGED)
        self._writer.add(keys_of(score), place if self._parts.code else None)

    def result(self) -> list[Binned]:
        """Nothing but that everything is written."""
        assert self._writer is not None
        self._writer.flush()
        return []
