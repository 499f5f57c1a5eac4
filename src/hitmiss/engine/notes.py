"""Why an estimate is undefined, has no interval, or rests on few trials: the notes next to the numbers."""

from __future__ import annotations

from typing import Final

from hitmiss.core.finding import Remark
from hitmiss.core.rates import Quantile, Rate
from hitmiss.core.results import (
    REPEATED,
)
from hitmiss.core.sampling import SamplingPlan
from hitmiss.engine.columns import Sample
from hitmiss.engine.prepared_metric import PreparedMetric
from hitmiss.engine.weighted import UNDRAWN
from hitmiss.metrics.counts import Counts

FEW: Final = 10
"""A number with fewer trials of a class than this is marked."""


def why_undefined(sample: Sample, question: PreparedMetric) -> str:
    """Say what is missing when a number cannot be computed."""
    head = sample.columns.trials.header
    if question.labelled and sample.n_positive in (0, sample.n):
        return Remark.of("undefined/one-class", part=head.positive if sample.n_positive else head.negative)
    if "coverage" in question.settings and sample.counts.answered < (least := _least(question, sample)):
        share = f"{sample.counts.answered / sample.mass:.1%} of the trials were answered"
        return Remark.of("undefined/too-few", share=share, least=least / sample.mass)
    if question.form.kind == "decisions" or "decision" in question.metric.columns:
        return Remark.of(
            "undefined/nothing-there", counts=_what_is_missing(sample.counts, head.positive, head.negative)
        )
    return Remark.of("undefined/denominator", metric_name=question.metric.name)


def _least(question: PreparedMetric, sample: Sample) -> float:
    """Return how many answers a number at a given coverage needs."""
    return float(question.settings["coverage"] or 0.0) * sample.mass


def _what_is_missing(c: Counts[float], positive: str, negative: str) -> str:
    """Name the first empty count of a table of decisions that makes the denominator of a share zero."""
    sides = {
        "nothing was answered": c.answered,
        f"no {positive} was answered": c.tp + c.fn,
        f"no {negative} was answered": c.tn + c.fp,
        f"nothing was called {positive}": c.tp + c.fp,
        f"nothing was called {negative}": c.tn + c.fn,
    }
    return next((text for text, n in sides.items() if not n), "fewer answers with a confidence than it asks for")


def why_no_interval(plan: SamplingPlan, question: PreparedMetric, sample: Sample, value: float) -> str | None:
    """Say why a number has no interval although one could be expected; None if no reason is needed."""
    if not question.metric.interval:
        return Remark.of("no-interval/biased", metric_name=question.metric.name) if plan.bootstrap else None
    if sample.weight is not None and not plan.bootstrap:
        return UNDRAWN
    if value > 0.0 and (fitted := why_fitted(plan, question)):
        return fitted
    if plan.unit or not (plan.bootstrap or question.form.is_area or isinstance(value, Rate | Quantile)):
        return None
    return Remark.of(REPEATED) if sample.is_repeated else None


def why_fitted(plan: SamplingPlan, question: PreparedMetric) -> str | None:
    """Say why a number that is fitted to the trials has no interval if trials are drawn, alone or in an average."""
    if not question.form.is_fitted or not plan.bootstrap or plan.unit or plan.method != "auto":
        return None
    return Remark.of("no-interval/fitted", question_text=question.text)


def few(sample: Sample) -> str | None:
    """Return a note if a class has few trials."""
    head = sample.columns.trials.header
    for name, n in ((head.positive, sample.n_positive), (head.negative, sample.n - sample.n_positive)):
        if n < FEW:
            return Remark.of("few-of-class", n=n, name=name)
    return None
