"""Many differences judged at once, from one shared stream of replicates: max-T with step-down, and ranks.

All numbers of all systems are computed on the same draws, so replicate r of every difference belongs to one resampled
data set. Each difference is divided by its standard error. The largest of the recentred replicates over the family
shows how far the most extreme of many differences strays if all true differences are zero. A larger difference is
shown, with the error of the family at the level, whatever the dependence (Westfall & Young 1993; Romano & Wolf 2005,
step-down). The cost grows with replicates times differences. The adjusted p value has no lower limit that grows with
the family, so 1,000 replicates are enough for 2 systems and for 200.

Beyond the last replicate the p value follows the tail of the studentised statistic: 1 − (1 − p(t))^k, where k is the
number of independent tests that would have the same critical value."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.sorting import Floats


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
    """By how much a number may truly be higher than its replicates show, in steps, and the chance of each step."""

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
