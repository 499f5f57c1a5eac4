"""The numbers over all trials, and what was decided for each class."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hitmiss.core.kinds import FAILED
from hitmiss.findings.wording import explain
from hitmiss.metrics.counts import Counts
from hitmiss.reports.context import Context
from hitmiss.reports.evaluations import Evaluation
from hitmiss.reports.grids import RUN
from hitmiss.reports.readings import SYSTEMS
from hitmiss.reports.result_tables import overall_table
from hitmiss.reports.section import Block, FiguresBlock, FigureView, FoldedBlock, Section, TableBlock
from hitmiss.reports.slice_plates import forest_plate
from hitmiss.reports.table import Table, TableCell
from hitmiss.reports.table_style import PAGE, titled
from hitmiss.reports.triage_tables import confusion_table, over_trials

PLACE: Final = 10

MOST_OPEN: Final = 8
"""Maximum rows of a table that is shown at once where curves follow; a longer one is folded."""
FEW_DOTS: Final = 3
"""Number of runs from which on they are drawn one below the other."""


def numbers(evaluation: Evaluation, context: Context) -> Section:
    """Return every number over all trials with its interval, and the decisions if any were made."""
    whole, decided = overall_table(evaluation.results, evaluation.counted, PAGE), _confusion(evaluation)
    blocks: list[Block] = [*_systems(evaluation, context)]
    if len(whole.rows) > MOST_OPEN and _has_curves(evaluation):
        title = f"{whole.caption}: every number with its interval ({len(whole.rows)} rows)"
        blocks.append(FoldedBlock(title, (TableBlock(whole),)))
    elif whole.rows:
        blocks.append(TableBlock(whole))
    blocks += [TableBlock(decided)] if decided is not None else []
    return Section("numbers", "Numbers", tuple(blocks))


def _has_curves(evaluation: Evaluation) -> bool:
    return evaluation.is_campaign or any(member.picture is not None for member in evaluation.members)


def _systems(evaluation: Evaluation, context: Context) -> list[Block]:
    """Draw the primary metric of many runs with their intervals, the best first."""
    own = [e for e in evaluation.wholes if e.metric == evaluation.primary and e.value is not None and RUN in e.run]
    if len(evaluation.members) < FEW_DOTS or len(own) < FEW_DOTS or evaluation.is_campaign:
        return []
    own.sort(key=lambda e: (e.value or 0.0) * (1 if e.best == "low" else -1))
    plate = forest_plate([(e.run[RUN], e) for e in own], explain(own[0].metric).title)
    rows = tuple((TableCell(e.run[RUN]), PAGE.cell(e)) for e in own)
    numbers = Table(SYSTEMS.title, ("run", titled(own[0])), rows)
    title = f"{explain(own[0].metric).title} of {len(own)} runs"
    view = FigureView(f"{context.id}-runs", "forest", replace(SYSTEMS, title=title), plate, numbers)
    return [FiguresBlock((view,))]


def _confusion(evaluation: Evaluation) -> Table | None:
    """Return what was decided for each class, if decisions were made."""
    three = [c for s in evaluation.sources if s.extras is not None for c in over_trials(s.extras.confusions)]
    if three:
        note = "Unparsed: an answer that was not understood. Error: a call that gave no answer."
        return replace(confusion_table(three, "Verdicts"), note=note)
    positive, negative = evaluation.classes
    rows: list[tuple[TableCell, ...]] = []
    for member in evaluation.members:
        if member.trials is None or "decision" not in member.trials.frame.columns:
            continue
        c = Counts.of(
            member.trials.label, member.trials.column("decision").fill_null(FAILED).to_numpy(), member.trials.size
        )
        lines = (
            (positive, c.tp, c.fn, c.abstained_positive, c.failed_positive),
            (negative, c.fp, c.tn, c.abstained_negative, c.failed_negative),
        )
        rows += [
            (TableCell(member.name), TableCell(name), *(TableCell(f"{n:,}") for n in counts)) for name, *counts in lines
        ]
    if not rows:
        return None
    header = ("run", "in truth", f"called {positive}", f"called {negative}", "abstained", "failed")
    note = "Abstained: the detector declined to decide. Failed: its call gave no answer."
    return Table("Decisions", header, tuple(rows), 2, note=note)
