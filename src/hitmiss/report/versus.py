"""Runs of one evaluation compared pair by pair, for the page: who does better, shown by which test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hitmiss.comparison import compare
from hitmiss.differences import A_BETTER, B_BETTER, IDENTICAL, NO_DIFFERENCE, Comparison
from hitmiss.errors import DataError, UsageError
from hitmiss.opening import fitting
from hitmiss.rankings import Ranking, compare_all
from hitmiss.report import comparison_tables, views
from hitmiss.report.evaluations import Evaluation
from hitmiss.trials import Trials

UNTESTED = (
    "Two intervals that overlap do not show that two runs are alike, nor that they differ: these results hold figures "
    "without trials, so nothing was tested. Give the score files, or see `hitmiss compare`."
)


@dataclass(frozen=True)
class Versus:
    """What the page says about runs side by side."""

    verdicts: tuple[str, ...] = ()
    tables: tuple[views.TableView, ...] = ()
    notes: tuple[str, ...] = ()
    signature: str = ""


def versus(evaluation: Evaluation, settings: Mapping[str, Any]) -> Versus:
    """The runs compared where their trials are at hand; otherwise a sentence that says what is lacking."""
    if len(evaluation.lanes) < 2:
        return Versus()
    trials = {lane.name: lane.trials for lane in evaluation.lanes if lane.trials is not None}
    if len(trials) < len(evaluation.lanes):
        return Versus(notes=(UNTESTED,))
    choices = evaluation.protocol.choices if evaluation.protocol is not None else None
    try:
        made = _compared(trials, _metrics(evaluation, list(trials.values())), {"choices": choices, **settings})
    except (DataError, UsageError) as error:
        return Versus(notes=(f"These runs were not compared: {error}",))
    if isinstance(made, Comparison):
        shown = comparison_tables.tables(made, evaluation.classes[0])
        notes = (f"A = {made.names[0]}, B = {made.names[1]}.", comparison_tables.LEGEND, *made.warnings)
        return Versus(verdicts_of(made), tuple(map(views.of_table, shown)), notes, made.signature)
    shown = comparison_tables.ranking_tables(made)
    notes = ("Runs that share a letter were not shown to differ.", *made.warnings)
    return Versus((), tuple(map(views.of_table, shown)), notes, made.signature)


def _compared(trials: Mapping[str, Trials], metrics: list[str], settings: dict[str, Any]) -> Comparison | Ranking:
    if len(trials) > 2:
        return compare_all(trials, metrics, **settings)
    (name_a, a), (name_b, b) = trials.items()
    return compare(a, b, metrics, names=(name_a, name_b), **settings)


def _metrics(evaluation: Evaluation, trials: list[Trials]) -> list[str]:
    """The metrics that both the protocol and the scores allow, else those that were measured."""
    if evaluation.protocol is not None:
        return fitting(evaluation.protocol, trials)
    return list(dict.fromkeys(e.metric for e in evaluation.results if not e.slice and e.average is None))


def verdicts_of(made: Comparison) -> tuple[str, ...]:
    """One sentence a verdict over all pairs, with the metrics that it holds for."""
    said = {
        A_BETTER: f"{made.names[0]} does better than {made.names[1]}",
        B_BETTER: f"{made.names[1]} does better than {made.names[0]}",
        NO_DIFFERENCE: "No difference was shown",
        IDENTICAL: "The two are identical",
    }
    whole = [d for d in made if not d.slice and not d.average]
    found = {verdict: [d.metric for d in whole if d.verdict == verdict] for verdict in said}
    return tuple(f"{said[verdict]}: {', '.join(metrics)}." for verdict, metrics in found.items() if metrics)
