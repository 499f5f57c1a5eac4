"""Where it fails: every grouping as a table with the worst slices first, maps, and two runs slice by slice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

import polars as pl

from hitmiss.conclude.slices import weak_slices
from hitmiss.core.errors import DataError
from hitmiss.core.number_bands import with_bands
from hitmiss.core.results import Estimate, Results
from hitmiss.findings.wording import explain, format_estimate
from hitmiss.metrics.bias import KINDS
from hitmiss.reports import campaigns
from hitmiss.reports.context import Context
from hitmiss.reports.displays.display import numbers_of
from hitmiss.reports.displays.histogram import HistogramDisplay, histogram_plate
from hitmiss.reports.dumbbells import dumbbells
from hitmiss.reports.evaluations import Evaluation
from hitmiss.reports.grids import RUN, Grid, Row, by_slice, groupings, runs
from hitmiss.reports.heat import HeatMap, heat_map
from hitmiss.reports.plate import GuideLine
from hitmiss.reports.readings import Reading
from hitmiss.reports.result_tables import gap_tables, of_grid
from hitmiss.reports.section import (
    Block,
    DumbbellsBlock,
    FigureView,
    FoldedBlock,
    MapsBlock,
    Section,
    SlicesBlock,
    TableBlock,
    TextBlock,
)
from hitmiss.reports.table import Table
from hitmiss.reports.table_style import PAGE

PLACE: Final = 40

MOST_SINGLE: Final = 12
"""Number of slices that are drawn one by one: the worst."""
SMALL_BINS: Final = 30
MOST_MAPS: Final = 2
"""Number of metrics that get a heat map: the first ones of the slices."""
LEGEND: Final = (
    "The bar is the interval, the dot the value, the dashed line the pooled value; a slice is called worse where a test shows it, "
    "corrected for all that were looked at. * few trials of one class."
)


def domains(evaluation: Evaluation, context: Context) -> Section:
    """Return the gaps, both runs side by side, maps of many runs, and each grouping of each run."""
    blocks: list[Block] = [TableBlock(t) for t in gap_tables(evaluation.results, PAGE)]
    if evaluation.is_campaign:
        blocks += _of_campaign(evaluation)
    else:
        blocks += map(DumbbellsBlock, dumbbells(evaluation, context.compared.compared))
        across = _across(evaluation)
        blocks += [MapsBlock(across)] if across else []
        blocks += _of_runs(context.id, evaluation)
        left_out = len(runs(evaluation.results)) - len(evaluation.tabled)
        if blocks and left_out:
            blocks.append(
                TextBlock(
                    "Tables of the slices are those of the best runs; the maps show all runs, and `hitmiss export` of their "
                    f"results gives the tables of the other {left_out}."
                )
            )
    return Section("domains", "By domain", (*blocks, TextBlock(LEGEND)) if blocks else ())


def _of_campaign(evaluation: Evaluation) -> Iterable[Block]:
    """Show attacks by class or group of records: a map at the greatest strength, and one table per grouping."""
    for grid in campaigns.grids(evaluation.results):
        maps = tuple(campaigns.maps(evaluation.results, grid))
        yield from [MapsBlock(maps)] if maps else []
        yield _folded(grid.title, of_grid(grid, evaluation.counted, PAGE))


def _folded(title: str, table: Table) -> FoldedBlock:
    return FoldedBlock(f"{title}: the whole table with intervals ({len(table.rows)} rows)", (TableBlock(table),))


def _of_runs(id: str, evaluation: Evaluation) -> list[Block]:
    made: list[Block] = []
    weak = weak_slices(evaluation.results, evaluation.primary).weak
    for names in groupings(evaluation.results):
        for run in evaluation.tabled:
            results = evaluation.by_run[tuple(run.items())]
            grid = by_slice(results, names, run)
            if not grid.rows:
                continue
            named = f" · {run[RUN]}" if RUN in run else ""
            maps = _maps(evaluation, results, grid, names, run) if len(names) == 2 else []
            grid = _worst_first(grid, evaluation.primary)
            own = {tuple(w.e.slice.values()) for w in weak if tuple(w.e.slice) == names and dict(w.e.run) == dict(run)}
            forest = of_grid(grid, evaluation.classes[0], PAGE, bars=not maps, weak=own)
            table = replace(forest, title=f"{grid.title}{named}, the worst first")
            made += [MapsBlock(tuple(replace(m, title=m.title + named) for m in maps))] if maps else []
            folded = bool(maps) or len(evaluation.members) > 2
            made.append(_folded(grid.title + named, table) if folded else TableBlock(table, tall=True))
            single = _single_slices(f"{id}-{len(made)}", evaluation, grid, names, run) if len(names) == 1 else ()
            made += [SlicesBlock(tuple(single))] if single else []
    return made


def _maps(
    evaluation: Evaluation, results: Results, grid: Grid, names: tuple[str, ...], run: Mapping[str, str]
) -> list[HeatMap]:
    """Return the maps of two crossed columns: of the primary metric, then of those that come first."""
    first = [evaluation.primary] if evaluation.primary in grid.metrics else []
    metrics = [*first, *(m for m in grid.metrics if m not in first)][:MOST_MAPS]
    made = [heat_map(results, (names[0], names[1]), metric, run) for metric in metrics]
    return [m for m in made if m is not None and m.is_crossed]


def _across(evaluation: Evaluation) -> tuple[HeatMap, ...]:
    """Draw, for many runs, a map of run × slice of the primary metric."""
    if len(evaluation.members) < 3:
        return ()
    results, made = evaluation.results, list[HeatMap]()
    for names in (names for names in groupings(results) if len(names) == 1):
        own = [e for e in results if tuple(e.slice) == names and e.average is None and RUN in e.run]
        if not own:
            continue
        metric = evaluation.primary if any(e.metric == evaluation.primary for e in own) else own[0].metric
        wholes = [
            e for e in results if e.metric == metric and not e.slice and e.average in (None, "mean") and RUN in e.run
        ]
        order = [e.run[RUN] for e in sorted(wholes, key=_goodness)]
        crossed = [replace(e, run={}, slice={RUN: e.run[RUN], **e.slice}) for e in own if e.metric == metric]
        crossed += [replace(e, run={}, slice={RUN: e.run[RUN]}) for e in wholes]
        found = heat_map(Results(tuple(crossed)), (RUN, names[0]), metric, {})
        if found is not None:
            rows = sorted(found.rows, key=lambda row: order.index(row[0]) if row[0] in order else -1)
            unit = ", %," if PAGE.unit(metric) else ""
            title = f"{explain(metric).title}{unit} of every run by {names[0]}, the best run first"
            made.append(replace(found, rows=tuple(rows), title=title))
    return tuple(made)


def _goodness(e: Estimate) -> float:
    return float("inf") if e.value is None else e.value if e.best == "low" else -e.value


def _worst_first(grid: Grid, primary: str) -> Grid:
    """Sort the slices of a grid by the primary metric; undefined ones follow, averages come last."""
    at = grid.metrics.index(primary) if primary in grid.metrics else 0

    def badness(row: Row) -> tuple[bool, float]:
        e = row.cells[at]
        value = e.value if e is not None else None
        return value is None, -value if value is not None and e is not None and e.best == "low" else value or 0.0

    slices = sorted((row for row in grid.rows if row.average is None), key=badness)
    return replace(grid, rows=(*slices, *(row for row in grid.rows if row.average is not None)))


def _single_slices(
    id: str, evaluation: Evaluation, grid: Grid, names: tuple[str, ...], run: Mapping[str, str]
) -> list[FigureView]:
    """Draw the scores of the worst slices, each in a small figure on one common axis."""
    member = next((member for member in evaluation.members if member.name == run.get(RUN, member.name)), None)
    if member is None or member.trials is None or not member.trials.has_rows or {*grid.metrics} <= {*KINDS}:
        return []  # identities are no values of one column: a text may mention several
    whole = member.picture.of("histogram") if member.picture is not None else None
    if not isinstance(whole, HistogramDisplay) or len(evaluation.members) > 2:
        return []
    ends = float(whole.edges[0]), float(whole.edges[-1])
    made, trials = list[FigureView](), with_bands(member.trials, [names])
    for row in [row for row in grid.rows if row.average is None][:MOST_SINGLE]:
        own = trials.keep(pl.col(names[0]) == row.labels[0])
        try:
            display = HistogramDisplay.from_trials(own, bins=SMALL_BINS)
        except DataError:
            continue
        e = row.cells[0]
        plate = replace(histogram_plate(display, ends), finding="", note="", key=())
        marks = [GuideLine(p.threshold) for p in whole.points if p.label == "EER"]
        title = f"{row.labels[0]}: {format_estimate(e)}" if e is not None else row.labels[0]
        made.append(
            FigureView(
                f"{id}-m{len(made)}",
                "histogram",
                Reading(title, f"n = {len(own):,}"),
                replace(plate, marks=(*plate.marks, *marks)),
                numbers_of((("", display),)),
                row.labels[0],
            )
        )
    return made
