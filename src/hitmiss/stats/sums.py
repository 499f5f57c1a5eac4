"""Replicates of sums over all trials (Cllr, Brier, ROC AUC) from the counts of cells.

Inside a cell every trial is equally likely to be drawn, so the sum over the drawn trials of a cell has a known mean
and a known variance. The mean is used exactly; the variance within cells is added as Gaussian noise. Without it the
replicates would vary too little."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from hitmiss.core.sorting import Array, Floats, let_go

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Table: TypeAlias = Floats | csr_array
from hitmiss.stats.cells import PART, Cells
from hitmiss.stats.random import Random


def class_sum(cells: Cells, counts: Array, drawn: Floats, term: Callable[[Floats], Floats], rng: Random) -> Floats:
    """Return replicates of Σ term(score) over one class, from `counts` per score and `drawn` trials per cell."""
    present = np.flatnonzero(counts)
    values = term(cells.tally.score[present])
    certain = np.isfinite(values)
    place = np.searchsorted(cells.cuts, present, side="right") - 1
    with np.errstate(over="ignore", invalid="ignore"):  # sums of very large numbers may overflow
        mean, spread = _mean_and_variance(values[certain], counts[present[certain]], place[certain], len(cells))
        total = drawn @ mean + rng.standard_normal(len(drawn)) * np.sqrt(drawn @ spread)
    if certain.all():
        return total
    infinite = np.zeros(len(cells), dtype=bool)  # infinite scores have cells of their own
    infinite[place[~certain]] = True
    return np.where((drawn[:, infinite] > 0).any(axis=1), np.inf, total)


def _mean_and_variance(values: Floats, weights: Array, place: Array, size: int) -> tuple[Floats, Floats]:
    total = np.bincount(place, weights=weights, minlength=size)
    safe = np.maximum(total, 1)
    mean = np.bincount(place, weights=weights * values, minlength=size) / safe
    return mean, np.bincount(place, weights=weights * (values - mean[place]) ** 2, minlength=size) / safe


def ordered_pairs(cells: Cells, p: Floats, q: Floats, rng: Random | None) -> Floats:
    """Return replicates of the ROC AUC.

    Pairs in different cells are counted; pairs inside a cell use their exact share. With `rng` the variance of the
    share inside cells is added, as in `class_sum`.
    """
    share, by_positive, by_negative = _pairs_inside(cells)
    below = np.cumsum(q, axis=1) - q
    with np.errstate(divide="ignore", invalid="ignore"):
        all_pairs = p.sum(axis=1) * q.sum(axis=1)
        area: Floats = (np.einsum("rk,rk->r", p, below) + (p * q) @ share) / all_pairs
        if rng is None:
            return area
        noise = (p * q**2) @ by_positive + (p**2 * q) @ by_negative
        area += rng.standard_normal(len(p)) * np.sqrt(noise) / all_pairs
        return area


def _pairs_inside(cells: Cells) -> tuple[Floats, Floats, Floats]:
    """Return, per cell, the share of ordered pairs and the variances of a positive's and of a negative's share."""
    found, first = [], 0
    while first < len(cells):  # some cells at a time, so that there is no copy of a long tally
        end = max(int(np.searchsorted(cells.cuts, cells.cuts[first] + PART, side="right")) - 1, first + 1)
        found.append(_pairs_inside_some(cells, slice(first, end)))
        let_go(cells.tally.positives, cells.tally.negatives)
        first = end
    share, by_positive, by_negative = (np.concatenate([np.zeros(0), *parts]) for parts in zip(*found, strict=True))
    return share, by_positive, by_negative


def _pairs_inside_some(cells: Cells, some: slice) -> tuple[Floats, Floats, Floats]:
    cuts, size = cells.cuts[some.start : some.stop + 1], some.stop - some.start
    groups = slice(cuts[0], cuts[-1] + 1)
    p, q = cells.tally.positives[groups], cells.tally.negatives[groups]
    place = np.repeat(np.arange(size), np.diff(cuts))
    n1, n0 = np.maximum(cells.positives[some], 1)[place], np.maximum(cells.negatives[some], 1)[place]
    start1, start0 = p[cuts[:-1] - cuts[0]][place], q[cuts[:-1] - cuts[0]][place]
    under = (0.5 * (q[:-1] + q[1:].astype(np.float64)) - start0) / n0
    over = (n1 - (0.5 * (p[:-1] + p[1:].astype(np.float64)) - start1)) / n1
    share, by_positive = _mean_and_variance(under, np.diff(p), place, size)
    _, by_negative = _mean_and_variance(over, np.diff(q), place, size)
    return share, by_positive, by_negative
