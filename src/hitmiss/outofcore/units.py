"""Trials that are counted without their units, and written to disk with them (see `stats.bootstrap.StoredTrials`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core.errors import UsageError
from hitmiss.core.tally import Tally
from hitmiss.engine.columns import Rows
from hitmiss.engine.counted import Scored, TalliedTrials
from hitmiss.outofcore.binned import Binned, Counts
from hitmiss.outofcore.disk import writing
from hitmiss.outofcore.shard_tally import Cell, ShardTally, refuse_cells
from hitmiss.stats.delong import RocSteps
from hitmiss.stats.stored import StoredTrials
from hitmiss.stats.units import UnitSample

DISK_BYTES: Final = 66
"""The disk space per trial: the keys of its score and its id, its key and cell, and its entries in a sample."""


@dataclass(eq=False)
class UnitRuns:
    """Trials on disk with their cells. Cells that differ only in units are one group, which is counted in their place.

    names    the columns that define the cells
    units    those that nothing but units needs
    stored   the trials
    """

    names: Sequence[str]
    units: frozenset[str]
    stored: StoredTrials
    _cells: dict[Cell, int] = field(default_factory=dict)
    _sizes: list[int] = field(default_factory=list)
    _groups: dict[Cell, int] = field(default_factory=dict)

    def without_units(self, tallies: Iterable[ShardTally]) -> Iterator[ShardTally]:
        """Yield the tallies with groups as cells; their trials are written to disk."""
        for tally in tallies:
            groups: dict[Cell, list[Binned]] = {}
            keys, cells = [], []
            for cell, kept in tally.cells.items():
                assert isinstance(kept, Binned)  # of one shard, before anything is moved to disk
                group = self._group(cell)
                number = self._cells.setdefault(cell, len(self._cells))
                if number == len(self._sizes):
                    self._sizes.append(0)
                    self.stored.groups.append(self._groups.setdefault(group, len(self._groups)))
                self._sizes[number] += kept.total
                keys.append(kept.bins if kept.counts is None else np.repeat(kept.bins, kept.counts))
                cells.append(number)
                groups.setdefault(group, []).append(kept)
            refuse_cells(len(self._cells), self.names)
            if cells:
                with writing(self.stored.folder):
                    numbers = np.repeat(np.array(cells, dtype=np.int32), list(map(len, keys)))
                    self.stored.add(np.concatenate(keys), numbers)
            yield replace(tally, cells={group: _together(parts) for group, parts in groups.items()})

    def _group(self, cell: Cell) -> Cell:
        return tuple(value for name, value in zip(self.names, cell, strict=True) if name not in self.units)

    def spread(self, trials: TalliedTrials, order: Sequence[Cell]) -> TalliedTrials:
        """Return trials that were counted in groups (`order`: those of the rows) as cells with units."""
        place = {cell: at for at, cell in enumerate(order)}
        cells = [cell for cell in sorted(self._cells) if self._group(cell) in place]
        group = np.array([place[self._group(cell)] for cell in cells], dtype=np.intp)
        number = np.array([self._cells[cell] for cell in cells], dtype=np.intp)
        units = [(at, name) for at, name in enumerate(self.names) if name in self.units]
        frame = trials.frame[group].with_columns(pl.Series(name, [cell[at] for cell in cells]) for at, name in units)
        known = {*trials.header.slices, *self.units}
        header = replace(trials.header, slices=tuple(name for name in self.names if name in known))
        scored = UnitCells(self.stored, trials.scored, group, number)
        return TalliedTrials.of_cells(frame, header, np.array(self._sizes, dtype=np.int64)[number], scored)


def _together(parts: Sequence[Binned]) -> Binned:
    """Return the trials of several cells, in any order."""
    counts = None if all(part.counts is None for part in parts) else np.concatenate([part.each for part in parts])
    return Binned(np.concatenate([part.bins for part in parts]), counts, is_sorted=False)


@dataclass(frozen=True, eq=False)
class UnitCells:
    """Cells with units: their scores are those of groups of cells, and with their units they are on disk."""

    stored: StoredTrials
    scored: Scored
    group: Rows
    number: Rows
    is_short: ClassVar[bool] = True

    def tally(self, positive: Rows, negative: Rows) -> Tally:
        """See `Scored`."""
        return self.scored.tally(self._groups(positive), self._groups(negative))

    def steps(self, positive: Rows, negative: Rows) -> RocSteps:
        """See `Scored`."""
        return self.scored.steps(self._groups(positive), self._groups(negative))

    def unit_sample(self, rows: Rows, positive: NDArray[np.bool_], unit: Counts, n_units: int) -> UnitSample:
        """See `Scored`."""
        self._groups(rows)
        with writing(self.stored.folder):
            return self.stored.sample(self.number[rows], positive, unit, n_units)

    def _groups(self, rows: Rows) -> Rows:
        """Return the groups that some cells are; a part of a group has no tally."""
        groups = np.unique(self.group[rows])
        if np.count_nonzero(np.isin(self.group, groups)) != len(rows):
            raise UsageError.of("needs-every-trial/some-units")
        return groups
