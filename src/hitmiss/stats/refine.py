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
from numpy.typing import NDArray

from hitmiss.stats.cells import Cells
from hitmiss.stats.forms import Form, Located
from hitmiss.stats.seeds import Random
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
    """Where all replicates decide some forms, as far as it is known."""

    forms: Sequence[Located]
    n1: Floats
    n0: Floats
    found: list[Floats]

    def sizes(self, s: Stretches) -> tuple[Floats, Floats]:
        """Positives and negatives of the replicates of stretches."""
        return self.n1[s.replicate], self.n0[s.replicate]

    def note_point(self, s: Stretches, cp: Floats, cn: Floats) -> None:
        """A point of the error curve inside each stretch."""
        sizes = self.sizes(s)
        for form, found in zip(self.forms, self.found, strict=True):
            form.note_point(found, s.replicate, cp, cn, *sizes)

    def matters(self, s: Stretches) -> NDArray[np.bool_]:
        """The stretches in which some form can still be decided."""
        sizes, matters = self.sizes(s), np.zeros(len(s), dtype=bool)
        for form, found in zip(self.forms, self.found, strict=True):
            matters |= form.can_be_in(found, s, *sizes)
        return matters

    def unsettled(self, s: Stretches) -> Stretches:
        """The stretches that can still matter; single groups are read and done."""
        single = s.high - s.low == 1
        sizes, matters = self.sizes(s), np.zeros(len(s), dtype=bool)
        for form, found in zip(self.forms, self.found, strict=True):
            inside = form.can_be_in(found, s, *sizes)
            groups = s.keep(inside & single)
            form.note_groups(found, groups, *self.sizes(groups))
            matters |= inside
        return s.keep(matters & ~single)

    def note_inside(self, s: Stretches, cp: Floats, cn: Floats) -> None:
        """Every point (stretch × point) inside stretches."""
        sizes = self.sizes(s)
        for form, found in zip(self.forms, self.found, strict=True):
            form.note_inside(found, s, cp, cn, *sizes)

    def replicates(self, form: Located) -> Floats:
        """What was found for one form."""
        return self.found[next(i for i, f in enumerate(self.forms) if f is form)]


def search_stratified(cells: Cells, p: Floats, q: Floats, forms: Sequence[Form], rng: Random) -> Search:
    """The places that decide forms in replicates given by their counts per cell (replicate × cell), splitting cells as needed."""
    search, stretches = begin_search(cells, p, q, forms)
    while len(stretches):
        stretches = _split(stretches, cells, search, rng)
        stretches = search.unsettled(stretches)
    return search


def begin_search(cells: Cells, p: Floats, q: Floats, forms: Sequence[Form]) -> tuple[Search, Stretches]:
    """What the cuts alone tell, and the cells that are still open."""
    cp, cn = _before(p), _before(q)
    located = [f for f in forms if isinstance(f, Located)]
    search = Search(located, cp[:, -1], cn[:, -1], [])
    is_open = np.zeros(p.shape, dtype=bool)
    for form in located:
        found, can_be_in = form.begin(cp, cn)
        search.found.append(found)
        is_open |= can_be_in
    row, cell = np.nonzero(is_open)
    inside = (cp[row, cell], cn[row, cell], p[row, cell], q[row, cell])
    return search, search.unsettled(Stretches(row, cells.cuts[cell], cells.cuts[cell + 1], *inside))


def _split(s: Stretches, cells: Cells, search: Search, rng: Random) -> Stretches:
    """Each stretch in two halves, the counts drawn given the whole."""
    cp, cn = cells.tally.positives, cells.tally.negatives
    middle = (s.low + s.high) // 2
    a = _draw_left(rng, s.p, cp[s.low], cp[middle], cp[s.high])
    b = _draw_left(rng, s.q, cn[s.low], cn[middle], cn[s.high])
    search.note_point(s, s.cp + a, s.cn + b)
    left = Stretches(s.replicate, s.low, middle, s.cp, s.cn, a, b)
    right = Stretches(s.replicate, middle, s.high, s.cp + a, s.cn + b, s.p - a, s.q - b)
    return Stretches(*(np.concatenate([getattr(left, n), getattr(right, n)]) for n in s.__dataclass_fields__))


def _draw_left(rng: Random, count: Floats, low: Ints, middle: Ints, high: Ints) -> Floats:
    """How many of `count` trials fall left of the middle: a binomial with the left part's share of the sample."""
    inside = np.maximum(high - low, 1)
    return rng.binomial(count.astype(np.int64), (middle - low) / inside).astype(np.float64)


def _before(counts: Floats) -> Floats:
    """Cumulative counts along the cells, starting at 0."""
    out = np.zeros((counts.shape[0], counts.shape[1] + 1))
    np.cumsum(counts, axis=1, out=out[:, 1:])
    return out
