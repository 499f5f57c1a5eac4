"""Results arranged as tables: all trials, slices, repeated runs, gaps, a matrix."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from hitmiss.core.protocol import EVERY
from hitmiss.core.results import Estimate, Results
from hitmiss.findings.wording import PLACES, explain
from hitmiss.reports.grids import REPEATS, Grid, Row, by_slice, groupings, overall, runs
from hitmiss.reports.table import ARROW, Bar, Table, TableCell, crossed
from hitmiss.reports.table_style import TEXT, TableStyle, titled

MOST_ACROSS: Final = 8
"""Maximum metrics side by side on a page; with more, a table is transposed if that makes it narrower."""
MARGIN: Final = 0.04


def tables(results: Results, positive: str = "positives", style: TableStyle = TEXT) -> list[Table]:
    """Return every table of the results: all trials, then one per grouping, then the gap."""
    found = [overall_table(results, positive, style), *over_repeats(results, (), style)]
    for names in groupings(results):
        found += [slice_table(results, names, run, positive, style) for run in runs(results)]
        found += over_repeats(results, names, style)
    return [t for t in (*found, *gap_tables(results, style)) if t.rows]


def overall_table(results: Results, positive: str, style: TableStyle = TEXT) -> Table:
    """Return the pooled figures: one row per metric for one run, one row per run for several."""
    grid = overall(results)
    if style.by_metric and len(grid.rows) == 1 and not grid.names:
        return _by_metric(grid, positive, style)
    table = of_grid(grid, positive, style)
    is_wide = style.is_page and len(grid.metrics) > MOST_ACROSS and len(grid.rows) <= MOST_ACROSS
    return replace(table.turned() if is_wide else table, name="all")


def slice_table(
    results: Results, names: tuple[str, ...], run: Mapping[str, str], positive: str, style: TableStyle = TEXT
) -> Table:
    """Return one row per slice, then the pooled row, the averages and the worst slice."""
    grid = by_slice(results, names, run)
    named = f" ({', '.join(f'{k} {v}' for k, v in run.items())})" if run else ""
    return of_grid(replace(grid, title=grid.title + named), positive, style)


def _by_metric(grid: Grid, positive: str, style: TableStyle) -> Table:
    """Return the numbers of one run: one row per metric; on a page also in words."""
    own = [e for e in grid.rows[0].cells if e is not None]
    rows = []
    for e in own:
        digits, sizes = style.digits([e]), (TableCell(f"{e.n:,}"), TableCell(f"{e.n_positive:,}"))
        if style.is_page:
            words = explain(e.metric).title
            told = TableCell(words if words != e.metric else "")
            rows.append((TableCell(titled(e), strong=True), told, style.cell_with_unit(e), *sizes))
        else:
            rows.append(
                (
                    TableCell(titled(e)),
                    TableCell(style.value(e, digits), strong=True),
                    TableCell(style.ends(e, digits)),
                    *sizes,
                )
            )
    middle = ("in words", "value") if style.is_page else ("value", _level(own))
    made = tuple((*row, TableCell(e.note or "")) for row, e in zip(rows, own, strict=True))
    table = Table(grid.title, ("metric", *middle, "n", positive, ""), made, 2 if style.is_page else 1, name="all")
    return table.trimmed()


def of_grid(
    grid: Grid, positive: str, style: TableStyle, *, bars: bool = False, weak: Collection[tuple[str, ...]] = ()
) -> Table:
    """Return a grid as a table, with the number of trials, and of those that are `positive` unless that is empty.

    `weak` are the labels of the rows that were shown to be worse than the others.
    """
    columns = [grid.column(i) for i in range(len(grid.metrics))]
    digits = [style.digits(own) for own in columns]
    scales = [_ends(own) if bars else None for own in columns]
    pooled = next((row for row in grid.rows if row.average == "pooled"), None)
    sizes = tuple(filter(None, ("n", positive))) if any(row.n is not None for row in grid.rows) else ()

    def cells(row: Row) -> tuple[TableCell, ...]:
        counts = [TableCell(f"{n:,}" if n is not None else "") for n in (row.n, row.n_positive)[: len(sizes)]]
        # where one slice is the worst by every metric, it is named once, and its intervals are in their column
        worst = {" × ".join(e.slice.values()) for e in row.cells if e is not None} if row.average == "worst" else set()
        named_once = len(worst) == 1 and not style.exact
        labels = (f"{row.labels[0]} {worst.pop()}", *row.labels[1:]) if named_once else row.labels
        average = None if named_once else row.average
        made = [style.cell(e, d, average) for e, d in zip(row.cells, digits, strict=True)]
        for i, (e, scale) in enumerate(zip(row.cells, scales, strict=True)):
            beside = pooled.cells[i] if pooled is not None and i < len(pooled.cells) else None
            made[i] = replace(made[i], bar=_bar(e, row, scale, beside))
        return (*map(TableCell, labels), *counts, *made)

    named = list(zip(grid.titles, grid.metrics, grid.best, strict=True))
    units = ["" if style.scale(m) == 1.0 else ", %" for m in grid.metrics]
    heads = [f"{title}{unit} {ARROW[best]}" for (title, _, best), unit in zip(named, units, strict=True)]
    abouts = (*("" for _ in grid.names), *(f"trials{f' that are {s}' * (s != 'n')}" for s in sizes))
    rows, kinds = tuple(map(cells, grid.rows)), tuple(row.average or "" for row in grid.rows)
    is_weak = frozenset(i for i, row in enumerate(grid.rows) if row.average is None and row.labels in weak)
    table = Table(grid.title, (*grid.names, *sizes, *heads), rows, len(grid.names), len(sizes), kinds, is_weak)
    gists = tuple(explain(m).gist for m in grid.metrics) if style.is_page else ("",) * len(named)
    return replace(table, abouts=(*abouts, *gists), name=",".join(grid.names)).trimmed()


def _bar(e: Estimate | None, row: Row, scale: tuple[float, float] | None, pooled: Estimate | None) -> Bar | None:
    if scale is None or e is None or row.average == "worst":
        return None
    if e.low is None or e.high is None or e.value is None or not all(map(math.isfinite, (e.low, e.high, e.value))):
        return None
    start, width = scale[0], scale[1] - scale[0]

    def place(value: float) -> int:  # a hundredth of the scale is one pixel of the drawn bar
        return round(min(max(100 * (value - start) / width, 0.0), 100.0))

    beside = place(pooled.value) if pooled is not None and pooled.value is not None else None
    return Bar(place(e.low), place(e.high), place(e.value), beside)


def _ends(own: Sequence[Estimate]) -> tuple[float, float] | None:
    """Return the ends of a column's common scale."""
    ends = [v for e in own for v in (e.low, e.high) if v is not None and math.isfinite(v)]
    if not ends or min(ends) == max(ends):
        return None
    room = MARGIN * (max(ends) - min(ends))
    return min(ends) - room, max(ends) + room


def over_repeats(results: Results, names: tuple[str, ...], style: TableStyle = TEXT) -> list[Table]:
    """Return mean, standard deviation, minimum and maximum over repeated runs, if the results have them."""
    own = [e for e in results if e.average in REPEATS and tuple(e.slice) == names]
    if not own:
        return []
    runs_ = tuple(dict.fromkeys(k for e in own for k in e.run))
    digits = {e.metric: style.digits([o for o in own if o.metric == e.metric]) for e in own}
    cells = []
    for e in own:
        key = (*(e.run.get(k, "") for k in runs_), *e.slice.values(), titled(e))
        cells.append(
            (
                key,
                e.average or "",
                TableCell("–" if e.value is None else style.value(e, digits[e.metric]) + style.unit(e.metric)),
            )
        )
        cells += [(key, "", TableCell(e.note))] if e.note and e.average == "mean" else []
    title = "over runs" + (f" by {' × '.join(names)}" if names else "")
    table = crossed(title, (*runs_, *names, "metric"), cells, (*REPEATS, ""))
    return [replace(table, name="runs").trimmed()]


MOST_DOMAINS: Final = 2
SPREADS: Final = {"gap": "", "spread": "greatest − least ", "ratio": "least / greatest "}


def gap_tables(results: Results, style: TableStyle = TEXT) -> list[Table]:
    """Return numbers outside a domain minus those inside it, if the results have them; one table per domain."""
    own = [e for e in results if e.average in SPREADS]
    kinds: dict[tuple[bool, tuple[str, ...]], list[Estimate]] = {}
    for e in own:
        kinds.setdefault((e.average == "gap", tuple(e.slice)), []).append(e)
    made = []
    for (is_gap, columns), found in kinds.items():
        domains = list(dict.fromkeys(tuple(e.slice.items()) for e in found))
        apart = [[e for e in found if tuple(e.slice.items()) == domain] for domain in domains]
        # three or more of one kind are one table, with their domains as rows
        shown = columns if len(domains) > MOST_DOMAINS else ()
        made += [_gap_table(rows, is_gap, shown, style) for rows in ([found] if shown else apart)]
    return made


def _gap_table(own: list[Estimate], is_gap: bool, columns: tuple[str, ...], style: TableStyle) -> Table:
    names = tuple(dict.fromkeys(k for e in own for k in e.run))
    rows = []
    for e in own:
        digits = style.digits([e])
        ends = (
            TableCell(style.value(e, digits) + style.unit(e.metric) * (e.value is not None), strong=True),
            TableCell(style.ends(e, digits)),
            TableCell(e.note or ""),
        )
        where = (TableCell(v) for v in (*(e.run.get(k, "") for k in names), *(e.slice[k] for k in columns)))
        rows.append((*where, TableCell(f"{SPREADS[str(e.average)]}{titled(e)}"), *ends))
    told = [(k, "") for k in columns] or list(own[0].slice.items())
    title = f"gap: {', '.join(f'over {k}' if v == EVERY else f'{k} {v}'.strip() for k, v in told)}"
    header = (*names, *columns, "metric", "out − in" if is_gap else "number", "interval", "")
    return Table(title, header, tuple(rows), len(names) + len(columns) + 1, name="gap").trimmed()


def matrix(results: Results, rows: str, columns: str, metric: str, run: Mapping[str, str] | None = None) -> Table:
    """Return one metric as a matrix: values of one slice column as rows, of another as columns, pooled at both ends."""
    own = [e for e in results if e.metric == metric and e.average is None and dict(e.run) == (run or {})]
    inside = [e for e in own if set(e.slice) <= {rows, columns}]
    ordered = sorted(inside, key=lambda e: (rows in e.slice, e.slice.get(rows, "")))
    cells = [((e.slice.get(rows, "pooled"),), e.slice.get(columns, "pooled"), TEXT.cell(e, PLACES)) for e in ordered]
    across = ("pooled", *sorted({e.slice[columns] for e in inside if columns in e.slice}))
    best = next((e.best for e in own), "low")
    return crossed(f"{metric} {ARROW[best]} by {rows} × {columns}", (rows,), cells, across)


def _level(rows: Sequence[Estimate]) -> str:
    drawn = next((e.how for e in rows if e.how.draws is not None), None)
    return f"{drawn.level:.0%} interval" if drawn is not None else "interval"
