"""Quantiles of Student's distribution."""

from __future__ import annotations

import math
from statistics import NormalDist

MANY = 1e9
"""Degrees of freedom of an error that is estimated from many trials."""


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
    z = -NormalDist().inv_cdf(tail)
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
