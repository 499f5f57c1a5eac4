"""Stated confidences with how often they were right: what every metric of confidence is computed from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hitmiss.core.sorting import Floats
from hitmiss.core.tally import Tally


@dataclass(frozen=True, eq=False)
class Judged:
    """Answered trials by confidence, ascending: how many were right and wrong at each, and the number of all trials.

    Counts may have further axes in front, with one entry per replicate.
    """

    confidence: Floats
    right: Floats
    wrong: Floats
    n_all: float | Floats

    @classmethod
    def of(cls, tally: Tally, n_all: float = 0.0) -> Judged:
        """Return the content of a tally of `judged` trials."""
        return cls(
            tally.score, tally.positive_counts.astype(np.float64), tally.negative_counts.astype(np.float64), n_all
        )

    @property
    def n(self) -> Floats:
        """The number of answered trials with a confidence."""
        return np.asarray(self.right.sum(axis=-1) + self.wrong.sum(axis=-1))
