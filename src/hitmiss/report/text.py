"""Tables as text: drawn with rich on a terminal, plain aligned columns when piped."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, TextIO

from hitmiss import progress
from hitmiss.report.tables import Cell, Table
from hitmiss.visible import visible

if TYPE_CHECKING:
    from rich.text import Text

AVERAGES = ("pooled", "macro")
"""The rows with which the averages begin."""


def write(tables: list[Table], stream: TextIO | None = None) -> None:
    """Write tables to a stream in the form that suits it."""
    progress.hush()
    out = stream or sys.stdout
    draw = _draw if out.isatty() and os.environ.get("TERM") != "dumb" else _plain
    for table in tables:
        draw(table, out)


def _plain(table: Table, out: TextIO) -> None:
    out.write(f"\n{visible(table.title)}\n" + "\n".join(lines(table)) + "\n")


def lines(table: Table) -> list[str]:
    """A table as aligned lines of plain text.

    >>> lines(Table("t", ("codec", "eer ↓"), ((Cell("C01"), Cell("0.1", "[.09, .11]")), (Cell("NONE"), Cell("0.05")))))
    ['codec             eer ↓', 'C01     0.1  [.09, .11]', 'NONE   0.05']
    """
    values = [max((len(row[i].text) for row in table.rows), default=0) for i in range(len(table.header))]
    texts = [[c.text if i < table.labels else _one_line(c, values[i]) for i, c in enumerate(row)] for row in table.rows]
    full = [max(len(t) for t in (h, *(row[i] for row in texts))) for i, h in enumerate(table.header)]
    wide = [any(row[i].below for row in table.rows) for i in range(len(table.header))]

    def line(cells: list[str], is_header: bool = False) -> str:
        parts = []
        for i, cell in enumerate(cells):
            left = i < table.labels or (wide[i] and not is_header) or not table.header[i]
            parts.append(cell.ljust(full[i]) if left else cell.rjust(full[i]))
        return "  ".join(parts).rstrip()

    return [line(list(table.header), True), *(line(row) for row in texts)]


def _one_line(cell: Cell, width: int) -> str:
    return f"{cell.text.rjust(width)}  {cell.below}" if cell.below else cell.text.rjust(width) if cell.text else ""


def _draw(table: Table, out: TextIO) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    width = shutil.get_terminal_size((100, 24)).columns
    plain = lines(table)
    narrow = (
        max(map(len, plain)) + len(table.header) + 1 > width
    )  # rich puts one more space between columns, and at the ends
    beside = [0 if narrow else _beside(table, i) for i in range(len(table.header))]
    drawn = RichTable(
        title=Text(visible(table.title)), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False
    )
    for i, name in enumerate(table.header):
        left = i < table.labels or not name
        drawn.add_column(
            Text(name, justify="left" if left else "right"),
            justify="left" if left or beside[i] else "right",
            no_wrap=not left or i == 0,
        )
    for row in table.rows:
        cells = [_rich_cell(c, narrow, beside[i]) for i, c in enumerate(row)]
        drawn.add_row(*cells, end_section=row[0].text == _last_slice(table))
    Console(file=out, width=width, highlight=False).print(drawn)


def _beside(table: Table, column: int) -> int:
    """How wide the figures of a column are that have something beside them; 0 where none has."""
    if column < table.labels or not any(row[column].below for row in table.rows):
        return 0
    return max(len(row[column].text) for row in table.rows)


def _rich_cell(cell: Cell, narrow: bool, beside: int) -> Text:
    """A figure with its interval beside it, or below it where the terminal is narrow; `beside`: how wide figures are."""
    from rich.text import Text

    text = Text(cell.text.rjust(beside) if cell.text else "", style="bold" if cell.strong else "")
    if cell.below:
        text.append("\n" if narrow else "  ")
        text.append(cell.below, style="not bold dim")
    return text


def _last_slice(table: Table) -> str | None:
    """The label of the row before the averages, where a line is drawn."""
    names = [row[0].text for row in table.rows]
    first = next((i for i, name in enumerate(names) if name in AVERAGES), 0)
    return names[first - 1] if first > 0 else None
