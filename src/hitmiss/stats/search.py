"""Exact bootstrap of crossings and minima without visiting most trials.

A bootstrap replicate that is stratified by class draws n trials of a class with replacement: the counts are
multinomial. The counts in stretches of scores are multinomial too, and the split of a stretch is binomial with the
share of its left part. So the counts of all replicates are drawn for coarse cells first. A cell is split further only
where the two error rates cross, or where a lower cost than the best one found so far is still possible. The
distribution is exactly that of resampling trials; counts that are not needed are never drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.sorting import Floats
from hitmiss.stats.forms.base import Form, Located

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Table: TypeAlias = Floats | csr_array
from hitmiss.stats.cells import Cells
from hitmiss.stats.random import Ints, Random


@dataclass(frozen=True, eq=False)
class Stretches:
    """Stretches of scores that are being examined, one row per replicate and stretch.

    A row covers groups low .. high − 1 of the tally; `cp`, `cn` count the replicate's trials below, `p`, `q` those
    inside.
    """

    replicate: Ints
    low: Ints
    high: Ints
    cp: Floats
    cn: Floats
    p: Floats
    q: Floats

    def keep(self, mask: NDArray[np.bool_] | Ints | slice) -> Stretches:
        """Return the stretches where a mask is true, or at some places."""
        return Stretches(*(getattr(self, name)[mask] for name in self.__dataclass_fields__))

    def __len__(self) -> int:
        return len(self.replicate)


@dataclass(eq=False)
class Search:
    """What is known so far about the places that determine some forms, for all replicates."""

    forms: Sequence[Located]
    n1: Floats
    n0: Floats
    found: list[Floats]

    def sizes(self, s: Stretches) -> tuple[Floats, Floats]:
        """Return the numbers of positives and negatives in the replicates of the stretches."""
        return self.n1[s.replicate], self.n0[s.replicate]

    def note_point(self, s: Stretches, cp: Floats, cn: Floats) -> None:
        """Record one point of the error curve inside each stretch."""
        sizes = self.sizes(s)
        for form, found in zip(self.forms, self.found, strict=True):
            form.note_point(found, s.replicate, cp, cn, *sizes)

    def matters(self, s: Stretches) -> NDArray[np.bool_]:
        """Return the stretches in which some form can still be determined."""
        sizes, matters = self.sizes(s), np.zeros(len(s), dtype=bool)
        for form, found in zip(self.forms, self.found, strict=True):
            matters |= form.can_be_in(found, s, *sizes)
        return matters

    def unsettled(self, s: Stretches) -> Stretches:
        """Return the stretches that can still matter; single groups are read and finished."""
        single = s.high - s.low == 1
        sizes, matters = self.sizes(s), np.zeros(len(s), dtype=bool)
        for form, found in zip(self.forms, self.found, strict=True):
            inside = form.can_be_in(found, s, *sizes)
            groups = s.keep(inside & single)
            form.note_groups(found, groups, *self.sizes(groups))
            matters |= inside
        return s.keep(matters & ~single)

    def note_inside(self, s: Stretches, cp: Floats, cn: Floats) -> None:
        """Record every point (stretch × point) inside stretches."""
        sizes = self.sizes(s)
        for form, found in zip(self.forms, self.found, strict=True):
            form.note_inside(found, s, cp, cn, *sizes)

    def replicates(self, form: Located) -> Floats:
        """Return what was found for one form."""
        return self.found[next(i for i, f in enumerate(self.forms) if f is form)]


def search_stratified(cells: Cells, p: Floats, q: Floats, forms: Sequence[Form], rng: Random) -> Search:
    """Find the places that determine the forms in all replicates, splitting cells as needed.

    The replicates are given by their counts per cell (replicate × cell).
    """
    search, stretches = begin_search(cells, p, q, forms)
    # Each round halves all open stretches of all replicates at once, so there are about log2(scores per cell) rounds.
    while len(stretches):
        stretches = _split(stretches, cells, search, rng)
        stretches = search.unsettled(stretches)
    return search


def begin_search(cells: Cells, p: Floats, q: Floats, forms: Sequence[Form]) -> tuple[Search, Stretches]:
    """Return what the cuts alone show, and the cells that are still open."""
    cp, cn = _before(p), _before(q)
    located = [f for form in forms for f in form.single if isinstance(f, Located)]
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
    """Split each stretch into two halves; the counts of the halves are drawn given the count of the whole."""
    cp, cn = cells.tally.positives, cells.tally.negatives
    middle = (s.low + s.high) // 2
    a = _draw_left(rng, s.p, cp[s.low], cp[middle], cp[s.high])
    b = _draw_left(rng, s.q, cn[s.low], cn[middle], cn[s.high])
    search.note_point(s, s.cp + a, s.cn + b)
    left = Stretches(s.replicate, s.low, middle, s.cp, s.cn, a, b)
    right = Stretches(s.replicate, middle, s.high, s.cp + a, s.cn + b, s.p - a, s.q - b)
    return Stretches(*(np.concatenate([getattr(left, n), getattr(right, n)]) for n in s.__dataclass_fields__))


def _draw_left(rng: Random, count: Floats, low: Ints, middle: Ints, high: Ints) -> Floats:
    """Draw how many of `count` trials fall left of the middle: a binomial with the left part's share of the sample."""
    inside = np.maximum(high - low, 1)
    return rng.binomial(count.astype(np.int64), (middle - low) / inside).astype(np.float64)


def _before(counts: Floats) -> Floats:
    """Return cumulative counts along the cells, starting at 0."""
    out = np.zeros((counts.shape[0], counts.shape[1] + 1))
    np.cumsum(counts, axis=1, out=out[:, 1:])
    return out
