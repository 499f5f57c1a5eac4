"""Asking: a metric made ready for trials, and its figure, interval and note for one sample."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final

import numpy as np

from hitmiss.design import Protocol
from hitmiss.errors import DataError, UnknownName, UsageError
from hitmiss.io.words import same_class
from hitmiss.measuring.ends import SAME, Ends, without_width
from hitmiss.measuring.grouping import Columns, Sample
from hitmiss.measuring.reasons import few, why_no_interval, why_undefined
from hitmiss.measuring.uncertainty import Draws, Question
from hitmiss.registry import Metric, resolve
from hitmiss.results import Estimate
from hitmiss.spec import Setting, Spec
from hitmiss.stats import intervals
from hitmiss.stats.binomial import wilson
from hitmiss.stats.forms import Functional, OfColumns, OfConfidences
from hitmiss.stats.quantiles import quantile_interval
from hitmiss.tally import Floats
from hitmiss.trials import Trials
from hitmiss.values import Quantile, Rate

ROUNDING: Final = 1e-12
"""Ends that differ by less, relative to their size, differ by rounding."""
BEYOND: Final = 5.0
"""Replicates beyond each end of an interval that make it one of replicates."""
MANY: Final = 1e9
"""Degrees of freedom of an error that many trials stand behind."""


def ask(metric: str | Spec, trials: Trials, protocol: Protocol) -> Question:
    """A metric made ready for these trials: settings of the protocol filled in, score kind checked."""
    spec, entry, _ = resolve(metric)
    spec = Spec.of(spec.name, **{**protocol.settings.get(spec.name, {}), **dict(spec.settings)})
    settings = entry.settings(spec)
    shown = {k: v for k, v in spec.settings if protocol.settings.get(spec.name, {}).get(k, entry.defaults[k]) != v}
    refuse_absent(spec.name, entry, trials)
    kind = trials.header.score_kind
    if "score" in entry.columns and entry.kinds and kind not in entry.kinds:
        raise DataError(
            f"{spec.name} needs {' or '.join(entry.kinds)} scores and these are declared {kind!r}; "
            f"declare the kind if you know better, or calibrate on a development set",
            code="wrong-score-kind",
        )
    if entry.positive is not None and not _takes(entry.positive, trials.header.positive):
        raise DataError(
            f"{spec.name} takes {entry.positive} to be the positive class and in these trials it is "
            f"{trials.header.positive!r}; read them with positive={entry.positive!r}",
            code="wrong-positive",
        )
    return Question(str(Spec.of(spec.name, **shown)), entry, settings, form_of(entry, settings))


def refuse_absent(name: str, entry: Metric, trials: Trials) -> None:
    """Refuse a metric whose columns the trials do not have, with what to do about it."""
    absent = [c for c in entry.columns if c not in trials.frame.columns]
    if not absent:
        return
    if absent[0] == "decision":
        how = "decide at a threshold (--threshold 0.5, or decisions.at_threshold)"
        raise UsageError(f"{name} needs decisions, and these trials have none; {how}", code="no-decisions")
    own = sorted({*trials.frame.columns} - {"item", "target"})
    raise UnknownName(f"column that {name} needs", absent[0], own)


def form_of(entry: Metric, settings: Mapping[str, Setting]) -> Functional:
    """The form of a metric with its settings: the same object whenever the same is asked, so that it can be looked up."""
    if entry.form is not None:
        return _made(entry.form, tuple(sorted(settings.items())))
    if entry.judged is not None:
        return OfConfidences(entry.function, entry.columns, settings, judged=entry.judged)
    return OfColumns(entry.function, entry.columns, settings)


@cache
def _made(form: Callable[..., Functional], settings: tuple[tuple[str, Setting], ...]) -> Functional:
    return form(**dict(settings))


def _takes(wanted: str, positive: str) -> bool:
    """Whether a metric's positive class is that of the trials; undeclared classes (`positive`) are the caller's word."""
    return positive == "positive" or same_class(wanted, positive)


@dataclass(frozen=True, eq=False)
class Work:
    """The questions and the draws, and the replicates of every sample that was asked."""

    columns: Columns
    questions: list[Question]
    draws: Draws
    protocol: Protocol = field(default_factory=Protocol)
    replicates: dict[str, list[Floats]] = field(default_factory=dict)

    def estimates(self, sample: Sample) -> list[Estimate]:
        """Every question's figure of one sample."""
        if self.draws.plan.bootstrap:
            pairs = zip(self.questions, self._replicates(sample), strict=True)
            self.replicates[sample.name] = [np.nan_to_num(r) if self._is_zeroed(q) else r for q, r in pairs]
        return [self._estimate(i, q, sample) for i, q in enumerate(self.questions)]

    def drawn(self, sample: Sample, index: int) -> Floats:
        """Replicates of a question for a sample that was asked, for an average or a difference of figures."""
        question = self.questions[index]
        return self.draws.for_averages(question, sample, question.value(sample), self.replicates[sample.name][index])

    def corrected(self, sample: Sample, index: int) -> float:
        """A question's figure of a sample that was asked, without the optimism of a minimum."""
        question = self.questions[index]
        value = float(question.value(sample))
        return self.draws.corrected(question, sample, value, self.replicates[sample.name][index])

    def _replicates(self, sample: Sample) -> list[Floats]:
        """Replicates of every question; nothing is known from those of a figure that gets no interval."""
        drawn = iter(self.draws.replicates([q for q in self.questions if q.metric.interval], sample))
        unknown = np.full(self.draws.plan.bootstrap, math.nan)
        return [next(drawn) if q.metric.interval else unknown for q in self.questions]

    def _estimate(self, index: int, question: Question, sample: Sample) -> Estimate:
        value = question.value(sample)
        row = blank(question, sample.n, sample.n_positive, sample.run, sample.slice)
        row = replace(row, of=getattr(value, "of", None), **units_of(self.draws, [sample]))
        if math.isnan(value) and self._is_zeroed(question):
            return replace(row, value=0.0, note=f"0 by convention: nothing to divide by in {question.metric.name}")
        if math.isnan(value):
            return replace(row, value=None, note=why_undefined(sample, question))
        found = self._interval(index, question, sample, value)
        notes = filter(None, (few(sample), found.note))
        row = replace(row, low=found.low, high=found.high, method=found.method)
        return replace(row, value=float(value), note="; ".join(notes) or None)

    def _is_zeroed(self, question: Question) -> bool:
        return self.protocol.zero_undefined and question.form.kind == "decisions"

    def at_level(self, index: int, sample: Sample, level: float) -> Ends:
        """The interval of a question's figure at another level.

        Where so few replicates lie beyond its ends that they say nothing, it is Student's, which needs their spread alone.
        """
        plan, question = replace(self.draws.plan, level=level), self.questions[index]
        value = question.value(sample)
        found = replace(self, draws=replace(self.draws, plan=plan))._interval(index, question, sample, value)
        beyond = plan.bootstrap * (1.0 - level) / 2.0
        if plan.unit or beyond >= BEYOND or found.method is None or not found.method.startswith("bootstrap"):
            return found
        drawn, centre = self.drawn(sample, index), self.corrected(sample, index)
        low, high = intervals.student(drawn, centre, MANY, question.metric.range, level)
        return Ends.of((min(low, float(value)), max(high, float(value))), found.method, found.note)

    def _interval(self, index: int, question: Question, sample: Sample, value: float) -> Ends:
        plan = self.draws.plan
        silence = why_no_interval(plan, question, sample, value)
        if silence is not None:
            return Ends(note=silence)
        if isinstance(value, Rate) and not plan.unit:
            return Ends.of(wilson(value.hits, value.of, plan.level), "wilson")
        if isinstance(value, Quantile) and not plan.unit:
            return Ends.of(quantile_interval(value.ordered, value.share, plan.level), "order statistics")
        is_area = question.form.is_area
        if plan.bootstrap and not (is_area and self.protocol.delong and not plan.unit):
            return self._resampled(index, question, sample, value)
        if is_area:
            return Ends.of(sample.steps.interval(plan.level), "delong" if sample.steps.variance else "newcombe")
        return Ends()

    def _resampled(self, index: int, question: Question, sample: Sample, value: float) -> Ends:
        plan, drawn = self.draws.plan, self.replicates[sample.name][index]
        little = self.draws.too_few(sample)
        if little is not None:
            return Ends(note=little)
        low, high = self.draws.interval(question, sample, value, drawn)
        if math.isclose(low, high, rel_tol=ROUNDING):  # every replicate is the same: that is no certainty
            return without_width(question, sample, value, plan)
        lost = int(np.isnan(drawn).sum())
        return Ends.of(
            (low, high),
            f"bootstrap {self.draws.said(question)}",
            f"{lost} replicates without a class left out" if lost else None,
        )


def blank(question: Question, n: int, n_positive: int, run: Mapping[str, str], slice_: Mapping[str, str]) -> Estimate:
    """An estimate of a question without a figure yet."""
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


def with_interval(
    row: Estimate, drawn: Floats, work: Work, samples: Sequence[Sample], question: Question, centre: float
) -> Estimate:
    """A figure made of other figures, with the interval of what it is in each replicate, of samples with enough units.

    Trials: percentile. Units: Student's, on the scale of the metric, or the plain one for a gap. `centre` is the figure
    without the optimism of its parts; where the interval leaves the figure out, both are said.
    """
    draws, plan = work.draws, work.draws.plan
    row = replace(row, **units_of(draws, samples))
    if plan.unit and plan.method == "auto":
        bounds = (-math.inf, math.inf) if row.average == "gap" else question.metric.range
        degrees = min(draws.units(sample)[1] for sample in samples) - 1.0
        low, high = intervals.student(drawn, centre, degrees, bounds, plan.level)
    else:
        low, high = intervals.percentile(drawn, plan.level)
    silence = next(
        filter(None, map(draws.too_few, samples)), SAME if math.isclose(low, high, rel_tol=ROUNDING) else None
    )
    if silence:
        return replace(row, note="; ".join(filter(None, (row.note, silence))))
    said = replace(plan, method="auto" if plan.unit and plan.method == "auto" else "percentile")
    ends = Ends.of((low, high), f"bootstrap {draws.said(question, said)}")
    row = replace(row, low=ends.low, high=ends.high, method=ends.method)
    return outside(row, centre)


def outside(row: Estimate, centre: float) -> Estimate:
    """A word where an interval leaves its own figure out: a minimum is too low in its own sample, and by how much."""
    if row.value is None or row.low is None or row.high is None or row.low <= row.value <= row.high:
        return row
    why = f"optimistic: chosen on the same trials; about {centre:.4f} without that, which the interval is of"
    return replace(row, note="; ".join(filter(None, (row.note, why))))


def units_of(draws: Draws, samples: Sequence[Sample]) -> dict[str, Any]:
    """The number of units behind a figure and the effective one, where units are drawn: of several samples the least."""
    if not draws.plan.unit or not draws.plan.bootstrap:
        return {}
    held = [draws.units(sample) for sample in samples]
    return {"units": min(n for n, _ in held), "units_effective": min(e for _, e in held)}
