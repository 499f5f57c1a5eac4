"""The ends of a figure's interval, how they were found, and what is said where resampling shows no width."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from hitmiss.design import Plan
from hitmiss.measuring.grouping import Sample
from hitmiss.measuring.uncertainty import Question

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
    if question.form.is_area:
        return Ends.of(sample.steps.interval(plan.level), "newcombe")
    most = question.form.most_unseen(sample.n_positive, sample.n - sample.n_positive, plan.level)
    if value != 0.0 or most is None or sample.steps.area != 1.0:
        return Ends(note=SAME)
    return Ends(0.0, most, "unseen", NO_ERROR)
