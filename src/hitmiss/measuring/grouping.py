"""Trials cut into the samples that metrics are computed on: one a run and slice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.columns import find, shown
from hitmiss.design import Grouping
from hitmiss.errors import UnknownName, UsageError
from hitmiss.metrics.counts import OUTCOMES, Counts, outcome
from hitmiss.stats import condensing
from hitmiss.stats.delong import Steps, placements
from hitmiss.stats.fewest import Sizes, unit_sizes
from hitmiss.stats.forms import Form
from hitmiss.stats.units import UnitSample
from hitmiss.stretches import blocks, combined, text_codes
from hitmiss.tally import Array, Floats, Tally, ascending
from hitmiss.trials import Trials
from hitmiss.values import FAILED

Rows = NDArray[np.intp]
Span = slice


@dataclass(frozen=True)
class OneClass:
    """Columns whose values tell trials of one class apart: a slice of them is set against all trials of the other class."""

    negative: tuple[str, ...] = ()
    positive: tuple[str, ...] = ()

    def of(self, grouping: Grouping) -> tuple[Grouping, bool]:
        """Those among the columns of a grouping, and whether it is positives that they tell apart."""
        sides = [tuple(c for c in grouping if c in own) for own in (self.negative, self.positive)]
        if all(sides):
            raise UsageError(
                f"{sides[0][0]} tells negatives apart and {sides[1][0]} positives: no slice of both holds a trial",
                code="two-sides",
            )
        return sides[0] or sides[1], bool(sides[1])


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of trials as arrays, taken out of the table once and shared by all samples."""

    trials: Trials
    one_class: OneClass = OneClass()

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
        """What became of each decision (see `metrics.counts.outcome`)."""
        return outcome(self.positive, self.named("decision"))

    @cached_property
    def is_repeated(self) -> bool:
        """Whether some question stands in a run more than once (see `Trials.is_repeated`)."""
        return self.trials.is_repeated

    def named(self, name: str) -> Array:
        """Any column as an array; a decision that is null is one of a failed call."""
        values = self.trials.column(name)
        return (values.fill_null(FAILED) if name == "decision" else values).to_numpy()

    def codes(self, name: str) -> tuple[NDArray[np.int64], list[str]]:
        """A text column of the frame as numbers, and the sorted values that they stand for."""
        if name not in self._known:
            values = self.trials.column(name)
            if values.dtype != pl.String:
                raise UsageError(
                    f"{name} is no column of texts: trials are not grouped or drawn by it; name a slice, as codec"
                )
            self._known[name] = text_codes(values)
        return self._known[name]

    def asked_codes(self, name: str) -> tuple[NDArray[np.int64], list[str]]:
        """As `codes`, for a column by the name that a caller knows it by; items are always those of the trials."""
        return self.codes(name if name == "item" else self.trials.own(name))

    def sample(
        self, rows: Rows, run: Mapping[str, str] | None = None, slice: Mapping[str, str] | None = None
    ) -> Sample:
        """The sample of some rows."""
        return Sample(self, rows, run or {}, slice or {})

    @cached_property
    def _known(self) -> dict[str, tuple[NDArray[np.int64], list[str]]]:
        return {}


@dataclass(frozen=True, eq=False)
class Sample:
    """Some trials of one run: what a figure is computed on."""

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

    @cached_property
    def score(self) -> Floats:
        """Its scores."""
        return self._own(self.columns.score)

    @cached_property
    def ordered(self) -> tuple[Floats, Floats]:
        """The scores of its positives and of its negatives, each ascending."""
        score, positive = self.score, self.positive
        return ascending(score[positive]), ascending(score[~positive])

    @cached_property
    def tally(self) -> Tally:
        """Its scores counted."""
        counted = Tally.of_sorted(*self.ordered)
        self.__dict__.pop("ordered")  # the tally holds them all
        return counted

    def condensed(self, forms: Sequence[Form]) -> Tally:
        """The tally that replicates are drawn on: of very many trials a short one (see `stats.condensing`)."""
        return condensing.condense(self.tally, forms) if len(self.columns.trials) > condensing.LARGE else self.tally

    @cached_property
    def steps(self) -> Steps:
        """What its AUC and the variance of that need; far less than a tally where nothing else is asked."""
        return Steps.of_tally(self.tally) if "tally" in self.__dict__ else Steps.of_classes(*self.ordered)

    @cached_property
    def outcomes(self) -> NDArray[np.int64]:
        """How often each outcome of a decision happened."""
        return np.bincount(self._own(self.columns.outcome), minlength=OUTCOMES)

    @property
    def counts(self) -> Counts:
        """Its decisions counted."""
        return Counts(*(c.item() for c in self.outcomes))

    @cached_property
    def judged(self) -> tuple[Floats, NDArray[np.int64]]:
        """Its distinct confidences, and for each trial 0 where it has no answer or none, else 1 + 2 · place + right."""
        happened, stated = self.columns.outcome[self.rows], self.columns.named("confidence")[self.rows]
        used = (happened < 4) & ~np.isnan(stated)
        distinct, place = np.unique(stated[used], return_inverse=True)
        code = np.zeros(self.n, dtype=np.int64)
        code[used] = 1 + 2 * place + np.isin(happened[used], (0, 3))
        return distinct, code

    @cached_property
    def placements(self) -> Floats:
        """For each trial the share of the other class that its score is rightly ordered against."""
        return placements(self.positive, self.score)

    def arrays(self, names: Sequence[str]) -> dict[str, Array]:
        """Some of its columns."""
        return {name: self.label if name == "label" else self.columns.named(name)[self.rows] for name in names}

    def unit_sample(self, unit: NDArray[np.int64], n_units: int) -> UnitSample:
        """Its trials with the unit of each."""
        return UnitSample.of(self.positive, self.score, unit[self.rows], n_units)

    def unit_sizes(self, unit: NDArray[np.int64]) -> Sizes:
        """How many of its positives and negatives each unit holds."""
        return unit_sizes(unit[self.rows], self.positive)

    def unit_outcomes(self, unit: NDArray[np.int64], n_units: int) -> NDArray[np.int64]:
        """How often each outcome of a decision happened to each unit (unit × outcome)."""
        place = unit[self.rows] * OUTCOMES + self.columns.outcome[self.rows]
        return np.bincount(place, minlength=n_units * OUTCOMES).reshape(n_units, OUTCOMES)

    def _own(self, values: NDArray[Any]) -> NDArray[Any]:
        """The values of its trials; no copy where they stand together."""
        return values[self.rows] if self._span is None else values[self._span]

    @cached_property
    def _span(self) -> Span | None:
        rows = self.rows
        if not len(rows) or rows[-1] - rows[0] != len(rows) - 1 or (rows[1:] <= rows[:-1]).any():
            return None
        return Span(int(rows[0]), int(rows[-1]) + 1)

    @property
    def n(self) -> int:
        """How many trials."""
        return len(self.rows)

    @cached_property
    def n_positive(self) -> int:
        """How many are positive."""
        return int(self.positive.sum())

    @property
    def name(self) -> str:
        """A text that names the sample, for its random stream."""
        return repr((sorted(self.run.items()), sorted(self.slice.items())))


def samples_of_runs(columns: Columns) -> list[Sample]:
    """One sample a run (and target, where there are several); runs are never pooled."""
    trials = columns.trials
    names = [*trials.header.runs]
    if trials.has_targets:
        names.append("target")
    everything = np.arange(trials.frame.height)
    if not names:
        return [columns.sample(everything)]
    return [columns.sample(rows, run=key) for key, rows in _split(columns, everything, tuple(names))]


def samples_of_slices(whole: Sample, grouping: Grouping) -> list[Sample]:
    """The samples of one run cut by slice columns.

    A column that only negatives have (an attack) takes all positives of the same rest: the official rule; and the other
    way round.
    """
    columns = whole.columns
    known = columns.trials.frame.columns
    for name in grouping:
        if find(name, known) is None:
            raise UnknownName("column to group by", name, map(shown, columns.trials.header.slices))
    bound, is_positive = columns.one_class.of(grouping)
    bound, grouping = (tuple(columns.trials.own(name) for name in names) for names in (bound, grouping))
    if not bound:
        parts = _split(columns, whole.rows, grouping, whole._span)
        return [columns.sample(rows, whole.run, key) for key, rows in parts]
    return list(_paired_slices(whole, grouping, bound, whole.positive == is_positive))


def _paired_slices(
    whole: Sample, grouping: Grouping, bound: Grouping, told_apart: NDArray[np.bool_]
) -> Iterator[Sample]:
    free = tuple(c for c in grouping if c not in bound)
    others = whole.rows[~told_apart]
    shared: dict[tuple[tuple[str, str], ...], Rows] = {(): others}
    if free:
        shared = {tuple(k.items()): rows for k, rows in _split(whole.columns, others, free)}
    nobody = np.zeros(0, dtype=np.intp)
    for key, rows in _split(whole.columns, whole.rows[told_apart], grouping):
        rest = tuple((shown(c), key[shown(c)]) for c in free)
        yield whole.columns.sample(np.concatenate([shared.get(rest, nobody), rows]), whole.run, key)


def _split(
    columns: Columns, rows: Rows, names: Grouping, span: Span | None = None
) -> list[tuple[dict[str, str], Rows]]:
    """Rows by the values of columns of the frame, in the order of the sorted values, with the names that users know.

    `span`: the rows, where they stand together.
    """
    own = rows if span is None else span
    coded = [columns.codes(name) for name in names]
    code, size = combined((numbers[own], len(distinct)) for numbers, distinct in coded)

    def key(row: int) -> dict[str, str]:
        return {shown(name): distinct[numbers[row]] for name, (numbers, distinct) in zip(names, coded, strict=True)}

    together = blocks(code, size)
    if together is not None:
        return [(key(rows[part.start]), rows[part]) for _, part in together]
    if size < 2**16:
        code = code.astype(np.uint16)  # small integers are sorted by radix, in one pass
    order = np.argsort(code, kind="stable")
    starts = np.unique(code[order], return_index=True)[1]
    return [(key(part[0]), part) for part in np.split(rows[order], starts[1:]) if len(part)]
