"""Bootstrap replicates of metrics.

    stratified_replicates   trials are the units, resampled within each class        (lazy, exact; see `refine`)
    unit_replicates         speakers, patients … are the units, with their trials    (exact on the given weights)
    count_replicates        metrics of decisions                                     (exact)

Replicates are vectorised, never threaded: the same generator gives the same digits on any machine with any number of
threads. `resampled` does it by brute force, as `trial_draws` tells; it is the oracle in the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hitmiss.progress import tell
from hitmiss.stats.cells import Cells, cut, cut_finely
from hitmiss.stats.forms import ClassSums, Form, Located, Whole
from hitmiss.stats.refine import Search, search_stratified
from hitmiss.stats.sums import class_sum, ordered_pairs
from hitmiss.tally import Floats, Tally


def stratified_replicates(tally: Tally, forms: Sequence[Form], replicates: int, rng: Generator) -> list[Floats]:
    """Replicates of each form, all from the same draws: trials resampled with replacement within each class."""
    if not tally.has_both_classes:
        return [np.full(replicates, np.nan) for _ in forms]
    drawn = Stratified.draw(tally, forms, replicates, rng)
    return [form.replicates(drawn) for form in forms]


def draw_cells(cells: Cells, replicates: int, rng: Generator) -> tuple[Floats, Floats]:
    """Positives and negatives per cell (replicate × cell) of class-stratified replicates."""
    n1, n0 = int(cells.tally.n_positive), int(cells.tally.n_negative)
    p = rng.multinomial(n1, cells.positives / n1, size=replicates).astype(np.float64)
    return p, rng.multinomial(n0, cells.negatives / n0, size=replicates).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Stratified:
    """Class-stratified replicates as forms read them: counts per cell, and the search inside cells."""

    cells: Cells
    p: Floats
    q: Floats
    search: Search
    rng: Generator

    @classmethod
    def draw(cls, tally: Tally, forms: Sequence[Form], replicates: int, rng: Generator) -> Stratified:
        """Draw the cells, and search them for what decides the forms."""
        cells = cut(tally, forms)
        p, q = draw_cells(cells, replicates, rng)
        return cls(cells, p, q, search_stratified(cells, p, q, forms, rng), rng)

    def searched(self, form: Located) -> Floats:
        """See `forms.Drawn`."""
        return self.search.replicates(form)

    def counts_at(self, threshold: float) -> tuple[Floats, Floats, Floats, Floats]:
        """See `forms.Drawn`."""
        return counts_at(threshold, self.cells, self.p, self.q)

    def class_sums(self, form: ClassSums) -> tuple[Floats, Floats, Floats, Floats]:
        """See `forms.Drawn`."""
        tally = self.cells.tally
        positive = class_sum(self.cells, tally.positive_counts, self.p, form.positive, self.rng)
        negative = class_sum(self.cells, tally.negative_counts, self.q, form.negative, self.rng)
        return positive, self.p.sum(axis=1), negative, self.q.sum(axis=1)

    def pair_share(self) -> Floats:
        """See `forms.Drawn`."""
        return ordered_pairs(self.cells, self.p, self.q, self.rng)

    def whole(self, form: Whole) -> Floats:
        """See `forms.Drawn`."""
        finely = cut_finely(self.cells.tally)
        return read_whole(form, finely, *draw_cells(finely, len(self.p), self.rng))


def counts_at(threshold: float, cells: Cells, p: Floats, q: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Missed and all positives, accepted and all negatives at a fixed threshold, which is one of the cuts."""
    k = cells.index_of(cells.tally.point_at(threshold))
    return p[:, :k].sum(axis=1), p.sum(axis=1), q[:, k:].sum(axis=1), q.sum(axis=1)


def read_whole(form: Whole, cells: Cells, p: Floats, q: Floats) -> Floats:
    """A figure that needs the whole curve: on at most a few thousand cells, centred on the figure of the full tally."""
    coarse = cells.coarse()
    shift = form.value(cells.tally) - form.value(coarse)
    return np.array([form.value(_with_counts(coarse, a, b)) for a, b in zip(p, q, strict=True)]) + shift


def _with_counts(tally: Tally, p: Floats, q: Floats) -> Tally:
    return Tally(tally.score, np.concatenate([[0.0], np.cumsum(p)]), np.concatenate([[0.0], np.cumsum(q)]))


def count_replicates(outcomes: NDArray[np.int64], replicates: int, rng: Generator) -> Floats:
    """Replicates (replicate × outcome) of the outcome counts (see `metrics.counts`), resampled within each class."""
    drawn = np.zeros((replicates, len(outcomes)))
    for members in (slice(0, None, 2), slice(1, None, 2)):
        have = outcomes[members]
        if have.sum():
            drawn[:, members] = rng.multinomial(int(have.sum()), have / have.sum(), size=replicates)
    return drawn


def trial_draws(positive: NDArray[np.bool_], replicates: int, rng: Generator) -> Iterator[NDArray[np.int64]]:
    """The places of the trials drawn, replicate by replicate, when trials are drawn within each class."""
    classes = [np.flatnonzero(positive), np.flatnonzero(~positive)]
    for done in range(replicates):
        tell("replicates", done, replicates)
        yield np.concatenate([rng.choice(members, size=len(members)) for members in classes if len(members)])


def resampled(
    metric: Callable[[NDArray[np.int8], Floats], float],
    positive: NDArray[np.bool_],
    score: Floats,
    replicates: int,
    rng: Generator,
) -> Floats:
    """Replicates of any function of (label, score) by drawing trials within each class and computing it anew."""
    label = positive.astype(np.int8)
    return np.array([metric(label[drawn], score[drawn]) for drawn in trial_draws(positive, replicates, rng)])
