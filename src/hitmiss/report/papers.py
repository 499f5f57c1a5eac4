"""Grids for papers and pull requests: LaTeX (booktabs) and Markdown, digits from the intervals, significance marked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from hitmiss.core.values import visible
from hitmiss.report.marks import Marks
from hitmiss.report.tables import ARROW, Grid, Row, figure, interval, places

SPECIAL: Final = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "×": r"$\times$", "−": "$-$", "–": "--", "↓": r"$\downarrow$", "↑": r"$\uparrow$", "∞": r"$\infty$", "|": r"\textbar{}",
    "≤": r"$\le$", "≥": r"$\ge$", "[": "{[}", "]": "{]}", "*": "{*}", "-": "{-}", "'": "{'}", "`": r"\textasciigrave{}",
}  # fmt: skip
"""How LaTeX prints a character letter for letter: after `\\\\` a bracket or a star would be an option, and two hyphens a dash."""
PLAIN: Final = "\u017f"
"""The last letter (Latin Extended-A) that pdfLaTeX knows of itself."""
TYPED: Final = "‐–—‘’‚“”„†‡•…‰‹›€™"
"""What it knows beyond them."""
OTHERS: Final = (
    "% some names have letters that pdfLaTeX does not know: compile with LuaLaTeX or XeLaTeX and a font that has them"
)


@dataclass(frozen=True)
class Style:
    """How figures are written: which metrics in per cent, whether intervals stand beside them, and the marks."""

    percent: tuple[str, ...] = ()
    intervals: bool = True
    marks: Marks = field(default_factory=Marks)

    def scale(self, metric: str) -> float:
        """100 for metrics in per cent."""
        return 100.0 if metric.split("(")[0] in self.percent or metric in self.percent else 1.0


def latex(grids: Sequence[Grid], style: Style, signature: str = "") -> str:
    """Tables for a paper that loads booktabs; a figure is bold where a saved comparison shows it to be better."""
    found = [_latex_table(grid, style) for grid in grids]
    head = ["% needs \\usepackage{booktabs}", *(f"% {visible(line)}" for line in signature.splitlines())]
    text = "\n".join(found)
    told = [OTHERS] if any(c > PLAIN and c not in TYPED for c in text) else []
    return "\n".join([*head, *told, "", text])


def _latex_table(grid: Grid, style: Style) -> str:
    columns = "l" * len(grid.names) + "r" + "r" * len(grid.metrics)
    caption = tex(grid.title[:1].upper() + grid.title[1:] + ".")
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{caption}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
    ]
    heads = [*map(tex, grid.names), r"$n$", *(tex(h) for h in _heads(grid, style))]
    lines += [" & ".join(heads) + r" \\", r"\midrule"]
    for row, cells in _cells(grid, style, tex, _tex_figure):
        if row.average == "pooled" and len(grid.rows) > 1:
            lines.append(r"\midrule")
        size = f"{row.n:,}".replace(",", r"\,") if row.n is not None else ""
        lines.append(" & ".join([*map(tex, row.labels), size, *cells]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\footnotesize {tex(style.marks.legend)}"] if style.marks.legend else []
    return "\n".join([*lines, r"\end{table}", ""])


def tex(text: str) -> str:
    r"""Text as LaTeX prints it letter for letter.

    >>> print(tex("codec_q 50% <b>"))
    codec\_q 50\% \textless{}b\textgreater{}
    """
    return "".join(SPECIAL.get(c, c) for c in visible(text))


def _tex_figure(value: str, ends: str, mark: str, strong: bool) -> str:
    value = value.replace(SPECIAL["-"], SPECIAL["−"])  # of a number it is a minus
    ends = ends.replace("-", SPECIAL["−"]) if ends.startswith("[") else ends
    shown = rf"\textbf{{{value}}}" if strong else value
    above = rf"$^{{{_superscript(mark)}}}$" if mark else ""
    beside = rf" {{\scriptsize {ends}}}" if ends else ""
    return f"{shown}{above}{beside}"


def _superscript(mark: str) -> str:
    return mark if mark.startswith("*") else rf"\mathrm{{{mark}}}"


def markdown(grids: Sequence[Grid], style: Style, signature: str = "") -> str:
    """Tables that GitHub and others show."""
    found = []
    for grid in grids:
        heads = [*map(md, grid.names), "n", *map(md, _heads(grid, style))]
        align = [*(":--" for _ in grid.names), "--:", *("--:" for _ in grid.metrics)]
        lines = [f"**{md(grid.title)}**", "", _line(heads), _line(align)]
        for row, cells in _cells(grid, style, md, _md_figure):
            lines.append(_line([*map(md, row.labels), f"{row.n:,}" if row.n is not None else "", *cells]))
        found.append("\n".join(lines))
    ends = [f"_{md(style.marks.legend)}_"] if style.marks.legend else []
    ends += [f"`{visible(line).replace('`', chr(39))}`" for line in signature.splitlines()]
    return "\n\n".join([*found, *ends]) + "\n"


def md(text: str) -> str:
    r"""Text as Markdown shows it letter for letter.

    >>> print(md("a|b <i> *c*"))
    a\|b &lt;i&gt; \*c\*
    """
    escaped = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|~#!])", r"\\\1", escaped)


def _md_figure(value: str, ends: str, mark: str, strong: bool) -> str:
    shown = f"**{value}**" if strong else value
    return " ".join(filter(None, (shown + mark.replace("*", r"\*"), ends)))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _heads(grid: Grid, style: Style) -> list[str]:
    unit = ["" if style.scale(m) == 1.0 else ", %" for m in grid.metrics]
    return [f"{title}{u} {ARROW[b]}" for title, u, b in zip(grid.titles, unit, grid.best, strict=True)]


def _cells(
    grid: Grid, style: Style, text: Callable[[str], str], shape: Callable[[str, str, str, bool], str]
) -> list[tuple[Row, list[str]]]:
    """Every row with its figures written out."""
    scales = [style.scale(m) for m in grid.metrics]
    digits = [places(grid.column(i), scale) for i, scale in enumerate(scales)]
    found = []
    for row in grid.rows:
        cells = []
        for i, e in enumerate(row.cells):
            if e is None:
                cells.append("")
                continue
            ends = interval(e, digits[i], scales[i]) if style.intervals and row.average != "worst" else ""
            where = f"({', '.join(e.slice.values())})" if row.average == "worst" and not ends else ends
            value = text(figure(e.value, digits[i], scales[i]))
            mark = style.marks.of(e)  # bold where a test says so, and nowhere else
            cells.append(shape(value, text(where) if row.average == "worst" else ends, mark, mark.startswith("*")))
        found.append((row, cells))
    return found
