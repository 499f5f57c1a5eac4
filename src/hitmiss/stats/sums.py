"""Replicates of sums over all trials (Cllr, Brier, ROC AUC) from the counts of cells.

Inside a cell a drawn trial is any of its trials alike, so the sum over the cell has a known mean and a known variance.
The mean is exact; the variance within cells is added back as Gaussian noise.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hitmiss.stats.cells import Cells
from hitmiss.stats.seeds import Random
from hitmiss.tally import Array, Floats


def class_sum(cells: Cells, counts: Array, drawn: Floats, term: Callable[[Floats], Floats], rng: Random) -> Floats:
    """Replicates of Σ term(score) over one class, given `counts` per distinct score and `drawn` trials per cell."""
    present = np.flatnonzero(counts)
    values = term(cells.tally.score[present])
    certain = np.isfinite(values)
    place = np.searchsorted(cells.cuts, present, side="right") - 1
    with np.errstate(over="ignore", invalid="ignore"):  # the sum of the largest numbers is infinite
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
    """Replicates of the ROC AUC: pairs in different cells are counted, pairs inside a cell have their exact share.

    With `rng` the variance of the share inside cells is added back, as in `class_sum`.
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
    """Within each cell: the share of ordered pairs, and the variance of a positive's and of a negative's share in it."""
    tally, size = cells.tally, len(cells)
    place = np.repeat(np.arange(size), np.diff(cells.cuts))
    n1, n0 = np.maximum(cells.positives, 1)[place], np.maximum(cells.negatives, 1)[place]
    start1, start0 = tally.positives[cells.cuts[:-1]][place], tally.negatives[cells.cuts[:-1]][place]
    under = (0.5 * (tally.negatives[:-1] + tally.negatives[1:].astype(np.float64)) - start0) / n0
    over = (n1 - (0.5 * (tally.positives[:-1] + tally.positives[1:].astype(np.float64)) - start1)) / n1
    share, by_positive = _mean_and_variance(under, tally.positive_counts, place, size)
    _, by_negative = _mean_and_variance(over, tally.negative_counts, place, size)
    return share, by_positive, by_negative
