"""The columns of trials as arrays, taken out of the table once, and samples: some rows of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core.columns import user_name
from hitmiss.core.design import Grouping
from hitmiss.core.errors import UsageError
from hitmiss.core.kinds import FAILED
from hitmiss.core.sorting import Array, Floats, ascending_by_class
from hitmiss.core.tally import Tally
from hitmiss.core.text_codes import is_text
from hitmiss.core.trials import Trials
from hitmiss.core.weights import refuse_sampling
from hitmiss.metrics.counts import OUTCOMES, Counts, outcome
from hitmiss.stats import sketch
from hitmiss.stats.delong import RocSteps, placements
from hitmiss.stats.enough_units import (
    Sizes,
    unit_sizes,
)
from hitmiss.stats.forms.base import Form, Functional
from hitmiss.stats.judged import Judged
from hitmiss.stats.units import (
    UnitSample,
)

Rows = NDArray[np.intp]
Span = slice


@dataclass(frozen=True)
class OneClassColumns:
    """Columns whose values distinguish trials of one class.

    A slice of them is scored against all of the other class.
    """

    negative: tuple[str, ...] = ()
    positive: tuple[str, ...] = ()

    def of(self, grouping: Grouping) -> tuple[Grouping, Grouping]:
        """Return those among the columns of a grouping that distinguish negatives, and those for positives."""
        return tuple(c for c in grouping if c in self.negative), tuple(c for c in grouping if c in self.positive)


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of trials as arrays, taken out of the table once and shared by all samples."""

    trials: Trials
    one_class: OneClassColumns = OneClassColumns()
    pools_targets: bool = False
    """Whether targets are slices (because numbers by target were asked for) instead of separate runs."""

    def __post_init__(self) -> None:
        refuse_sampling(self.trials, "this evaluation")  # `WeightedColumns` has its own

    @cached_property
    def positive(self) -> NDArray[np.bool_]:
        """Which trials are positive."""
        return np.asarray(self.trials.label == 1)

    @cached_property
    def score(self) -> Floats:
        """The scores."""
        return self.trials.score

    @cached_property
    def outcome(self) -> NDArray[np.int8]:
        """The outcome of each decision (see `metrics.counts.outcome`)."""
        return outcome(self.positive, self.named("decision"))

    @cached_property
    def repeated(self) -> frozenset[tuple[str, ...]]:
        """The runs in which some question occurs more than once, by the values of the run columns."""
        if not self.trials.is_repeated:
            return frozenset()
        runs, frame = self.trials.header.runs, self.trials.frame
        twice = frame.filter(pl.struct("item", "target", *runs).is_duplicated())
        return frozenset(twice.select(*runs).unique().rows()) if runs else frozenset([()])

    def named(self, name: str) -> Array:
        """Return any column as an array; a null decision is that of a failed call."""
        if name not in self._arrays:  # every number of every slice asks for its columns again
            values = self.trials.column(name)
            self._arrays[name] = (values.fill_null(FAILED) if name == "decision" else values).to_numpy()
        return self._arrays[name]

    @cached_property
    def _arrays(self) -> dict[str, Array]:
        return {}

    def codes(self, name: str) -> tuple[NDArray[np.int64], list[str]]:
        """Return a text column of the frame as integers, and the sorted values that they encode."""
        if not is_text(self.trials.column(name).dtype):
            raise UsageError.of("not-a-slice", name=name)
        return self.trials.codes(name)

    def asked_codes(self, name: str) -> tuple[NDArray[np.int64], list[str]]:
        """Return the same as `codes`, for the user's name of a column; items are always those of the trials."""
        return self.codes(name if name == "item" else self.trials.own(name))

    def sample(
        self, rows: Rows, run: Mapping[str, str] | None = None, slice: Mapping[str, str] | None = None
    ) -> Sample:
        """Return the sample of some rows."""
        return Sample(self, rows, run or {}, slice or {})


@dataclass(frozen=True, eq=False)
class Sample:
    """Some trials of one run, on which a number is computed."""

    columns: Columns
    rows: Rows
    run: Mapping[str, str] = field(default_factory=dict)
    slice: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def positive(self) -> NDArray[np.bool_]:
        """Which of its trials are positive."""
        return self._own(self.columns.positive)

    @property
    def label(self) -> NDArray[np.int8]:
        """Its labels, 1 for positive."""
        return self.positive.astype(np.int8)

    @property
    def weight(self) -> Floats | None:
        """The sampling weight of each of its trials; None: 1 each (see `WeightedSample`)."""
        return None

    @property
    def size_of_pairs(self) -> float:
        """The number of pairs of a positive and a negative trial."""
        return float(self.n_positive * (self.n - self.n_positive))

    @property
    def mass(self) -> float:
        """The number of its trials, or the sum of their weights."""
        return self.n

    @property
    def totals(self) -> tuple[float, float] | None:
        """The sums of the sampling weights of all its trials and of the positive ones; None without weights."""
        return None

    @property
    def seen(self) -> Counts[float]:
        """Its decisions, counted, whatever they weigh."""
        return self.counts

    @cached_property
    def score(self) -> Floats:
        """Its scores."""
        return self._own(self.columns.score)

    @cached_property
    def numbers(self) -> dict[Functional, float]:
        """The cache of its numbers by form: averages and intervals ask for them again."""
        return {}

    @cached_property
    def ordered(self) -> tuple[Floats, Floats]:
        """The scores of its positives and of its negatives, each ascending."""
        return ascending_by_class(self.score, self.positive)

    @cached_property
    def tally(self) -> Tally:
        """Its scores, counted."""
        counted = Tally.of_sorted(*self.ordered)
        self.__dict__.pop("ordered")  # no longer needed: the tally holds all scores
        return counted

    def condensed(self, forms: Sequence[Form]) -> Tally:
        """Return the tally on which replicates are drawn.

        A short one if there are very many trials (see `stats.sketch`).
        """
        return sketch.condense(self.tally, forms) if len(self.columns.trials) > sketch.LARGE else self.tally

    @cached_property
    def steps(self) -> RocSteps:
        """What the AUC and its variance need, which is far less than a tally."""
        return RocSteps.of_tally(self.tally) if "tally" in self.__dict__ else RocSteps.of_classes(*self.ordered)

    @cached_property
    def outcomes(self) -> NDArray[np.int64]:
        """How often each outcome of a decision occurred."""
        happened = self._own(
            self.columns.outcome
        )  # comparing bytes is many times faster than widening and counting them
        return np.array([np.count_nonzero(happened == k) for k in range(OUTCOMES)], dtype=np.int64)

    @property
    def counts(self) -> Counts[float]:
        """Its decisions, counted."""
        return Counts(*(c.item() for c in self.outcomes))

    @cached_property
    def judged(self) -> tuple[Floats, NDArray[np.int64]]:
        """Its distinct confidences, and a code per trial: 0 without answer or confidence, else 1 + 2 · i + right."""
        happened, stated = self.columns.outcome[self.rows], self.columns.named("confidence")[self.rows]
        used = (happened < 4) & ~np.isnan(stated)
        distinct, place = np.unique(stated[used], return_inverse=True)
        code = np.zeros(self.n, dtype=np.int64)
        # One number per trial, so that a replicate is a single bincount; 0 takes the trials that only the total counts.
        code[used] = 1 + 2 * place + np.isin(happened[used], (0, 3))
        return distinct, code

    def judge(self, counts: Floats) -> Judged:
        """Return how often each confidence was right and wrong, from how often each code was drawn (see `judged`)."""
        return Judged(self.judged[0], counts[:, 2::2], counts[:, 1::2], counts.sum(axis=1))

    @cached_property
    def placements(self) -> Floats:
        """For each trial, the share of the other class that its score is ordered correctly against."""
        return placements(self.positive, self.score)

    def arrays(self, names: Sequence[str]) -> dict[str, Array]:
        """Return some of its columns."""
        return {name: self.label if name == "label" else self.columns.named(name)[self.rows] for name in names}

    @property
    def is_repeated(self) -> bool:
        """Whether an item may occur more than once, so that its trials are not independent draws."""
        own = tuple(self.run.get(user_name(name), "") for name in self.columns.trials.header.runs)
        return (self.columns.pools_targets and self._has_targets) or own in self.columns.repeated

    @cached_property
    def _has_targets(self) -> bool:
        codes = self.columns.codes("target")[0][self.rows]
        return bool(len(codes)) and bool((codes != codes[0]).any())

    def unit_sample(self, unit: NDArray[np.int64], n_units: int) -> UnitSample:
        """Return its trials with the unit of each; they are sorted only once if there is no tally yet."""
        made = UnitSample.of(self.positive, self.score, unit[self.rows], n_units)
        # The units needed the scores in order anyway; sorting them again for the tally would double the work.
        self.__dict__.setdefault("tally", made.tally)
        return made

    def unit_sizes(self, unit: NDArray[np.int64]) -> Sizes:
        """Return how many of its positives and negatives each unit holds."""
        return unit_sizes(unit[self.rows], self.positive)

    def unit_outcomes(self, unit: NDArray[np.int64], n_units: int) -> NDArray[np.int64]:
        """Return how often each outcome of a decision occurred per unit (unit × outcome)."""
        place = unit[self.rows] * OUTCOMES + self.columns.outcome[self.rows]
        return np.bincount(place, minlength=n_units * OUTCOMES).reshape(n_units, OUTCOMES)

    def _own(self, values: Array) -> Array:
        """Return the values of its trials, without a copy if they are adjacent."""
        return values.take(self.rows) if self._span is None else values[self._span]

    @cached_property
    def _span(self) -> Span | None:
        rows = self.rows
        # Files are often sorted by slice: adjacent rows are a view, and a view costs nothing.
        if not len(rows) or rows[-1] - rows[0] != len(rows) - 1 or (rows[1:] <= rows[:-1]).any():
            return None
        return Span(int(rows[0]), int(rows[-1]) + 1)

    @property
    def n(self) -> int:
        """The number of trials."""
        return len(self.rows)

    @cached_property
    def n_positive(self) -> int:
        """The number of positive trials."""
        return int(self.positive.sum())

    @property
    def name(self) -> str:
        """A text that names the sample among those of all runs."""
        return repr((sorted(self.run.items()), sorted(self.slice.items())))

    @property
    def part(self) -> str:
        """A text that names what it holds of a run (a slice, a target), for random streams: runs share their draws."""
        target = {k: v for k, v in self.run.items() if k == "target"}
        return repr(sorted((target | dict(self.slice)).items()))
