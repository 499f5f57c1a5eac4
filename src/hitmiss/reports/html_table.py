"""Tables as HTML: one writer for the page, for notebooks, and for trials."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Final

from hitmiss.core.text import escape_invisible
from hitmiss.reports.table import COUNT, FIGURE, LABEL, Bar, Table, TableCell

MANY_COLUMNS: Final = 5
"""A table with more columns of numbers than this is set more densely."""
FEW_ROWS: Final = 3
"""A table with more rows than this can be sorted by a click."""


def page_table(
    whole: Table, classes: str = "", *, captioned: bool = True, links: Mapping[str, str] | None = None
) -> str:
    """Return a table for a page: it scrolls in its own box, its heads have tooltips, intervals are drawn as bars.

    `links` are the addresses of the names in the first column; a table with them can always be sorted.
    """
    table = whole.cut()
    heads = table.heads
    dense = sum(kind == FIGURE for _, kind, _ in heads) > MANY_COLUMNS
    look = " ".join(
        filter(
            None,
            ("sortable" if (table.counts or links is not None) and len(table.rows) > FEW_ROWS else "", "many" * dense),
        )
    )
    caption = f"<span>{_text(table.caption)}</span>" if captioned else ""
    head = "".join(_head(text, kind, about) for text, kind, about in heads)
    rows, before = [], "none"
    for kind, is_weak, cells in table.body:
        named = kind + " first-average" * (not before) if kind else "weak" * is_weak
        inner = "".join(
            _first(cell, heads[i][1], is_weak, links or {}) if i == 0 else _cell(cell, heads[i][1])
            for i, cell in enumerate(cells)
        )
        rows.append(f"<tr{_attribute('class', named)}>{inner}</tr>")
        before = kind
    note = f'<p class="quiet">{_text(table.note)}</p>' if table.note else ""
    body = "\n".join(rows)
    return (
        f'<div class="{f"scroll {classes}".strip()}" role="group" aria-label="{_text(table.caption)}" tabindex="0">'
        f"<table{_attribute('class', look)}><caption>{caption}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>{note}"
    )


def plain_table(table: Table) -> str:
    """Return a table as plain markup, for a cell of a notebook, which has styles of its own."""
    heads = table.heads
    head = "".join(f"<th>{_text(text)}</th>" for text, _, _ in heads)
    rows = "".join(
        f"<tr>{''.join(_plain_cell(c, kind) for c, (_, kind, _) in zip(row, heads, strict=True))}</tr>"
        for row in table.rows
    )
    more = f"<p>{_text(table.note)}</p>" if table.note else ""
    caption = f"<caption>{_text(table.title)}</caption>" if table.title else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def _head(text: str, kind: str, about: str) -> str:
    named = "" if kind == LABEL else "n count" if kind == COUNT else "n"
    return f'<th scope="col"{_attribute("class", named)}{_attribute("title", about)}>{_text(text)}</th>'


def _first(cell: TableCell, kind: str, is_weak: bool, links: Mapping[str, str]) -> str:
    """Return the cell that names its row."""
    if not cell.text or kind != LABEL:
        return _cell(cell, kind) if cell.text else "<td></td>"
    flag = ' <em class="flag" title="shown to be worse than the others">worse</em>' if is_weak else ""
    name = _text(cell.text)
    linked = f'<a href="{_text(links[cell.text])}">{name}</a>' if cell.text in links else name
    return f'<th scope="row">{linked}{flag}</th>'


def _cell(cell: TableCell, kind: str) -> str:
    if kind == LABEL:
        below = f'<br><small class="quiet">{_text(cell.below)}</small>' if cell.below else ""
        return f"<td>{_text(cell.text)}{below}</td>"
    inner = _text(cell.text)
    if kind == FIGURE and cell.text:
        inner = f"<b>{inner}</b>" if cell.strong else inner
        inner += f"<small>{_text(cell.below)}</small>" if cell.below else ""
        inner += _bar(cell.bar) if cell.bar is not None else ""
    named = "n count" if kind == COUNT else "n"
    return f'<td class="{named}"{_attribute("title", cell.about)}>{inner}</td>'


def _plain_cell(cell: TableCell, kind: str) -> str:
    if kind == LABEL:
        return f"<th>{_text(cell.text)}</th>"
    if cell.text == "–" and cell.about:
        return f"<td>undefined: {_text(cell.about.removeprefix('undefined: '))}</td>"
    below = f" <small>{_text(cell.below)}</small>" if cell.below else ""
    return f"<td>{_text(cell.text)}{below}</td>"


def _bar(bar: Bar) -> str:
    """Draw an interval with its value, and the pooled value as a dashed line."""
    pooled = f'<path class="p" d="M{bar.pooled} 0v12"/>' if bar.pooled is not None else ""
    drawn = f'<path class="w" d="M{bar.low} 6H{bar.high}"/><circle cx="{bar.at}" cy="6" r="3"/>'
    return (
        f'<svg class="iv" viewBox="-6 0 112 12" aria-hidden="true"><path class="t" d="M0 6h100"/>{pooled}{drawn}</svg>'
    )


def _attribute(name: str, value: str) -> str:
    return f' {name}="{_text(value)}"' if value else ""


def _text(text: str) -> str:
    """Escape text, show its invisible characters, and keep an arrow with its metric."""
    return escape(escape_invisible(text, keep="\n"), quote=True).replace(" ↑", "\u00a0↑").replace(" ↓", "\u00a0↓")
