"""Trials that memory does not hold: written to disk as they come; a sample of them is put together there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.score_keys import Keys, scores_of
from hitmiss.core.sorting import Floats, let_go

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Table: TypeAlias = Floats | csr_array
from hitmiss.stats.cells import Indices
from hitmiss.stats.random import Ints
from hitmiss.stats.units import UnitSample

RUN = 1 << 20
"""Number of trials that are sorted and written at a time."""
STRETCH = 1 << 20
"""Number of trials that are read back at a time."""
STEP = 1 << 10
"""Every so many keys on disk, one is looked at to divide all keys into stretches."""
HIGHEST = np.uint64(2**64 - 1)
Numbers = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class _Run:
    """Trials on disk: for each group of cells ascending keys, and the cell of each trial; where the groups end."""

    keys: Keys
    cells: Numbers
    ends: Ints

    def of(self, group: int) -> slice:
        """Return where the trials of a group are; a group that was seen later has none here."""
        ends = np.append(0, self.ends)[[min(group, len(self.ends)), min(group + 1, len(self.ends))]]
        return slice(*ends.tolist())


@dataclass(eq=False)
class StoredTrials:
    """Trials on disk, given by the keys of their scores, each with the number of its cell: one class and one unit.

    `groups` has the group of each cell. Trials of some groups are read without reading those of others.
    """

    folder: str | None
    groups: list[int] = field(default_factory=list)
    _waiting: list[tuple[Keys, Numbers]] = field(default_factory=list)
    _runs: list[_Run] = field(default_factory=list)

    def add(self, keys: Keys, cells: Numbers) -> None:
        """Take further trials, in any order."""
        self._waiting.append((keys, cells))
        if sum(len(own) for own, _ in self._waiting) >= RUN:
            self._write()

    def _write(self) -> None:
        keys, cells = (np.concatenate(columns) for columns in zip(*self._waiting, strict=True))
        self._waiting.clear()
        group = np.array(self.groups)[cells]
        order = np.lexsort((keys, group))
        maps = []
        for column in (keys[order], cells[order]):
            with TemporaryFile(prefix="hitmiss-", dir=self.folder) as file:
                file.write(column.data)
                file.flush()
                maps.append(np.memmap(file, column.dtype, "r"))
        self._runs.append(_Run(maps[0], maps[1], np.cumsum(np.bincount(group))))

    def sample(self, cells: Indices, positive: NDArray[np.bool_], unit: Ints, n_units: int) -> UnitSample:
        """Return the trials of some cells, which are all cells of their groups; with the class and unit of each cell."""
        if self._waiting:
            self._write()
        own = np.zeros((2, len(self.groups)), dtype=np.int64)
        own[:, cells] = positive, unit
        groups = np.unique(np.array(self.groups)[cells]).tolist()
        spans = [(run, span) for run in self._runs for group in groups if (span := run.of(group)).start < span.stop]
        parts = (
            UnitSample.of(own[0][cell] == 1, scores_of(keys), own[1][cell], n_units) for keys, cell in _stretches(spans)
        )
        return UnitSample.stored(parts, np.unique(unit), self.folder)


def _stretches(spans: Sequence[tuple[_Run, slice]]) -> Iterator[tuple[Keys, Numbers]]:
    """Yield the keys of spans with their cells, from low to high, some at a time; equal keys stay together."""
    seen = [np.array(run.keys[span][::STEP]) for run, span in spans]
    sizes = [np.diff(np.append(np.arange(span.start, span.stop, STEP), span.stop)) for _, span in spans]
    keys = np.concatenate(seen)
    order = np.argsort(keys, kind="stable")
    number = np.cumsum(np.concatenate(sizes)[order]) // STRETCH
    first = np.unique(np.append(keys[order][1:][np.diff(number) > 0], np.uint64(0)))
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
