"""Cut trials, kept or counted, into samples, one per run and slice, and draw what every interval is made from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Final, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core.columns import find_column, user_name
from hitmiss.core.completeness import Completeness, counted_runs
from hitmiss.core.design import Grouping
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.header import Header
from hitmiss.core.kinds import FAILED
from hitmiss.core.rates import Rate
from hitmiss.core.registry import Metric, MetricSpec, Setting
from hitmiss.core.results import Estimate
from hitmiss.core.sampling import BY_CLASS, OF_ALL, SamplingPlan
from hitmiss.core.sorting import Array, Floats, ascending_by_class
from hitmiss.core.tally import Tally
from hitmiss.core.text_codes import blocks, combined, is_text
from hitmiss.core.trials import Trials
from hitmiss.core.weights import refuse_sampling
from hitmiss.metrics.confidence import Judged
from hitmiss.metrics.counts import OUTCOMES, Counts, outcome
from hitmiss.stats import intervals, sketch
from hitmiss.stats.bootstrap import (
    Random,
    UnitSample,
    count_replicates,
    cut,
    draw_units,
    generator,
    refuse_mixed_strata,
    trial_draws,
    trial_replicates,
    unit_replicates,
    unit_sides,
    weighted_totals,
)
from hitmiss.stats.forms import (
    Errors,
    Few,
    Form,
    Functional,
    OfColumns,
    OfCounts,
    OfTerms,
    OfTrials,
    OfWeights,
    Replicated,
)
from hitmiss.stats.intervals import (
    LEAST_EFFECTIVE,
    Interval,
    LeftOut,
    Sizes,
    Steps,
    effective_units,
    enough,
    error_units,
    placements,
    unit_sizes,
)

# ----------------------------------------------------------------------
# Cut trials into samples, one per run and slice, and draw what every interval is made from.

# ----------------------------------------------------------------------
# Cut trials into the samples on which metrics are computed: one per run and slice.

Rows = NDArray[np.intp]
Span = slice


@dataclass(frozen=True)
class OneClass:
    """Columns whose values distinguish trials of one class.

    A slice of them is scored against all of the other class.
    """

    negative: tuple[str, ...] = ()
    positive: tuple[str, ...] = ()

    def of(self, grouping: Grouping) -> tuple[Grouping, bool]:
        """Return those among the columns of a grouping, and whether they distinguish positives."""
        sides = [tuple(c for c in grouping if c in own) for own in (self.negative, self.positive)]
        if all(sides):
            raise UsageError(
                f"{sides[0][0]} divides the negatives and {sides[1][0]} positives: no slice of both holds a trial",
                code="two-sides",
            )
        return sides[0] or sides[1], bool(sides[1])


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of trials as arrays, taken out of the table once and shared by all samples."""

    trials: Trials
    one_class: OneClass = OneClass()
    pools_targets: bool = False
    """Whether targets are slices (because figures by target were asked for) instead of separate runs."""

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
        if name not in self._arrays:  # every figure of every slice asks for its columns again
            values = self.trials.column(name)
            self._arrays[name] = (values.fill_null(FAILED) if name == "decision" else values).to_numpy()
        return self._arrays[name]

    @cached_property
    def _arrays(self) -> dict[str, Array]:
        return {}

    def codes(self, name: str) -> tuple[NDArray[np.int64], list[str]]:
        """Return a text column of the frame as integers, and the sorted values that they encode."""
        if not is_text(self.trials.column(name).dtype):
            raise UsageError(
                f"{name} is not a text column, so trials cannot be grouped or resampled by it; name a slice column such as codec"
            )
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
    """Some trials of one run, on which a figure is computed."""

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
    def steps(self) -> Steps:
        """What the AUC and its variance need, which is far less than a tally."""
        return Steps.of_tally(self.tally) if "tally" in self.__dict__ else Steps.of_classes(*self.ordered)

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


def by_target(trials: Trials, groupings: Sequence[Grouping]) -> bool:
    """Return whether figures by target are asked for; the target is then a slice like any other.

    A column with the same values as the target (the types of toxicity of a text) means the target too.
    """
    names, columns = {name for grouping in groupings for name in grouping}, trials.frame.columns
    if "target" in names and find_column("target", columns) == "target":
        return True
    own = [column for name in names if (column := find_column(name, columns)) is not None]
    return bool(own) and trials.has_targets and any(trials.frame[c].equals(trials.frame["target"]) for c in own)


def samples_of_runs(columns: Columns) -> list[Sample]:
    """Return one sample per run (and per target, unless targets are slices); runs are never pooled."""
    trials = columns.trials
    names = [*trials.header.runs]
    if trials.has_targets and not columns.pools_targets:
        names.append("target")
    everything = np.arange(trials.frame.height)
    if not names:
        return [columns.sample(everything)]
    return [columns.sample(rows, run=key) for key, rows in _split(columns, everything, tuple(names))]


def samples_of_slices(whole: Sample, grouping: Grouping) -> list[Sample]:
    """Cut the sample of one run by slice columns.

    For a column that only negatives have (an attack), each slice takes all positives with the same other columns, which
    is the official rule; for a column of positives it is the reverse.
    """
    columns = whole.columns
    known = columns.trials.frame.columns
    for name in grouping:
        if find_column(name, known) is None:
            raise UnknownName("column to group by", name, map(user_name, columns.trials.header.slices))
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
    # Bona fide trials have no attack: each slice of an attack is measured against all of them, or against those with the
    # same other columns (an attack in one codec against bona fide trials in that codec).
    shared: dict[tuple[tuple[str, str], ...], Rows] = {(): others}
    if free:
        shared = {tuple(k.items()): rows for k, rows in _split(whole.columns, others, free)}
    nobody = np.zeros(0, dtype=np.intp)
    for key, rows in _split(whole.columns, whole.rows[told_apart], grouping):
        rest = tuple((user_name(c), key[user_name(c)]) for c in free)
        yield whole.columns.sample(np.concatenate([shared.get(rest, nobody), rows]), whole.run, key)


def _split(
    columns: Columns, rows: Rows, names: Grouping, span: Span | None = None
) -> list[tuple[dict[str, str], Rows]]:
    """Split rows by the values of columns of the frame, in the order of the sorted values, with the user's names.

    `span`: the rows, if they are adjacent.
    """
    own = rows if span is None else span
    coded = [columns.codes(name) for name in names]
    code, size = combined((numbers[own], len(distinct)) for numbers, distinct in coded)

    def key(row: int) -> dict[str, str]:
        return {user_name(name): distinct[numbers[row]] for name, (numbers, distinct) in zip(names, coded, strict=True)}

    together = blocks(code, size)
    if together is not None:
        return [(key(rows[part.start]), rows[part]) for _, part in together]
    if size < 2**16:  # small integers are sorted by radix, a byte at a time
        order = np.argsort(code.astype(np.uint8 if size < 2**8 else np.uint16), kind="stable")
        ends = np.cumsum(np.bincount(code, minlength=size)).tolist()
        starts = [0, *ends[:-1]]
    else:
        order = np.argsort(code, kind="stable")
        starts = np.unique(code[order], return_index=True)[1].tolist()
        ends = [*starts[1:], len(order)]
    if span is None:
        order = rows[order]
    elif span.start:
        order += span.start
    return [(key(order[a]), order[a:b]) for a, b in zip(starts, ends, strict=True) if b > a]


# ----------------------------------------------------------------------
# Draws for samples: one stream of trials per metric and sample, one stream of units per run.
#
# What a stream is called decides its draws. The name holds the seed, the kind of draw, the part of a run that is drawn
# from, and the metric with all its settings; for units it holds the name of their column. It never holds the run or
# anything else that is asked: so an estimate has the same interval whatever is measured beside it, and two runs of the
# same units are drawn alike.

MOST_BLOCKS = 100
"""Number of blocks of units that are left out one at a time for the acceleration of a BCa interval."""
MOST_CELLS = 10_000_000
"""Number of counts that are held at a time."""


@dataclass(frozen=True, eq=False)
class Question:
    """A metric with its settings, prepared for samples."""

    text: str
    metric: Metric
    settings: dict[str, Setting]
    form: Functional

    @property
    def labelled(self) -> bool:
        """Whether the figure uses the true class; times and shares of changed records do not."""
        return "label" in self.metric.columns

    @property
    def stream(self) -> str:
        """The metric with all its settings, for random streams; `text` leaves out those that are usual."""
        return str(MetricSpec.of(self.metric.name, **self.settings))

    def value(self, sample: Sample) -> float:
        """Return the figure of a sample."""
        return self.form.measure(sample)


@dataclass(frozen=True, eq=False)
class Draws:
    """The replicates of a run: units are drawn once for all metrics and slices, trials for each metric and slice."""

    plan: SamplingPlan
    columns: Columns
    rows: Rows
    """The trials of the run, whose units are drawn: those of other runs in the same table change nothing."""
    unit: NDArray[np.int64] | None = None
    weights: Array | None = None
    n_units: int = 0
    free: Array | None = None
    _unit_samples: dict[str, UnitSample] = field(default_factory=dict)
    _beside: dict[tuple[str, str], tuple[Form, Floats]] = field(default_factory=dict)
    _tallies: dict[tuple[str, int], Tally] = field(default_factory=dict)
    _held: dict[str, list[Sizes]] = field(default_factory=dict)
    _counts: dict[tuple[str, bool, Callable[[Array], float]], float] = field(default_factory=dict)
    _trials: dict[tuple[str, int], _DrawnTrials] = field(default_factory=dict)
    _without: dict[tuple[str, int], Floats | None] = field(default_factory=dict)

    @classmethod
    def prepare(cls, plan: SamplingPlan, columns: Columns, rows: Rows) -> Draws:
        """Draw the units of a run once, for all its samples; trials are drawn per metric and sample."""
        if not plan.bootstrap or not plan.unit:
            return cls(plan, columns, rows)
        own = [_Units.of(columns, name, rows) for name in plan.unit]
        code, weights = _draw(plan, own, plan.stratify is not False)
        # Speakers that have both classes are drawn without regard to class in any case. Units of one class each are drawn
        # within classes for figures that do not depend on prevalence, and over all for the others: a second set of draws.
        mixed = len(own) > 1 or bool((own[0].sides == 3).any())
        free = weights if mixed or plan.stratify is not None else _draw(plan, own, False)[1]
        unit = np.zeros(len(columns.positive), dtype=np.int64)
        unit[rows] = code
        return cls(plan, columns, rows, unit, weights, weights.shape[1], free)

    def of_run(self, columns: Columns) -> Draws:
        """Return the same draws of units, for the columns of another run."""
        return Draws(self.plan, columns, self.rows, self.unit, self.weights, self.n_units, self.free)

    def replicates(self, questions: Sequence[Question], sample: Sample) -> list[Floats]:
        """Return replicates of each question for one sample, each as if it had been asked alone."""
        return [self._of_kind(question)._replicates(question, sample) for question in questions]

    def _of_kind(self, question: Question) -> Draws:
        """Return the draws of units that suit a metric: within classes, or from all units."""
        return self if self.free is self.weights or self.plan.by_class(question.metric.prevalence) else self._freely

    @cached_property
    def _freely(self) -> Draws:
        return replace(self, weights=self.free)

    def _replicates(self, question: Question, sample: Sample) -> Floats:
        form, by_class = question.form, self.plan.by_class(question.metric.prevalence)
        kind = BY_CLASS if by_class else OF_ALL
        rng = generator(self.plan.seed, "trials", kind, sample.part, question.stream)
        self._without[sample.name, id(form)] = None  # computed when it is needed
        if isinstance(form, OfTrials):
            return form.drawn(self._drawn_trials(sample, rng, by_class))
        assert isinstance(form, Form)
        return self._of_form(form, question.text, sample, rng, by_class)

    def _of_form(self, form: Form, text: str, sample: Sample, rng: Random, by_class: bool) -> Floats:
        """Return replicates of a figure of scores; those of the second form that its interval needs are kept."""
        units = None if self.weights is None else self.unit_sample(sample)
        tally = sample.condensed([form]) if units is None else sample.tally
        second = self._second(form, sample, tally)
        forms = [form] if second is None else [form, second]
        if units is None:
            drawn = trial_replicates(tally, forms, self.plan.bootstrap, rng, by_class)
            if tally is not sample.tally:
                # A condensed tally has slightly other sums than the scores; its replicates are moved to where the figure is.
                drawn = [_centred(f, d, tally, sample) for f, d in zip(forms, drawn, strict=True)]
            # Kept, because the acceleration of BCa must be that of the same tally as the replicates.
            self._tallies.update({(sample.name, id(f)): tally for f in forms})
        else:
            assert self.weights is not None
            drawn = unit_replicates(units, forms, self.weights)
        if second is not None:
            self._beside[sample.name, text] = second, drawn[1]
            self._without[sample.name, id(second)] = None
        return drawn[0]

    def _second(self, form: Form, sample: Sample, tally: Tally) -> Form | None:
        """Return the further form whose replicates the interval of a form needs."""
        if self.plan.method != "auto" or not 0 < sample.n_positive < sample.n:
            return None
        return form.beside(tally)

    def _drawn_trials(self, sample: Sample, rng: Random, by_class: bool) -> _DrawnTrials:
        """Return the draws of a sample's trials; those of units are the same for all figures, and are counted once."""
        if self.weights is None:
            return _DrawnTrials(self, sample, rng, by_class)
        place = sample.name, id(self.weights)
        if place not in self._trials:
            self._trials[place] = _DrawnTrials(self, sample, rng, by_class)
        return self._trials[place]

    def said(self, question: Question, plan: SamplingPlan | None = None) -> str:
        """Describe how the replicates of a figure were drawn, for the method of its interval."""
        whole = self.weights is not None and self.free is self.weights
        return (plan or self.plan).said(question.metric.prevalence, whole)

    def too_few(self, sample: Sample, labelled: bool = True) -> str | None:
        """Say why a sample has too few units for the level; None if it has enough.

        Of two crossed units the more numerous counts, because bona fide trials all have the same attack value.
        """
        if self.weights is None:
            return None
        n, known = self.units(sample, labelled)[0], self.degrees(sample, labelled) + 1.0
        unit = " × ".join(self.plan.unit)
        # Even the whole range of fewer units would not hold the truth as often as the level says.
        if n < enough(self.plan.level):
            return f"no interval: one {unit} alone" if n == 1 else f"no interval: only {n} of {unit} to draw from"
        if known < LEAST_EFFECTIVE:
            return f"no interval: {n} of {unit} say no more than {known:.1f} of equal size would{', for one class' if labelled else ''}"
        return None

    def units(self, sample: Sample, labelled: bool = True) -> tuple[int, float]:
        """Return how many units a sample holds, and the effective number (see `stats.intervals.effective`).

        For a figure without labels (`labelled` false) all trials count, otherwise those of the rarer class.
        """
        sizes = self._sizes(sample, labelled)
        # Units of very different sizes say less than their number.
        n = max(int(np.count_nonzero(own[0] + own[1])) for own in sizes)
        return n, self._counted(sample, labelled, intervals.effective)

    def degrees(self, sample: Sample, labelled: bool = True) -> float:
        """Return the degrees of freedom of an error that the units of a sample show (see `intervals.error_units`)."""
        return self._counted(sample, labelled, error_units) - 1.0

    def _counted(self, sample: Sample, labelled: bool, count: Callable[[Array], float]) -> float:
        """Return `effective_units` of a sample; every figure asks for it."""
        place = sample.name, labelled, count
        if place not in self._counts:
            self._counts[place] = effective_units(*self._sizes(sample, labelled), count=count)
        return self._counts[place]

    def _sizes(self, sample: Sample, labelled: bool) -> list[Sizes]:
        """Return how many trials each unit holds: of either class, or, for a figure without labels, of both together."""
        if sample.name not in self._held:
            self._held[sample.name] = [sample.unit_sizes(self.columns.asked_codes(name)[0]) for name in self.plan.unit]
        sizes = self._held[sample.name]
        return sizes if labelled else [(own[0] + own[1], np.zeros_like(own[0])) for own in sizes]

    def unit_sample(self, sample: Sample) -> UnitSample:
        """Return a sample with its units, sorted once."""
        if sample.name not in self._unit_samples:
            assert self.unit is not None
            if any(isinstance(one.unit, np.memmap) for one in self._unit_samples.values()):
                self._unit_samples.clear()  # what is on disk is made again rather than kept for every slice
            self._unit_samples[sample.name] = sample.unit_sample(self.unit, self.n_units)
        return self._unit_samples[sample.name]

    def interval(self, question: Question, sample: Sample, value: float, replicates: Floats) -> tuple[float, float]:
        """Return the interval of a figure from its replicates.

        `auto`: for trials BCa, the spread on its scale for an AUC, for figures of counts and of confidences and for means,
        for least costs the interval that corrects their optimism, and percentile if none of these is possible; for units
        Student's, which is valid with few of them.
        """
        form, plan = question.form, self.plan
        if plan.method == "bca" and not isinstance(form, Form):
            raise UsageError(f"a BCa interval of {question.text} is not available; use percentile")
        # Without a value there is nothing to correct towards; replicates may still be defined.
        if plan.method == "percentile" or math.isnan(value):
            return intervals.percentile(replicates, plan.level)
        if plan.method == "bca" and isinstance(form, Form):
            return intervals.bca(replicates, value, self._acceleration(form, sample), plan.level)
        of = self.replicated(question, sample, value, replicates)
        if plan.method == "auto" and self.weights is not None:
            few = Few(self.degrees(sample, question.labelled), question.metric.range, plan.level)
            return form.by_units(of, few, lambda f: self.left_out(question, [sample], self.left(f, sample)))
        bounds = question.metric.range
        if form.is_area:
            return intervals.of_spread(replicates, value, bounds, plan.level, sample.steps.degrees)
        return form.interval(of, plan.level, bounds, lambda f: self._acceleration(f, sample))

    def replicated(self, question: Question, sample: Sample, value: float, replicates: Floats) -> Replicated:
        """Return a figure with its replicates, and those of the second form that its interval needs."""
        return Replicated(value, replicates, self._beside.get((sample.name, question.text)))

    def left_out(
        self,
        question: Question,
        samples: Sequence[Sample],
        values: Floats | None,
        count: Callable[[Array], float] = error_units,
    ) -> LeftOut | None:
        """Return figures without one unit each, sorted by what varies on its own; None without units.

        `count`: how the units behind the error are counted (see `effective_units`).
        """
        if values is None:
            return None
        blocks, labelled = self._blocks, question.labelled
        groups = tuple(values[blocks.group == k] for k in range(blocks.groups))
        held = [self._effective(sample, labelled, count) for sample in samples]
        apart = len(self.plan.unit) > 1 or self.plan.by_class(question.metric.prevalence)
        cells = values[blocks.group == blocks.groups] if len(self.plan.unit) > 1 else None
        return LeftOut(groups, tuple(min(own) for own in zip(*held, strict=True)), apart, cells)

    def left(self, form: Functional, sample: Sample) -> Floats | None:
        """Return the figures of a form without one block of units each; None without units, or if it was not drawn."""
        place = sample.name, id(form)
        if self.weights is None or self.plan.method == "percentile" or place not in self._without:
            return None
        found = self._without[place]
        if found is None:
            found = self._without[place] = self._leave_out(form, sample)
        return found

    def _effective(self, sample: Sample, labelled: bool, count: Callable[[Array], float]) -> tuple[float, ...]:
        """Return the effective number of units of each group (see `_Blocks`)."""
        sizes = self._sizes(sample, labelled)
        if self._blocks.groups == 1:
            return (self._counted(sample, labelled, count),)
        if len(sizes) == 1:
            return tuple(max(count(own), 1.0) for own in self._sizes(sample, True)[0])
        if not labelled:
            return tuple(count(own[0]) for own in sizes)
        several = [[own for own in pair if np.count_nonzero(own) > 1] for pair in sizes]
        return tuple(min(map(count, own), default=1.0) for own in several)

    def _leave_out(self, form: Functional, sample: Sample) -> Floats:
        """Compute a figure without one block of units at a time."""
        # The same code as for replicates: leaving a block out is a weight of 0 for its units.
        if isinstance(form, Form):
            return unit_replicates(self.unit_sample(sample), [form], self._blocks.weights)[0]
        assert isinstance(form, OfTrials)
        fewer = replace(self, weights=self._blocks.weights)
        return form.drawn(fewer._drawn_trials(sample, generator(self.plan.seed), by_class=False))

    def _acceleration(self, form: Form, sample: Sample) -> float:
        if self.weights is None:
            return intervals.acceleration_of_trials(form, cut(self._tallies[sample.name, id(form)], [form]))
        left = self.left(form, sample)
        assert left is not None
        return intervals.acceleration_of_units(left)

    @cached_property
    def _blocks(self) -> _Blocks:
        """What is left out at a time."""
        assert self.unit is not None
        pairs, every = np.arange(self.n_units), np.zeros(self.n_units, dtype=np.int64)
        code = self.unit[self.rows]
        if len(self.plan.unit) == 1:
            side = unit_sides(code, self.columns.positive[self.rows], self.n_units)
            if (side == 3).any() or not ((side == 1).any() and (side == 2).any()):
                # Units with both classes move both error rates at once, so they are one source of variation.
                return _Blocks.of([_Kind(pairs, every)], 1)
            # Units of positives and units of negatives vary independently: their variances add up.
            return _Blocks.of([_Kind(np.where(side == k, pairs, -1), every) for k in (1, 2)], 2)
        held = np.unique(code, return_index=True)[1]
        kinds = []
        for name in self.plan.unit:
            units = _Units.of(self.columns, name, self.rows)
            side = units.sides
            stratum = np.zeros_like(side) if (side == 3).any() else side
            alone = np.bincount(stratum, minlength=4)[stratum] < 2  # as `no attack`, which is never drawn
            own = units.code[held]
            kinds.append(_Kind(np.where(alone[own], -1, own), stratum[own], not (side == 3).any()))
        crossed = np.all([kind.number >= 0 for kind in kinds], axis=0)  # in other pairs only one of the units varies
        return _Blocks.of([*kinds, _Kind(np.where(crossed, pairs, -1), every)], 2)


@dataclass(frozen=True, eq=False)
class _Kind:
    """Units that vary on their own: a number for each cell (−1: never left out), and the stratum of each.

    `apart`: they are drawn within strata, so the others of a stratum weigh more if one of it is left out.
    """

    number: NDArray[np.int64]
    stratum: NDArray[np.int64]
    apart: bool = False

    def sizes(self, kept: NDArray[np.bool_] | None = None) -> Floats:
        """Return how many units each stratum has, or how many of those that are kept."""
        mine = np.ones(len(self.number), dtype=bool) if kept is None else kept
        pairs = np.unique(np.stack([self.number[mine], self.stratum[mine]]), axis=1)
        return np.bincount(pairs[1], minlength=4).astype(np.float64)


@dataclass(frozen=True, eq=False)
class _Blocks:
    """Weights (block × cell) that leave out one block of units each, and the group of each block.

    Units that vary together are one group. Where every unit holds one class, each class is a group; of two crossed
    units, either is one, and blocks of pairs of them are a last one, which does not count as a group. A cell is a unit,
    or a pair of crossed units.
    """

    weights: Floats
    group: NDArray[np.int64]
    groups: int

    @classmethod
    def of(cls, kinds: Sequence[_Kind], groups: int) -> _Blocks:
        """Make them from the units that vary on their own."""
        most = MOST_BLOCKS // len(kinds)
        weights, group = [], []
        for k, kind in enumerate(kinds):
            place = np.unique(kind.number, return_inverse=True)[1] - int(kind.number.min() < 0)
            # Thousands of units one at a time would cost more than the replicates; blocks of them show the same skewness.
            block = np.where(kind.number >= 0, place % most, -1)
            for left in np.unique(block[block >= 0]).tolist():
                row = (block != left).astype(np.float64)
                if kind.apart:
                    # The number of units of a stratum is part of the design: those that stay count for the missing one as well.
                    row *= (kind.sizes() / np.maximum(kind.sizes(block != left), 1.0))[kind.stratum]
                weights.append(row)
                group.append(k)
        return cls(np.array(weights).reshape(len(group), len(kinds[0].number)), np.array(group, dtype=np.int64), groups)


@dataclass(frozen=True, eq=False)
class _DrawnTrials:
    """Replicates of a sample's trials, for forms that cannot be computed from a tally of scores."""

    draws: Draws
    sample: Sample
    rng: Random
    by_class: bool = True

    def counts(self) -> Counts[Floats]:
        """Return the counted decisions of every replicate."""
        draws, sample = self.draws, self.sample
        if draws.weights is None or draws.unit is None:
            return Counts(*count_replicates(sample.outcomes, draws.plan.bootstrap, self.rng, self.by_class).T)
        return self._unit_counts

    @cached_property
    def _unit_counts(self) -> Counts[Floats]:
        """The counted decisions under the unit weights; these are drawn once, so all figures of a sample share them."""
        draws, sample = self.draws, self.sample
        assert draws.weights is not None and draws.unit is not None
        return Counts(*weighted_totals(draws.weights, sample.unit_outcomes(draws.unit, draws.n_units)).T)

    def confidences(self, function: Callable[[Judged], Array]) -> Floats:
        """Compute a function of how often each confidence was right and wrong, some replicates at a time."""
        confidence, code = self.sample.judged
        counted = self._cells(code, 1 + 2 * len(confidence))
        return np.concatenate([np.asarray(function(self.sample.judge(counts)), np.float64) for counts in counted])

    def _cells(self, code: NDArray[np.int64], cells: int) -> Iterator[Floats]:
        """Yield how often trials of each code are drawn (replicate × code), some replicates at a time."""
        draws, sample, step = self.draws, self.sample, max(1, MOST_CELLS // cells)
        if draws.weights is None or draws.unit is None:
            for start in range(0, draws.plan.bootstrap, step):
                size = min(step, draws.plan.bootstrap - start)
                yield drawn_cells(code, cells, sample.positive, size, self.rng, self.by_class)
            return
        unit = draws.unit[sample.rows]
        parts = (draws.weights[start : start + step] for start in range(0, len(draws.weights), step))
        if draws.n_units * cells > MOST_CELLS:  # a count per unit and code would not fit
            for part in parts:
                yield np.stack([np.bincount(code, weights=self._weighed(w[unit]), minlength=cells) for w in part])
            return
        held = np.bincount(unit * cells + code, sample.weight, draws.n_units * cells).reshape(draws.n_units, cells)
        yield from (weighted_totals(part, held) for part in parts)

    def ratio(self, form: OfTerms) -> Floats:
        """Return the ratio of two sums over the drawn trials."""
        draws = self.draws
        arrays, order = self._arrays(form)
        if draws.weights is None or draws.unit is None:
            return form.of_draws(arrays, self._places(order))
        unit = draws.unit[self.sample.rows[order]]
        terms = [self._weighed(t, order) for t in form.terms(**arrays)]
        table = np.stack([np.bincount(unit, weights=t, minlength=draws.n_units) for t in terms], axis=1)
        sums = weighted_totals(draws.weights, table)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(sums[:, 0] / sums[:, 1])

    def rows(self, form: OfColumns) -> Floats:
        """Compute a function of columns for each replicate."""
        draws = self.draws
        arrays, order = self._arrays(form)
        if draws.weights is None or draws.unit is None:
            return form.of_draws(arrays, self._places(order))
        unit = draws.unit[self.sample.rows[order]]
        return np.array([form.of_arrays(arrays, self._weighed(w[unit], order)) for w in draws.weights])

    def weighed(self, form: OfWeights) -> Floats:
        """Compute a function of columns and of the weights of many replicates, some replicates at a time."""
        draws, sample = self.draws, self.sample
        arrays, order = self._arrays(form)
        if draws.weights is None or draws.unit is None:
            return form.of_draws(arrays, self._places(order))
        unit, step = draws.unit[sample.rows[order]], max(1, MOST_CELLS // max(1, sample.n))
        parts = (draws.weights[i : i + step] for i in range(0, len(draws.weights), step))
        found = [form.of_weights(arrays, self._weighed(part[:, unit].astype(np.float64), order)) for part in parts]
        return np.concatenate(found)

    def _weighed(self, each: Array, order: NDArray[np.int64] | None = None) -> Array:
        """Return numbers of the sample's trials (last axis, in the order given) times their sampling weights."""
        weight = self.sample.weight
        if weight is None:
            return each
        return each * (weight if order is None else weight[order])

    def _arrays(self, form: OfColumns) -> tuple[dict[str, Array], NDArray[np.int64]]:
        """Return the columns of a form in an order that does not depend on that of the rows, and the order."""
        arrays = self.sample.arrays(form.columns)
        order = _settled(arrays)
        return {name: array[order] for name, array in arrays.items()}, order

    def _places(self, order: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        return trial_draws(self.sample.positive[order], self.draws.plan.bootstrap, self.rng, self.by_class)


def drawn_cells(
    code: NDArray[np.int64],
    cells: int,
    positive: NDArray[np.bool_],
    replicates: int,
    rng: Random,
    by_class: bool,
) -> Floats:
    """Return how often trials of each code are drawn (replicate × code), within each class or from all trials."""
    drawn = np.zeros((replicates, cells))
    for side in (positive, ~positive) if by_class else (np.ones_like(positive),):
        have = np.bincount(code[side], minlength=cells)
        if have.sum():
            drawn += rng.multinomial(int(have.sum()), have / have.sum(), size=replicates)
    return drawn


def _settled(arrays: Mapping[str, Array]) -> NDArray[np.int64]:
    """Return an order of trials that depends on their values alone, so that the order of rows changes no draw."""
    keys = [column for array in arrays.values() for column in array.reshape(len(array), -1).T]
    return np.lexsort([key.astype(str) if key.dtype == object else key for key in keys])


def _centred(form: Form, drawn: Floats, tally: Tally, sample: Sample) -> Floats:
    """Move replicates of a sum, drawn on bins of scores, so that they centre on the figure of the real scores."""
    if not form.every_score:
        return drawn
    shift = form.measure(sample) - form.value(tally)
    return drawn + shift if math.isfinite(shift) else drawn


@dataclass(frozen=True, eq=False)
class _Units:
    """The units of a run by one column: the unit of each of its trials, from 0, and which classes each unit holds."""

    name: str
    code: NDArray[np.int64]
    positive: NDArray[np.bool_]
    n: int

    @classmethod
    def of(cls, columns: Columns, name: str, rows: Rows) -> _Units:
        """Number the units that some rows hold."""
        codes, values = columns.asked_codes(name)
        if len(values) < 2:
            raise DataError(f"there is only one {name} ({values[0]!r}); units can be drawn only from two or more")
        blank = [at for at, value in enumerate(values) if not value.strip()]
        if blank:
            n = int(np.isin(codes, blank).sum())
            raise DataError(
                f"{n:,} trials have no {name}: they would all be drawn as one; fill the cells, or leave them out with --where",
                code="blank-unit",
            )
        code = codes[rows]
        held = np.bincount(code, minlength=len(values)) > 0
        # Units of other runs have no number here: a run is drawn as if it were alone in its table.
        code = code if held.all() else (np.cumsum(held) - 1)[code]
        return cls(name, code, columns.positive[rows], int(held.sum()))

    @cached_property
    def sides(self) -> NDArray[np.int64]:
        """Which classes each unit holds (see `unit_sides`)."""
        return unit_sides(self.code, self.positive, self.n)


def _draw(plan: SamplingPlan, units: Sequence[_Units], by_class: bool) -> tuple[NDArray[np.int64], Array]:
    """Return the unit of each trial of a run and how often each unit is drawn (replicate × unit)."""
    parts = []
    for own in units:
        if plan.stratify:
            refuse_mixed_strata(own.code, own.positive, own.n, own.name)
        # By the name of the unit only: two tables of one file, or two runs of a comparison, draw the same speakers.
        rng = generator(plan.seed, "unit", own.name)
        drawn = draw_units(own.code, own.positive, own.n, plan.bootstrap, rng, by_class=by_class)
        parts.append((own.code, drawn))
    if len(parts) == 1:
        return parts[0]
    return _crossed(*parts)


def _crossed(
    first: tuple[NDArray[np.int64], Array], second: tuple[NDArray[np.int64], Array]
) -> tuple[NDArray[np.int64], Array]:
    """Cross two units: a trial's weight is the product of how often each of its two units was drawn (Owen 2007)."""
    pair = first[0] * second[1].shape[1] + second[0]
    # Of all pairs of a speaker and an attack only those that occur get a weight: the full product may be huge.
    held, code = np.unique(pair, return_inverse=True)
    a, b = np.divmod(held, second[1].shape[1])
    return code, first[1][:, a] * second[1][:, b]


# ----------------------------------------------------------------------
# The ends of a figure's interval, how they were found, and what is reported if all replicates are equal.

SAME: Final = "no interval: every replicate gives the same figure"
ONE_UNIT: Final = "no interval: all that varies comes from one unit"
OVER_UNITS: Final = "wilson over units"
SOME: Final = 1e-9
"""A share of a unit's weight that is more than rounding."""
NO_ERROR: Final = "no error seen: the end is what so few trials leave open"


@dataclass(frozen=True)
class Ends:
    """An interval, or the reason why there is none."""

    low: float | None = None
    high: float | None = None
    method: str | None = None
    note: str | None = None

    @classmethod
    def of(cls, ends: tuple[float, float], method: str, note: str | None = None) -> Ends:
        """Make an interval from computed ends; NaN means unknown.

        >>> Ends.of((0.25, 0.5), "wilson").high, Ends.of((math.nan, math.nan), "delong").high
        (0.5, None)
        """
        return cls(note=note) if math.isnan(ends[0]) else cls(*ends, method, note)


def share_of_units(question: Question, sample: Sample, value: Rate, draws: Draws) -> tuple[Interval, bool] | None:
    """Return the widest interval that a share over whole units can need, and whether it is the only one it can have.

    At worst all trials of a unit are right or wrong together. The share is then one of units, and Wilson's interval of as
    many as its denominator effectively has holds it; trials that differ inside units only make it narrower. Where all
    hits, or all misses, are those of one unit, nothing shows how much units differ, so there is no other interval.
    None if the units are too few, or unknown.
    """
    behind = [_units_behind(question.form, sample, draws.columns.asked_codes(name)[0]) for name in draws.plan.unit]
    n = min(intervals.effective(of) for _, of in behind)
    if n < LEAST_EFFECTIVE:
        return None
    alone = any(min(np.count_nonzero(hits), np.count_nonzero(of - hits > SOME * of)) < 2 for hits, of in behind)
    return intervals.wilson(value * n, n, draws.plan.level), alone


def without_width(question: Question, sample: Sample, value: float, draws: Draws) -> Ends:
    """Return the interval of a figure that is the same in every replicate: a bound by counting, if there is one.

    A share of 0 or 1 over whole units gets Wilson's interval of that many units: at worst all trials of a new unit are
    wrong together, so units bound the share. Other figures over units have no such bound.
    """
    plan = draws.plan
    if plan.unit and isinstance(value, Rate) and value in (0.0, 1.0):
        found = share_of_units(question, sample, value, draws)
        return Ends(note=SAME) if found is None else Ends.of(found[0], OVER_UNITS)
    if plan.unit:
        return Ends(note=SAME)
    if question.form.is_area:
        return Ends.of(sample.steps.interval(plan.level), "newcombe")
    most = question.form.most_unseen(sample.n_positive, sample.n - sample.n_positive, plan.level)
    # Only a figure of 0 with perfectly separated classes is bounded by what was not seen; any other figure that never
    # varies does so for a reason that counting does not know.
    if value != 0.0 or most is None or sample.steps.area != 1.0:
        return Ends(note=SAME)
    return Ends(0.0, most, "unseen", NO_ERROR)


FEWEST_OF_CLASS: Final = intervals.enough(0.95)
"""Trials of each class below which a figure of decisions of both classes gets no interval."""
AT_END: Final = "no interval: the figure is at the end of its range, and draws do not show how far it may be from there"


def too_few_errors(form: Functional, sample: Sample, width: float, fewest: int | None = None) -> str | None:
    """Say why a figure that rests on a handful of errors gets no interval; None if there are enough.

    Draws contain no kind of error that the sample does not contain, so a cost at a threshold with no false alarm looks
    certain, although one false alarm may cost more than everything else. `fewest` errors of each kind are needed (if
    not given, those of the form), unless one more would add little to the interval's width.
    """
    if not form.fewest_errors:
        return None
    if isinstance(form, OfCounts) and share_of(form) is None:
        # A class of so few trials says too little about its own errors: with one positive, 95 % intervals of MCC and
        # balanced accuracy held the truth 60 % of the time.
        own = {"positive": sample.n_positive, "negative": sample.n - sample.n_positive}
        for kind, n in own.items():
            if n < FEWEST_OF_CLASS:
                return f"no interval: {f'one {kind}' if n == 1 else f'{n} {kind}s'} alone"
    for name, seen, effect in _errors_of_decisions(form, sample) if isinstance(form, OfCounts) else form.errors(sample):
        # Few errors do no harm where one more would hardly move the figure.
        if seen < (form.fewest_errors if fewest is None else fewest) and effect > form.most_of_width * width:
            return f"no interval: {seen or 'no'} {name} at its threshold, and one more would change it by {effect:.2g}"
    return None


def _errors_of_decisions(form: OfCounts, sample: Sample) -> tuple[Errors, ...]:
    """Return the errors behind a figure of decisions; a plain share has its own interval, whatever was seen."""
    counts = sample.counts
    now = form.function(counts)
    if isinstance(now, Rate):
        return ()
    # One more error, with the size of each class kept: an answer that was right becomes wrong.
    missed = replace(counts, tp=max(counts.tp - 1, 0), fn=counts.fn + 1) if counts.tp else counts
    accepted = replace(counts, tn=max(counts.tn - 1, 0), fp=counts.fp + 1) if counts.tn else counts
    return (
        Errors("miss", int(sample.seen.fn), abs(float(form.function(missed)) - float(now))),
        Errors("false alarm", int(sample.seen.fp), abs(float(form.function(accepted)) - float(now))),
    )


@lru_cache(maxsize=256)
def share_of(form: Functional) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Return which outcomes a share counts, and among which; None for figures that are not a plain share of decisions.

    >>> from hitmiss.metrics.counts import accuracy_of, f1_of
    >>> share_of(OfCounts(accuracy_of))[0][:4], share_of(OfCounts(f1_of))
    ((1.0, 0.0, 0.0, 1.0), None)
    """
    if not isinstance(form, OfCounts):
        return None
    single = [form.function(Counts(*row)) for row in np.eye(OUTCOMES, dtype=int).tolist()]
    if not all(isinstance(rate, Rate) for rate in single):
        return None
    hits, of = (tuple(float(getattr(rate, name)) for rate in single) for name in ("hits", "of"))
    counts = [2**k for k in range(OUTCOMES)]  # sums of these are all different, so a share can be recognised
    whole = form.function(Counts(*counts))
    if not isinstance(whole, Rate):
        return None
    adds_up = (whole.hits, whole.of) == (float(np.dot(hits, counts)), float(np.dot(of, counts)))
    return (hits, of) if adds_up and {*hits, *of} <= {0.0, 1.0} else None


def _units_behind(form: Functional, sample: Sample, unit: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the hits of a share in each unit, and the trials in its denominator, which may be a part of the trials."""
    if isinstance(form, OfTerms):
        terms = form.terms(**sample.arrays(form.columns))
        terms = terms if sample.weight is None else (terms[0] * sample.weight, terms[1] * sample.weight)
        found = [np.asarray(np.bincount(unit[sample.rows], weights=own), dtype=np.float64) for own in terms]
        return found[0], found[1]
    share = share_of(form)
    if share is None:
        return np.zeros(1), np.zeros(1)
    held = sample.unit_outcomes(unit, int(unit.max(initial=-1)) + 1)
    return held @ np.array(share[0]), held @ np.array(share[1])


# ----------------------------------------------------------------------
# What the intervals of a table treat as random: one sentence under the table, from the methods of its estimates.

PLAIN = {
    "wilson": "shares of independent trials (Wilson)",
    OVER_UNITS: "shares of whole units (Wilson)",
    "delong": "independent trials of both classes (DeLong)",
    "newcombe": "independent trials of both classes (Newcombe)",
    "order statistics": "independent trials (order statistics)",
    "unseen": "what so few trials leave open",
}


def sampling(estimates: Iterable[Estimate]) -> str | None:
    """Say what is random in the intervals, metric by metric; None if there is no interval.

    >>> e = Estimate("f1", 0.5, 0.4, 0.6, method="bootstrap 1000,trials from all,auto,0.95,seed=0")
    >>> sampling([e])
    'intervals: 1,000 draws of all trials, so how many are positive varies too (f1)'
    """
    told: dict[str, dict[str, None]] = {}
    for e in estimates:
        if e.low is not None and e.method:
            told.setdefault(_said(e), {})[e.metric] = None
    if not told:
        return None
    if len(told) > 1 or len(next(iter(told.values()))) == 1:
        parts = [f"{how} ({', '.join(names)})" for how, names in told.items()]
        return f"intervals: {'; '.join(parts)}"
    return f"intervals: {next(iter(told))}"


def units_said(estimates: Iterable[Estimate]) -> str | None:
    """Say how many units the intervals are based on, if units are resampled.

    >>> units_said([Estimate("eer", 0.1, units=12, units_effective=9.62)])
    '12 units, as many as 9.6 of equal size'
    """
    held = [(e.units, e.units_effective) for e in estimates if e.units is not None and e.units_effective is not None]
    if not held:
        return None
    fewest, most = min(held), max(held)
    if fewest[0] != most[0]:
        return f"{fewest[0]} to {most[0]} units"
    alike = "" if round(fewest[1], 1) == fewest[0] else f", as many as {fewest[1]:.1f} of equal size"
    return f"{fewest[0]} units{alike}"


def under(estimates: Iterable[Estimate]) -> str | None:
    """Return the lines under a table: what is random, from how many units, and why slices have no interval."""
    rows = list(estimates)
    said, units = sampling(rows), units_said(rows)
    if said is None:
        return None
    return "\n".join([said if units is None else f"{said}; {units}", *_missing(rows)])


NAMED_SLICES: Final = 3
"""How many slices without an interval are named under a table; the others are counted."""


def _missing(rows: Sequence[Estimate]) -> list[str]:
    """Say which slices have no interval, and why: a table by slices has no room for it.

    >>> cells = [Estimate("eer", 0.1, slice={"codec": f"C{i}"}, note="no interval: one unit alone") for i in range(5)]
    >>> print("\\n".join(_missing(cells)[2:]))
    no interval for eer, codec C2: one unit alone
    no interval for 2 more (--json says why)
    """
    start = "no interval: "
    found = [e for e in rows if e.slice and e.average is None and e.low is None and (e.note or "").startswith(start)]
    lines = [
        f"no interval for {e.title or e.metric}, {', '.join(f'{name} {value}' for name, value in e.slice.items())}: "
        f"{(e.note or '').removeprefix(start)}"
        for e in found[:NAMED_SLICES]
    ]
    more = len(found) - len(lines)
    return [*lines, f"no interval for {more:,} more (--json says why)"] if more else lines


def _said(e: Estimate) -> str:
    kind, _, rest = (e.method or "").partition(" ")
    if kind != "bootstrap":
        return PLAIN.get(e.method or "", e.method or "")
    if "," not in rest:  # `bootstrap over source`, of a drift table
        return f"draws of whole units ({rest.removeprefix('over ')})"
    count, what = rest.split(",")[:2]
    draws = f"{int(count):,} draws of "
    if what == f"trials {BY_CLASS}":
        return f"{draws}trials within each class"
    if what == f"trials {OF_ALL}":
        return f"{draws}all trials, so how many are positive varies too"
    unit, _, how = what.removeprefix("unit=").partition(" ")
    return f"{draws}whole units ({unit.replace('*', ' × ')}){f', {how}' if how else ''}"


# ----------------------------------------------------------------------
# Trials that are known only as tallies: one row per cell (label, decision, slices …), and the number of trials per
# score.
#
# `measure` treats them like any other trials, so the figures of counted shards are computed by the same code as in
# memory.

CellCounts = NDArray[np.int64]


class Scored(Protocol):
    """An object that has the scores of cells."""

    @property
    def is_short(self) -> bool:
        """Whether some scores are known only by the bins that contain them."""

    def tally(self, positive: Rows, negative: Rows) -> Tally:
        """Return the scores of some positive and some negative cells, counted together."""

    def steps(self, positive: Rows, negative: Rows) -> Steps:
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

    def columns(self, one_class: OneClass | None = None) -> TalliedColumns:
        """Return the columns of the cells, as `measure` needs them."""
        return TalliedColumns(self, one_class or OneClass())

    def keep(self, condition: pl.Expr) -> TalliedTrials:
        """Return the trials of the cells for which a polars expression is true."""
        rows = self.frame.select(condition.arg_true()).to_series().to_numpy().astype(np.intp)
        return replace(self, frame=self.frame[rows], size=self.size[rows], scored=SomeCells(self.scored, rows))

    @cached_property
    def whole(self) -> TalliedSample:
        """All its cells as one sample."""
        return TalliedSample(self.columns(), np.arange(self.frame.height))

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

    def steps(self, positive: Rows, negative: Rows) -> Steps:
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
        raise UsageError(
            f"this figure needs the {name} of every trial at once, which counted trials do not have; leave --stream out"
        )

    def sample(
        self, rows: Rows, run: Mapping[str, str] | None = None, slice: Mapping[str, str] | None = None
    ) -> Sample:
        """Return the sample of some cells."""
        return TalliedSample(self, rows, run or {}, slice or {})


@dataclass(frozen=True, eq=False)
class TalliedSample(Sample):
    """Some cells of one run, on which a figure is computed."""

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
    def steps(self) -> Steps:
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
