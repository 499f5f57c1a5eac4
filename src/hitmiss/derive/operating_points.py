"""Thresholds by what must be kept: a limit on validation, the capacity of a queue, a guarantee on data not seen yet.

With a guarantee the threshold is an order statistic of one class of the validation data. Whatever the distribution of the scores, the true
rate at it breaks the limit in at most 1 − level of all validation sets: P(Beta(k + 1, n − k) > limit), with k the errors
that are allowed on n validation trials (Wilks 1941, tolerance limits).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.registry import resolve
from hitmiss.core.scale import ScoreScale
from hitmiss.core.sorting import Array, Floats
from hitmiss.core.tally import Tally
from hitmiss.derive.thresholds import ThresholdChoice, figures_at
from hitmiss.metrics.counts import fpr, recall

FALSE_ALARMS: Final = fpr.__name__
RATES: Final = (FALSE_ALARMS, recall.__name__)
GUARANTEED: Final = "guarantee"
KEPT: Final = "kept"
CAPACITY: Final = "capacity"


def kept_threshold(
    tally: Tally, maximize: str, keeps: Callable[[Floats], Array], of: str, scale: ScoreScale | None = None
) -> ThresholdChoice:
    """Return the threshold at which a metric is best among those that keep a limit on another one.

    Parameters
    ----------
    tally
        The validation trials.
    maximize, of
        The metric to be best, and the one that is limited; both of decisions.
    keeps
        Whether values of the limited one keep the limit.
    scale
        How the scores of a file became those of the tally.

    Raises
    ------
    DataError
        If no threshold keeps the limit.

    >>> t = Tally.of([1, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.1])
    >>> kept_threshold(t, "precision", lambda recall: recall >= 0.6, "recall").threshold
    0.8
    """
    values, limited = (figures_at(tally, tally.score, name) for name in (maximize, of))
    gain = values if resolve(maximize)[1].best == "high" else -values
    gain = np.where(np.isnan(gain) | np.isnan(limited) | ~keeps(limited), -np.inf, gain)
    if not np.isfinite(gain).any():
        raise DataError.of("no-threshold-keeps", of=of)
    scale = scale or ScoreScale()
    best = np.flatnonzero(gain == gain.max())
    place = int(best[-1] if scale.is_reversed else best[0])
    return ThresholdChoice(scale.threshold_of(tally, place), float(values[place]), maximize, KEPT)


def capacity_threshold(
    tally: Tally, share: float, prevalence: float, scale: ScoreScale | None = None
) -> ThresholdChoice:
    """Return the threshold with the most recall that flags at most a share of all items, of which so many are positive.

    >>> t = Tally.of([1] * 10 + [0] * 10, [*range(10, 20), *range(10)])
    >>> capacity_threshold(t, 0.05, 0.1).threshold
    15.0
    """
    recalls, alarms = (figures_at(tally, tally.score, name) for name in reversed(RATES))
    flagged = prevalence * recalls + (1.0 - prevalence) * alarms
    places = np.flatnonzero(flagged <= share * (1.0 + 1e-12))
    if not len(places):
        raise DataError.of("no-threshold-fits", share=share, least=float(flagged[-1]))
    place = int(places[0])
    return ThresholdChoice(
        (scale or ScoreScale()).threshold_of(tally, place), float(recalls[place]), recall.__name__, CAPACITY
    )


def guaranteed_threshold(
    tally: Tally, rate: str, limit: float, *, level: float = 0.95, scale: ScoreScale | None = None
) -> ThresholdChoice:
    """Return the threshold that keeps a rate on data not seen yet, with the least loss of the other one.

    Parameters
    ----------
    tally
        The validation trials; they must be independent.
    rate, limit
        `fpr` and the greatest false-positive rate, or `recall` and the least recall.
    level
        How often a validation set gives a threshold that keeps the limit.
    scale
        How the scores of a file became those of the tally.

    Raises
    ------
    DataError
        If no threshold can be guaranteed, with the number of trials that would do.

    >>> t = Tally.of([1] * 100 + [0] * 100, [*range(100, 200), *range(100)])
    >>> guaranteed_threshold(t, "fpr", 0.05).threshold, guaranteed_threshold(t, "recall", 0.9).threshold
    (99.0, 104.0)
    """
    from scipy.special import bdtr  # slow to import, and needed only here

    if rate not in RATES or not 0.0 < limit < 1.0 or not 0.0 < level < 1.0:
        raise UsageError.of("bad-guarantee", rate=rate, limit=limit)
    is_upper = rate == FALSE_ALARMS
    allowed = limit if is_upper else 1.0 - limit
    steps = tally.negatives if is_upper else tally.positives
    n = int(tally.n_negative if is_upper else tally.n_positive)
    errors = np.arange(n + 1)
    kept = np.flatnonzero(bdtr(errors, n, allowed) <= 1.0 - level)
    if not len(kept):
        needed = int(np.ceil(np.log(1.0 - level) / np.log1p(-allowed)))
        raise DataError.of("no-guarantee", rate=rate, limit=limit, n=n, needed=needed)
    most = int(kept[-1])
    counted: Floats = np.asarray(steps, dtype=np.float64)  # trials of the class below each score, then all of them
    if is_upper:  # at least n - most negatives lie below the threshold
        places = np.flatnonzero(n - counted[:-1] <= most)
        if not len(places):
            raise DataError.of("no-guarantee/ties", rate=rate, limit=limit)
        place = int(places[0])
    else:  # at most `most` positives lie below the threshold
        place = int(np.flatnonzero(counted[:-1] <= most)[-1])
    value = float(figures_at(tally, [tally.score[place]], rate)[0])
    made = (scale or ScoreScale()).threshold_of(tally, place)
    return ThresholdChoice(made, value, rate, GUARANTEED)
