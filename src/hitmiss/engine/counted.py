"""Trials that are known only as tallies: one row a cell (label, decision, slices …), and how many trials have which score.

Everything that `measure` does with trials it does with these, so a figure of counted shards is computed by the very code
that computes it in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core.errors import UsageError
from hitmiss.core.tally import Array, Floats, Tally
from hitmiss.core.trials import Header, Trials
from hitmiss.engine.resample import Columns, OneClass, Rows, Sample
from hitmiss.metrics.counts import OUTCOMES
from hitmiss.stats.bootstrap import UnitSample
from hitmiss.stats.intervals import Sizes, Steps

Counts = NDArray[np.int64]


class Scored(Protocol):
    """Who knows the scores of cells."""

    def tally(self, positive: Rows, negative: Rows) -> Tally:
        """The scores of some positive and some negative cells, counted together."""

    def steps(self, positive: Rows, negative: Rows) -> Steps:
        """What their AUC and its variance need."""


@dataclass(frozen=True, eq=False)
class TalliedTrials(Trials):
    """Trials as a table of cells: `size` tells how many trials each row stands for, `scored` what scores they have."""

    size: Counts = None  # type: ignore[assignment]  # a field after fields with defaults
    scored: Scored = None  # type: ignore[assignment]

    @classmethod
    def of_cells(cls, cells: pl.DataFrame, header: Header, size: Counts, scored: Scored) -> TalliedTrials:
        """From a frame with one row a cell: label, and whatever the cells are told apart by."""
        named = cells.with_columns(item=pl.int_range(pl.len()).cast(pl.String))
        base = Trials.from_frame(named, header, is_unique=True)
        return cls(base.frame, header, ("item", "target", *header.runs), size, scored)

    def __len__(self) -> int:
        return int(self.size.sum())

    @property
    def n_positive(self) -> int:
        """How many trials are positive."""
        return int(self.size[self.label == 1].sum())

    @property
    def content(self) -> str:
        """Hash of how often each score occurs in each cell; empty where some scores are known only by their bins."""
        if any(tally.is_short for tally in self._tallies):
            return ""
        fixed = ("label", "decision", *(["target"] if self.has_targets else []))
        told = (*fixed, *self.header.runs, *self.header.slices)
        return self.counted([name for name in told if name in self.frame.columns])

    def _cells(self, columns: Sequence[str]) -> Iterator[tuple[list[str], Floats, Counts]]:
        values = self.frame.select(pl.col(columns).cast(pl.String)).rows()
        for own, tally in zip(values, self._tallies, strict=True):
            yield list(map(str, own)), tally.score, tally.positive_counts

    @property
    def _tallies(self) -> Iterator[Tally]:
        """The scores of each cell."""
        nobody = np.zeros(0, dtype=np.intp)
        return (self.scored.tally(np.array([at]), nobody) for at in range(self.frame.height))

    @property
    def questions(self) -> str:
        """Nothing: the items were counted and not kept."""
        return ""

    def columns(self, one_class: OneClass | None = None) -> TalliedColumns:
        """The columns of the cells, as `measure` wants them."""
        return TalliedColumns(self, one_class or OneClass())

    def keep(self, condition: pl.Expr) -> TalliedTrials:
        """The trials of the cells for which a polars expression holds."""
        rows = self.frame.select(condition.arg_true()).to_series().to_numpy().astype(np.intp)
        return replace(self, frame=self.frame[rows], size=self.size[rows], scored=SomeCells(self.scored, rows))

    @cached_property
    def whole(self) -> TalliedSample:
        """All its cells as one sample."""
        return TalliedSample(self.columns(), np.arange(self.frame.height))

    @property
    def is_short(self) -> bool:
        """Whether some scores are known only by the bins that they lie in."""
        return self.whole.tally.is_short


@dataclass(frozen=True, eq=False)
class SomeCells:
    """The scores of some of the cells, counted from 0."""

    scored: Scored
    rows: Rows

    def tally(self, positive: Rows, negative: Rows) -> Tally:
        """See `Scored`."""
        return self.scored.tally(self.rows[positive], self.rows[negative])

    def steps(self, positive: Rows, negative: Rows) -> Steps:
        """See `Scored`."""
        return self.scored.steps(self.rows[positive], self.rows[negative])


@dataclass(frozen=True, eq=False)
class TalliedColumns(Columns):
    """The columns of cells."""

    trials: TalliedTrials

    def named(self, name: str) -> Array:
        """A column of the cells; a column of the trials is not to be had."""
        if name == "decision":
            return super().named(name)
        raise UsageError(
            f"this figure needs the {name} of every trial at once, which counted trials have not; leave --stream out"
        )

    def sample(
        self, rows: Rows, run: Mapping[str, str] | None = None, slice: Mapping[str, str] | None = None
    ) -> Sample:
        """The sample of some cells."""
        return TalliedSample(self, rows, run or {}, slice or {})


@dataclass(frozen=True, eq=False)
class TalliedSample(Sample):
    """Some cells of one run: what a figure is computed on."""

    columns: TalliedColumns

    @cached_property
    def size(self) -> Counts:
        """How many trials each of its cells stands for."""
        return self.columns.trials.size[self.rows]

    @property
    def n(self) -> int:
        """How many trials."""
        return int(self.size.sum())

    @cached_property
    def n_positive(self) -> int:
        """How many are positive."""
        return int(self.size[self.positive].sum())

    @cached_property
    def tally(self) -> Tally:
        """Its scores counted."""
        return self.columns.trials.scored.tally(self.rows[self.positive], self.rows[~self.positive])

    @cached_property
    def steps(self) -> Steps:
        """What its AUC and the variance of that need."""
        return self.columns.trials.scored.steps(self.rows[self.positive], self.rows[~self.positive])

    @cached_property
    def score(self) -> Floats:
        """Its distinct scores, ascending."""
        return self.tally.score

    @cached_property
    def outcomes(self) -> Counts:
        """How often each outcome of a decision happened."""
        found: NDArray[Any] = np.bincount(self.columns.outcome[self.rows], weights=self.size, minlength=OUTCOMES)
        return found.astype(np.int64)

    def unit_sample(self, unit: Counts, n_units: int) -> UnitSample:
        """Its trials with the unit of each, which every trial of a cell shares."""
        scored, nobody = self.columns.trials.scored, np.zeros(0, dtype=np.intp)
        tallies = [scored.tally(self.rows[i : i + 1], nobody) for i in range(len(self.rows))]
        if any(tally.is_short for tally in tallies):
            raise UsageError("drawing units needs every score at once, and these are too many to keep; raise --memory")
        scores = [np.repeat(tally.score, tally.positive_counts) for tally in tallies]
        sizes = [len(own) for own in scores]
        positive, units = np.repeat(self.positive, sizes), np.repeat(unit[self.rows], sizes)
        return UnitSample.of(positive, np.concatenate([np.zeros(0), *scores]), units, n_units)

    def unit_sizes(self, unit: Counts) -> Sizes:
        """How many trials of each class each unit holds."""
        own, n = unit[self.rows], int(unit.max(initial=-1)) + 1
        found = [np.bincount(own[m], weights=self.size[m], minlength=n) for m in (self.positive, ~self.positive)]
        return found[0], found[1]

    def unit_outcomes(self, unit: Counts, n_units: int) -> Counts:
        """How often each outcome of a decision happened to each unit (unit × outcome)."""
        place = unit[self.rows] * OUTCOMES + self.columns.outcome[self.rows]
        found: NDArray[Any] = np.bincount(place, weights=self.size, minlength=n_units * OUTCOMES)
        return found.astype(np.int64).reshape(n_units, OUTCOMES)
