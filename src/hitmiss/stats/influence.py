"""What units add to an area, and to a number made of areas: its error to first order, over whole units, without draws.

An area is a mean over positives and a mean over negatives, so what a trial adds to it is its share of correctly ordered
pairs less the area, over the size of its class (DeLong et al. 1988). Trials of one unit are not independent, so these are
added within units first (the sandwich; Obuchowski 1997). What units add to a number made of areas is that of its parts
times the slopes, whichever trials the parts share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.sorting import Array, Floats
from hitmiss.stats.delong import degrees_of, placements
from hitmiss.stats.enough_units import effective, effective_squares, effective_units, error_units
from hitmiss.stats.jackknife import LeftOut

Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Units:
    """The unit of each trial, by one column or by two that are crossed; without columns every trial is a unit."""

    columns: tuple[Codes, ...] = ()

    @cached_property
    def kinds(self) -> tuple[tuple[Codes, int], ...]:
        """The units of each column with their number, and after two columns their pairs."""
        codes = list(self.columns)
        if len(codes) == 2:
            pair = codes[0] * (int(codes[1].max(initial=0)) + 1) + codes[1]
            codes.append(np.unique(pair, return_inverse=True)[1].astype(np.int64))
        return tuple((code, int(code.max(initial=-1)) + 1) for code in codes)


@dataclass(frozen=True, eq=False)
class Expansion:
    """What each unit adds to a number, by every kind of unit, and which share of either class it holds.

    The shares of a number made of several are those of its parts, added with their slopes; they say how many units are
    behind it. They are not kept if every trial is a unit.
    """

    added: tuple[Floats, ...]
    shares: tuple[tuple[Floats, Floats], ...] = ()

    def plus(self, other: Expansion, slope: float) -> Expansion:
        """Return that of this number plus a slope times another one."""
        added = tuple(a + slope * b for a, b in zip(self.added, other.added, strict=True))
        both = zip(self.shares, other.shares, strict=True)
        return Expansion(added, tuple((a[0] + slope * b[0], a[1] + slope * b[1]) for a, b in both))

    def times(self, slope: float) -> Expansion:
        """Return that of the number times a slope."""
        shares = tuple((slope * one, slope * other) for one, other in self.shares)
        return Expansion(tuple(slope * own for own in self.added), shares)

    @property
    def variance(self) -> float:
        """The variance of the number; what two crossed units both count is counted once."""
        return float(np.sum(self.added[0] ** 2)) if not self.shares else self._left.variance

    @cached_property
    def degrees(self) -> float:
        """The degrees of freedom of the variance, as for the same number from draws of units, or of trials."""
        if self.shares:
            return self._left.degrees
        squares = self.added[0] ** 2
        return degrees_of((1.0,), (float(squares.sum()),), (float(np.sum(squares * squares)),))

    def count(self, apart: bool = False) -> int:
        """Return how many units are behind the number, `apart` in the smaller class; of crossed ones, the more numerous."""
        if apart:
            return min(int(np.count_nonzero(own)) for own in self._own[0])
        return max(int(np.count_nonzero(one + other)) for one, other in self._own)

    def counted(self, how: Callable[[Array], float] = effective) -> float:
        """Return the effective number of units (see `effective_units`)."""
        return effective_units(*self._own, count=how)

    @property
    def _own(self) -> tuple[tuple[Floats, Floats], ...]:
        return self.shares if len(self.shares) == 1 else self.shares[:2]

    @cached_property
    def _left(self) -> LeftOut:
        """The same as numbers without one unit each, of which the jackknife's variance is the sum of squares here."""
        left = [-own * np.sqrt(len(own) / max(len(own) - 1.0, 1.0)) for own in self.added]
        if len(left) == 1:
            ends = self.counted(effective_squares), self.counted(effective)
            return LeftOut((left[0],), (self.counted(error_units),), between=ends)
        several = [[own for own in pair if np.count_nonzero(own) > 1] for pair in self._own]
        known = tuple(min(map(error_units, own), default=1.0) for own in several)
        return LeftOut((left[0], left[1]), known, cells=left[2])


def expand_area(score: Floats, positive: NDArray[np.bool_], negative: NDArray[np.bool_], units: Units) -> Expansion:
    """Return what units add to the AUC of some positives against some negatives; the other trials add nothing.

    A class of G units shows (G − 1) / G of its variance, which is corrected for each class: for trials that are units of
    their own this is DeLong's variance. A class needs at least two trials.

    >>> up, s = np.array([True, True, True, False, False, False]), np.array([0.3, 0.8, 0.9, 0.1, 0.2, 0.6])
    >>> round(expand_area(s, up, ~up, Units()).variance, 4)
    0.0247
    """
    kept = np.flatnonzero(positive | negative)
    is_positive = positive[kept]
    share = placements(is_positive, score[kept])
    sides = [(kept[side], side) for side in (is_positive, ~is_positive)]
    gains = [(rows, (share[side] - share[side].mean()) / len(rows)) for rows, side in sides]
    if not units.columns:
        alone = np.zeros(len(score))
        for rows, own in gains:
            alone[rows] = own * _correction(len(rows))
        return Expansion((alone,))
    added, shares = [], []
    for code, n in units.kinds:
        held = [np.bincount(code[rows], minlength=n) for rows, _ in gains]
        parts = zip(gains, held, strict=True)
        added.append(sum(_sums(code, n, *own) * _correction(int(np.count_nonzero(size))) for own, size in parts))
        shares.append((held[0] / len(gains[0][0]), held[1] / len(gains[1][0])))
    return Expansion(tuple(np.asarray(own) for own in added), tuple(shares))


def _sums(code: Codes, n: int, rows: NDArray[np.intp], gains: Floats) -> Floats:
    return np.asarray(np.bincount(code[rows], gains, n), dtype=np.float64)


def _correction(units: int) -> float:
    return float(np.sqrt(units / (units - 1.0))) if units > 1 else 0.0


def combined(parts: Sequence[tuple[float, Expansion]]) -> Expansion:
    """Return the expansion of Σ slope · number."""
    (slope, first), *others = parts
    total = first.times(slope)
    for slope, own in others:
        total = total.plus(own, slope)
    return total
