"""Runs of one evaluation compared pair by pair, for the page: which is better, and by which test."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hitmiss.claims.open import runs_inside
from hitmiss.core.design import Design
from hitmiss.core.errors import DataError, UsageError, message_of
from hitmiss.core.metric_spec import parse
from hitmiss.core.registry import find_metric
from hitmiss.core.trials import Trials
from hitmiss.engine.comparison import A_BETTER, B_BETTER, IDENTICAL, NO_DIFFERENCE, Comparison
from hitmiss.engine.rank import compare_runs
from hitmiss.engine.ranking import Ranking
from hitmiss.evaluation.fitting import comparable
from hitmiss.reports import comparison_tables, ranking_tables
from hitmiss.reports.compared_numbers import ComparedNumbers
from hitmiss.reports.evaluations import Evaluation
from hitmiss.reports.grids import groupings
from hitmiss.reports.table import Table

UNTESTED = (
    "Two intervals that overlap do not show that two runs are alike, nor that they differ: these results hold numbers "
    "without trials, so nothing was tested. Give the score files, or see `hitmiss compare`."
)
REPEATED = "These are repetitions of one run: their spread is shown above, there is nothing to compare."
MOST_METRICS, MOST_OF_TWO = 4, 12
MOST_GROUPINGS = 4
"""Number of metrics compared with more than two runs (a matrix each), and with two (a row each)."""


@dataclass(frozen=True)
class Versus:
    """What the page says about runs side by side."""

    verdicts: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    signature: str = ""
    compared: Comparison | Ranking | None = None


def versus(evaluation: Evaluation, asked: Design) -> Versus:
    """Compare the runs if their trials are available; otherwise return a sentence that says what is missing."""
    if len(evaluation.members) < 2:
        return Versus()
    if any(member.trials is None or not member.trials.has_rows for member in evaluation.members):
        return Versus(notes=(UNTESTED,))
    trials = contenders(evaluation)
    if len(trials) < 2:
        return Versus(notes=(REPEATED,))
    metrics = tuple(_metrics(evaluation, list(trials.values())))
    design = Design(bootstrap=asked.bootstrap, unit=asked.unit, seed=asked.seed, level=asked.level)
    if len(trials) == 2:  # slice by slice, so that which run is better where is tested and not guessed
        design = replace(design, by=tuple(n for n in groupings(evaluation.results) if len(n) == 1)[:MOST_GROUPINGS])
    try:
        made = compare_runs(trials, replace(design, protocol=evaluation.protocol, metrics=metrics))
    except (DataError, UsageError) as error:
        return Versus(notes=(f"These runs were not compared: {message_of(error)}",))
    numbers = ComparedNumbers(True, evaluation.results)
    if isinstance(made, Comparison):
        shown = comparison_tables.tables(made, evaluation.classes[0], numbers)
        notes = (f"A = {made.names[0]}, B = {made.names[1]}.", comparison_tables.LEGEND, *made.warnings)
        return Versus(verdicts_of(made), tuple(shown), notes, made.signature, made)
    shown = ranking_tables.ranking_tables(made, numbers)
    return Versus((), tuple(shown), made.warnings, made.signature, made)


def contenders(evaluation: Evaluation) -> dict[str, Trials]:
    """Return the runs to compare by name; repetitions of one run (seeds, trials) stay together."""
    sources = evaluation.sources
    found: dict[str, Trials] = {}
    for source in sources:
        assert source.trials is not None
        inside = runs_inside(source.trials)
        for name, own in (inside or {"": source.trials}).items():
            found[" · ".join(filter(None, (source.name if len(sources) > 1 or not name else "", name)))] = own
    return found


def _metrics(evaluation: Evaluation, trials: list[Trials]) -> list[str]:
    """Return the metrics that protocol and scores allow, else those that were measured; of many the most useful.

    Numbers that get no interval (calibration errors) get no test either.
    """
    measured = list(dict.fromkeys(e.metric for e in evaluation.results if not e.slice and e.average is None))
    known = comparable(evaluation.protocol, trials) if evaluation.protocol is not None else measured
    known = [m for m in known if find_metric(parse(m).name).interval]
    telling = [evaluation.primary, *(evaluation.protocol.slice_metrics if evaluation.protocol is not None else ())]
    ordered = [m for m in dict.fromkeys((*telling, *known)) if m in known]
    return ordered[: MOST_METRICS if len(trials) > 2 else MOST_OF_TWO]


def verdicts_of(made: Comparison) -> tuple[str, ...]:
    """Return one sentence per verdict over all pairs, with the metrics for which it holds."""
    said = {
        A_BETTER: f"{made.names[0]} does better than {made.names[1]}",
        B_BETTER: f"{made.names[1]} does better than {made.names[0]}",
        NO_DIFFERENCE: "No difference was shown",
        IDENTICAL: "The two are identical",
    }
    whole = [d for d in made if not d.slice and not d.average]
    found = {verdict: [d.metric for d in whole if d.verdict == verdict] for verdict in said}
    return tuple(f"{said[verdict]}: {', '.join(metrics)}." for verdict, metrics in found.items() if metrics)
