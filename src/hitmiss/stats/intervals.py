"""From replicates to an interval."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, stdtrit

from hitmiss.tally import Floats, Tally

if TYPE_CHECKING:
    from hitmiss.stats.cells import Cells
    from hitmiss.stats.forms import Form

Interval = tuple[float, float]
_NORMAL = NormalDist()


def percentile(replicates: Floats, level: float = 0.95) -> Interval:
    """The middle `level` of the defined replicates; (NaN, NaN) where none is defined.

    >>> percentile(np.arange(101.0), 0.5)
    (25.0, 75.0)
    """
    values = replicates[~np.isnan(replicates)]
    if not len(values):
        return math.nan, math.nan
    tail = (1.0 - level) / 2
    return _quantiles(values, [tail, 1.0 - tail])


def bca(replicates: Floats, estimate: float, acceleration: float, level: float = 0.95) -> Interval:
    """Bias-corrected and accelerated interval (Efron 1987).

    z0 = Φ⁻¹(share of replicates below the estimate, ties counting half);
    quantiles at Φ(z0 + (z0 + z) / (1 − a (z0 + z))).
    """
    values = replicates[~np.isnan(replicates)]
    if not len(values):
        return math.nan, math.nan
    below = float(np.mean(values < estimate) + 0.5 * np.mean(values == estimate))
    if not 0.0 < below < 1.0:  # every replicate on one side: no correction can be read off
        return percentile(values, level)
    z0 = _NORMAL.inv_cdf(below)
    tails = [_corrected(z0, _NORMAL.inv_cdf(t), acceleration) for t in ((1 - level) / 2, (1 + level) / 2)]
    return _quantiles(values, tails)


def _quantiles(values: Floats, shares: list[float]) -> Interval:
    """Two quantiles; between infinite replicates nothing can be interpolated, so the nearest one is taken."""
    low, high = np.quantile(values, shares, method="linear" if np.isfinite(values).all() else "nearest")
    return float(low), float(high)


def _corrected(z0: float, z: float, acceleration: float) -> float:
    return _NORMAL.cdf(z0 + (z0 + z) / (1.0 - acceleration * (z0 + z)))


OPTIMISM = 1.0 / (2.0 ** (2.0 / 3.0) - 1.0)
"""How many times the optimism of a minimum exceeds what the bootstrap sees of it (1.70).

Near its minimum the cost curve is a parabola plus the noise of counting, W(t) in the sample and W(t) + W'(t) in a
replicate. The expected depth of such a minimum grows as the 4/3 power of the noise's deviation, so a replicate's is
2^(2/3) times the sample's, and the bootstrap sees 2^(2/3) − 1 of it (cube-root asymptotics, Kim & Pollard 1990).
"""


def of_least_cost(
    least: Floats, at_best: Floats, estimate: float, acceleration: float, level: float = 0.95
) -> Interval:
    """The interval of a minimum over thresholds, which is optimistic in the sample and more so in every replicate.

    The spread is that of the cost at the sample's best threshold (BCa of `at_best`; the choice itself adds nothing to
    first order), moved up by the optimism, `OPTIMISM` · (estimate − mean of `least`), as a share of the estimate.
    """
    low, high = bca(at_best, estimate, acceleration, level)
    if math.isnan(low):
        return low, high
    growth = growth_of_least_cost(least, estimate)
    return min(low * growth, estimate), max(high * growth, estimate)


def growth_of_least_cost(least: Floats, estimate: float) -> float:
    """By how much a least cost is too low, as a factor; 1 where it is 0."""
    if not estimate > 0.0:
        return 1.0
    return 1.0 + OPTIMISM * max(estimate - float(np.nanmean(least)), 0.0) / estimate


def student(
    replicates: Floats,
    centre: float,
    degrees: float,
    bounds: Interval = (-math.inf, math.inf),
    level: float = 0.95,
    without: Floats | None = None,
) -> Interval:
    """Student's interval on a scale that knows the bounds of the figure, for few units or uneven ones.

    centre ± t(degrees) · error, on the logit scale between two bounds, the log scale above one, the plain scale without.
    The error is the deviation of the replicates, times √((degrees + 1) / degrees): drawing G units sees (G − 1) / G of the
    variance. `without` holds the figure without one unit (or block of units) each: a larger jackknife error counts
    instead. Measured for 6 to 150 units, even, uneven and of one class: see docs/intervals.md.

    >>> low, high = student(np.random.default_rng(0).normal(0.1, 0.01, 2000), 0.1, 5.0, (0.0, 1.0))
    >>> round(low, 3), round(high, 3)
    (0.075, 0.133)
    """
    known = replicates[np.isfinite(replicates)]
    if len(known) < 2 or not degrees > 0.0 or math.isnan(centre):
        return math.nan, math.nan
    if not bounds[0] < centre < bounds[1]:
        return percentile(known, level)
    scale = _Scale.between(*bounds)
    error = _spread(known, centre, scale) * math.sqrt((degrees + 1.0) / degrees)
    left = without[np.isfinite(without)] if without is not None else known[:0]
    if len(left) > 1:
        error = max(error, _spread(left, centre, scale) * (len(left) - 1.0) / math.sqrt(len(left)))
    half = float(stdtrit(degrees, 0.5 + level / 2.0)) * error
    ends = scale.back(scale.to(np.array([centre, centre])) + np.array([-half, half]))
    return float(ends[0]), float(ends[1])


def _spread(values: Floats, centre: float, scale: _Scale) -> float:
    """The deviation on a scale; by its slope where some values lie on a bound and have no place on it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = scale.to(values)
    if np.isfinite(moved).all():
        return float(np.std(moved, ddof=1))
    return float(np.std(values, ddof=1)) * scale.slope(centre)


@dataclass(frozen=True)
class _Scale:
    """A scale on which a bounded figure has none."""

    to: Callable[[Floats], Floats]
    back: Callable[[Floats], Floats]
    slope: Callable[[float], float]

    @classmethod
    def between(cls, low: float, high: float) -> _Scale:
        """Logit between two bounds, log above (or below) one, plain without."""
        if math.isfinite(low) and math.isfinite(high):
            width = high - low
            return cls(
                lambda v: np.log(v - low) - np.log(high - v),
                lambda t: low + width * expit(t),
                lambda v: width / ((v - low) * (high - v)),
            )
        if math.isfinite(low):
            return cls(
                lambda v: np.log(v - low), lambda t: low + np.exp(np.minimum(t, 700.0)), lambda v: 1.0 / (v - low)
            )
        return cls(lambda v: v, lambda t: t, lambda v: 1.0)


def acceleration_of_trials(form: Form, cells: Cells) -> float:
    """Acceleration for trials stratified by class, by the jackknife over cells of equal influence.

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
    """Σ w l³ / (6 (Σ w l²)^1.5). Influences are scaled first: the cube of a large one would overflow.

    An influence that is not finite says nothing about the skewness and is left out.
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
    """The tally less one trial of a class in a group."""
    p, q = tally.positives.astype(np.float64), tally.negatives.astype(np.float64)
    (p if positive else q)[group + 1 :] -= 1.0
    return Tally(tally.score, p, q)


def acceleration_of_units(values: Floats) -> float:
    """Acceleration from the figures without one unit (or one block of units) each: Σ d³ / (6 (Σ d²)^1.5), d = mean − value."""
    values = values[np.isfinite(values)]
    if not len(values):
        return 0.0
    with np.errstate(over="ignore"):
        d = values.mean() - values
    return _acceleration(d, np.ones(len(d)))
