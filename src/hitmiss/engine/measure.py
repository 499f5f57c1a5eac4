"""Measure metrics per run and slice, with intervals, averages, derived numbers, reasons, warnings and a signature."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

import numpy as np

from hitmiss.core.columns import ColumnKeywords
from hitmiss.core.design import By, Design, Grouping
from hitmiss.core.errors import DataError
from hitmiss.core.metric import Metric
from hitmiss.core.metric_spec import MetricSpec
from hitmiss.core.number_bands import with_bands
from hitmiss.core.progress import each, part, step
from hitmiss.core.protocol import Gap, Gaps, Protocol
from hitmiss.core.rates import Rate
from hitmiss.core.results import (
    Estimate,
    Results,
)
from hitmiss.core.sampling import Method, SamplingPlan
from hitmiss.core.sorting import Floats
from hitmiss.core.trials import Trials, TrialsLike, demanded
from hitmiss.derive.confidences import with_confidence
from hitmiss.engine.averages import by_slices, gap_rows
from hitmiss.engine.columns import Columns, OneClassColumns, Sample
from hitmiss.engine.draws import Draws
from hitmiss.engine.measurement import Measurement
from hitmiss.engine.natural_unit import undrawn, unused_unit, with_natural_unit
from hitmiss.engine.prepare import prepare_metric
from hitmiss.engine.prepared_metric import PreparedMetric
from hitmiss.engine.samples import by_target, samples_of_runs
from hitmiss.engine.score_checks import check_scores, ties_matter
from hitmiss.engine.signature import sign
from hitmiss.engine.weighted import columns_of_trials, weighted_plan
from hitmiss.metrics.usual import BY_COLUMN, GRADED
from hitmiss.stats.forms.trials import OfTerms

if TYPE_CHECKING:
    from hitmiss.core.expressions import Derived

__all__ = ["Gap", "measure", "measure_design"]


def measure(
    trials: TrialsLike,
    metrics: str | Sequence[str | MetricSpec] | Design = (),
    *,
    by: By = (),
    bootstrap: int = 0,
    unit: str | Sequence[str] | None = None,
    seed: int = 0,
    level: float = 0.95,
    interval: Method = "auto",
    stratify: bool | None = None,
    gap: Gaps = None,
    protocol: Protocol | None = None,
    remarks: Sequence[str] = (),
    **reading: Unpack[ColumnKeywords],
) -> Results:
    """Measure every metric for every run, over all trials and per slice.

    Parameters
    ----------
    trials
        The trials; a file or a table is read as `hm.read` does.
    metrics
        Metrics with their settings, such as `eer` or `min_dcf(c_fa=10)`; or a design, which states everything else too.
        None: the usual ones, `eer` and `roc_auc` of scores, `accuracy` and `f1` of decisions.
    by
        Slice columns, or several crossed (`"codec,codec_q"`). The slices of each grouping are followed by their macro
        average and the worst slice.
    bootstrap
        The number of bootstrap replicates. 0: only intervals that need no replicates.
    unit
        The column whose values are resampled as whole units, such as speakers (two columns may be crossed).
    seed, level, interval, stratify
        The seed of the draws, the level and the kind of intervals, and whether units are drawn within classes.
    gap
        Two domains, as `codec=NONE` or `codec=NONE:C01`; adds value(out) − value(in). A list gives several.
    protocol
        The evaluation rules to use.
    remarks
        Further warnings to print.
    **reading
        What the columns of a table are, as for `hm.read`: `label="truth"`, `score="p"`, `positive="fake"`, …

    Returns
    -------
    Results
        One estimate per metric, run and slice.

    Raises
    ------
    UsageError
        For an unknown metric, setting or column, or a metric of decisions if there are none.
    DataError
        If there are no trials, or the score kind or the classes do not fit a metric.

    Examples
    --------
    >>> t = Trials.of(label=[1, 1, 0, 0], score=[0.9, 0.4, 0.6, 0.1])
    >>> print(measure(t, ["eer", "roc_auc"]).one("roc_auc"))
    roc_auc = 0.7500 [0.0470, 0.9946]
    """
    trials = demanded(trials, "measure", reading)
    design = Design.of(
        () if isinstance(metrics, Design) else metrics or (usual_metrics([trials]) if protocol is None else ()),
        by=by,
        gap=gap or False,
        unit=unit,
        bootstrap=bootstrap,
        seed=seed,
        level=level,
        interval=interval,
        stratify=stratify,
        protocol=protocol,
    )
    if isinstance(metrics, Design):
        design = metrics.alone(design, Design(gap="none"))
    return measure_design(with_confidence(trials, design.metrics), design, remarks)


def usual_metrics(runs: Sequence[Trials]) -> tuple[str, ...]:
    """Return what runs are measured by if nothing is asked: what fits their scores, their decisions, or both.

    >>> usual_metrics([Trials.of([1, 0], [0.7, 0.2])]), usual_metrics([Trials.of([1, 0], decision=[1, 1])])
    (('eer', 'roc_auc'), ('accuracy', 'f1'))
    """
    has = [name for name in BY_COLUMN if all(name in run.frame.columns for run in runs)]
    if all(run.header.graded_by for run in runs):
        return (GRADED["decision" in has],)
    return tuple(metric for name in has for metric in BY_COLUMN[name])


def measure_design(
    trials: Trials,
    design: Design,
    remarks: Sequence[str] = (),
    derived: Sequence[Derived] = (),
    narrow: Collection[str] = (),
) -> Results:
    """Measure what a design with metrics and gaps asks, and the `derived` numbers made of its metrics.

    `narrow` are the metrics that are shown by slice where the protocol chose the metrics; empty: all of them.
    """
    if trials.header.is_unlabelled:
        raise DataError.of("no-labels/scores")
    design = with_natural_unit(design, trials)
    chosen, groupings, gaps = design.rules, design.groupings, design.gaps
    trials, plan = with_bands(trials, groupings) if groupings else trials, design.plan
    if plan.unit:
        plan = replace(plan, unit=trials.unit_names(plan.unit))
    if trials.header.weight is not None:
        plan = weighted_plan(trials, plan)
    only = OneClassColumns(chosen.negative_only, chosen.positive_only)
    columns = columns_of_trials(trials, only, bool(groupings) and by_target(trials, groupings))
    questions = [prepare_metric(m, trials, chosen) for m in design.metrics]
    if not len(trials):
        raise DataError.of("no-trials")
    if not plan.bootstrap and trials.has_rows:
        for name in plan.unit:
            trials.own(name)  # an unknown name is refused, whether units are resampled or not
    wholes = samples_of_runs(columns)
    if chosen.both_eers and any(ties_matter(s) for s in wholes):
        for at, question in reversed([*enumerate(questions)]):
            if question.metric.tied and question.text == question.metric.name:
                questions.insert(at + 1, prepare_metric(question.metric.tied, trials, chosen))
    alone, plan = _plans(plan, columns) if columns.pools_targets and plan.bootstrap else (plan, plan)
    estimates: list[Estimate] = []
    there = trials.completeness  # what a key lists and no file scores was said when the files were read
    warnings: list[str] = [*trials.header.notes, *([there.text] if there.short else []), *remarks]
    if plan.unit and not plan.bootstrap:
        warnings += undrawn(plan)
    identities = None
    if design.identity:
        from hitmiss.engine.identities import Identities

        identities = Identities.of(trials, design, plan, columns.pools_targets)
        warnings += identities.notes
    tables = 1 + len(groupings) + len(gaps) + (identities is not None)
    for whole in each(wholes, "measuring", [sample.n for sample in wholes]):
        work = Measurement(columns, questions, Draws.prepare(plan, columns, whole.rows), chosen)
        sliced = replace(work, questions=[q for q in questions if not narrow or q.metric.name in narrow], replicates={})
        if alone is not plan:
            own = replace(sliced, draws=Draws.prepare(alone, columns, whole.rows), replicates={})
            sliced = replace(sliced, alone=own)
        with step("all trials", tables):
            with part():
                estimates += work.estimates(whole)
                if derived:
                    from hitmiss.engine.derived import derived_rows

                    estimates += derived_rows(work, whole, derived)
            warnings += check_scores(whole, questions)
            if whole is wholes[0] and plan.bootstrap and not plan.unit:
                warnings += unused_unit(work, whole, estimates)
            for grouping in groupings:
                with part():
                    estimates += by_slices(_fixing(sliced, whole, grouping), whole, grouping, warnings)
            for gap in gaps:
                with part():
                    estimates += gap_rows(sliced, whole, gap)
            if identities is not None:
                with part():
                    rows, notes = identities.measure(trials, whole)
                    estimates, warnings = [*estimates, *rows], [*warnings, *notes]
    estimates = [replace(e, title=title) if (title := chosen.names.get(e.metric)) else e for e in estimates]
    results = Results(tuple(estimates), "", tuple(dict.fromkeys(warnings)), chosen.name or None, trials)
    results = replace(results, reading=trials.header.reading, design=design)
    is_wider = bool(groupings or gaps) and len(sliced.questions) > len(_narrowed(questions, chosen))
    told = sign(results, trials, questions, plan, groupings, gaps, "all" if is_wider else "none")
    return replace(results, signature=told)


def _fixing(work: Measurement, whole: Sample, grouping: Grouping) -> Measurement:
    """Return the work for a table by units: a slice is one of them, so they are given, and the other units are drawn."""
    plan = work.draws.plan.within(grouping)
    if plan is work.draws.plan or not plan.bootstrap:
        return work
    return replace(work, draws=Draws.prepare(plan, work.columns, whole.rows), replicates={})


def _narrowed(questions: Sequence[PreparedMetric], protocol: Protocol) -> list[PreparedMetric]:
    """Return the questions that a protocol shows by slice if nobody asks for others."""
    return [q for q in questions if not protocol.slice_metrics or q.metric.name in protocol.slice_metrics]


def _plans(plan: SamplingPlan, columns: Columns) -> tuple[SamplingPlan, SamplingPlan]:
    """Return how numbers of samples without repeated items are drawn, and how all others are.

    If one item has several targets and numbers pool them (the six labels of a text), the item is the unit: its rows are
    not independent. A sample of one target has each item once, and needs no unit.
    """
    if plan.unit not in ((), ("item",)) or not columns.trials.has_targets or not columns.trials.has_rows:
        return plan, plan
    return replace(plan, unit=()), replace(plan, unit=("item",))


def measure_share(
    trials: Trials, hits: str, plan: SamplingPlan, *, of: str | None = None, name: str | None = None
) -> list[Estimate]:
    """Measure the share of each run's trials that a column of 0 and 1 marks, with the interval of any other share.

    `of` is a column that says how much each trial counts; `name` is the name of the number.
    """
    asked = (hits,) if of is None else (hits, of)

    def terms(**arrays: Floats) -> tuple[Floats, Floats]:
        below = np.ones_like(arrays[hits]) if of is None else arrays[of]
        return arrays[hits] * below, below

    def figure(**arrays: Floats) -> Rate:
        above, below = terms(**arrays)
        return Rate(math.fsum(above), math.fsum(below))

    entry = Metric(name or hits, figure, "low", (0.0, 1.0), asked, {})
    question = PreparedMetric(entry.name, entry, {}, OfTerms(figure, asked, terms=terms, is_share=True))
    columns = Columns(trials, pools_targets=True)
    drawn = plan if plan.unit else replace(plan, bootstrap=0)
    return [
        e
        for sample in samples_of_runs(columns)
        for e in Measurement(columns, [question], Draws.prepare(drawn, columns, sample.rows)).estimates(sample)
    ]
