"""Trials with their units on disk: what whole units are drawn from if memory does not hold every score.

While shards are counted, each trial is written with its cell, which says its label, slices and units; the counts go on
without the units. A sample is then put together on disk in order of score, and `stats.bootstrap` looks at a part of it
at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from tempfile import TemporaryFile
from typing import ClassVar, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core.errors import UsageError
from hitmiss.core.shared import dataclass
from hitmiss.core.tally import Array, Keys, Tally, let_go, scores_of
from hitmiss.engine.resample import Rows, Scored, TalliedTrials
from hitmiss.outofcore.cells import HIGHEST, NO_KEYS, Binned, Counts, writing
from hitmiss.outofcore.plan import Cell, ShardTally
from hitmiss.stats.bootstrap import UnitSample
from hitmiss.stats.intervals import Steps

RUN: Final = 1 << 21
"""The number of trials that are sorted and written at a time."""
STRETCH: Final = 1 << 20
"""The number of trials that are read at a time."""
STEP: Final = 1 << 10
"""Every so many keys on disk, one is looked at to divide all keys into stretches."""
DISK_BYTES: Final = 66
"""The disk space per trial: its key, with the key of its id, its key and cell, and its entries in a sample."""


@dataclass(frozen=True, eq=False)
class _Run:
    """Trials on disk: ascending keys for each group of cells, and the cell of each trial; `ends` of the groups."""

    keys: Keys
    cells: NDArray[np.int32]
    ends: Counts

    def of(self, group: int) -> slice:
        """Return where the trials of a group are."""
        if group >= len(self.ends):  # seen later
            return slice(0, 0)
        return slice(int(self.ends[group - 1]) if group else 0, int(self.ends[group]))


@dataclass(eq=False)
class UnitRuns:
    """The trials of all shards with their cells. Cells that differ only in units are one group.

    names    the columns that define the cells
    units    those that nothing but units needs
    folder   where files without a name are made
    """

    names: Sequence[str]
    units: frozenset[str]
    folder: str | None
    _cells: dict[Cell, int] = field(default_factory=dict)
    _sizes: list[int] = field(default_factory=list)
    _groups: dict[Cell, int] = field(default_factory=dict)
    _group_of: list[int] = field(default_factory=list)
    _waiting: list[tuple[Keys, int]] = field(default_factory=list)
    _runs: list[_Run] = field(default_factory=list)

    def without_units(self, tallies: Iterable[ShardTally]) -> Iterator[ShardTally]:
        """Yield the tallies without units; their trials are written to disk."""
        held = 0
        for tally in tallies:
            groups: dict[Cell, list[Binned]] = {}
            for cell, kept in tally.cells.items():
                assert isinstance(kept, Binned)  # of one shard, before anything is moved to disk
                group = self._group(cell)
                number = self._cells.setdefault(cell, len(self._cells))
                if number == len(self._sizes):
                    self._sizes.append(0)
                    self._group_of.append(self._groups.setdefault(group, len(self._groups)))
                self._sizes[number] += kept.total
                held += kept.total
                self._waiting.append((np.repeat(kept.bins, kept.each), number))
                groups.setdefault(group, []).append(kept)
            if held > RUN:
                self._write()
                held = 0
            yield replace(tally, cells={group: _together(parts) for group, parts in groups.items()})
        self._write()

    def _group(self, cell: Cell) -> Cell:
        return tuple(value for name, value in zip(self.names, cell, strict=True) if name not in self.units)

    def _write(self) -> None:
        if not self._waiting:
            return
        keys = np.concatenate([own for own, _ in self._waiting])
        cells = np.repeat(np.array([n for _, n in self._waiting], dtype=np.int32), [len(k) for k, _ in self._waiting])
        self._waiting.clear()
        group = np.array(self._group_of)[cells]
        order = np.lexsort((keys, group))
        ends = np.cumsum(np.bincount(group, minlength=len(self._groups)))
        self._runs.append(_Run(self._mapped(keys[order]), self._mapped(cells[order]), ends))

    def _mapped(self, column: Array) -> Array:
        """Write a column into a file without a name, and return it as it is there."""
        with writing(self.folder), TemporaryFile(prefix="hitmiss-", dir=self.folder) as file:
            file.write(column.data)
            file.flush()
            return np.memmap(file, column.dtype, "r")

    def spread(self, trials: TalliedTrials, order: Sequence[Cell]) -> TalliedTrials:
        """Return the trials that were counted without units (`order`: their cells) as cells with units."""
        place = {cell: at for at, cell in enumerate(order)}
        cells = [cell for cell in sorted(self._cells) if self._group(cell) in place]
        group = np.array([place[self._group(cell)] for cell in cells], dtype=np.intp)
        number = np.array([self._cells[cell] for cell in cells], dtype=np.intp)
        units = [(at, name) for at, name in enumerate(self.names) if name in self.units]
        frame = trials.frame[group].with_columns(pl.Series(name, [cell[at] for cell in cells]) for at, name in units)
        known = {*trials.header.slices, *self.units}
        header = replace(trials.header, slices=tuple(name for name in self.names if name in known))
        scored = UnitCells(self, trials.scored, group, number)
        return TalliedTrials.of_cells(frame, header, np.array(self._sizes, dtype=np.int64)[number], scored)

    def sample(self, cells: Rows, positive: NDArray[np.bool_], unit: Counts, n_units: int) -> UnitSample:
        """Return the trials of some cells, given by their numbers, in order of score, on disk."""
        own = np.full((2, len(self._cells)), -1, dtype=np.int64)
        own[:, cells] = positive, unit
        groups = np.unique(np.array(self._group_of)[cells]).tolist()
        spans = [(run, run.of(group)) for run in self._runs for group in groups]
        with writing(self.folder):
            return UnitSample.stored(
                (
                    UnitSample.of(own[0][cell] == 1, scores_of(keys), own[1][cell], n_units)
                    for keys, cell in _stretches([(run, span) for run, span in spans if span.start < span.stop])
                ),
                np.unique(unit),
                self.folder,
            )


def _stretches(spans: Sequence[tuple[_Run, slice]]) -> Iterator[tuple[Keys, NDArray[np.int32]]]:
    """Yield the keys of spans with their cells, from low to high, some at a time; equal keys stay together."""
    seen = [(np.array(run.keys[span][::STEP]), span) for run, span in spans]
    keys = np.concatenate([own for own, _ in seen])
    sizes = np.concatenate([np.diff(np.append(np.arange(s.start, s.stop, STEP), s.stop)) for _, s in seen])
    order = np.argsort(keys, kind="stable")
    number = np.cumsum(sizes[order]) // STRETCH
    first = np.unique(np.append(keys[order][np.flatnonzero(np.diff(number)) + 1], np.uint64(0)))
    for low, high in zip(first, np.append(first[1:] - np.uint64(1), HIGHEST), strict=True):
        found = []
        for run, span in spans:
            own = run.keys[span]
            some = slice(np.searchsorted(own, low), np.searchsorted(own, high, side="right"))
            found.append((own[some], run.cells[span][some]))
        part = np.concatenate([k for k, _ in found]), np.concatenate([c for _, c in found])
        let_go(*(array for run, _ in spans for array in (run.keys, run.cells)))
        if len(part[0]):
            yield part


def _together(parts: Sequence[Binned]) -> Binned:
    """Return the trials of several cells, in any order."""
    keys, is_plain = (
        np.concatenate([NO_KEYS, *(part.bins for part in parts)]),
        all(part.counts is None for part in parts),
    )
    return Binned(keys, None if is_plain else np.concatenate([part.each for part in parts]), is_sorted=False)


@dataclass(frozen=True, eq=False)
class UnitCells:
    """Cells with units: their scores are those of groups of cells, and with their units they are on disk."""

    runs: UnitRuns
    scored: Scored
    group: Rows
    number: Rows
    is_short: ClassVar[bool] = True

    def tally(self, positive: Rows, negative: Rows) -> Tally:
        """See `Scored`."""
        return self.scored.tally(self._groups(positive), self._groups(negative))

    def steps(self, positive: Rows, negative: Rows) -> Steps:
        """See `Scored`."""
        return self.scored.steps(self._groups(positive), self._groups(negative))

    def unit_sample(self, rows: Rows, positive: NDArray[np.bool_], unit: Counts, n_units: int) -> UnitSample:
        """See `Scored`."""
        self._groups(rows)
        return self.runs.sample(self.number[rows], positive, unit, n_units)

    def _groups(self, rows: Rows) -> Rows:
        """Return the groups that some cells are; a part of a group has no tally."""
        groups = np.unique(self.group[rows])
        if np.count_nonzero(np.isin(self.group, groups)) != len(rows):
            raise UsageError("figures of some units alone need every score, and these are too many; raise --memory")
        return groups
