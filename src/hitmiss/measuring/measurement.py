"""Measure: metrics × runs × slices -> Results, with intervals, averages, the gap and what to worry about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hitmiss.errors import DataError
from hitmiss.measuring.alarms import alarms, ties_matter
from hitmiss.measuring.asking import Choices, Work, ask
from hitmiss.measuring.averages import Gap, by_slices, gap_rows
from hitmiss.measuring.grouping import Columns, parse_by, samples_of_runs
from hitmiss.measuring.reasons import FEW
from hitmiss.measuring.signature import sign
from hitmiss.measuring.tallied import TalliedTrials
from hitmiss.measuring.uncertainty import Draws, Method, Plan
from hitmiss.progress import each, part, step
from hitmiss.results import Estimate, Results
from hitmiss.spec import Spec
from hitmiss.trials import Trials

__all__ = ["FEW", "Choices", "Gap", "ask", "measure"]


def measure(
    trials: Trials,
    metrics: Sequence[str | Spec],
    *,
    by: Sequence[str | Sequence[str]] | str = (),
    bootstrap: int = 0,
    unit: str | Sequence[str] | None = None,
    seed: int = 0,
    level: float = 0.95,
    interval: Method = "auto",
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
    plan = Plan(bootstrap, unit_names(unit), seed, level, interval, stratify)
    groupings = parse_by(by)
    only = chosen.negative_only
    columns = trials.columns(only) if isinstance(trials, TalliedTrials) else Columns(trials, only)
    questions = [ask(m, trials, chosen) for m in metrics]
    if not len(trials):
        raise DataError("there are no trials to measure")
    wholes = samples_of_runs(columns)
    if chosen.both_eers and any(ties_matter(s) for s in wholes) and any(q.text == "eer" for q in questions):
        questions.insert(1 + [q.text for q in questions].index("eer"), ask("eer(ties=grouped)", trials, chosen))
    work = Work(columns, questions, Draws.prepare(plan, columns), chosen)
    few = chosen.slice_metrics
    narrow = replace(work, questions=[q for q in questions if not few or q.metric.name in few], replicates={})
    estimates: list[Estimate] = []
    warnings: list[str] = [*trials.header.notes, *remarks]
    tables = 1 + len(groupings) + (gap is not None)
    for whole in each(wholes, "measuring", [sample.n for sample in wholes]):
        with step("all trials", tables):
            with part():
                estimates += work.estimates(whole)
            warnings += alarms(whole, questions)
            for grouping in groupings:
                with part():
                    estimates += by_slices(narrow, whole, grouping, warnings)
            if gap is not None:
                with part():
                    estimates += gap_rows(narrow, whole, gap)
    results = Results(tuple(estimates), "", tuple(dict.fromkeys(warnings)), chosen.protocol, trials)
    return replace(results, signature=sign(results, trials, questions, plan, groupings, str(gap) if gap else None))


def unit_names(unit: str | Sequence[str] | None) -> tuple[str, ...]:
    """The columns whose values are drawn as wholes."""
    if unit is None:
        return ()
    return tuple(p.strip() for p in unit.split(",")) if isinstance(unit, str) else tuple(unit)
