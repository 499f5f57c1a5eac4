"""A share before and after, on the same items: the paired difference with its interval and its test."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hitmiss.stats.intervals import of_difference, wilson
from hitmiss.stats.mcnemar import exact

__all__ = ["ChangedRate", "changed_rate"]

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class ChangedRate:
    """A rate before and after, on the same texts, with the interval of the difference and an exact paired test."""

    name: str
    n: int
    old: float
    new: float
    low: float
    high: float
    only_old: int
    only_new: int
    p: float

    @property
    def difference(self) -> float:
        """New less old."""
        return self.new - self.old


def changed_rate(name: str, before: Mask, after: Mask, level: float = 0.95) -> ChangedRate:
    """Return how a share changes between two decisions of the same items.

    The interval is Newcombe's for paired shares (1998, method 10), the test McNemar's exact one.

    >>> before, after = np.array([1, 1, 1, 0, 0, 0], dtype=bool), np.array([1, 1, 0, 0, 0, 0], dtype=bool)
    >>> found = changed_rate("flagged", before, after)
    >>> round(found.difference, 4), found.only_old, found.only_new, found.p
    (-0.1667, 1, 0, 1.0)
    """
    n = len(before)
    if not n:
        return ChangedRate(name, 0, math.nan, math.nan, math.nan, math.nan, 0, 0, 1.0)
    only_old, only_new = int((before & ~after).sum()), int((after & ~before).sum())
    both, neither = int((before & after).sum()), int((~before & ~after).sum())
    product = (both + only_old) * (both + only_new) * (neither + only_old) * (neither + only_new)
    correlation = (both * neither - only_old * only_new) / math.sqrt(product) if product else 0.0
    ends = [(side.mean().item(), *wilson(int(side.sum()), n, level)) for side in (before, after)]
    low, high = of_difference(ends[0], ends[1], correlation)
    p = exact(only_old, only_new)
    return ChangedRate(name, n, ends[0][0], ends[1][0], max(low, -1.0), min(high, 1.0), only_old, only_new, p)
