"""Exact bootstrap of crossings and minima without touching most trials.

A class-stratified bootstrap replicate draws n trials of a class with replacement: a multinomial. Counts in stretches
of scores are multinomial too, and splitting a stretch is a binomial with the left part's share. So the counts of all
replicates are drawn for coarse cells at once, and a cell is split further only where the crossing of the two error
rates lies, or where a lower cost than the best one found is still possible. The distribution is exactly that of
resampling trials; what is never looked at is never drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hitmiss.stats.cells import Cells
from hitmiss.stats.forms import Crossing, MinimumCost
from hitmiss.tally import Floats

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Stretches:
    """Stretches of scores under examination, one row a (replicate, stretch).

    Groups low .. high − 1 of the tally; `cp`, `cn` count the replicate's trials below, `p`, `q` those inside.
    """

    replicate: Ints
    low: Ints
    high: Ints
    cp: Floats
    cn: Floats
    p: Floats
    q: Floats

    def keep(self, mask: NDArray[np.bool_]) -> Stretches:
        """The stretches where `mask` holds."""
        return Stretches(*(getattr(self, name)[mask] for name in self.__dataclass_fields__))

    def __len__(self) -> int:
        return len(self.replicate)


@dataclass(eq=False)
class Search:
    """The crossings and minima of all replicates, as far as they are known."""

    crossings: Sequence[Crossing]
    costs: Sequence[MinimumCost]
    n1: Floats
    n0: Floats
    rates: list[Floats]
    least: list[Floats]

    @classmethod
    def start(cls, crossings: Sequence[Crossing], costs: Sequence[MinimumCost], n1: Floats, n0: Floats) -> Search:
        """Nothing known yet but the ends of the curve: what a crossing before the first or after the last group reads."""
        zero = np.zeros(len(n1))
        rates: list[Floats] = [
            np.asarray(
                np.where(
                    f.passed(zero, zero, n1, n0),
                    f.read(zero, zero, zero, zero, n1, n0),
                    f.read(n1, n0, zero, zero, n1, n0),
                ),
                dtype=np.float64,
            )
            for f in crossings
        ]
        return cls(crossings, costs, n1, n0, rates, [np.full(len(n1), np.inf) for _ in costs])

    def note_point(self, replicate: Ints, cp: Floats, cn: Floats) -> None:
        """A point of the error curve of some replicates: perhaps a lower cost."""
        for form, least in zip(self.costs, self.least, strict=True):
            np.minimum.at(least, replicate, self._cost(form, replicate, cp, cn))

    def _cost(self, form: MinimumCost, replicate: Ints, cp: Floats, cn: Floats) -> Floats:
        n1, n0 = self.n1[replicate], self.n0[replicate]
        return (form.miss * (cp / n1) + form.false_alarm * ((n0 - cn) / n0)) / form.unit

    def crossed(self, s: Stretches) -> list[NDArray[np.bool_]]:
        """For each crossing, whether it falls inside a stretch."""
        n1, n0 = self.n1[s.replicate], self.n0[s.replicate]
        return [~f.passed(s.cp, s.cn, n1, n0) & f.passed(s.cp + s.p, s.cn + s.q, n1, n0) for f in self.crossings]

    def improvable(self, s: Stretches) -> NDArray[np.bool_]:
        """Whether some cost inside a stretch could still undercut the best known: few misses as at its low end and few
        false alarms as at its high end."""
        open_ = np.zeros(len(s), dtype=bool)
        for form, least in zip(self.costs, self.least, strict=True):
            open_ |= self._cost(form, s.replicate, s.cp, s.cn + s.q) < least[s.replicate]
        return open_

    def note_crossings(self, which: int, s: Stretches) -> None:
        """Single groups with that crossing inside: read the figure."""
        n1, n0 = self.n1[s.replicate], self.n0[s.replicate]
        self.rates[which][s.replicate] = self.crossings[which].read(s.cp, s.cn, s.p, s.q, n1, n0)


def search_stratified(
    cells: Cells, p: Floats, q: Floats, crossings: Sequence[Crossing], costs: Sequence[MinimumCost], rng: Generator
) -> Search:
    """Crossings and minima of replicates given their counts per cell (replicate × cell), splitting cells as needed."""
    search, stretches = begin_search(cells, p, q, crossings, costs)
    while len(stretches):
        stretches = _split(stretches, cells, search, rng)
        stretches = _unsettled(stretches, search)
    return search


def begin_search(
    cells: Cells, p: Floats, q: Floats, crossings: Sequence[Crossing], costs: Sequence[MinimumCost]
) -> tuple[Search, Stretches]:
    """What the cuts alone tell, and the cells that are still open."""
    cp, cn = _before(p), _before(q)
    search = Search.start(crossings, costs, cp[:, -1], cn[:, -1])
    n1, n0 = cp[:, -1:], cn[:, -1:]
    is_open = np.zeros(p.shape, dtype=bool)
    for form, least in zip(costs, search.least, strict=True):
        missed, accepted = form.miss * (cp / n1), form.false_alarm * ((n0 - cn) / n0)
        np.minimum(least, ((missed + accepted) / form.unit).min(axis=1), out=least)
        is_open |= (missed[:, :-1] + accepted[:, 1:]) / form.unit < least[:, None]
    for crossing in crossings:
        passed = crossing.passed(cp, cn, n1, n0)
        is_open |= ~passed[:, :-1] & passed[:, 1:]
    row, cell = np.nonzero(is_open)
    inside = (cp[row, cell], cn[row, cell], p[row, cell], q[row, cell])
    return search, _unsettled(Stretches(row, cells.cuts[cell], cells.cuts[cell + 1], *inside), search)


def _unsettled(s: Stretches, search: Search) -> Stretches:
    """The stretches that can still matter; crossings in single groups are read and done."""
    single = s.high - s.low == 1
    matters = search.improvable(s)
    for which, crossed in enumerate(search.crossed(s)):
        search.note_crossings(which, s.keep(crossed & single))
        matters |= crossed
    return s.keep(matters & ~single)


def _split(s: Stretches, cells: Cells, search: Search, rng: Generator) -> Stretches:
    """Each stretch in two halves, the counts drawn given the whole."""
    cp, cn = cells.tally.positives, cells.tally.negatives
    middle = (s.low + s.high) // 2
    a = _draw_left(rng, s.p, cp[s.low], cp[middle], cp[s.high])
    b = _draw_left(rng, s.q, cn[s.low], cn[middle], cn[s.high])
    search.note_point(s.replicate, s.cp + a, s.cn + b)
    left = Stretches(s.replicate, s.low, middle, s.cp, s.cn, a, b)
    right = Stretches(s.replicate, middle, s.high, s.cp + a, s.cn + b, s.p - a, s.q - b)
    return Stretches(*(np.concatenate([getattr(left, n), getattr(right, n)]) for n in s.__dataclass_fields__))


def _draw_left(rng: Generator, count: Floats, low: Ints, middle: Ints, high: Ints) -> Floats:
    """How many of `count` trials fall left of the middle: a binomial with the left part's share of the sample."""
    inside = np.maximum(high - low, 1)
    return rng.binomial(count.astype(np.int64), (middle - low) / inside).astype(np.float64)


def _before(counts: Floats) -> Floats:
    """Cumulative counts along the cells, starting at 0."""
    out = np.zeros((counts.shape[0], counts.shape[1] + 1))
    np.cumsum(counts, axis=1, out=out[:, 1:])
    return out
