"""What became of the trials of a triage, its repetitions, times and costs, and what people add."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hitmiss.findings.wording import per_cent
from hitmiss.reports.context import Context
from hitmiss.reports.evaluations import Evaluation
from hitmiss.reports.flow_plate import FlowPath, flow_plate
from hitmiss.reports.readings import FLOW
from hitmiss.reports.section import Block, FiguresBlock, FigureView, Section, TableBlock
from hitmiss.reports.table import Table, TableCell
from hitmiss.reports.table_style import PAGE
from hitmiss.reports.triage_tables import beside_tables, flows

PLACE: Final = 20

MOST_FLOWS: Final = 4
"""Number of runs whose trials are followed to their outcome, in one figure each."""


def triage(evaluation: Evaluation, context: Context) -> Section:
    """Return the outcomes of the trials as flows, then the tables beside the numbers of a triage."""
    drawn = tuple(_flows(context.id, evaluation))
    blocks: list[Block] = [FiguresBlock(drawn, wide=True)] if drawn else []
    found = [t for s in evaluation.sources if s.extras is not None for t in beside_tables(s.extras, PAGE)]
    return Section("triage", "Verdicts and people", (*blocks, *map(TableBlock, found)))


def _flows(id: str, evaluation: Evaluation) -> list[FigureView]:
    """Draw the outcomes of the trials of each run: by the system, by people, and how they ended."""
    made = list[FigureView]()
    for source in evaluation.sources:
        for name, titles, paths in flows(source.extras)[:MOST_FLOWS] if source.extras is not None else []:
            numbers = [(*map(TableCell, path.stages), TableCell(f"{path.n:,}")) for path in paths]
            table = Table("What became of the trials", (*titles, "trials"), tuple(numbers), len(titles))
            plate = flow_plate(titles, paths, _finding(paths))
            made.append(FigureView(f"{id}-flow-{len(made)}", "flow", FLOW, plate, table, name or source.name))
    return made


def _finding(paths: Sequence[FlowPath]) -> str:
    ends = {end: sum(path.n for path in paths if path.stages[-1] == end) for end in ("right", "wrong", "open")}
    total = sum(ends.values()) or 1
    shares = {end: per_cent(n / total) for end, n in ends.items()}
    return f"{shares['right']} right, {shares['wrong']} wrong, {shares['open']} undecided"
