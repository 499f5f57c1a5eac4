"""Confidence intervals: from replicates or analytic (DeLong, binomial, order statistics), and when none is possible."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from operator import mul
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.sorting import Array, Floats
from hitmiss.core.tally import Tally

if TYPE_CHECKING:
    from hitmiss.stats.bootstrap import Cells
    from hitmiss.stats.forms import Form


# ----------------------------------------------------------------------
# From replicates to an interval.

Interval = tuple[float, float]
_NORMAL = NormalDist()


def percentile(replicates: Floats, level: float = 0.95) -> Interval:
    """Return the middle `level` of the defined replicates; (NaN, NaN) if none is defined.

    >>> percentile(np.arange(1.0, 100.0), 0.5)
    (25.0, 75.0)
    """
    values = replicates[~np.isnan(replicates)]
    if not len(values):
        return math.nan, math.nan
    tail = (1.0 - level) / 2
    return _quantiles(values, [tail, 1.0 - tail])


def bca(replicates: Floats, estimate: float, acceleration: float, level: float = 0.95) -> Interval:
    """Return the bias-corrected and accelerated interval (Efron 1987).

    z0 = Φ⁻¹(share of replicates below the estimate, ties counting half);
    quantiles at Φ(z0 + (z0 + z) / (1 − a (z0 + z))).
    """
    values = replicates[~np.isnan(replicates)]
    if not len(values):
        return math.nan, math.nan
    below = float(np.mean(values < estimate) + 0.5 * np.mean(values == estimate))
    if not 0.0 < below < 1.0:  # every replicate on one side: the correction cannot be estimated
        return percentile(values, level)
    z0 = _NORMAL.inv_cdf(below)
    tails = [_corrected(z0, _NORMAL.inv_cdf(t), acceleration) for t in ((1 - level) / 2, (1 + level) / 2)]
    return _quantiles(values, tails)


def _quantiles(values: Floats, shares: list[float]) -> Interval:
    """Return two quantiles; values between infinite replicates cannot be interpolated, so the nearest one is taken.

    The k-th of B values has, on average, a share of k / (B + 1) below it, so a quantile lies at share · (B + 1). At
    share · (B − 1) + 1, between the least and the greatest value, 200 replicates would give a 95 % interval 94 %.
    """
    low, high = np.quantile(values, shares, method="weibull" if np.isfinite(values).all() else "nearest")
    return float(low), float(high)


def _corrected(z0: float, z: float, acceleration: float) -> float:
    return _NORMAL.cdf(z0 + (z0 + z) / (1.0 - acceleration * (z0 + z)))


def of_difference(
    one: tuple[float, float, float], other: tuple[float, float, float], correlation: float = 0.0
) -> Interval:
    """Return the interval of other − one from the estimate and the ends of each, and how they vary together.

    The squared distances of the ends from their estimates are added, less twice their product times the correlation
    (MOVER: Newcombe 1998, method 10; Zou & Donner 2008), so the result keeps the skewness of the two intervals.

    >>> low, high = of_difference((0.2, 0.1, 0.4), (0.5, 0.4, 0.6))
    >>> round(low, 4), round(high, 4)
    (0.0764, 0.4414)
    """
    (a, a_low, a_high), (b, b_low, b_high) = one, other

    def distance(x: float, y: float) -> float:
        return math.sqrt(max(x * x + y * y - 2.0 * correlation * x * y, 0.0))

    # the difference is least where b is low and a is high, so each end takes opposite ends of the two
    return b - a - distance(b - b_low, a_high - a), b - a + distance(b_high - b, a - a_low)


def on_both_scales(
    ends: Interval, one: tuple[float, Floats], other: tuple[float, Floats], bounds: Interval
) -> Interval:
    """Return Student's interval of other − one, skewed as the scale of the figures (see `student`) skews both sides.

    Both are given by their value and their replicates, from the same draws. A difference has no bounds, so `ends` lie
    as far from it on either side; but the error of each figure grows with the figure, so that such an interval misses
    more often on one side (FPR at a TPR, units of one class each: 10 % on one side and none on the other). So as many errors
    as `ends` has are taken of each figure on its own scale, and put together as in `of_difference`.

    >>> drawn = np.random.default_rng(0).normal(0.0, 0.02, (2, 400))
    >>> low, high = on_both_scales((0.0, 0.1), (0.05, drawn[0] + 0.05), (0.1, drawn[1] + 0.1), (0.0, 1.0))
    >>> round(low, 3), round(high, 3)
    (-0.009, 0.099)
    """
    (a, first), (b, second) = one, other
    known = np.isfinite(first) & np.isfinite(second)
    if known.sum() < 2 or not all(bounds[0] < v < bounds[1] for v in (a, b)):
        return ends
    (var_a, both), (_, var_b) = np.cov(first[known], second[known]).tolist()
    error = math.sqrt(max(var_a + var_b - 2.0 * both, 0.0))
    if not (error > 0.0 and var_a > 0.0 and var_b > 0.0):
        return ends
    scale = _Scale.between(*bounds)

    def side(value: float, variance: float, errors: float) -> tuple[float, float, float]:
        half = errors * math.sqrt(variance) * scale.slope(value)
        low, high = scale.back(scale.to(np.array([value, value])) + np.array([-half, half])).tolist()
        return value, low, high

    correlation = both / math.sqrt(var_a * var_b)
    errors = ((b - a - ends[0]) / error, (ends[1] - (b - a)) / error)
    found = [of_difference(side(a, var_a, e), side(b, var_b, e), correlation) for e in errors]
    low, high = found[0][0], found[1][1]
    return (low, high) if math.isfinite(low) and math.isfinite(high) else ends


SET_ASIDE = 0.005
"""The chance, over all slices, that one is set aside although it is as bad as the one that was picked as the worst."""


def tail_of_worst(value: Floats, low: Floats, high: Floats, level: float, degrees: float) -> tuple[float, int]:
    """Return the share beyond the better end of the interval of the worst of several figures, and how many may be it.

    Each figure has its interval at `level`, NaN if it has none; a higher one is worse. The worst was picked because it
    looks bad, so it looks worse than it is, and the lower end alone suffers: if K slices are alike, the chance that the
    lower end of the highest is too high is K times that of each. The upper end needs nothing: where that of the picked
    slice is too low, those of the others, which look better still, are too low as well. So the upper end stays, and the
    lower one leaves out α / (K + 1). Slices whose figures are shown to be better (`SET_ASIDE`; the difference of two as
    in `of_difference`) are not among the K, so that a slice that is clearly the worst keeps its own interval. For
    slices of like errors the chance of a miss is at most α, for very different ones α / 2 + α K / (K + 1).

    >>> ends = np.array([0.1, 0.11, 0.3]), np.array([0.09, 0.1, 0.29]), np.array([0.11, 0.12, 0.31])
    >>> tail_of_worst(*ends, 0.9, MANY)[1]
    1
    >>> tail, several = tail_of_worst(ends[0], ends[0] - 0.1, ends[0] + 0.1, 0.9, MANY)
    >>> round(tail, 4), several
    (0.025, 3)
    """
    wider = t_quantile(1.0 - SET_ASIDE / len(value), degrees) / t_quantile(0.5 + level / 2.0, degrees)
    worst = int(np.argmax(value))
    # a slice without an interval may be anywhere, and a comparison with NaN is false: it always counts
    better = value[worst] - value > wider * np.hypot(value[worst] - low[worst], high - value)
    several = len(value) - int(better.sum())
    return (1.0 - level) / (several + 1.0), several


MANY = 1e9
"""Degrees of freedom of an error that is estimated from many trials."""
OPTIMISM = 1.0 / (2.0 ** (2.0 / 3.0) - 1.0)
"""How many times the optimism of a minimum exceeds what the bootstrap sees of it (1.70).

Near its minimum the cost curve is a parabola plus the noise of counting, W(t) in the sample and W(t) + W'(t) in a
replicate. The expected depth of such a minimum grows as the 4/3 power of the noise's deviation, so a replicate's is
2^(2/3) times the sample's, and the bootstrap sees 2^(2/3) − 1 of it (cube-root asymptotics, Kim & Pollard 1990).
"""


def of_least_cost(
    least: Floats, at_best: Floats, estimate: float, acceleration: float, level: float = 0.95
) -> Interval:
    """Return the interval of a minimum over thresholds, which is optimistic in the sample and more so in replicates.

    The spread is that of the cost at the sample's best threshold (BCa of `at_best`; to first order the choice itself
    adds nothing), moved up by the optimism, `OPTIMISM` · (estimate − mean of `least`), as a share of the estimate.
    """
    low, high = bca(at_best, estimate, acceleration, level)
    if math.isnan(low):
        return low, high
    growth = growth_of_least_cost(least, estimate)
    # the move can pass the estimate where replicates hardly vary, and an interval must hold its own estimate
    return min(low * growth, estimate), max(high * growth, estimate)


def growth_of_least_cost(least: Floats, estimate: float) -> float:
    """Return the factor by which a least cost is too low; 1 if the cost is 0."""
    if not estimate > 0.0:
        return 1.0
    return 1.0 + OPTIMISM * max(estimate - float(np.nanmean(least)), 0.0) / estimate


@dataclass(frozen=True, eq=False)
class LeftOut:
    """A figure without one unit (or block of units) at a time: the jackknife's view of where its error comes from.

    Parameters
    ----------
    groups
        The figures without one unit each, per group of units that vary on their own: one group, the units of either
        class if every unit holds one class, or the two units that are crossed.
    effective
        The effective number of units of each group.
    apart
        Whether units are drawn within each group; otherwise the sizes of the groups vary too.
    cells
        For crossed units, the figures without one block of pairs of units each.
    """

    groups: tuple[Floats, ...]
    effective: tuple[float, ...]
    apart: bool = True
    cells: Floats | None = None

    @classmethod
    def mean(cls, several: Sequence[LeftOut]) -> LeftOut:
        """Return that of the mean of several figures, from the same units."""
        groups = tuple(np.mean(own, axis=0) for own in zip(*(one.groups for one in several), strict=True))
        cells = [one.cells for one in several if one.cells is not None]
        effective = tuple(max(own) for own in zip(*(one.effective for one in several), strict=True))
        return cls(groups, effective, several[0].apart, np.mean(cells, axis=0) if cells else None)

    def each(self, change: Callable[[Floats], Floats]) -> LeftOut:
        """Return the same with all figures changed alike."""
        cells = None if self.cells is None else change(self.cells)
        return LeftOut(tuple(map(change, self.groups)), self.effective, self.apart, cells)

    @cached_property
    def _shares(self) -> list[float]:
        """The part of the variance that comes from each group."""
        if self.apart:
            return [_jackknife_variance(values, values) for values in self.groups]
        every = np.concatenate(self.groups)
        return [_jackknife_variance(values, every) for values in self.groups]

    @property
    def variance(self) -> float:
        """The variance of the figure; of crossed units, what both count is counted once (Cameron et al. 2011)."""
        return sum(self._shares) - self._inside

    @cached_property
    def _inside(self) -> float:
        """The variance inside pairs of crossed units, which both units count; neither can hold more of it than its own."""
        return 0.0 if self.cells is None else min(_jackknife_variance(self.cells, self.cells), *self._shares)

    @property
    def narrowing(self) -> float:
        """By how much the replicates of crossed units vary too much: as a factor of their deviation, at most 1.

        Products of the weights of two units count the variance inside the pairs three times (Owen 2007).
        """
        return math.sqrt(self.variance / (self.variance + 2.0 * self._inside)) if self.variance > 0.0 else 1.0

    @property
    def degrees(self) -> float:
        """The degrees of freedom of the variance (Satterthwaite 1946): each group counts by its share."""
        total = sum(self._shares)
        lost = 1.0 if self.apart else 0.0
        # an effective number close to 1 would divide by nearly 0 and let one group decide alone, hence the floor
        per_group = [
            own * own / max(n - lost, 0.5) for own, n in zip(self._shares, self.effective, strict=True) if own > 0.0
        ]
        if len(self.groups) == 1 or not total > 0.0 or not sum(per_group) > 0.0:
            return min(self.effective) - 1.0
        return total * total / sum(per_group) - (1.0 - lost)

    @property
    def acceleration(self) -> float:
        """The skewness of what single units add: above 0 if some raise the figure far more than any lowers it."""
        every = np.concatenate(self.groups)
        gained = [(own.mean() if self.apart else every.mean()) - own for own in self.groups if len(own)]
        return _acceleration(np.concatenate(gained), np.ones(len(every))) if gained else 0.0


def _jackknife_variance(values: Floats, every: Floats) -> float:
    """Return what these units add to the jackknife variance of all of them."""
    n = len(every)
    return float(np.sum((values - every.mean()) ** 2)) * (n - 1.0) / n if n > 1 else 0.0


def student(
    replicates: Floats,
    centre: float,
    degrees: float,
    bounds: Interval = (-math.inf, math.inf),
    level: float = 0.95,
    without: LeftOut | None = None,
    smooth: bool = True,
) -> Interval:
    """Return Student's interval on a scale that respects the bounds of the figure, for few or unequal units.

    centre ± t(degrees) · error, on the logit scale between two bounds, the log scale with one bound, the plain scale
    without. The error is the deviation of the replicates times √((degrees + 1) / degrees), because resampling G units
    shows only (G − 1) / G of the variance. `without` holds the figure without one unit each. From it come the degrees,
    if units of several kinds are drawn, and, if the figure is `smooth` (not read at a quantile), two corrections: the
    jackknife error, if it is larger, and the skewness of what units add, by which the end on the side of the longer
    tail is moved out: a (2 t² + 1) errors, a the acceleration (the first term of the Edgeworth series of a studentised
    mean; Hall 1992, section 3). An end is moved out by the bias that the replicates show as well, unless the figure has
    no bounds: it is then a difference, in which the bias of both sides cancels. No end is moved in. Measured for 6 to
    150 units, equal, unequal and of one class: see docs/intervals.md.

    >>> low, high = student(np.random.default_rng(0).normal(0.1, 0.01, 2000), 0.1, 5.0, (0.0, 1.0))
    >>> round(low, 3), round(high, 3)
    (0.075, 0.133)
    """
    known = replicates[np.isfinite(replicates)]
    if len(known) < 2 or not degrees > 0.0 or math.isnan(centre):
        return math.nan, math.nan
    # a centre on a bound lies at infinity on the scale below: only the replicates themselves can say how far it may be
    if not bounds[0] < centre < bounds[1]:
        return percentile(known, level)
    scale = _Scale.between(*bounds)
    left = None if without is None else without.each(lambda v: _moved(v[np.isfinite(v)], centre, scale))
    moved = _moved(np.append(known, centre), centre, scale)
    bias = float(moved[:-1].mean() - moved[-1]) if math.isfinite(bounds[0]) else 0.0
    error, lean = float(np.std(moved[:-1], ddof=1)), 0.0
    if left is not None and any(len(own) > 1 for own in left.groups):
        degrees = left.degrees
        error *= left.narrowing if smooth else 1.0
    if not degrees > 0.0:  # all that varies comes from one unit
        return math.nan, math.nan
    error *= math.sqrt((degrees + 1.0) / degrees)
    t = t_quantile(0.5 + level / 2.0, degrees)
    if left is not None and smooth:
        error = max(error, math.sqrt(left.variance))
        lean = left.acceleration * (2.0 * t * t + 1.0)
    # only outwards: the skewness of few units is itself so uncertain that moving an end in would cost coverage
    moves = np.array([-t - max(-lean, 0.0), t + max(lean, 0.0)]) * error - [max(bias, 0.0), min(bias, 0.0)]
    ends = scale.back(scale.to(np.array([centre, centre])) + moves)
    return float(ends[0]), float(ends[1])


def on_scale(value: float, error: float, bounds: Interval, level: float = 0.95, degrees: float = MANY) -> Interval:
    """Return Student's interval on the scale of a figure (see `student`), to which its slope carries the error.

    Near a bound this holds the truth far more often than value ± z · error: see docs/intervals.md.

    >>> [round(end, 4) for end in on_scale(0.98, 0.01, (0.0, 1.0))]
    [0.9474, 0.9925]
    """
    if not bounds[0] < value < bounds[1]:
        return math.nan, math.nan
    scale = _Scale.between(*bounds)
    half = t_quantile(0.5 + level / 2.0, degrees) * error * scale.slope(value)
    ends = scale.back(scale.to(np.array([value, value])) + np.array([-half, half]))
    return float(ends[0]), float(ends[1])


def of_spread(
    replicates: Floats, value: float, bounds: Interval, level: float = 0.95, degrees: float = MANY
) -> Interval:
    """Return the interval of a figure from the deviation of its replicates, on its scale; at a bound, percentiles."""
    known = replicates[np.isfinite(replicates)]
    if len(known) < 2 or not bounds[0] < value < bounds[1]:
        return percentile(replicates, level)
    return on_scale(value, float(np.std(known, ddof=1)), bounds, level, degrees)


def t_quantile(p: float, degrees: float) -> float:
    """Return the quantile of Student's distribution, exact to about 1e-14 for any degrees of freedom above 0.

    It is computed here because importing scipy.special takes longer than most commands measure.

    >>> round(t_quantile(0.975, 5.0), 6), round(t_quantile(0.975, 1e9), 6)
    (2.570582, 1.959964)
    """
    if not (0.0 < p < 1.0 and degrees > 0.0):
        return math.nan
    tail = min(p, 1.0 - p)
    if tail == 0.5:
        return 0.0
    z = -_NORMAL.inv_cdf(tail)
    t = _t_near_normal(z, degrees)
    if degrees < 200.0 * (1.0 + z * z):  # above, the next term of the expansion is below the last digit of a double
        t = _t_solved(tail, degrees, t)
    return math.copysign(t, p - 0.5)


def _t_near_normal(z: float, degrees: float) -> float:
    """Return the first terms of the expansion of Student's quantile in 1 / degrees around a normal one (Fisher 1941)."""
    w = z * z
    terms = (((((27.0 * w + 339.0) * w + 930.0) * w - 1782.0) * w - 765.0) * w + 17955.0) / 368640.0
    terms = ((((79.0 * w + 776.0) * w + 1482.0) * w - 1920.0) * w - 945.0) / 92160.0 + terms / degrees
    terms = (((3.0 * w + 19.0) * w + 17.0) * w - 15.0) / 384.0 + terms / degrees
    terms = ((5.0 * w + 16.0) * w + 3.0) / 96.0 + terms / degrees
    return z + z * ((w + 1.0) / 4.0 + terms / degrees) / degrees


def _t_solved(tail: float, degrees: float, t: float) -> float:
    """Return the t beyond which Student's distribution has a tail below 1/2, by Newton's method from a first guess.

    The tail is half the incomplete beta function of degrees / (degrees + t²). On logarithmic scales of t and of the
    share (that beyond t, or that between 0 and t if it is the smaller) its curve bends one way only, so that the
    method converges from any guess.
    """
    half = 0.5 * degrees
    beta = math.sqrt(math.pi) / _gamma_step(half)
    far = math.log(2.0 * tail * half * beta) / half  # log(degrees / (degrees + t²)), for a t far out
    if far < -600.0:
        return math.sqrt(degrees) * math.exp(-0.5 * far) if far > -1400.0 else math.inf
    if far < (0.0 if degrees < 3.0 else -1.0):
        t = math.sqrt(degrees * math.expm1(-far))
    for _ in range(50):
        r = t * t / degrees
        x = 1.0 / (1.0 + r)
        slope = math.exp(-half * math.log1p(r)) * math.sqrt(r * x) / beta  # t times the density
        if x < (half + 1.0) / (half + 2.5):
            beyond = slope * _beta_fraction(half, 0.5, x) / degrees
            within = 0.5 - beyond
        else:
            within = slope * _beta_fraction(0.5, half, r * x)
            beyond = 0.5 - within
        step = (beyond * math.log(beyond / tail) if tail < 0.25 else within * math.log((0.5 - tail) / within)) / slope
        t *= math.exp(step)
        if abs(step) < 1e-8:
            break
    return t


def _gamma_step(a: float) -> float:
    """Return Γ(a + 1/2) / Γ(a)."""
    if a < 20.0:
        return math.gamma(a + 0.5) / math.gamma(a)
    s = 1.0 / (a * a)
    series = 1.0 / 8.0 - s * (1.0 / 192.0 - s * (1.0 / 640.0 - s * (17.0 / 14336.0 - s * 31.0 / 18432.0)))
    return math.sqrt(a) * math.exp(-series / a)


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function (DLMF 8.17.22, by Lentz's method)."""
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    total = d
    for m in range(1, 2000):
        e = a + 2 * m
        for k in (m * (b - m) * x / ((e - 1.0) * e), -(a + m) * (a + b + m) * x / (e * (e + 1.0))):
            d = 1.0 / (1.0 + k * d)
            c = 1.0 + k / c
            total *= d * c
        if abs(d * c - 1.0) < 2e-16:
            break
    return total


def _moved(values: Floats, centre: float, scale: _Scale) -> Floats:
    """Return values on a scale; by its slope if some lie on a bound, where the scale is infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = scale.to(values)
    return moved if np.isfinite(moved).all() else values * scale.slope(centre)


@dataclass(frozen=True)
class _Scale:
    """A scale on which a bounded figure has no bounds."""

    to: Callable[[Floats], Floats]
    back: Callable[[Floats], Floats]
    slope: Callable[[float], float]

    @classmethod
    def between(cls, low: float, high: float) -> _Scale:
        """Return logit between two bounds, log with one bound, plain without bounds."""
        if math.isfinite(low) and math.isfinite(high):
            # the exponent is cut at 700 here and below, because exp overflows a double from 710 on
            width = high - low
            return cls(
                lambda v: np.log(v - low) - np.log(high - v),
                lambda t: low + width / (1.0 + np.exp(-np.maximum(t, -700.0))),
                lambda v: width / ((v - low) * (high - v)),
            )
        if math.isfinite(low):
            return cls(
                lambda v: np.log(v - low), lambda t: low + np.exp(np.minimum(t, 700.0)), lambda v: 1.0 / (v - low)
            )
        return cls(lambda v: v, lambda t: t, lambda v: 1.0)


def acceleration_of_trials(form: Form, cells: Cells) -> float:
    """Return the acceleration for trials stratified by class, by the jackknife over cells of equal influence.

    a = Σ_c Σ_i l³ / n_c³ / (6 · (Σ_c Σ_i l² / n_c²)^1.5), l the influence of a trial of class c.
    """
    coarse = cells.coarse()
    whole = form.value(coarse)
    influences, weights = [], []
    for counts, n, positive in (
        (cells.positives, coarse.n_positive, True),
        (cells.negatives, coarse.n_negative, False),
    ):
        if n:  # a slice may hold one class only
            held = np.flatnonzero(counts)
            without = np.array([form.value(_without(coarse, int(k), positive)) for k in held])
            with np.errstate(invalid="ignore", over="ignore"):
                influences.append((whole - without) * ((n - 1) / n))
            weights.append(counts[held])
    return _acceleration(np.concatenate(influences), np.concatenate(weights)) if influences else 0.0


def _acceleration(influence: Floats, weight: Floats) -> float:
    """Return Σ w l³ / (6 (Σ w l²)^1.5). Influences are scaled first, because the cube of a large one would overflow.

    An influence that is not finite carries no information about the skewness and is left out.
    """
    finite = np.isfinite(influence)
    influence, weight = influence[finite], weight[finite]
    largest = float(np.max(np.abs(influence), initial=0.0))
    if not largest:
        return 0.0
    scaled = influence / largest
    cubes, squares = (float(np.sum(weight * scaled**power)) for power in (3, 2))
    return cubes / (6.0 * math.pow(squares, 1.5))


def _without(tally: Tally, group: int, positive: bool) -> Tally:
    """Return the tally without one trial of a class in a group."""
    p, q = tally.positives.astype(np.float64), tally.negatives.astype(np.float64)
    # counts are cumulative: one trial fewer lowers every count after its group
    (p if positive else q)[group + 1 :] -= 1.0
    return Tally(tally.score, p, q)


def acceleration_of_units(values: Floats) -> float:
    """Return the acceleration from the figures without one unit (or block) each.

    It is Σ d³ / (6 (Σ d²)^1.5), d = mean − value.
    """
    values = values[np.isfinite(values)]
    if not len(values):
        return 0.0
    with np.errstate(over="ignore"):
        d = values.mean() - values
    return _acceleration(d, np.ones(len(d)))


# ----------------------------------------------------------------------
# Bounds for a sample without a single error, where resampling shows no width and DeLong no variance.
#
# For n trials of a class, the share of the population beyond the most extreme one exceeds u with probability (1 − u)ⁿ,
# whatever the distribution (rule of three: u ≈ 3 / n). If the classes are separated, a threshold between them misses at
# most the positives below the lowest one seen, and accepts at most the negatives above the highest one seen.


def unseen_share(n: int, level: float = 0.95) -> float:
    """Return the largest share beyond the extreme of n trials that is not ruled out, with half of 1 − level per class.

    u = 1 − ((1 − level) / 2)^(1/n)

    >>> round(unseen_share(20), 4), round(unseen_share(1000), 5)
    (0.1684, 0.00368)
    """
    return 1.0 - math.exp(math.log((1.0 - level) / 2.0) / n)


def equal_error_at_most(n_positive: int, n_negative: int, level: float = 0.95) -> float:
    """Return the upper end for an EER of 0: at a threshold between the classes neither error rate is above it.

    >>> round(equal_error_at_most(20, 1000), 4)
    0.1684
    """
    return max(unseen_share(n_positive, level), unseen_share(n_negative, level))


def area_score_interval(area: float, n_positive: int, n_negative: int, level: float = 0.95) -> tuple[float, float]:
    """Return the score interval of an AUC: all θ with |area − θ| ≤ z √V(θ); it has a width also at 0, ½ and 1.

    V(θ) = θ (1 − θ) (1 + k ((1 − θ) / (2 − θ) + θ / (1 + θ))) / (n⁺ n⁻), k = (n⁺ + n⁻) / 2 − 1

    Reference: Newcombe 2006, Statistics in Medicine 25, 559–573 (method 5).

    >>> [round(end, 4) for end in area_score_interval(1.0, 20, 20)]
    [0.8987, 1.0]
    """
    z = NormalDist().inv_cdf(0.5 + level / 2.0)
    k = (n_positive + n_negative) / 2.0 - 1.0

    def is_inside(theta: float) -> bool:
        spread = 1.0 + k * ((1.0 - theta) / (2.0 - theta) + theta / (1.0 + theta))
        return abs(area - theta) <= z * math.sqrt(theta * (1.0 - theta) * spread / (n_positive * n_negative))

    return _edge(area, 0.0, is_inside), _edge(area, 1.0, is_inside)


def _edge(inside: float, outside: float, is_inside: Callable[[float], bool]) -> float:
    """Return where a set ends between a value inside and a value outside, by bisection."""
    # 64 halvings pass the 53 bits of a double, so the edge is exact to the last one
    for _ in range(64):
        middle = (inside + outside) / 2.0
        inside, outside = (middle, outside) if is_inside(middle) else (inside, middle)
    return inside


# ----------------------------------------------------------------------
# Variance of the ROC AUC, and of the difference of two, without resampling (DeLong, DeLong & Clarke-Pearson 1988).


@dataclass(frozen=True, eq=False)
class Steps:
    """The positions of the rarer class among the other, which is all that the AUC and its variance need.

    At each distinct score of the rarer class: `held`, how many of it have that score; `below` and `upto`, how many of
    the other class lie below it, and at or below it.

    >>> s = Steps.of_classes(np.array([0.3, 0.8, 0.9]), np.array([0.1, 0.2, 0.6]))
    >>> s.below.tolist(), round(s.area, 4), round(s.variance, 4)
    ([2, 3, 3], 0.8889, 0.0247)
    """

    held: Array
    below: Array
    upto: Array
    n: float
    n_other: float
    is_positive: bool

    @classmethod
    def of_classes(cls, positive: Array, negative: Array, is_positive: bool | None = None) -> Steps:
        """Make them from the scores of each class, both ascending; `is_positive` names the class that is looped over."""
        is_positive = len(positive) <= len(negative) if is_positive is None else is_positive
        few, many = (positive, negative) if is_positive else (negative, positive)
        return cls(*standing(few, many), len(few), len(many), is_positive)

    @classmethod
    def of_tally(cls, tally: Tally, is_positive: bool | None = None) -> Steps:
        """Make them from a tally; the numbers are exactly those of `of_classes` for its trials."""
        is_positive = bool(tally.n_positive <= tally.n_negative) if is_positive is None else is_positive
        few, many = (tally.positives, tally.negatives) if is_positive else (tally.negatives, tally.positives)
        at = np.flatnonzero(few[1:] != few[:-1])
        # counts may be held in 32 bits, and the products of two would overflow; those of weights are floats and stay so
        below, upto, held = (
            c.astype(np.result_type(c, np.int64)) for c in (many[at], many[at + 1], few[at + 1] - few[at])
        )
        return cls(held, below, upto, few[-1].item(), many[-1].item(), is_positive)

    @cached_property
    def area(self) -> float:
        """The area under the ROC curve; NaN with one class. Counts are integers, so it is exact to the last bit."""
        twice, pairs = self._twice, self.n * self.n_other
        if not pairs:
            return math.nan
        return float((twice if self.is_positive else 2 * pairs - twice) / (2 * pairs))

    @cached_property
    def _twice(self) -> float:
        return whole_sum(self.held, self.below + self.upto)

    @cached_property
    def variance(self) -> float:
        """Var(AUC) = S10 / n⁺ + S01 / n⁻, S the sample variances of each trial's share of correctly ordered pairs.

        The shares of the other class do not change between two steps, so each step counts for all trials before it.
        """
        if self.n < 2 or self.n_other < 2:
            return math.nan
        own, others = self._moments[0]
        return own / (self.n - 1) / self.n + others / (self.n_other - 1) / self.n_other

    @cached_property
    def _moments(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The sums of squares and of fourth powers of the trials' shares of ordered pairs less their mean, per class."""
        squares, fourths = list[float](), list[float]()
        for parts in self.shares((self.n, self.n_other), self._twice / (2 * self.n * self.n_other)):
            powers = [(count, share * share) for count, share in parts]
            squares.append(sum(float(np.sum(count * square)) for count, square in powers))
            fourths.append(sum(float(np.sum(count * (square * square))) for count, square in powers))
        return (squares[0], squares[1]), (fourths[0], fourths[1])

    def shares(
        self, sizes: tuple[float, float], mean: float, before: tuple[int, int] = (0, 0)
    ) -> tuple[list[tuple[Array, Array]], list[tuple[Array, Array]]]:
        """Return how many trials of each class have which share of ordered pairs, less the mean.

        `sizes` are those of the classes, and `before` how many of each have lower scores than all trials here.
        """
        n, n_other = sizes
        own = (0.5 / n_other) * (self.below + self.upto + 2 * before[1]) - mean
        passed = np.append(0, np.cumsum(self.held)) + before[0]  # of the class that is looped over, around each step
        between = np.append(self.below, self.n_other) - np.append(0, self.upto)
        apart = passed / n - (1.0 - mean)
        tied = (passed[:-1] + 0.5 * self.held) / n - (1.0 - mean)
        return [(self.held, own)], [(between, apart), (self.upto - self.below, tied)]

    @cached_property
    def degrees(self) -> float:
        """The degrees of freedom of the variance (see `degrees_of`)."""
        return degrees_of((self.n, self.n_other), *self._moments)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the interval of the AUC by DeLong's variance, on the logit scale.

        (NaN, NaN) with fewer than two trials of a class. On the plain scale 95 % intervals of a high AUC held the truth
        80 to 92 % of the time, on this one 94 to 98 % (docs/intervals.md). If the variance is 0 (no pair is wrongly
        ordered, all are, or all scores are equal), DeLong's interval has no width, although the AUC is not certain.
        Newcombe's score interval is used then.
        """
        deviation = math.sqrt(self.variance)
        if math.isnan(deviation):
            return math.nan, math.nan
        if not deviation:
            return area_score_interval(self.area, int(self.n), int(self.n_other), level)
        return on_scale(self.area, deviation, (0.0, 1.0), level, self.degrees)


@dataclass(eq=False)
class PassingSteps:
    """The sums of `Steps`, added while the scores of very many trials are read in ascending order, part by part.

    `guess` is a value near the mean of the shares. Powers are summed around it: around 0, the variance would be the
    difference of two large and nearly equal sums.
    """

    n_positive: int
    n_negative: int
    guess: float
    before: tuple[int, int] = (0, 0)
    twice: int = 0
    tied: int = 0
    """The trials whose score occurs in both classes."""
    powers: Floats = field(default_factory=lambda: np.zeros((2, 4)))
    """For each class, the sums of the shares and of their second to fourth powers."""

    def add(self, part: Steps) -> None:
        """Add the next part, whose steps are those of the positives."""
        at = part.upto - part.below
        self.twice += int(whole_sum(part.held, part.below + part.upto + 2 * self.before[1]))
        self.tied += int(np.sum((part.held + at)[at > 0]))
        sizes = max(self.n_positive, 1), max(self.n_negative, 1)
        for sums, parts in zip(self.powers, part.shares(sizes, self.guess, self.before), strict=True):
            for counts, share in parts:
                terms = counts * share
                for power in range(4):
                    sums[power] += float(np.sum(terms))
                    terms = terms * share
        self.before = self.before[0] + int(part.n), self.before[1] + int(part.n_other)

    def whole(self) -> Steps:
        """Return the steps of all parts, of which only the sums are known; the AUC is exact to the last bit."""
        sizes, nothing = (self.n_positive, self.n_negative), np.zeros(0, dtype=np.int64)
        found = Steps(nothing, nothing, nothing, *sizes, True)
        squares, fourths = list[float](), list[float]()
        for n, (one, two, three, four) in zip(sizes, self.powers.tolist(), strict=True):
            mean = one / max(n, 1)
            squares.append(two - one * mean)
            fourths.append(four - 4.0 * three * mean + 6.0 * two * mean**2 - 3.0 * one * mean**3)
        found.__dict__.update(_twice=self.twice, _moments=(tuple(squares), tuple(fourths)))
        return found


def degrees_of(sizes: Sequence[float], squares: Sequence[float], fourths: Sequence[float]) -> float:
    """Return the degrees of freedom of a variance: 3 (Σ l²)² / Σ l⁴ over what each trial adds to a mean of each class.

    That is the number of trials if what they add is normal, and about three times the number of errors if a few errors
    are all that the variance rests on. `squares` and `fourths` are sums of powers in each class, of these sizes.
    """
    second = sum(own / n**2 for own, n in zip(squares, sizes, strict=True))
    fourth = sum(own / n**4 for own, n in zip(fourths, sizes, strict=True))
    return max(3.0 * second * second / fourth, 1.0) if fourth > 0.0 else MANY


def standing(few: Array, many: Array) -> tuple[Array, Array, Array]:
    """Return the positions of values among others, both ascending.

    At each distinct value: how many share it, how many others lie below it, and how many at or below it.

    >>> [a.tolist() for a in standing(np.array([2, 3, 3]), np.array([1, 3, 5]))]
    [[1, 2], [1, 1], [1, 2]]
    """
    starts = np.flatnonzero(np.append(True, few[1:] != few[:-1])) if len(few) else np.zeros(0, dtype=np.intp)
    distinct = few if len(starts) == len(few) else few[starts]
    below = np.searchsorted(many, distinct, side="left")
    tied = many[np.minimum(below, len(many) - 1)] == distinct if len(many) else np.zeros(len(below), dtype=np.bool_)
    # the search is the cost here and most scores have no tie, so the second one is for tied values only
    upto = below.copy() if tied.any() else below
    upto[tied] = np.searchsorted(many, distinct[tied], side="right")
    return np.diff(np.append(starts, len(few))), below, upto


def whole_sum(a: Array, b: Array) -> float:
    """Return Σ aᵢ bᵢ of counts, exact for integers of any size.

    The pairs of some billions of trials are more than 64 bits can count.

    >>> whole_sum(np.array([2**40, 1]), np.array([2**40, 3])) - 2**80
    3
    """
    if np.result_type(a, b).kind == "f" or not len(a) or int(a.sum()) * int(b.max()) < 2**63:
        return (a * b).sum().item()  # type: ignore[no-any-return]
    return int(sum(map(mul, a.tolist(), b.tolist())))


def auc_interval(tally: Tally, level: float = 0.95) -> tuple[float, float]:
    """Return the interval of the AUC by DeLong's variance (see `Steps.interval`).

    (NaN, NaN) with fewer than two trials of a class.

    >>> [round(x, 3) for x in auc_interval(Tally.of([1, 1, 1, 0, 0, 0], [0.9, 0.8, 0.3, 0.6, 0.2, 0.1]))]
    [0.2, 0.996]
    """
    return Steps.of_tally(tally).interval(level)


def placements(positive: NDArray[np.bool_], score: Floats) -> Floats:
    """Return, for each trial, the share of the other class that its score is ordered correctly against.

    Equal scores count half. The mean over positives, and over negatives, is the AUC. NaN if the other class is absent.

    >>> placements(np.array([True, True, False, False]), np.array([0.9, 0.4, 0.6, 0.1]))
    array([1. , 0.5, 0.5, 1. ])
    """
    order = np.argsort(score, kind="stable")
    ordered, is_positive = score[order], positive[order]
    last = np.append(ordered[1:] != ordered[:-1], True) if len(ordered) else np.zeros(0, dtype=bool)
    group = np.cumsum(last) - last  # of equal scores, counted from 0
    ends = np.append(0, np.flatnonzero(last) + 1)
    below = np.append(0, np.cumsum(is_positive))[ends]  # positives up to the end of each group, then negatives
    sums = (ends - below, below)
    n0, n1 = (float(total[-1]) for total in sums)
    share = np.empty(len(score))
    with np.errstate(divide="ignore", invalid="ignore"):
        under, over = (0.5 * (s[:-1] + s[1:]) / n for s, n in zip(sums, (n0, n1), strict=True))
    share[order] = np.where(is_positive, under[group], 1.0 - over[group])
    return share


@dataclass(frozen=True)
class AucDifference:
    """The AUCs of two systems on the same trials, and the standard error of the second minus the first."""

    a: float
    b: float
    error: float

    @property
    def delta(self) -> float:
        """The AUC of the second minus that of the first."""
        return self.b - self.a

    @property
    def p_value(self) -> float:
        """The two-sided normal p value; 1 if the systems order all pairs alike, NaN if there is no variance."""
        if self.error > 0.0:
            return math.erfc(abs(self.delta) / self.error / math.sqrt(2.0))
        return 1.0 if self.error == 0.0 and self.delta == 0.0 else math.nan

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return delta ± z · error, cut to −1..1."""
        half = NormalDist().inv_cdf(0.5 + level / 2) * self.error
        if math.isnan(half):
            return math.nan, math.nan
        return max(self.delta - half, -1.0), min(self.delta + half, 1.0)


def difference_of_placements(positive: NDArray[np.bool_], first: Floats, second: Floats) -> AucDifference:
    """Compare two AUCs, given by their placements, by paired DeLong: var(AUC_b − AUC_a) = S10 / n⁺ + S01 / n⁻.

    S are the sample variances of the trials' differences. This equals var_a + var_b − 2 cov, without the loss of
    digits. The error is NaN with fewer than two trials of a class.
    """
    gained = second - first
    if not 1 < int(positive.sum()) < len(positive) - 1:
        error = math.nan
    else:
        error = math.sqrt(sum(float(np.var(gained[m], ddof=1)) / int(m.sum()) for m in (positive, ~positive)))
    mean = np.mean if positive.any() else (lambda _: math.nan)
    return AucDifference(float(mean(first[positive])), float(mean(second[positive])), error)


# ----------------------------------------------------------------------
# How many units an interval needs: fewer units cannot be resampled.
#
# If figures of single units lie symmetrically about the true value, k units all lie on the same side of it with
# probability 2^(1 − k), and so does everything that is drawn from them. So even the whole range of k units is an
# interval at a level of at most 1 − 2^(1 − k) (the sign test): 50 % for two units, 93.75 % for five.

Sizes = tuple[Array, Array]
"""Positives and negatives of each unit."""
LEAST_EFFECTIVE = 3.0
"""With fewer effective units than this there is no interval, because none would be wide enough."""


def enough(level: float) -> int:
    """Return the least number of units whose range can be an interval at this level: k with 1 − 2^(1 − k) ≥ level.

    >>> enough(0.9), enough(0.95), enough(0.99)
    (5, 6, 8)
    """
    return next(k for k in count(2) if 1.0 - 2.0 ** (1 - k) >= level)


def effective(sizes: Array) -> float:
    """Return how many units of equal size carry the same information: (Σ n)² / Σ n² (Kish 1965); 0 without units.

    >>> effective(np.array([10.0, 10.0, 10.0])), effective(np.array([98.0, 1.0, 1.0])) < 1.1
    (3.0, True)
    """
    held = sizes[sizes > 0].astype(np.float64)
    return float(held.sum() ** 2 / (held**2).sum()) if len(held) else 0.0


def error_units(sizes: Array) -> float:
    """Return how many units of equal size would know the error of a figure as well; at most their effective number.

    The degrees of freedom of an error lie between two ends: (Σ n)² / Σ n² − 1 if all variance is inside units, so that a
    unit adds as much to it as it has trials, and (Σ n²)² / Σ n⁴ − 1 if all is between units (Satterthwaite 1946). Which
    it is differs from figure to figure, so their geometric mean is taken.

    >>> error_units(np.array([10.0, 10.0, 10.0])), round(error_units(np.array([70, 10, 10, 10])), 2)
    (3.0, 1.34)
    """
    held = sizes[sizes > 0].astype(np.float64)
    if not len(held):
        return 0.0
    return 1.0 + math.sqrt(max(effective(held) - 1.0, 0.0) * max(effective(held**2) - 1.0, 0.0))


def unit_sizes(unit: NDArray[np.int64], positive: NDArray[np.bool_]) -> Sizes:
    """Return how many positives and how many negatives each unit holds."""
    n = int(unit.max(initial=-1)) + 1
    return np.bincount(unit[positive], minlength=n), np.bincount(unit[~positive], minlength=n)


def effective_units(*crossed: Sizes, count: Callable[[Array], float] = effective) -> float:
    """Return the effective number of units: that of the class in which it is smaller; of crossed units the smaller.

    `count`: how the units of one class are counted (`effective` or `error_units`).

    For crossed units, a class with a single value (bona fide trials, all without an attack) does not show how the
    values differ, so it does not count.

    >>> effective_units((np.array([1, 1, 1]), np.array([2, 2, 2])))
    3.0
    """
    sizes = [own for pair in crossed for own in pair if own.any()]
    several = [own for own in sizes if np.count_nonzero(own) > 1]
    counted = sizes if len(crossed) == 1 else several
    return min(map(count, counted), default=1.0)


# ----------------------------------------------------------------------
# Intervals of rates over independent trials.


def wilson(hits: float, of: float, level: float = 0.95) -> tuple[float, float]:
    """Return the Wilson score interval of hits / of; (NaN, NaN) if `of` is 0.

    (p̂ + z²/2n ± z √(p̂(1−p̂)/n + z²/4n²)) / (1 + z²/n), with the exact normal quantile z.
    Reference: Wilson 1927; equals `statsmodels.stats.proportion.proportion_confint(method="wilson")`.

    >>> [round(x, 4) for x in wilson(8, 10)]
    [0.4902, 0.9433]
    """
    if of <= 0:
        return math.nan, math.nan
    z = NormalDist().inv_cdf(0.5 + level / 2)
    share = hits / of
    middle = share + z * z / (2 * of)
    half = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    unit = 1 + z * z / of
    low, high = (middle - half) / unit, (middle + half) / unit
    return (0.0 if hits == 0 else low), (1.0 if hits == of else high)


# ----------------------------------------------------------------------
# The interval of a quantile from order statistics.


def quantile_interval(ordered: Sequence[float] | Floats, share: float, level: float = 0.95) -> tuple[float, float]:
    """Return the interval between two of the ordered values that covers a quantile, whatever the distribution.

    The number of n values below the quantile is binomial(n, share), so x₍ₗ₎ ≤ quantile ≤ x₍ᵤ₎ holds with probability
    P(l ≤ B < u) ≥ level. (NaN, NaN) if there are too few values: an end would lie beyond them.
    Reference: Hahn & Meeker 1991, section 5.2.

    >>> quantile_interval(range(1, 101), 0.5)
    (40.0, 61.0)
    >>> quantile_interval(range(20), 0.95)
    (nan, nan)
    """
    from scipy.stats import binom

    n, tail = len(ordered), (1.0 - level) / 2
    if not n:
        return math.nan, math.nan
    # ppf gives the least k with P(B ≤ k) ≥ p, and the upper end needs P(B < u) ≥ p: one further
    low, high = int(binom.ppf(tail, n, share)), int(binom.ppf(1.0 - tail, n, share)) + 1
    if low < 1 or high > n:
        return math.nan, math.nan
    return float(ordered[low - 1]), float(ordered[high - 1])
