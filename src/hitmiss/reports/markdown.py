"""Tables as Markdown, as pull requests show them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hitmiss.core.text import escape_invisible
from hitmiss.reports.table import Table, TableCell


def markdown(tables: Sequence[Table], signature: str = "", legend: str = "") -> str:
    """Return Markdown tables, as GitHub and others show them."""
    found = []
    for table in tables:
        align = [":--" if i < table.labels else "--:" for i in range(len(table.header))]
        lines = [f"**{md(table.title)}**", "", _line(list(map(md, table.header))), _line(align)]
        lines += [_line(list(map(_md_cell, row))) for row in table.rows]
        found.append("\n".join(lines))
    ends = [f"_{md(legend)}_"] if legend else []
    ends += [f"`{escape_invisible(line).replace('`', chr(39))}`" for line in signature.splitlines()]
    return "\n\n".join([*found, *ends]) + "\n"


def md(text: str) -> str:
    r"""Escape text so that Markdown shows it literally.

    >>> print(md("a|b <i> *c*"))
    a\|b &lt;i&gt; \*c\*
    """
    escaped = escape_invisible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|~#!])", r"\\\1", escaped)


def _md_cell(cell: TableCell) -> str:
    shown = f"**{md(cell.text)}**" if cell.strong and cell.mark else md(cell.text)
    below = cell.below if cell.below.startswith("[") else md(cell.below)
    return " ".join(filter(None, (shown + cell.mark.replace("*", r"\*"), below)))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
