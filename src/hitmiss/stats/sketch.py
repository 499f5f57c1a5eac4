"""Shorten tallies of very many trials: exact where replicates look at single trials, bins of scores elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.core.score_keys import COARSE, EXACT, Keys, keys_of, scores_of
from hitmiss.core.sorting import Array, Floats
from hitmiss.core.tally import Tally, check_trials
from hitmiss.stats.forms.base import Form, Located

# ----------------------------------------------------------------------
# Shorten a tally of very many trials: exact where replicates look at single trials, bins of scores elsewhere.
#
# The bootstrap draws counts of stretches of scores and splits only those in which a crossing or a least cost can lie
# (see `bootstrap.Search`). So a short tally is enough: leaves (bins of scores by the highest bits of their keys, finer
# where many trials share a bin) as one group each, and single scores inside the leaves that matter. The short tally
# depends only on how many trials have which score. So trials counted in memory and trials counted shard by shard give
# the same replicates.

Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
LARGE: Final = 1 << 22
"""With more trials than this, resampling uses condensed tallies."""
LEVELS: Final = (COARSE, 26, 32, 38, 44, 50, 56, EXACT)
"""Number of bits of the bins; a bin with many trials is cut at the next level."""
HEAVY: Final = 512
"""A bin that holds more than 1/HEAVY of all trials is cut further."""
DEVIATIONS: Final = 6.0
"""How many standard deviations replicates are expected to stay within (they leave with probability 1e-9)."""
_LOWEST: Final = int(keys_of([-np.inf])[0])
_STEP: Final = 1 << 16


def condense(tally: Tally, forms: Sequence[Form]) -> Tally:
    """Return the short tally: leaves as single groups, except those that can contain a crossing or least cost.

    >>> from hitmiss.stats.forms import MinimumCost
    >>> rng = np.random.default_rng(0)
    >>> whole = Tally.of_classes(rng.normal(2.0, size=50_000), rng.normal(size=50_000))
    >>> cost = MinimumCost(0.95, 0.5, 0.5)
    >>> short = condense(whole, [cost])
    >>> len(short.score) < 30_000, cost.value(short) == cost.value(whole)
    (True, True)
    """
    starts, lowest = leaves(tally, thresholds(forms))
    is_open = opened(tally, starts, forms)
    sizes = np.diff(np.append(starts, len(tally.score)))
    # Open leaves keep every score. A closed leaf keeps only its first entry, which then counts for the whole leaf.
    kept = np.repeat(is_open, sizes)
    kept[starts] = True
    at = np.flatnonzero(kept)
    score = tally.score[at].copy()
    closed = ~is_open
    # A closed leaf is named by the lowest score of its bin, not of its trials: so the name does not depend on which
    # trials a shard holds.
    score[np.searchsorted(at, starts[closed])] = lowest[closed]
    ends = np.append(at, len(tally.score))
    return Tally(score, tally.positives[ends], tally.negatives[ends])


def thresholds(forms: Sequence[Form]) -> tuple[float, ...]:
    """Return the fixed thresholds of forms."""
    return tuple(sorted({t + 0.0 for f in forms for t in f.thresholds}))


def leaves(tally: Tally, cuts: Sequence[float] = ()) -> tuple[Indices, Floats]:
    """Return where leaves begin among the distinct scores, and the lowest score that each leaf could hold."""
    starts, lowest = _cut_to(tally, EXACT)
    at = np.searchsorted(tally.score, np.asarray(cuts, dtype=np.float64))
    inside = at < len(tally.score)
    return _inserted(starts, lowest, at[inside].astype(np.intp), np.asarray(cuts, dtype=np.float64)[inside])


def heavy_bins(tally: Tally, bits: int) -> Keys:
    """Return the heavy bins of that many bits, by their lowest keys.

    They are cut further if they hold several scores.
    """
    starts, _ = _cut_to(tally, bits)
    is_heavy = _between(tally, starts) * HEAVY > tally.n_positive + tally.n_negative
    own = keys_of(_lowest(tally.score[starts], bits))
    return np.unique(own[is_heavy])


def _cut_to(tally: Tally, finest: int) -> tuple[Indices, Floats]:
    """Return leaves of bins with at most that many bits."""
    score, n = tally.score, tally.n_positive + tally.n_negative
    starts = _changes(score, 0, len(score), COARSE)
    lowest = _lowest(score[starts], COARSE)
    for level in (bits for bits in LEVELS[1:] if bits <= finest):
        held = _between(tally, starts)
        width = np.diff(np.append(starts, len(score)))
        heavy = np.flatnonzero((held * HEAVY > n) & (width > 1))
        inner = [_changes(score, starts[k], starts[k] + width[k], level)[1:] for k in heavy]
        own = _lowest(score[starts[heavy]], level)
        lowest[heavy] = np.maximum(lowest[heavy], own)  # a leaf that is cut begins at its first finer bin
        new = np.concatenate([np.zeros(0, dtype=np.intp), *inner])
        starts, lowest = _inserted(starts, lowest, new, _lowest(score[new], level))
    return starts, lowest


def opened(tally: Tally, starts: Indices, forms: Sequence[Form]) -> Mask:
    """Return the leaves in which the crossing or the least cost of the sample, or of a replicate, can lie."""
    edges = np.append(starts, len(tally.score))
    cp, cn = tally.positives[edges].astype(np.float64), tally.negatives[edges].astype(np.float64)
    is_open = np.zeros(len(starts), dtype=bool)
    if not tally.has_both_classes:
        return is_open
    n1, n0 = float(tally.n_positive), float(tally.n_negative)
    for form in forms:
        is_open |= form.can_hold(cp, cn, n1, n0, DEVIATIONS)
    return is_open


def _changes(score: Floats, low: int, high: int, bits: int) -> Indices:
    """Return where bins begin among the scores low .. high − 1, which are ascending."""
    found = [np.zeros(1, dtype=np.intp)] if high > low else []
    for start in range(low, high, _STEP):
        # The raw bits are enough here, without computing keys: only changes of the bin matter, not the order of bins.
        part = score[start : min(start + _STEP, high - 1) + 1] + 0.0
        bins = part.view(np.int64) >> (EXACT - bits)
        found.append(np.flatnonzero(bins[1:] != bins[:-1]) + (start - low + 1))
    return np.concatenate([np.zeros(0, dtype=np.intp), *found]) + low


def _lowest(score: Floats, bits: int) -> Floats:
    """Return the lowest score of the bins that contain the scores."""
    keys: Keys = keys_of(score)
    mask = ~np.uint64((1 << (EXACT - bits)) - 1)
    return scores_of(np.maximum(keys & mask, np.uint64(_LOWEST)))  # below −inf there are only NaNs


def _between(tally: Tally, starts: Indices) -> Array:
    edges = np.append(starts, len(tally.score))
    return np.diff(tally.positives[edges].astype(np.int64) + tally.negatives[edges])


def _inserted(starts: Indices, lowest: Floats, new: Indices, new_lowest: Floats) -> tuple[Indices, Floats]:
    """Insert further cuts; where a leaf already begins there, the higher of the two lowest scores is kept."""
    if not len(new):
        return starts, lowest
    both, values = np.concatenate([starts, new]), np.concatenate([lowest, new_lowest])
    order = np.lexsort((values, both))
    both, values = both[order], values[order]
    last = np.append(both[1:] != both[:-1], True)
    return both[last], values[last]


# ----------------------------------------------------------------------
# A tally that is exact where it matters and coarse elsewhere: crossings and least costs of many trials without a sort.
#
# Scores are counted in bins of equal width. Only the bins that contain a crossing, or that could contain a lower cost
# than the best one at the edges of bins, are examined trial by trial. The numbers are exactly those of the full tally.

BINS = 2048
LEAST = 1 << 15
"""With fewer trials than this, all of them are sorted."""
CHUNK = 1 << 15


def tally_for(form: Form, label: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None) -> Tally:
    """Return the tally that a form needs of trials given as arrays: focused if that is enough, otherwise full."""
    positive, values, weights = check_trials(label, score, weight)
    if weights is None and isinstance(form, Located):
        return focused(positive, values, [form])
    return Tally.of(positive, values, weights)


def focused(positive: NDArray[np.bool_], score: Floats, forms: Sequence[Located]) -> Tally:
    """Return a tally on which these forms have exactly the value that they have on all trials.

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
    """Return the bin of each trial, and positives and negatives per bin. Outliers share the first and last bins."""
    # Bins over the range of nearly all scores: over the full range, a few outliers would put all others into one bin.
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
    """Return the range of nearly all finite scores, estimated from about 4,096 evenly spaced trials."""
    some = score[:: max(1, len(score) // 4096)]
    some = some[np.isfinite(some)]
    low, high = np.quantile(some, [0.002, 0.998]) if len(some) else (0.0, 0.0)
    return float(low), float(high)


def _open(coarse: Tally, forms: Sequence[Located]) -> NDArray[np.bool_]:
    """Return the bins that can contain a crossing or a lower cost."""
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
    """Join closed bins, as one group each, with the groups of the trials in open bins, in order of score."""
    fine = Tally.of_classes(score[positive], score[~positive])
    order = np.argsort(score, kind="stable")
    place = bins[order][np.searchsorted(score[order], fine.score)].astype(np.int64)
    closed = np.flatnonzero(~is_open)
    where = np.concatenate([closed, place])
    ranked = np.argsort(where, kind="stable")  # fine groups of one bin stay in their own order
    p = np.concatenate([counts[0][closed], fine.positive_counts])[ranked]
    q = np.concatenate([counts[1][closed], fine.negative_counts])[ranked]
    names = np.arange(len(where), dtype=np.float64)  # these forms need only the order, not the scores
    return Tally(names, np.concatenate([[0], np.cumsum(p)]), np.concatenate([[0], np.cumsum(q)]))
