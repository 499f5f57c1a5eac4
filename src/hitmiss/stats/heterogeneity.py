"""Are some slices worse than the rest, and is the whole worse than its slices? Tests of figures with intervals.

A slice that looks worst among twenty equal ones always exists, so "the worst slice" is no finding. Here every slice is
tested against all others together, the p values are corrected for the number of slices that were looked at, and each
figure is given a second time, shrunk towards the others by as much as its interval leaves open.

All that is needed are the figures, the ends of their intervals and how many trials they are over: the same answer comes
from trials, from counts and from a results file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

from hitmiss.stats.multiple import holm
from hitmiss.tally import Floats

FEWEST: Final = 3
"""Slices without which nothing can be said about any of them."""


@dataclass(frozen=True)
class Figure:
    """A figure of one slice: its value, the ends of its interval, and the trials of its rarer class."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Tested:
    """A slice against the others: their common figure, its own shrunk towards them, and the p value of no difference.

    `p` is two-sided and not corrected; `is_above` tells on which side of the others the slice lies.
    """

    others: float
    shrunken: float
    p: float
    is_above: bool


@dataclass(frozen=True)
class Shift:
    """The figure of all trials against the mean of its slices: how far apart they are, and the p value."""

    whole: float
    within: float
    p: float


def against_others(figures: Sequence[Figure], *, level: float = 0.95, bounded: bool = True) -> list[Tested]:
    """Each slice tested against all others together.

    Figures of `bounded` metrics (shares, areas) are compared as log-odds, where their errors are nearly normal. The others'
    common figure is their mean, weighted by how sure each is; the spread between slices beyond their errors
    (DerSimonian and Laird 1986) says how far a figure is to be shrunk.

    Parameters
    ----------
    figures
        The slices' figures; the intervals may come from any method.
    level
        The level of the intervals.
    bounded
        Whether the metric lies between 0 and 1.

    Returns
    -------
    list of Tested
        One for each figure, in order; empty where there are fewer than three slices.

    Examples
    --------
    >>> alike = [Figure(0.10, 0.06, 0.14, 200), Figure(0.11, 0.07, 0.15, 200), Figure(0.09, 0.05, 0.13, 200)]
    >>> min(t.p for t in against_others(alike)) > 0.1
    True
    >>> odd = against_others([*alike, Figure(0.40, 0.33, 0.47, 200)])[-1]
    >>> odd.p < 1e-6, odd.is_above, 0.30 < odd.shrunken < 0.40
    (True, True, True)
    """
    if len(figures) < FEWEST:
        return []
    place, error = _placed(figures, level, bounded)
    error = _steadied(error, np.array([max(f.n, 1) for f in figures], dtype=np.float64))
    weight = 1.0 / error**2
    back = expit if bounded else (lambda x: x)
    rest = (weight @ place - weight * place) / (weight.sum() - weight)
    rest_error = np.sqrt(1.0 / (weight.sum() - weight))
    z = (place - rest) / np.hypot(error, rest_error)
    spread = _spread(place, weight)
    random = 1.0 / (error**2 + spread)
    centre = float(random @ place / random.sum())
    pulled = centre + spread / (spread + error**2) * (place - centre)
    return [
        Tested(float(back(rest[i])), float(back(pulled[i])), float(2.0 * ndtr(-abs(z[i]))), bool(z[i] > 0))
        for i in range(len(figures))
    ]


def surviving(tests: Sequence[float], level: float = 0.95) -> list[int]:
    """The places of the p values that survive Holm's correction over all of them.

    >>> surviving([0.001, 0.04, 0.5])
    [0]
    """
    return [i for i, p in enumerate(holm(tests)) if p < 1.0 - level] if len(tests) else []


def shift(whole: Figure, slices: Sequence[Figure], sizes: Sequence[int], *, level: float = 0.95) -> Shift | None:
    """Whether all trials together do other than their slices one by one: scores that mean different things in each.

    The mean of the slices is weighted by their trials (`sizes`). The whole and its slices share their trials, so their
    errors are taken to add up, which can only make the test too careful.

    >>> apart = shift(Figure(0.47, 0.45, 0.49, 900), [Figure(0.10, 0.07, 0.13, 300)] * 3, [600] * 3)
    >>> round(apart.within, 2), apart.p < 1e-6
    (0.1, True)
    """
    if len(slices) < 2 or not sum(sizes):
        return None
    half = float(ndtri(0.5 + level / 2))
    share = np.asarray(sizes, dtype=np.float64) / sum(sizes)
    values = np.array([f.value for f in slices])
    errors = np.array([(f.high - f.low) / (2 * half) for f in slices])
    within = float(share @ values)
    error = (whole.high - whole.low) / (2 * half) + float(np.sqrt(((share * errors) ** 2).sum()))
    distance = abs(whole.value - within)
    p = 1.0 if distance == 0 else 0.0 if error == 0 else float(2.0 * ndtr(-distance / error))
    return Shift(whole.value, within, p)


def _placed(figures: Sequence[Figure], level: float, bounded: bool) -> tuple[Floats, Floats]:
    """Each figure on the scale of the test, and its standard error there."""
    half = float(ndtri(0.5 + level / 2))
    places, errors = [], []
    for f in figures:
        edge = 0.5 / (f.n + 1) if bounded else 0.0
        ends = [_at(v, edge, bounded) for v in (f.value, f.low, f.high)]
        error = (ends[2] - ends[1]) / (2 * half)
        if error <= 0.0:  # every replicate gave the same figure: no error at all is too good to be true
            error = _at(min(1.0, 3.0 / max(f.n, 3)), edge, True) - _at(0.0, edge, True) if bounded else math.inf
            error /= 2 * half
        places.append(ends[0])
        errors.append(max(error, 1e-12))
    return np.array(places), np.array(errors)


def _steadied(error: Floats, n: Floats) -> Floats:
    """Errors no smaller than those of slices of their size usually are.

    The interval of a small slice is itself uncertain, and one that is too narrow by chance would raise an alarm. If the
    slices are alike, which is what is tested, their errors differ by their sizes alone.
    """
    usual = float(np.median(error**2 * n))
    return np.asarray(np.maximum(error, np.sqrt(usual / n)))


def _at(value: float, edge: float, bounded: bool) -> float:
    return float(logit(min(max(value, edge), 1.0 - edge))) if bounded else value


def _spread(place: Floats, weight: Floats) -> float:
    """The variance between slices beyond what their errors explain, by moments."""
    mean = float(weight @ place / weight.sum())
    excess = float(weight @ (place - mean) ** 2) - (len(place) - 1)
    scale = float(weight.sum() - (weight**2).sum() / weight.sum())
    return max(excess / scale, 0.0) if scale > 0 else 0.0
