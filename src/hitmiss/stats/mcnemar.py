"""McNemar's test: do two detectors fail equally often on the same trials? Only the pairs on which they differ count."""

from __future__ import annotations

import math
from math import exp, log
from typing import Final

from hitmiss.core.errors import UsageError

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
        raise UsageError.of("bad-counts/pairs", only_a=only_a, only_b=only_b)
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
