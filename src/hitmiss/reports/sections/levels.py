"""Manipulations that were tried at several levels: one small figure per family, of the primary metric."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hitmiss.findings.wording import explain
from hitmiss.metrics.drift import PAIRED_RATES
from hitmiss.reports.context import Context
from hitmiss.reports.displays.robustness import RobustnessDisplay
from hitmiss.reports.evaluations import Evaluation
from hitmiss.reports.grids import RUN, groupings
from hitmiss.reports.readings import LEVELS, Reading
from hitmiss.reports.section import FiguresBlock, FigureView, Section
from hitmiss.reports.sections.curves import robustness_view

PLACE: Final = 50

MOST_LEVELS: Final = 12
"""Number of small figures of manipulations at several levels."""


def levels(evaluation: Evaluation, context: Context) -> Section:
    """Return the figures over levels; none of attacks, which have curves of their own."""
    drawn = () if evaluation.is_campaign else tuple(_levels(context.id, evaluation)[:MOST_LEVELS])
    return Section("levels", "Robustness", (FiguresBlock(drawn, small=True),) if drawn else ())


def _levels(id: str, evaluation: Evaluation) -> list[FigureView]:
    made = list[FigureView]()
    for names in groupings(evaluation.results):
        for run in evaluation.tabled if len(names) == 1 else []:
            results = evaluation.by_run[tuple(run.items())]
            sliced = {e.metric for e in results if tuple(e.slice) == names and e.average is None and dict(e.run) == run}
            first = evaluation.primary if evaluation.primary in sliced else next(iter(sorted(sliced)), "")
            wanted = PAIRED_RATES if first in PAIRED_RATES else (first,)
            for display in (d for m in wanted for d in RobustnessDisplay.from_slices(results, names[0], m, run)):
                title = f"{explain(display.metric).title} under {display.title}"
                view = robustness_view(f"{id}-levels-{len(made)}", display, Reading(title, LEVELS.text))
                made.append(replace(view, subtitle=run.get(RUN, "")))
    return made
