"""Tables as the page shows them: the text of each cell, which is highlighted, and its interval on a common scale."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from hitmiss.core.results import Estimate
from hitmiss.reports.tabular import ARROW, Grid, Row, Table, explain, figure, interval, places

MOST_ROWS: Final = 400
"""Maximum rows of a table on the page; of more, the first and last half are shown, with the number left out."""
MOST_ACROSS: Final = 8
"""Maximum metrics side by side; with more, a table is transposed if that makes it narrower."""
MARGIN: Final = 0.04
NOTE: Final = "note"
LABEL, COUNT, FIGURE = "label", "count", "figure"


@dataclass(frozen=True)
class Bar:
    """An interval on a scale of 0..100: its ends, the figure, and the pooled figure for comparison."""

    low: float
    high: float
    at: float
    pooled: float | None = None


@dataclass(frozen=True)
class CellView:
    """A cell: its text, the text below it, whether it is highlighted, its bar, and its tooltip."""

    text: str
    below: str = ""
    strong: bool = False
    bar: Bar | None = None
    about: str = ""


@dataclass(frozen=True)
class RowView:
    """A row; `kind` is `pooled`, `macro`, … for averages; `is_weak` if a test showed it to be worse than the others."""

    kind: str
    cells: tuple[CellView, ...]
    is_weak: bool = False


@dataclass(frozen=True)
class TableView:
    """A table of the page: a caption, heads as (text, kind, explanation), rows, and a note below."""

    caption: str
    heads: tuple[tuple[str, str, str], ...]
    rows: tuple[RowView, ...]
    note: str = ""
    sortable: bool = False


def of_table(table: Table, note: str = "") -> TableView:
    """Convert a table of texts, as the terminal shows it."""
    heads = tuple((head or NOTE, LABEL if i < table.labels else FIGURE, "") for i, head in enumerate(table.header))
    rows = tuple(RowView("", tuple(CellView(_unbroken(c.text), c.below, c.strong) for c in row)) for row in table.rows)
    shown, left_out = _cut(rows)
    return TableView(_capital(table.title), heads, shown, _joined(note, left_out))


def _unbroken(text: str) -> str:
    """Keep an arrow with its metric."""
    return text.replace(" ↑", "\u00a0↑").replace(" ↓", "\u00a0↓")


def of_grid(
    grid: Grid, positive: str, note: str = "", *, bars: bool = True, weak: Collection[tuple[str, ...]] = ()
) -> TableView:
    """Convert a grid with its sizes, each figure with its interval in numbers and (`bars`) drawn.

    `weak` are the labels of the rows that were shown to be worse than the others.
    """
    if len(grid.metrics) > MOST_ACROSS and len(grid.rows) <= MOST_ACROSS:
        return turned(grid, positive, note)
    digits = [places(grid.column(i)) for i in range(len(grid.metrics))]
    scales = [_scale(grid.column(i)) if bars else None for i in range(len(grid.metrics))]
    pooled = next((row for row in grid.rows if row.average == "pooled"), None)
    sized = any(row.n is not None for row in grid.rows)

    def view(row: Row) -> RowView:
        counts = [CellView(f"{n:,}" if n is not None else "") for n in (row.n, row.n_positive)]
        figures = []
        for i, e in enumerate(row.cells):
            whole = pooled.cells[i] if pooled is not None and i < len(pooled.cells) else None
            figures.append(_figure(e, row, digits[i], scales[i], whole))
        cells = (*(CellView(text) for text in row.labels), *(counts if sized else ()), *figures)
        return RowView(row.average or "", cells, row.average is None and row.labels in weak)

    heads = [(name, LABEL, "") for name in grid.names]
    heads += [("n", COUNT, "trials"), (positive, COUNT, f"trials that are {positive}")] if sized else []
    named = zip(grid.titles, grid.metrics, grid.best, strict=True)
    heads += [(f"{title} {ARROW[b]}", FIGURE, explain(m).gist) for title, m, b in named]
    shown, left_out = _cut(tuple(map(view, grid.rows)))
    return TableView(_capital(grid.title), tuple(heads), shown, _joined(note, left_out), sortable=len(shown) > 3)


def turned(grid: Grid, positive: str, note: str = "") -> TableView:
    """Transpose a grid of many metrics and few rows: one line per metric, one column per row."""
    heads = [("metric", LABEL, "")] + [(" · ".join(filter(None, row.labels)), FIGURE, "") for row in grid.rows]
    sizes = {"n": [row.n for row in grid.rows], positive: [row.n_positive for row in grid.rows]}
    lines = [
        RowView("", (CellView(name), *(CellView(f"{n:,}" if n is not None else "") for n in own)))
        for name, own in sizes.items()
        if any(n is not None for n in own)
    ]
    for i, metric in enumerate(grid.metrics):
        digits = places(grid.column(i))
        cells = [_figure(row.cells[i], row, digits, None, None) for row in grid.rows]
        title = CellView(f"{grid.titles[i]}\u00a0{ARROW[grid.best[i]]}", about=explain(metric).gist)
        lines.append(RowView("", (title, *cells)))
    return TableView(_capital(grid.title), tuple(heads), tuple(lines), note)


def by_metric(grid: Grid, positive: str) -> TableView:
    """Transpose a grid of one run: one row per metric, with its title."""
    row = grid.rows[0]
    noted = any(e is not None and e.note for e in row.cells)
    heads = (
        ("metric", LABEL, ""),
        ("in words", LABEL, ""),
        ("value", FIGURE, ""),
        ("n", COUNT, "trials"),
        (positive, COUNT, ""),
        *(((NOTE, LABEL, ""),) if noted else ()),
    )
    rows = []
    for e in filter(None, row.cells):
        entry, digits = explain(e.metric), places([e])
        cells = (
            CellView(f"{e.shown} {ARROW[e.best]}", strong=True),
            CellView(entry.title if entry.title != e.metric else ""),
            _figure(e, row, digits, None, None),
            CellView(f"{e.n:,}"),
            CellView(f"{e.n_positive:,}"),
        )
        rows.append(RowView("", (*cells, CellView(e.note or "")) if noted else cells))
    return TableView(_capital(grid.title), heads, tuple(rows))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _figure(
    e: Estimate | None,
    row: Row,
    digits: int,
    scale: tuple[float, float] | None,
    pooled: Estimate | None,
) -> CellView:
    if e is None:
        return CellView("")
    if e.value is None:
        return CellView("–", about=e.note or "undefined")
    mark = "*" if e.note and e.note.startswith("only") else ""
    below = " × ".join(e.slice.values()) if row.average == "worst" else interval(e, digits)
    text = f"{figure(e.value, digits)}{mark}"
    return CellView(text, below, True, _bar(e, row, scale, pooled), e.note or "")


def _bar(e: Estimate, row: Row, scale: tuple[float, float] | None, pooled: Estimate | None) -> Bar | None:
    if scale is None or e.low is None or e.high is None or e.value is None or row.average == "worst":
        return None
    if not all(math.isfinite(v) for v in (e.low, e.high, e.value)):
        return None
    start, width = scale[0], scale[1] - scale[0]

    def place(value: float) -> int:  # a hundredth of the scale is one pixel of the drawn bar
        return round(min(max(100 * (value - start) / width, 0.0), 100.0))

    beside = place(pooled.value) if pooled is not None and pooled.value is not None else None
    return Bar(place(e.low), place(e.high), place(e.value), beside)


def _scale(own: Sequence[Estimate]) -> tuple[float, float] | None:
    """Return the ends of a column's common scale."""
    ends = [v for e in own for v in (e.low, e.high) if v is not None and math.isfinite(v)]
    if not ends or min(ends) == max(ends):
        return None
    room = MARGIN * (max(ends) - min(ends))
    return min(ends) - room, max(ends) + room


def _cut(rows: tuple[RowView, ...]) -> tuple[tuple[RowView, ...], int]:
    if len(rows) <= MOST_ROWS:
        return rows, 0
    half = MOST_ROWS // 2
    return (*rows[:half], *rows[-half:]), len(rows) - 2 * half


def _joined(note: str, left_out: int) -> str:
    said = f"{left_out:,} rows in the middle are left out; the results file has them all." if left_out else ""
    return " ".join(filter(None, (note, said)))
