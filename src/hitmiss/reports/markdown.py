"""Tables as Markdown, as pull requests show them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from hitmiss.conclude.headline import headline
from hitmiss.core.text import escape_invisible
from hitmiss.core.verdict import Verdict
from hitmiss.findings.render import Surface
from hitmiss.reports.table import Table, TableCell
from hitmiss.reports.verdict_lines import telling


def markdown(tables: Sequence[Table], signature: str = "", legend: str = "", verdict: str = "") -> str:
    """Return Markdown tables, as GitHub and others show them."""
    found = [verdict] if verdict else []
    for table in tables:
        align = [":--" if i < table.labels else "--:" for i in range(len(table.header))]
        lines = [f"**{md(table.title)}**", "", _line(list(map(md, table.header))), _line(align)]
        lines += [_line(list(map(_md_cell, row))) for row in table.rows]
        found.append("\n".join(lines))
    ends = [f"_{md(legend)}_"] if legend else []
    ends += [f"`{escape_invisible(line).replace('`', chr(39))}`" for line in signature.splitlines()]
    return "\n\n".join([*found, *ends]) + "\n"


def markdown_verdict(verdict: Verdict, *, brief: bool = False) -> str:
    """Return the verdict in bold, and below it what speaks for it and against it; `brief`: the headline alone."""
    lines = [] if brief else [f"- {md(title)} {text}" for title, text in telling(verdict, MARKDOWN)]
    return "\n".join([f"**{headline(verdict, MARKDOWN)}**", *([""] if lines else []), *lines])


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


MARKDOWN: Final = Surface("markdown", md, code=("`", "`"))
