"""Compare two runs on the same questions: per metric and slice the difference, its interval and its test."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import Final, Unpack

import numpy as np

from hitmiss._version import __version__
from hitmiss.core.artifacts import SHORT
from hitmiss.core.columns import ColumnKeywords
from hitmiss.core.design import By, ComparisonRules, Design, Grouping, Side
from hitmiss.core.errors import DataError
from hitmiss.core.expressions import Derived
from hitmiss.core.finding import Remark, joined
from hitmiss.core.metric_spec import MetricSpec
from hitmiss.core.progress import each, part, step
from hitmiss.core.protocol import Protocol
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.registry import resolve
from hitmiss.core.results import Results, prefixed
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.sorting import Floats
from hitmiss.core.trials import Trials, TrialsLike, demanded
from hitmiss.derive.confidences import with_confidence
from hitmiss.engine.columns import Columns, OneClassColumns
from hitmiss.engine.comparability import Breach, breaches, unchecked
from hitmiss.engine.compared_gaps import compared_gaps
from hitmiss.engine.comparison import (
    ALL,
    BOTH,
    NOT_TESTED,
    UNDEFINED,
    WRONG,
    Comparison,
    Difference,
    Discordance,
    judged,
)
from hitmiss.engine.contrasts import (
    NO_TEST,
    NO_WIDTH,
    RIGHT,
    Contrast,
    choose_test,
    contrast,
    drawn_difference,
    p_of_difference,
)
from hitmiss.engine.derived import over
from hitmiss.engine.drawn import Drawn
from hitmiss.engine.interval import area_interval, choose_interval
from hitmiss.engine.measure import usual_metrics
from hitmiss.engine.natural_unit import HINTED, HINTED_METRICS, NOTABLE, ratios_text, usual_unit, with_natural_unit
from hitmiss.engine.notes import FEW
from hitmiss.engine.paired_draws import PairedDraws
from hitmiss.engine.paired_samples import Both, PairedSample, columns_of, outcomes, slices, wholes
from hitmiss.engine.paired_shares import Mask
from hitmiss.engine.pairing import Pair, completed, incomplete, pair, size_of
from hitmiss.engine.prepare import display_text, prepare_metric, prepared_for
from hitmiss.engine.samples import by_target
from hitmiss.engine.score_checks import check_scores
from hitmiss.engine.signature import GAPS_JOIN, render
from hitmiss.engine.weighted import weighted_plan
from hitmiss.stats import mcnemar
from hitmiss.stats.corrections import adjusted
from hitmiss.stats.forms.composite import Difference as DifferenceForm
from hitmiss.stats.forms.composite import Mean
from hitmiss.stats.p_value import detectable

ANSWERED: Final = 4
"""Outcome codes below this one are answers."""


@dataclass(frozen=True, eq=False)
class ComparedSlice:
    """The contrast of a question on one sample, with the replicates of the difference if they were drawn."""

    question: Both
    sample: PairedSample
    found: Contrast
    deltas: Floats | None


@dataclass(frozen=True, eq=False)
class Work:
    """What is computed on the samples, and how."""

    questions: list[Both]
    plan: SamplingPlan
    test: str
    correction: str
    paired: Pair
    protocol: Protocol

    def everything(
        self, samples: list[PairedSample], groupings: list[Grouping], narrow: tuple[str, ...]
    ) -> tuple[list[Difference], list[Discordance]]:
        """Return the rows of all samples, then of their slices with averages.

        P values are adjusted within each family.
        """
        asked = [q for q in self.questions if not narrow or q[0].metric.name in narrow]
        tables: list[list[Difference]] = [[] for _ in range(1 + len(groupings))]
        averages: list[list[Difference]] = [[] for _ in groupings]
        inside: list[list[PairedSample]] = [[] for _ in groupings]
        for whole in _in_turn(samples, "comparing"):
            draws = PairedDraws.prepare(self.plan, whole, self.protocol.zero_undefined)
            with step("all pairs", 1 + len(groupings)):
                with part():
                    tables[0] += map(self.row, self.cells(whole, self.questions, draws))
                for place, grouping in enumerate(groupings):
                    with part():
                        parts = slices(whole, grouping)
                        told = _in_turn(parts, f"by {' × '.join(grouping)}")
                        work, drawn = self._within(grouping, whole, draws)
                        cells = [work.cells(sample, asked, drawn) for sample in told]
                        tables[1 + place] += [work.row(cell) for own in cells for cell in own]
                        columns = [[own[i] for own in cells] for i in range(len(asked))]
                        averages[place] += [work.macro(whole, grouping, own, drawn) for own in columns]
                        inside[place] += parts
        decided = any("decision" in q[0].metric.columns for q in self.questions)
        every = [*samples, *chain.from_iterable(inside)] if decided else []
        rows = _adjusted([*chain.from_iterable(tables)], self.correction)
        counted = _adjusted_tables([d for sample in every for d in self.discordances(sample)], self.correction)
        return [judged(d, self.plan.level) for d in (*rows, *chain.from_iterable(averages))], counted

    def _within(self, grouping: Grouping, whole: PairedSample, draws: PairedDraws) -> tuple[Work, PairedDraws]:
        """Return the work and the draws for slices by some columns (see `SamplingPlan.within`)."""
        plan = self.plan.within(grouping)
        if plan is self.plan:
            return self, draws
        return replace(self, plan=plan), PairedDraws.prepare(plan, whole, self.protocol.zero_undefined)

    def cells(self, sample: PairedSample, questions: list[Both], draws: PairedDraws) -> list[ComparedSlice]:
        """Compute every question on one sample."""
        questions = [_for_sample(q, sample) for q in questions]
        tests = [choose_test(q, sample, self.test, bool(self.plan.unit)) for q in questions]
        need = [i for i, t in enumerate(tests) if self.plan.bootstrap and t not in ("delong", NO_TEST)]
        drawn = draws.deltas([questions[i] for i in need], sample) if need else []
        deltas = dict(zip(need, drawn, strict=True))
        return [
            ComparedSlice(q, sample, contrast(q, sample, t, draws, deltas.get(i)), deltas.get(i))
            for i, (q, t) in enumerate(zip(questions, tests, strict=True))
        ]

    def row(self, cell: ComparedSlice) -> Difference:
        """Return a cell as a row; its p value is not adjusted yet."""
        found, sample, question = cell.found, cell.sample, cell.question[0]
        p = _known(found.p_value)
        counted = found.is_too_few and not self.plan.unit  # the note says how few there are
        notes = [_undefined(cell, self.paired.names), None if counted else _few(sample), found.note]
        return Difference(
            metric=question.text,
            a=_known(found.a),
            b=_known(found.b),
            delta=_known(found.delta),
            low=_known(found.low),
            high=_known(found.high),
            p_value=p,
            p_adjusted=p,
            test=found.test or None,
            n_pairs=sample.n,
            n_positive=sample.n_positive,
            wins=found.wins,
            ties=found.ties,
            losses=found.losses,
            mdd=detectable(found.error, self.plan.level),
            slice=dict(sample.slice),
            note=joined(*notes),
            best=question.metric.best,
        )

    def derived(self, derived: Derived, whole: PairedSample) -> Difference:
        """Return a number that a protocol makes of several metrics, for both runs; it is not tested."""
        known = {q[0].text: q for q in self.questions}
        questions = {t.metric: known[display_text(t.metric, self.protocol)] for t in derived.terms}
        best = questions[derived.terms[0].metric][0].metric.best
        row = Difference(derived.name, None, None, None, n_pairs=whole.n, n_positive=whole.n_positive, best=best)
        row = replace(row, slice=dict(whole.slice), verdict=NOT_TESTED, note=Remark.of("no-test/composite"))
        sides: list[tuple[float, float]] = []
        for term in derived.terms:
            samples = slices(whole, term.columns) if term.columns else [whole]
            pairs = [sample.values(_for_sample(questions[term.metric], sample)) for sample in samples]
            own = [[v for v in side if not math.isnan(v)] for side in zip(*pairs, strict=True)]
            if not all(own):
                return replace(row, verdict=UNDEFINED, note=Remark.of("undefined/part", lost=term))
            sides.append((float(over(term, own[0])), float(over(term, own[1]))))
        with np.errstate(divide="ignore", invalid="ignore"):
            a, b = (float(derived.of([np.float64(pair[i]) for pair in sides])) for i in (0, 1))
        if not math.isfinite(a - b):
            return replace(row, verdict=UNDEFINED, note=Remark.of("undefined/zero-denominator"))
        return replace(row, a=a, b=b, delta=b - a)

    def macro(
        self, whole: PairedSample, grouping: Grouping, cells: list[ComparedSlice], draws: PairedDraws
    ) -> Difference:
        """Return the mean over the slices where both numbers are defined; wins, ties and losses count slices."""
        good = [c for c in cells if not math.isnan(c.found.delta)]
        sign = -1.0 if cells[0].question[0].metric.best == "low" else 1.0
        gains = [sign * c.found.delta for c in good]
        row = Difference(cells[0].question[0].text, None, None, None, average="macro", n_pairs=whole.n)
        row = replace(row, slice={**whole.slice, **dict.fromkeys(grouping, "*")}, n_positive=whole.n_positive)
        row = replace(row, best=cells[0].question[0].metric.best)
        if not good:
            return replace(row, note=Remark.of("undefined/no-slice-defined"))
        wins, losses = sum(g > 0 for g in gains), sum(g < 0 for g in gains)
        means = [math.fsum(getattr(c.found, side) for c in good) / len(good) for side in ("a", "b")]
        row = replace(row, a=means[0], b=means[1], delta=means[1] - means[0], wins=wins, losses=losses)
        note = None if len(good) == len(cells) else Remark.of("mean-over-some", n_defined=len(good), n_cells=len(cells))
        row = replace(row, ties=len(good) - wins - losses, note=note)
        if good[0].found.test == NO_TEST:
            return replace(row, note=joined(note, good[0].found.note))
        shares = any(whole.parts[0].a.columns.one_class.of(grouping)) and not self.plan.unit
        if shares:
            return replace(row, note=joined(note, Remark.of("no-test/shared-trials")))
        unknown = sum(c.found.is_too_few for c in good)
        if unknown:
            why = Remark.of("no-interval/slices-too-little", unknown=unknown, n_cells=len(cells))
            return replace(row, note=joined(note, why))
        return self._macro_tested(row, good, draws)

    def _macro_tested(self, row: Difference, good: list[ComparedSlice], draws: PairedDraws) -> Difference:
        """Test a mean over slices: the slices are disjoint, so variances of areas add up.

        Other replicates are averaged.
        """
        assert row.delta is not None
        form = Mean(DifferenceForm(good[0].question[0].form, paired=True))
        if all(c.found.test == "delong" for c in good):
            error = math.sqrt(math.fsum(c.found.error**2 for c in good)) / len(good)
            if not error > 0.0:
                return row
            found = choose_interval(form, Drawn(row.delta, (-1.0, 1.0), error=error), self.plan)
            p = math.erfc(abs(row.delta) / error / math.sqrt(2.0))
            row = replace(row, low=found.low, high=found.high, p_value=p, p_adjusted=p, test="delong")
            return replace(row, mdd=detectable(error, self.plan.level))
        drawn = [c.deltas for c in good if c.deltas is not None]
        if len(drawn) < len(good):
            return row
        deltas = form.combine(drawn)
        known = drawn_difference([(c.question, c.sample) for c in good], deltas, row.delta or 0.0, draws)
        p = p_of_difference(good[0].question[0].form, known)
        if math.isnan(p):
            return row
        low, high = choose_interval(form, known, self.plan).ends
        error = float(np.nanstd(deltas, ddof=1))
        row = replace(row, p_value=p, p_adjusted=p, test="bootstrap", mdd=detectable(error, self.plan.level))
        if low == high:
            return replace(row, note=joined(row.note, Remark.of("no-interval/no-width", why=NO_WIDTH)))
        return replace(row, low=_known(low), high=_known(high))

    def discordances(self, sample: PairedSample) -> list[Discordance]:
        """Return McNemar's tables of a sample: abstentions as wrong, and, if different, only pairs with two answers."""
        codes = [
            np.concatenate([outcomes(s) for s in sides])[sample.once]
            for sides in ([p.a for p in sample.parts], [p.b for p in sample.parts])
        ]
        right = [np.isin(code, RIGHT) for code in codes]
        both = (codes[0] < ANSWERED) & (codes[1] < ANSWERED)
        everything = np.ones(len(both), dtype=bool)
        readings = {ALL: everything} if both.all() else {WRONG: everything, BOTH: both}
        independent = len(sample.parts) == 1 and not self.plan.unit
        return [
            _table(reading, inside, right[0], right[1], independent, sample.slice)
            for reading, inside in readings.items()
        ]


def _in_turn(samples: list[PairedSample], what: str) -> Iterator[PairedSample]:
    """Yield the samples one after the other, and report progress by the number of pairs."""
    return each(samples, what, [sample.n for sample in samples])


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _table(
    reading: str, inside: Mask, right_a: Mask, right_b: Mask, independent: bool, where: Mapping[str, str]
) -> Discordance:
    """Return McNemar's table of the pairs that are counted."""
    both, only_a, only_b, neither = (
        int((inside & (right_a == x) & (right_b == y)).sum()) for x in (True, False) for y in (True, False)
    )
    row = Discordance(reading, int(inside.sum()), both, only_a, only_b, neither, slice=dict(where))
    if not independent:
        return row
    p = mcnemar.exact(only_a, only_b)
    return replace(row, p_exact=p, p_mid=mcnemar.mid_p(only_a, only_b), p_adjusted=p)


def _undefined(cell: ComparedSlice, names: tuple[str, str]) -> str | None:
    if not math.isnan(cell.found.delta):
        return None
    sample, head = cell.sample, cell.sample.parts[0].a.columns.trials.header
    if sample.n_positive in (0, sample.n):
        return Remark.of("undefined/one-class", part=head.positive if sample.n_positive else head.negative)
    where = [name for name, value in zip(names, (cell.found.a, cell.found.b), strict=True) if math.isnan(value)]
    return (
        Remark.of("undefined/empty-denominator", places=" and ".join(where))
        if where
        else Remark.of("undefined/both-infinite")
    )


def _few(sample: PairedSample) -> str | None:
    head = sample.parts[0].a.columns.trials.header
    for name, n in ((head.positive, sample.n_positive), (head.negative, sample.n - sample.n_positive)):
        if 0 < n < FEW:
            return Remark.of("few-of-class", n=n, name=name)
    return None


def _families(rows: Sequence[Difference]) -> list[tuple[tuple[object, ...], list[Difference]]]:
    """Group rows into families: one metric over the slices of one grouping."""
    ordered = sorted(rows, key=lambda d: (d.metric, tuple(d.slice)))
    return [(key, list(own)) for key, own in groupby(ordered, key=lambda d: (d.metric, tuple(d.slice)))]


def _adjusted(rows: list[Difference], correction: str) -> list[Difference]:
    """Return the rows in their order, with p values adjusted within each family."""
    new = {
        id(row): p
        for _, own in _families(rows)
        for row, p in zip(own, adjusted([r.p_value for r in own], correction), strict=True)
    }
    return [replace(row, p_adjusted=new[id(row)]) for row in rows]


def _adjusted_tables(rows: list[Discordance], correction: str) -> list[Discordance]:
    found: dict[tuple[object, ...], list[Discordance]] = {}
    for row in rows:
        found.setdefault((row.reading, tuple(row.slice)), []).append(row)
    new = {
        id(row): p
        for own in found.values()
        for row, p in zip(own, adjusted([r.p_exact for r in own], correction), strict=True)
    }
    return [replace(row, p_adjusted=new[id(row)]) for row in rows]


def compare(
    a: TrialsLike | Results,
    b: TrialsLike | Results,
    metrics: str | Sequence[str | MetricSpec] | Design = (),
    *,
    by: By = (),
    bootstrap: int = 1000,
    unit: str | Sequence[str] | None = None,
    seed: int = 0,
    level: float = 0.95,
    correction: str = "auto",
    test: str = "auto",
    names: tuple[str, str] = ("A", "B"),
    allow_missing: bool = False,
    force: bool = False,
    protocol: Protocol | None = None,
    **reading: Unpack[ColumnKeywords],
) -> Comparison:
    """Compare two runs on the same questions: B − A per metric and slice, with a paired interval and a test.

    If runs were repeated, numbers are averaged over the repetitions, and items are resampled.

    Parameters
    ----------
    a, b
        The trials of the two runs; or files or tables, which are read as `hm.read` does, or results with their trials.
    metrics
        Metrics with their settings (by default those of results, or the usual ones); or a design, which states everything else too.
    by, bootstrap, unit, seed, level, protocol, **reading
        As for `measure`.
    correction
        `holm`, `bh` or `none` (`auto` is holm): how p values are adjusted over the slices of one metric and grouping.
    test
        `auto`, `mcnemar`, `delong`, `bootstrap` or `permutation` (see `engine.contrasts`).
    names
        The names of the two runs.
    allow_missing
        Compare only the questions that both runs answered, instead of refusing runs with different questions.
    force
        Report what makes the comparison invalid as a warning instead of refusing it.

    Returns
    -------
    Comparison
        One difference per metric and slice, and McNemar's tables.

    Raises
    ------
    UsageError
        For an unknown metric, test, correction or column.
    DataError
        If the runs cannot be compared.

    >>> label = [1, 1, 0, 0] * 3
    >>> a, b = Trials.of(label, [0.9, 0.4, 0.6, 0.1] * 3), Trials.of(label, [0.9, 0.7, 0.6, 0.1] * 3)
    >>> found = compare(a, b, ["roc_auc"]).one("roc_auc")
    >>> found.a, found.b, found.delta, found.verdict
    (0.75, 1.0, 0.25, 'no difference shown')
    """
    own = tuple(dict.fromkeys(e.metric for e in a)) if isinstance(a, Results) else ()
    a, b = demanded(a, "compare", reading), demanded(b, "compare", reading)
    if not metrics and protocol is None:
        metrics = own or usual_metrics([a, b])
    contest = ComparisonRules(test=test, correction=correction, allow_missing=allow_missing, force=force)
    design = Design.of(
        () if isinstance(metrics, Design) else metrics,
        by=by,
        unit=unit,
        bootstrap=bootstrap,
        seed=seed,
        level=level,
        protocol=protocol,
        contest=contest,
    )
    if isinstance(metrics, Design):
        design = metrics.alone(design, Design(bootstrap=1000, contest=ComparisonRules()))
    a, b = (with_confidence(run, design.metrics) for run in (a, b))
    return compare_design(a, b, design, names)


def compare_design(
    a: Trials, b: Trials, design: Design, names: tuple[str, str] = ("A", "B"), derived: Sequence[Derived] = ()
) -> Comparison:
    """Compare two runs as a design with metrics asks, and the `derived` numbers made of its metrics."""
    chosen, contest, groupings = design.rules, design.contest or ComparisonRules(), list(design.groupings)
    on_scores = any("score" in resolve(m)[1].columns for m in design.metrics)
    paired = pair(a, b, names=names, allow_missing=contest.allow_missing, scores=on_scores)
    (first, second), there = completed((paired.a, paired.b), paired.key)
    paired = replace(paired, a=first, b=second, there=there)
    pooled = by_target(paired.a, groupings) and paired.a.has_targets
    design = with_natural_unit(design, paired.a)
    unit = paired.a.unit_names(design.units) or (("item",) if paired.repeats or pooled else ())
    plan = SamplingPlan(design.bootstrap, unit, design.seed, design.level)
    if paired.a.header.weight is not None:
        plan = weighted_plan(paired.a, plan)
    across = [c for one in derived for term in one.terms for c in term.columns]
    units = [u for u in plan.unit if u != "item"]
    shared = [*dict.fromkeys([*(c for g in groupings for c in g), *units, *across, *design.identity])]
    columns = columns_of(paired, shared, OneClassColumns(chosen.negative_only, chosen.positive_only), pooled)
    questions = [
        (prepare_metric(m, columns[0].trials, chosen), prepare_metric(m, columns[1].trials, chosen))
        for m in design.metrics
    ]
    if not len(paired):
        raise DataError.of("no-pairs")
    wholes_ = wholes(*columns)
    warnings = _warnings(paired, wholes_, questions, on_scores, contest.force)
    correction = "holm" if contest.correction == "auto" else contest.correction
    work = Work(questions, plan, contest.test, correction, paired, chosen)
    rows, tables = work.everything(wholes_, groupings, chosen.slice_metrics)
    rows += [work.derived(one, whole) for whole in wholes_ for one in derived]
    rows += compared_gaps(paired.a, paired.b, design, plan)
    if design.identity:
        from hitmiss.engine.identities import Identities

        identities = Identities.of(columns[0].trials, design, plan, pooled)
        both = columns[0].trials, columns[1].trials
        rows += [d for whole in wholes_ for d in identities.compare(both, whole, correction)]
        warnings += identities.notes
    warnings += unused_unit(columns, questions, plan, chosen, rows)
    made = Comparison(
        names,
        tuple(rows),
        tuple(tables),
        "",
        tuple(dict.fromkeys(warnings)),
        design.level,
        correction,
        chosen.name or None,
        with_sides(design, {names[0]: a, names[1]: b}),
    )
    return replace(made, signature=_sign(made, work, groupings, chosen, contest.force))


def unused_unit(
    columns: tuple[Columns, Columns],
    questions: Sequence[Both],
    plan: SamplingPlan,
    protocol: Protocol,
    rows: Sequence[Difference],
) -> list[str]:
    """Say what resampling the natural unit would change in `rows`, differences of two runs whose trials were drawn."""
    whole = wholes(*columns)[0]
    unit = usual_unit(columns[0].trials, protocol)
    cheap = [q for q in questions if q[0].metric.interval and q[0].form.kind != "columns"][:HINTED_METRICS]
    if plan.unit or not plan.bootstrap or not unit or not cheap:
        return []
    names, option = " × ".join(unit), ",".join(unit)
    now = {d.metric: d.mdd for d in reversed(rows) if d.average is None and dict(d.slice) == dict(whole.slice)}
    drawn = PairedDraws.prepare(replace(plan, unit=unit, bootstrap=HINTED), whole, protocol.zero_undefined)
    pairs = zip(cheap, drawn.deltas(cheap, whole), strict=True)
    errors = {q.text: detectable(float(np.nanstd(d, ddof=1)), plan.level) for (q, _), d in pairs}
    ratios = {name: e / own for name, e in errors.items() if e and (own := now.get(name))}
    if not ratios or max(ratios.values()) <= NOTABLE:
        return []
    return [Remark.of("unit-not-used", name=names, unit=option, ratios=ratios_text(ratios), factors=ratios)]


def with_sides(design: Design, runs: Mapping[str, Trials]) -> Design:
    """Return the design with what is known about how each run was read."""
    sides = tuple(
        Side(name, t.header.reading or ReadSpec(), t.header.threshold.value if t.header.threshold else None)
        for name, t in runs.items()
    )
    return replace(design, contest=replace(design.contest or ComparisonRules(), sides=sides))


def with_contents(design: Design, runs: Mapping[str, Trials]) -> Design:
    """Return the design of a comparison with the hash of each run's rows, which only files need; it takes a sort."""
    contest = design.contest or ComparisonRules()
    sides = tuple(replace(side, content=runs[side.name].content) for side in contest.sides)
    return replace(design, contest=replace(contest, sides=sides))


def _for_sample(question: Both, sample: PairedSample) -> Both:
    """Return a metric for both sides of a sample, with the settings that trials bring for its slice."""
    return prepared_for(question[0], sample.parts[0].a), prepared_for(question[1], sample.parts[0].b)


def _warnings(
    paired: Pair, samples: list[PairedSample], questions: Sequence[Both], on_scores: bool, force: bool
) -> list[str]:
    """Return all warnings; whatever makes the comparison invalid is refused unless it is forced."""
    wrong = breaches(paired.a, paired.b, same_items=not any(paired.left_out)) + (
        _directions(samples[0], paired.names) if on_scores else []
    )
    if wrong and not force:
        raise DataError.of(
            "incomparable", first=paired.names[0], second=paired.names[1], wrong="; ".join(map(str, wrong))
        )
    found: list[str] = [Remark.of("comparison-forced/invalid", breach=breach) for breach in wrong]
    if any(paired.left_out):
        left = " and ".join(f"{n:,} of {who}" for n, who in zip(paired.left_out, paired.names, strict=True))
        first = f", as {', '.join(map(repr, paired.first))}" if paired.first else ""
        found.append(f"different sample sizes: left out because they have no partner: {left}{first}")
    found += incomplete(paired.there) if paired.there is not None else []
    found += unchecked(paired.a, paired.b)
    for i, (trials, name) in enumerate(zip((paired.a, paired.b), paired.names, strict=True)):
        found += [prefixed(f"{name}: ", note) for note in trials.header.notes]
        sides = [part.a if i == 0 else part.b for sample in samples for part in sample.parts]
        found += [
            prefixed(f"{name}: ", alarm) for side in sides for alarm in check_scores(side, [q[i] for q in questions])
        ]
    return found


def _directions(sample: PairedSample, names: tuple[str, str]) -> list[Breach]:
    """Find scores that point the right way in one run and the wrong way in the other."""
    part = sample.parts[0]
    if not 0 < part.a.n_positive < part.a.n:
        return []
    ends = [area_interval(side.tally) for side in (part.a, part.b)]
    reversed_ = [high < 0.5 for _, high in ends]
    if reversed_[0] == reversed_[1] or not any(low > 0.5 for low, _ in ends):
        return []
    who = names[0] if reversed_[0] else names[1]
    negative = part.a.columns.trials.header.negative
    said = tuple("reversed" if t else "not reversed" for t in reversed_)
    return [Breach("different directions", turned(who, negative), (said[0], said[1]))]


def turned(who: str, negative: str) -> str:
    """Return the warning about a run whose scores point the wrong way."""
    return f"higher scores of {who} go with {negative}; read it with --higher"


def _sign(made: Comparison, work: Work, groupings: list[Grouping], protocol: Protocol, force: bool) -> str:
    """Return one line that records every choice and a hash of the numbers."""
    head, paired = work.paired.a.header, work.paired
    parts = {
        "hitmiss": __version__,
        "compare": "paired",
        "protocol": protocol.name or "none",
        "metrics": "+".join(
            str(MetricSpec.of(q.metric.name, **q.settings)).replace(" ", "") for q, _ in work.questions
        ),
        "pos": head.positive,
        "kind": head.score_kind,
        "weight": f"{head.weight},sampling"
        if head.weight
        else f"{head.repeated_by},frequency"
        if head.repeated_by
        else "none",
        "by": ",".join("*".join(g) for g in groupings) or "none",
        "gap": GAPS_JOIN.join(map(str, made.design.gaps if made.design else ())) or "none",
        "identities": "+".join(made.design.identity if made.design else ()) or "none",
        "test": work.test,
        "correction": work.correction,
        "boot": str(work.plan),
        "level": f"{work.plan.level:g}",
        "forced": "yes" if force else "none",
        "left-out": "/".join(map(str, paired.left_out)) if any(paired.left_out) else "none",
        "complete": "none" if paired.there is None or paired.there.is_full else f"{paired.there.n}/{paired.there.of}",
        "n": "/".join(map(str, size_of(paired.a))),
        "a": digest(paired.a),
        "b": digest(paired.b),
        "numpy": np.__version__,
        "out": digest_of(made),
    }
    return render(parts)


def digest_of(made: Comparison) -> str:
    """Return a short hash of the numbers of a comparison to ten significant digits."""
    figures = "\n".join(
        repr(
            (d.metric, sorted(d.slice.items()), d.average, *(f"{x:.9e}" if x is not None else "-" for x in _numbers(d)))
        )
        for d in made
    )
    return hashlib.sha256(figures.encode()).hexdigest()[:SHORT]


def digest(trials: Trials) -> str:
    """Return a hash of the files and of the answers, because two systems may be in one file."""
    answers = [trials.frame[name] for name in ("score", "decision", "confidence") if name in trials.frame.columns]
    sha = hashlib.sha256()
    for column in answers:
        sha.update(np.ascontiguousarray(column.to_numpy()).data)
    return f"{trials.digest}.{sha.hexdigest()[:SHORT]}"


def _numbers(d: Difference) -> tuple[float | None, ...]:
    return d.a, d.b, d.low, d.high, d.p_value, d.p_adjusted
