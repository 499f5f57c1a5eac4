"""Every score of all shards once more, in ascending order, a stretch at a time: two readings, however many there are.

The first reading puts the keys on disk in parts by their range (`spilling`), each small enough for the memory; the
second takes one part after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hitmiss.core import progress
from hitmiss.core.errors import DataError
from hitmiss.scale.counters import CHANGED
from hitmiss.scale.passes import second_pass, spill_pass
from hitmiss.scale.plan import KeyRanges, Shard, ShardPlan
from hitmiss.scale.running import Executor, shares_disk
from hitmiss.scale.spilling import Codes, Parts, Writer, code_type, scratch_folder
from hitmiss.scale.tallies import Binned, Cell, counted, merge_binned, ordered
from hitmiss.stats.sketch import Keys

STRETCH_BYTES: Final = 128
"""What a score costs while its stretch is worked on: its key, copies of it while it is sorted, and its place in tallies."""
MOST: Final = 60_000
"""Parts; each is a file or two."""


@dataclass(frozen=True)
class Stretches:
    """The scores of shards, stretch by stretch: `Stretches(…)(binned)` gives the scores of each cell, from low to high.

    `rows` is how many rows the longest shard has, `scratch` the folder in which a folder for a while is made.
    """

    shards: Sequence[Shard]
    plan: ShardPlan
    run: Executor
    cells: tuple[Cell, ...]
    rows: int
    memory: int
    scratch: str | None = None

    def __call__(self, binned: Sequence[Binned]) -> Iterator[list[Binned]]:
        """All stretches; `binned` tells about how many trials lie where. Close it where it is left before its end."""
        n = sum(b.total for b in binned)
        most = max(self.memory // STRETCH_BYTES, 1)
        code = code_type(len(self.cells))
        with scratch_folder(self.scratch, n * (8 + np.dtype(code or "V0").itemsize)) as folder:
            parts = Parts(folder, firsts_of(binned, max(most, n // MOST)), code)
            self._put(parts)
            if sum(map(parts.size, range(len(parts)))) != n:
                raise DataError(CHANGED)
            for part in progress.each(range(len(parts)), "reading sums over all scores"):
                yield cells_of(parts, part, len(self.cells), 2 * most)
                parts.drop(part)

    def _put(self, parts: Parts) -> None:
        rows = 0
        for done, n in enumerate(self._written(parts), 1):
            rows += n
            progress.tell(f"scores put in order: {rows:,} rows", done, len(self.shards))

    def _written(self, parts: Parts) -> Iterator[int]:
        if shares_disk(self.run):
            yield from self.run(spill_pass, [(shard, self.plan, parts, self.cells) for shard in self.shards])
            return
        # Others need not see the folder: they send their scores, as many at a time as the memory allows.
        number = {cell: i for i, cell in enumerate(self.cells)}
        calls = [call for shard in self.shards for call in self._calls(shard, parts)]
        writer = Writer(parts)
        for tally in self.run(second_pass, calls):
            for cell, found in tally.cells.items():
                keys = np.repeat(found.bins, found.each)
                writer.add(keys, np.full(len(keys), number[cell]) if parts.code else None)
            writer.flush()
            yield tally.n

    def _calls(self, shard: Shard, parts: Parts) -> Iterator[tuple[Shard, ShardPlan, KeyRanges]]:
        n = min(-(-self.rows * STRETCH_BYTES // self.memory), len(parts))
        starts = [parts.first[i * len(parts) // n] for i in range(n)]
        for first, after in zip(starts, [*starts[1:], 2**64], strict=True):
            yield shard, self.plan, KeyRanges.of_all(first, after - 1)


def firsts_of(binned: Sequence[Binned], rows: int) -> tuple[int, ...]:
    """The lowest keys of stretches with about so many trials each; a stretch begins where a bin does.

    >>> b = Binned(np.array([5, 7, 9], dtype=np.uint64), np.array([4, 4, 4]))
    >>> firsts_of([b], 8), firsts_of([b], 100)
    ((0, 9), (0,))
    """
    keys = np.concatenate([b.bins for b in binned])
    bins, place = np.unique(keys, return_inverse=True)
    total = np.cumsum(np.bincount(place, weights=np.concatenate([b.each for b in binned]), minlength=len(bins)))
    number = (total - 1) // rows
    starts = np.flatnonzero(number[1:] != number[:-1]) + 1
    return (0, *(int(key) for key in bins[starts]))


def cells_of(parts: Parts, part: int, n_cells: int, most: int) -> list[Binned]:
    """The scores of a part, cell by cell, ascending. Where more than fit share few values, they are counted as they come."""
    found = [Binned(np.zeros(0, dtype=np.uint64))] * n_cells
    for keys, codes in parts.read(part, most):
        for cell, own in enumerate(_by_cell(keys, codes, n_cells)):
            if len(own):
                fresh = counted(ordered(own))
                found[cell] = merge_binned([found[cell], fresh]) if len(found[cell].bins) else fresh
    return found


def _by_cell(keys: Keys, codes: Codes, n_cells: int) -> list[Keys]:
    if n_cells == 1:
        return [keys]
    grouped = keys[np.argsort(codes, kind="stable")]
    return np.split(grouped, np.cumsum(np.bincount(codes, minlength=n_cells))[:-1])
