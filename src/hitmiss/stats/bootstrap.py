"""Bootstrap replicates of metrics.

    stratified_replicates   trials are the units, resampled within each class        (lazy, exact; see `refine`)
    unit_replicates         speakers, patients … are the units, with their trials    (exact on the given weights)
    count_replicates        metrics of decisions                                     (exact)

Replicates are vectorised, never threaded: the same generator gives the same digits on any machine with any number of
threads. `resampled` does it by brute force, as `trial_draws` tells; it is the oracle in the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hitmiss.progress import tell
from hitmiss.stats.cells import Cells, cut, cut_finely
from hitmiss.stats.forms import AtThreshold, ClassSums, Crossing, Form, MinimumCost, PairShare, Whole
from hitmiss.stats.refine import Search, search_stratified
from hitmiss.stats.sums import class_sum, ordered_pairs
from hitmiss.tally import Floats, Tally


def stratified_replicates(tally: Tally, forms: Sequence[Form], replicates: int, rng: Generator) -> list[Floats]:
    """Replicates of each form, all from the same draws: trials resampled with replacement within each class."""
    if not tally.has_both_classes:
        return [np.full(replicates, np.nan) for _ in forms]
    cells = cut(tally, forms)
    p, q = draw_cells(cells, replicates, rng)
    search = search_stratified(cells, p, q, crossings(forms), costs(forms), rng)
    return [_read(form, cells, p, q, search, rng) for form in forms]


def draw_cells(cells: Cells, replicates: int, rng: Generator) -> tuple[Floats, Floats]:
    """Positives and negatives per cell (replicate × cell) of class-stratified replicates."""
    n1, n0 = int(cells.tally.n_positive), int(cells.tally.n_negative)
    p = rng.multinomial(n1, cells.positives / n1, size=replicates).astype(np.float64)
    return p, rng.multinomial(n0, cells.negatives / n0, size=replicates).astype(np.float64)


def crossings(forms: Sequence[Form]) -> list[Crossing]:
    """The forms that are read at a crossing."""
    return [f for f in forms if isinstance(f, Crossing)]


def costs(forms: Sequence[Form]) -> list[MinimumCost]:
    """The forms that are a least cost."""
    return [f for f in forms if isinstance(f, MinimumCost)]


def read_search(form: Crossing | MinimumCost, search: Search) -> Floats:
    """The replicates of one form of a finished search."""
    if isinstance(form, Crossing):
        return search.rates[next(i for i, f in enumerate(search.crossings) if f is form)]
    return search.least[next(i for i, f in enumerate(search.costs) if f is form)]


def _read(form: Form, cells: Cells, p: Floats, q: Floats, search: Search, rng: Generator) -> Floats:
    if isinstance(form, Crossing | MinimumCost):
        return read_search(form, search)
    if isinstance(form, AtThreshold):
        return read_at_threshold(form, cells, p, q)
    if isinstance(form, PairShare):
        return ordered_pairs(cells, p, q, rng)
    if isinstance(form, ClassSums):
        sums = (
            class_sum(cells, cells.tally.positive_counts, p, form.positive, rng),
            class_sum(cells, cells.tally.negative_counts, q, form.negative, rng),
        )
        return np.asarray(form.combine(sums[0], p.sum(axis=1), sums[1], q.sum(axis=1)))
    finely = cut_finely(cells.tally)
    return read_whole(form, finely, *draw_cells(finely, len(p), rng))


def read_at_threshold(form: AtThreshold, cells: Cells, p: Floats, q: Floats) -> Floats:
    """A figure at a fixed threshold, which is one of the cuts."""
    k = cells.index_of(cells.tally.point_at(form.threshold))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(form.combine(p[:, :k].sum(axis=1), p.sum(axis=1), q[:, k:].sum(axis=1), q.sum(axis=1)))


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
