"""Why a figure is undefined, has no interval, or stands on few trials: the notes beside the numbers."""

from __future__ import annotations

from typing import Final

from hitmiss.design import Plan
from hitmiss.measuring.grouping import Sample
from hitmiss.measuring.uncertainty import Question
from hitmiss.metrics.counts import Counts
from hitmiss.values import Quantile, Rate

FEW: Final = 10
"""Fewer trials of a class than this and a figure is marked."""


def why_undefined(sample: Sample, question: Question) -> str:
    """What is missing where a figure cannot be computed."""
    head = sample.columns.trials.header
    if sample.n_positive == sample.n:
        return f"undefined: only {head.positive} here"
    if sample.n_positive == 0:
        return f"undefined: only {head.negative} here"
    if question.form.kind == "decisions" or "decision" in question.metric.columns:
        return f"undefined: {_what_is_missing(sample.counts, head.positive, head.negative)}"
    return f"undefined: an empty denominator in {question.metric.name}"


def _what_is_missing(c: Counts, positive: str, negative: str) -> str:
    """The first thing that a table of decisions lacks, of those without which a share has nothing to divide by."""
    sides = {
        "nothing was answered": c.answered,
        f"no {positive} was answered": c.tp + c.fn,
        f"no {negative} was answered": c.tn + c.fp,
        f"nothing was called {positive}": c.tp + c.fp,
        f"nothing was called {negative}": c.tn + c.fn,
    }
    return next((text for text, n in sides.items() if not n), "fewer answers with a confidence than it asks for")


def why_no_interval(plan: Plan, question: Question, sample: Sample, value: float) -> str | None:
    """Why nothing is said about how sure a figure is, where it would be said otherwise."""
    if not question.metric.interval:
        return f"no interval: resampling biases {question.metric.name}" if plan.bootstrap else None
    if plan.unit or not (plan.bootstrap or isinstance(value, Rate | Quantile)):
        return None
    return "no interval: items repeat; draw them as wholes (unit=item)" if sample.columns.is_repeated else None


def few(sample: Sample) -> str | None:
    """A word where a class has few trials."""
    head = sample.columns.trials.header
    for name, n in ((head.positive, sample.n_positive), (head.negative, sample.n - sample.n_positive)):
        if n < FEW:
            return f"only {n} {name}"
    return None
