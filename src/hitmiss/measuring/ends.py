"""The ends of a figure's interval, how they were found, and what is said where resampling shows no width."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from hitmiss.measuring.grouping import Sample
from hitmiss.measuring.uncertainty import Plan, Question
from hitmiss.stats.forms import MinimumCost, PairShare
from hitmiss.stats.unseen import cost_at_most, equal_error_at_most

SAME: Final = "no interval: every replicate gives the same figure"
NO_ERROR: Final = "no error seen: the end is what so few trials leave open"


@dataclass(frozen=True)
class Ends:
    """An interval, or why there is none."""

    low: float | None = None
    high: float | None = None
    method: str | None = None
    note: str | None = None

    @classmethod
    def of(cls, ends: tuple[float, float], method: str, note: str | None = None) -> Ends:
        """Ends as computed: NaN is unknown.

        >>> Ends.of((0.25, 0.5), "wilson").high, Ends.of((math.nan, math.nan), "delong").high
        (0.5, None)
        """
        return cls(note=note) if math.isnan(ends[0]) else cls(*ends, method, note)


def without_width(question: Question, sample: Sample, value: float, plan: Plan) -> Ends:
    """What is known of a figure that is the same in every replicate: a bound by counting where there is one, else nothing.

    Units drawn as wholes have no such bound: how many trials of a new one would err together is not known.
    """
    if plan.unit:
        return Ends(note=SAME)
    if isinstance(question.form, PairShare):
        return Ends.of(sample.steps.interval(plan.level), "newcombe")
    is_known = isinstance(question.form, MinimumCost) or question.metric.name == "eer"
    if value != 0.0 or not is_known or sample.steps.area != 1.0:
        return Ends(note=SAME)
    n1, n0 = sample.n_positive, sample.n - sample.n_positive
    if isinstance(question.form, MinimumCost):
        return Ends(0.0, cost_at_most(question.form, n1, n0, plan.level), "unseen", NO_ERROR)
    return Ends(0.0, equal_error_at_most(n1, n0, plan.level), "unseen", NO_ERROR)
