"""The tally: for one cell of trials, the counts from which every number that depends on a threshold is computed.

A tally holds, for each distinct score in ascending order, how many positives and negatives lie below it. EER, costs,
ROC and PR areas, the best threshold and every operating point need one pass over it. Tallies can be merged, and a
bootstrap replicate is a tally with other counts on the same scores.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.core.errors import DataError
from hitmiss.core.sorting import Array, Floats, ascending, ascending_by_class, chosen


@dataclass(frozen=True, eq=False)
class Tally:
    """Distinct scores in ascending order, with cumulative counts per class. Make it with `Tally.of`.

    Point `i` of the error curve rejects exactly the trials with the `i` lowest distinct scores:
    miss rate = positives[i] / n_positive, false-alarm rate = (n_negative - negatives[i]) / n_negative.

    Parameters
    ----------
    score
        The distinct scores, ascending.
    positives, negatives
        `positives[i]` and `negatives[i]` count the trials with the `i` lowest scores. So both start at 0 and have one
        entry more than `score`.

    Examples
    --------
    >>> t = Tally.of([1, 0, 1, 0], [0.9, 0.1, 0.4, 0.4])
    >>> t.score, t.positives, t.negatives
    (array([0.1, 0.4, 0.9]), array([0, 0, 1, 2], dtype=int32), array([0, 1, 2, 2], dtype=int32))
    """

    score: Floats
    positives: Array
    negatives: Array

    @classmethod
    def of(cls, label: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None) -> Tally:
        """Count trials given as arrays.

        Parameters
        ----------
        label
            1 or True for the positive class, 0 or False for the other.
        score
            The scores; higher means positive.
        weight
            The weight of each trial; None: 1 each.

        Returns
        -------
        Tally
            The counts.

        Raises
        ------
        DataError
            For labels, scores or weights that are not allowed.
        """
        positive, values, weights = check_trials(label, score, weight)
        if weights is None:
            return cls.of_ordered(*_merged(*ascending_by_class(values, positive)))
        weighted = (values[positive], weights[positive]), (values[~positive], weights[~positive])
        return merge(
            _weighted_class(s, w, is_positive) for (s, w), is_positive in zip(weighted, (True, False), strict=True)
        )

    @classmethod
    def of_classes(cls, positive: Floats, negative: Floats) -> Tally:
        """Count trials given as the scores of each class."""
        return cls.of_ordered(*_merged(ascending(positive), ascending(negative)))

    @classmethod
    def of_sorted(cls, positive: Floats, negative: Floats) -> Tally:
        """Count trials given as the scores of each class, each in ascending order."""
        return cls.of_ordered(*_merged(positive, negative))

    @classmethod
    def of_ordered(cls, merged: Floats, is_positive: NDArray[np.bool_]) -> Tally:
        """Count trials given in ascending order of their scores."""
        n = len(merged)
        positives = np.zeros(n + 1, dtype=np.int32 if n < 2**31 else np.int64)
        np.cumsum(is_positive, out=positives[1:])
        negatives = np.arange(n + 1, dtype=positives.dtype)
        negatives -= positives
        is_last = np.ones(n, dtype=bool)
        np.not_equal(merged[1:], merged[:-1], out=is_last[:-1])
        if is_last.all():
            return cls(merged, positives, negatives)
        merged, *counts = chosen(is_last, merged, positives[1:], negatives[1:])
        return cls(merged, *map(_from_zero, counts))

    @classmethod
    def of_counts(cls, score: ArrayLike, positive: ArrayLike, negative: ArrayLike) -> Tally:
        """Make a tally from counts per score, in any order and with repeats, as shards and databases deliver them."""
        values = np.asarray(score, dtype=np.float64)
        pos, neg = np.asarray(positive), np.asarray(negative)
        if not values.shape == pos.shape == neg.shape or values.ndim != 1:
            shapes = f"{values.shape}, {pos.shape} and {neg.shape}"
            raise DataError.of("unequal-length", names=("score", "counts"), sizes=shapes)
        if np.isnan(values).any():
            raise DataError.of("nan-score", n=int(np.isnan(values).sum()), total=len(values))
        if any(not np.isfinite(c).all() or (c < 0).any() for c in (pos, neg)):
            raise DataError.of("bad-counts")
        distinct, place = np.unique(values, return_inverse=True)
        size = len(distinct)
        sums = [np.bincount(place, weights=c, minlength=size).astype(np.result_type(c, np.int64)) for c in (pos, neg)]
        return cls(distinct, _from_zero(np.cumsum(sums[0])), _from_zero(np.cumsum(sums[1])))

    @property
    def n_positive(self) -> float:
        """The total weight of the positive trials."""
        return self.positives[-1].item() if len(self.positives) else 0

    @property
    def n_negative(self) -> float:
        """The total weight of the negative trials."""
        return self.negatives[-1].item() if len(self.negatives) else 0

    @property
    def has_both_classes(self) -> bool:
        """Whether there are trials of both classes, which any comparison of the classes needs."""
        return self.n_positive > 0 and self.n_negative > 0

    @cached_property
    def positive_counts(self) -> Array:
        """The number of positives at each distinct score."""
        return np.diff(self.positives)

    @cached_property
    def negative_counts(self) -> Array:
        """The number of negatives at each distinct score."""
        return np.diff(self.negatives)

    @cached_property
    def places(self) -> dict[object, int]:
        """Points of the curve that were found by looking at all of it, kept by what looked for them."""
        return {}

    @property
    def tied_mass(self) -> float:
        """The share of trials whose score occurs in both classes, for which the rule for ties matters.

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
        """Whether some scores are known only by the bins that contain them."""
        return False

    def known(self, form: object) -> float | None:  # noqa: ARG002
        """Return a number that was computed earlier from scores that this tally does not hold; otherwise None."""
        return None

    def point_at(self, threshold: float) -> int:
        """Return the point of the error curve that accepts `score >= threshold`."""
        return int(np.searchsorted(self.score, threshold, side="left"))

    def threshold_of(self, point: int) -> float:
        """Return the threshold that accepts `score >= threshold` at that point; +inf if everything is rejected."""
        return float(self.score[point]) if point < len(self.score) else float("inf")

    def rescored(self, score: Floats) -> Tally:
        """Return the same counts on scores mapped by a non-decreasing function."""
        keep = np.append(score[1:] != score[:-1], True) if len(score) else np.zeros(0, dtype=bool)
        ends = np.flatnonzero(keep) + 1
        return Tally(score[keep], _from_zero(self.positives[ends]), _from_zero(self.negatives[ends]))


def _merged(positive: Floats, negative: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Merge the scores of two classes, each in ascending order, and say which are positive.

    A function of its own, so that the sorted scores are freed before anything is counted: a tally of many trials should
    not need three copies of them.
    """
    # The position of each positive in the merged order: sorting the values and merging is faster than an argsort.
    place = np.searchsorted(negative, positive, side="left")
    place += np.arange(len(positive))
    is_positive = np.zeros(len(positive) + len(negative), dtype=bool)
    is_positive[place] = True
    merged = np.empty(len(is_positive))
    merged[place] = positive
    merged[~is_positive] = negative
    return merged, is_positive


def merge(tallies: Iterable[Tally]) -> Tally:
    """Merge tallies into one, to pool groups or to join shards.

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
    """Return a hash of how often each score occurs in each cell; it does not depend on order or on how cells are split.

    Parameters
    ----------
    cells
        For each cell: a text that identifies it, its scores, and how often each score occurs.

    Returns
    -------
    str
        The hash.

    Notes
    -----
    Each score is mixed with the hash of its cell into 64 bits (the finaliser of SplitMix64). The results are added, as
    often as the score occurs, modulo 2**64; this is done twice, with two hashes of the cell. A sum does not depend on
    order and needs no sorting, so streamed trials give the same hash as trials in memory, and no version of numpy or
    polars changes it.

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
    """Apply the finaliser of SplitMix64: each bit of the input changes about half of the output bits."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = bits ^ (bits >> np.uint64(31))
    return mixed


def check_trials(
    label: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None
) -> tuple[NDArray[np.bool_], Floats, Array | None]:
    """Check and convert arrays: return which trials are positive, the scores and the weights, or raise `DataError`."""
    positive = check_label(label)
    if np.ma.is_masked(score):
        raise DataError.of("masked-value", name="score")
    try:
        values = np.asarray(score, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError.of("not-a-number/value", name="score", error=str(error)) from None
    if values.shape != positive.shape or values.ndim != 1:
        raise DataError.of("unequal-length", names=("label", "score"), sizes=(str(positive.shape), str(values.shape)))
    if np.isnan(values).any():
        places = np.flatnonzero(np.isnan(values))
        raise DataError.of("nan-score/at", n=len(places), total=len(values), first=places[0])
    return positive, values, check_weight(weight, len(values))


def check_label(label: ArrayLike) -> NDArray[np.bool_]:
    """Return labels as a mask of the positives; only 0, 1, True and False are accepted."""
    if np.ma.is_masked(label):
        raise DataError.of("masked-value", name="label")
    given = np.asarray(label)
    if given.ndim != 1:
        raise DataError.of("not-flat", name="label", shape=str(given.shape))
    if given.dtype == np.bool_:
        return given
    positive = given == 1
    wrong = ~(positive | (given == 0))
    if wrong.any():
        raise DataError.of("not-a-label", given=given[wrong].tolist()[0], wrong=int(np.argmax(wrong)))
    return np.asarray(positive, dtype=np.bool_)


def check_weight(weight: ArrayLike | None, n: int) -> Array | None:
    """Return weights as numbers, one per trial, none negative. None stays None and means 1 each."""
    if weight is None:
        return None
    weights = np.asarray(weight)
    if weights.dtype.kind not in "iu":
        weights = weights.astype(np.float64)
    if weights.shape != (n,):
        raise DataError.of("bad-weight/shape", n=n, shape=str(weights.shape))
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise DataError.of("bad-weight/negative")
    return weights


def _weighted_class(score: Floats, weight: Array, is_positive: bool) -> Tally:
    present = weight > 0
    zeros = np.zeros(int(present.sum()), dtype=weight.dtype)
    pos, neg = (weight[present], zeros) if is_positive else (zeros, weight[present])
    return Tally.of_counts(score[present], pos, neg)


def _from_zero(cumulative: Array) -> Array:
    return np.concatenate([np.zeros(1, dtype=cumulative.dtype), cumulative])
