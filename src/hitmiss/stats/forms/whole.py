"""Whole: anything else that a tally determines (average precision, hull EER)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hitmiss.core.errors import UsageError
from hitmiss.core.sorting import Floats
from hitmiss.core.tally import Tally
from hitmiss.stats.forms.base import Drawn, Form, Passing


@dataclass(frozen=True)
class Whole(Form):
    """Any function of a tally.

    `unseen` is as for `Crossing`; `passes(n_positive, n_negative)` computes the function from stretches of scores, if
    this is possible; `of_cells(p, q)` computes it for many replicates at once, from the positives and negatives in
    cells (replicate × cell, ascending scores).
    """

    function: Callable[[Tally], float]
    unseen: Callable[[int, int, float], float] | None = None
    passes: Callable[[int, int], Passing] | None = None
    is_fitted: bool = False
    of_cells: Callable[[Floats, Floats], Floats] | None = None
    every_score = True

    def value(self, tally: Tally) -> float:
        """Return the number."""
        known = tally.known(self)
        return float(self.function(tally)) if known is None else known

    def replicates(self, drawn: Drawn) -> Floats:
        """Return the function of each replicate's tally."""
        return drawn.whole(self)

    def most_unseen(self, n_positive: int, n_negative: int, level: float) -> float | None:
        """See `unseen`."""
        return None if self.unseen is None else self.unseen(n_positive, n_negative, level)

    def passing(self, n_positive: int, n_negative: int) -> Passing | None:
        """See `passes`."""
        if self.passes is None:
            # Bins would give another number, so none is given.
            raise UsageError.of("tally-too-large")
        return self.passes(n_positive, n_negative)
