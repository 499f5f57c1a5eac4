"""How common a class is among items that only a detector has judged: rates corrected for the detector's own errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from hitmiss.core.errors import DataError
from hitmiss.stats.intervals import wilson

__all__ = ["Prevalence", "corrected_prevalence", "effective_size", "labelled_prevalence"]


@dataclass(frozen=True)
class Prevalence:
    """The share of a class among judged items, with its interval and the share that was flagged.

    `value` is None where the detector tells nothing: sensitivity + specificity is at most 1.
    """

    value: float | None
    low: float
    high: float
    flagged: float
    level: float = 0.95


def corrected_prevalence(
    flagged: int,
    n: int,
    *,
    sensitivity: float,
    positives: float,
    specificity: float,
    negatives: float,
    level: float = 0.95,
) -> Prevalence:
    """Correct the share of flagged items for a detector's sensitivity and specificity, and carry all uncertainty.

    Rogan and Gladen (1978): (flagged share + specificity − 1) / (sensitivity + specificity − 1), kept within 0 and 1.
    The interval is that of Lang and Reiczigel (2014, Preventive Veterinary Medicine 113): every rate is moved towards
    one half as Agresti and Coull do, the variances of all three are added, and the centre is shifted for the skewness
    that a ratio has. It assumes that the detector makes errors here as often as it did where it was tested.

    Parameters
    ----------
    flagged, n
        Items that the detector flagged, and all items that it judged.
    sensitivity, positives
        Its sensitivity, and the number of positive items that it is known from (of dependent items an effective number).
    specificity, negatives
        Its specificity, and the number of negative items that it is known from.
    level
        The level of the interval.

    Raises
    ------
    DataError
        For counts or rates that cannot be.

    >>> found = corrected_prevalence(120, 1000, sensitivity=0.9, positives=200, specificity=0.95, negatives=400)
    >>> round(found.value, 4), round(found.low, 4), round(found.high, 4)
    (0.0824, 0.0475, 0.1154)
    """
    _check_counts(flagged, n)
    for name, rate, known in (("sensitivity", sensitivity, positives), ("specificity", specificity, negatives)):
        if not 0 <= rate <= 1 or not known > 0:
            raise DataError.of("no-rate", name=name, rate=rate, known=known)
    share = flagged / n
    gain = sensitivity + specificity - 1.0
    if gain <= 0:
        return Prevalence(None, 0.0, 1.0, share, level)
    value = min(1.0, max(0.0, (share + specificity - 1.0) / gain))
    z = NormalDist().inv_cdf(0.5 + level / 2.0)
    n_moved, p_moved, q_moved = n + z * z, positives + 2.0, negatives + 2.0
    seen = (flagged + z * z / 2.0) / n_moved
    hits, passes = (sensitivity * positives + 1.0) / p_moved, (specificity * negatives + 1.0) / q_moved
    slope = hits + passes - 1.0
    if slope <= 0:
        return Prevalence(value, 0.0, 1.0, share, level)
    centre = (seen + passes - 1.0) / slope
    of_hits, of_passes = hits * (1.0 - hits) / p_moved, passes * (1.0 - passes) / q_moved
    variance = seen * (1.0 - seen) / n_moved + centre**2 * of_hits + (1.0 - centre) ** 2 * of_passes
    shift = 2.0 * z * z * (centre * of_hits - (1.0 - centre) * of_passes)
    half = z * math.sqrt(variance) / slope
    low, high = (min(1.0, max(0.0, centre + shift + side * half)) for side in (-1.0, 1.0))
    return Prevalence(value, min(low, value), max(high, value), share, level)


def labelled_prevalence(
    flagged: int,
    n: int,
    *,
    flagged_positive: int,
    flagged_labelled: int,
    passed_positive: int,
    passed_labelled: int,
    level: float = 0.95,
) -> Prevalence:
    """Estimate a prevalence from the detector's verdicts on all items and people's labels of a random part of them.

    The share of positives among flagged and among passed items comes from the labels, the sizes of the two groups from
    all items: flagged share × share among flagged + passed share × share among passed. Nothing is assumed of the
    detector; the better it is, the more it narrows the interval. (For verdicts of two kinds this is the
    prediction-powered estimate of Angelopoulos et al., 2023, with the best weight.) The interval joins Wilson's for the
    three shares (Zou and Donner, 2008).

    Parameters
    ----------
    flagged, n
        Items that the detector flagged, and all items that it judged, labelled ones included.
    flagged_positive, flagged_labelled
        Of the flagged items that were labelled: how many are positive, and how many there are.
    passed_positive, passed_labelled
        The same of the items that it did not flag.
    level
        The level of the interval.

    Raises
    ------
    DataError
        For counts that cannot be, or a group without a labelled item.

    >>> found = labelled_prevalence(
    ...     900, 10_000, flagged_positive=80, flagged_labelled=150, passed_positive=2, passed_labelled=150
    ... )
    >>> round(found.value, 4), round(found.low, 4), round(found.high, 4)
    (0.0601, 0.0484, 0.092)
    """
    _check_counts(flagged, n)
    for name, positive, labelled, size in (
        ("flagged", flagged_positive, flagged_labelled, flagged),
        ("passed", passed_positive, passed_labelled, n - flagged),
    ):
        if not 0 <= positive <= labelled <= size:
            raise DataError.of("impossible-counts/positive", positive=positive, labelled=labelled, size=size, name=name)
        if size and not labelled:
            raise DataError.of("unlabelled-group", name=name)
    share = flagged / n
    among_flagged, among_passed = _share(flagged_positive, flagged_labelled), _share(passed_positive, passed_labelled)
    value = share * among_flagged + (1.0 - share) * among_passed
    ends = [
        wilson(flagged_positive, flagged_labelled, level) if flagged else (0.0, 0.0),
        wilson(passed_positive, passed_labelled, level) if n - flagged else (0.0, 0.0),
        wilson(flagged, n, level),
    ]
    rates, slopes = (among_flagged, among_passed, share), (share, 1.0 - share, among_flagged - among_passed)
    below, above = 0.0, 0.0
    for (low, high), rate, slope in zip(ends, rates, slopes, strict=True):
        down, up = slope * (rate - low), slope * (high - rate)
        below += (down if slope >= 0 else up) ** 2
        above += (up if slope >= 0 else down) ** 2
    return Prevalence(value, max(0.0, value - math.sqrt(below)), min(1.0, value + math.sqrt(above)), share, level)


def effective_size(value: float, n: float, low: float | None, high: float | None) -> float:
    """Return how many independent items have an interval of this width, at most n.

    >>> round(effective_size(0.9, 200, *wilson(180, 200))), round(effective_size(0.9, 200, 0.80, 0.95))
    (200, 64)
    """
    if low is None or high is None:
        return n
    width = high - low

    def too_narrow(size: float) -> bool:
        ends = wilson(value * size, size)
        return ends[1] - ends[0] < width

    if not too_narrow(n):
        return n
    least, most = 1.0, float(n)
    for _ in range(60):
        middle = (least + most) / 2
        least, most = (least, middle) if too_narrow(middle) else (middle, most)
    return most


def _check_counts(flagged: int, n: int) -> None:
    if not 0 <= flagged <= n or n < 1:
        raise DataError.of("impossible-counts", flagged=flagged, n=n)


def _share(k: int, n: int) -> float:
    return k / n if n else 0.0
