"""Many differences judged at once, from one shared stream of replicates: max-T with step-down, and ranks.

All figures of all systems are computed on the same draws, so replicate r of every difference belongs to one resampled data
set. Each difference is divided by its standard error; the largest of the recentred replicates over the family says how far
the most extreme of many true zeros strays. What is beyond that is shown, with the family's error at the level whatever
depends on what (Westfall & Young 1993; Romano & Wolf 2005, step-down). Cost grows with replicates times differences, and
the adjusted p has no floor that grows with the family: 1,000 replicates serve 2 systems and 200.

Beyond the last replicate the p value goes on along the tail of the studentised statistic: 1 − (1 − p(t))^k, k the number
of independent tests that would have the same critical value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri, stdtr, stdtrit

from hitmiss.tally import Floats


@dataclass(frozen=True, eq=False)
class Simultaneous:
    """Differences of one family: p values alone and adjusted, and intervals that hold all at once."""

    p_values: Floats
    adjusted: Floats
    low: Floats
    high: Floats
    errors: Floats


Replicates = Callable[[int], Floats]
"""The replicates of a difference by its place; asked for one at a time, so that a large family fits in memory."""


def max_t(
    estimates: Floats, replicates: Replicates, n_replicates: int, degrees: Floats, level: float = 0.95
) -> Simultaneous:
    """Step-down max-T over a family of differences.

    Parameters
    ----------
    estimates
        The differences; NaN where one is undefined (it then has no part in the family).
    replicates
        Gives the replicates of a difference by its place.
    n_replicates
        How many there are of each.
    degrees
        Degrees of freedom of each standard error (units less one; inf where there are very many).
    level
        Level of the simultaneous intervals.

    Returns
    -------
    Simultaneous
        NaN where a difference is undefined or its replicates do not vary.

    >>> rng = np.random.default_rng(0)
    >>> draws = rng.normal(size=(3, 2000)) + np.array([[0.0], [1.0], [9.0]])
    >>> found = max_t(np.array([0.0, 1.0, 9.0]), lambda i: draws[i], 2000, np.full(3, np.inf))
    >>> [bool(p < 0.05) for p in found.adjusted]
    [False, False, True]
    """
    size = len(estimates)
    errors = np.full(size, np.nan)
    for place in np.flatnonzero(np.isfinite(estimates)):
        known = _known(replicates(int(place)))
        if len(known) > 1:
            errors[place] = known.std(ddof=1)
    shrunk = np.sqrt(1.0 - 1.0 / (degrees + 1.0))
    scores = _scores(estimates, errors, shrunk, degrees)
    p_values = _two_sided(scores)
    largest = np.zeros(n_replicates)
    adjusted = np.full(size, np.nan)
    order = [int(i) for i in np.argsort(scores, kind="stable") if not math.isnan(scores[i])]
    reached: dict[int, int] = {}
    for i in order:  # from the least to the greatest: the family of a step is what is not shown before it
        if errors[i] > 0.0:
            np.maximum(largest, np.nan_to_num(np.abs(replicates(i) - estimates[i]) / errors[i]), out=largest)
        reached[i] = int((largest >= scores[i]).sum())
    if not order:
        nothing = np.full(size, np.nan)
        return Simultaneous(nothing, nothing.copy(), nothing.copy(), nothing.copy(), errors)
    critical = float(np.quantile(largest, level, method="higher"))
    as_many = _independent_tests(critical, 1.0 - level)
    before = 0.0
    for i in reversed(order):
        p = (1.0 + reached[i]) / (n_replicates + 1.0)
        if not reached[i]:
            p = min(p, _sidak(float(scores[i]), as_many))
        before = max(before, p, float(p_values[i]))
        adjusted[i] = min(before, 1.0)
    half = np.where(errors > 0.0, _student(critical, degrees) / shrunk * errors, np.nan)
    return Simultaneous(p_values, adjusted, estimates - half, estimates + half, errors)


def _scores(estimates: Floats, errors: Floats, shrunk: Floats, degrees: Floats) -> Floats:
    """Each studentised difference as a normal deviate; NaN where there is nothing to judge.

    A difference that is the same in every replicate has no error to be divided by. It is judged as the sign test would
    judge units that all lean one way: p = 2^(1 − units).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = normal_scores(np.where(errors > 0.0, np.abs(estimates) / errors * shrunk, np.nan), degrees)
    alike = (errors == 0.0) & (estimates != 0.0)
    scores[alike] = -ndtri(np.maximum(np.exp2(-1.0 - np.minimum(degrees[alike], 900.0)), 1e-300))
    return scores


def _known(values: Floats) -> Floats:
    return values[np.isfinite(values)]


def normal_scores(t: Floats, degrees: Floats) -> Floats:
    """The normal deviate with the same tail as Student's t: what a t of few degrees says, on the scale of the replicates."""
    plain = ~np.isfinite(degrees)
    out = t.copy()
    few = ~plain & np.isfinite(t)
    tail = stdtr(degrees[few], -t[few])
    out[few] = np.where(tail > 0.0, -ndtri(np.maximum(tail, 1e-300)), 37.0)
    return out


def _student(z: float, degrees: Floats) -> Floats:
    """Student's quantile with the tail of a normal deviate z; z itself for infinite degrees."""
    tail = math.exp(float(log_ndtr(-z)))
    out = np.full(len(degrees), z)
    few = np.isfinite(degrees)
    out[few] = -stdtrit(degrees[few], tail)
    return out


def _two_sided(z: Floats) -> Floats:
    return np.asarray(np.minimum(1.0, 2.0 * np.exp(log_ndtr(-z))), dtype=np.float64)


def _independent_tests(critical: float, alpha: float) -> float:
    """How many independent tests have this critical value at alpha: ln(1 − α) / ln(1 − p(critical)), at least 1."""
    p = min(2.0 * math.exp(float(log_ndtr(-critical))), 0.5)
    return max(1.0, math.log1p(-alpha) / math.log1p(-p)) if p > 0.0 else 1.0


def _sidak(z: float, tests: float) -> float:
    """1 − (1 − p)^tests, exact for the smallest p."""
    p = min(1.0, 2.0 * math.exp(float(log_ndtr(-z))))
    return -math.expm1(tests * math.log1p(-p)) if p < 1.0 else 1.0


def ranks(
    names: Sequence[str], better: Sequence[tuple[str, str]], defined: Sequence[str]
) -> dict[str, tuple[int, int]]:
    """Confidence intervals of ranks, all at once: 1 + how many were shown to be better, and n − how many worse.

    `better` lists (better, worse) pairs that were shown with the family's error at the level (Mogstad et al. 2024).

    >>> ranks(["a", "b", "c"], [("a", "c")], ["a", "b", "c"])
    {'a': (1, 2), 'b': (1, 3), 'c': (2, 3)}
    """
    above, below = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for one, other in better:
        below[one] += 1
        above[other] += 1
    return {name: (1 + above[name], len(defined) - below[name]) for name in names if name in set(defined)}


def spread_out(positive: NDArray[np.bool_], place: NDArray[np.int64], most: int, by_class: bool) -> NDArray[np.int64]:
    """Trials dealt out at random to at most `most` blocks (of each class, or of both together), as units to be drawn.

    Independent trials may be drawn in random blocks of equal size: the variance is the same, known from as many blocks.
    With no more trials than blocks every trial is its own. `place` is a random order of the trials.
    """
    sides = [np.flatnonzero(positive), np.flatnonzero(~positive)] if by_class else [np.arange(len(positive))]
    unit = np.zeros(len(positive), dtype=np.int64)
    start = 0
    for members in sides:
        rank = np.empty(len(members), dtype=np.int64)
        rank[np.argsort(place[members], kind="stable")] = np.arange(len(members))
        unit[members] = start + rank % most
        start += min(most, len(members))
    return unit
