"""Summed, ClassSums, PairShare: made of a sum over positives and a sum over negatives (Cllr, Brier, ROC AUC)."""

# ruff: noqa: ARG002  (a method of the base class answers for the forms that need nothing)

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from hitmiss.core.sorting import Array, Floats, Number
from hitmiss.core.tally import Tally
from hitmiss.stats.delong import placements
from hitmiss.stats.forms.base import CHUNK, FINE_GRID, Drawn, Form, Mask, Passing, Sampled


class Summed(Form):
    """A form made of one sum over positives and one over negatives."""

    is_summed = True
    every_score = True

    @abstractmethod
    def terms(self, positive: Mask, score: Floats) -> Floats:
        """Return what each trial adds to the sum of its class."""

    @abstractmethod
    def of_sums(self, sum1: Number, n1: Number, sum0: Number, n0: Number, area: float) -> Number:
        """Return the number from sums of `terms`; `area` is the mean of the positives' terms in the sample."""


@dataclass(frozen=True)
class ClassSums(Summed):
    """A function `combine` of one sum over positives and one over negatives.

    Its arguments: the sum of positive(score) over positives, their number, the sum of negative(score) over negatives,
    and their number.
    """

    positive: Callable[[Floats], Floats]
    negative: Callable[[Floats], Floats]
    combine: Callable[[Number, Number, Number, Number], Number]
    needs_both: bool = True
    by_value = True

    def value(self, tally: Tally) -> float:
        """Return the number; NaN without the classes that it needs."""
        known = tally.known(self)
        if known is not None:
            return known
        total = tally.n_positive + tally.n_negative
        if not total or (self.needs_both and not tally.has_both_classes):
            return float("nan")
        sums = (
            weighted_sum(self.positive, tally.score, tally.positive_counts),
            weighted_sum(self.negative, tally.score, tally.negative_counts),
        )
        return float(self.combine(sums[0], tally.n_positive, sums[1], tally.n_negative))

    def replicates(self, drawn: Drawn) -> Floats:
        """Return the number of the sums."""
        return np.asarray(self.combine(*drawn.class_sums(self)))

    def terms(self, positive: Mask, score: Floats) -> Floats:
        """Return what each trial adds to the sum of its class."""
        out = np.empty(len(score))
        out[positive], out[~positive] = self.positive(score[positive]), self.negative(score[~positive])
        return out

    def of_sums(self, sum1: Number, n1: Number, sum0: Number, n0: Number, area: float) -> Number:
        """Return the number from sums of `terms`."""
        return np.asarray(self.combine(sum1, n1, sum0, n0))

    def merits(self, sample: Sampled, best: str) -> Floats | None:
        """Return what each trial adds, with the sign that makes higher better."""
        terms = np.where(sample.positive, self.positive(sample.score), self.negative(sample.score))
        return np.asarray(terms if best == "high" else -terms, dtype=np.float64)

    def points(self, tally: Tally) -> list[int]:
        """Return cuts that separate scores with infinite terms, and make small cells at the ends."""
        # A cell is drawn as its mean term and a normal remainder. A few extreme terms are not normal: their cells are small.
        return [*self._infinite_ends(tally), *_graded_ends(tally)]

    def _infinite_ends(self, tally: Tally) -> list[int]:
        """Give scores with an infinite term their own cells, so that their neighbours keep finite sums."""
        if not len(tally.score):
            return []
        ends = tally.score[[0, -1]]
        infinite = ~np.isfinite(self.positive(ends)) | ~np.isfinite(self.negative(ends))
        return [place for place, found in zip((1, len(tally.score) - 1), infinite, strict=True) if found]

    def passing(self, n_positive: int, n_negative: int) -> Passing | None:
        """Return an object that adds up chunk by chunk."""
        return _PassingSums(self, n_positive, n_negative)


@dataclass(frozen=True)
class PairShare(Summed):
    """The share of (positive, negative) pairs in which the positive scores higher; equal scores count half."""

    is_area = True
    needs_both = True
    by_rank = True
    fine_unit_cells = True

    def value(self, tally: Tally) -> float:
        """Return the area under the ROC curve; NaN without both classes."""
        if not tally.has_both_classes:
            return float("nan")
        total = 0.0
        for start in range(0, len(tally.score), CHUNK):
            part, after = slice(start, start + CHUNK), slice(start + 1, start + CHUNK + 1)
            # In doubles: products of counts of billions pass the largest integer.
            below = tally.negatives[: len(tally.score)][part].astype(np.float64)
            upto = tally.negatives[after]
            gained = np.diff(tally.positives[start : start + CHUNK + 1])
            # A positive is above all negatives below its group and tied with those inside it, which count half.
            total += float(np.sum(gained * (below + upto)))
        return 0.5 * total / (float(tally.n_positive) * float(tally.n_negative))

    def measure(self, sample: Sampled) -> float:
        """Compute it from the positions of the rarer class among the other, which needs no tally."""
        return sample.steps.area

    def replicates(self, drawn: Drawn) -> Floats:
        """Return the share of the pairs drawn."""
        return drawn.pair_share()

    def terms(self, positive: Mask, score: Floats) -> Floats:
        """Return the share of the other class that each trial is ordered correctly against."""
        return placements(positive, score)

    def of_sums(self, sum1: Number, n1: Number, sum0: Number, n0: Number, area: float) -> Number:
        """Return the number from sums of `terms`, to first order around the area of the sample."""
        # A mean over pairs is not a sum over trials. To first order (the projection that DeLong uses) it is one.
        return sum1 / n1 + sum0 / n0 - area


def weighted_sum(term: Callable[[Floats], Floats], score: Floats, counts: Array) -> float:
    """Return the sum of term(score) over the trials of one class; scores that the class does not have are skipped."""
    total = 0.0
    for start in range(0, len(score), CHUNK):
        part = counts[start : start + CHUNK]
        # A term may be infinite where this class has no trial, and 0 × ∞ is NaN.
        present = part > 0
        with np.errstate(over="ignore"):  # a sum beyond every float is infinite
            total += float(np.sum(term(score[start : start + CHUNK][present]) * part[present]))
    return total


@dataclass(eq=False)
class _PassingSums:
    """Sums over both classes, in the same chunks as in memory (see `weighted_sum`): equal to the last bit."""

    form: ClassSums
    n_positive: int
    n_negative: int
    totals: list[float] = field(default_factory=lambda: [0.0, 0.0])
    waiting: list[tuple[Floats, Array, Array]] = field(default_factory=list)
    held: int = 0

    def add(self, part: Tally) -> None:
        self.waiting.append((part.score, part.positive_counts, part.negative_counts))
        self.held += len(part.score)
        # Only whole chunks are added: where a chunk begins may not depend on how the scores were cut into stretches, since
        # the order of additions decides the last bits.
        if self.held >= CHUNK:
            columns = [np.concatenate(c) for c in zip(*self.waiting, strict=True)]
            whole = self.held // CHUNK * CHUNK
            for start in range(0, whole, CHUNK):
                self._chunk(*(c[start : start + CHUNK] for c in columns))
            self.waiting, self.held = [(columns[0][whole:], columns[1][whole:], columns[2][whole:])], self.held - whole

    def _chunk(self, score: Floats, positives: Array, negatives: Array) -> None:
        for i, (term, counts) in enumerate(((self.form.positive, positives), (self.form.negative, negatives))):
            present = counts > 0
            with np.errstate(over="ignore"):
                self.totals[i] += float(np.sum(term(score[present]) * counts[present]))

    def value(self) -> float:
        if self.held:
            self._chunk(*(np.concatenate(c) for c in zip(*self.waiting, strict=True)))
            self.waiting, self.held = [], 0
        if self.form.needs_both and not (self.n_positive and self.n_negative):
            return math.nan
        return float(self.form.combine(self.totals[0], self.n_positive, self.totals[1], self.n_negative))


def _graded_ends(tally: Tally) -> list[int]:
    """Return cells of 1, 1, … then 8, 16, 32 … trials at both ends of each class.

    A few extreme terms can dominate a sum, so the ends are cut finely.
    """
    points: list[int] = []
    for cumulative in (tally.positives, tally.negatives):
        n = int(cumulative[-1])
        steps = [k for k in (*range(1, 9), *(2**i for i in range(4, 40))) if k <= n / FINE_GRID or k <= 8]
        points += np.searchsorted(cumulative, steps).tolist()
        points += (np.searchsorted(cumulative, n - np.array(steps), side="right") - 1).tolist()
    return points
