"""Are some slices worse than the rest, and is the whole worse than its slices? Tests of estimates with intervals.

Among twenty equal slices one always looks worst, so "the worst slice" alone is no finding. Here every slice is tested
against all others together, and the p values are corrected for the number of slices that were tested. Nothing is
shrunk: one variance for all slices would pull the one that stands out into the crowd.

Only the estimates, the ends of their intervals and their numbers of trials are needed, so trials, counts and a results
file give the same answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from hitmiss.core.sorting import Floats

FEWEST: Final = 3
"""The least number of slices for a test of a slice against the others."""


@dataclass(frozen=True)
class Figure:
    """An estimate of one slice: its value, the ends of its interval, and the number of trials of its rarer class."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Tested:
    """A slice against the others: their common number, and the p value of no difference.

    `p` is two-sided and not corrected; `is_above` says on which side of the others the slice lies.
    """

    others: float
    p: float
    is_above: bool


@dataclass(frozen=True)
class Shift:
    """The number of all trials against the mean of its slices: how far apart they are, and the p value."""

    whole: float
    within: float
    p: float


def against_others(figures: Sequence[Figure], *, level: float = 0.95, bounded: bool = True) -> list[Tested]:
    """Test each slice against all others together.

    Numbers of `bounded` metrics (shares, areas) are compared as log-odds, where their errors are nearly normal. The
    common number of the others is their mean, weighted by the precision of each.

    Parameters
    ----------
    numbers
        The slices' numbers; the intervals may come from any method.
    level
        The level of the intervals.
    bounded
        Whether the metric lies between 0 and 1.

    Returns
    -------
    list of Tested
        One for each number, in order; empty if there are fewer than three slices.

    Examples
    --------
    >>> alike = [Figure(0.10, 0.06, 0.14, 200), Figure(0.11, 0.07, 0.15, 200), Figure(0.09, 0.05, 0.13, 200)]
    >>> min(t.p for t in against_others(alike)) > 0.1
    True
    >>> odd = against_others([*alike, Figure(0.40, 0.33, 0.47, 200)])[-1]
    >>> odd.p < 1e-6, odd.is_above
    (True, True)
    """
    if len(figures) < FEWEST:
        return []
    place, error = _placed(figures, level, bounded)
    error = _steadied(error, np.array([max(f.n, 1) for f in figures], dtype=np.float64))
    weight = 1.0 / error**2
    rest = (weight @ place - weight * place) / (weight.sum() - weight)
    rest_error = np.sqrt(1.0 / (weight.sum() - weight))
    z = (place - rest) / np.hypot(error, rest_error)
    return [Tested(_back(rest[i], bounded), _two_tails(abs(z[i])), bool(z[i] > 0)) for i in range(len(figures))]


def against_whole(part: Figure, whole: Figure, *, level: float = 0.95, bounded: bool = True) -> Tested:
    """Test a part of the trials against all of them; their errors are taken as independent, which is conservative.

    >>> all_ = Figure(0.942, 0.93, 0.952, 900)
    >>> low, alike = (against_whole(f, all_) for f in (Figure(0.8, 0.74, 0.85, 300), Figure(0.94, 0.92, 0.96, 300)))
    >>> low.p < 1e-6, low.is_above, alike.p > 0.5
    (True, False, True)
    """
    place, error = _placed([part, whole], level, bounded)
    z = float((place[0] - place[1]) / np.hypot(error[0], error[1]))
    return Tested(whole.value, _two_tails(abs(z)), z > 0)


def shift(whole: Figure, slices: Sequence[Figure], sizes: Sequence[int], *, level: float = 0.95) -> Shift | None:
    """Test whether all trials together differ from their slices one by one.

    They do if scores mean different things in each slice. The mean of the slices is weighted by their numbers of trials
    (`sizes`). The whole and its slices share their trials; their errors are taken to add up, which can only make the
    test more conservative.

    >>> apart = shift(Figure(0.47, 0.45, 0.49, 900), [Figure(0.10, 0.07, 0.13, 300)] * 3, [600] * 3)
    >>> round(apart.within, 2), apart.p < 1e-6
    (0.1, True)
    """
    if len(slices) < 2 or not sum(sizes):
        return None
    half = NormalDist().inv_cdf(0.5 + level / 2)
    share = np.asarray(sizes, dtype=np.float64) / sum(sizes)
    values = np.array([f.value for f in slices])
    errors = np.array([(f.high - f.low) / (2 * half) for f in slices])
    within = float(share @ values)
    error = (whole.high - whole.low) / (2 * half) + float(np.sqrt(((share * errors) ** 2).sum()))
    distance = abs(whole.value - within)
    p = 1.0 if distance == 0 else 0.0 if error == 0 else _two_tails(distance / error)
    return Shift(whole.value, within, p)


def _placed(figures: Sequence[Figure], level: float, bounded: bool) -> tuple[Floats, Floats]:
    """Return each number on the scale of the test, and its standard error there."""
    half = NormalDist().inv_cdf(0.5 + level / 2)
    places, errors = [], []
    for f in figures:
        edge = 0.5 / (f.n + 1) if bounded else 0.0
        ends = [_at(v, edge, bounded) for v in (f.value, f.low, f.high)]
        error = (ends[2] - ends[1]) / (2 * half)
        if error <= 0.0:  # every replicate gave the same number; an error of 0 is not believable
            error = _at(min(1.0, 3.0 / max(f.n, 3)), edge, True) - _at(0.0, edge, True) if bounded else math.inf
            error /= 2 * half
        places.append(ends[0])
        errors.append(max(error, 1e-12))
    return np.array(places), np.array(errors)


def _steadied(error: Floats, n: Floats) -> Floats:
    """Return errors that are no smaller than is usual for slices of their size.

    The interval of a small slice is itself uncertain, and one that is too narrow by chance would raise a false alarm.
    If the slices are alike, which is what is tested, their errors differ only by their sizes.
    """
    usual = float(np.median(error**2 * n))
    return np.asarray(np.maximum(error, np.sqrt(usual / n)))


def _at(value: float, edge: float, bounded: bool) -> float:
    kept = min(max(value, edge), 1.0 - edge)
    return math.log(kept) - math.log1p(-kept) if bounded else value


def _back(place: float, bounded: bool) -> float:
    """Return a number from its value on the scale of the test."""
    return 0.5 + 0.5 * math.tanh(0.5 * place) if bounded else float(place)


def _two_tails(z: float) -> float:
    """Return the probability that a normal deviate is at least that far from 0."""
    return math.erfc(z / math.sqrt(2.0))
