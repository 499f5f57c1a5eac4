"""The estimates of one sample: the value of every metric with its interval and note."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hitmiss.core.finding import Remark, joined
from hitmiss.core.protocol import Protocol
from hitmiss.core.results import Estimate
from hitmiss.core.sorting import Floats
from hitmiss.engine.columns import Columns, Sample
from hitmiss.engine.drawn import NO_BOUNDS, Drawn, degrees_of, drawn_of
from hitmiss.engine.draws import Draws
from hitmiss.engine.few_errors import too_few_errors
from hitmiss.engine.interval import Interval, choose_interval
from hitmiss.engine.notes import few, why_fitted, why_no_interval, why_undefined
from hitmiss.engine.prepare import prepared_for
from hitmiss.engine.prepared_metric import PreparedMetric
from hitmiss.stats.forms.composite import Difference, Mean


@dataclass(frozen=True, eq=False)
class Measurement:
    """The questions and the draws, and the replicates of every sample that was measured."""

    columns: Columns
    questions: list[PreparedMetric]
    draws: Draws
    protocol: Protocol = field(default_factory=Protocol)
    replicates: dict[str, list[Floats]] = field(default_factory=dict)
    alone: Measurement | None = None
    """The same questions with draws of trials, for samples in which no item repeats (see `_plans`)."""

    def of(self, sample: Sample) -> Measurement:
        """Return the work whose draws are those of a sample."""
        return self if self.alone is None or sample.is_repeated else self.alone

    def estimates(self, sample: Sample) -> list[Estimate]:
        """Return the number of every question for one sample."""
        questions = [prepared_for(q, sample) for q in self.questions]
        if self.draws.plan.bootstrap:
            pairs = zip(questions, self._replicates(questions, sample), strict=True)
            self.replicates[sample.name] = [np.nan_to_num(r) if self._is_zeroed(q) else r for q, r in pairs]
        return [self._estimate(i, q, sample) for i, q in enumerate(questions)]

    def drawn(self, sample: Sample, index: int) -> Drawn:
        """Return what is known about the estimate of a question for a measured sample."""
        question, plan = prepared_for(self.questions[index], sample), self.draws.plan
        value = question.value(sample)
        replicates = self.replicates[sample.name][index] if plan.bootstrap else None
        silence = why_no_interval(plan, question, sample, value)
        return drawn_of(self.draws, question, sample, value, replicates, silence, self.protocol.delong)

    def part(self, sample: Sample, index: int, own: Estimate) -> Drawn:
        """Return the same with the interval that the estimate has, as a part of an average or a difference."""
        ends = None if own.low is None or own.high is None else (own.low, own.high)
        return replace(self.drawn(sample, index), ends=ends, method=own.method)

    def combined(
        self, form: Mean | Difference, samples: Sequence[Sample], index: int, whole: Sequence[Sample], value: float
    ) -> Drawn:
        """Return what is known about a mean or a difference of measured samples; `whole`: whose units count."""
        question, draws = self.questions[index], self.draws
        plan = draws.plan
        parts = [self.drawn(sample, index) for sample in samples]
        own = [part.for_averages(question.form) for part in parts]
        left = [self._left(sample, index) for sample in samples]
        known = [values for values in left if values is not None]
        without = form.combine(known) if len(known) == len(left) and known else None
        little = (draws.too_few(sample, question.labelled) for sample in whole)
        by_units = bool(plan.unit)
        is_gap = isinstance(form, Difference)
        return Drawn(
            value,
            NO_BOUNDS if is_gap else question.metric.range,
            why_fitted(plan, question),
            form.combine([_replicates(part) for part in own]),
            float(form.combine([part.middle for part in own])),
            degrees=min(degrees_of(draws, question, sample) for sample in whole),
            by_units=by_units,
            without=lambda _: draws.left_out(question, whole, without),
            too_few=lambda: next(filter(None, little), None),
            rare=lambda width: why_rare(question, samples, width) if is_gap else None,
            described=lambda said: draws.describe(question, said),
            parts=tuple(replace(part, centre=one.centre) for part, one in zip(parts, own, strict=True)),
        )

    def _left(self, sample: Sample, index: int) -> Floats | None:
        """Return the values of a question without one unit each, for averages; None without units."""
        question, replicates = prepared_for(self.questions[index], sample), self.replicates[sample.name][index]
        of = self.draws.replicated(question, sample, float(question.value(sample)), replicates)
        return question.form.left_for_averages(of, lambda form: self.draws.left(form, sample))

    def _replicates(self, questions: Sequence[PreparedMetric], sample: Sample) -> list[Floats]:
        """Return the replicates of every question; a number that gets no interval needs none."""
        drawn = iter(self.draws.replicates([q for q in questions if q.metric.interval], sample))
        unknown = np.full(self.draws.plan.bootstrap, math.nan)
        return [next(drawn) if q.metric.interval else unknown for q in questions]

    def _estimate(self, index: int, question: PreparedMetric, sample: Sample) -> Estimate:
        value = question.value(sample)
        row = blank(question, sample.n, sample.n_positive, sample.run, sample.slice)
        row = replace(row, of=getattr(value, "of", None) if sample.weight is None else None)
        row = with_units(weighed(row, sample), self.draws, [sample], question.labelled)
        if math.isnan(value) and self._is_zeroed(question):
            return replace(row, value=0.0, note=Remark.of("zero-by-convention", metric_name=question.metric.name))
        if math.isnan(value):
            return replace(row, value=None, note=why_undefined(sample, question))
        found = choose_interval(question.form, self.drawn(sample, index), self.draws.plan)
        notes = filter(None, (few(sample) if question.labelled else None, found.note))
        return replace(
            row, value=float(value), low=found.low, high=found.high, method=found.method, note=joined(*notes)
        )

    def _is_zeroed(self, question: PreparedMetric) -> bool:
        return self.protocol.zero_undefined and question.metric.zero


def blank(
    question: PreparedMetric, n: int, n_positive: int, run: Mapping[str, str], slice_: Mapping[str, str]
) -> Estimate:
    """Return an estimate of a question that has no number yet."""
    return Estimate(
        question.text,
        None,
        n=n,
        n_positive=n_positive,
        run=dict(run),
        slice=dict(slice_),
        settings=question.settings,
        best=question.metric.best,
    )


def weighed(row: Estimate, sample: Sample) -> Estimate:
    """Return an estimate with the sums of the sampling weights behind it, if there are any."""
    return row if sample.totals is None else replace(row, weight=sample.totals[0], weight_positive=sample.totals[1])


def with_interval(row: Estimate, found: Interval) -> Estimate:
    """Return an estimate with an interval and its note behind its own."""
    note = joined(row.note, found.note)
    return replace(row, low=found.low, high=found.high, method=found.method, note=note)


def why_rare(question: PreparedMetric, samples: Sequence[Sample], width: float) -> str | None:
    """Say why a difference of samples gets no interval because one of them shows too few errors."""
    return next(filter(None, (too_few_errors(question.form, s, width) for s in samples)), None)


def with_units(row: Estimate, draws: Draws, samples: Sequence[Sample], labelled: bool) -> Estimate:
    """Note the number of units behind an estimate and the effective number; of several samples, the least."""
    if not draws.plan.unit or not draws.plan.bootstrap:
        return row
    held = [draws.units(sample, labelled) for sample in samples]
    return replace(row, units=min(n for n, _ in held), units_effective=min(e for _, e in held))


def _replicates(drawn: Drawn) -> Floats:
    assert drawn.replicates is not None
    return drawn.replicates
