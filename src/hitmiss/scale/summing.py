"""The AUC and its variance, read while the scores pass by in ascending order (other figures: `stats.forms.Passing`).

The scores of a sample come as tallies of one stretch after the other. Sums are added in the very order in which they are
added in memory, so that the figures are the same to the last bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from hitmiss.core.tally import Floats, Tally
from hitmiss.stats.intervals import Steps, standing, whole_sum
from hitmiss.stats.sketch import Keys


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
