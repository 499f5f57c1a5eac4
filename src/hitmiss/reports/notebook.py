"""What a notebook shows: figures as the last line of a cell, and results as readable tables.

A cell shows an object by `_repr_html_`, `_repr_svg_` or `_repr_png_`; matplotlib's axes have none of these.
"""

from __future__ import annotations

import io
from html import escape
from typing import TYPE_CHECKING, Any, Final

from hitmiss.core.results import Results
from hitmiss.core.shared import visible
from hitmiss.reports.assessment import assessed
from hitmiss.reports.tabular import Grid, Row, figure, grids, interval, places

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ROWS: Final = 30
"""Maximum rows of a table in a cell; of more, the first and the last are shown."""
MOST_TABLES: Final = 8


class Drawn:
    """A figure that shows itself in a notebook; all other attributes are those of its matplotlib axes.

    `ax` are the axes, `figure` the whole figure.
    """

    def __init__(self, ax: Axes) -> None:
        self.ax = ax

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["ax"], name)

    def _repr_png_(self) -> bytes:
        return self._saved("png")

    def _repr_svg_(self) -> str:
        return self._saved("svg").decode()

    def _saved(self, kind: str) -> bytes:
        from matplotlib import rc_context

        from hitmiss.reports.matplots import STYLE

        with rc_context({**STYLE, "svg.fonttype": "none"}):
            held = io.BytesIO()
            whole: Any = self.ax.figure
            whole.savefig(held, format=kind, dpi=160, bbox_inches="tight")
        return held.getvalue()

    def save(self, path: Any) -> None:
        """Write the figure as .svg, .pdf or .png."""
        from hitmiss.reports.matplots import save

        save(self.ax, path)


def html_of(results: Results) -> str:
    """Return results for a cell: the verdict, then one table per grouping, metrics as columns; long ones are cut."""
    found = grids(results)
    warnings = "".join(f"<p>⚠ {_text(w)}</p>" for w in results.warnings)
    verdict = f"<p><b>{_text(assessed(results).verdict)}</b></p>" if len(results) else ""
    shown = "".join(map(_table, found[:MOST_TABLES]))
    rest = (
        f"<p>{len(found) - MOST_TABLES} more tables; <code>results.to_polars()</code> has every row.</p>"
        if len(found) > MOST_TABLES
        else ""
    )
    return f"{verdict}{warnings}{shown}{rest}<p><code>{_text(results.signature)}</code></p>"


def _table(grid: Grid) -> str:
    digits = [places(grid.column(i)) for i in range(len(grid.metrics))]
    heads = (*grid.names, "n", *grid.titles) if grid.names else ("", "n", *grid.titles)
    rows = list(grid.rows)
    left_out = len(rows) - MOST_ROWS
    if left_out > 0:
        rows = [*rows[: MOST_ROWS - 5], *rows[-5:]]
    body = "".join(_row(grid, row, digits) for row in rows)
    more = f"<tr><td colspan={len(heads)}>{left_out:,} more rows are not shown</td></tr>" if left_out > 0 else ""
    head = "".join(f"<th>{_text(h)}</th>" for h in heads)
    return f"<table><caption>{_text(grid.title)}</caption><thead><tr>{head}</tr></thead><tbody>{body}{more}</tbody></table>"


def _row(grid: Grid, row: Row, digits: list[int]) -> str:
    labels = row.labels if grid.names else ("all trials",)
    cells = [f"<th>{_text(label)}</th>" for label in labels]
    cells.append(f"<td>{row.n:,}</td>" if row.n is not None else "<td></td>")
    for i, e in enumerate(row.cells):
        if e is None:
            cells.append("<td></td>")
        elif e.value is None:
            cells.append(
                f'<td title="{_text(e.note or "undefined")}">undefined: {_text((e.note or "").removeprefix("undefined: "))}</td>'
            )
        else:
            ends = interval(e, digits[i])
            cells.append(f"<td>{figure(e.value, digits[i])} <small>{_text(ends)}</small></td>")
    return f"<tr>{''.join(cells)}</tr>"


def _text(text: str) -> str:
    return escape(visible(text), quote=True)
