"""The estimates of one sample: the value of every metric with its interval and note."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from hitmiss.core.protocol import Protocol
from hitmiss.core.rates import Quantile, Rate
from hitmiss.core.results import (
    Estimate,
)
from hitmiss.core.sorting import Floats
from hitmiss.engine.columns import Columns, Sample
from hitmiss.engine.draws import Draws
from hitmiss.engine.interval import (
    AT_END,
    ONE_UNIT,
    OVER_UNITS,
    SAME,
    Interval,
    share_of_units,
    too_few_errors,
    without_width,
)
from hitmiss.engine.notes import few, why_fitted, why_no_interval, why_undefined
from hitmiss.engine.prepared_metric import PreparedMetric
from hitmiss.stats import intervals, students_t
from hitmiss.stats.forms.base import Replicated
from hitmiss.stats.forms.crossing import Crossing
from hitmiss.stats.intervals import quantile_interval, wilson

ROUNDING: Final = 1e-12
"""Ends with a smaller relative difference than this differ only by rounding."""
BEYOND: Final = 5.0
"""How many replicates must lie beyond each end of an interval for a percentile interval."""


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
        """Return the figure of every question for one sample."""
        if self.draws.plan.bootstrap:
            pairs = zip(self.questions, self._replicates(sample), strict=True)
            self.replicates[sample.name] = [np.nan_to_num(r) if self._is_zeroed(q) else r for q, r in pairs]
        return [self._estimate(i, q, sample) for i, q in enumerate(self.questions)]

    def drawn(self, sample: Sample, index: int) -> Floats:
        """Return the replicates of a question for a measured sample, for an average or a difference of figures."""
        return self.questions[index].form.for_averages(self._replicated(sample, index))

    def left(self, sample: Sample, index: int) -> Floats | None:
        """Return the figures of a question without one unit each, as `drawn` returns replicates; None without units."""
        of = self._replicated(sample, index)
        return self.questions[index].form.left_for_averages(of, lambda form: self.draws.left(form, sample))

    def corrected(self, sample: Sample, index: int) -> float:
        """Return the figure of a question for a measured sample, without the optimism of a minimum."""
        return self.questions[index].form.corrected(self._replicated(sample, index))

    def _replicated(self, sample: Sample, index: int) -> Replicated:
        question, replicates = self.questions[index], self.replicates[sample.name][index]
        return self.draws.replicated(question, sample, float(question.value(sample)), replicates)

    def _replicates(self, sample: Sample) -> list[Floats]:
        """Return the replicates of every question; a figure that gets no interval needs none."""
        drawn = iter(self.draws.replicates([q for q in self.questions if q.metric.interval], sample))
        unknown = np.full(self.draws.plan.bootstrap, math.nan)
        return [next(drawn) if q.metric.interval else unknown for q in self.questions]

    def _estimate(self, index: int, question: PreparedMetric, sample: Sample) -> Estimate:
        value = question.value(sample)
        row = blank(question, sample.n, sample.n_positive, sample.run, sample.slice)
        row = replace(row, of=getattr(value, "of", None) if sample.weight is None else None)
        row = with_units(weighed(row, sample), self.draws, [sample], question.labelled)
        if math.isnan(value) and self._is_zeroed(question):
            return replace(row, value=0.0, note=f"0 by convention: nothing to divide by in {question.metric.name}")
        if math.isnan(value):
            return replace(row, value=None, note=why_undefined(sample, question))
        found = self._interval(index, question, sample, value)
        notes = filter(None, (few(sample) if question.labelled else None, found.note))
        row = replace(row, low=found.low, high=found.high, method=found.method)
        return replace(row, value=float(value), note="; ".join(notes) or None)

    def _is_zeroed(self, question: PreparedMetric) -> bool:
        return self.protocol.zero_undefined and question.metric.zero

    def at_level(self, index: int, sample: Sample, level: float) -> Interval:
        """Return the interval of a question's figure at another level.

        If too few replicates lie beyond its ends to estimate them, Student's interval is used, which needs only their
        spread.
        """
        plan, question = replace(self.draws.plan, level=level), self.questions[index]
        value = question.value(sample)
        found = replace(self, draws=replace(self.draws, plan=plan))._interval(index, question, sample, value)
        beyond = plan.bootstrap * (1.0 - level) / 2.0
        if plan.unit or beyond >= BEYOND or found.method is None or not found.method.startswith("bootstrap"):
            return found
        drawn, centre = self.drawn(sample, index), self.corrected(sample, index)
        low, high = intervals.student(drawn, centre, students_t.MANY, question.metric.range, level)
        return Interval.of((min(low, float(value)), max(high, float(value))), found.method, found.note)

    def _interval(self, index: int, question: PreparedMetric, sample: Sample, value: float) -> Interval:
        plan = self.draws.plan
        silence = why_no_interval(plan, question, sample, value)
        if silence is not None:
            return Interval(note=silence)
        if isinstance(value, Rate) and not plan.unit:
            return Interval.of(wilson(value.hits, value.of, plan.level), "wilson")
        if isinstance(value, Quantile) and not plan.unit:
            return Interval.of(quantile_interval(value.ordered, value.share, plan.level), "order statistics")
        is_area = question.form.is_area
        if plan.bootstrap and not (is_area and self.protocol.delong and not plan.unit):
            return self._resampled(index, question, sample, value)
        if is_area:
            return Interval.of(sample.steps.interval(plan.level), "delong" if sample.steps.variance else "newcombe")
        return Interval()

    def _resampled(self, index: int, question: PreparedMetric, sample: Sample, value: float) -> Interval:
        drawn = self.replicates[sample.name][index]
        little = self.draws.too_few(sample, question.labelled)
        if little is not None:
            return Interval(note=little)
        low, high = self.draws.interval(question, sample, value, drawn)
        plan = self.draws.plan
        if isinstance(value, Rate) and 0.0 < value < 1.0 and len(plan.unit) == 1 and plan.method == "auto":
            widest = share_of_units(question, sample, value, self.draws)
            if widest is not None and widest[1]:
                return Interval.of(widest[0], OVER_UNITS)
            if (
                widest is not None and sample.weight is None
            ):  # weights may go with the outcome, and then it is too narrow
                low, high = max(low, widest[0][0]), min(high, widest[0][1])
        if math.isclose(low, high, rel_tol=ROUNDING):  # equal replicates do not make the figure certain
            return without_width(question, sample, value, self.draws)
        rare = AT_END if float(value) in question.metric.range else too_few_errors(question.form, sample, high - low)
        if rare is not None:
            return Interval(note=rare)
        lost = int(np.isnan(drawn).sum())
        if self.draws.plan.unit and math.isnan(low) and lost < len(drawn):
            return Interval(note=ONE_UNIT)
        return Interval.of(
            (low, high),
            f"bootstrap {self.draws.said(question)}",
            f"{lost} replicates without a class left out" if lost else None,
        )


def blank(
    question: PreparedMetric, n: int, n_positive: int, run: Mapping[str, str], slice_: Mapping[str, str]
) -> Estimate:
    """Return an estimate of a question that has no figure yet."""
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


def with_interval(
    row: Estimate,
    drawn: Floats,
    work: Measurement,
    samples: Sequence[Sample],
    question: PreparedMetric,
    centre: float,
    left: Floats | None = None,
    skewed: Callable[[tuple[float, float]], tuple[float, float]] = lambda ends: ends,
) -> Estimate:
    """Return a figure made of other figures, with an interval from its value in each replicate.

    With trials as units the interval is a percentile interval; with other units it is Student's, on the scale of the
    metric (the plain scale for a gap, then `skewed`), with its value without one unit each (`left`). Samples with
    too few units get none. `centre` is the figure without the optimism of its parts; if the interval does not contain
    the figure, the note gives both.
    """
    draws, plan = work.draws, work.draws.plan
    row = with_units(row, draws, samples, question.labelled)
    if plan.unit and plan.method == "auto":
        bounds = (-math.inf, math.inf) if row.average == "gap" else question.metric.range
        degrees = min(draws.degrees(sample, question.labelled) for sample in samples)
        without = draws.left_out(question, samples, left)
        smooth = not isinstance(question.form, Crossing)
        low, high = skewed(intervals.student(drawn, centre, degrees, bounds, plan.level, without, smooth))
    else:
        low, high = intervals.percentile(drawn, plan.level)
    rare = None if row.average == "macro" else why_rare(question, samples, high - low)
    silence = next(
        filter(None, (why_fitted(plan, question), *(draws.too_few(s, question.labelled) for s in samples))),
        SAME if math.isclose(low, high, rel_tol=ROUNDING) else rare,
    )
    if silence:
        return replace(row, note="; ".join(filter(None, (row.note, silence))))
    said = replace(plan, method="auto" if plan.unit and plan.method == "auto" else "percentile")
    ends = Interval.of((low, high), f"bootstrap {draws.said(question, said)}")
    row = replace(row, low=ends.low, high=ends.high, method=ends.method)
    return outside(row, centre)


def why_rare(question: PreparedMetric, samples: Sequence[Sample], width: float) -> str | None:
    """Say why a difference of samples gets no interval because one of them shows too few errors."""
    return next(filter(None, (too_few_errors(question.form, s, width) for s in samples)), None)


def outside(row: Estimate, centre: float) -> Estimate:
    """Add a note if an interval does not contain its own figure: a minimum is too low in its own sample."""
    if row.value is None or row.low is None or row.high is None or row.low <= row.value <= row.high:
        return row
    why = f"optimistic: chosen on the same trials; about {centre:.4f} without that, which the interval is of"
    return replace(row, note="; ".join(filter(None, (row.note, why))))


def with_units(row: Estimate, draws: Draws, samples: Sequence[Sample], labelled: bool) -> Estimate:
    """Note the number of units behind a figure and the effective number; of several samples, the least."""
    if not draws.plan.unit or not draws.plan.bootstrap:
        return row
    held = [draws.units(sample, labelled) for sample in samples]
    return replace(row, units=min(n for n, _ in held), units_effective=min(e for _, e in held))
