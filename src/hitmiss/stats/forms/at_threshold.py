"""AtThreshold: read at one fixed threshold (actDCF, accuracy of a fixed rule)."""

# ruff: noqa: ARG002  (a method of the base class answers for the forms that need nothing)

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hitmiss.core.sorting import Floats, Number
from hitmiss.core.tally import Tally

if TYPE_CHECKING:
    from hitmiss.stats.curve import Curve
from hitmiss.stats.forms.base import Drawn, Errors, Form, Mask, Sampled


@dataclass(frozen=True)
class AtThreshold(Form):
    """A function of the counts at one fixed threshold (accept if score >= threshold).

    `combine(missed, positives, accepted, negatives)`: missed = positives below, accepted = negatives not below.
    """

    threshold: float
    combine: Callable[[Number, Number, Number, Number], Number]
    needs_both = True
    by_value = True
    fewest_errors = 1

    def value(self, tally: Tally) -> float:
        """Return the number at the threshold; NaN without both classes."""
        return float(self.combine(*self.counts(tally))) if tally.has_both_classes else float("nan")

    def errors(self, sample: Sampled) -> tuple[Errors, ...]:
        """Return the errors at the threshold."""
        if not sample.tally.has_both_classes:
            return ()
        missed, positives, accepted, negatives = self.counts(sample.tally)
        now = self.combine(missed, positives, accepted, negatives)
        one_missed = self.combine(missed + 1, positives, accepted, negatives) - now
        one_accepted = self.combine(missed, positives, accepted + 1, negatives) - now
        if sample.weight is not None:  # sums of weights are no numbers of errors
            passed = sample.score >= self.threshold
            missed, accepted = (sample.positive & ~passed).sum().item(), (~sample.positive & passed).sum().item()
        return (
            Errors("miss", int(missed), abs(float(one_missed))),
            Errors("false alarm", int(accepted), abs(float(one_accepted))),
        )

    def counts(self, tally: Tally) -> tuple[float, float, float, float]:
        """Return missed positives, positives, accepted negatives and negatives."""
        point = tally.point_at(self.threshold)
        accepted = tally.n_negative - tally.negatives[point].item()
        return tally.positives[point].item(), tally.n_positive, accepted, tally.n_negative

    def replicates(self, drawn: Drawn) -> Floats:
        """Return the number from the counts on both sides of the threshold."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.combine(*drawn.counts_at(self.threshold)))

    def merits(self, sample: Sampled, best: str) -> Floats | None:
        """Return whether each decision is right."""
        return np.asarray((sample.score >= self.threshold) == sample.positive, dtype=np.float64)

    @property
    def thresholds(self) -> tuple[float, ...]:
        """Its own threshold."""
        return (self.threshold,)

    def points(self, tally: Tally) -> list[int]:
        """Return the point at the threshold."""
        return [tally.point_at(self.threshold)]

    def on_curve(self, curve: Curve) -> tuple[Floats, Mask] | None:
        """Read the number at a point that is known in every replicate."""
        cp, cn = curve.at(self.threshold)
        # The threshold is a cut of every plan, so the counts on both sides are known and nothing is in doubt.
        return np.asarray(self.combine(cp, curve.n1, curve.n0 - cn, curve.n0)), np.zeros(len(cp), dtype=bool)
