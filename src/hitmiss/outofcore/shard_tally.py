"""The tally of a shard: how many of its trials have each score, per cell. It merges exactly."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.finding import Place
from hitmiss.core.score_keys import EXACT, Keys, keys_of
from hitmiss.core.sorting import in_order
from hitmiss.core.text_codes import combined, text_codes
from hitmiss.io.diagnostics import FaultGroup
from hitmiss.outofcore.binned import Binned, KeptKeys, merge_kept
from hitmiss.outofcore.disk import Disk
from hitmiss.outofcore.exact_cells import SPARSE

Cell = tuple[str, ...]
Numbers = NDArray[np.int64]
MOST_CELLS: Final = 200_000
"""The limit on combinations of slices (and units); each costs about a kilobyte, whatever it holds."""
SLOT_BITS: Final = 18
SEED: Final = secrets.randbits(64)
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
CACHED: Final = 2**15
"""Numbers that stay in the cache of a processor."""
SHOWN: Final = 2**14
"""The scores that show whether many trials share a score."""
WAITING: Final = 2**23
"""Bins that may wait to be merged, in 64 to 128 MB."""


@dataclass(frozen=True)
class ShardFact:
    """A counted file: its name, hash (empty in a second pass), size, and what was recognised."""

    name: str
    sha256: str
    rows: int
    bytes: int
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ShardTally:
    """The result of one pass over some shards.

    shards      the files that were counted
    cells       bins and counts of each cell, a value for each column of `ShardPlan.cells`
    ids         hashes of all ids, with their counts, if the plan asks for them
    findings    the faults found; if there are any, the counts must not be used
    noted       counts of what was done while reading: trials dropped or given a score (`on-nan`)
    unlisted    where ids are that the key lacks, some of each shard
    """

    shards: tuple[ShardFact, ...]
    cells: Mapping[Cell, KeptKeys]
    ids: KeptKeys | None = None
    findings: tuple[FaultGroup, ...] = ()
    noted: Mapping[str, int] = field(default_factory=dict)
    unlisted: tuple[Place, ...] = ()

    @property
    def n(self) -> int:
        """The number of trials."""
        return sum(cell.total for cell in self.cells.values())

    @property
    def held(self) -> int:
        """The number of keys in memory."""
        kept = [*self.cells.values(), *([] if self.ids is None else [self.ids])]
        return sum(len(one.bins) for one in kept if isinstance(one, Binned))


def merge_tallies(tallies: Iterable[ShardTally], disk: Disk | None = None) -> ShardTally:
    """Merge the tallies of all shards, made by one plan. Repeated shards are refused.

    Two files with the same bytes are one shard given twice: their trials would be counted twice. `disk` takes what
    does not fit into memory.
    """
    moved: list[ShardTally] = []
    waiting: list[ShardTally] = []
    held, limit = 0, WAITING if disk is None else disk.room
    for tally in tallies:
        waiting.append(tally)
        held += tally.held
        # Merging sorts everything, so it waits until the new part is more than twice as large as the merged one: the
        # size then at least triples with each merge, and a few merges are enough for any number of shards.
        if held > limit:
            waiting = [_merged(waiting)]
            held = waiting[0].held
            limit = max(3 * held, WAITING) if disk is None else limit
            if disk is not None and held > disk.room // 2:
                moved, held = [_merged([*moved, _moved(waiting.pop(), disk)])], 0
    if moved and waiting and disk is not None:
        waiting = [_moved(_merged(waiting), disk)]
    if not (moved or waiting):
        raise DataError.of("no-tally")
    merged = _merged([*moved, *waiting])
    _refuse_twice(merged)
    return merged


def _moved(tally: ShardTally, disk: Disk) -> ShardTally:
    cells = disk.moved({**tally.cells, **({} if tally.ids is None else {(): tally.ids})})
    return replace(tally, ids=cells.pop((), None), cells=cells)


def _refuse_twice(merged: ShardTally) -> None:
    seen: dict[str, str] = {}
    for shard in merged.shards:
        if shard.sha256 and shard.sha256 in seen:
            raise DataError.of("shard-twice", shard_name=shard.name, seen=seen[shard.sha256])
        seen[shard.sha256] = shard.name


def _merged(parts: list[ShardTally]) -> ShardTally:
    """Merge tallies, and empty the list: of what is merged cell by cell, nothing is kept twice."""
    kept: dict[Cell, list[KeptKeys]] = {}
    noted: dict[str, int] = {}
    for part in parts:
        for cell, one in part.cells.items():
            kept.setdefault(cell, []).append(one)
        for name, count in part.noted.items():
            noted[name] = noted.get(name, 0) + count
    ids = [part.ids for part in parts if part.ids is not None]
    shards = sorted((s for part in parts for s in part.shards), key=lambda s: (s.name, s.sha256))
    findings = tuple(f for part in parts for f in part.findings)
    unlisted = tuple(place for part in parts for place in part.unlisted)
    del part
    parts.clear()
    cells = {cell: merge_kept(kept.pop(cell)) for cell in sorted(kept)}
    return ShardTally(tuple(shards), cells, merge_kept(ids) if ids else None, findings, noted, unlisted)


def cells_of(
    cells: Sequence[Cell], code: Numbers, score: NDArray[np.float64], counts: Numbers | None = None
) -> dict[Cell, Binned]:
    """Return the scores of each cell, as they come; `code` is the number of each score's cell.

    Where many trials share a score, they are counted at once.

    >>> found = cells_of([("a",), ("b",)], np.array([0, 1, 0]), np.array([1.0, -0.0, 0.5]), np.array([2, 1, 3]))
    >>> {cell: binned.each.tolist() for cell, binned in found.items()}
    {('a',): [2, 3], ('b',): [1]}
    """
    if not len(score):
        return {}
    numbers = {cell: at for at, cell in enumerate(dict.fromkeys(cells))}
    if len(numbers) < len(cells):  # different spellings of one cell
        code = np.array([numbers[cell] for cell in cells])[code]
    few = numbered((score + 0.0).view(np.uint64)) if counts is None else None  # −0.0 + 0.0 is 0.0
    if few is not None:
        return _cells_of_few(list(numbers), code, score, *few)
    keys = keys_of(score)
    order = np.argsort(code.astype(np.uint16) if len(numbers) < 2**16 else code, kind="stable")  # radix for 16 bits
    ends = np.cumsum(np.bincount(code, minlength=len(numbers)))[:-1]
    split = np.split(keys[order], ends)
    each = [None] * len(numbers) if counts is None else np.split(counts[order], ends)
    found = zip(numbers, split, each, strict=True)
    return {cell: Binned(own, n, is_sorted=False) for cell, own, n in found if len(own)}


def _cells_of_few(
    cells: Sequence[Cell], code: Numbers, score: NDArray[np.float64], place: Numbers, row: Numbers
) -> dict[Cell, Binned]:
    """Return the counts of each cell, if trials share scores: `place` is the number of each score, and `row` one of its rows."""
    keys, size = keys_of(score[row]), len(row)
    pair = code * size + place
    if len(cells) * size <= len(score):
        order = np.argsort(keys)
        each = np.bincount(pair, minlength=len(cells) * size).reshape(-1, size).take(order, axis=1).ravel()
        held, keys = np.flatnonzero(each), keys[order]
        each = each[held]
    else:
        held, each = np.unique(pair, return_counts=True)
    ends = np.searchsorted(held, np.arange(1, len(cells)) * size)
    found = zip(cells, np.split(keys[held % size], ends), np.split(each, ends), strict=True)
    return {cell: Binned(own, n, is_sorted=False) for cell, own, n in found if len(own)}


def numbered(keys: Keys) -> tuple[Numbers, Numbers] | None:
    """Return a number for each key, the same for equal ones, and for each number a row that has it; None if most keys differ.

    >>> keys = np.array([9, 7] * 10, dtype=np.uint64)
    >>> number, row = numbered(keys) or ()
    >>> number[:4].tolist(), keys[row].tolist()
    ([1, 0, 1, 0], [7, 9])
    """
    step = -(-len(keys) // SHOWN) or 1
    some = in_order(keys[::step])
    known = some[np.append(True, some[1:] != some[:-1])[: len(some)]]
    if SPARSE * len(known) >= len(some):
        return None
    # Each key has its own slot in a table, nearly always; the rows of those that have not are looked up one by one. Slots
    # of no known key hold any number: what is found there is never the key.
    slots = np.empty(1 << SLOT_BITS, dtype=np.int64)
    slots[_slot(known)] = np.arange(len(known))
    number, is_other = np.empty(len(keys), dtype=np.int64), np.empty(len(keys), dtype=bool)
    for start in range(0, len(keys), CACHED):
        own = slice(start, start + CACHED)
        slots.take(_slot(keys[own]), out=number[own], mode="clip")
        np.not_equal(known.take(number[own], mode="clip"), keys[own], out=is_other[own])
    others, row = np.flatnonzero(is_other), np.empty(len(known), dtype=np.int64)
    new, at, inverse = np.unique(keys[others], return_index=True, return_inverse=True)
    place = np.searchsorted(known, new)
    is_new = known.take(place, mode="clip") != new
    place[is_new] = len(known) + np.arange(np.count_nonzero(is_new))
    number[others] = place[inverse]
    row[number[::step]] = np.arange(0, len(keys), step)
    return number, np.append(row, others[at[is_new]])


def _slot(keys: Keys) -> Numbers:
    return (keys * _MIX >> np.uint64(EXACT - SLOT_BITS)).view(np.int64)


def refuse_cells(n: int, names: Sequence[str]) -> None:
    """Refuse more cells than can be counted apart."""
    if n > MOST_CELLS:
        raise UsageError.of("too-many-values", names=tuple(names[1:]), MOST_CELLS=MOST_CELLS)


def cell_codes(frame: pl.DataFrame, names: Sequence[str]) -> tuple[Numbers, pl.DataFrame]:
    """Return the number of each row's cell, and the cells."""
    hashes = [frame[name].hash(SEED).to_numpy() for name in names]
    code: Keys = reduce(lambda before, own: before * _MIX + own, hashes)
    # Two cells with one hash are less likely than a faulty memory cell, and nobody can choose them: the seed is another
    # one in each process.
    few = numbered(code)
    if few is None:
        places = [text_codes(frame[name]) for name in names]
        _, row, number = np.unique(
            combined((codes, len(texts)) for codes, texts in places)[0], return_index=True, return_inverse=True
        )
    else:
        number, row = few
    refuse_cells(len(row), names)
    return number, frame.select(names)[row]
