"""Plan how many trials or units are needed for an interval of a given width, or to show a given difference.

Errors shrink with the square root of the sample size. A pilot run gives the error at its own size; without one it comes
from an assumed number, by the variance of its metric. Trials of one unit (speaker, patient) with an intraclass
correlation ρ count less: m of them are worth m / (1 + (m − 1) ρ) independent ones (Kish 1965). With few units Student's
quantile replaces the normal one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.core.metric import Metric
from hitmiss.core.registry import all_metrics, find_metric
from hitmiss.stats.enough_units import enough
from hitmiss.stats.forms.sums import PairShare
from hitmiss.stats.students_t import t_quantile

MOST = 10**12
"""Larger numbers than this are not planned."""


@dataclass(frozen=True)
class Error:
    """A standard error and the number of trials or units that it comes from."""

    error: float
    count: float
    by_units: bool = False

    def at(self, count: float) -> float:
        """Return the error at another number."""
        return self.error * math.sqrt(self.count / count)


@dataclass(frozen=True)
class Need:
    """How many trials or units are needed, with the half width or the detectable difference that they give."""

    count: int
    reached: float


def quantiles(count: float, by_units: bool, level: float, power: float | None) -> float:
    """Return how many standard errors make up a half width, or a difference that is shown with this power."""
    shares = [0.5 + level / 2.0, *([] if power is None else [power])]
    if not by_units:
        return sum(NormalDist().inv_cdf(share) for share in shares)
    return sum(t_quantile(share, max(count - 1.0, 1.0)) for share in shares)


def needed(error: Error, target: float, level: float = 0.95, power: float | None = None) -> Need:
    """Return the least number of trials (or units) whose half width, or detectable difference, is at most the target.

    Parameters
    ----------
    error
        The standard error of the number, or of the difference, at some size.
    target
        Half the width of the interval; with `power`, the difference to show.
    level, power
        The level of the interval or of the two-sided test, and how often a true difference should be shown.

    Returns
    -------
    Need
        The number, and what it gives.

    Raises
    ------
    UsageError
        For a target, level or power out of range, or a target that no number reaches.

    Examples
    --------
    >>> needed(Error(0.5, 1), 0.05).count  # a share of one half, to within ± 5 points
    385
    """
    for name, value in (("level", level), ("power", 0.5 if power is None else power)):
        if not 0.0 < value < 1.0:
            raise UsageError.of("out-of-range", name=name, low=0, high=1, found=value)
    if not (target > 0.0 and math.isfinite(target)) or not (error.error > 0.0 and math.isfinite(error.error)):
        raise UsageError.of("bad-plan", target=target, error=error.error)
    least = enough(level) if error.by_units else 2

    def reached(count: int) -> float:
        return quantiles(count, error.by_units, level, power) * error.at(count)

    high = least
    while reached(high) > target:
        high *= 2
        if high > MOST:
            raise UsageError.of("bad-plan/unreachable", target=target)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reached(middle) > target else (low, middle)
    count = max(high, least)
    return Need(count, reached(count))


def deviation(metric: str, value: float, positives: float = 0.5) -> float:
    """Return the standard error of a metric times √trials, at this value and this share of positive trials.

    | metric | variance per trial |
    |---|---|
    | a share of all trials (accuracy) or of one class (recall, fpr, …) | p (1 − p), over the share of trials it is of |
    | balanced_accuracy | that of the mean of two shares of this value |
    | eer | that of the mean of both error rates at the crossing, with equal densities |
    | roc_auc | Hanley & McNeil 1982, the same for both classes |

    Examples
    --------
    >>> round(deviation("accuracy", 0.9), 4), round(deviation("recall", 0.9, positives=0.25), 4)
    (0.3, 0.6)
    """
    if not 0.0 < value < 1.0:
        raise UsageError.of("bad-plan/value", metric=metric, value=value)
    if not 0.0 < positives < 1.0:
        raise UsageError.of("out-of-range", name="the share of positives", low=0, high=1, found=positives)
    variance = _variance(find_metric(metric))
    if variance is None:
        planned = [name for name, entry in all_metrics().items() if _variance(entry) is not None]
        raise UnknownName("metric to plan for without a pilot", metric, planned)
    return math.sqrt(variance(value, positives))


Variance = Callable[[float, float], float]
"""The variance times the number of trials, at a value and a share of positives."""
SHARE_OF: Final[Mapping[str, Callable[[float], float]]] = {
    "all": lambda positives: 1.0,
    "positives": lambda positives: positives,
    "negatives": lambda positives: 1.0 - positives,
}


def _variance(metric: Metric) -> Variance | None:
    """Return the variance of a metric by what it says of itself; None if no formula fits."""
    if metric.share and metric.of in SHARE_OF:
        part = SHARE_OF[metric.of]
        return lambda p, positives: p * (1.0 - p) / part(positives)
    if metric.share and metric.of == "both" and not metric.prevalence:
        return _two_sides
    return _area if metric.form is PairShare else None


def _area(a: float, positives: float) -> float:
    """Return Hanley & McNeil's variance of the AUC times the number of trials, for many trials.

    Their formula is for exponential scores, which treat the classes differently; the mean over both roles is that of
    scores with equal spread in both classes.
    """
    q1, q2 = a / (2.0 - a), 2.0 * a * a / (1.0 + a)
    return (0.5 * (q1 + q2) - a * a) * (1.0 / positives + 1.0 / (1.0 - positives))


def _two_sides(p: float, positives: float) -> float:
    """Return the variance of the mean of two shares of this value, one of each class."""
    return 0.25 * p * (1.0 - p) * (1.0 / positives + 1.0 / (1.0 - positives))


def of_difference(one: float, other: float, correlation: float) -> float:
    """Return the standard error of a difference from those of its sides and their correlation (0: different trials).

    >>> of_difference(3.0, 4.0, 0.0)
    5.0
    """
    if not -1.0 <= correlation < 1.0:
        raise UsageError.of("bad-plan/correlation", correlation=correlation)
    return math.sqrt(one * one + other * other - 2.0 * correlation * one * other)


def by_units(per_trial: float, each: float, alike: float) -> Error:
    """Return the error of one unit with `each` trials and an intraclass correlation: √((1 + (m − 1) ρ) / m)."""
    if not each >= 1.0 or not 0.0 <= alike <= 1.0:
        raise UsageError.of("bad-plan/unit", each=each, alike=alike)
    return Error(per_trial * math.sqrt((1.0 + (each - 1.0) * alike) / each), 1.0, True)
