"""Cells of which only bins of scores were counted, and what is fetched so that every figure is that of the scores.

1  A rehearsal of the measurement tells which samples will be asked for (`Rehearsal`).
2  Bins that hold too much of a sample are counted again, finer (`refine`).
3  The scores of leaves in which a crossing or a least cost can lie are fetched (`fetch`).
4  Figures that need every score (AUC, Cllr, PAV) are read as the scores pass by, a stretch at a time (see `sums`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import DataError
from hitmiss.core.tally import Tally
from hitmiss.engine.measure import ties_differ
from hitmiss.engine.resample import Rows
from hitmiss.scale.cells import ExactCells
from hitmiss.scale.plan import Window
from hitmiss.scale.sums import SampleKey
from hitmiss.scale.tallies import Binned, Cell, ShardTally, ranges_of
from hitmiss.stats.forms import Form, ReadTally
from hitmiss.stats.intervals import Steps
from hitmiss.stats.sketch import (
    COARSE,
    EXACT,
    LEVELS,
    Keys,
    bins_of,
    condense,
    first_key,
    heavy_bins,
    keys_of,
    leaves,
    opened,
    thresholds,
)

Fetch = Callable[[Window], ShardTally]
"""Makes a second pass over all shards and merges what it finds."""
TIED: Final = 32
"""A bin of so many bits that is still heavy is probably one score that many trials share: its scores are fetched."""
NO_KEYS: Final[Keys] = np.zeros(0, dtype=np.uint64)
ROW_BYTES: Final = 96
"""What a fetched score costs while it is worked on: its key, twice more while it is sorted, and its place in a tally."""


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """Stands in for the scores while `measure` is rehearsed, and remembers which samples were asked for."""

    cells: ExactCells
    asked: dict[SampleKey, Tally] = field(default_factory=dict)

    def tally(self, positive: Rows, negative: Rows) -> Tally:
        """The bins of some cells as if they were scores."""
        key = _key(positive, negative)
        if key not in self.asked:
            self.asked[key] = self.cells.tally(positive, negative)
        return self.asked[key]

    def steps(self, positive: Rows, negative: Rows) -> Steps:
        """The same for an AUC."""
        return Steps.of_tally(self.tally(positive, negative))


@dataclass(frozen=True, eq=False)
class CoarseCells:
    """Cells with scores where they matter and bins elsewhere, and the figures that needed every score."""

    cells: ExactCells
    forms: tuple[Form, ...]
    figures: Mapping[SampleKey, Mapping[Form, float]] = field(default_factory=dict)
    areas: Mapping[SampleKey, Steps] = field(default_factory=dict)
    tied: Mapping[SampleKey, float] = field(default_factory=dict)
    resident: ExactCells | None = None
    """All scores, where they are there."""

    def tally(self, positive: Rows, negative: Rows) -> Tally:
        """The tally of some cells, short, with its figures."""
        short = condense(self.cells.tally(positive, negative), self.forms)
        key = _key(positive, negative)
        tied = self.tied.get(key)
        if self.resident is not None and short.has_both_classes and ties_differ(short):
            tied = self.resident.tally(positive, negative).tied_mass
        return ReadTally(short.score, short.positives, short.negatives, self.figures.get(key, {}), tied)

    def steps(self, positive: Rows, negative: Rows) -> Steps:
        """The area under the curve of some cells; of their bins where nothing depends on its digits."""
        found = self.areas.get(_key(positive, negative))
        if found is None and self.resident is not None:
            return self.resident.steps(positive, negative)
        return found if found is not None else Steps.of_tally(self.cells.tally(positive, negative))


def _key(positive: Rows, negative: Rows) -> SampleKey:
    return tuple(positive.tolist()), tuple(negative.tolist())


def refine(
    binned: list[Binned],
    cells: Sequence[Cell],
    asked: Mapping[SampleKey, Tally],
    fetch: Fetch,
    cuts: tuple[float, ...] = (),
) -> tuple[list[Binned], Mapping[SampleKey, Tally]]:
    """Bins that are heavy in some sample counted again by finer bins, level by level; and the tallies of the samples."""
    for bits, finer in pairwise(LEVELS):
        wanted: dict[int, list[Keys]] = {}
        for (positive, negative), tally in asked.items():
            heavy = heavy_bins(tally, bits)
            for row in (*positive, *negative) if len(heavy) else ():
                wanted.setdefault(row, []).append(heavy)
        if not wanted:
            break
        width = np.uint64((1 << (EXACT - bits)) - 1)
        firsts = {row: np.unique(np.concatenate(keys)) for row, keys in wanted.items()}
        ranges = {row: (keys, keys | width) for row, keys in firsts.items()}
        is_tied = bits >= TIED
        every = ranges_of(*_union(list(ranges.values()), binned))
        binned = _replaced(binned, cells, ranges, fetch(Window(EXACT if is_tied else finer, every, cuts)))
        asked = {key: _tally(ExactCells(binned), key) for key in asked}
        if is_tied:
            break
    return binned, asked


def _tally(source: ExactCells, key: SampleKey) -> Tally:
    return source.tally(np.array(key[0], dtype=np.intp), np.array(key[1], dtype=np.intp))


def fetch_open(
    binned: list[Binned],
    cells: Sequence[Cell],
    asked: Mapping[SampleKey, Tally],
    forms: Sequence[Form],
    fetch: Fetch,
    memory: int,
) -> list[Binned]:
    """The scores of leaves in which a crossing or a least cost of a sample or its replicates can lie."""
    found: dict[int, list[tuple[Keys, Keys]]] = {}
    for (positive, negative), tally in asked.items():
        starts, lowest = leaves(tally, thresholds(forms))
        is_open = opened(tally, starts, forms)
        first = keys_of(lowest)
        last = np.append(first[1:], np.uint64(2**64 - 1)) - np.uint64(1)
        # A leaf ends with its bin, not where the next one begins: in between another sample may have trials.
        last = np.minimum(last, _end_of_bin(first))
        for row in (*positive, *negative):
            found.setdefault(row, []).append((first[is_open], last[is_open]))
    ranges = {row: _union(parts) for row, parts in found.items()}
    rows = sum(_held(binned[row], *ends) for row, ends in ranges.items())
    if rows * ROW_BYTES > memory:
        raise DataError(
            f"about {rows:,} trials lie where the figures are decided, which is more than the memory allowed; "
            f"raise --memory to {rows * ROW_BYTES / 1e9 + 0.1:.1f}GB, or group by less"
        )
    for first, last in _in_turns(binned, list(ranges.values()), max(memory // ROW_BYTES, 1)):
        inside = {row: _within(ends, first[0], last[-1]) for row, ends in ranges.items()}
        binned = _replaced(binned, cells, inside, fetch(Window(EXACT, ranges_of(first, last))))
    return binned


def _in_turns(binned: Sequence[Binned], ranges: Sequence[tuple[Keys, Keys]], most: int) -> Iterator[tuple[Keys, Keys]]:
    """All ranges together, cut into parts with about so many trials each: a pass fetches those of all cells alike."""
    first, last = _union(ranges, binned)
    if not len(first):
        return
    held = np.array([sum(_held(b, first[i : i + 1], last[i : i + 1]) for b in binned) for i in range(len(first))])
    turn = (np.cumsum(held) - 1) // most
    for number in np.unique(turn):
        yield first[turn == number], last[turn == number]


def _within(ends: tuple[Keys, Keys], low: np.uint64, high: np.uint64) -> tuple[Keys, Keys]:
    """The ranges that lie between two keys: where they are fetched in turns, a range belongs to one turn."""
    chosen = (ends[0] >= low) & (ends[1] <= high)
    return ends[0][chosen], ends[1][chosen]


def needs_whole(forms: Sequence[Form]) -> bool:
    """Whether some form needs every score, and not for its order alone."""
    return any(f.every_score and not f.is_area for f in forms)


def needs_every_score(source: CoarseCells, samples: Iterable[SampleKey], forms: Sequence[Form]) -> bool:
    """Whether a figure, or a warning with a figure in it, cannot do with the scores that were fetched."""
    if any(f.every_score for f in forms):
        return True
    for positive, negative in samples:
        rows = np.array(positive, dtype=np.intp), np.array(negative, dtype=np.intp)
        tally = source.tally(*rows)
        if tally.has_both_classes and (source.steps(*rows).area < 0.51 or ties_differ(tally)):
            return True
    return False


def _replaced(
    binned: Sequence[Binned], cells: Sequence[Cell], ranges: Mapping[int, tuple[Keys, Keys]], fetched: ShardTally
) -> list[Binned]:
    """What lies in the ranges of a cell taken out, and what was fetched of it put in its place."""
    out = []
    for row, cell in enumerate(cells):
        own, (first, last) = binned[row], ranges.get(row, (NO_KEYS, NO_KEYS))
        outside = ~_inside(own.bins, first, last)
        parts = [Binned(own.bins[outside], own.each[outside])]
        if cell in fetched.cells:
            new = fetched.cells[cell]
            mine = _inside(new.bins, first, last)
            parts.append(Binned(new.bins[mine], new.each[mine]))
        out.append(_joined(parts))
    return out


def _joined(parts: Sequence[Binned]) -> Binned:
    bins, counts = np.concatenate([p.bins for p in parts]), np.concatenate([p.each for p in parts])
    order = np.argsort(bins, kind="stable")
    return Binned(bins[order], counts[order])


def _end_of_bin(first: Keys) -> Keys:
    """The last key of the coarsest bin that each key lies in."""
    return first_key(bins_of(first, COARSE), COARSE) | np.uint64((1 << (EXACT - COARSE)) - 1)


def _union(parts: Sequence[tuple[Keys, Keys]], binned: Sequence[Binned] = ()) -> tuple[Keys, Keys]:
    """Ranges that overlap as one; given the bins of all trials, also those with no trial between them."""
    first, last = (np.concatenate([NO_KEYS, *(p[i] for p in parts)]) for i in (0, 1))
    order = np.argsort(first, kind="stable")
    first, last = first[order], np.maximum.accumulate(last[order])
    apart = np.append(True, first[1:] > last[:-1])[: len(first)]
    if binned and len(first):
        bins = np.unique(np.concatenate([b.bins for b in binned]))
        before = np.searchsorted(bins, first[1:], side="left") > np.searchsorted(bins, last[:-1], side="right")
        apart[1:] &= before
    ends = np.append(np.flatnonzero(apart)[1:], len(first)) - 1 if len(first) else np.zeros(0, dtype=np.intp)
    return first[apart], last[ends]


def _inside(keys: Keys, first: Keys, last: Keys) -> NDArray[np.bool_]:
    at = np.searchsorted(first, keys, side="right")
    if not len(first):
        return np.zeros(len(keys), dtype=bool)
    return np.asarray((at > 0) & (keys <= last[np.maximum(at, 1) - 1]))


def _held(binned: Binned, first: Keys, last: Keys) -> int:
    return int(binned.each[_inside(binned.bins, first, last)].sum())
