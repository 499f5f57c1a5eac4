"""McNemar's test: do two detectors fail equally often on the same trials? Only pairs on which they differ speak."""

from __future__ import annotations

from math import exp, log
from typing import Final

from scipy.special import bdtr, gammaln

from hitmiss.errors import UsageError

EXACT_UP_TO: Final = 2_000
"""Discordant pairs up to which whole numbers are summed; beyond, the incomplete beta function is as good."""


def exact(only_a: int, only_b: int) -> float:
    """Two-sided exact p: min(1, 2 P(X <= min)), X binomial with chance ½ over the discordant pairs.

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
    """Two-sided mid-p: 2 P(X <= min) − P(X = min); less conservative than the exact test. 1 without discordant pairs.

    Reference: Lancaster 1961; Fagerland, Lydersen & Laake 2013.

    >>> mid_p(0, 0), mid_p(1, 5), mid_p(3, 3)
    (1.0, 0.125, 1.0)
    """
    below, here = _tail(only_a, only_b)
    return min(1.0, 2.0 * below - here)


def _tail(only_a: int, only_b: int) -> tuple[float, float]:
    """P(X <= min) and P(X = min)."""
    if only_a < 0 or only_b < 0:
        raise UsageError(f"counts of discordant pairs cannot be negative; found {only_a} and {only_b}")
    n, least = only_a + only_b, min(only_a, only_b)
    if n > EXACT_UP_TO:
        return float(bdtr(least, n, 0.5)), _mass(least, n)
    term = total = 1
    for k in range(1, least + 1):
        term = term * (n - k + 1) // k
        total += term
    return total / (1 << n), term / (1 << n)  # whole numbers: divided exactly, rounded once


def _mass(k: int, n: int) -> float:
    """P(X = k) by logarithms of factorials: a difference of two tails would lose digits."""
    return exp(float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)) - n * log(2.0))
