"""The interval of an estimate: its ends, how they were found, and what is reported if all replicates are equal."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.rates import Rate
from hitmiss.core.sorting import Floats
from hitmiss.engine.columns import Sample
from hitmiss.engine.draws import Draws
from hitmiss.engine.prepared_metric import PreparedMetric
from hitmiss.metrics.counts import OUTCOMES, Counts
from hitmiss.stats import intervals
from hitmiss.stats.enough_units import (
    LEAST_EFFECTIVE,
    effective,
    enough,
)
from hitmiss.stats.forms.base import Errors, Functional
from hitmiss.stats.forms.trials import OfCounts, OfTerms

SAME: Final = "no interval: every replicate gives the same figure"
ONE_UNIT: Final = "no interval: all that varies comes from one unit"
OVER_UNITS: Final = "wilson over units"
SOME: Final = 1e-9
"""A share of a unit's weight that is more than rounding."""
NO_ERROR: Final = "no error seen: the end is what so few trials leave open"


@dataclass(frozen=True)
class Interval:
    """An interval, or the reason why there is none."""

    low: float | None = None
    high: float | None = None
    method: str | None = None
    note: str | None = None

    @classmethod
    def of(cls, ends: tuple[float, float], method: str, note: str | None = None) -> Interval:
        """Make an interval from computed ends; NaN means unknown.

        >>> Ends.of((0.25, 0.5), "wilson").high, Ends.of((math.nan, math.nan), "delong").high
        (0.5, None)
        """
        return cls(note=note) if math.isnan(ends[0]) else cls(*ends, method, note)


def share_of_units(
    question: PreparedMetric, sample: Sample, value: Rate, draws: Draws
) -> tuple[tuple[float, float], bool] | None:
    """Return the widest interval that a share over whole units can need, and whether it is the only one it can have.

    At worst all trials of a unit are right or wrong together. The share is then one of units, and Wilson's interval of as
    many as its denominator effectively has holds it; trials that differ inside units only make it narrower. Where all
    hits, or all misses, are those of one unit, nothing shows how much units differ, so there is no other interval.
    None if the units are too few, or unknown.
    """
    behind = [_units_behind(question.form, sample, draws.columns.asked_codes(name)[0]) for name in draws.plan.unit]
    n = min(effective(of) for _, of in behind)
    if n < LEAST_EFFECTIVE:
        return None
    alone = any(min(np.count_nonzero(hits), np.count_nonzero(of - hits > SOME * of)) < 2 for hits, of in behind)
    return intervals.wilson(value * n, n, draws.plan.level), alone


def without_width(question: PreparedMetric, sample: Sample, value: float, draws: Draws) -> Interval:
    """Return the interval of a figure that is the same in every replicate: a bound by counting, if there is one.

    A share of 0 or 1 over whole units gets Wilson's interval of that many units: at worst all trials of a new unit are
    wrong together, so units bound the share. Other figures over units have no such bound.
    """
    plan = draws.plan
    if plan.unit and isinstance(value, Rate) and value in (0.0, 1.0):
        found = share_of_units(question, sample, value, draws)
        return Interval(note=SAME) if found is None else Interval.of(found[0], OVER_UNITS)
    if plan.unit:
        return Interval(note=SAME)
    if question.form.is_area:
        return Interval.of(sample.steps.interval(plan.level), "newcombe")
    most = question.form.most_unseen(sample.n_positive, sample.n - sample.n_positive, plan.level)
    # Only a figure of 0 with perfectly separated classes is bounded by what was not seen; any other figure that never
    # varies does so for a reason that counting does not know.
    if value != 0.0 or most is None or sample.steps.area != 1.0:
        return Interval(note=SAME)
    return Interval(0.0, most, "unseen", NO_ERROR)


FEWEST_OF_CLASS: Final = enough(0.95)
"""Trials of each class below which a figure of decisions of both classes gets no interval."""
AT_END: Final = "no interval: the figure is at the end of its range, and draws do not show how far it may be from there"


def too_few_errors(form: Functional, sample: Sample, width: float, fewest: int | None = None) -> str | None:
    """Say why a figure that rests on a handful of errors gets no interval; None if there are enough.

    Draws contain no kind of error that the sample does not contain, so a cost at a threshold with no false alarm looks
    certain, although one false alarm may cost more than everything else. `fewest` errors of each kind are needed (if
    not given, those of the form), unless one more would add little to the interval's width.
    """
    if not form.fewest_errors:
        return None
    if isinstance(form, OfCounts) and share_of(form) is None:
        # A class of so few trials says too little about its own errors: with one positive, 95 % intervals of MCC and
        # balanced accuracy held the truth 60 % of the time.
        own = {"positive": sample.n_positive, "negative": sample.n - sample.n_positive}
        for kind, n in own.items():
            if n < FEWEST_OF_CLASS:
                return f"no interval: {f'one {kind}' if n == 1 else f'{n} {kind}s'} alone"
    for name, seen, effect in _errors_of_decisions(form, sample) if isinstance(form, OfCounts) else form.errors(sample):
        # Few errors do no harm where one more would hardly move the figure.
        if seen < (form.fewest_errors if fewest is None else fewest) and effect > form.most_of_width * width:
            return f"no interval: {seen or 'no'} {name} at its threshold, and one more would change it by {effect:.2g}"
    return None


def _errors_of_decisions(form: OfCounts, sample: Sample) -> tuple[Errors, ...]:
    """Return the errors behind a figure of decisions; a plain share has its own interval, whatever was seen."""
    counts = sample.counts
    now = form.function(counts)
    if isinstance(now, Rate):
        return ()
    # One more error, with the size of each class kept: an answer that was right becomes wrong.
    missed = replace(counts, tp=max(counts.tp - 1, 0), fn=counts.fn + 1) if counts.tp else counts
    accepted = replace(counts, tn=max(counts.tn - 1, 0), fp=counts.fp + 1) if counts.tn else counts
    return (
        Errors("miss", int(sample.seen.fn), abs(float(form.function(missed)) - float(now))),
        Errors("false alarm", int(sample.seen.fp), abs(float(form.function(accepted)) - float(now))),
    )


@lru_cache(maxsize=256)
def share_of(form: Functional) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Return which outcomes a share counts, and among which; None for figures that are not a plain share of decisions.

    >>> from hitmiss.metrics.counts import accuracy_of, f1_of
    >>> share_of(OfCounts(accuracy_of))[0][:4], share_of(OfCounts(f1_of))
    ((1.0, 0.0, 0.0, 1.0), None)
    """
    if not isinstance(form, OfCounts):
        return None
    single = [form.function(Counts(*row)) for row in np.eye(OUTCOMES, dtype=int).tolist()]
    if not all(isinstance(rate, Rate) for rate in single):
        return None
    hits, of = (tuple(float(getattr(rate, name)) for rate in single) for name in ("hits", "of"))
    counts = [2**k for k in range(OUTCOMES)]  # sums of these are all different, so a share can be recognised
    whole = form.function(Counts(*counts))
    if not isinstance(whole, Rate):
        return None
    adds_up = (whole.hits, whole.of) == (float(np.dot(hits, counts)), float(np.dot(of, counts)))
    return (hits, of) if adds_up and {*hits, *of} <= {0.0, 1.0} else None


def _units_behind(form: Functional, sample: Sample, unit: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the hits of a share in each unit, and the trials in its denominator, which may be a part of the trials."""
    if isinstance(form, OfTerms):
        terms = form.terms(**sample.arrays(form.columns))
        terms = terms if sample.weight is None else (terms[0] * sample.weight, terms[1] * sample.weight)
        found = [np.asarray(np.bincount(unit[sample.rows], weights=own), dtype=np.float64) for own in terms]
        return found[0], found[1]
    share = share_of(form)
    if share is None:
        return np.zeros(1), np.zeros(1)
    held = sample.unit_outcomes(unit, int(unit.max(initial=-1)) + 1)
    return held @ np.array(share[0]), held @ np.array(share[1])
