"""Measure: metrics × runs × slices -> Results, with intervals, averages, the gap and what to worry about."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hitmiss.alarms import alarms, ties_matter
from hitmiss.errors import DataError, UsageError
from hitmiss.grouping import Columns, Grouping, Sample, parse_by, samples_of_runs, samples_of_slices
from hitmiss.io.words import same_class
from hitmiss.reasons import FEW, few, why_no_interval, why_undefined
from hitmiss.registry import resolve
from hitmiss.results import Estimate, Results
from hitmiss.signature import sign
from hitmiss.spec import Setting, Spec
from hitmiss.stats import intervals
from hitmiss.stats.binomial import wilson
from hitmiss.stats.delong import auc_interval
from hitmiss.stats.forms import OfCounts, PairShare
from hitmiss.stats.quantiles import quantile_interval
from hitmiss.tally import Floats
from hitmiss.trials import Trials
from hitmiss.uncertainty import Draws, Method, Plan, Question
from hitmiss.values import Quantile, Rate

__all__ = ["FEW", "Choices", "Gap", "ask", "measure"]


@dataclass(frozen=True)
class Gap:
    """The difference between the trials outside and inside a domain: figure(out) − figure(in)."""

    column: str
    inside: tuple[str, ...]
    outside: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Gap:
        """A gap from its text: `column=in`, `column=in1+in2` or `column=in:out`.

        >>> Gap.parse("codec=NONE:C01+C02")
        Gap(column='codec', inside=('NONE',), outside=('C01', 'C02'))
        """
        column, equals, values = text.partition("=")
        inside, _, outside = values.partition(":")
        if not column or not equals or not inside:
            raise UsageError(f"gap {text!r}: write column=in, column=in1+in2 or column=in:out")
        return cls(column, tuple(inside.split("+")), tuple(outside.split("+")) if outside else ())

    def __str__(self) -> str:
        return f"{self.column}={'+'.join(self.inside)}{':' if self.outside else ''}{'+'.join(self.outside)}"

    @property
    def label(self) -> str:
        """How the gap is written in tables."""
        return f"{'+'.join(self.outside) or 'rest'} − {'+'.join(self.inside)}"


@dataclass(frozen=True)
class Choices:
    """What a protocol settles for all its measurements.

    `zero_undefined`: a share with an empty denominator is 0, and marked, where others leave it undefined. `delong`:
    the interval of an AUC is DeLong's even where there are replicates. `within`: per grouping also the share of rightly
    ordered pairs among those inside a slice (AUC), which scales and rates that differ between slices cannot move.
    """

    protocol: str | None = None
    settings: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict)
    negative_only: tuple[str, ...] = ()
    slice_metrics: tuple[str, ...] = ()
    both_eers: bool = False
    zero_undefined: bool = False
    delong: bool = False
    within: bool = False


def measure(
    trials: Trials,
    metrics: Sequence[str | Spec],
    *,
    by: Sequence[str | Sequence[str]] | str = (),
    bootstrap: int = 0,
    unit: str | Sequence[str] | None = None,
    seed: int = 0,
    level: float = 0.95,
    interval: Method = "percentile",
    stratify: bool | None = None,
    gap: Gap | None = None,
    choices: Choices | None = None,
    remarks: Sequence[str] = (),
) -> Results:
    """Every metric for every run, pooled and per slice.

    `by` names slice columns, or several at once (`"codec,codec_q"`). `bootstrap` is the number of replicates (0: only
    intervals that need none), `unit` the column whose values are drawn as wholes (two may be crossed). Per grouping the
    macro average and the worst slice follow; `gap` adds figure(out) − figure(in). `choices` is what a protocol settles,
    `remarks` are further warnings to print.

    >>> t = Trials.of(label=[1, 1, 0, 0], score=[0.9, 0.4, 0.6, 0.1])
    >>> print(measure(t, ["eer", "roc_auc"]).one("roc_auc"))
    roc_auc = 0.7500 [0.0570, 1.0000]
    """
    chosen = choices or Choices()
    plan = Plan(bootstrap, _unit_names(unit), seed, level, interval, stratify)
    groupings = parse_by(by)
    columns = Columns(trials, chosen.negative_only)
    questions = [ask(m, trials, chosen) for m in metrics]
    if not len(trials):
        raise DataError("there are no trials to measure")
    wholes = samples_of_runs(columns)
    if chosen.both_eers and any(ties_matter(s) for s in wholes) and any(q.text == "eer" for q in questions):
        questions.insert(1 + [q.text for q in questions].index("eer"), ask("eer(ties=grouped)", trials, chosen))
    work = _Work(columns, questions, Draws.prepare(plan, columns), chosen)
    few = chosen.slice_metrics
    narrow = replace(work, questions=[q for q in questions if not few or q.metric.name in few], replicates={})
    estimates: list[Estimate] = []
    warnings: list[str] = [*trials.header.notes, *remarks]
    for whole in wholes:
        estimates += work.estimates(whole)
        warnings += alarms(whole, questions)
        for grouping in groupings:
            estimates += _by_slices(narrow, whole, grouping, warnings)
        if gap is not None:
            estimates += _gap(narrow, whole, gap)
    results = Results(tuple(estimates), "", tuple(dict.fromkeys(warnings)), chosen.protocol)
    return replace(results, signature=sign(results, trials, questions, plan, groupings, str(gap) if gap else None))


def ask(metric: str | Spec, trials: Trials, choices: Choices) -> Question:
    """A metric made ready for these trials: settings of the protocol filled in, score kind checked."""
    spec, entry, _ = resolve(metric)
    spec = Spec.of(spec.name, **{**choices.settings.get(spec.name, {}), **dict(spec.settings)})
    settings = entry.settings(spec)
    shown = {k: v for k, v in spec.settings if choices.settings.get(spec.name, {}).get(k, entry.defaults[k]) != v}
    for column in entry.columns:
        trials.column(column)
    kind = trials.header.score_kind
    if "score" in entry.columns and entry.kinds and kind not in entry.kinds:
        raise DataError(
            f"{spec.name} needs {' or '.join(entry.kinds)} scores and these are declared {kind!r}; "
            f"declare the kind if you know better, or calibrate on a development set"
        )
    if entry.positive is not None and not _takes(entry.positive, trials.header.positive):
        raise DataError(
            f"{spec.name} takes {entry.positive} to be the positive class and in these trials it is "
            f"{trials.header.positive!r}; read them with positive={entry.positive!r}"
        )
    form = entry.form(**settings) if entry.form is not None else None
    return Question(str(Spec.of(spec.name, **shown)), entry, settings, form)


def _takes(wanted: str, positive: str) -> bool:
    """Whether a metric's positive class is that of the trials; undeclared classes (`positive`) are the caller's word."""
    return positive == "positive" or same_class(wanted, positive)


def _unit_names(unit: str | Sequence[str] | None) -> tuple[str, ...]:
    if unit is None:
        return ()
    return tuple(p.strip() for p in unit.split(",")) if isinstance(unit, str) else tuple(unit)


@dataclass(frozen=True, eq=False)
class _Work:
    """The questions and the draws, and the replicates of every sample that was asked."""

    columns: Columns
    questions: list[Question]
    draws: Draws
    choices: Choices = field(default_factory=Choices)
    replicates: dict[str, list[Floats]] = field(default_factory=dict)

    def estimates(self, sample: Sample) -> list[Estimate]:
        """Every question's figure of one sample."""
        if self.draws.plan.bootstrap:
            pairs = zip(self.questions, self._replicates(sample), strict=True)
            self.replicates[sample.name] = [np.nan_to_num(r) if self._is_zeroed(q) else r for q, r in pairs]
        return [self._estimate(i, q, sample) for i, q in enumerate(self.questions)]

    def _replicates(self, sample: Sample) -> list[Floats]:
        """Replicates of every question; nothing is known from those of a figure that gets no interval."""
        drawn = iter(self.draws.replicates([q for q in self.questions if q.metric.interval], sample))
        unknown = np.full(self.draws.plan.bootstrap, math.nan)
        return [next(drawn) if q.metric.interval else unknown for q in self.questions]

    def _estimate(self, index: int, question: Question, sample: Sample) -> Estimate:
        value = question.value(sample)
        row = _row(question, sample.n, sample.n_positive, sample.run, sample.slice)
        row = replace(row, of=getattr(value, "of", None))
        if math.isnan(value) and self._is_zeroed(question):
            return replace(row, value=0.0, note=f"0 by convention: nothing to divide by in {question.metric.name}")
        if math.isnan(value):
            return replace(row, value=None, note=why_undefined(sample, question))
        low, high, method, lost = self._interval(index, question, sample, value)
        silence = why_no_interval(self.draws.plan, question, sample, value)
        notes = [few(sample), silence, f"{lost} replicates without a class left out" if lost else None]
        note = "; ".join(n for n in notes if n) or None
        return replace(row, value=float(value), low=low, high=high, method=method, note=note)

    def _is_zeroed(self, question: Question) -> bool:
        return self.choices.zero_undefined and isinstance(question.form, OfCounts)

    def _interval(
        self, index: int, question: Question, sample: Sample, value: float
    ) -> tuple[float | None, float | None, str | None, int]:
        plan = self.draws.plan
        if why_no_interval(plan, question, sample, value) is not None:
            return None, None, None, 0
        if isinstance(value, Rate) and not plan.unit:
            return *_known(wilson(value.hits, value.of, plan.level)), "wilson", 0
        if isinstance(value, Quantile) and not plan.unit:
            return *_known(quantile_interval(value.ordered, value.share, plan.level)), "order statistics", 0
        is_area = isinstance(question.form, PairShare)
        if plan.bootstrap and not (is_area and self.choices.delong and not plan.unit):
            drawn = self.replicates[sample.name][index]
            ends = self.draws.interval(question, sample, value, drawn)
            return *_known(ends), f"bootstrap {plan}", int(np.isnan(drawn).sum())
        if is_area:
            return *_known(auc_interval(sample.tally, plan.level)), "delong", 0
        return None, None, None, 0


def _row(question: Question, n: int, n_positive: int, run: Mapping[str, str], slice_: Mapping[str, str]) -> Estimate:
    return Estimate(
        question.text,
        None,
        n=n,
        n_positive=n_positive,
        run=dict(run),
        slice=dict(slice_),
        settings=question.settings,
        best=question.metric.best,
    )


def _known(ends: tuple[float, float]) -> tuple[float | None, float | None]:
    return (None, None) if math.isnan(ends[0]) else ends


def _by_slices(work: _Work, whole: Sample, grouping: Grouping, warnings: list[str]) -> list[Estimate]:
    samples = samples_of_slices(whole, grouping)
    if len(samples) == 1:
        value = ", ".join(f"{k}={v}" for k, v in samples[0].slice.items())
        warnings.append(f"a table by {' × '.join(grouping)} is trivial here: every trial has {value}")
        return []
    rows = [e for sample in samples for e in work.estimates(sample)]
    size = len(work.questions)
    averages = []
    for i, question in enumerate(work.questions):
        cells = rows[i::size]
        averages += [_macro(work, whole, grouping, i, question, samples, cells), *_worst(question, cells)]
        if work.choices.within and isinstance(question.form, PairShare):
            averages.append(_within(work, whole, grouping, i, question, samples, cells))
    return rows + averages


def _macro(
    work: _Work,
    whole: Sample,
    grouping: Grouping,
    i: int,
    question: Question,
    samples: list[Sample],
    cells: list[Estimate],
) -> Estimate:
    """The simple mean over the slices where the figure is defined, with the mean of their replicates."""
    defined = [(s, e) for s, e in zip(samples, cells, strict=True) if e.value is not None]
    everywhere = dict.fromkeys(grouping, "*")
    row = replace(_row(question, whole.n, whole.n_positive, whole.run, everywhere), average="macro")
    if not defined:
        return replace(row, note="undefined: in no slice defined")
    values = [e.value for _, e in defined if e.value is not None]
    note = None if len(defined) == len(cells) else f"over {len(defined)} of {len(cells)} slices"
    row = replace(row, value=float(np.mean(values)), note=note)
    if not work.draws.plan.bootstrap:
        return row
    if not work.draws.plan.unit and any(name in work.columns.negative_only for name in grouping):
        shared = (
            f"no interval: these slices share their {work.columns.trials.header.positive} trials; draw a --unit for one"
        )
        return replace(row, note="; ".join(filter(None, (note, shared))))
    drawn = np.mean([work.replicates[s.name][i] for s, _ in defined], axis=0)
    low, high = _known(intervals.percentile(drawn, work.draws.plan.level))
    return replace(row, low=low, high=high, method=f"bootstrap {replace(work.draws.plan, method='percentile')}")


def _within(
    work: _Work,
    whole: Sample,
    grouping: Grouping,
    i: int,
    question: Question,
    samples: list[Sample],
    cells: list[Estimate],
) -> Estimate:
    """The AUC over the pairs of which both are in one slice: the mean of the slices, each by its number of pairs."""
    defined = [(s, e.value) for s, e in zip(samples, cells, strict=True) if e.value is not None]
    row = replace(_row(question, whole.n, whole.n_positive, whole.run, dict.fromkeys(grouping, "*")), average="within")
    if not defined:
        return replace(row, note="undefined: in no slice defined")
    pairs = np.array([s.n_positive * (s.n - s.n_positive) for s, _ in defined], dtype=np.float64)
    note = None if len(defined) == len(cells) else f"over {len(defined)} of {len(cells)} slices"
    row = replace(row, value=float(pairs @ [v for _, v in defined] / pairs.sum()), note=note)
    if not work.draws.plan.bootstrap or work.draws.plan.unit:
        return row
    drawn = pairs @ np.array([work.replicates[s.name][i] for s, _ in defined]) / pairs.sum()
    low, high = _known(intervals.percentile(drawn, work.draws.plan.level))
    return replace(row, low=low, high=high, method=f"bootstrap {replace(work.draws.plan, method='percentile')}")


def _worst(question: Question, cells: list[Estimate]) -> list[Estimate]:
    """The slice with the worst figure, and its own interval."""
    defined = [e for e in cells if e.value is not None]
    if not defined:
        return []
    pick = max if question.metric.best == "low" else min
    worst = pick(defined, key=lambda e: e.value if e.value is not None else math.nan)
    return [replace(worst, average="worst", note=f"worst of {len(defined)}")]


def _gap(work: _Work, whole: Sample, gap: Gap) -> list[Estimate]:
    codes, values = work.columns.codes(gap.column)
    unknown = [v for v in (*gap.inside, *gap.outside) if v not in values]
    if unknown:
        raise UsageError(f"no {gap.column} is {unknown[0]!r}; there are {', '.join(values)}")
    inside = np.isin(codes, [values.index(v) for v in gap.inside])
    outside = np.isin(codes, [values.index(v) for v in gap.outside]) if gap.outside else ~inside
    sides = [
        Sample(work.columns, whole.rows[mask[whole.rows]], whole.run, {gap.column: f"{name} {gap.label}"})
        for name, mask in (("in", inside), ("out", outside))
    ]
    pairs = [work.estimates(side) for side in sides]
    return [
        _gap_row(work, i, gap, sides, within, beyond) for i, (within, beyond) in enumerate(zip(*pairs, strict=True))
    ]


def _gap_row(work: _Work, i: int, gap: Gap, sides: list[Sample], within: Estimate, beyond: Estimate) -> Estimate:
    row = replace(
        beyond,
        slice={gap.column: gap.label},
        average="gap",
        n=within.n + beyond.n,
        value=None,
        low=None,
        high=None,
        method=None,
    )
    row = replace(row, n_positive=within.n_positive + beyond.n_positive)
    if within.value is None or beyond.value is None:
        return replace(row, note=within.note or beyond.note)
    row = replace(row, value=beyond.value - within.value, note=f"{beyond.value:.4f} out, {within.value:.4f} in")
    if not work.draws.plan.bootstrap:
        return row
    drawn = work.replicates[sides[1].name][i] - work.replicates[sides[0].name][i]
    low, high = _known(intervals.percentile(drawn, work.draws.plan.level))
    return replace(row, low=low, high=high, method=f"bootstrap {replace(work.draws.plan, method='percentile')}")
