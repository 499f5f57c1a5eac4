"""Draws for samples: one stream of units for a whole measurement, one stream of trials a sample."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hitmiss.design import OF_ALL, Plan
from hitmiss.errors import DataError, UsageError
from hitmiss.measuring.grouping import Columns, Sample
from hitmiss.metrics.confidence import Judged
from hitmiss.metrics.counts import Counts
from hitmiss.registry import Metric
from hitmiss.spec import Setting
from hitmiss.stats import intervals
from hitmiss.stats.bootstrap import count_replicates, trial_draws, trial_replicates
from hitmiss.stats.cells import cut
from hitmiss.stats.fewest import LEAST_EFFECTIVE, effective_units, enough
from hitmiss.stats.forms import Few, Form, Functional, OfColumns, OfTerms, OfTrials
from hitmiss.stats.seeds import Random, generator
from hitmiss.stats.units import (
    UnitSample,
    draw_units,
    refuse_mixed_strata,
    unit_replicates,
    unit_sides,
    weighted_totals,
)
from hitmiss.tally import Array, Floats, Tally

MOST_BLOCKS = 100
"""Blocks of units that are left out in turn for the acceleration of a BCa interval."""
MOST_CELLS = 10_000_000
"""Counts that are held at a time."""


@dataclass(frozen=True, eq=False)
class Question:
    """A metric with its settings, ready to be asked of samples."""

    text: str
    metric: Metric
    settings: dict[str, Setting]
    form: Functional

    def value(self, sample: Sample) -> float:
        """The figure of a sample."""
        return self.form.measure(sample)


@dataclass(frozen=True, eq=False)
class Draws:
    """The replicates of a measurement: every figure of every sample from one set of draws."""

    plan: Plan
    columns: Columns
    unit: NDArray[np.int64] | None = None
    weights: Array | None = None
    n_units: int = 0
    free: Array | None = None
    _unit_samples: dict[str, UnitSample] = field(default_factory=dict)
    _accelerations: dict[tuple[str, int], float] = field(default_factory=dict)
    _beside: dict[tuple[str, str], tuple[Form, Floats]] = field(default_factory=dict)
    _tallies: dict[str, Tally] = field(default_factory=dict)
    _held: dict[str, tuple[int, float]] = field(default_factory=dict)
    _without: dict[tuple[str, int], Floats] = field(default_factory=dict)

    @classmethod
    def prepare(cls, plan: Plan, columns: Columns) -> Draws:
        """Draw the units once, for all samples; trials are drawn a sample."""
        if not plan.bootstrap or not plan.unit:
            return cls(plan, columns)
        unit, weights = _draw(plan, columns, plan.stratify is not False)
        mixed = len(plan.unit) > 1 or bool((unit_sides(unit, columns.positive, weights.shape[1]) == 3).any())
        free = weights if mixed or plan.stratify is not None else _draw(plan, columns, False)[1]
        return cls(plan, columns, unit, weights, weights.shape[1], free)

    def of_run(self, columns: Columns) -> Draws:
        """The same draws of units, for the columns of another run."""
        return Draws(self.plan, columns, self.unit, self.weights, self.n_units, self.free)

    def replicates(self, questions: Sequence[Question], sample: Sample) -> list[Floats]:
        """Replicates of each question for one sample: all that are drawn alike from the same draws."""
        found: dict[int, Floats] = {}
        for by_class in (True, False):
            own = [q for q in questions if self.plan.by_class(q.metric.prevalence) is by_class]
            if own:
                drawn = self if by_class or self.free is self.weights else replace(self, weights=self.free)
                found.update(zip(map(id, own), drawn._replicates(own, sample, by_class), strict=True))
        return [found[id(q)] for q in questions]

    def _replicates(self, questions: Sequence[Question], sample: Sample, by_class: bool) -> list[Floats]:
        rng = generator(self.plan.seed, sample.name, *(() if by_class else (OF_ALL,)))
        forms = [q.form for q in questions if isinstance(q.form, Form)]
        if forms and self.weights is None:
            self._tallies[sample.name] = sample.condensed(forms)
        beside = self._beside_forms(forms, sample)
        every = [*forms, *beside.values()]
        drawn = self._of_forms(every, sample, rng, by_class) if every else []
        by_form = dict(zip(map(id, every), drawn, strict=True))
        self._note_accelerations(every, sample)
        for q in questions:
            if id(q.form) in beside:
                second = beside[id(q.form)]
                self._beside[sample.name, q.text] = second, by_form[id(second)]
        trials = _DrawnTrials(self, sample, rng, by_class)
        return [q.form.drawn(trials) if isinstance(q.form, OfTrials) else by_form[id(q.form)] for q in questions]

    def _beside_forms(self, forms: Sequence[Form], sample: Sample) -> dict[int, Form]:
        """The forms whose replicates the intervals of others need, too."""
        if self.plan.method != "auto" or not 0 < sample.n_positive < sample.n:
            return {}
        tally = self._tallies.get(sample.name)
        found = {id(f): f.beside(sample.tally if tally is None else tally) for f in forms}
        return {place: form for place, form in found.items() if form is not None}

    def _of_forms(self, forms: list[Form], sample: Sample, rng: Random, by_class: bool) -> list[Floats]:
        if self.weights is None:
            tally = self._tallies[sample.name]
            drawn = trial_replicates(tally, forms, self.plan.bootstrap, rng, by_class)
            is_whole = tally is sample.tally
            return drawn if is_whole else [_centred(f, d, tally, sample) for f, d in zip(forms, drawn, strict=True)]
        return unit_replicates(self.unit_sample(sample), forms, self.weights)

    def said(self, question: Question, plan: Plan | None = None) -> str:
        """How the replicates of a figure were drawn, for the method of its interval."""
        whole = self.weights is not None and self.free is self.weights
        return (plan or self.plan).said(question.metric.prevalence, whole)

    def too_few(self, sample: Sample) -> str | None:
        """Why drawing units says nothing about a sample: they are fewer than the level asks for; None where they are enough.

        Of two crossed units the more numerous counts: bona fide trials are all of one attack.
        """
        if self.weights is None:
            return None
        n, effective = self.units(sample)
        unit = " × ".join(self.plan.unit)
        if n < enough(self.plan.level):
            return f"no interval: one {unit} alone" if n == 1 else f"no interval: only {n} of {unit} to draw from"
        if effective < LEAST_EFFECTIVE:
            return f"no interval: {n} of {unit} say no more than {effective:.1f} of equal size would, for one class"
        return None

    def units(self, sample: Sample) -> tuple[int, float]:
        """How many units a sample holds, and how many of equal size would say as much (see `stats.fewest`)."""
        if sample.name not in self._held:
            sizes = [sample.unit_sizes(self.columns.asked_codes(name)[0]) for name in self.plan.unit]
            n = max(int(np.count_nonzero(own[0] + own[1])) for own in sizes)
            self._held[sample.name] = n, effective_units(*sizes)
        return self._held[sample.name]

    def unit_sample(self, sample: Sample) -> UnitSample:
        """A sample with its units, sorted once."""
        if sample.name not in self._unit_samples:
            assert self.unit is not None
            self._unit_samples[sample.name] = sample.unit_sample(self.unit, self.n_units)
        return self._unit_samples[sample.name]

    def interval(self, question: Question, sample: Sample, value: float, replicates: Floats) -> tuple[float, float]:
        """The interval of a figure from its replicates.

        `auto`: of trials BCa, for least costs the interval that knows their optimism, percentile where neither can be had;
        of units Student's, which holds with few of them.
        """
        form, plan = question.form, self.plan
        if plan.method == "bca" and not isinstance(form, Form):
            raise UsageError(f"a BCa interval of {question.text} is not available; use percentile")
        if plan.method == "percentile" or math.isnan(value):
            return intervals.percentile(replicates, plan.level)
        beside = self._beside.get((sample.name, question.text))
        if plan.method == "auto" and self.weights is not None:
            few = Few(self.units(sample)[1] - 1.0, question.metric.range, plan.level)
            return form.by_units(replicates, value, few, lambda f: self._without.get((sample.name, id(f))), beside)
        return form.interval(replicates, value, plan.level, lambda f: self._acceleration(f, sample), beside)

    def for_averages(self, question: Question, sample: Sample, value: float, replicates: Floats) -> Floats:
        """Replicates as figures made of several figures need them: those of a least cost without its optimism."""
        return question.form.for_averages(replicates, value, self._beside.get((sample.name, question.text)))

    def corrected(self, question: Question, sample: Sample, value: float, replicates: Floats) -> float:
        """The figure without the optimism that a minimum has in its own sample."""
        return question.form.corrected(replicates, value, self._beside.get((sample.name, question.text)))

    def _note_accelerations(self, forms: list[Form], sample: Sample) -> None:
        """The accelerations of all forms under units, from one pass over the blocks that are left out."""
        if self.weights is None or self.plan.method == "percentile" or not forms:
            return
        without = unit_replicates(self.unit_sample(sample), forms, self._without_blocks)
        for form, values in zip(forms, without, strict=True):
            self._without[sample.name, id(form)] = values
            self._accelerations[sample.name, id(form)] = intervals.acceleration_of_units(values)

    def _acceleration(self, form: Form, sample: Sample) -> float:
        if self.weights is None:
            return intervals.acceleration_of_trials(form, cut(self._tallies[sample.name], [form]))
        return self._accelerations[sample.name, id(form)]

    @cached_property
    def _without_blocks(self) -> Array:
        """Weights (block × unit) that leave out one block of units each; every unit alone where there are few."""
        block = np.arange(self.n_units) % MOST_BLOCKS
        left_out = np.arange(min(self.n_units, MOST_BLOCKS))
        return np.asarray(block[None, :] != left_out[:, None], dtype=np.uint16)


@dataclass(frozen=True, eq=False)
class _DrawnTrials:
    """Replicates of a sample's trials, as forms that no tally of scores determines read them."""

    draws: Draws
    sample: Sample
    rng: Random
    by_class: bool = True

    def counts(self) -> Counts:
        """The decisions of every replicate, counted."""
        draws, sample = self.draws, self.sample
        if draws.weights is None or draws.unit is None:
            return Counts(*count_replicates(sample.outcomes, draws.plan.bootstrap, self.rng, self.by_class).T)
        return Counts(*weighted_totals(draws.weights, sample.unit_outcomes(draws.unit, draws.n_units)).T)

    def confidences(self, function: Callable[[Judged], Array]) -> Floats:
        """A function of how often each confidence was right and wrong, some replicates at a time."""
        confidence, code = self.sample.judged
        values = []
        for counts in self._cells(code, 1 + 2 * len(confidence)):
            judged = Judged(confidence, counts[:, 2::2], counts[:, 1::2], counts.sum(axis=1))
            values.append(np.asarray(function(judged), dtype=np.float64))
        return np.concatenate(values)

    def _cells(self, code: NDArray[np.int64], cells: int) -> Iterator[Floats]:
        """How often trials of each code are drawn (replicate × code), some replicates at a time."""
        draws, sample, step = self.draws, self.sample, max(1, MOST_CELLS // cells)
        if draws.weights is None or draws.unit is None:
            masks = (sample.positive, ~sample.positive) if self.by_class else (np.ones_like(sample.positive),)
            sides = [np.bincount(code[side], minlength=cells) for side in masks]
            shares = [(int(have.sum()), have / max(1, have.sum())) for have in sides]
            for start in range(0, draws.plan.bootstrap, step):
                size = min(step, draws.plan.bootstrap - start)
                drawn = [self.rng.multinomial(n, p, size=size).astype(np.float64) for n, p in shares if n]
                yield np.sum(drawn, axis=0)
            return
        unit = draws.unit[sample.rows]
        for start in range(0, len(draws.weights), step):
            part = draws.weights[start : start + step]
            yield np.stack([np.bincount(code, weights=w[unit], minlength=cells) for w in part])

    def ratio(self, form: OfTerms) -> Floats:
        """The ratio of two sums over the trials drawn."""
        draws, sample = self.draws, self.sample
        terms = form.terms(**sample.arrays(form.columns))
        if draws.weights is not None and draws.unit is not None:
            unit = draws.unit[sample.rows]
            table = np.stack([np.bincount(unit, weights=t, minlength=draws.n_units) for t in terms], axis=1)
            sums = weighted_totals(draws.weights, table)
        else:
            places = trial_draws(sample.positive, draws.plan.bootstrap, self.rng, self.by_class)
            sums = np.array([[float(t[d].sum()) for t in terms] for d in places])
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(sums[:, 0] / sums[:, 1])

    def rows(self, form: OfColumns) -> Floats:
        """A function of columns, called for each replicate."""
        draws, sample = self.draws, self.sample
        arrays = sample.arrays(form.columns)
        if draws.weights is not None and draws.unit is not None:
            unit = draws.unit[sample.rows]
            return np.array([form.of_arrays(arrays, w[unit]) for w in draws.weights])
        places = trial_draws(sample.positive, draws.plan.bootstrap, self.rng, self.by_class)
        return np.array([form.of_arrays({c: a[d] for c, a in arrays.items()}) for d in places])


def _centred(form: Form, drawn: Floats, tally: Tally, sample: Sample) -> Floats:
    """Replicates of a sum over all trials that were drawn on bins of scores, moved to the figure of the scores themselves."""
    if not form.every_score:
        return drawn
    shift = form.measure(sample) - form.value(tally)
    return drawn + shift if math.isfinite(shift) else drawn


def _draw(plan: Plan, columns: Columns, by_class: bool) -> tuple[NDArray[np.int64], Array]:
    """The unit of each trial and how often each unit is drawn (replicate × unit)."""
    parts = []
    for name in plan.unit:
        codes, values = columns.asked_codes(name)
        if len(values) < 2:
            raise DataError(f"there is only one {name} ({values[0]!r}); units can be drawn only from two or more")
        if plan.stratify:
            refuse_mixed_strata(codes, columns.positive, len(values), name)
        rng = generator(plan.seed, "unit", name)
        weights = draw_units(codes, columns.positive, len(values), plan.bootstrap, rng, by_class=by_class)
        parts.append((codes, weights))
    if len(parts) == 1:
        return parts[0]
    return _crossed(*parts)


def _crossed(
    first: tuple[NDArray[np.int64], Array], second: tuple[NDArray[np.int64], Array]
) -> tuple[NDArray[np.int64], Array]:
    """Two-way units: a trial's weight is the product of how often each of its two units was drawn (Owen 2007)."""
    pair = first[0] * second[1].shape[1] + second[0]
    held, code = np.unique(pair, return_inverse=True)
    a, b = np.divmod(held, second[1].shape[1])
    return code, first[1][:, a] * second[1][:, b]
