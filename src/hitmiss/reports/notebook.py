"""What a notebook shows: figures as the last line of a cell, and results as readable tables.

A cell shows an object by `_repr_html_`, `_repr_svg_` or `_repr_png_`; matplotlib's axes have none of these.
"""

from __future__ import annotations

import io
from html import escape
from typing import TYPE_CHECKING, Final, cast

from hitmiss.conclude.headline import headline
from hitmiss.conclude.verdict import conclude, conclude_comparison
from hitmiss.core.results import Results
from hitmiss.core.text import escape_invisible
from hitmiss.core.verdict import Verdict
from hitmiss.engine.comparison import Comparison
from hitmiss.engine.ranking import Ranking
from hitmiss.findings.options import as_keywords
from hitmiss.findings.render import Surface
from hitmiss.reports.comparison_tables import tables as comparison_tables
from hitmiss.reports.html_table import plain_table
from hitmiss.reports.ranking_tables import ranking_tables
from hitmiss.reports.result_tables import tables
from hitmiss.reports.table_style import TableStyle
from hitmiss.reports.verdict_lines import telling

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
    about = ""
    if isinstance(results, Results):
        found, verdict = tables(results, "", TableStyle()), conclude(results) if len(results) else None
    elif isinstance(results, Ranking):
        found, verdict = ranking_tables(results), conclude_comparison(results)
    else:
        found, verdict = comparison_tables(results), conclude_comparison(results)
        about = f" (A = {_text(results.names[0])}, B = {_text(results.names[1])})"
    said = _verdict(verdict, about) if verdict is not None else ""
    answered = {line.text for _, lines in verdict.sections for line in lines} if verdict is not None else set()
    warnings = "".join(f"<p>⚠ {_text(w)}</p>" for w in results.warnings if w not in answered)
    shown = "".join(plain_table(t.cut(MOST_ROWS, end=5)) for t in found[:MOST_TABLES])
    left = len(found) - MOST_TABLES
    rest = f"<p>{left} more tables; <code>to_polars()</code> has every row.</p>" if left > 0 else ""
    return f"{said}{warnings}{shown}{rest}<p><code>{_text(results.signature)}</code></p>"


def _verdict(verdict: Verdict, about: str) -> str:
    """Return the headline, and below it what speaks for the verdict and against it."""
    lines = "".join(f"<li>{_text(title)} {text}</li>" for title, text in telling(verdict, NOTEBOOK))
    return f"<p><b>{headline(verdict, NOTEBOOK)}{about}</b></p>" + (f"<ul>{lines}</ul>" if lines else "")


def _text(text: str) -> str:
    return escape(escape_invisible(text), quote=True)


NOTEBOOK: Final = Surface("notebook", _text, as_keywords, ("<code>", "</code>"))
"""A cell of a notebook is HTML, and its reader types Python."""
