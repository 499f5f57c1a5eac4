"""Replicates of two runs from the same draws: units for the whole comparison, or trials within each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.sampling import BY_CLASS, OF_ALL, SamplingPlan
from hitmiss.core.sorting import Floats
from hitmiss.engine.columns import Sample
from hitmiss.engine.drawn_trials import drawn_cells
from hitmiss.engine.draws import Draws
from hitmiss.engine.paired_samples import Both, PairedSample, Part, outcomes
from hitmiss.metrics.counts import Counts
from hitmiss.stats.enough_units import effective
from hitmiss.stats.forms.base import Form
from hitmiss.stats.forms.trials import OfColumns, OfConfidences, OfCounts
from hitmiss.stats.jackknife import LeftOut
from hitmiss.stats.paired import paired_replicates
from hitmiss.stats.random import Random, generator
from hitmiss.stats.replicates import trial_draws

OUTCOMES = len(fields(Counts))
AT_ONCE = 100
"""Number of replicates whose indices are held at a time."""


@dataclass(frozen=True, eq=False)
class PairedDraws:
    """Replicates of both runs from the same draws: units for the whole comparison, or trials within each class."""

    plan: SamplingPlan
    a: Draws
    b: Draws
    zero_undefined: bool = False

    @classmethod
    def prepare(cls, plan: SamplingPlan, whole: PairedSample, zero_undefined: bool = False) -> PairedDraws:
        """Draw the units once, for both runs and all slices of `whole`; `zero_undefined` is as in `Protocol`."""
        first = whole.parts[0]
        drawn = Draws.prepare(plan, first.a.columns, np.concatenate([part.a.rows for part in whole.parts]))
        return cls(plan, drawn, drawn.of_run(first.b.columns), zero_undefined)

    def is_zeroed(self, question: Both) -> bool:
        """Return whether an undefined number of this metric is 0 by convention."""
        return self.zero_undefined and question[0].metric.zero

    def deltas(self, questions: Sequence[Both], sample: PairedSample) -> list[Floats]:
        """Return replicates of each difference, second run minus first, averaged over repetitions."""
        parts = [self._of_part(questions, part) for part in sample.parts]
        return [np.mean([p[i] for p in parts], axis=0) for i in range(len(questions))]

    def left_out(self, question: Both, sample: PairedSample) -> LeftOut | None:
        """Return a difference without one unit each, after its replicates were drawn; None without units."""
        pairs = [(self.a.left(question[0].form, p.a), self.b.left(question[1].form, p.b)) for p in sample.parts]
        values = [y - x for x, y in pairs if x is not None and y is not None]
        if not values or len(values) < len(pairs):
            return None
        # What a unit adds to both runs cancels, so that most of the variance of a difference is inside units.
        return self.a.left_out(question[0], [p.a for p in sample.parts], np.mean(values, axis=0), effective)

    def _of_part(self, questions: Sequence[Both], part: Part) -> list[Floats]:
        if self.a.weights is not None:
            first = self.a.replicates([q for q, _ in questions], part.a)
            second = self.b.replicates([q for _, q in questions], part.b)
            zeroed = [self.is_zeroed(q) for q in questions]
            return [_less(y, x, zero) for x, y, zero in zip(first, second, zeroed, strict=True)]
        return _trial_deltas(questions, part, self.plan, self.zero_undefined)


def _less(second: Floats, first: Floats, zero: bool = False) -> Floats:
    """Return second minus first; undefined numbers count as 0 if that is the convention."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(second) - np.nan_to_num(first) if zero else second - first


def _trial_deltas(questions: Sequence[Both], part: Part, plan: SamplingPlan, zero: bool) -> list[Floats]:
    """Return replicates of the differences, from draws of trials.

    The runs are put in a fixed order first, so that exchanging them changes only the signs.
    """
    if _later(part):
        turned = [(q[1], q[0]) for q in questions]
        return [-d for d in _trial_deltas(turned, Part(part.b, part.a), plan, zero)]
    return [_own_deltas(question, part, plan, zero) for question in questions]


def _own_deltas(question: Both, part: Part, plan: SamplingPlan, zero: bool) -> Floats:
    """Return replicates of one difference, from a stream of its own (see `engine.draws`)."""
    asked, replicates = question[0], plan.bootstrap
    by_class = plan.by_class(asked.metric.prevalence)
    rng = generator(plan.seed, "pairs", BY_CLASS if by_class else OF_ALL, part.a.part, asked.stream)
    if isinstance(asked.form, Form):
        return _form_deltas(asked.form, part, replicates, rng, by_class)
    if asked.form.kind == "decisions":
        return _count_deltas(question, part, replicates, rng, by_class, zero and asked.metric.zero)
    return _plain_deltas(question, part, replicates, rng, by_class)


def _later(part: Part) -> bool:
    """Return whether the content of the first run comes after that of the second, in some fixed order."""
    for name in ("score", "decision", "confidence", "seconds"):
        frames = [side.columns.trials.frame for side in (part.a, part.b)]
        if all(name in frame.columns for frame in frames):
            one, other = (frame[name].to_numpy()[part.a.rows] for frame in frames)
            differ = np.flatnonzero((one != other) & ~((one != one) & (other != other)))
            if len(differ):
                return bool(one[differ[0]] > other[differ[0]])
    return False


def _form_deltas(form: Form, part: Part, replicates: int, rng: Random, by_class: bool) -> Floats:
    scores, tallies = (part.a.score, part.b.score), (part.a.tally, part.b.tally)
    first, second = paired_replicates(part.positive, *scores, [form], replicates, rng, by_class, tallies)
    return _less(second[0], first[0])


def _count_deltas(question: Both, part: Part, replicates: int, rng: Random, by_class: bool, zero: bool) -> Floats:
    """Return replicates for metrics of decisions, which depend only on the joint counts of both runs' outcomes."""
    drawn = drawn_cells(joint_outcomes(part), OUTCOMES**2, part.positive, replicates, rng, by_class)
    table = drawn.reshape(replicates, OUTCOMES, OUTCOMES)
    totals = table.sum(axis=2), table.sum(axis=1)
    values = [
        q.form.of_counts(Counts(*t.T)) for q, t in zip(question, totals, strict=True) if isinstance(q.form, OfCounts)
    ]
    return _less(values[1], values[0], zero)


def joint_outcomes(part: Part) -> NDArray[np.int64]:
    """Return the outcomes of both decisions of each trial, as one number."""
    return outcomes(part.a) * OUTCOMES + outcomes(part.b)


def _plain_deltas(question: Both, part: Part, replicates: int, rng: Random, by_class: bool) -> Floats:
    """Return replicates for metrics without a form: trials are drawn, and both numbers are computed again."""
    sides = [(q.form, s) for q, s in zip(question, (part.a, part.b), strict=True) if isinstance(q.form, OfColumns)]
    places = trial_draws(part.positive, replicates, rng, by_class)
    deltas = []
    for drawn in iter(lambda: list(islice(places, AT_ONCE)), []):
        first, second = (_figures(form, sample, drawn) for form, sample in sides)
        with np.errstate(invalid="ignore"):  # of two infinite numbers the difference is undefined
            deltas.append(second - first)
    return np.concatenate(deltas)


def _figures(form: OfColumns, sample: Sample, drawn: Sequence[NDArray[np.int64]]) -> Floats:
    """Return the number of the trials at each list of indices."""
    if not isinstance(form, OfConfidences):
        return form.of_draws(sample.arrays(form.columns), drawn)
    # A confidence counts by how often it was right and wrong: counting codes is far quicker than calling the metric again.
    confidence, code = sample.judged
    counts = [np.bincount(code[places], minlength=1 + 2 * len(confidence)) for places in drawn]
    return np.asarray(form.judged(sample.judge(np.array(counts, dtype=np.float64)), **form.settings), dtype=np.float64)
