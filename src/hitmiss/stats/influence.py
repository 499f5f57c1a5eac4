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
from hitmiss.stats.delong import degrees_of
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

    def of_rows(self, rows: NDArray[np.intp]) -> Units:
        """Return the units of some trials, with the numbers that they have among all."""
        own = Units(tuple(code[rows] for code in self.columns))
        own.__dict__["kinds"] = tuple((code[rows], n) for code, n in self.kinds)
        return own


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

    def less(self, other: Expansion) -> Expansion:
        """Return that of this number less another one of the same units, which are behind both."""
        return Expansion(tuple(a - b for a, b in zip(self.added, other.added, strict=True)), self.shares)

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
        if how not in self._counted:
            self._counted[how] = effective_units(*self._own, count=how)
        return self._counted[how]

    @cached_property
    def _counted(self) -> dict[Callable[[Array], float], float]:
        return {}

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


@dataclass(frozen=True, eq=False)
class Side:
    """Some trials of one class, by their places in the order of scores; what areas need to know is counted once."""

    places: NDArray[np.intp]
    below: NDArray[np.int32]
    """How many of them lie before each place, and in the end all of them."""
    held: tuple[NDArray[np.int64], ...]
    """How many of them each unit has, by every kind of unit."""

    def less(self, inner: Side, places: NDArray[np.intp]) -> Side:
        """Return the others, at some places, without counting them anew."""
        return Side(places, self.below - inner.below, tuple(a - b for a, b in zip(self.held, inner.held, strict=True)))


@dataclass(frozen=True, eq=False)
class Ranked:
    """Trials in the order of their scores: sorted once for all areas among some of them."""

    order: NDArray[np.intp]
    score: Floats
    positive: NDArray[np.bool_]
    """The scores and classes in that order."""
    units: Units
    codes: tuple[tuple[Codes, int], ...]
    """The units in that order."""
    tied: tuple[NDArray[np.intp], NDArray[np.intp]] | None
    """For each place the first of the same score, and the first of a higher one; None without ties."""

    @classmethod
    def of(cls, score: Floats, positive: NDArray[np.bool_], units: Units) -> Ranked:
        """Sort trials by their scores."""
        order = np.argsort(score)
        ordered = score[order]
        codes = tuple((code[order], n) for code, n in units.kinds)
        last = np.append(ordered[1:] != ordered[:-1], True) if len(order) else np.zeros(0, dtype=bool)
        tied = None
        if not last.all():
            group = np.cumsum(last) - last  # of equal scores, counted from 0
            ends = np.append(0, np.flatnonzero(last) + 1)
            tied = ends[group], ends[group + 1]
        return cls(order, ordered, positive[order], units, codes, tied)

    @cached_property
    def classes(self) -> tuple[Side, Side]:
        """All positives, and all negatives."""
        return self.side(self.positive), self.side(~self.positive)

    def side(self, inside: NDArray[np.bool_]) -> Side:
        """Return the trials of one class that a mask, in the order of scores, marks."""
        places = np.flatnonzero(inside)
        below = np.zeros(len(inside) + 1, dtype=np.int32)
        np.cumsum(inside, out=below[1:])
        return Side(places, below, tuple(np.bincount(code[places], minlength=n) for code, n in self.codes))

    def area(self, up: Side, down: Side) -> tuple[float, Expansion]:
        """Return the AUC of some positives against some negatives, and what units add to it; both must have trials."""
        n1, n0 = len(up.places), len(down.places)
        over, under = self._twice_below(up, down), self._twice_below(down, up)
        area = int(over.sum()) / (2 * n1 * n0)
        gains = (
            (up, (over / (2.0 * n0) - area) / n1),
            (down, (1.0 - under / (2.0 * n1) - area) / n0),
        )
        if not self.codes:
            alone = np.zeros(len(self.order))
            for own, gain in gains:
                alone[self.order[own.places]] = gain * _correction(len(own.places))
            return area, Expansion((alone,))
        added, shares = [], []
        for at, (code, n) in enumerate(self.codes):
            parts = [
                np.bincount(code[own.places], gain, n) * _correction(int(np.count_nonzero(own.held[at])))
                for own, gain in gains
            ]
            added.append(parts[0] + parts[1])
            shares.append((up.held[at] / n1, down.held[at] / n0))
        return area, Expansion(tuple(added), tuple(shares))

    def _twice_below(self, own: Side, other: Side) -> NDArray[np.int64]:
        """Return for each trial of a side twice the number of the other that lie below it; equal scores count once."""
        if self.tied is None:
            return 2 * other.below[own.places].astype(np.int64)
        ends = (other.below[at[own.places]].astype(np.int64) for at in self.tied)
        return np.asarray(sum(ends))


def expand_area(score: Floats, positive: NDArray[np.bool_], negative: NDArray[np.bool_], units: Units) -> Expansion:
    """Return what units add to the AUC of some positives against some negatives; the other trials add nothing.

    A class of G units shows (G − 1) / G of its variance, which is corrected for each class: for trials that are units of
    their own this is DeLong's variance. A class needs at least two trials.

    >>> up, s = np.array([True, True, True, False, False, False]), np.array([0.3, 0.8, 0.9, 0.1, 0.2, 0.6])
    >>> round(expand_area(s, up, ~up, Units()).variance, 4)
    0.0247
    """
    ranked = Ranked.of(score, positive, units)
    return ranked.area(ranked.side(ranked.positive), ranked.side(negative[ranked.order]))[1]


def _correction(units: int) -> float:
    return float(np.sqrt(units / (units - 1.0))) if units > 1 else 0.0


def combined(parts: Sequence[tuple[float, Expansion]]) -> Expansion:
    """Return the expansion of Σ slope · number."""
    (slope, first), *others = parts
    total = first.times(slope)
    for slope, own in others:
        total = total.plus(own, slope)
    return total
