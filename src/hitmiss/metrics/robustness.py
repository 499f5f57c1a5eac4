"""Figures of attacks on classifiers of several labels: bits before and after, record by record.

Each figure is a share of records, kept as its terms: for each record how much it hits and how much it counts. The share is
the sum of the hits over the sum of the counts; drawn with weights a record (or a patient) it gives its replicates.

| figure              | hits                                        | counts                     |
|---------------------|---------------------------------------------|----------------------------|
| changed             | any bit differs from the clean prediction   | all records (documented)   |
| changed_correct     | the same                                    | records right before       |
| exact_match         | all bits equal the truth                    | all records                |
| robust_accuracy     | right before and after                      | all records                |
| target_success      | force: the bit is 1; suppress: it goes 1→0  | all records (documented)   |
| target_eligible     | the bit changes as aimed                    | records where it can       |
| target_base         | force: the bit was 1 before; suppress: 0    | all records                |
| flipped, lost, induced | a class's bit differs; goes 1→0; goes 0→1 | all; those at 1; those at 0 |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.core.errors import DataError, UnknownName
from hitmiss.core.values import Rate

Floats = NDArray[np.float64]
Bits = NDArray[np.int8]
MODES: Final = ("force", "suppress")


@dataclass(frozen=True, eq=False)
class Terms:
    """A share of records: what each hits, and what each counts.

    >>> Terms(np.array([1.0, 0.0, 1.0]), np.ones(3)).rate
    Rate(2/3 = 0.666667)
    """

    hits: Floats
    of: Floats

    @property
    def rate(self) -> Rate:
        """The share, which remembers its counts; NaN of nothing."""
        return Rate(float(self.hits.sum()), float(self.of.sum()))

    def replicates(self, weights: Any) -> Floats:
        """The share under each row of weights (replicate × record)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((weights @ self.hits) / (weights @ self.of))

    def where(self, mask: NDArray[np.bool_]) -> Terms:
        """The same for some of the records; the others count nothing."""
        return Terms(self.hits * mask, self.of * mask)


def _bits(*tables: ArrayLike) -> list[Bits]:
    found = [np.atleast_2d(np.asarray(t)) for t in tables]
    if len({t.shape for t in found}) > 1:
        raise DataError(f"bits must have the same shape, record × class; found {[t.shape for t in found]}")
    for table in found:
        if table.size and not np.isin(table, (0, 1)).all():
            raise DataError("bits are 0 or 1")
    return [t.astype(np.int8) for t in found]


def _of(hits: Any, of: Any = None) -> Terms:
    counted = np.ones(len(hits)) if of is None else np.asarray(of, dtype=np.float64)
    return Terms(np.asarray(hits, dtype=np.float64) * counted, counted)


def changed(clean: ArrayLike, adv: ArrayLike) -> Terms:
    """The documented success rate: any bit differs from the clean prediction; truth plays no part.

    >>> changed([[1, 0], [0, 0]], [[1, 1], [0, 0]]).rate
    Rate(1/2 = 0.5)
    """
    before, after = _bits(clean, adv)
    return _of((before != after).any(axis=1))


def changed_correct(truth: ArrayLike, clean: ArrayLike, adv: ArrayLike) -> Terms:
    """The literature's success rate: changed, among the records whose clean prediction was right in every bit."""
    y, before, after = _bits(truth, clean, adv)
    return _of((before != after).any(axis=1), (y == before).all(axis=1))


def exact_match(truth: ArrayLike, bits: ArrayLike) -> Terms:
    """Records right in every bit."""
    y, found = _bits(truth, bits)
    return _of((y == found).all(axis=1))


def robust_accuracy(truth: ArrayLike, clean: ArrayLike, adv: ArrayLike) -> Terms:
    """Records right before and after: accuracy that an attacker who may choose cannot take away."""
    y, before, after = _bits(truth, clean, adv)
    return _of((y == before).all(axis=1) & (y == after).all(axis=1))


def target_success(clean: ArrayLike, adv: ArrayLike, column: int, mode: str) -> Terms:
    """The documented targeted success: `force` the bit is 1 afterwards, `suppress` it goes from 1 to 0; over all records."""
    before, after = _bits(clean, adv)
    _check_mode(mode)
    if mode == "force":
        return _of(after[:, column] == 1)
    return _of((before[:, column] == 1) & (after[:, column] == 0))


def target_eligible(clean: ArrayLike, adv: ArrayLike, column: int, mode: str) -> Terms:
    """The same among the records whose bit could change: 0 before a force, 1 before a suppression."""
    before, after = _bits(clean, adv)
    _check_mode(mode)
    old = 0 if mode == "force" else 1
    return _of(after[:, column] != before[:, column], before[:, column] == old)


def target_base(clean: ArrayLike, column: int, mode: str) -> Terms:
    """Records that need no attack: the bit is already where it is aimed."""
    (before,) = _bits(clean)
    _check_mode(mode)
    return _of(before[:, column] == (1 if mode == "force" else 0))


def flipped(clean: ArrayLike, adv: ArrayLike, column: int) -> Terms:
    """A class's bit differs."""
    before, after = _bits(clean, adv)
    return _of(before[:, column] != after[:, column])


def lost(clean: ArrayLike, adv: ArrayLike, column: int) -> Terms:
    """A class's bit goes from 1 to 0, among those at 1."""
    return target_eligible(clean, adv, column, "suppress")


def induced(clean: ArrayLike, adv: ArrayLike, column: int) -> Terms:
    """A class's bit goes from 0 to 1, among those at 0."""
    return target_eligible(clean, adv, column, "force")


def _check_mode(mode: str) -> None:
    if mode not in MODES:
        raise UnknownName("target mode", mode, MODES)


def surviving(minimal: ArrayLike, strengths: ArrayLike) -> Floats:
    """The share of records that no attack below or at each strength flips: 1 − the distribution of minimal strengths.

    >>> surviving([0.1, 0.4, np.inf], [0.1, 0.5]).round(4).tolist()
    [0.6667, 0.3333]
    """
    least = np.asarray(minimal, dtype=np.float64)
    if not len(least):
        raise DataError("there are no minimal strengths")
    return np.array([float(np.mean(least > s)) for s in np.asarray(strengths, dtype=np.float64)])


def auc_replicates(positive: ArrayLike, score: ArrayLike, weights: Any) -> Floats:
    """The area under the ROC curve under each row of weights (replicate × record); NaN where a class has no weight.

    >>> auc_replicates([1, 0, 1], [0.9, 0.5, 0.1], np.array([[1, 1, 1], [0, 1, 2], [1, 0, 1]])).tolist()
    [0.5, 0.0, nan]
    """
    is_positive, s, w = np.asarray(positive).astype(bool), np.asarray(score, dtype=np.float64), np.asarray(weights)
    up, down = s[is_positive], s[~is_positive]
    wins = (up[:, None] > down) + 0.5 * (up[:, None] == down)
    above, below = w[:, is_positive].astype(np.float64), w[:, ~is_positive].astype(np.float64)
    total = above.sum(axis=1) * below.sum(axis=1)
    hits = ((above @ wins) * below).sum(axis=1)
    return np.asarray(np.divide(hits, total, out=np.full(len(w), np.nan), where=total > 0))
