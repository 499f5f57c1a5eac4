"""Two runs cut into the paired samples that differences are computed on, and their replicates from shared draws."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hitmiss.columns import find
from hitmiss.design import OF_ALL, Grouping, Plan
from hitmiss.errors import DataError
from hitmiss.measuring.grouping import Columns, OneClass, Sample, samples_of_runs, samples_of_slices
from hitmiss.measuring.uncertainty import Draws, Question
from hitmiss.metrics.counts import Counts
from hitmiss.pairing import REPEATS, Pair
from hitmiss.stats.bootstrap import trial_draws
from hitmiss.stats.forms import Form, OfColumns, OfCounts
from hitmiss.stats.paired import paired_replicates
from hitmiss.stats.seeds import Random, generator
from hitmiss.tally import Floats
from hitmiss.trials import Trials

Both = tuple[Question, Question]
"""A metric made ready for each of the two runs."""
OUTCOMES = len(fields(Counts))


@dataclass(frozen=True, eq=False)
class Part:
    """The same trials answered by both runs, each trial once."""

    a: Sample
    b: Sample

    @property
    def positive(self) -> NDArray[np.bool_]:
        """Which trials are positive."""
        return self.a.positive

    @cached_property
    def placements(self) -> tuple[Floats, Floats]:
        """For both runs the share of the other class that each trial is rightly ordered against."""
        return self.a.placements, self.b.placements

    def values(self, question: Both) -> tuple[float, float]:
        """The figures of both runs; NaN where a figure is undefined."""
        return float(question[0].value(self.a)), float(question[1].value(self.b))


@dataclass(frozen=True, eq=False)
class PairedSample:
    """Paired trials of one slice: one part, or one a repetition. Figures of repetitions are averaged, never pooled."""

    parts: tuple[Part, ...]
    slice: Mapping[str, str]

    @property
    def n(self) -> int:
        """How many pairs."""
        return sum(p.a.n for p in self.parts)

    @property
    def n_positive(self) -> int:
        """How many pairs are positive."""
        return sum(p.a.n_positive for p in self.parts)

    def values(self, question: Both) -> tuple[float, float]:
        """The figures of both runs, the mean over repetitions."""
        pairs = [p.values(question) for p in self.parts]
        return math.fsum(a for a, _ in pairs) / len(pairs), math.fsum(b for _, b in pairs) / len(pairs)


def columns_of(pair: Pair, names: Sequence[str], one_class: OneClass) -> tuple[Columns, Columns]:
    """The columns of both runs; those to group or draw by must say the same in both, or be there in one."""
    a, b = same_columns((pair.a, pair.b), pair.names, pair.key, names, one_class)
    return a, b


def same_columns(
    runs: Sequence[Trials],
    titles: Sequence[str],
    key: Sequence[str],
    names: Sequence[str],
    one_class: OneClass,
) -> list[Columns]:
    """The columns of runs on the same questions; `names` must say the same in all that have them, and are lent to the others."""
    made = [run.retitle(runs=tuple(n for n in key if n not in ("item", "target"))) for run in runs]
    for name in names:
        own = {i: mine for i, run in enumerate(made) if (mine := find(name, run.frame.columns)) is not None}
        if not own:
            continue
        first, *others = own
        column = made[first].frame[own[first]]
        for i in others:
            other = made[i].frame[own[i]]
            if not column.equals(other):
                told = (
                    f"{int((column != other).sum()):,} pairs have another {name} in {titles[first]} than in {titles[i]}"
                )
                raise DataError(told, code="column-conflict")
        made = [run if i in own else replace(run, frame=run.frame.with_columns(column)) for i, run in enumerate(made)]
    return [Columns(run, one_class) for run in made]


def wholes(a: Columns, b: Columns) -> list[PairedSample]:
    """All pairs: one sample, or one for each run and target that both have."""
    found: dict[tuple[tuple[str, str], ...], list[Part]] = {}
    for sample in samples_of_runs(a):
        shared = tuple((k, v) for k, v in sample.run.items() if k not in REPEATS)
        found.setdefault(shared, []).append(_part(sample, b))
    return [PairedSample(tuple(parts), dict(shared)) for shared, parts in found.items()]


def slices(whole: PairedSample, grouping: Grouping) -> list[PairedSample]:
    """The pairs cut by slice columns; a slice that not every repetition has keeps those that have it."""
    found: dict[tuple[tuple[str, str], ...], list[Part]] = {}
    for part in whole.parts:
        for sample in samples_of_slices(part.a, grouping):
            found.setdefault(tuple(sample.slice.items()), []).append(_part(sample, part.b.columns))
    return [PairedSample(tuple(parts), {**whole.slice, **dict(key)}) for key, parts in found.items()]


def _part(sample: Sample, b: Columns) -> Part:
    return Part(sample, Sample(b, sample.rows, sample.run, sample.slice))


@dataclass(frozen=True, eq=False)
class PairedDraws:
    """Replicates of both runs from the same draws: units for the whole comparison, else trials within each class."""

    plan: Plan
    a: Draws
    b: Draws
    zero_undefined: bool = False

    @classmethod
    def prepare(cls, plan: Plan, a: Columns, b: Columns, zero_undefined: bool = False) -> PairedDraws:
        """Draw the units once, for both runs and all samples; `zero_undefined` as in `measurement.Choices`."""
        drawn = Draws.prepare(plan, a)
        return cls(plan, drawn, drawn.of_run(b), zero_undefined)

    def is_zeroed(self, question: Both) -> bool:
        """Whether an undefined figure of this metric is 0 by convention."""
        return self.zero_undefined and question[0].form.kind == "decisions"

    def deltas(self, questions: Sequence[Both], sample: PairedSample) -> list[Floats]:
        """Replicates of each difference, second run less first, averaged over repetitions."""
        parts = [self._of_part(questions, part) for part in sample.parts]
        return [np.mean([p[i] for p in parts], axis=0) for i in range(len(questions))]

    def _of_part(self, questions: Sequence[Both], part: Part) -> list[Floats]:
        if self.a.weights is not None:
            first = self.a.replicates([q for q, _ in questions], part.a)
            second = self.b.replicates([q for _, q in questions], part.b)
            zeroed = [self.is_zeroed(q) for q in questions]
            return [_less(y, x, zero) for x, y, zero in zip(first, second, zeroed, strict=True)]
        return _trial_deltas(questions, part, self.plan, self.zero_undefined)


def _less(second: Floats, first: Floats, zero: bool = False) -> Floats:
    """Second less first; undefined figures count as 0 where that is the convention."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(second) - np.nan_to_num(first) if zero else second - first


def _trial_deltas(questions: Sequence[Both], part: Part, plan: Plan, zero: bool) -> list[Floats]:
    """The runs are put in an order of their own, so that exchanging them changes signs and nothing else.

    Each kind of metric has its own stream, begun anew for every sample: what else is asked changes no digit of it.
    """
    if _later(part):
        turned = [(q[1], q[0]) for q in questions]
        return [-d for d in _trial_deltas(turned, Part(part.b, part.a), plan, zero)]
    found: dict[int, Floats] = {}
    for by_class in (True, False):
        alike = [i for i, (q, _) in enumerate(questions) if plan.by_class(q.metric.prevalence) is by_class]
        name = (part.a.name,) if by_class else (part.a.name, OF_ALL)
        at = [i for i in alike if questions[i][0].form.kind == "scores"]
        if at:
            asked = [questions[i] for i in at]
            found.update(
                zip(
                    at,
                    _form_deltas(asked, part, plan.bootstrap, generator(plan.seed, "pair", *name), by_class),
                    strict=True,
                )
            )
        for i in alike:
            if questions[i][0].form.kind == "decisions":
                rng = generator(plan.seed, "pair counts", *name)
                found[i] = _count_deltas(questions[i], part, plan.bootstrap, rng, by_class, zero)
            elif i not in found:
                found[i] = _plain_deltas(
                    questions[i], part, plan.bootstrap, generator(plan.seed, "pair rows", *name), by_class
                )
    return [found[i] for i in range(len(questions))]


def _later(part: Part) -> bool:
    """Whether the content of the first run comes after that of the second, in whatever fixed order."""
    for name in ("score", "decision", "confidence", "seconds"):
        frames = [side.columns.trials.frame for side in (part.a, part.b)]
        if all(name in frame.columns for frame in frames):
            one, other = (frame[name].to_numpy()[part.a.rows] for frame in frames)
            differ = np.flatnonzero((one != other) & ~((one != one) & (other != other)))
            if len(differ):
                return bool(one[differ[0]] > other[differ[0]])
    return False


def _form_deltas(
    questions: Sequence[Both], part: Part, replicates: int, rng: Random, by_class: bool
) -> list[Floats]:
    forms = [q.form for q, _ in questions if isinstance(q.form, Form)]
    first, second = paired_replicates(part.positive, part.a.score, part.b.score, forms, replicates, rng, by_class)
    return [_less(y, x) for x, y in zip(first, second, strict=True)]


def _count_deltas(question: Both, part: Part, replicates: int, rng: Random, by_class: bool, zero: bool) -> Floats:
    """Metrics of decisions: a trial only matters through the outcomes of both runs, so their joint counts are drawn."""
    joint = joint_outcomes(part)
    totals = np.zeros((2, replicates, OUTCOMES))
    for mask in (part.positive, ~part.positive) if by_class else (np.ones_like(part.positive),):
        have = np.bincount(joint[mask], minlength=OUTCOMES**2)
        if have.sum():
            drawn = rng.multinomial(int(have.sum()), have / have.sum(), size=replicates)
            table = drawn.reshape(replicates, OUTCOMES, OUTCOMES)
            totals += np.stack([table.sum(axis=2), table.sum(axis=1)])
    values = [
        q.form.of_counts(Counts(*t.T)) for q, t in zip(question, totals, strict=True) if isinstance(q.form, OfCounts)
    ]
    return _less(values[1], values[0], zero)


def joint_outcomes(part: Part) -> NDArray[np.int64]:
    """For each trial what became of both decisions, as one number."""
    return outcomes(part.a) * OUTCOMES + outcomes(part.b)


def outcomes(sample: Sample) -> NDArray[np.int64]:
    """What became of each decision of a sample."""
    return sample.columns.outcome[sample.rows].astype(np.int64)


def _plain_deltas(question: Both, part: Part, replicates: int, rng: Random, by_class: bool) -> Floats:
    """Metrics without a form: trials are drawn and both figures computed anew."""
    forms = [q.form for q in question if isinstance(q.form, OfColumns)]
    sides = [(form, s.arrays(form.columns)) for form, s in zip(forms, (part.a, part.b), strict=True)]
    deltas = np.empty(replicates)
    for r, drawn in enumerate(trial_draws(part.positive, replicates, rng, by_class)):
        first, second = (form.of_arrays({k: v[drawn] for k, v in arrays.items()}) for form, arrays in sides)
        deltas[r] = second - first
    return deltas
