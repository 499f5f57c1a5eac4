"""Warnings for readers of the figures: reversed, constant or misdeclared scores, ties, useless operating points."""

from __future__ import annotations

from collections.abc import Sequence

from hitmiss.measuring.grouping import Sample
from hitmiss.measuring.uncertainty import Question
from hitmiss.stats.forms import MinimumCost, equal_error
from hitmiss.tally import Tally

TIE_EFFECT = 1e-4
"""A difference between tie rules that is worth a word."""


def alarms(sample: Sample, questions: Sequence[Question]) -> list[str]:
    """Warnings about one run's trials as a whole."""
    asked_score = any("score" in q.metric.columns for q in questions)
    if not asked_score or not 0 < sample.n_positive < sample.n:
        return []
    found = [_constant(sample), _reversed(sample), _not_llr(sample), _ties(sample, questions)]
    found += _useless(sample, questions)
    where = ", ".join(f"{k}={v}" for k, v in sample.run.items())
    return [f"{where}: {text}" if where else text for text in found if text]


def _constant(sample: Sample) -> str | None:
    first = sample.score[0]
    if (sample.score != first).any():
        return None
    return f"every score is {first:g}: the detector says nothing, whatever the figures are"


def _reversed(sample: Sample) -> str | None:
    area = sample.steps.area
    if area >= 0.5:
        return None
    low, high = sample.steps.interval()
    if not high < 0.5:
        return None
    head = sample.columns.trials.header
    return (
        f"the scores look REVERSED: ROC AUC is {area:.4f} [{low:.4f}, {high:.4f}], so higher scores go with {head.negative}; "
        f"nothing was flipped. Declare the direction (--higher {head.negative}) if that is what the scores mean"
    )


def _not_llr(sample: Sample) -> str | None:
    """Log-likelihood ratios lie on both sides of 0, without a bound; probabilities called so give absurd costs."""
    if sample.columns.trials.header.score_kind != "llr":
        return None
    low, high = float(sample.score.min()), float(sample.score.max())
    if low < 0.0 or high > 1.0 or low == high:
        return None
    return (
        f"the scores are declared llr and all lie in 0..1 ({low:g} to {high:g}), as probabilities do: act_dcf and cllr then "
        "say nothing. Declare what they are (--score-kind probability) or turn them into log-likelihood ratios"
    )


def ties_matter(sample: Sample) -> bool:
    """Whether the EER depends on the rule for ties by more than `TIE_EFFECT`."""
    return 0 < sample.n_positive < sample.n and ties_differ(sample.tally)


def ties_differ(tally: Tally) -> bool:
    """The same of a tally with both classes."""
    return abs(equal_error("official").value(tally) - equal_error("grouped").value(tally)) > TIE_EFFECT


def _ties(sample: Sample, questions: Sequence[Question]) -> str | None:
    if not any(q.metric.name == "eer" for q in questions) or not ties_matter(sample):
        return None
    tally = sample.tally
    official, grouped = equal_error("official").value(tally), equal_error("grouped").value(tally)
    return (
        f"ties matter: the EER is {official:.4f} by the official rule and {grouped:.4f} with tied scores taken together; "
        f"{tally.tied_mass:.1%} of the trials have a score that both classes share (saturated or rounded scores?)"
    )


def _useless(sample: Sample, questions: Sequence[Question]) -> list[str]:
    costs = [q for q in questions if isinstance(q.form, MinimumCost) and q.settings.get("normalize")]
    return [
        f"{q.text} is 1: at this operating point no threshold is better than accepting or rejecting everything"
        for q in costs
        if q.value(sample) >= 1.0
    ]
