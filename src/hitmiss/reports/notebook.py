"""What a notebook shows: figures as the last line of a cell, and results as readable tables.

A cell shows an object by `_repr_html_`, `_repr_svg_` or `_repr_png_`; matplotlib's axes have none of these.
"""

from __future__ import annotations

import io
from html import escape
from typing import TYPE_CHECKING, Final, cast

from hitmiss.conclude.verdict import conclude, conclude_comparison
from hitmiss.core.results import Results
from hitmiss.core.text import escape_invisible
from hitmiss.engine.comparison import Comparison
from hitmiss.engine.ranking import Ranking
from hitmiss.reports.comparison_tables import tables as comparison_tables
from hitmiss.reports.html_table import plain_table
from hitmiss.reports.ranking_tables import ranking_tables
from hitmiss.reports.result_tables import tables
from hitmiss.reports.table_style import TableStyle

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_ROWS: Final = 30
"""Maximum rows of a table in a cell; of more, the first and the last are shown."""
MOST_TABLES: Final = 8


class Drawn:
    """A figure that shows itself in a notebook; all other attributes are those of its matplotlib axes.

    `ax` are the axes, `figure` the whole figure.
    """

    def __init__(self, ax: Axes) -> None:
        self.ax = ax

    def __getattr__(self, name: str) -> object:
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
            whole = cast("Figure", self.ax.figure)
            whole.savefig(held, format=kind, dpi=160, bbox_inches="tight")
        return held.getvalue()

    def save(self, path: str | Path) -> None:
        """Write the figure as .svg, .pdf or .png."""
        from hitmiss.reports.matplots import save

        save(self.ax, path)


def html_of(results: Results | Comparison | Ranking) -> str:
    """Return results for a cell: the verdict, then one table per grouping, metrics as columns; long ones are cut."""
    if isinstance(results, Results):
        found, said = tables(results, "", TableStyle()), conclude(results).headline if len(results) else ""
    elif isinstance(results, Ranking):
        found, said = ranking_tables(results), str(conclude_comparison(results))
    else:
        found = comparison_tables(results)
        said = f"{conclude_comparison(results)} (A = {results.names[0]}, B = {results.names[1]})"
    warnings = "".join(f"<p>⚠ {_text(w)}</p>" for w in results.warnings)
    verdict = f"<p><b>{_text(said)}</b></p>" if said else ""
    shown = "".join(plain_table(t.cut(MOST_ROWS, end=5)) for t in found[:MOST_TABLES])
    rest = (
        f"<p>{len(found) - MOST_TABLES} more tables; <code>to_polars()</code> has every row.</p>"
        if len(found) > MOST_TABLES
        else ""
    )
    return f"{verdict}{warnings}{shown}{rest}<p><code>{_text(results.signature)}</code></p>"


def _text(text: str) -> str:
    return escape(escape_invisible(text), quote=True)
