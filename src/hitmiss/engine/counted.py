"""Trials that are known only as tallies: a row per cell (label, decision, slices …), and the number of trials per score.

`measure` treats them like any other trials, so the numbers of counted shards are computed by the same code as in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core.completeness import Completeness, counted_runs
from hitmiss.core.errors import UsageError
from hitmiss.core.header import Header
from hitmiss.core.sorting import Array, Floats
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials
from hitmiss.engine.columns import Columns, OneClassColumns, Rows, Sample
from hitmiss.engine.weighted import columns_of_trials
from hitmiss.metrics.counts import OUTCOMES
from hitmiss.stats.delong import RocSteps
from hitmiss.stats.enough_units import (
    Sizes,
)
from hitmiss.stats.units import (
    UnitSample,
)

CellCounts = NDArray[np.int64]


class Scored(Protocol):
    """An object that has the scores of cells."""

    @property
    def is_short(self) -> bool:
        """Whether some scores are known only by the bins that contain them."""

    def tally(self, positive: Rows, negative: Rows) -> Tally:
        """Return the scores of some positive and some negative cells, counted together."""

    def steps(self, positive: Rows, negative: Rows) -> RocSteps:
        """Return what their AUC and its variance need."""

    def unit_sample(self, rows: Rows, positive: NDArray[np.bool_], unit: CellCounts, n_units: int) -> UnitSample:
        """Return the trials of some cells with their units; the class and the unit are given for each cell."""


@dataclass(frozen=True, eq=False)
class TalliedTrials(Trials):
    """Trials as a table of cells: `size` is the number of trials of each row, `scored` has their scores."""

    size: CellCounts = None  # type: ignore[assignment]  # a field after fields with defaults
    scored: Scored = None  # type: ignore[assignment]

    @classmethod
    def of_cells(cls, cells: pl.DataFrame, header: Header, size: CellCounts, scored: Scored) -> TalliedTrials:
        """Make them from a frame with one row per cell: its label, and the columns that distinguish the cells."""
        # A table of trials needs ids; these only number the cells.
        named = cells.with_columns(item=pl.int_range(pl.len()).cast(pl.String))
        base = Trials.from_frame(named, header, is_unique=True)
        return cls(base.frame, header, ("item", "target", *header.runs), size, scored)

    def __len__(self) -> int:
        return int(self.size.sum())

    @property
    def has_rows(self) -> bool:
        """Rows are cells here, not trials."""
        return False

    @property
    def n_positive(self) -> int:
        """The number of positive trials."""
        return int(self.size[self.label == 1].sum())

    @property
    def _matrix(self) -> Completeness:
        """The runs with their numbers of trials; which questions they lack is not known from counts."""
        runs, n = list(self.header.runs), len(self)
        if not runs:
            return Completeness(n, n, n)
        table = self.frame.select(runs).with_columns(pl.Series(":size", self.size))
        cells = counted_runs(table.group_by(runs).agg(pl.col(":size").sum().alias(":n")), runs)
        most = max(own for _, own in cells)
        return Completeness(n, most * len(cells), most, cells)

    @property
    def content(self) -> str:
        """A hash of how often each score occurs in each cell; empty if some scores are known only by their bins."""
        # Bins cannot be hashed like scores: the hash would differ from that of the same trials in memory.
        if self.is_short:
            return ""
        fixed = ("label", "decision", *(["target"] if self.has_targets else []))
        told = (*fixed, *self.header.runs, *self.header.slices)
        return self.counted([name for name in told if name in self.frame.columns])

    def _cells(self, columns: Sequence[str]) -> Iterator[tuple[list[str], Floats, CellCounts]]:
        values = self.frame.select(pl.col(columns).cast(pl.String)).rows()
        for own, tally in zip(values, self._tallies, strict=True):
            yield list(map(str, own)), tally.score, tally.positive_counts

    @property
    def _tallies(self) -> Iterator[Tally]:
        """Yield the scores of each cell."""
        nobody = np.zeros(0, dtype=np.intp)
        return (self.scored.tally(np.array([at]), nobody) for at in range(self.frame.height))

    @property
    def questions(self) -> str:
        """Empty: the items were counted and not kept."""
        return ""

    def keep(self, condition: pl.Expr) -> TalliedTrials:
        """Return the trials of the cells for which a polars expression is true."""
        rows = self.frame.select(condition.arg_true()).to_series().to_numpy().astype(np.intp)
        return replace(self, frame=self.frame[rows], size=self.size[rows], scored=SomeCells(self.scored, rows))

    @property
    def tally(self) -> Tally:
        """The scores of all its cells, counted."""
        positive = self.label == 1
        return self.scored.tally(np.flatnonzero(positive), np.flatnonzero(~positive))

    @property
    def is_short(self) -> bool:
        """Whether some scores are known only by the bins that contain them."""
        return self.scored.is_short


@dataclass(frozen=True, eq=False)
class SomeCells:
    """The scores of some of the cells, counted from 0."""

    scored: Scored
    rows: Rows

    @property
    def is_short(self) -> bool:
        """See `Scored`."""
        return self.scored.is_short

    def tally(self, positive: Rows, negative: Rows) -> Tally:
        """See `Scored`."""
        return self.scored.tally(self.rows[positive], self.rows[negative])

    def steps(self, positive: Rows, negative: Rows) -> RocSteps:
        """See `Scored`."""
        return self.scored.steps(self.rows[positive], self.rows[negative])

    def unit_sample(self, rows: Rows, positive: NDArray[np.bool_], unit: CellCounts, n_units: int) -> UnitSample:
        """See `Scored`."""
        return self.scored.unit_sample(self.rows[rows], positive, unit, n_units)


@dataclass(frozen=True, eq=False)
class TalliedColumns(Columns):
    """The columns of cells."""

    trials: TalliedTrials

    def named(self, name: str) -> Array:
        """Return a column of the cells; other columns of the trials are not available."""
        if name == "decision":
            return super().named(name)
        raise UsageError.of("needs-every-trial/column", name=name)

    def sample(
        self, rows: Rows, run: Mapping[str, str] | None = None, slice: Mapping[str, str] | None = None
    ) -> Sample:
        """Return the sample of some cells."""
        return TalliedSample(self, rows, run or {}, slice or {})


@columns_of_trials.register
def columns_of_cells(
    trials: TalliedTrials, one_class: OneClassColumns | None = None, _pools_targets: bool = False
) -> TalliedColumns:
    """Return the columns of cells: targets were told apart when the trials were counted."""
    return TalliedColumns(trials, one_class or OneClassColumns())


@dataclass(frozen=True, eq=False)
class TalliedSample(Sample):
    """Some cells of one run, on which a number is computed."""

    columns: TalliedColumns

    @cached_property
    def size(self) -> CellCounts:
        """The number of trials in each of its cells."""
        return self.columns.trials.size[self.rows]

    @property
    def n(self) -> int:
        """The number of trials."""
        return int(self.size.sum())

    @cached_property
    def n_positive(self) -> int:
        """The number of positive trials."""
        return int(self.size[self.positive].sum())

    @cached_property
    def tally(self) -> Tally:
        """Its scores, counted."""
        return self.columns.trials.scored.tally(self.rows[self.positive], self.rows[~self.positive])

    @cached_property
    def steps(self) -> RocSteps:
        """What its AUC and the variance of the AUC need."""
        return self.columns.trials.scored.steps(self.rows[self.positive], self.rows[~self.positive])

    @cached_property
    def score(self) -> Floats:
        """Its distinct scores, ascending."""
        return self.tally.score

    @cached_property
    def outcomes(self) -> CellCounts:
        """How often each outcome of a decision occurred."""
        found: Array = np.bincount(self.columns.outcome[self.rows], weights=self.size, minlength=OUTCOMES)
        return found.astype(np.int64)

    def unit_sample(self, unit: CellCounts, n_units: int) -> UnitSample:
        """Return its trials with the unit of each, which all trials of a cell share."""
        return self.columns.trials.scored.unit_sample(self.rows, self.positive, unit[self.rows], n_units)

    def unit_sizes(self, unit: CellCounts) -> Sizes:
        """Return how many trials of each class each unit holds."""
        own, n = unit[self.rows], int(unit.max(initial=-1)) + 1
        found = [np.bincount(own[m], weights=self.size[m], minlength=n) for m in (self.positive, ~self.positive)]
        return found[0], found[1]

    def unit_outcomes(self, unit: CellCounts, n_units: int) -> CellCounts:
        """Return how often each outcome of a decision occurred per unit (unit × outcome)."""
        place = unit[self.rows] * OUTCOMES + self.columns.outcome[self.rows]
        found: Array = np.bincount(place, weights=self.size, minlength=n_units * OUTCOMES)
        return found.astype(np.int64).reshape(n_units, OUTCOMES)
