"""Figures that need every score, read while the scores pass by in ascending order: AUC, Cllr, Brier, PAV.

The scores of a sample come as tallies of one stretch after the other. Sums are added in the very order in which they are
added in memory, so that the figures are the same to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np

from hitmiss.errors import UsageError
from hitmiss.metrics.detection import hull_eer, min_cllr_of_tally, pav_blocks
from hitmiss.metrics.ranking import average_precision_of_tally
from hitmiss.stats.delong import Steps, standing, whole_sum
from hitmiss.stats.forms import CHUNK, ClassSums, Form, Whole
from hitmiss.stats.keys import Keys
from hitmiss.tally import Array, Floats, Tally

BY_BLOCKS: Final = (min_cllr_of_tally, hull_eer)
"""Functions of a tally that depend on nothing but its PAV blocks."""


class Passing(Protocol):
    """A figure that is read from passing stretches."""

    def add(self, part: Tally) -> None:
        """The next stretch of scores."""

    def value(self) -> float:
        """The figure, once all have passed."""


def passing(form: Form, n_positive: int, n_negative: int) -> Passing | None:
    """How a form is read from passing stretches; None for one that needs few scores only."""
    if isinstance(form, ClassSums):
        return _Sums(form, n_positive, n_negative)
    if isinstance(form, Whole) and form.function in BY_BLOCKS:
        return _Blocks(form.function)
    if isinstance(form, Whole) and form.function is average_precision_of_tally:
        return _Precision(n_positive, n_negative)
    if isinstance(form, Whole):
        raise UsageError("this metric needs the whole tally, and the trials are too many to keep; raise --memory")
    return None


@dataclass(eq=False)
class _Sums:
    """Sums over both classes, in chunks of as many scores as in memory (see `forms.weighted_sum`)."""

    form: ClassSums
    n_positive: int
    n_negative: int
    totals: list[float] = field(default_factory=lambda: [0.0, 0.0])
    waiting: list[tuple[Floats, Array, Array]] = field(default_factory=list)
    held: int = 0

    def add(self, part: Tally) -> None:
        self.waiting.append((part.score, part.positive_counts, part.negative_counts))
        self.held += len(part.score)
        if self.held >= CHUNK:
            columns = [np.concatenate(c) for c in zip(*self.waiting, strict=True)]
            whole = self.held // CHUNK * CHUNK
            for start in range(0, whole, CHUNK):
                self._chunk(*(c[start : start + CHUNK] for c in columns))
            self.waiting, self.held = [(columns[0][whole:], columns[1][whole:], columns[2][whole:])], self.held - whole

    def _chunk(self, score: Floats, positives: Array, negatives: Array) -> None:
        for i, (term, counts) in enumerate(((self.form.positive, positives), (self.form.negative, negatives))):
            present = counts > 0
            self.totals[i] += float(np.sum(term(score[present]) * counts[present]))

    def value(self) -> float:
        if self.held:
            self._chunk(*(np.concatenate(c) for c in zip(*self.waiting, strict=True)))
            self.waiting, self.held = [], 0
        if self.form.needs_both and not (self.n_positive and self.n_negative):
            return math.nan
        return float(self.form.combine(self.totals[0], self.n_positive, self.totals[1], self.n_negative))


@dataclass(eq=False)
class _Blocks:
    """Pooling adjacent violators stretch by stretch, then the blocks of all: pooled trials stay pooled."""

    function: Callable[[Tally], float]
    counts: list[tuple[Floats, Floats]] = field(default_factory=list)

    def add(self, part: Tally) -> None:
        if len(part.score):
            self.counts.append(pav_blocks(part))

    def value(self) -> float:
        p, q = (np.concatenate([np.zeros(1), *c]) for c in zip(*self.counts, strict=True))
        return float(self.function(Tally(np.arange(len(p) - 1, dtype=np.float64), np.cumsum(p), np.cumsum(q))))


@dataclass(eq=False)
class _Precision:
    """Average precision: precisions at each positive score, summed."""

    n_positive: int
    n_negative: int
    below: tuple[int, int] = (0, 0)
    sums: list[float] = field(default_factory=list)

    def add(self, part: Tally) -> None:
        p, q = self.below
        accepted_positives = (self.n_positive - p) - part.positives[:-1].astype(np.float64)
        accepted = accepted_positives + ((self.n_negative - q) - part.negatives[:-1])
        gained = part.positive_counts
        held = gained > 0
        self.sums.append(float(np.sum(gained[held] * accepted_positives[held] / accepted[held])))
        self.below = p + int(part.n_positive), q + int(part.n_negative)

    def value(self) -> float:
        return math.fsum(self.sums) / self.n_positive if self.n_positive else math.nan


@dataclass(eq=False)
class Pairs:
    """Pairs in the right order, counted in whole numbers; and the spread of the shares around a guess of their mean."""

    n_positive: int
    n_negative: int
    guess: float
    below: tuple[int, int] = (0, 0)
    twice: int = 0
    tied: int = 0
    moments: Floats = field(default_factory=lambda: np.zeros(4))

    def add(self, part: Tally) -> None:
        """The next stretch of scores."""
        p0, q0 = self.below
        p, q = part.positives.astype(np.int64) + p0, part.negatives.astype(np.int64) + q0
        gained, lost = part.positive_counts, part.negative_counts
        under, over = q[:-1] + q[1:], p[:-1] + p[1:]
        self.twice += int(whole_sum(gained.astype(np.int64), under))
        self.tied += int((gained + lost)[(gained > 0) & (lost > 0)].sum())
        right = (0.5 / max(self.n_negative, 1)) * under - self.guess
        wrong = (1.0 - self.guess) - (0.5 / max(self.n_positive, 1)) * over
        for i, (counts, share) in enumerate(((gained, right), (lost, wrong))):
            self.moments[2 * i] += float(np.sum(counts * share))
            self.moments[2 * i + 1] += float(np.sum(counts * share * share))
        self.below = int(p[-1]), int(q[-1])

    def add_classes(self, positive: Keys, negative: Keys) -> None:
        """The next stretch, given as the keys of each class, ascending: only the positives are gone through."""
        p0, q0 = self.below
        held, below, upto = standing(positive, negative)
        under, tied = below + upto + 2 * q0, upto - below
        self.twice += int(whole_sum(held, under))
        self.tied += int(np.sum((held + tied)[tied > 0]))
        own = (0.5 / max(self.n_negative, 1)) * under - self.guess
        passed = np.append(0, np.cumsum(held)) + p0  # positives before each step and after the last
        between = np.append(below, len(negative)) - np.append(0, upto)
        apart, level = ((1.0 - self.guess) - p / max(self.n_positive, 1) for p in (passed, passed[:-1] + 0.5 * held))
        self.moments[0] += float(np.sum(held * own))
        self.moments[1] += float(np.sum(held * own * own))
        self.moments[2] += float(np.sum(between * apart)) + float(np.sum(tied * level))
        self.moments[3] += float(np.sum(between * apart * apart)) + float(np.sum(tied * level * level))
        self.below = p0 + len(positive), q0 + len(negative)

    @property
    def tied_mass(self) -> float:
        """Share of trials whose score both classes have."""
        return self.tied / max(self.n_positive + self.n_negative, 1)

    def steps(self) -> Steps:
        """What is asked of an AUC: its value to the last bit, and its variance."""
        return KnownSteps.of(self)


@dataclass(frozen=True, eq=False)
class KnownSteps(Steps):
    """An AUC whose area and variance are known."""

    @classmethod
    def of(cls, pairs: Pairs) -> KnownSteps:
        """From counted pairs."""
        nothing = np.zeros(0, dtype=np.int64)
        made = cls(nothing, nothing, nothing, pairs.n_positive, pairs.n_negative, True)
        total = pairs.n_positive * pairs.n_negative
        made.__dict__["area"] = pairs.twice / (2 * total) if total else math.nan
        made.__dict__["variance"] = _variance(pairs)
        return made


def _variance(pairs: Pairs) -> float:
    if pairs.n_positive < 2 or pairs.n_negative < 2:
        return math.nan
    found = 0.0
    for n, (first, second) in zip(
        (pairs.n_positive, pairs.n_negative), pairs.moments.reshape(2, 2).tolist(), strict=True
    ):
        found += (second - first * first / n) / (n - 1) / n
    return found
