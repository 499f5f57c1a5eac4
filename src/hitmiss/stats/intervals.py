"""The formulas of confidence intervals; which of them an estimate gets is decided in `engine.interval` alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist

import numpy as np

from hitmiss.core.sorting import Floats
from hitmiss.stats.jackknife import LeftOut
from hitmiss.stats.optimism import growth_of_least_cost
from hitmiss.stats.scale import Ends, Scale, on_scale_or_slope
from hitmiss.stats.students_t import MANY, t_quantile

_NORMAL = NormalDist()


def percentile(replicates: Floats, level: float = 0.95) -> Ends:
    """Return the middle `level` of the defined replicates; (NaN, NaN) if none is defined.

    >>> percentile(np.arange(1.0, 100.0), 0.5)
    (25.0, 75.0)
    """
    values = replicates[~np.isnan(replicates)]
    if not len(values):
        return math.nan, math.nan
    tail = (1.0 - level) / 2
    return _quantiles(values, [tail, 1.0 - tail])


def bca(replicates: Floats, estimate: float, acceleration: float, level: float = 0.95) -> Ends:
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


def _quantiles(values: Floats, shares: list[float]) -> Ends:
    """Return two quantiles; values between infinite replicates cannot be interpolated, so the nearest one is taken.

    The k-th of B values has, on average, a share of k / (B + 1) below it, so a quantile lies at share · (B + 1). At
    share · (B − 1) + 1, between the least and the greatest value, 200 replicates would give a 95 % interval 94 %.
    """
    low, high = np.quantile(values, shares, method="weibull" if np.isfinite(values).all() else "nearest")
    return float(low), float(high)


def _corrected(z0: float, z: float, acceleration: float) -> float:
    return _NORMAL.cdf(z0 + (z0 + z) / (1.0 - acceleration * (z0 + z)))


def of_difference(one: tuple[float, float, float], other: tuple[float, float, float], correlation: float = 0.0) -> Ends:
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


def on_both_scales(ends: Ends, one: tuple[float, Floats], other: tuple[float, Floats], bounds: Ends) -> Ends:
    """Return Student's interval of other − one, skewed as the scale of the numbers (see `student`) skews both sides.

    Both are given by their value and their replicates, from the same draws. A difference has no bounds, so `ends` lie
    as far from it on either side; but the error of each number grows with the number, so that such an interval misses
    more often on one side (FPR at a TPR, units of one class each: 10 % on one side and none on the other). So as many errors
    as `ends` has are taken of each number on its own scale, and put together as in `of_difference`.

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
    scale = Scale.between(*bounds)

    def side(value: float, variance: float, errors: float) -> tuple[float, float, float]:
        half = errors * math.sqrt(variance) * scale.slope(value)
        low, high = scale.back(scale.to(np.array([value, value])) + np.array([-half, half])).tolist()
        return value, low, high

    correlation = both / math.sqrt(var_a * var_b)
    errors = ((b - a - ends[0]) / error, (ends[1] - (b - a)) / error)
    found = [of_difference(side(a, var_a, e), side(b, var_b, e), correlation) for e in errors]
    low, high = found[0][0], found[1][1]
    return (low, high) if math.isfinite(low) and math.isfinite(high) else ends


SET_ASIDE = 0.05
"""The chance, over all slices, that one is set aside although it is as bad as the one that was picked as the worst."""


def tail_of_worst(value: Floats, low: Floats, high: Floats, level: float, degrees: float) -> tuple[float, int]:
    """Return the share beyond the better end of the interval of the worst of several numbers, and how many may be it.

    Each number has its interval at `level`, NaN if it has none; a higher one is worse. The worst was picked because it
    looks bad, so it looks worse than it is, and the lower end alone suffers: if K slices are alike, the chance that the
    lower end of the highest is too high is K times that of each. The upper end needs nothing: where that of the picked
    slice is too low, those of the others, which look better still, are too low as well. So the upper end stays, and the
    lower one leaves out α / (K + 1). Slices whose numbers are shown to be better (`SET_ASIDE`; the difference of two as
    in `of_difference`) are not among the K, so that a slice that is clearly the worst keeps its own interval. For
    slices of like errors the chance of a miss is at most α, for very different ones α / 2 + α K / (K + 1).

    >>> ends = np.array([0.1, 0.11, 0.3]), np.array([0.09, 0.1, 0.29]), np.array([0.11, 0.12, 0.31])
    >>> tail_of_worst(*ends, 0.9, MANY)[1]
    1
    >>> tail, several = tail_of_worst(ends[0], ends[0] - 0.2, ends[0] + 0.2, 0.9, MANY)
    >>> round(tail, 4), several
    (0.025, 3)
    """
    wider = t_quantile(1.0 - SET_ASIDE / len(value), degrees) / t_quantile(0.5 + level / 2.0, degrees)
    worst = int(np.argmax(value))
    # a slice without an interval may be anywhere, and a comparison with NaN is false: it always counts
    better = value[worst] - value > wider * np.hypot(value[worst] - low[worst], high - value)
    several = len(value) - int(better.sum())
    return (1.0 - level) / (several + 1.0), several


def of_least_cost(least: Floats, at_best: Floats, estimate: float, acceleration: float, level: float = 0.95) -> Ends:
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


FEW_UNITS = 10.0
"""With more units than this the corrections for few units fade, for estimates with bounds."""
MOST_LEAN, MOST_LEAN_CROSSED, MOST_LEAN_LOG = 0.35, 0.5, 0.75
"""How many errors an end is moved out at most for skewness: between two bounds (of crossed units), above one bound.

The scale removes most of it. On the logarithmic scale every error multiplies the end: without a limit, intervals of six
units were 2.7 to 20 times as wide as the ideal, and held the truth no more often.
"""


def student(
    replicates: Floats,
    centre: float,
    degrees: float,
    bounds: Ends = (-math.inf, math.inf),
    level: float = 0.95,
    without: LeftOut | None = None,
    smooth: bool = True,
) -> Ends:
    """Return Student's interval on a scale that respects the bounds of an estimate, for few or unequal units.

    centre ± t(degrees) · error, on the logit scale between two bounds, the log scale with one bound, the plain scale
    without. The error is the deviation of the replicates times √((degrees + 1) / degrees), because resampling G units
    shows only (G − 1) / G of the variance. `without` holds the estimate without one unit each. From it come the degrees,
    and, if the estimate is `smooth` (not read at a quantile), the skewness of what units add, by which the end on the
    side of the longer tail is moved out: a (2 t² + 1) errors, a the acceleration (the first term of the Edgeworth series
    of a studentised mean; Hall 1992, section 3). An end is moved out by the bias that the replicates show as well,
    unless the estimate has no bounds: it is then a difference, in which the bias of both sides cancels. No end is moved
    in. With a bound the scale removes most of the skewness, so that the first move is at most `MOST_LEAN`, and both
    fade beyond `FEW_UNITS`. Replicates of few units reach far out on the scale near a bound, so the error of
    `FEW_UNITS` or fewer is that of the plain replicates times the slope of the scale, which passes over to the
    deviation on the scale as the moves fade; without two bounds, the jackknife error is used if it is larger then, unless
    units are so many that they are left out in blocks, of which there are too few for it. Of crossed units, whose products
    vary too much, the error is that of `without`. Measured for 6 to 400 units, equal, unequal and of one class: see
    docs/intervals.md.

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
    scale = Scale.between(*bounds)
    left = None if without is None else without.each(lambda v: on_scale_or_slope(v[np.isfinite(v)], centre, scale))
    moved = on_scale_or_slope(np.append(known, centre), centre, scale)
    bias = float(moved[:-1].mean() - moved[-1]) if math.isfinite(bounds[0]) else 0.0
    lean, is_bounded = 0.0, any(map(math.isfinite, bounds))
    is_crossed = left is not None and left.cells is not None
    if left is not None and any(len(own) > 1 for own in left.groups):
        degrees = left.degrees
    if not degrees > 0.0:  # all that varies comes from one unit
        return math.nan, math.nan
    fading = min(1.0, FEW_UNITS / (degrees + 1.0)) if is_bounded else 1.0
    error, plain = float(np.std(moved[:-1], ddof=1)), float(np.std(known, ddof=1)) * scale.slope(centre)
    t = t_quantile(0.5 + level / 2.0, degrees)
    shown = math.sqrt((degrees + 1.0) / degrees)
    error *= shown
    if left is not None and (smooth or is_crossed):
        lean = left.acceleration * (2.0 * t * t + 1.0)
        if is_crossed:
            error, bias = math.sqrt(left.variance), 0.0
        elif not (left.is_pooled or all(map(math.isfinite, bounds))):
            error = max(error, math.sqrt(left.variance))
    if is_bounded and not is_crossed and error > 0.0:
        error *= (shown * plain / error) ** (fading * fading)
    if is_bounded:
        between = MOST_LEAN_CROSSED if is_crossed else MOST_LEAN
        most = (between if all(map(math.isfinite, bounds)) else MOST_LEAN_LOG) * fading
        lean, bias = min(max(lean, -most), most), bias * fading
    # only outwards: the skewness of few units is itself so uncertain that moving an end in would cost coverage
    moves = np.array([-t - max(-lean, 0.0), t + max(lean, 0.0)]) * error - [max(bias, 0.0), min(bias, 0.0)]
    ends = scale.back(scale.to(np.array([centre, centre])) + moves)
    return float(ends[0]), float(ends[1])


def on_scale(value: float, error: float, bounds: Ends, level: float = 0.95, degrees: float = MANY) -> Ends:
    """Return Student's interval on the scale of a number (see `student`), to which its slope carries the error.

    Near a bound this holds the truth far more often than value ± z · error: see docs/intervals.md.

    >>> [round(end, 4) for end in on_scale(0.98, 0.01, (0.0, 1.0))]
    [0.9474, 0.9925]
    """
    if not bounds[0] < value < bounds[1]:
        return math.nan, math.nan
    scale = Scale.between(*bounds)
    half = t_quantile(0.5 + level / 2.0, degrees) * error * scale.slope(value)
    ends = scale.back(scale.to(np.array([value, value])) + np.array([-half, half]))
    return float(ends[0]), float(ends[1])


def of_spread(replicates: Floats, value: float, bounds: Ends, level: float = 0.95, degrees: float = MANY) -> Ends:
    """Return the interval of a number from the deviation of its replicates, on its scale; at a bound, percentiles."""
    known = replicates[np.isfinite(replicates)]
    if len(known) < 2 or not bounds[0] < value < bounds[1]:
        return percentile(replicates, level)
    return on_scale(value, float(np.std(known, ddof=1)), bounds, level, degrees)


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


def normal(value: float, error: float, bounds: Ends, level: float = 0.95) -> Ends:
    """Return value ± z · error, cut to the bounds; (NaN, NaN) if the error is unknown.

    >>> [round(end, 4) for end in normal(0.1, 0.05, (-1.0, 1.0))]
    [0.002, 0.198]
    """
    half = _NORMAL.inv_cdf(0.5 + level / 2.0) * error
    return (math.nan, math.nan) if math.isnan(half) else (max(value - half, bounds[0]), min(value + half, bounds[1]))


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


STEPS_OF_RATE = 400
"""Quantiles by which what is known about a rate is described."""


def of_two_rates(
    seen: tuple[float, float], of: tuple[float, float], value: Callable[[Floats, Floats], Floats], level: float = 0.95
) -> Ends:
    """Return the interval of a function of two rates of which few errors were seen (Jeffreys).

    `seen` errors `of` so many trials leave each rate as uncertain as Beta(seen + ½, of − seen + ½) says; the ends hold the
    middle `level` of the function over both. Nothing is drawn: either distribution is given by equally likely steps.

    >>> low, high = of_two_rates((0, 0), (100, 100), lambda miss, alarm: miss + alarm)
    >>> round(low, 4), round(high, 4)
    (0.0003, 0.0366)
    """
    from scipy.special import betaincinv

    shares = (np.arange(STEPS_OF_RATE) + 0.5) / STEPS_OF_RATE
    miss, alarm = (betaincinv(k + 0.5, n - k + 0.5, shares) for k, n in zip(seen, of, strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = value(np.repeat(miss, STEPS_OF_RATE), np.tile(alarm, STEPS_OF_RATE))
    return percentile(found, level)
