"""Tests: paired decisions and answers, slices that differ, many differences judged at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core import progress
from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.core.sorting import Floats
from hitmiss.stats.bootstrap import Random

# ----------------------------------------------------------------------
# McNemar's test: do two detectors fail equally often on the same trials? Only the pairs on which they differ count.

EXACT_UP_TO: Final = 2_000
"""Up to this many discordant pairs, integers are summed; beyond, the incomplete beta function is as accurate."""


def exact(only_a: int, only_b: int) -> float:
    """Return the two-sided exact p value: min(1, 2 P(X <= min)), X binomial with chance ½ over the discordant pairs.

    `only_a`: pairs on which only the first is right; `only_b`: only the second. 1 without discordant pairs.
    Reference: McNemar 1947; equals `statsmodels.stats.contingency_tables.mcnemar(exact=True)`.

    >>> exact(0, 0), exact(1, 5)
    (1.0, 0.21875)
    >>> f"{exact(238, 9):.3g}"
    '7.48e-59'
    """
    below, _ = _tail(only_a, only_b)
    return min(1.0, 2.0 * below)


def mid_p(only_a: int, only_b: int) -> float:
    """Return the two-sided mid-p value: 2 P(X <= min) − P(X = min), less conservative than the exact test.

    It is 1 without discordant pairs. Reference: Lancaster 1961; Fagerland, Lydersen & Laake 2013.

    >>> mid_p(0, 0), mid_p(1, 5), mid_p(3, 3)
    (1.0, 0.125, 1.0)
    """
    below, here = _tail(only_a, only_b)
    return min(1.0, 2.0 * below - here)


def _tail(only_a: int, only_b: int) -> tuple[float, float]:
    """Return P(X <= min) and P(X = min)."""
    if only_a < 0 or only_b < 0:
        raise UsageError(f"counts of discordant pairs cannot be negative; found {only_a} and {only_b}")
    n, least = only_a + only_b, min(only_a, only_b)
    if n > EXACT_UP_TO:
        from scipy.special import bdtr

        return float(bdtr(least, n, 0.5)), _mass(least, n)
    term = total = 1
    for k in range(1, least + 1):
        term = term * (n - k + 1) // k
        total += term
    return total / (1 << n), term / (1 << n)  # integers: divided exactly, rounded once


def _mass(k: int, n: int) -> float:
    """Return P(X = k) from logarithms of factorials; a difference of two tails would lose digits."""
    return exp(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * log(2.0))


# ----------------------------------------------------------------------
# Permutation tests of paired answers: if two detectors are alike, it does not matter which of them gave which answer.
#
# Each unit's two answers are exchanged or not. With few units every permutation is counted. Otherwise permutations are
# drawn, and the observed one counts among them: p = (b + 1) / (m + 1) (Phipson & Smyth 2010).

PERMUTATION_EXACT_UP_TO: Final = 16
"""Up to this many units, all 2ⁿ permutations are counted, if the statistic is a sum."""
FEW: Final = 10
"""Up to this many units, all 2ⁿ permutations are counted, if a metric must be computed again each time."""
AT_A_TIME: Final = 1 << 22
NEARLY: Final = 1e-9
"""Sums that differ by less than this, relative to their terms, are equal: rounding must not break ties."""

Swaps = NDArray[np.bool_]


def sign_flip(differences: Floats, replicates: int, rng: Random) -> float:
    """Return the two-sided p value of a sum of differences, one per unit, under changes of sign; 1 if no unit differs.

    Exact up to 16 units that differ. For differences of −1, 0 and 1 this is the exact McNemar test.

    >>> from hitmiss.stats.bootstrap import generator
    >>> sign_flip(np.array([1.0, 1.0, 1.0, 1.0, 1.0, -1.0]), 0, generator(0))
    0.21875
    """
    moving = differences[differences != 0.0]
    if not len(moving):
        return 1.0
    bar = abs(float(moving.sum())) - NEARLY * float(np.abs(moving).sum())
    if len(moving) <= PERMUTATION_EXACT_UP_TO:
        sums = _all_ways(len(moving)) @ moving
        return float(np.mean(np.abs(sums) >= bar))
    beyond = sum(int((np.abs(s) >= bar).sum()) for s in _drawn_sums(moving, replicates, rng))
    return (beyond + 1) / (replicates + 1)


def _all_ways(n: int) -> Floats:
    bits = np.arange(1 << n)[:, None] >> np.arange(n)
    return np.asarray(1.0 - 2.0 * (bits & 1), dtype=np.float64)


def _drawn_sums(moving: Floats, replicates: int, rng: Random) -> Iterator[Floats]:
    step = max(1, AT_A_TIME // len(moving))
    for start in range(0, replicates, step):
        progress.report("permutations", start, replicates)
        size = (min(step, replicates - start), len(moving))
        yield np.asarray((1.0 - 2.0 * rng.heads(size[0] * size[1]).reshape(size)) @ moving, dtype=np.float64)


def swap(statistic: Callable[[Swaps], float], n_units: int, replicates: int, rng: Random) -> float:
    """Return the two-sided p value of any difference of two figures, by exchanging the answers of units.

    `statistic` computes the difference after exchanging the marked units. Permutations in which the figure is undefined
    are left out; NaN if the observed figure is undefined, and 1 if exchanging changes nothing.

    >>> from hitmiss.stats.bootstrap import generator
    >>> gained = np.array([1.0, 1.0, -1.0])
    >>> swap(lambda swapped: float(np.where(swapped, -gained, gained).sum()), 3, 0, generator(0))
    1.0
    """
    observed = statistic(np.zeros(n_units, dtype=bool))
    if np.isnan(observed):
        return float("nan")
    values = np.array([statistic(way) for way in _ways(n_units, replicates, rng)])
    values = values[~np.isnan(values)]
    beyond = int((np.abs(values) >= abs(observed) - NEARLY).sum())
    if n_units <= FEW:
        return beyond / len(values)
    return (beyond + 1) / (len(values) + 1)


def _ways(n_units: int, replicates: int, rng: Random) -> Iterator[Swaps]:
    if n_units <= FEW:
        yield from (_all_ways(n_units) < 0)
        return
    for done in range(replicates):
        progress.report("permutations", done, replicates)
        yield rng.heads(n_units)


# ----------------------------------------------------------------------
# Many tests at once: p values adjusted so that the family as a whole keeps its level.


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p values by Holm's step-down method, which keeps the chance of any false alarm at the level.

    It holds whatever the dependence of the tests. In ascending order, p₍ᵢ₎ · (m − i + 1), never below the one before,
    at most 1. Reference: Holm 1979.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    return _in_order(p_values, lambda p: np.maximum.accumulate(p * np.arange(len(p), 0, -1)))


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Adjust p values by Benjamini–Hochberg: the expected share of false findings stays at the level.

    In descending order, p₍ᵢ₎ · m / i, never above the one after, at most 1. Reference: Benjamini & Hochberg 1995.

    >>> benjamini_hochberg([0.01, 0.04, 0.03])
    [0.03, 0.04, 0.04]
    """
    return _in_order(p_values, _step_up)


def _step_up(p: Floats) -> Floats:
    scaled = p * (len(p) / np.arange(1, len(p) + 1))
    return np.minimum.accumulate(scaled[::-1])[::-1]


def _in_order(p_values: Sequence[float], adjust: Callable[[Floats], Floats]) -> list[float]:
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(adjust(p[order]), 1.0)
    return [float(x) for x in adjusted]


CORRECTIONS: Final[dict[str, Callable[[Sequence[float]], list[float]]]] = {
    "holm": holm,
    "bh": benjamini_hochberg,
    "none": lambda p: [float(x) for x in p],
}


def adjusted(p_values: Sequence[float | None], correction: str) -> list[float | None]:
    """Adjust the p values of one family; undefined ones stay undefined and do not count.

    >>> adjusted([0.01, None, 0.04], "holm")
    [0.02, None, 0.04]
    """
    if correction not in CORRECTIONS:
        raise UnknownName("correction", correction, CORRECTIONS)
    known = iter(CORRECTIONS[correction]([p for p in p_values if p is not None]))
    return [None if p is None else next(known) for p in p_values]


# ----------------------------------------------------------------------
# Compact letter display: runs that share a letter have not been shown to differ (Piepho 2004, insert and absorb).


def groups(names: Sequence[str], different: Iterable[tuple[str, str]]) -> list[tuple[str, ...]]:
    """Return the largest groups without a pair that differs, in the order of `names`.

    >>> groups(["a", "b", "c"], [("a", "c")])
    [('a', 'b'), ('b', 'c')]
    >>> groups(["a", "b"], [])
    [('a', 'b')]
    """
    found = [frozenset(names)]
    for one, other in different:
        split = [part for g in found for part in ((g - {one}, g - {other}) if {one, other} <= g else (g,))]
        found = [g for g in dict.fromkeys(split) if not any(g < rest for rest in split)]
    place = {name: i for i, name in enumerate(names)}
    ordered = [tuple(sorted(g, key=place.__getitem__)) for g in found]
    return sorted(ordered, key=lambda g: [place[name] for name in g])


def letters(names: Sequence[str], different: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the letters of each name: those of the groups that it belongs to.

    >>> letters(["a", "b", "c"], [("a", "c")])
    {'a': 'a', 'b': 'ab', 'c': 'b'}
    """
    found = groups(names, different)
    return {name: "".join(_letter(i) for i, g in enumerate(found) if name in g) for name in names}


def _letter(index: int) -> str:
    """Return a … z, then a1 … z1, a2 …"""
    round_, place = divmod(index, 26)
    return chr(ord("a") + place) + (str(round_) if round_ else "")


# ----------------------------------------------------------------------
# Are some slices worse than the rest, and is the whole worse than its slices? Tests of figures with intervals.
#
# Among twenty equal slices one always looks worst, so "the worst slice" alone is no finding. Here every slice is tested
# against all others together, and the p values are corrected for the number of slices that were tested. Nothing is
# shrunk: one variance for all slices would pull the one that stands out into the crowd.
#
# Only the figures, the ends of their intervals and their numbers of trials are needed, so trials, counts and a results
# file give the same answer.

FEWEST: Final = 3
"""The least number of slices for a test of a slice against the others."""


@dataclass(frozen=True)
class Figure:
    """A figure of one slice: its value, the ends of its interval, and the number of trials of its rarer class."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Tested:
    """A slice against the others: their common figure, and the p value of no difference.

    `p` is two-sided and not corrected; `is_above` says on which side of the others the slice lies.
    """

    others: float
    p: float
    is_above: bool


@dataclass(frozen=True)
class Shift:
    """The figure of all trials against the mean of its slices: how far apart they are, and the p value."""

    whole: float
    within: float
    p: float


def against_others(figures: Sequence[Figure], *, level: float = 0.95, bounded: bool = True) -> list[Tested]:
    """Test each slice against all others together.

    Figures of `bounded` metrics (shares, areas) are compared as log-odds, where their errors are nearly normal. The
    common figure of the others is their mean, weighted by the precision of each.

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
        One for each figure, in order; empty if there are fewer than three slices.

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
    """Return each figure on the scale of the test, and its standard error there."""
    half = NormalDist().inv_cdf(0.5 + level / 2)
    places, errors = [], []
    for f in figures:
        edge = 0.5 / (f.n + 1) if bounded else 0.0
        ends = [_at(v, edge, bounded) for v in (f.value, f.low, f.high)]
        error = (ends[2] - ends[1]) / (2 * half)
        if error <= 0.0:  # every replicate gave the same figure; an error of 0 is not believable
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
    """Return a figure from its value on the scale of the test."""
    return 0.5 + 0.5 * math.tanh(0.5 * place) if bounded else float(place)


def _two_tails(z: float) -> float:
    """Return the probability that a normal deviate is at least that far from 0."""
    return math.erfc(z / math.sqrt(2.0))


# ----------------------------------------------------------------------
# Many differences judged at once, from one shared stream of replicates: max-T with step-down, and ranks.
#
# All figures of all systems are computed on the same draws, so replicate r of every difference belongs to one resampled
# data set. Each difference is divided by its standard error. The largest of the recentred replicates over the family
# shows how far the most extreme of many differences strays if all true differences are zero. A larger difference is
# shown, with the error of the family at the level, whatever the dependence (Westfall & Young 1993; Romano & Wolf 2005,
# step-down). The cost grows with replicates times differences. The adjusted p value has no lower limit that grows with
# the family, so 1,000 replicates are enough for 2 systems and for 200.
#
# Beyond the last replicate the p value follows the tail of the studentised statistic: 1 − (1 − p(t))^k, where k is the
# number of independent tests that would have the same critical value.


@dataclass(frozen=True, eq=False)
class Simultaneous:
    """Differences of one family: single and adjusted p values, and intervals that hold all at once."""

    p_values: Floats
    adjusted: Floats
    low: Floats
    high: Floats
    errors: Floats


@dataclass(frozen=True, eq=False)
class Unseen:
    """By how much a figure may truly be higher than its replicates show, in steps, and the chance of each step."""

    amounts: Floats
    chances: Floats

    @classmethod
    def of(cls, costs: Sequence[float], trials: Sequence[float]) -> Unseen:
        """Describe what kinds of error that no trial showed may cost: `costs` if all trials of a kind were errors.

        Of n trials of a class, the share of all such trials beyond the most extreme one is above u with a chance of
        (1 − u)ⁿ, also where the threshold was chosen by these trials. This chance, as a distribution of the share that is
        not known, is what a test of one kind of error alone would need; those of two kinds are added up.

        >>> found = Unseen.of([1.0], [100.0])  # the mean of such a share is about 1 / 100
        >>> round(float(found.amounts @ found.chances), 3)
        0.01
        """
        edges = UNSEEN_REACH * (np.arange(UNSEEN_STEPS + 1) / UNSEEN_STEPS) ** 2
        chances, far = -np.diff(np.exp(-edges)), edges[1:]  # the far end of each step: no chance is too small
        amounts, joint = np.zeros(1), np.ones(1)
        for cost, n in zip(costs, trials, strict=True):
            if cost:
                amounts = np.add.outer(amounts, cost * -np.expm1(-far / n)).ravel()
                joint = np.multiply.outer(joint, chances).ravel()
        return cls(amounts, joint)

    def tail(self, distance: float, error: float, degrees: float) -> float:
        """Return the chance that Student's error and what was not seen add up to more than a distance."""
        from scipy.special import ndtr, stdtr

        t = -(distance - self.amounts) / max(error, 1e-300)
        return float(self.chances @ (stdtr(degrees, t) if math.isfinite(degrees) else ndtr(t)))

    def reach(self, tail: float, error: float, degrees: float, half: float) -> float:
        """Return the distance that is exceeded with a chance of `tail`; it is `half` if nothing is unseen."""
        low, high = 0.0, half + float(self.amounts.max())
        for _ in range(50):
            middle = (low + high) / 2.0
            low, high = (middle, high) if self.tail(middle, error, degrees) > tail else (low, middle)
        return high


UNSEEN_STEPS: Final = 96
UNSEEN_REACH: Final = 36.0
"""Shares whose chance is below e⁻³⁶ are left out."""

Replicates = Callable[[int], Floats]
"""Returns the replicates of a difference by its index; called one at a time, so that a large family fits in memory."""


def max_t(
    estimates: Floats,
    replicates: Replicates,
    n_replicates: int,
    degrees: Floats,
    level: float = 0.95,
    unseen: Mapping[int, tuple[Unseen, Unseen]] | None = None,
    is_least: NDArray[np.bool_] | None = None,
) -> Simultaneous:
    """Judge a family of differences by step-down max-T.

    Parameters
    ----------
    estimates
        The differences; NaN for an undefined one, which is left out of the family.
    replicates
        Returns the replicates of a difference by its index.
    n_replicates
        The number of replicates of each difference.
    degrees
        Degrees of freedom of each standard error (units less one; inf if there are very many).
    level
        Level of the simultaneous intervals.
    unseen
        For some differences, by how much each may be lower and higher than its replicates show.
    is_least
        Which are differences of least costs: they vary more than their replicates, whose mean lies nearer to 0. So the
        nearer of the two is tested, and the interval reaches to both sides of both.

    Returns
    -------
    Simultaneous
        p values and intervals; NaN if a difference is undefined or its replicates do not vary.

    >>> rng = np.random.default_rng(0)
    >>> draws = rng.normal(size=(3, 2000)) + np.array([[0.0], [1.0], [9.0]])
    >>> found = max_t(np.array([0.0, 1.0, 9.0]), lambda i: draws[i], 2000, np.full(3, np.inf))
    >>> [bool(p < 0.05) for p in found.adjusted]
    [False, False, True]
    """
    size = len(estimates)
    errors, means = np.full(size, np.nan), estimates.copy()
    for place in np.flatnonzero(np.isfinite(estimates)):
        known = _known(replicates(int(place)))
        if len(known) > 1:
            errors[place] = known.std(ddof=1)
            means[place] = known.mean() if is_least is not None and is_least[place] else estimates[place]
    nearer = np.where(estimates * means > 0.0, np.minimum(np.abs(estimates), np.abs(means)), 0.0)
    shrunk = np.sqrt(1.0 - 1.0 / (degrees + 1.0))
    scores = _scores(nearer, errors, shrunk, degrees)
    unseen = unseen or {}
    for i, (lower, higher) in unseen.items():
        if not math.isnan(scores[i]):
            tail = (lower if estimates[i] > 0.0 else higher).tail(nearer[i], errors[i] / shrunk[i], degrees[i])
            scores[i] = min(scores[i], _deviate(tail))
    p_values = _two_sided(scores)
    largest = np.zeros(n_replicates)
    adjusted = np.full(size, np.nan)
    order = [int(i) for i in np.argsort(scores, kind="stable") if not math.isnan(scores[i])]
    reached: dict[int, int] = {}
    for i in order:  # from the least to the greatest: each step's family is what was not shown before
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
    low, high = np.minimum(estimates, means), np.maximum(estimates, means)
    reaches = half, half.copy()
    for i, (lower, higher) in unseen.items():
        if errors[i] > 0.0:
            at = _upper(critical), errors[i] / shrunk[i], degrees[i], half[i]
            reaches[0][i], reaches[1][i] = lower.reach(*at), higher.reach(*at)
    return Simultaneous(p_values, adjusted, low - reaches[0], high + reaches[1], errors)


def _deviate(tail: float) -> float:
    """Return the normal deviate with this upper tail probability, at least 0."""
    from scipy.special import ndtri

    return max(0.0, -float(ndtri(max(tail, 1e-300))))


def _upper(z: float) -> float:
    """Return the upper tail probability of a normal deviate."""
    from scipy.special import log_ndtr

    return math.exp(float(log_ndtr(-z)))


def _scores(estimates: Floats, errors: Floats, shrunk: Floats, degrees: Floats) -> Floats:
    """Return each studentised difference as a normal deviate; NaN if it cannot be judged.

    A difference that is the same in every replicate has no error to divide by. It is judged as the sign test judges
    units that all point in one direction: p = 2^(1 − units).
    """
    from scipy.special import ndtri  # slow to import, and needed only here

    with np.errstate(divide="ignore", invalid="ignore"):
        scores = normal_scores(np.where(errors > 0.0, np.abs(estimates) / errors * shrunk, np.nan), degrees)
    alike = (errors == 0.0) & (estimates != 0.0)
    scores[alike] = -ndtri(np.maximum(np.exp2(-1.0 - np.minimum(degrees[alike], 900.0)), 1e-300))
    return scores


def _known(values: Floats) -> Floats:
    return values[np.isfinite(values)]


def normal_scores(t: Floats, degrees: Floats) -> Floats:
    """Return the normal deviates with the same tail probability as Student's t, on the scale of the replicates."""
    from scipy.special import ndtri, stdtr

    plain = ~np.isfinite(degrees)
    out = t.copy()
    few = ~plain & np.isfinite(t)
    tail = stdtr(degrees[few], -t[few])
    out[few] = np.where(tail > 0.0, -ndtri(np.maximum(tail, 1e-300)), 37.0)
    return out


def _student(z: float, degrees: Floats) -> Floats:
    """Return Student's quantile with the tail probability of a normal deviate z; z itself for infinite degrees."""
    from scipy.special import stdtrit

    tail = _upper(z)
    out = np.full(len(degrees), z)
    few = np.isfinite(degrees)
    out[few] = -stdtrit(degrees[few], tail)
    return out


def _two_sided(z: Floats) -> Floats:
    from scipy.special import log_ndtr

    return np.asarray(np.minimum(1.0, 2.0 * np.exp(log_ndtr(-z))), dtype=np.float64)


def _independent_tests(critical: float, alpha: float) -> float:
    """Return how many independent tests have this critical value at alpha, at least 1.

    It is ln(1 − α) / ln(1 − p(critical)).
    """
    from scipy.special import log_ndtr

    p = min(2.0 * math.exp(float(log_ndtr(-critical))), 0.5)
    return max(1.0, math.log1p(-alpha) / math.log1p(-p)) if p > 0.0 else 1.0


def _sidak(z: float, tests: float) -> float:
    """Return 1 − (1 − p)^tests, accurate also for the smallest p."""
    from scipy.special import log_ndtr

    p = min(1.0, 2.0 * math.exp(float(log_ndtr(-z))))
    return -math.expm1(tests * math.log1p(-p)) if p < 1.0 else 1.0


def ranks(
    names: Sequence[str], better: Sequence[tuple[str, str]], defined: Sequence[str]
) -> dict[str, tuple[int, int]]:
    """Return confidence intervals of ranks, all at once: 1 + the number shown to be better, n − the number worse.

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
    """Divide trials at random into at most `most` blocks (per class, or of both together), to be resampled as units.

    Independent trials may be resampled in random blocks of equal size: the variance is the same, estimated from that
    many blocks. With no more trials than blocks, every trial is its own block. `place` is a random order of the trials.
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
