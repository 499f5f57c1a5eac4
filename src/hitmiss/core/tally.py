"""The tally: everything that a threshold can tell about one cell of trials.

For each distinct score, in ascending order, how many positives and negatives lie below it. EER, costs, ROC and PR
areas, the best threshold and every operating point are one pass over it; tallies merge, and a bootstrap replicate is
a tally with other counts on the same scores.

Pool adjacent violators: the blocks of the rising step function that fits positives against negatives best.

scipy has the same regression in `scipy.optimize`, whose import alone takes longer than scoring half a million trials.
Here whole counts are compared as whole numbers, so that no rounding decides whether two blocks of equal share are one:
they always are, and the blocks of shards that are pooled first and joined later are those of all trials at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.core.errors import DataError

# ----------------------------------------------------------------------
# The tally: everything that a threshold can tell about one cell of trials.
#
# For each distinct score, in ascending order, how many positives and negatives lie below it. EER, costs, ROC and PR
# areas, the best threshold and every operating point are one pass over it; tallies merge, and a bootstrap replicate is
# a tally with other counts on the same scores.

LONG = 2**12
MAGNITUDE = 2**63 - 1
Array = NDArray[Any]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tally:
    """Distinct scores, ascending, with cumulative counts per class.

    `positives[i]` and `negatives[i]` count the trials among the `i` lowest scores, so both start at 0 and have one
    entry more than `score`. Point `i` of the error curve rejects exactly those trials:
    miss rate = positives[i] / n_positive, false-alarm rate = (n_negative - negatives[i]) / n_negative.

    >>> t = Tally.of([1, 0, 1, 0], [0.9, 0.1, 0.4, 0.4])
    >>> t.score, t.positives, t.negatives
    (array([0.1, 0.4, 0.9]), array([0, 0, 1, 2], dtype=int32), array([0, 1, 2, 2], dtype=int32))
    """

    score: Floats
    positives: Array
    negatives: Array

    @classmethod
    def of(cls, label: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None) -> Tally:
        """Count trials given as arrays; `label` is 1 or True for the positive class, 0 or False for the other."""
        positive, values, weights = check_trials(label, score, weight)
        if weights is None:
            return cls.of_classes(values[positive], values[~positive])
        weighted = (values[positive], weights[positive]), (values[~positive], weights[~positive])
        return merge(
            _weighted_class(s, w, is_positive) for (s, w), is_positive in zip(weighted, (True, False), strict=True)
        )

    @classmethod
    def of_classes(cls, positive: Floats, negative: Floats) -> Tally:
        """Count trials given as the scores of each class."""
        return cls.of_sorted(ascending(positive), ascending(negative))

    @classmethod
    def of_sorted(cls, positive: Floats, negative: Floats) -> Tally:
        """Count trials given as the scores of each class, each in ascending order."""
        n = len(positive) + len(negative)
        # Where each positive lands in the merged order; sorting values and merging beats any argsort.
        place = np.searchsorted(negative, positive, side="left")
        place += np.arange(len(positive))
        is_positive = np.zeros(n, dtype=bool)
        is_positive[place] = True
        merged = np.empty(n)
        merged[place] = positive
        merged[~is_positive] = negative
        del positive, negative, place  # a tally of many trials should not need three copies of them
        positives = np.zeros(n + 1, dtype=_count_type(n))
        np.cumsum(is_positive, out=positives[1:])
        is_last = merged[1:] != merged[:-1]
        if is_last.all():
            negatives = np.arange(n + 1, dtype=positives.dtype)
            negatives -= positives
            return cls(merged, positives, negatives)
        ends = np.append(np.flatnonzero(is_last), n - 1)
        at = np.append(0, ends + 1)
        return cls(merged[ends], positives[at], at.astype(positives.dtype) - positives[at])

    @classmethod
    def of_counts(cls, score: ArrayLike, positive: ArrayLike, negative: ArrayLike) -> Tally:
        """Counts per score, in any order and with repeats; the form in which shards and warehouses deliver."""
        values = np.asarray(score, dtype=np.float64)
        pos, neg = np.asarray(positive), np.asarray(negative)
        if not values.shape == pos.shape == neg.shape or values.ndim != 1:
            shapes = f"{values.shape}, {pos.shape} and {neg.shape}"
            raise DataError(f"score and counts must be flat and equally long; found {shapes}")
        if np.isnan(values).any():
            raise DataError(f"{int(np.isnan(values).sum())} of {len(values)} scores are NaN; drop or fix them")
        if any(not np.isfinite(c).all() or (c < 0).any() for c in (pos, neg)):
            raise DataError("counts must be finite and not negative")
        distinct, place = np.unique(values, return_inverse=True)
        size = len(distinct)
        sums = [np.bincount(place, weights=c, minlength=size).astype(np.result_type(c, np.int64)) for c in (pos, neg)]
        return cls(distinct, _from_zero(np.cumsum(sums[0])), _from_zero(np.cumsum(sums[1])))

    @property
    def n_positive(self) -> float:
        """Weight of the positive trials."""
        return self.positives[-1].item() if len(self.positives) else 0

    @property
    def n_negative(self) -> float:
        """Weight of the negative trials."""
        return self.negatives[-1].item() if len(self.negatives) else 0

    @property
    def has_both_classes(self) -> bool:
        """Whether anything that compares the classes is defined."""
        return self.n_positive > 0 and self.n_negative > 0

    @cached_property
    def positive_counts(self) -> Array:
        """Positives at each distinct score."""
        return np.diff(self.positives)

    @cached_property
    def negative_counts(self) -> Array:
        """Negatives at each distinct score."""
        return np.diff(self.negatives)

    @property
    def tied_mass(self) -> float:
        """Share of trials whose score both classes have: where tie rules matter.

        >>> Tally.of([1, 0, 1, 0], [0.9, 0.1, 0.4, 0.4]).tied_mass
        0.5
        """
        shared = (self.positive_counts > 0) & (self.negative_counts > 0)
        total = self.n_positive + self.n_negative
        return (
            float((self.positive_counts[shared].sum() + self.negative_counts[shared].sum()) / total) if total else 0.0
        )

    @property
    def is_short(self) -> bool:
        """Whether some scores are known only by the bins that they lie in."""
        return False

    def known(self, form: object) -> float | None:  # noqa: ARG002
        """The figure of a form, where it was read before from scores that the tally does not hold; None where it was not."""
        return None

    def point_at(self, threshold: float) -> int:
        """The point of the error curve that accepts `score >= threshold`."""
        return int(np.searchsorted(self.score, threshold, side="left"))

    def threshold_of(self, point: int) -> float:
        """The threshold that accepts `score >= threshold` at that point; +inf where everything is rejected."""
        return float(self.score[point]) if point < len(self.score) else float("inf")

    def rescored(self, score: Floats) -> Tally:
        """The same counts on scores mapped by a non-decreasing function."""
        keep = np.append(score[1:] != score[:-1], True) if len(score) else np.zeros(0, dtype=bool)
        ends = np.flatnonzero(keep) + 1
        return Tally(score[keep], _from_zero(self.positives[ends]), _from_zero(self.negatives[ends]))


def ascending(values: Floats) -> Floats:
    """The values in ascending order; none may be NaN.

    Long arrays are sorted by polars and as integers: the bits of a double, with those after the sign turned where it is
    negative, order as the doubles do, and comparing them takes half the time.

    >>> ascending(np.array([0.5, -1.0, 2.0, -np.inf]))
    array([-inf, -1. ,  0.5,  2. ])
    """
    if len(values) < LONG:
        return np.sort(values)
    import polars as pl

    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.int64)
    if bits.min() >= 0:
        return pl.Series(bits).sort().to_numpy().view(np.float64)
    ordered = pl.Series(_turned(bits)).sort().to_numpy()
    return _turned(ordered).view(np.float64)


def _turned(bits: NDArray[np.int64]) -> NDArray[np.int64]:
    """The bits of doubles as integers of the same order, and back."""
    return bits ^ ((bits >> 63) & MAGNITUDE)


def merge(tallies: Iterable[Tally]) -> Tally:
    """One tally of all trials in the given ones: pooling groups, or joining shards.

    >>> a, b = Tally.of([1, 0], [0.9, 0.4]), Tally.of([1, 0], [0.4, 0.1])
    >>> merge([a, b]).positives.tolist(), merge([a, b]).negatives.tolist()
    ([0, 0, 1, 2], [0, 1, 2, 2])
    """
    parts = list(tallies)
    if not parts:
        return Tally(np.zeros(0), np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
    return Tally.of_counts(
        np.concatenate([t.score for t in parts]),
        np.concatenate([t.positive_counts for t in parts]),
        np.concatenate([t.negative_counts for t in parts]),
    )


def digest_of_cells(cells: Iterable[tuple[str, Floats, Array]]) -> str:
    """A hash of how often each score occurs in each cell, whatever the order of cells and scores and however they are split.

    Parameters
    ----------
    cells
        What tells each cell apart, as one text; its scores; how often each of them occurs.

    Notes
    -----
    Each score is mixed with the hash of its cell into 64 bits (the finaliser of SplitMix64), and these are added up, as
    often as the score occurs, modulo 2**64; twice, with two hashes of the cell. Sums know no order and need no sorting,
    so a stream gives the hash that memory gives, and nothing in it depends on a version of numpy or polars.

    >>> one = digest_of_cells([("a", np.array([1.0, 2.0]), np.array([2, 1]))])
    >>> one == digest_of_cells([("a", np.array([2.0]), np.array([1])), ("a", np.array([1.0, 1.0]), np.array([1, 1]))])
    True
    """
    sums = np.zeros(2, dtype=np.uint64)
    for name, scores, counts in cells:
        seeds = np.frombuffer(hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest(), "<u8")
        bits = (np.asarray(scores, dtype=np.float64) + 0.0).view(np.uint64)  # -0.0 is 0.0
        weights = np.asarray(counts).astype(np.uint64)
        with np.errstate(over="ignore"):
            sums += np.array([(_mixed(bits ^ seed) * weights).sum(dtype=np.uint64) for seed in seeds], dtype=np.uint64)
    return "".join(f"{int(total):016x}" for total in sums)


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64: each bit of the input changes half of those that come out."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = bits ^ (bits >> np.uint64(31))
    return mixed


def check_trials(
    label: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None
) -> tuple[NDArray[np.bool_], Floats, Array | None]:
    """Arrays checked and cast: which are positive, the scores, the weights. Bad values raise `DataError`."""
    positive = check_label(label)
    if np.ma.is_masked(score):
        raise DataError("some scores are masked; drop them first")
    values = np.asarray(score, dtype=np.float64)
    if values.shape != positive.shape or values.ndim != 1:
        raise DataError(f"label and score must be flat and equally long; found {positive.shape} and {values.shape}")
    if np.isnan(values).any():
        places = np.flatnonzero(np.isnan(values))
        raise DataError(
            f"{len(places)} of {len(values)} scores are NaN, the first at position {places[0]}; drop or fix them"
        )
    return positive, values, check_weight(weight, len(values))


def check_label(label: ArrayLike) -> NDArray[np.bool_]:
    """Labels as a mask of the positives; anything but 0, 1, True and False is refused."""
    if np.ma.is_masked(label):
        raise DataError("some labels are masked; drop them first")
    given = np.asarray(label)
    if given.ndim != 1:
        raise DataError(f"label must be flat; found shape {given.shape}")
    if given.dtype == np.bool_:
        return given
    positive = given == 1
    wrong = ~(positive | (given == 0))
    if wrong.any():
        raise DataError(
            f"label must be 1 (positive) or 0; found {given[wrong][0]!r} at position {int(np.argmax(wrong))}"
        )
    return np.asarray(positive, dtype=np.bool_)


def check_weight(weight: ArrayLike | None, n: int) -> Array | None:
    """Weights as numbers, one a trial, none negative; None stays None (all ones)."""
    if weight is None:
        return None
    weights = np.asarray(weight)
    if weights.dtype.kind not in "iu":
        weights = weights.astype(np.float64)
    if weights.shape != (n,):
        raise DataError(f"weight must have one number a trial ({n}); found shape {weights.shape}")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise DataError("weights must be finite and not negative")
    return weights


def _weighted_class(score: Floats, weight: Array, is_positive: bool) -> Tally:
    present = weight > 0
    zeros = np.zeros(int(present.sum()), dtype=weight.dtype)
    pos, neg = (weight[present], zeros) if is_positive else (zeros, weight[present])
    return Tally.of_counts(score[present], pos, neg)


def _count_type(n: int) -> type[np.int32] | type[np.int64]:
    return np.int32 if n < 2**31 else np.int64


def _from_zero(cumulative: Array) -> Array:
    return np.concatenate([np.zeros(1, dtype=cumulative.dtype), cumulative])


# ----------------------------------------------------------------------
# Pool adjacent violators: the blocks of the rising step function that fits positives against negatives best.
#
# scipy has the same regression in `scipy.optimize`, whose import alone takes longer than scoring half a million trials.
# Here whole counts are compared as whole numbers, so that no rounding decides whether two blocks of equal share are one:
# they always are, and the blocks of shards that are pooled first and joined later are those of all trials at once.

Starts = NDArray[np.intp]
ROUNDS: Final = 40
"""Rounds of pooling on whole arrays. Each round nearly halves the blocks; what is left then is pooled one by one."""
WHOLE: Final = 2**31
"""Counts below this can be multiplied in 64 bits."""


def pooled(positives: Array, negatives: Array) -> Starts:
    """Where each block begins when groups in ascending order of score are pooled until the share of positives rises.

    Parameters
    ----------
    positives, negatives
        What each group holds of the two classes, in ascending order of score; no group is empty.

    Returns
    -------
    The index of the first group of each block; the share of positives rises strictly from block to block.

    Examples
    --------
    >>> pooled(np.array([0, 1, 0, 1]), np.array([1, 0, 1, 0])).tolist()
    [0, 1, 3]
    """
    p, q = _comparable(positives), _comparable(negatives)
    starts: Starts = np.arange(len(p), dtype=np.intp)
    for _ in range(ROUNDS):
        # Neighbours whose share does not rise have one value in the solution, so a whole run of them is one block.
        rises = p[:-1] * q[1:] < p[1:] * q[:-1]
        if rises.all():
            return starts
        first = np.flatnonzero(np.append(True, rises))
        starts, p, q = starts[first], np.add.reduceat(p, first), np.add.reduceat(q, first)
    return starts[_one_by_one(p.tolist(), q.tolist())]


def rising_share(positives: Array, negatives: Array) -> Floats:
    """The share of positives of each group's block: isotonic regression of the labels on the order of the groups.

    Parameters
    ----------
    positives, negatives
        As for `pooled`.

    Returns
    -------
    One share per group, never falling.

    Examples
    --------
    >>> rising_share(np.array([0, 1, 0, 1]), np.array([1, 0, 1, 0]))
    array([0. , 0.5, 0.5, 1. ])
    """
    starts = pooled(positives, negatives)
    p, q = (np.add.reduceat(c.astype(np.float64), starts) for c in (positives, negatives))
    return np.repeat(p / (p + q), np.diff(np.append(starts, len(positives))))


def _comparable(counts: Array) -> Array:
    """Counts in a type in which products of sums of them are exact, or as exact as they can be."""
    if counts.dtype.kind == "f" and not (counts == np.floor(counts)).all():
        return counts.astype(np.float64)
    if counts.sum() < WHOLE:
        return counts.astype(np.int64)
    return counts.astype(np.float64)


def _one_by_one(p: list[float], q: list[float]) -> Starts:
    """The usual algorithm with a stack, for the rare order in which every round pools but a few."""
    stack: list[tuple[float, float, int]] = []
    for i, (more_p, more_q) in enumerate(zip(p, q, strict=True)):
        start = i
        while stack and stack[-1][0] * more_q >= more_p * stack[-1][1]:
            before_p, before_q, start = stack.pop()
            more_p, more_q = more_p + before_p, more_q + before_q
        stack.append((more_p, more_q, start))
    return np.array([start for _, _, start in stack], dtype=np.intp)


# ----------------------------------------------------------------------
# Scores as whole numbers in the same order, so that a prefix of the bits is a bin.
#
# A double's bits, read as an integer, stand in the order of the doubles once the sign is settled: positive numbers get
# their highest bit set, negative ones are inverted. The highest `bits` of such a key name a bin: with 20 of them (sign,
# exponent, 8 bits of the mantissa) there are 256 bins between any power of two and the next, wherever the scores lie.

Keys = NDArray[np.uint64]

EXACT: Final = 64
"""Bits of a whole key."""
COARSE: Final = 20
"""Bits of the bins into which scores are counted where there are too many trials to keep each."""
_SIGN: Final = np.uint64(1 << 63)


def keys_of(score: ArrayLike) -> Keys:
    """The keys of scores; −0.0 and 0.0 are one score. NaN has no place in the order and must not come here.

    >>> keys = keys_of([-np.inf, -1.0, -0.0, 0.0, 5e-324, 1.0, np.inf])
    >>> bool((np.diff(keys.astype(object)) >= 0).all()), int(keys[3] - keys[2])
    (True, 0)
    """
    values = np.asarray(score, dtype=np.float64) + 0.0  # −0.0 + 0.0 is 0.0
    bits = values.view(np.int64)
    return values.view(np.uint64) ^ ((bits >> 63).view(np.uint64) | _SIGN)


def scores_of(keys: Keys) -> Floats:
    """The scores that have these keys.

    >>> scores_of(keys_of([-2.5, 0.1, np.inf]))
    array([-2.5,  0.1,  inf])
    """
    negative = keys < _SIGN
    return (keys ^ np.where(negative, ~np.uint64(0), _SIGN)).view(np.float64)


def bins_of(keys: Keys, bits: int) -> Keys:
    """The bins of keys: their highest bits.

    >>> bins_of(keys_of([1.0, 1.001, 1.01]), COARSE).tolist()
    [786176, 786176, 786178]
    """
    return keys if bits == EXACT else keys >> np.uint64(EXACT - bits)


def first_key(bins: Keys, bits: int) -> Keys:
    """The lowest key of each bin."""
    return bins if bits == EXACT else bins << np.uint64(EXACT - bits)
