"""Derived figures: what an expression of figures is, and how sure (see `expressions`).

The interval comes from what the expression is in each replicate. All its figures must come from the same draws for that,
so where no unit is drawn every trial is a unit of its own.

The greatest of several noisy figures is too great in the sample and more so in every replicate: the percentile interval of
a maximum over eight equal slices covers the truth in a quarter of all samples, the reflected one (2 · figure − quantile)
in 93 to 96 of 100. So expressions with `max` or `min` get the reflected one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from hitmiss.expressions import Derived, Term
from hitmiss.measuring.asking import Work
from hitmiss.measuring.ends import SAME
from hitmiss.measuring.grouping import Sample, samples_of_slices
from hitmiss.measuring.uncertainty import Draws, Question
from hitmiss.results import Estimate
from hitmiss.stats import intervals
from hitmiss.tally import Floats

MOST_WEIGHTS: Final = 1 << 28
"""Replicates × trials that are drawn at most where every trial is a unit."""
TOO_MANY: Final = "no interval: its figures share trials, and those are too many to draw together; draw a --unit"


def derived_rows(work: Work, whole: Sample, derived: Sequence[Derived]) -> list[Estimate]:
    """Every derived figure of one run, made of the metrics that the work asks."""
    if not derived:
        return []
    joint, questions = _joint(work, whole), {q.text: q for q in work.questions}
    return [_row(joint, whole, one, questions) for one in derived]


def _joint(work: Work, whole: Sample) -> Work:
    """Work whose samples all come from the same draws: those of units, or of every trial as a unit."""
    plan, n = work.draws.plan, len(whole.columns.trials)
    if not plan.bootstrap or plan.unit:
        return work
    if plan.bootstrap * n > MOST_WEIGHTS or whole.columns.trials.frame.height != n:  # rows that are counts of trials
        return replace(work, draws=Draws(work.draws.plan, work.columns))
    return replace(work, draws=Draws.prepare(replace(plan, unit=("item",)), work.columns))


def _row(work: Work, whole: Sample, derived: Derived, questions: Mapping[str, Question]) -> Estimate:
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
    parts = [_samples(whole, term, question) for term, question in zip(derived.terms, asked, strict=True)]
    lost = next((str(term) for term, part in zip(derived.terms, parts, strict=True) if not part), None)
    if lost is not None:
        return replace(row, note=f"undefined: {lost} is")
    with np.errstate(divide="ignore", invalid="ignore"):
        figures = [_over(term, [v for _, v in part]) for term, part in zip(derived.terms, parts, strict=True)]
        value = float(derived.of(figures))
    if math.isnan(value):
        return replace(row, note="undefined: nothing to divide by")
    row = replace(row, value=value)
    if not plan.bootstrap:
        return row
    if work.draws.weights is None:
        return replace(row, note=TOO_MANY)
    drawn = [
        _over(term, [work.draws.replicates([question], sample)[0] for sample, _ in part])
        for term, question, part in zip(derived.terms, asked, parts, strict=True)
    ]
    little = next(filter(None, (work.draws.too_few(sample) for part in parts for sample, _ in part)), None)
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = intervals.percentile(np.asarray(derived.of(drawn)), plan.level)
    if little is not None or not low < high:
        return replace(row, note=little or SAME)
    if derived.is_extreme:
        least, most = derived.range([q.metric.range for q in asked])
        low, high = max(2 * value - high, least), min(2 * value - low, most)
    kind = "reflected" if derived.is_extreme else "percentile"
    return replace(row, low=low, high=high, method=f"bootstrap {replace(plan, method='percentile')}, {kind}")


def _samples(whole: Sample, term: Term, question: Question) -> list[tuple[Sample, float]]:
    """The samples of a term in which its metric is defined, and the figures there."""
    samples = samples_of_slices(whole, term.columns) if term.columns else [whole]
    figures = [(sample, float(question.value(sample))) for sample in samples]
    return [(sample, value) for sample, value in figures if not math.isnan(value)]


def _over(term: Term, values: Sequence[Floats] | Sequence[float]) -> Floats:
    """What a term is, given the figures of its samples (sample × replicate)."""
    table = np.asarray(values, dtype=np.float64)
    return np.asarray(getattr(table, term.over)(axis=0) if term.over else table[0])
