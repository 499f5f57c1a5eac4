"""Permutation tests of two runs: the answers of units (or trials) are exchanged between them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import UsageError
from hitmiss.core.sorting import Floats
from hitmiss.core.weights import refuse_sampling
from hitmiss.engine.paired_draws import OUTCOMES, PairedDraws
from hitmiss.engine.paired_samples import Both, PairedSample, Part, outcomes
from hitmiss.engine.paired_shares import Mask, shared_denominator
from hitmiss.metrics.counts import Counts
from hitmiss.stats.forms.base import Form, Functional
from hitmiss.stats.forms.trials import OfCounts
from hitmiss.stats.permutation import sign_flip, swap
from hitmiss.stats.random import generator

PERMUTATIONS: Final = 10_000
"""Number of permutations if no number of replicates is given."""


def permuted(question: Both, sample: PairedSample, draws: PairedDraws) -> float:
    """Test by exchanging the answers of units (or trials) between the runs."""
    replicates = max(draws.plan.bootstrap, PERMUTATIONS)
    rng = generator(draws.plan.seed, "permutation", sample.parts[0].a.part, question[0].stream)
    rows = [part.a.rows for part in sample.parts]
    unit = draws.a.unit
    codes, first = np.unique(np.concatenate(rows) if unit is None else unit[np.concatenate(rows)], return_inverse=True)
    units = np.split(first, np.cumsum([len(r) for r in rows])[:-1])
    shared = shared_denominator(question, sample)
    if shared is not None:
        gained = np.zeros(len(codes))
        for (inside, hit_a, hit_b), own, part in zip(shared, units, sample.parts, strict=True):
            counted = inside if part.a.weight is None else inside * part.a.weight
            terms = (hit_b.astype(np.float64) - hit_a) * counted / (float(counted.sum()) or 1.0)
            gained += np.bincount(own, weights=terms, minlength=len(codes))
        return sign_flip(gained, replicates, rng)
    refuse_sampling(sample.parts[0].a.columns.trials, f"a permutation test of {question[0].text}")
    if question[0].form.kind == "columns":
        raise UsageError.of("no-exchange", text=question[0].text)
    sides = [_Exchange.of(question, part) for part in sample.parts]

    def statistic(swapped: Mask) -> float:
        deltas = [side.delta(swapped[own]) for side, own in zip(sides, units, strict=True)]
        return math.fsum(deltas) / len(deltas)

    return swap(statistic, len(codes), max(draws.plan.bootstrap, 1_000), rng)


@dataclass(frozen=True, eq=False)
class _Exchange:
    """The answers of both runs to the same trials, prepared to be exchanged."""

    question: Both
    positive: Mask
    a: NDArray[np.float64] | NDArray[np.int64]
    b: NDArray[np.float64] | NDArray[np.int64]

    @classmethod
    def of(cls, question: Both, part: Part) -> _Exchange:
        """Take outcomes of decisions; or scores, if the metric depends on their values.

        Otherwise their ranks in each run.
        """
        form = question[0].form
        if not isinstance(form, Form):
            codes = [outcomes(s) for s in (part.a, part.b)]
            return cls(question, part.positive, codes[0], codes[1])
        scores = [s.score if form.by_value else _ranks(s.score) for s in (part.a, part.b)]
        return cls(question, part.positive, scores[0], scores[1])

    def delta(self, swapped: Mask) -> float:
        """Return the difference after exchanging the marked trials."""
        sides = (np.where(swapped, self.b, self.a), np.where(swapped, self.a, self.b))
        first, second = (self._figure(q.form, side) for q, side in zip(self.question, sides, strict=True))
        return second - first

    def _figure(self, form: Functional, side: NDArray[np.float64] | NDArray[np.int64]) -> float:
        if isinstance(form, Form):
            return form.exchanged(self.positive, side.astype(np.float64))
        assert isinstance(form, OfCounts)  # forms of columns were refused earlier
        return float(form.function(Counts(*(c.item() for c in np.bincount(side, minlength=OUTCOMES)))))


def _ranks(score: Floats) -> Floats:
    """Return mean ranks: the order of the scores without their scale, so that two systems can exchange answers."""
    ordered = np.sort(score)
    below, upto = (np.searchsorted(ordered, score, side=side) for side in ("left", "right"))
    return np.asarray(0.5 * (below + upto), dtype=np.float64)
