"""Derived estimates: the value of an expression of metrics, with its interval (see `registry.Derived`).

The interval comes from the value of the expression in each replicate. All its parts must therefore come from the same
draws; if no unit is resampled, every trial is a unit.

The greatest of several noisy numbers is too high in the sample, and even more so in every replicate: the percentile
interval of a maximum over eight equal slices covers the truth in a quarter of all samples, the reflected interval
(2 · value − quantile) in 93 to 96 of 100. So expressions with `max` or `min` get the reflected interval.

One number has one interval: an expression that only names a metric, its mean over slices or its worst slice is the
number of a row of the tables, and has the interval of this row if there is one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from hitmiss.core.expressions import Derived, Term
from hitmiss.core.finding import Remark
from hitmiss.core.results import (
    Estimate,
)
from hitmiss.core.sorting import Floats
from hitmiss.engine.averages import by_slices
from hitmiss.engine.columns import Sample
from hitmiss.engine.drawn import Drawn
from hitmiss.engine.draws import Draws
from hitmiss.engine.interval import choose_interval
from hitmiss.engine.measurement import Measurement, weighed, with_interval
from hitmiss.engine.prepare import display_text
from hitmiss.engine.prepared_metric import PreparedMetric
from hitmiss.engine.samples import samples_of_slices
from hitmiss.stats.forms.base import Located
from hitmiss.stats.forms.composite import Expression
from hitmiss.stats.jackknife import LeftOut
from hitmiss.stats.students_t import MANY

MOST_WEIGHTS: Final = 1 << 28
"""The largest product of replicates and trials that is drawn if every trial is a unit."""
TOO_MANY: Final = Remark.of("no-interval/shared-too-many")


def derived_rows(work: Measurement, whole: Sample, derived: Sequence[Derived]) -> list[Estimate]:
    """Return every derived number of one run, computed from the metrics that the work measures."""
    if not derived:
        return []
    known = {q.text: q for q in work.questions}
    terms = {term.metric for one in derived for term in one.terms}
    questions = {text: known[display_text(text, work.protocol)] for text in terms}
    joint = {kind: _joint(work, whole, kind) for kind in {_is_mixed(one, questions) for one in derived}}
    rows = [_row(joint[_is_mixed(one, questions)], whole, one, questions) for one in derived]
    return [_as_shown(work, whole, row, one, questions) for row, one in zip(rows, derived, strict=True)]


def _is_mixed(derived: Derived, questions: Mapping[str, PreparedMetric]) -> bool:
    """Return whether only some of its metrics depend on how many trials are positive."""
    return len({questions[term.metric].metric.prevalence for term in derived.terms}) > 1


def _as_shown(
    work: Measurement, whole: Sample, row: Estimate, derived: Derived, questions: Mapping[str, PreparedMetric]
) -> Estimate:
    """Return a derived estimate with the interval that the tables have for the same number."""
    term = derived.alone
    if term is None or row.value is None:
        return row
    own = replace(work, questions=[questions[term.metric]], replicates={})
    worst = "max" if own.questions[0].metric.best == "low" else "min"
    average = {"": None, "mean": "macro", worst: "worst"}.get(term.over, "none")
    found = by_slices(own, whole, term.columns, []) if term.over else own.estimates(whole)
    same = next((e for e in found if e.average == average and e.low is not None), None)
    if same is None or same.value != row.value:
        return row
    return replace(row, low=same.low, high=same.high, method=same.method, note=same.note)


def _joint(work: Measurement, whole: Sample, is_mixed: bool) -> Measurement:
    """Return work whose samples all come from the same draws: those of units, or with every trial as a unit.

    Where some metrics are drawn within classes and others from all trials, all are drawn from all: two streams would
    lose what the metrics have in common (the AUC and the accuracy: 85 to 90 % instead of 95 %).
    """
    plan, n = work.draws.plan, whole.n
    if not plan.bootstrap:
        return work
    if is_mixed and plan.stratify is None:
        plan = replace(plan, stratify=False)
    if plan.unit:
        same = plan is work.draws.plan
        return work if same else replace(work, draws=Draws.prepare(plan, work.columns, whole.rows), replicates={})
    if plan.bootstrap * n > MOST_WEIGHTS or len(whole.rows) != n:  # rows that are counts of trials
        return replace(work, draws=Draws(plan, work.columns, whole.rows))
    return replace(work, draws=Draws.prepare(replace(plan, unit=("item",)), work.columns, whole.rows))


def _row(work: Measurement, whole: Sample, derived: Derived, questions: Mapping[str, PreparedMetric]) -> Estimate:
    asked, plan = [questions[term.metric] for term in derived.terms], work.draws.plan
    row = Estimate(
        derived.name,
        None,
        n=whole.n,
        n_positive=whole.n_positive,
        run=dict(whole.run),
        settings={"of": derived.text},
        best=asked[0].metric.best,
    )
    row = weighed(row, whole)
    parts = [_samples(whole, term, question) for term, question in zip(derived.terms, asked, strict=True)]
    lost = next((str(term) for term, part in zip(derived.terms, parts, strict=True) if not part), None)
    if lost is not None:
        return replace(row, note=Remark.of("undefined/part", lost=lost))
    with np.errstate(divide="ignore", invalid="ignore"):
        figures = [over(term, [v for _, v in part]) for term, part in zip(derived.terms, parts, strict=True)]
        value = float(derived.of(figures))
    if math.isnan(value):
        return replace(row, note=Remark.of("undefined/zero-denominator"))
    row = replace(row, value=value)
    if not plan.bootstrap:
        return row
    if work.draws.weights is None:
        return replace(row, note=TOO_MANY)
    drawn = [
        over(term, [work.draws.replicates([question], sample)[0] for sample, _ in part])
        for term, question, part in zip(derived.terms, asked, parts, strict=True)
    ]
    form = Expression(derived.of, derived.is_extreme, not any(isinstance(q.form, Located) for q in asked))
    little = (work.draws.too_few(sample) for part in parts for sample, _ in part)
    known = Drawn(
        value,
        derived.range([q.metric.range for q in asked]),
        replicates=form.combine(drawn),
        degrees=min(work.draws.degrees(sample) for part in parts for sample, _ in part) if plan.unit else MANY,
        by_units=True,
        left=_left(work, whole, derived, asked, parts) if plan.unit and not derived.is_extreme else None,
        too_few=lambda: next(filter(None, little), None),
    )
    return with_interval(row, choose_interval(form, known, plan))


def _left(
    work: Measurement,
    whole: Sample,
    derived: Derived,
    asked: Sequence[PreparedMetric],
    parts: Sequence[Sequence[tuple[Sample, float]]],
) -> LeftOut | None:
    """Return the expression without one block of units each; None if it is unknown for a part."""
    found = []
    for term, question, part in zip(derived.terms, asked, parts, strict=True):
        own = [_left_of(work.draws, question, sample, value) for sample, value in part]
        known = [values for values in own if values is not None]
        if len(known) < len(own):
            return None
        found.append(over(term, known))
    return work.draws.left_out(asked[0], [whole], Expression(derived.of).combine(found))


def _left_of(draws: Draws, question: PreparedMetric, sample: Sample, value: float) -> Floats | None:
    """Return one number without one block of units each.

    Of crossed units these give the error. The jackknife of what is read at a quantile is no error, so that a smooth form
    with the same influences stands for it.
    """
    form, smooth = question.form, None
    if len(draws.plan.unit) > 1 and isinstance(form, Located):
        smooth = draws.left_smooth(form, sample)
    if smooth is None:
        return draws.left(form, sample)
    return smooth[1] + (value - float(smooth[0].value(sample.tally)))


def _samples(whole: Sample, term: Term, question: PreparedMetric) -> list[tuple[Sample, float]]:
    """Return the samples of a term in which its metric is defined, with their numbers."""
    samples = samples_of_slices(whole, term.columns) if term.columns else [whole]
    figures = [(sample, float(question.value(sample))) for sample in samples]
    return [(sample, value) for sample, value in figures if not math.isnan(value)]


def over(term: Term, values: Sequence[Floats] | Sequence[float]) -> Floats:
    """Return the value of a term, given the numbers of its samples (sample × replicate)."""
    table = np.asarray(values, dtype=np.float64)
    return np.asarray(getattr(table, term.over)(axis=0) if term.over else table[0])
