"""Draws for samples: one stream of trials per metric and sample, one stream of units per run.

What a stream is called decides its draws. The name holds the seed, the kind of draw, the part of a run that is drawn
from, and the metric with all its settings; for units it holds the name of their column. It never holds the run or
anything else that is asked: so an estimate has the same interval whatever is measured beside it, and two runs of the
same units are drawn alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import DataError
from hitmiss.core.finding import Remark
from hitmiss.core.sampling import BY_CLASS, OF_ALL, SamplingPlan
from hitmiss.core.sorting import Array, Floats
from hitmiss.core.tally import Tally
from hitmiss.engine.columns import Columns, Rows, Sample
from hitmiss.engine.drawn_trials import SampleDraws
from hitmiss.engine.left_out import UnitBlocks, UnitKind, whole_weights
from hitmiss.engine.prepared_metric import PreparedMetric
from hitmiss.stats import jackknife
from hitmiss.stats.cells import cut
from hitmiss.stats.enough_units import (
    LEAST_EFFECTIVE,
    Sizes,
    effective,
    effective_squares,
    effective_units,
    enough,
    error_units,
)
from hitmiss.stats.forms.base import Form, Functional, Replicated
from hitmiss.stats.forms.trials import OfColumns, OfTrials
from hitmiss.stats.jackknife import LeftOut
from hitmiss.stats.random import Random, generator
from hitmiss.stats.replicates import trial_replicates
from hitmiss.stats.units import (
    UnitSample,
    draw_units,
    refuse_mixed_strata,
    unit_replicates,
    unit_sides,
)

MOST_LONE = 500
"""Blocks in which the trials of a class without units are drawn."""


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
    is_split: bool = False
    """Whether one class has no unit of its own (bona fide trials have no attack), so that its trials are drawn alone."""
    _unit_samples: dict[str, UnitSample] = field(default_factory=dict)
    _beside: dict[tuple[str, str], tuple[Form, Floats]] = field(default_factory=dict)
    _tallies: dict[tuple[str, int], Tally] = field(default_factory=dict)
    _held: dict[str, list[Sizes]] = field(default_factory=dict)
    _counts: dict[tuple[str, bool, Callable[[Array], float]], float] = field(default_factory=dict)
    _trials: dict[tuple[str, int], SampleDraws] = field(default_factory=dict)
    _without: dict[tuple[str, int], Floats | None] = field(default_factory=dict)
    _by_class: dict[tuple[str, int], bool] = field(default_factory=dict)
    _left_out: dict[bool, UnitBlocks] = field(default_factory=dict)

    @classmethod
    def prepare(cls, plan: SamplingPlan, columns: Columns, rows: Rows) -> Draws:
        """Draw the units of a run once, for all its samples; trials are drawn per metric and sample."""
        if not plan.bootstrap or not plan.unit:
            return cls(plan, columns, rows)
        own = [RunUnits.of(columns, name, rows) for name in plan.unit]
        split = own[0].with_trials_of_lone(columns, rows, plan.seed) if len(own) == 1 else None
        own = own if split is None else [split]
        code, weights = _draw(plan, own, plan.stratify is not False)
        # Speakers that have both classes are drawn without regard to class in any case. Units of one class each are drawn
        # within classes for numbers that do not depend on prevalence, and over all for the others: a second set of draws.
        mixed = len(own) > 1 or bool((own[0].sides == 3).any()) or split is not None
        free = weights if mixed or plan.stratify is not None else _draw(plan, own, False)[1]
        unit = np.zeros(len(columns.positive), dtype=np.int64)
        unit[rows] = code
        return cls(plan, columns, rows, unit, weights, weights.shape[1], free, split is not None)

    def of_run(self, columns: Columns) -> Draws:
        """Return the same draws of units, for the columns of another run."""
        return Draws(self.plan, columns, self.rows, self.unit, self.weights, self.n_units, self.free, self.is_split)

    def replicates(self, questions: Sequence[PreparedMetric], sample: Sample) -> list[Floats]:
        """Return replicates of each question for one sample, each as if it had been asked alone."""
        return [self._of_kind(question)._replicates(question, sample) for question in questions]

    def _of_kind(self, question: PreparedMetric) -> Draws:
        """Return the draws of units that suit a metric: within classes, or from all units."""
        return self if self.free is self.weights or self.plan.by_class(question.metric.prevalence) else self._freely

    @cached_property
    def _freely(self) -> Draws:
        return replace(self, weights=self.free)

    def _replicates(self, question: PreparedMetric, sample: Sample) -> Floats:
        form, by_class = question.form, self.plan.by_class(question.metric.prevalence)
        kind = BY_CLASS if by_class else OF_ALL
        rng = generator(self.plan.seed, "trials", kind, sample.part, question.stream)
        self._without[sample.name, id(form)] = None  # computed when it is needed
        self._by_class[sample.name, id(form)] = by_class
        if isinstance(form, OfTrials):
            return form.drawn(self._drawn_trials(sample, rng, by_class))
        assert isinstance(form, Form)
        return self._of_form(form, question.text, sample, rng, by_class)

    def _of_form(self, form: Form, text: str, sample: Sample, rng: Random, by_class: bool) -> Floats:
        """Return replicates of a number of scores; those of the second form that its interval needs are kept."""
        units = None if self.weights is None else self.unit_sample(sample)
        tally = sample.condensed([form]) if units is None else sample.tally
        second = self._second(form, sample, tally)
        forms = [form] if second is None else [form, second]
        if units is None:
            drawn = trial_replicates(tally, forms, self.plan.bootstrap, rng, by_class)
            if tally is not sample.tally:
                # A condensed tally has slightly other sums than the scores; its replicates are moved to where the number is.
                drawn = [_centred(f, d, tally, sample) for f, d in zip(forms, drawn, strict=True)]
            # Kept, because the acceleration of BCa must be that of the same tally as the replicates.
            self._tallies.update({(sample.name, id(f)): tally for f in forms})
        else:
            assert self.weights is not None
            drawn = unit_replicates(units, forms, self.weights)
        if second is not None:
            self._beside[sample.name, text] = second, drawn[1]
            self._without[sample.name, id(second)] = None
            self._by_class[sample.name, id(second)] = by_class
        return drawn[0]

    def _second(self, form: Form, sample: Sample, tally: Tally) -> Form | None:
        """Return the further form whose replicates the interval of a form needs."""
        if self.plan.method != "auto" or not 0 < sample.n_positive < sample.n:
            return None
        return form.beside(tally)

    def _drawn_trials(self, sample: Sample, rng: Random, by_class: bool) -> SampleDraws:
        """Return the draws of a sample's trials; those of units are the same for all metrics, and are counted once."""
        if self.weights is None:
            return SampleDraws(self, sample, rng, by_class)
        place = sample.name, id(self.weights)
        if place not in self._trials:
            self._trials[place] = SampleDraws(self, sample, rng, by_class)
        return self._trials[place]

    def describe(self, question: PreparedMetric, plan: SamplingPlan | None = None) -> str:
        """Describe how the replicates of a number were drawn, for the method of its interval."""
        whole = self.weights is not None and self.free is self.weights
        return (plan or self.plan).describe(question.metric.prevalence, whole)

    def too_few(self, sample: Sample, labelled: bool = True) -> str | None:
        """Say why a sample has too few units for the level; None if it has enough.

        Of two crossed units the more numerous counts, because bona fide trials all have the same attack value.
        """
        if self.weights is None:
            return None
        n, known = self.units(sample, labelled)[0], self.degrees(sample, labelled) + 1.0
        return why_too_few(n, known, self.plan.unit, self.plan.level, labelled)

    def units(self, sample: Sample, labelled: bool = True) -> tuple[int, float]:
        """Return how many units a sample holds, and the effective number (see `stats.enough_units.effective`).

        For a number without labels (`labelled` false) all trials count, otherwise those of the rarer class.
        """
        sizes = self._sizes(sample, labelled)
        # Units of very different sizes say less than their number.
        if self.is_split and labelled:
            n = min(int(np.count_nonzero(own)) for own in sizes[0])
        else:
            n = max(int(np.count_nonzero(own[0] + own[1])) for own in sizes)
        return n, self._counted(sample, labelled, effective)

    def degrees(self, sample: Sample, labelled: bool = True) -> float:
        """Return the degrees of freedom of an error that the units of a sample show (see `intervals.error_units`)."""
        return self._counted(sample, labelled, error_units) - 1.0

    def _counted(self, sample: Sample, labelled: bool, count: Callable[[Array], float]) -> float:
        """Return `effective_units` of a sample; every number asks for it."""
        place = sample.name, labelled, count
        if place not in self._counts:
            self._counts[place] = effective_units(*self._sizes(sample, labelled), count=count)
        return self._counts[place]

    def _sizes(self, sample: Sample, labelled: bool) -> list[Sizes]:
        """Return how many trials each unit holds: of either class, or, for a number without labels, of both together."""
        if sample.name not in self._held:
            self._held[sample.name] = [sample.unit_sizes(self.codes(name)) for name in self.plan.unit]
        sizes = self._held[sample.name]
        return sizes if labelled else [(own[0] + own[1], np.zeros_like(own[0])) for own in sizes]

    def codes(self, name: str) -> NDArray[np.int64]:
        """Return the unit of each trial by one of the columns that are drawn."""
        if self.unit is not None and len(self.plan.unit) == 1:
            return self.unit
        return self.columns.asked_codes(name)[0]

    def unit_sample(self, sample: Sample) -> UnitSample:
        """Return a sample with its units, sorted once."""
        if sample.name not in self._unit_samples:
            assert self.unit is not None
            if any(isinstance(one.unit, np.memmap) for one in self._unit_samples.values()):
                self._unit_samples.clear()  # what is on disk is made again rather than kept for every slice
            self._unit_samples[sample.name] = sample.unit_sample(self.unit, self.n_units)
        return self._unit_samples[sample.name]

    def replicated(self, question: PreparedMetric, sample: Sample, value: float, replicates: Floats) -> Replicated:
        """Return a number with its replicates, and those of the second form that its interval needs."""
        return Replicated(value, replicates, self._beside.get((sample.name, question.text)))

    def left_out(
        self,
        question: PreparedMetric,
        samples: Sequence[Sample],
        values: Floats | None,
        count: Callable[[Array], float] = error_units,
    ) -> LeftOut | None:
        """Return numbers without one unit each, sorted by what varies on its own; None without units.

        `count`: how the units behind the error are counted (see `effective_units`).
        """
        if values is None:
            return None
        labelled, apart = question.labelled, self.plan.by_class(question.metric.prevalence)
        blocks = self._blocks(apart)
        groups = tuple(values[blocks.group == k] for k in range(blocks.groups))
        held = [self._effective(sample, labelled, count, blocks.groups) for sample in samples]
        crossed = len(self.plan.unit) > 1
        cells = values[blocks.group == blocks.groups] if crossed else None
        fewest = tuple(min(own) for own in zip(*held, strict=True))
        between = None
        if blocks.groups == 1 and count is error_units:
            ends = [
                (self._counted(s, labelled, effective_squares), self._counted(s, labelled, effective)) for s in samples
            ]
            between = min(low for low, _ in ends), min(high for _, high in ends)
        return LeftOut(groups, fewest, crossed or apart, cells, between, blocks.is_pooled)

    def left(self, form: Functional, sample: Sample) -> Floats | None:
        """Return the numbers of a form without one block of units each; None without units, or if it was not drawn."""
        place = sample.name, id(form)
        if self.weights is None or self.plan.method == "percentile" or place not in self._without:
            return None
        found = self._without[place]
        if found is None:
            found = self._without[place] = self._leave_out(form, sample)
        return found

    def left_smooth(self, form: Form, sample: Sample) -> tuple[Form, Floats] | None:
        """Return what is left out of a smooth form with the same influences, of one that is read at a quantile."""
        drawn = self._by_class.get((sample.name, id(form)))
        smooth = None if self.weights is None or drawn is None else form.linearised(sample.tally)
        if smooth is None or drawn is None:
            return None
        return smooth, unit_replicates(self.unit_sample(sample), [smooth], self._blocks(drawn).weights)[0]

    def _effective(
        self, sample: Sample, labelled: bool, count: Callable[[Array], float], groups: int
    ) -> tuple[float, ...]:
        """Return the effective number of units of each group (see `UnitBlocks`)."""
        sizes = self._sizes(sample, labelled)
        if groups == 1:
            return (self._counted(sample, labelled, count),)
        if len(sizes) == 1:
            return tuple(max(count(own), 1.0) for own in self._sizes(sample, True)[0])
        if not labelled:
            return tuple(count(own[0]) for own in sizes)
        several = [[own for own in pair if np.count_nonzero(own) > 1] for pair in sizes]
        return tuple(min(map(count, own), default=1.0) for own in several)

    def _leave_out(self, form: Functional, sample: Sample) -> Floats:
        """Compute a number without one block of units at a time."""
        # The same code as for replicates: leaving a block out is a weight of 0 for its units.
        weights = self._blocks(self._by_class[sample.name, id(form)]).weights
        if isinstance(form, Form):
            return unit_replicates(self.unit_sample(sample), [form], weights)[0]
        assert isinstance(form, OfTrials)
        whole = isinstance(form, OfColumns) and form.one_by_one
        fewer = replace(self, weights=whole_weights(weights, len(sample.rows)) if whole else weights)
        return form.drawn(fewer._drawn_trials(sample, generator(self.plan.seed), by_class=False))

    def acceleration(self, form: Form, sample: Sample) -> float:
        """Return the acceleration of a form, for a BCa interval."""
        if self.weights is None:
            return jackknife.acceleration_of_trials(form, cut(self._tallies[sample.name, id(form)], [form]))
        left = self.left(form, sample)
        assert left is not None
        return jackknife.acceleration_of_units(left)

    def _blocks(self, by_class: bool) -> UnitBlocks:
        """Return what is left out at a time; `by_class`: units of one class each vary within their class."""
        if by_class not in self._left_out:
            self._left_out[by_class] = self._make_blocks(by_class)
        return self._left_out[by_class]

    def _make_blocks(self, by_class: bool) -> UnitBlocks:
        assert self.unit is not None
        pairs, every = np.arange(self.n_units), np.zeros(self.n_units, dtype=np.int64)
        code = self.unit[self.rows]
        if len(self.plan.unit) == 1:
            if not by_class:
                # What depends on prevalence varies with how many units of each class there are: all are of one kind.
                return UnitBlocks.of([UnitKind(pairs, every)], 1)
            side = unit_sides(code, self.columns.positive[self.rows], self.n_units)
            if (side == 3).any() or not ((side == 1).any() and (side == 2).any()):
                # Units with both classes move both error rates at once, so they are one source of variation.
                return UnitBlocks.of([UnitKind(pairs, every)], 1)
            # Units of positives and units of negatives vary independently: their variances add up.
            return UnitBlocks.of([UnitKind(np.where(side == k, pairs, -1), every) for k in (1, 2)], 2)
        held = np.unique(code, return_index=True)[1]
        kinds = []
        for name in self.plan.unit:
            units = RunUnits.of(self.columns, name, self.rows)
            side = units.sides
            stratum = np.zeros_like(side) if (side == 3).any() else side
            alone = np.bincount(stratum, minlength=4)[stratum] < 2  # as `no attack`, which is never drawn
            own = units.code[held]
            kinds.append(UnitKind(np.where(alone[own], -1, own), stratum[own], not (side == 3).any()))
        crossed = np.all([kind.number >= 0 for kind in kinds], axis=0)  # in other pairs only one of the units varies
        return UnitBlocks.of([*kinds, UnitKind(np.where(crossed, pairs, -1), every)], 2)


def why_too_few(n: int, known: float, unit: Sequence[str], level: float, labelled: bool = True) -> str | None:
    """Say why some units, of which an error knows as much as of `known` equal ones, are too few for a level."""
    name = " × ".join(unit)
    # Even the whole range of fewer units would not hold the truth as often as the level says.
    if n < enough(level):
        return (
            Remark.of("no-interval/one-unit-only", unit=name)
            if n == 1
            else Remark.of("no-interval/few-units", n=n, unit=name)
        )
    if known < LEAST_EFFECTIVE:
        return Remark.of(
            "no-interval/unequal-units", n=n, unit=name, known=known, part=", for one class" if labelled else ""
        )
    return None


def _centred(form: Form, drawn: Floats, tally: Tally, sample: Sample) -> Floats:
    """Move replicates of a sum, drawn on bins of scores, so that they centre on the value of the real scores."""
    if not form.every_score:
        return drawn
    shift = form.measure(sample) - form.value(tally)
    return drawn + shift if math.isfinite(shift) else drawn


@dataclass(frozen=True, eq=False)
class RunUnits:
    """The units of a run by one column: the unit of each of its trials, from 0, and which classes each unit holds."""

    name: str
    code: NDArray[np.int64]
    positive: NDArray[np.bool_]
    n: int

    @classmethod
    def of(cls, columns: Columns, name: str, rows: Rows) -> RunUnits:
        """Number the units that some rows hold."""
        codes, values = columns.asked_codes(name)
        if len(values) < 2:
            raise DataError.of("one-unit/drawn", name=name, values_2=values[0])
        blank = [at for at, value in enumerate(values) if not value.strip()]
        if blank:
            n = int(np.isin(codes, blank).sum())
            raise DataError.of("blank-unit", n=n, name=name)
        code = codes[rows]
        held = np.bincount(code, minlength=len(values)) > 0
        # Units of other runs have no number here: a run is drawn as if it were alone in its table.
        code = code if held.all() else (np.cumsum(held) - 1)[code]
        return cls(name, code, columns.positive[rows], int(held.sum()))

    def with_trials_of_lone(self, columns: Columns, rows: Rows, seed: int) -> RunUnits | None:
        """Return the units with the trials of a lone one drawn alone, if it is all that a class has; otherwise None.

        Bona fide trials have no attack: drawn by attack, they are not one more attack, but independent trials. Very many
        are drawn in random blocks, whose variance is the same.
        """
        own, counted = self.lone, len(columns.trials) != columns.trials.frame.height
        if own is None or counted:
            return None
        members = np.flatnonzero(self.code == own)
        order = np.argsort(columns.codes("item")[0][rows][members], kind="stable")
        place = np.empty(len(members), dtype=np.int64)
        place[order] = generator(seed, "lone", self.name).permutation(len(members))
        code = np.where(self.code > own, self.code - 1, self.code)
        code[members] = self.n - 1 + place % MOST_LONE
        return RunUnits(self.name, code, self.positive, self.n - 1 + min(len(members), MOST_LONE))

    @property
    def lone(self) -> int | None:
        """The unit that is all that one class has, if the other class has several and no unit holds both."""
        alone = [k for k in (1, 2) if np.count_nonzero(self.sides == k) == 1]
        if (self.sides == 3).any() or len(alone) != 1 or self.n < 3:
            return None
        return int(np.flatnonzero(self.sides == alone[0])[0])

    @cached_property
    def sides(self) -> NDArray[np.int64]:
        """Which classes each unit holds (see `unit_sides`)."""
        return unit_sides(self.code, self.positive, self.n)


def _draw(plan: SamplingPlan, units: Sequence[RunUnits], by_class: bool) -> tuple[NDArray[np.int64], Array]:
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
