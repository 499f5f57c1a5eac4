"""A tally that is exact where it matters and coarse elsewhere: crossings and least costs of many trials without a sort.

Scores are counted into even bins; only the bins that hold a crossing, or that could hold a lower cost than the best one
at the edges of bins, are looked at trial by trial. The figures are exactly those of the full tally.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.stats.forms import Form, Located
from hitmiss.tally import Floats, Tally, check_trials

BINS = 2048
LEAST = 1 << 15
"""Fewer trials than this are sorted outright."""
CHUNK = 1 << 15


def tally_for(form: Form, label: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None) -> Tally:
    """The tally that a form needs of trials given as arrays: focused where that is enough, else full."""
    positive, values, weights = check_trials(label, score, weight)
    if weights is None and isinstance(form, Located):
        return focused(positive, values, [form])
    return Tally.of(positive, values, weights)


def focused(positive: NDArray[np.bool_], score: Floats, forms: Sequence[Located]) -> Tally:
    """A tally on which these forms have exactly the value that they have on all trials.

    >>> from hitmiss.stats.forms import MinimumCost
    >>> rng = np.random.default_rng(0)
    >>> positive, form = rng.random(100_000) < 0.3, MinimumCost(0.95, 0.5, 0.5)
    >>> score = rng.normal(size=100_000) + 2.0 * positive
    >>> form.value(focused(positive, score, [form])) == form.value(Tally.of(positive, score))
    True
    """
    if len(score) < LEAST:
        return Tally.of_classes(score[positive], score[~positive])
    bins, counts = _count(positive, score)
    coarse = Tally(np.arange(BINS, dtype=np.float64), *(np.concatenate([[0], np.cumsum(c)]) for c in counts))
    if not coarse.has_both_classes:
        return coarse
    is_open = _open(coarse, forms)
    inside = np.flatnonzero(is_open[bins])
    return _joined(counts, is_open, bins[inside], positive[inside], score[inside])


def _count(positive: NDArray[np.bool_], score: Floats) -> tuple[NDArray[np.int16], NDArray[np.int64]]:
    """The bin of each trial, and positives and negatives per bin. Outliers share the end bins."""
    low, high = _range(score)
    scale = (BINS - 1) / (high - low) if high > low else 0.0
    bins = np.empty(len(score), dtype=np.int16)
    counts = np.zeros(2 * BINS, dtype=np.int64)
    for start in range(0, len(score), CHUNK):
        part = slice(start, start + CHUNK)
        place = score[part] - low
        place *= scale
        np.clip(place, 0, BINS - 1, out=place)
        index = place.astype(np.intp)
        bins[part] = index
        index[~positive[part]] += BINS
        counts += np.bincount(index, minlength=2 * BINS)
    return bins, counts.reshape(2, BINS)


def _range(score: Floats) -> tuple[float, float]:
    """Where nearly all finite scores lie, from every hundredth or so."""
    some = score[:: max(1, len(score) // 4096)]
    some = some[np.isfinite(some)]
    low, high = np.quantile(some, [0.002, 0.998]) if len(some) else (0.0, 0.0)
    return float(low), float(high)


def _open(coarse: Tally, forms: Sequence[Located]) -> NDArray[np.bool_]:
    """The bins that can hold a crossing or a lower cost."""
    cp, cn = coarse.positives.astype(np.float64), coarse.negatives.astype(np.float64)
    n1, n0 = float(coarse.n_positive), float(coarse.n_negative)
    is_open = np.zeros(BINS, dtype=bool)
    for form in forms:
        is_open |= form.open_between(cp, cn, n1, n0)
    return is_open


def _joined(
    counts: NDArray[np.int64],
    is_open: NDArray[np.bool_],
    bins: NDArray[np.int16],
    positive: NDArray[np.bool_],
    score: Floats,
) -> Tally:
    """Closed bins as one group each, the trials of open bins as the groups that they are, in order."""
    fine = Tally.of_classes(score[positive], score[~positive])
    order = np.argsort(score, kind="stable")
    place = bins[order][np.searchsorted(score[order], fine.score)].astype(np.int64)
    closed = np.flatnonzero(~is_open)
    where = np.concatenate([closed, place])
    ranked = np.argsort(where, kind="stable")  # fine groups of one bin stay in their own order
    p = np.concatenate([counts[0][closed], fine.positive_counts])[ranked]
    q = np.concatenate([counts[1][closed], fine.negative_counts])[ranked]
    names = np.arange(len(where), dtype=np.float64)  # the scores themselves are of no use to these forms
    return Tally(names, np.concatenate([[0], np.cumsum(p)]), np.concatenate([[0], np.cumsum(q)]))
