"""Bootstrap replicates of metrics, with trials as units, within each class or from all.

    trial_replicates        numbers of scores                  (lazy, exact; see `stats.search`)
    count_replicates        metrics of decisions               (exact)

Replicates are vectorised, never threaded, so the same generator gives the same digits on any machine with any number
of threads. `resampled` computes them by brute force, on the trials from `trial_draws`; the tests compare against it.
Units (speakers, patients) are drawn in `stats.units`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.progress import report
from hitmiss.core.sorting import Floats
from hitmiss.core.tally import Tally
from hitmiss.stats.forms.base import Form, Located
from hitmiss.stats.forms.sums import ClassSums
from hitmiss.stats.forms.whole import Whole

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Table: TypeAlias = Floats | csr_array
from hitmiss.stats.cells import Cells, cut, cut_finely
from hitmiss.stats.random import Ints, Random
from hitmiss.stats.search import Search, search_stratified
from hitmiss.stats.sums import class_sum, ordered_pairs


def trial_replicates(
    tally: Tally, forms: Sequence[Form], replicates: int, rng: Random, by_class: bool = True
) -> list[Floats]:
    """Return replicates of each form, all from the same draws: trials resampled with replacement.

    `by_class`: within each class. Otherwise from all trials, so that the number of positives varies as in a new sample.
    """
    if not tally.has_both_classes:
        return [np.full(replicates, np.nan) for _ in forms]
    drawn = DrawnCells.draw(tally, forms, replicates, rng, by_class)
    empty = (drawn.p.sum(axis=1) == 0) | (drawn.q.sum(axis=1) == 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = [form.replicates(drawn) for form in forms]
    return [np.where(empty, np.nan, v) for v in values] if empty.any() else values


def class_sizes(n1: int, n0: int, replicates: int, rng: Random, by_class: bool) -> tuple[Ints, Ints]:
    """Return the numbers of positives and negatives in each replicate: those of the sample, or a binomial draw."""
    if by_class:
        return np.full(replicates, n1), np.full(replicates, n0)
    drawn = rng.binomial(n1 + n0, n1 / (n1 + n0), size=replicates)
    return drawn, n1 + n0 - drawn


def draw_cells(cells: Cells, replicates: int, rng: Random, by_class: bool = True) -> tuple[Floats, Floats]:
    """Draw the positives and negatives per cell (replicate × cell)."""
    n1, n0 = int(cells.tally.n_positive), int(cells.tally.n_negative)
    sizes = class_sizes(n1, n0, replicates, rng, by_class)
    p = rng.multinomial(sizes[0], cells.positives / n1).astype(np.float64)
    return p, rng.multinomial(sizes[1], cells.negatives / n0).astype(np.float64)


@dataclass(frozen=True, eq=False)
class DrawnCells:
    """Replicates of trials in the form of `forms.Drawn`: counts per cell, and the search inside cells."""

    cells: Cells
    p: Floats
    q: Floats
    search: Search
    rng: Random
    by_class: bool = True

    @classmethod
    def draw(
        cls, tally: Tally, forms: Sequence[Form], replicates: int, rng: Random, by_class: bool = True
    ) -> DrawnCells:
        """Draw the cells, and search them for the places that determine the forms."""
        cells = cut(tally, forms)
        p, q = draw_cells(cells, replicates, rng, by_class)
        return cls(cells, p, q, search_stratified(cells, p, q, forms, rng), rng, by_class)

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
        return read_whole(form, finely, *draw_cells(finely, len(self.p), self.rng, self.by_class))


def counts_at(threshold: float, cells: Cells, p: Floats, q: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return missed and all positives, accepted and all negatives at a fixed threshold, which is one of the cuts."""
    k = cells.index_of(cells.tally.point_at(threshold))
    return p[:, :k].sum(axis=1), p.sum(axis=1), q[:, k:].sum(axis=1), q.sum(axis=1)


def read_whole(form: Whole, cells: Cells, p: Floats, q: Floats) -> Floats:
    """Compute a number that depends on the whole curve, on at most a few thousand cells.

    Coarse cells shift the number slightly, so the replicates are moved by the difference between the full and coarse
    values.
    """
    coarse = cells.coarse()
    shift = form.value(cells.tally) - form.value(coarse)
    if form.of_cells is not None:
        step = max(1, CHUNK_VALUES // max(8 * len(cells), 1))
        parts = [form.of_cells(p[i : i + step], q[i : i + step]) for i in range(0, len(p), step)]
        return np.concatenate([*parts, np.zeros(0)]) + shift
    return np.array([form.value(_with_counts(coarse, a, b)) for a, b in zip(p, q, strict=True)]) + shift


def _with_counts(tally: Tally, p: Floats, q: Floats) -> Tally:
    return Tally(tally.score, np.concatenate([[0.0], np.cumsum(p)]), np.concatenate([[0.0], np.cumsum(q)]))


def count_replicates(outcomes: NDArray[np.int64], replicates: int, rng: Random, by_class: bool = True) -> Floats:
    """Return replicates (replicate × outcome) of the outcome counts, within each class or of all trials.

    The outcomes are those of `metrics.counts`.
    """
    drawn = np.zeros((replicates, len(outcomes)))
    for members in (slice(0, None, 2), slice(1, None, 2)) if by_class else (slice(0, None),):
        have = outcomes[members]
        if have.sum():
            drawn[:, members] = rng.multinomial(int(have.sum()), have / have.sum(), size=replicates)
    return drawn


def trial_draws(
    positive: NDArray[np.bool_], replicates: int, rng: Random, by_class: bool = True
) -> Iterator[NDArray[np.int64]]:
    """Yield the indices of the trials drawn, replicate by replicate, within each class or from all trials."""
    classes = [np.flatnonzero(positive), np.flatnonzero(~positive)] if by_class else [np.arange(len(positive))]
    for done in range(replicates):
        report("replicates", done, replicates)
        yield np.concatenate(
            [members[rng.integers(0, len(members), size=len(members))] for members in classes if len(members)]
        )


def resampled(
    metric: Callable[[NDArray[np.int8], Floats], float],
    positive: NDArray[np.bool_],
    score: Floats,
    replicates: int,
    rng: Random,
    by_class: bool = True,
) -> Floats:
    """Return replicates of any function of (label, score), by drawing trials and computing it again each time."""
    label = positive.astype(np.int8)
    places = trial_draws(positive, replicates, rng, by_class)
    return np.array([metric(label[drawn], score[drawn]) for drawn in places])


CHUNK_VALUES = 1 << 24
