"""Draws for samples: one stream of units for a whole measurement, one stream of trials a sample."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hitmiss.errors import DataError, UnknownName, UsageError
from hitmiss.measuring.grouping import Columns, Sample
from hitmiss.metrics.confidence import Judged
from hitmiss.metrics.counts import Counts
from hitmiss.registry import Metric
from hitmiss.spec import Setting
from hitmiss.stats import intervals
from hitmiss.stats.bootstrap import count_replicates, stratified_replicates, trial_draws
from hitmiss.stats.cells import cut
from hitmiss.stats.fewest import enough
from hitmiss.stats.forms import AtThreshold, ClassSums, Form, MinimumCost, OfCounts, PairShare, Whole
from hitmiss.stats.seeds import generator
from hitmiss.stats.units import UnitSample, draw_units, refuse_mixed_strata, unit_replicates, weighted_totals
from hitmiss.tally import Array, Floats, Tally

Method = Literal["auto", "percentile", "bca"]
METHODS = ("auto", "percentile", "bca")
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
    form: Form | OfCounts | None

    def value(self, sample: Sample) -> float:
        """The figure of a sample."""
        if isinstance(self.form, OfCounts):
            return self.form.function(sample.counts)  # type: ignore[no-any-return]
        if isinstance(self.form, PairShare):
            return sample.steps.area
        if self.form is not None:
            return self.form.value(sample.tally)
        return self.metric.function(**self.arrays(sample), **self.settings)

    def arrays(self, sample: Sample) -> dict[str, Any]:
        """The columns that the metric asks for, of one sample."""
        return {c: sample.label if c == "label" else sample.columns.named(c)[sample.rows] for c in self.metric.columns}


@dataclass(frozen=True)
class Plan:
    """How sure: replicates, the unit that is drawn, the seed, the level and the kind of interval."""

    bootstrap: int = 0
    unit: tuple[str, ...] = ()
    seed: int = 0
    level: float = 0.95
    method: Method = "auto"
    stratify: bool | None = None

    def __post_init__(self) -> None:
        if self.bootstrap < 0 or self.bootstrap == 1:
            raise UsageError(f"an interval needs at least 2 replicates (0 for none); found {self.bootstrap}")
        if not 0.0 < self.level < 1.0:
            raise UsageError(f"the level must lie between 0 and 1; found {self.level}")
        if self.method not in METHODS:
            raise UnknownName("kind of interval", self.method, METHODS)
        if len(self.unit) > 2:
            raise UsageError(f"at most two units can be crossed; found {', '.join(self.unit)}")

    def __str__(self) -> str:
        if not self.bootstrap:
            return "none"
        kind = f"unit={'*'.join(self.unit)}" if self.unit else "stratified"
        return f"{self.bootstrap},{kind},{self.method},{self.level:g},seed={self.seed}"


@dataclass(frozen=True, eq=False)
class Draws:
    """The replicates of a measurement: every figure of every sample from one set of draws."""

    plan: Plan
    columns: Columns
    unit: NDArray[np.int64] | None = None
    weights: Array | None = None
    n_units: int = 0
    _unit_samples: dict[str, UnitSample] = field(default_factory=dict)
    _accelerations: dict[tuple[str, int], float] = field(default_factory=dict)
    _at_best: dict[tuple[str, str], tuple[AtThreshold, Floats]] = field(default_factory=dict)
    _tallies: dict[str, Tally] = field(default_factory=dict)
    _few: dict[str, str | None] = field(default_factory=dict)

    @classmethod
    def prepare(cls, plan: Plan, columns: Columns) -> Draws:
        """Draw the units once, for all samples; trials are drawn a sample."""
        if not plan.bootstrap or not plan.unit:
            return cls(plan, columns)
        unit, weights = _draw(plan, columns)
        return cls(plan, columns, unit, weights, weights.shape[1])

    def replicates(self, questions: Sequence[Question], sample: Sample) -> list[Floats]:
        """Replicates of each question for one sample, from the same draws."""
        rng = generator(self.plan.seed, sample.name)
        forms = [q.form for q in questions if q.form is not None and not isinstance(q.form, OfCounts)]
        if forms and self.weights is None:
            self._tallies[sample.name] = sample.condensed(forms)
        chosen = self._chosen_thresholds(forms, sample)
        every = [*forms, *chosen.values()]
        by_form = dict(zip(map(id, every), self._of_forms(every, sample, rng), strict=True)) if every else {}
        self._note_accelerations(every, sample)
        for q in questions:
            if id(q.form) in chosen:
                fixed = chosen[id(q.form)]
                self._at_best[sample.name, q.text] = fixed, by_form[id(fixed)]
        return [by_form[id(q.form)] if id(q.form) in by_form else self._others(q, sample, rng) for q in questions]

    def _chosen_thresholds(self, forms: Sequence[Form], sample: Sample) -> dict[int, AtThreshold]:
        """For each least cost, the cost at the sample's best threshold: its interval needs both."""
        least = [f for f in forms if isinstance(f, MinimumCost)]
        if not least or self.plan.method != "auto" or not 0 < sample.n_positive < sample.n:
            return {}
        tally = self._tallies.get(sample.name) or sample.tally
        return {id(f): f.at_best(tally) for f in least}

    def _of_forms(self, forms: list[Form], sample: Sample, rng: np.random.Generator) -> list[Floats]:
        if self.weights is None:
            tally = self._tallies[sample.name]
            drawn = stratified_replicates(tally, forms, self.plan.bootstrap, rng)
            is_whole = tally is sample.tally
            return drawn if is_whole else [_centred(f, d, tally, sample) for f, d in zip(forms, drawn, strict=True)]
        return unit_replicates(self.unit_sample(sample), forms, self.weights)

    def too_few(self, sample: Sample) -> str | None:
        """Why drawing units says nothing about a sample: they are fewer than the level asks for; None where they are enough.

        Of two crossed units the more numerous counts: bona fide trials are all of one attack.
        """
        if self.weights is None:
            return None
        if sample.name not in self._few:
            self._few[sample.name] = self._why_few(sample)
        return self._few[sample.name]

    def _why_few(self, sample: Sample) -> str | None:
        held = [np.bincount(self.columns.codes(name)[0][sample.rows]) for name in self.plan.unit]
        n, unit = max(map(np.count_nonzero, held)), " × ".join(self.plan.unit)
        if n >= enough(self.plan.level):
            return None
        return f"no interval: one {unit} alone" if n == 1 else f"no interval: only {n} of {unit} to draw from"

    def unit_sample(self, sample: Sample) -> UnitSample:
        """A sample with its units, sorted once."""
        if sample.name not in self._unit_samples:
            assert self.unit is not None
            self._unit_samples[sample.name] = sample.unit_sample(self.unit, self.n_units)
        return self._unit_samples[sample.name]

    def _others(self, q: Question, sample: Sample, rng: np.random.Generator) -> Floats:
        if isinstance(q.form, OfCounts):
            drawn = self._outcome_counts(sample, rng)
            return np.asarray(q.form.function(Counts(*drawn.T)), dtype=np.float64)
        if q.metric.judged is not None:
            return self._judged(q, sample, rng)
        if self.weights is not None:
            return self._weighted(q, sample)
        arrays, settings = q.arrays(sample), q.settings
        draws = trial_draws(sample.positive, self.plan.bootstrap, rng)
        return np.array([q.metric.function(**{c: a[d] for c, a in arrays.items()}, **settings) for d in draws])

    def _outcome_counts(self, sample: Sample, rng: np.random.Generator) -> Floats:
        if self.weights is None or self.unit is None:
            return count_replicates(sample.outcomes, self.plan.bootstrap, rng)
        return weighted_totals(self.weights, sample.unit_outcomes(self.unit, self.n_units))

    def _judged(self, q: Question, sample: Sample, rng: np.random.Generator) -> Floats:
        """Replicates of a metric of confidences, from how often each confidence was right and wrong."""
        assert q.metric.judged is not None
        confidence, code = sample.judged
        cells = 1 + 2 * len(confidence)
        values = []
        for counts in self._cell_counts(sample, code, cells, rng):
            judged = Judged(confidence, counts[:, 2::2], counts[:, 1::2], counts.sum(axis=1))
            values.append(np.asarray(q.metric.judged(judged, **q.settings), dtype=np.float64))
        return np.concatenate(values)

    def _cell_counts(
        self, sample: Sample, code: NDArray[np.int64], cells: int, rng: np.random.Generator
    ) -> Iterator[Floats]:
        """How often trials of each code are drawn (replicate × code), some replicates at a time."""
        step = max(1, MOST_CELLS // cells)
        if self.weights is None or self.unit is None:
            sides = [np.bincount(code[side], minlength=cells) for side in (sample.positive, ~sample.positive)]
            shares = [(int(have.sum()), have / max(1, have.sum())) for have in sides]
            for start in range(0, self.plan.bootstrap, step):
                size = min(step, self.plan.bootstrap - start)
                drawn = [rng.multinomial(n, p, size=size).astype(np.float64) for n, p in shares if n]
                yield np.sum(drawn, axis=0)
            return
        unit = self.unit[sample.rows]
        for start in range(0, len(self.weights), step):
            part = self.weights[start : start + step]
            yield np.stack([np.bincount(code, weights=w[unit], minlength=cells) for w in part])

    def _weighted(self, q: Question, sample: Sample) -> Floats:
        assert self.weights is not None and self.unit is not None
        unit, arrays = self.unit[sample.rows], q.arrays(sample)
        return np.array([q.metric.function(**arrays, weight=w[unit], **q.settings) for w in self.weights])

    def interval(self, question: Question, sample: Sample, value: float, replicates: Floats) -> tuple[float, float]:
        """The interval of a figure from its replicates.

        `auto`: BCa, for least costs the interval that knows their optimism, percentile where neither can be had.
        """
        form, plan = question.form, self.plan
        has_form = form is not None and not isinstance(form, OfCounts)
        if plan.method == "bca" and not has_form:
            raise UsageError(f"a BCa interval of {question.text} is not available; use percentile")
        if plan.method == "percentile" or not has_form or math.isnan(value):
            return intervals.percentile(replicates, plan.level)
        if (sample.name, question.text) in self._at_best and isinstance(form, MinimumCost):
            fixed, costs = self._at_best[sample.name, question.text]
            low, high = intervals.of_least_cost(replicates, costs, value, self._acceleration(fixed, sample), plan.level)
            return low, min(high, max(form.trivial, value))
        assert form is not None and not isinstance(form, OfCounts)
        return intervals.bca(replicates, value, self._acceleration(form, sample), plan.level)

    def for_averages(self, question: Question, sample: Sample, value: float, replicates: Floats) -> Floats:
        """Replicates as figures made of several figures need them: those of a least cost without its optimism."""
        if (sample.name, question.text) not in self._at_best:
            return replicates
        return self._at_best[sample.name, question.text][1] * intervals.growth_of_least_cost(replicates, value)

    def _note_accelerations(self, forms: list[Form], sample: Sample) -> None:
        """The accelerations of all forms under units, from one pass over the blocks that are left out."""
        if self.weights is None or self.plan.method == "percentile" or not forms:
            return
        without = unit_replicates(self.unit_sample(sample), forms, self._without_blocks)
        for form, values in zip(forms, without, strict=True):
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


def _centred(form: Form, drawn: Floats, tally: Tally, sample: Sample) -> Floats:
    """Replicates of a sum over all trials that were drawn on bins of scores, moved to the figure of the scores themselves."""
    if not isinstance(form, PairShare | ClassSums | Whole):
        return drawn
    exact = sample.steps.area if isinstance(form, PairShare) else form.value(sample.tally)
    shift = exact - form.value(tally)
    return drawn + shift if math.isfinite(shift) else drawn


def _draw(plan: Plan, columns: Columns) -> tuple[NDArray[np.int64], Array]:
    """The unit of each trial and how often each unit is drawn (replicate × unit)."""
    parts = []
    for name in plan.unit:
        codes, values = columns.codes(name)
        if len(values) < 2:
            raise DataError(f"there is only one {name} ({values[0]!r}); units can be drawn only from two or more")
        if plan.stratify:
            refuse_mixed_strata(codes, columns.positive, len(values), name)
        rng = generator(plan.seed, "unit", name)
        parts.append((codes, draw_units(codes, columns.positive, len(values), plan.bootstrap, rng)))
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
