"""Measure: metrics × runs × slices -> Results, with intervals, averages, the gap and what to worry about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hitmiss.design import By, Design, Gap, Method, Plan, Protocol
from hitmiss.errors import DataError
from hitmiss.expressions import Derived
from hitmiss.measuring.alarms import alarms, ties_matter
from hitmiss.measuring.asking import Work, ask
from hitmiss.measuring.averages import by_slices, gap_rows
from hitmiss.measuring.derived import derived_rows
from hitmiss.measuring.grouping import Columns, OneClass, samples_of_runs
from hitmiss.measuring.reasons import FEW
from hitmiss.measuring.signature import sign
from hitmiss.measuring.tallied import TalliedTrials
from hitmiss.measuring.uncertainty import Draws
from hitmiss.progress import each, part, step
from hitmiss.results import Estimate, Results
from hitmiss.spec import Spec
from hitmiss.trials import Trials, demanded

__all__ = ["FEW", "Gap", "ask", "measure", "measure_design"]


def measure(
    trials: Trials,
    metrics: Sequence[str | Spec] | Design,
    *,
    by: By = (),
    bootstrap: int = 0,
    unit: str | Sequence[str] | None = None,
    seed: int = 0,
    level: float = 0.95,
    interval: Method = "auto",
    stratify: bool | None = None,
    gap: Gap | None = None,
    protocol: Protocol | None = None,
    remarks: Sequence[str] = (),
) -> Results:
    """Every metric for every run, pooled and per slice.

    Parameters
    ----------
    trials
        The trials.
    metrics
        Metrics with their settings, as `eer` or `min_dcf(c_fa=10)`; or a design, which says all the rest too.
    by
        Slice columns, or several at once (`"codec,codec_q"`). Per grouping the macro average and the worst slice follow.
    bootstrap
        The number of replicates (0: only intervals that need none).
    unit
        The column whose values are drawn as wholes (two may be crossed).
    seed, level, interval, stratify
        The seed of the draws, the level and the kind of intervals, whether units are drawn within classes.
    gap
        Adds figure(out) − figure(in).
    protocol
        What a document settles.
    remarks
        Further warnings to print.

    Returns
    -------
    Results
        One estimate per metric, run and slice.

    Examples
    --------
    >>> t = Trials.of(label=[1, 1, 0, 0], score=[0.9, 0.4, 0.6, 0.1])
    >>> print(measure(t, ["eer", "roc_auc"]).one("roc_auc"))
    roc_auc = 0.7500 [0.0570, 1.0000]
    """
    trials = demanded(trials, "measure")
    design = Design.of(
        () if isinstance(metrics, Design) else metrics,
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
    return measure_design(trials, design, remarks)


def measure_design(
    trials: Trials, design: Design, remarks: Sequence[str] = (), derived: Sequence[Derived] = ()
) -> Results:
    """What a design asks of trials, whose metrics and gap it names; and `derived` figures made of those."""
    chosen, plan, groupings = design.settled, design.plan, design.groupings
    gap = design.gap if isinstance(design.gap, Gap) else None
    only = OneClass(chosen.negative_only, chosen.positive_only)
    columns = trials.columns(only) if isinstance(trials, TalliedTrials) else Columns(trials, only)
    questions = [ask(m, trials, chosen) for m in design.metrics]
    if not len(trials):
        raise DataError("there are no trials to measure", code="no-trials")
    if not plan.bootstrap and not isinstance(trials, TalliedTrials):
        for name in plan.unit:
            trials.column(name)  # a name that is none is refused, whether units are drawn or not
    wholes = samples_of_runs(columns)
    if chosen.both_eers and any(ties_matter(s) for s in wholes) and any(q.text == "eer" for q in questions):
        questions.insert(1 + [q.text for q in questions].index("eer"), ask("eer(ties=grouped)", trials, chosen))
    work = Work(columns, questions, Draws.prepare(plan, columns), chosen)
    few = chosen.slice_metrics
    narrow = replace(work, questions=[q for q in questions if not few or q.metric.name in few], replicates={})
    estimates: list[Estimate] = []
    warnings: list[str] = [*trials.header.notes, *remarks, *_undrawn(plan)]
    tables = 1 + len(groupings) + (gap is not None)
    for whole in each(wholes, "measuring", [sample.n for sample in wholes]):
        with step("all trials", tables):
            with part():
                estimates += work.estimates(whole)
                estimates += derived_rows(work, whole, derived)
            warnings += alarms(whole, questions)
            for grouping in groupings:
                with part():
                    estimates += by_slices(narrow, whole, grouping, warnings)
            if gap is not None:
                with part():
                    estimates += gap_rows(narrow, whole, gap)
    estimates = [replace(e, title=title) if (title := chosen.names.get(e.metric)) else e for e in estimates]
    results = Results(tuple(estimates), "", tuple(dict.fromkeys(warnings)), chosen.name or None, trials)
    results = replace(results, reading=trials.header.reading, design=design)
    return replace(results, signature=sign(results, trials, questions, plan, groupings, str(gap) if gap else None))


def _undrawn(plan: Plan) -> list[str]:
    """A unit that was asked for and is not drawn; items are the unit that repeated runs bring themselves."""
    if plan.bootstrap or plan.unit in ((), ("item",)):
        return []
    return [
        f"no intervals: the unit {' × '.join(plan.unit)} is drawn by a bootstrap, and none was asked for (--bootstrap 1000)"
    ]
