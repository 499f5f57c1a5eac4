"""Estimates that rest on so few errors that their draws do not show how uncertain they are, and what counting shows.

Draws contain no kind of error that the sample does not contain. Such an estimate is a function of two rates, that of
misses and that of false alarms, and each rate is as uncertain as so many errors of so many trials leave it (Jeffreys).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.finding import Remark
from hitmiss.core.rates import Rate
from hitmiss.core.sorting import Array, Floats
from hitmiss.engine.columns import Sample
from hitmiss.engine.shares import share_of
from hitmiss.metrics.counts import Counts
from hitmiss.stats.enough_units import enough
from hitmiss.stats.forms.at_threshold import AtThreshold
from hitmiss.stats.forms.base import Errors, Functional
from hitmiss.stats.forms.least_cost import MinimumCost
from hitmiss.stats.forms.trials import OfCounts
from hitmiss.stats.students_t import t_quantile
from hitmiss.stats.units import UnitSample

FEWEST_OF_CLASS: Final = enough(0.95)
"""Trials of each class below which a number of decisions of both classes gets no interval."""


def too_few_errors(form: Functional, sample: Sample, width: float, fewest: int | None = None) -> str | None:
    """Say why a number that rests on a handful of errors gets no interval; None if there are enough.

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
                return Remark.of("no-interval/one-of-class", part=f"one {kind}" if n == 1 else f"{n} {kind}s")
    for name, seen, effect in _errors_of_decisions(form, sample) if isinstance(form, OfCounts) else form.errors(sample):
        # Few errors do no harm where one more would hardly move the number.
        if seen < (form.fewest_errors if fewest is None else fewest) and effect > form.most_of_width * width:
            return Remark.of("no-interval/few-at-threshold", seen=seen or "no", name=name, effect=effect)
    return None


def _errors_of_decisions(form: OfCounts, sample: Sample) -> tuple[Errors, ...]:
    """Return the errors behind a number of decisions; a plain share has its own interval, whatever was seen."""
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


@dataclass(frozen=True, eq=False)
class TwoRates:
    """An estimate as a function `of` a miss rate and a false-alarm rate, with the errors that were seen."""

    missed: float
    positives: float
    accepted: float
    negatives: float
    of: Callable[[Floats, Floats], Floats]


def two_rates(
    form: Functional, sample: Sample, unit: NDArray[np.int64] | None, units: Callable[[], UnitSample], level: float
) -> TwoRates | None:
    """Return an estimate as a function of two rates; None if it is none, or if trials have sampling weights.

    With units, errors count as so many independent trials as they are worth: fewer if errors come in clusters (Korn and
    Graubard 1998), and fewer still if the units are few.
    """
    if sample.weight is not None or not 0 < sample.n_positive < sample.n:
        return None
    if isinstance(form, OfCounts):
        return _of_decisions(form, sample, unit, level)
    at = form.at_best(sample.tally) if isinstance(form, MinimumCost) else form
    if not isinstance(at, AtThreshold):
        return None
    missed, positives, accepted, negatives = at.counts(sample.tally)
    if unit is not None:
        held = units()
        passed, own = np.asarray(held.score >= at.threshold), np.asarray(held.unit)
        missed, positives = _worth(~passed, held.positive, own, level)
        accepted, negatives = _worth(passed, ~held.positive, own, level)

    def of(miss: Floats, alarm: Floats) -> Floats:
        return np.asarray(at.combine(miss * positives, positives, alarm * negatives, negatives))

    return TwoRates(missed, positives, accepted, negatives, of)


def _of_decisions(form: OfCounts, sample: Sample, unit: NDArray[np.int64] | None, level: float) -> TwoRates | None:
    """Return a metric of decisions as a function of the error rates of what was answered; None for a plain share."""
    counts = sample.counts
    positives, negatives = counts.tp + counts.fn, counts.tn + counts.fp
    if share_of(form) is not None or min(positives, negatives) < FEWEST_OF_CLASS:
        return None

    def of(miss: Floats, alarm: Floats) -> Floats:
        others = counts.abstained_positive, counts.abstained_negative, counts.failed_positive, counts.failed_negative
        right = (1.0 - miss) * positives, (1.0 - alarm) * negatives
        moved: Counts[Floats] = Counts(right[0], alarm * negatives, miss * positives, right[1], *others)
        return form.of_counts(moved)

    if unit is None:
        return TwoRates(counts.fn, positives, counts.fp, negatives, of)
    held = sample.unit_outcomes(unit, int(unit.max(initial=-1)) + 1).astype(np.float64)
    tp, fp, fn, tn = held[:, :4].T
    return TwoRates(*_worth_of_units(fn, tp + fn, level), *_worth_of_units(fp, fp + tn, level), of)


def _worth(
    wrong: NDArray[np.bool_], inside: NDArray[np.bool_], unit: NDArray[np.integer], level: float
) -> tuple[float, float]:
    n = int(unit.max(initial=-1)) + 1
    errors, sizes = np.bincount(unit[wrong & inside], minlength=n), np.bincount(unit[inside], minlength=n)
    return _worth_of_units(errors.astype(np.float64), sizes.astype(np.float64), level)


def _worth_of_units(errors: Array, sizes: Array, level: float) -> tuple[float, float]:
    """Return as many errors of as many independent trials as the errors of units are worth.

    n / deff · (z / t)², deff the variance between units over that of independent trials, at least 1, and t that of as
    many degrees of freedom as there are units less one.

    >>> [round(x, 2) for x in _worth_of_units(np.array([0.0] * 20), np.array([10.0] * 20), 0.95)]
    [0.0, 175.38]
    """
    held = sizes > 0
    errors, sizes, units, n = errors[held], sizes[held], int(held.sum()), float(sizes.sum())
    if units < 2:
        return float(errors.sum()), n
    rate = float(errors.sum()) / n
    spread = units / (units - 1.0) * float(np.sum((errors - rate * sizes) ** 2)) / n**2
    alone = rate * (1.0 - rate) / n
    worth = n / max(1.0, spread / alone) if alone > 0.0 else n
    worth *= (t_quantile(0.5 + level / 2.0, math.inf) / t_quantile(0.5 + level / 2.0, units - 1.0)) ** 2
    return rate * worth, worth
