"""Warnings for readers of the numbers: reversed, constant or misdeclared scores, ties, useless operating points."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hitmiss.core.finding import Remark
from hitmiss.core.results import prefixed
from hitmiss.core.tally import Tally
from hitmiss.engine.columns import Sample
from hitmiss.engine.interval import area_interval
from hitmiss.engine.prepared_metric import PreparedMetric
from hitmiss.stats.forms.crossing import equal_error
from hitmiss.stats.forms.least_cost import MinimumCost

TIE_EFFECT = 1e-4
"""The least difference between the rules for ties that is reported."""
WHOLE = 2.0**53
"""Up to here a float holds every whole number."""
SURE = 5.0
"""So many standard errors away from 0.5, an AUC shows its direction without an interval."""


def check_scores(sample: Sample, questions: Sequence[PreparedMetric]) -> list[str]:
    """Return warnings about the trials of one run as a whole."""
    asked_score = any("score" in q.metric.columns for q in questions)
    if not asked_score or not 0 < sample.n_positive < sample.n:
        return []
    found = [_constant(sample), _coarse(sample), _reversed(sample), _ties(sample, questions)]
    if sample.columns.trials.header.score_kind == "llr":
        found.append(_not_llr(sample))
    found += _useless(sample, questions)
    where = ", ".join(f"{k}={v}" for k, v in sample.run.items())
    told = [prefixed(f"{where}: ", text) if where else text for text in found if text]
    return [*told, *_undirected(sample)]


def _constant(sample: Sample) -> str | None:
    first = sample.score[0]
    if (sample.score != first).any():
        return None
    return Remark.of("scores-constant", first=first)


def _coarse(sample: Sample) -> str | None:
    """Warn of finite scores so large that neighbouring whole numbers are one float."""
    ends = float(sample.score.min()), float(sample.score.max())
    if not all(map(math.isfinite, ends)):
        finite = sample.score[np.isfinite(sample.score)]
        ends = float(finite.min(initial=0.0)), float(finite.max(initial=0.0))
    if max(-ends[0], ends[1]) < WHOLE:
        return None
    return Remark.of("scores-too-large")


def _reversed(sample: Sample) -> str | None:
    area = sample.steps.area
    if area >= 0.5:
        return None
    low, high = area_interval(sample.steps)
    if not high < 0.5:
        return None
    head = sample.columns.trials.header
    area_of = {"area": area, "low": low, "high": high}
    if head.scale.is_reversed:
        return Remark.of("scores-reversed/declared", **area_of, positive=head.positive, negative=head.negative)
    return Remark.of("scores-reversed/undeclared", **area_of, negative=head.negative)


def _undirected(sample: Sample) -> list[Remark]:
    """Return a remark if the trials of a run do not show which class higher scores go with."""
    fewer = min(sample.n_positive, sample.n - sample.n_positive)
    area = sample.steps.area
    # The variance of an AUC is at most area (1 - area) / n of the rarer class; far from 0.5 no interval is needed.
    if (area - 0.5) ** 2 > SURE**2 * area * (1.0 - area) / fewer:
        return []
    low, high = area_interval(sample.steps)
    if low > 0.5 or high < 0.5:
        return []
    where = "".join(f"{k}={v}: " for k, v in sample.run.items())
    return [Remark.of("direction-not-shown", place=where, area=area, low=low, high=high)]


def _not_llr(sample: Sample) -> str | None:
    """Warn if scores declared as log-likelihood ratios look like probabilities.

    Log-likelihood ratios lie on both sides of 0 and have no bound; probabilities declared as such give absurd costs.
    """
    low, high = float(sample.score.min()), float(sample.score.max())
    if low < 0.0 or high > 1.0 or low == high:
        return None
    return (
        f"the scores are declared llr and all lie in 0..1 ({low:g} to {high:g}), as probabilities do: act_dcf and cllr are then "
        "meaningless. Declare what they are (--score-kind probability) or turn them into log-likelihood ratios"
    )


def ties_matter(sample: Sample) -> bool:
    """Return whether the EER depends on the rule for ties by more than `TIE_EFFECT`."""
    return sample.weight is None and 0 < sample.n_positive < sample.n and ties_differ(sample.tally)


def ties_differ(tally: Tally) -> bool:
    """Return the same as `ties_matter`, for a tally with both classes."""
    return abs(equal_error("official").value(tally) - equal_error("grouped").value(tally)) > TIE_EFFECT


def _ties(sample: Sample, questions: Sequence[PreparedMetric]) -> str | None:
    if not any(q.metric.tied for q in questions):
        return None
    tally = sample.tally
    if sample.weight is not None:
        straight, grouped = equal_error("interpolated").value(tally), equal_error("grouped").value(tally)
        if abs(straight - grouped) <= TIE_EFFECT or not tally.tied_mass:
            return None
        return (
            f"ties matter: the EER is {grouped:.4f} with tied scores taken together and {straight:.4f} on a straight "
            f"line through them; {tally.tied_mass:.1%} of the weight is at a score that both classes share"
        )
    if not ties_matter(sample):
        return None
    official, grouped = equal_error("official").value(tally), equal_error("grouped").value(tally)
    return Remark.of("ties-matter", official=official, grouped=grouped, tied_mass=tally.tied_mass)


def _useless(sample: Sample, questions: Sequence[PreparedMetric]) -> list[str]:
    costs = [q for q in questions if isinstance(q.form, MinimumCost) and q.settings.get("normalize")]
    return [
        f"{q.text} is 1: at this operating point no threshold is better than accepting or rejecting everything"
        for q in costs
        if q.value(sample) >= 1.0
    ]
