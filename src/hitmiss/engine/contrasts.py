"""Compute one metric on one paired sample: both figures, their difference, its interval and its test."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.columns import find_column
from hitmiss.core.completeness import ROW
from hitmiss.core.design import Grouping
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.sampling import BY_CLASS, OF_ALL, SamplingPlan
from hitmiss.core.sorting import Array, Floats
from hitmiss.core.trials import Trials
from hitmiss.core.weights import refuse_sampling
from hitmiss.engine.pairing import REPEATS, Pair
from hitmiss.engine.resample import (
    ONE_UNIT,
    Columns,
    Draws,
    OneClass,
    Question,
    Sample,
    drawn_cells,
    samples_of_runs,
    samples_of_slices,
    share_of,
    too_few_errors,
)
from hitmiss.engine.weighted import columns_of_trials
from hitmiss.metrics.counts import Counts
from hitmiss.stats import intervals, tests
from hitmiss.stats.bootstrap import Random, generator, trial_draws
from hitmiss.stats.forms import Form, Functional, Located, MinimumCost, OfColumns, OfConfidences, OfCounts, OfTerms
from hitmiss.stats.intervals import LeftOut, difference_of_placements, effective, enough
from hitmiss.stats.paired import p_of_replicates, paired_replicates
from hitmiss.stats.tests import sign_flip, swap

# ----------------------------------------------------------------------
# Cut two runs into the paired samples on which differences are computed, and draw their replicates together.

Both = tuple[Question, Question]
"""A metric, prepared for each of the two runs."""
OUTCOMES = len(fields(Counts))
AT_ONCE = 100
"""Number of replicates whose indices are held at a time."""


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
        """For both runs, the share of the other class that each trial is ordered correctly against."""
        return self.a.placements, self.b.placements

    def values(self, question: Both) -> tuple[float, float]:
        """Return the figures of both runs; NaN if a figure is undefined."""
        return float(question[0].value(self.a)), float(question[1].value(self.b))


@dataclass(frozen=True, eq=False)
class PairedSample:
    """Paired trials of one slice: one part, or one part per repetition.

    The figures of repetitions are averaged; their trials are never pooled.
    """

    parts: tuple[Part, ...]
    slice: Mapping[str, str]

    @property
    def n(self) -> int:
        """The number of pairs."""
        return len(self.once)

    @property
    def n_positive(self) -> int:
        """The number of positive pairs."""
        return int(np.concatenate([p.positive for p in self.parts])[self.once].sum())

    @cached_property
    def once(self) -> NDArray[np.intp]:
        """The places of the pairs in all parts together, each once; a completed run repeats some of them."""
        return each_once([p.a for p in self.parts])

    def values(self, question: Both) -> tuple[float, float]:
        """Return the figures of both runs, as means over repetitions."""
        pairs = [p.values(question) for p in self.parts]
        return math.fsum(a for a, _ in pairs) / len(pairs), math.fsum(b for _, b in pairs) / len(pairs)


def each_once(parts: Sequence[Sample]) -> NDArray[np.intp]:
    """Return the places of the rows of some samples, counted through, without the copies that completed runs have."""
    rows, frame = np.concatenate([part.rows for part in parts]), parts[0].columns.trials.frame
    if ROW not in frame.columns:
        return np.arange(len(rows))
    return np.unique(frame[ROW].to_numpy()[rows], return_index=True)[1]


def columns_of(
    pair: Pair, names: Sequence[str], one_class: OneClass, pools_targets: bool = False
) -> tuple[Columns, Columns]:
    """Return the columns of both runs; those to group or resample by must be equal, or exist in only one run."""
    a, b = same_columns((pair.a, pair.b), pair.names, pair.key, names, one_class)
    return (replace(a, pools_targets=True), replace(b, pools_targets=True)) if pools_targets else (a, b)


def same_columns(
    runs: Sequence[Trials],
    titles: Sequence[str],
    key: Sequence[str],
    names: Sequence[str],
    one_class: OneClass,
) -> list[Columns]:
    """Return the columns of runs on the same questions.

    The columns in `names` must be equal in all runs that have them, and are copied to the others.
    """
    made = [run.retitle(runs=tuple(n for n in key if n not in ("item", "target"))) for run in runs]
    for name in names:
        own = {i: mine for i, run in enumerate(made) if (mine := find_column(name, run.frame.columns)) is not None}
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
    return [columns_of_trials(run, one_class) for run in made]


def wholes(a: Columns, b: Columns) -> list[PairedSample]:
    """Return all pairs: one sample, or one for each run and target that both have."""
    found: dict[tuple[tuple[str, str], ...], list[Part]] = {}
    for sample in samples_of_runs(a):
        shared = tuple((k, v) for k, v in sample.run.items() if k not in REPEATS)
        found.setdefault(shared, []).append(_part(sample, b))
    return [PairedSample(tuple(parts), dict(shared)) for shared, parts in found.items()]


def slices(whole: PairedSample, grouping: Grouping) -> list[PairedSample]:
    """Cut the pairs by slice columns; a slice that only some repetitions have uses those."""
    found: dict[tuple[tuple[str, str], ...], list[Part]] = {}
    for part in whole.parts:
        for sample in samples_of_slices(part.a, grouping):
            found.setdefault(tuple(sample.slice.items()), []).append(_part(sample, part.b.columns))
    return [PairedSample(tuple(parts), {**whole.slice, **dict(key)}) for key, parts in found.items()]


def _part(sample: Sample, b: Columns) -> Part:
    return Part(sample, b.sample(sample.rows, sample.run, sample.slice))


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
        """Return whether an undefined figure of this metric is 0 by convention."""
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
    """Return second minus first; undefined figures count as 0 if that is the convention."""
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
    """Return replicates of one difference, from a stream of its own (see `resample.Draws`)."""
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


def outcomes(sample: Sample) -> NDArray[np.int64]:
    """Return the outcome of each decision of a sample."""
    return sample.columns.outcome[sample.rows].astype(np.int64)


def _plain_deltas(question: Both, part: Part, replicates: int, rng: Random, by_class: bool) -> Floats:
    """Return replicates for metrics without a form: trials are drawn, and both figures are computed again."""
    sides = [(q.form, s) for q, s in zip(question, (part.a, part.b), strict=True) if isinstance(q.form, OfColumns)]
    places = trial_draws(part.positive, replicates, rng, by_class)
    deltas = []
    for drawn in iter(lambda: list(islice(places, AT_ONCE)), []):
        first, second = (_figures(form, sample, drawn) for form, sample in sides)
        deltas.append(second - first)
    return np.concatenate(deltas)


def _figures(form: OfColumns, sample: Sample, drawn: Sequence[NDArray[np.int64]]) -> Floats:
    """Return the figure of the trials at each list of indices."""
    if not isinstance(form, OfConfidences):
        return form.of_draws(sample.arrays(form.columns), drawn)
    # A confidence counts by how often it was right and wrong: counting codes is far quicker than calling the metric again.
    confidence, code = sample.judged
    counts = [np.bincount(code[places], minlength=1 + 2 * len(confidence)) for places in drawn]
    return np.asarray(form.judged(sample.judge(np.array(counts, dtype=np.float64)), **form.settings), dtype=np.float64)


# ----------------------------------------------------------------------
# Metrics of decisions that are shares of trials: which trials they count, among which, and where two runs differ.

Mask = NDArray[np.bool_]


def shared_denominator(question: Both, sample: PairedSample) -> list[tuple[Mask, Mask, Mask]] | None:
    """Return the trials behind a share, per part, and the hits of both runs.

    None if the runs count different trials.
    """
    found = []
    for part in sample.parts:
        a, b = (_hits(q.form, side) for q, side in zip(question, (part.a, part.b), strict=True))
        if a is None or b is None or not np.array_equal(a[1], b[1]):
            return None
        found.append((a[1], a[0], b[0]))
    return found


def _hits(form: Functional, sample: Sample) -> tuple[Mask, Mask] | None:
    """Return which trials a share counts, and among which; None if the figure is not a share."""
    if isinstance(form, OfTerms):
        return form.shares(sample)
    share = share_of(form)
    if share is None:
        return None
    code = outcomes(sample)
    hits, of = (np.asarray(side, dtype=bool)[code] for side in share)
    return hits, of


def discordant(question: Both, sample: PairedSample) -> tuple[int, int, int]:
    """Return the number of pairs behind a share, and how many only the first or only the second run hits."""
    shared = shared_denominator(question, sample)
    assert shared is not None and len(shared) == 1
    inside, hit_a, hit_b = shared[0]
    return int(inside.sum()), int((inside & hit_a & ~hit_b).sum()), int((inside & hit_b & ~hit_a).sum())


# ----------------------------------------------------------------------
# Whether a paired sample is large enough for an interval of a difference: few units cannot be resampled.
#
# With fewer units than the level needs (`stats.intervals.enough`) there is neither an interval nor a test by
# resampling. Exact tests of the pairs (McNemar, permutation) remain valid with little data.


def too_few(question: Both, sample: PairedSample, draws: PairedDraws) -> str | None:
    """Say why a difference gets no interval because it rests on too little data; None if there is enough.

    Shares of the same trials rest on these trials, figures that do not use labels on all trials, and everything else on
    both classes. What counts is the number of trials, or of units; of two crossed units, the rarer.
    """
    behind = _behind(question, sample, draws)
    n, unit, whose = min(((len(sizes), u, w) for sizes, u, w in behind if len(sizes)), default=(0, "", ""))
    if n >= enough(draws.plan.level):
        return None
    kind = "unit" if unit else "trial" if whose else "pair"
    of = f" ({unit})" if unit else ""
    trials = f" of {whose} trials" if unit and whose else f" of {whose}" if whose else ""
    return f"no interval: {f'one {kind}' if n == 1 else f'{n} {kind}s'}{of}{trials} alone"


def degrees(question: Both, sample: PairedSample, draws: PairedDraws) -> float:
    """Return the degrees of freedom of the standard error of a difference: the effective number of units minus one."""
    return min((effective(sizes) - 1.0 for sizes, _, _ in _behind(question, sample, draws) if len(sizes)), default=1.0)


def _behind(question: Both, sample: PairedSample, draws: PairedDraws) -> list[tuple[Array, str, str]]:
    """Return how many pairs each unit (or trial) contributes to a figure, with the unit and the class."""
    head = sample.parts[0].a.columns.trials.header
    shared = shared_denominator(question, sample)
    positive = [part.positive for part in sample.parts]
    if shared is not None:
        stands_on = {"": [inside for inside, _, _ in shared]}
    elif "label" in question[0].metric.columns:
        stands_on = {head.positive: positive, head.negative: [~mask for mask in positive]}
    else:
        stands_on = {"": [np.ones_like(mask) for mask in positive]}
    names = draws.plan.unit or ("",)
    found = [(_held(sample, masks, draws, unit), unit, whose) for whose, masks in stands_on.items() for unit in names]
    if len(names) < 2:
        return found
    return [row for row in found if len(row[0]) > 1] or found  # bona fide trials all have the same attack value


def _held(sample: PairedSample, masks: list[Mask], draws: PairedDraws, unit: str) -> Array:
    """Return how many of the marked pairs each unit holds, for units that hold any; 1 each if trials are drawn."""
    rows = np.concatenate([part.a.rows[mask] for part, mask in zip(sample.parts, masks, strict=True)])
    if not unit:
        return np.ones(len(rows))
    pairs = zip(sample.parts, masks, strict=True)
    weights = [part.a.weight[mask] for part, mask in pairs if part.a.weight is not None]
    sizes = np.bincount(draws.a.columns.asked_codes(unit)[0][rows], np.concatenate(weights) if weights else None)
    return sizes[sizes > 0]


# ----------------------------------------------------------------------
# One metric on one paired sample: both figures, their difference, its interval, its test, and how often each run wins.
#
# | test        | for                                                                    | by default                     |
# |-------------|------------------------------------------------------------------------|--------------------------------|
# | mcnemar     | shares of the same trials in both runs (accuracy, slip rate, recall …)  | yes, where trials are independent |
# | delong      | ROC AUC                                                                | yes, where trials are independent |
# | permutation | any metric: a unit's answers are exchanged between the runs             | for shares drawn by units      |
# | bootstrap   | any metric: the interval turned round                                   | for everything else            |
#
# Metrics that resampling inflates (calibration errors) get neither an interval nor a test. A figure from too few units
# (see `too_few`) gets no interval, and only an exact test. Except for an AUC, the interval comes from the paired
# replicates (see `Judging`), also for least costs: the optimism of a single least cost is nearly the same in both runs
# and cancels (measured in docs/intervals.md).

TESTS: Final = ("auto", "mcnemar", "delong", "bootstrap", "permutation")
NO_TEST: Final = ""
"""For a metric whose replicates do not show how uncertain it is."""
RIGHT: Final = (0, 3)
"""Outcomes that are correct decisions: true positive, true negative."""
EXACT: Final = ("mcnemar", "permutation")
"""Exact tests: with few pairs, their p value is never small."""
NO_WIDTH: Final = "the replicates hardly differ"
"""For an interval whose ends are equal, which does not mean certainty."""
PERMUTATIONS: Final = 10_000
"""Number of permutations if no number of replicates is given."""


@dataclass(frozen=True)
class Contrast:
    """Figures of both runs and second minus first; NaN if undefined.

    `error` is the standard error of the difference.
    """

    a: float
    b: float
    test: str
    low: float = math.nan
    high: float = math.nan
    p_value: float = math.nan
    error: float = math.nan
    wins: int = 0
    ties: int = 0
    losses: int = 0
    note: str = ""
    is_too_few: bool = False

    @property
    def delta(self) -> float:
        """Second minus first."""
        return self.b - self.a


def choose_test(question: Both, sample: PairedSample, wanted: str, by_units: bool) -> str:
    """Return the test of a metric on a sample; a test that does not apply is refused."""
    if wanted not in TESTS:
        raise UnknownName("test", wanted, TESTS)
    if not question[0].metric.interval:
        return NO_TEST
    independent = not by_units and len(sample.parts) == 1
    is_share, is_area = shared_denominator(question, sample) is not None, question[0].form.is_area
    if wanted == "auto":
        if is_share:
            return "mcnemar" if independent else "permutation"
        return "delong" if is_area and independent else "bootstrap"
    fits = {"mcnemar": is_share and independent, "delong": is_area and independent}
    if not fits.get(wanted, True):
        needs = {"mcnemar": "a share of the same trials in both runs", "delong": "the ROC AUC"}[wanted]
        raise UsageError(
            f"the test {wanted!r} is for {needs}, each trial once and independent; {question[0].text} does not qualify here; choose another test"
        )
    return wanted


def contrast(question: Both, sample: PairedSample, test: str, draws: PairedDraws, deltas: Floats | None) -> Contrast:
    """Compute the difference of one metric; `deltas` are its replicates, if they were drawn."""
    a, b = (0.0 if math.isnan(v) and draws.is_zeroed(question) else v for v in sample.values(question))
    found = Contrast(a, b, test)
    if math.isnan(found.delta):
        return found
    found = _with_wins(found, question, sample)
    if test == NO_TEST:
        return replace(found, note=f"no interval and no test: resampling biases {question[0].metric.name}")
    if deltas is not None:
        judged = Judging.of([(question, sample)], draws)
        low, high = judged.ends(deltas, found.delta, draws.plan)
        lost = int(np.isnan(deltas).sum())
        note = f"{lost} replicates without a class left out" if lost else ""
        found = replace(found, low=low, high=high, error=_deviation(deltas), note=note)
    found = _tested(found, question, sample, draws, deltas)
    if deltas is None and test != "delong":
        return found
    little = too_few(question, sample, draws)
    if (
        little is None
        and deltas is not None
        and draws.plan.unit
        and np.isfinite(deltas).any()
        and math.isnan(found.low)
    ):
        little = ONE_UNIT
    rare = None if little else _unseen(question, sample, found.high - found.low)
    return replace(_as_known(found, little or rare), is_too_few=little is not None)


def _unseen(question: Both, sample: PairedSample, width: float) -> str | None:
    """Say why a difference of costs gets no interval because a run shows no error of some kind (see docs/intervals.md)."""
    if not isinstance(question[0].form, Form):  # for decisions, the run that does show errors makes the interval
        return None
    sides = [(q.form, side) for part in sample.parts for q, side in zip(question, (part.a, part.b), strict=True)]
    return next(filter(None, (too_few_errors(form, side, width, fewest=1) for form, side in sides)), None)


@dataclass(frozen=True, eq=False)
class Judging:
    """How the interval and the p value of a difference follow from its replicates.

    Of trials: percentiles; for figures that are read at a threshold of their own (EER, TPR at an FPR), the studentised
    difference, because their replicates lie nearer to 0 than the difference does (tests by percentiles rejected 2 %
    instead of 5 %). A difference of least costs varies more than its replicates, whose mean lies nearer to 0; studentised,
    the difference rejects too often and the mean too seldom, so what is halfway between them is. Of units, which may be
    few: Student's.
    """

    degrees: float
    is_studentised: bool
    is_smooth: bool
    without: LeftOut | None = None
    is_least: bool = False

    @classmethod
    def of(cls, parts: Sequence[tuple[Both, PairedSample]], draws: PairedDraws) -> Judging:
        """Judge a difference, or a mean of the differences of several slices, which share their units."""
        by_units = bool(draws.plan.unit)
        is_read = any(isinstance(q.form, Located) for q, _ in (question for question, _ in parts))
        held = [degrees(*own, draws) for own in parts]
        if not by_units:  # the trials of several slices add up
            is_least = any(isinstance(q.form, MinimumCost) for q, _ in (question for question, _ in parts))
            return cls(math.fsum(held), is_read, not is_read, is_least=is_least)
        found, freedom = [draws.left_out(*own) for own in parts], max(held)
        known = [own for own in found if own is not None]
        if len(known) < len(found):
            return cls(freedom, True, not is_read)
        return cls(freedom, True, not is_read, LeftOut.mean(known))

    def ends(self, deltas: Floats, delta: float, plan: SamplingPlan) -> tuple[float, float]:
        """Return the interval of a difference."""
        known = deltas[np.isfinite(deltas)]
        if not self.is_studentised or not len(known) or not np.ptp(known):
            return intervals.percentile(deltas, plan.level)
        return intervals.student(
            known,
            self._centre(known, delta),
            self.degrees,
            (-math.inf, math.inf),
            plan.level,
            self.without,
            self.is_smooth,
        )

    def _centre(self, known: Floats, delta: float) -> float:
        """Return what is studentised."""
        return (delta + float(known.mean())) / 2.0 if self.is_least and np.isfinite(known).all() else delta

    def p_value(self, deltas: Floats, delta: float) -> float:
        """Return the p value of a difference."""
        if not self.is_studentised:
            return p_of_replicates(deltas, self.degrees)
        if self.without is None:
            return p_of_replicates(deltas, self.degrees, self._centre(deltas[~np.isnan(deltas)], delta))
        left = self.without.each(lambda v: v[np.isfinite(v)])
        return p_of_replicates(deltas, left.degrees, delta, left.narrowing if self.is_smooth else 1.0)


def _as_known(found: Contrast, too_little: str | None) -> Contrast:
    """Return the contrast without an interval that cannot be known: from too little data, or of zero width."""
    if too_little is not None:
        p = found.p_value if found.test in EXACT else math.nan
        found = replace(found, low=math.nan, high=math.nan, error=math.nan)
        return replace(found, p_value=p, note=too_little)
    if found.low != found.high:
        return found
    alike = found.delta == 0.0 and not found.wins and not found.losses
    why = f"no interval: {'the answers are alike' if alike else NO_WIDTH}"
    return replace(found, low=math.nan, high=math.nan, note="; ".join(filter(None, (found.note, why))))


def _deviation(deltas: Floats) -> float:
    known = deltas[np.isfinite(deltas)]
    return float(np.std(known, ddof=1)) if len(known) > 1 else math.nan


def _tested(
    found: Contrast, question: Both, sample: PairedSample, draws: PairedDraws, deltas: Floats | None
) -> Contrast:
    if found.test == "delong":
        part = sample.parts[0]
        area = difference_of_placements(part.positive, *part.placements)
        low, high = area.interval(draws.plan.level)
        note = "no variance to judge by" if math.isnan(area.p_value) else found.note
        return replace(found, low=low, high=high, p_value=area.p_value, error=area.error, note=note)
    if found.test == "mcnemar":
        n, only_a, only_b = discordant(question, sample)
        error = math.sqrt(max(only_a + only_b - (only_a - only_b) ** 2 / n, 0.0)) / n if n else math.nan
        return replace(found, p_value=tests.exact(only_a, only_b), error=error)
    if found.test == "permutation":
        return replace(found, p_value=_permuted(question, sample, draws))
    if deltas is None:
        return found
    return replace(found, p_value=Judging.of([(question, sample)], draws).p_value(deltas, found.delta))


def _with_wins(found: Contrast, question: Both, sample: PairedSample) -> Contrast:
    gains = [_gains(question, part) for part in sample.parts]
    known = [g for g in gains if g is not None]
    if len(known) < len(gains):
        return found
    gain = np.concatenate(known)[sample.once]
    gain = gain[~np.isnan(gain)]
    wins, losses = int((gain > 0).sum()), int((gain < 0).sum())
    return replace(found, wins=wins, losses=losses, ties=len(gain) - wins - losses)


def _gains(question: Both, part: Part) -> Floats | None:
    """Return for each pair how much better the second run is (above 0 it wins); None if single trials show nothing.

    NaN for pairs that the metric does not use.
    """
    first, second = (_merits(q, side) for q, side in zip(question, (part.a, part.b), strict=True))
    if first is None or second is None:
        return None
    inside = ~(np.isnan(first) | np.isnan(second))
    with np.errstate(invalid="ignore"):
        return np.where(inside, np.nan_to_num(second - first, nan=0.0), np.nan)


def _merits(question: Question, sample: Sample) -> Floats | None:
    """Return how good each answer is for a metric, higher = better; NaN for trials that the metric does not use."""
    form, best = question.form, question.metric.best
    if form.kind != "decisions":
        return form.merits(sample, best)
    code, share = outcomes(sample), share_of(form)
    if share is None or share[1][:2] != share[1][2:4]:  # for precision, the decision determines whether a trial counts
        return np.asarray(np.isin(code, RIGHT), dtype=np.float64)
    hits = np.asarray(share[0])[code] * (1.0 if best == "high" else -1.0)
    return np.where(np.asarray(share[1])[code] > 0, hits, np.nan)


def _permuted(question: Both, sample: PairedSample, draws: PairedDraws) -> float:
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
        raise UsageError(f"{question[0].text} has no form to exchange answers in; use the bootstrap")
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
