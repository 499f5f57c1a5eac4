"""Tables, figures and verdicts as LaTeX: one writer for exports and for the paper kit.

Plain tables need booktabs alone. Tables whose numbers line up (`number_format`), shaded cells and long tables need the
packages that the paper kit names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from hitmiss.conclude.headline import headline
from hitmiss.core.tex import SPECIAL, tex
from hitmiss.core.text import escape_invisible
from hitmiss.core.verdict import Verdict
from hitmiss.findings.render import LATEX
from hitmiss.reports.table import COUNT, FIGURE, LABEL, Table, TableCell
from hitmiss.reports.verdict_lines import telling

PLAIN: Final = "\u017f"
"""The last letter (Latin Extended-A) that pdfLaTeX supports without packages."""
TYPED: Final = "‐–—‘’‚“”„†‡•…‰‹›€™"
"""Further characters that it supports."""
OTHERS: Final = (
    "% some names have letters that pdfLaTeX does not know: compile with LuaLaTeX or XeLaTeX and a font that has them"
)
WIDEST: Final = 84
"""Characters that fit the width of a page in small type; a wider table becomes several."""
FEW_ROWS: Final = 3
"""Maximum rows of a table that is turned where it is too wide."""
MOST_DOWN: Final = 40
"""Maximum rows of a float; more become a longtable, which may run over pages."""
ONE_COLUMN: Final = (
    r"\makeatletter\if@twocolumn\onecolumn\def\hitmissback{\twocolumn}\else\let\hitmissback\relax\fi\makeatother"
)
"""A longtable needs a one-column page; in a two-column paper it gets a separate page."""


@dataclass(frozen=True)
class Float:
    """How a table floats: its caption and label as LaTeX, and the format of its numbers, such as `2.1` (siunitx).

    With a format, numbers line up and the table is never wider than its column.
    """

    caption: str
    label: str = ""
    number_format: str = ""


def latex(tables: Sequence[Table], signature: str = "", legend: str = "", verdict: str = "") -> str:
    """Return tables for a paper that loads booktabs; bold where a saved comparison shows a number to be better."""
    floats = [latex_table(part, Float(tex(f"{part.caption}.")), legend) for t in tables for part in _narrow(t)]
    text = "\n".join(filter(None, (verdict, *floats)))
    head = ["% needs \\usepackage{booktabs}"]
    head += [f"% {escape_invisible(line)}" for line in signature.splitlines()]
    told = [OTHERS] if any(c > PLAIN and c not in TYPED for c in text) else []
    return "\n".join([*head, *told, "", text])


def latex_verdict(verdict: Verdict, *, brief: bool = False) -> str:
    """Return the verdict as a paragraph, and below it what speaks for it and against it; `brief`: the headline alone."""
    lines = [] if brief else [f"{tex(title)} {text}" for title, text in telling(verdict, LATEX)]
    listed = [r"\begin{itemize}", *(rf"\item {line}" for line in lines), r"\end{itemize}"] if lines else []
    first = [f"% verdict: {verdict.code}, {verdict.status}", rf"\paragraph{{Verdict.}} {headline(verdict, LATEX)}"]
    return "\n".join([*first, *listed, ""])


def latex_figure(file: str, caption: str, label: str) -> str:
    """Return a float that shows a figure with the width of its column; needs graphicx."""
    return "\n".join(
        [
            r"\begin{figure}",
            r"\centering",
            rf"\includegraphics[width=\linewidth]{{{file}}}",
            rf"\caption{{{caption}}}",
            rf"\label{{{label}}}",
            r"\end{figure}",
            "",
        ]
    )


def latex_table(table: Table, how: Float, legend: str = "") -> str:
    """Return one table with its rules: averages below a line, numbers to the right or lined up."""
    numbers = len(table.header) - table.labels
    lined_up = f"*{{{numbers}}}{{S[table-format={how.number_format},detect-weight]}}"
    columns = "l" * table.labels + (lined_up if how.number_format else "r" * numbers)
    head = [r"$n$" if text == "n" else tex(text) for text in table.header]
    if how.number_format:
        head = [text if i < table.labels else f"{{{text}}}" for i, text in enumerate(head)]
    kinds = [kind for _, kind, _ in table.heads]
    write = _lined_up_cell if how.number_format else _cell
    body = []
    for row_kind, _, row in table.body:
        rule = r"\midrule" + "\n" if row_kind == "pooled" and len(table.rows) > 1 else ""
        body.append(rule + " & ".join(map(write, row, kinds)) + r" \\")
        if how.number_format and any(c.below for c in row):
            ends = [rf"{{\scriptsize {_ends(c.below)}}}" if c.below else "{}" for c in row[table.labels :]]
            body.append(" & ".join([*[""] * table.labels, *ends]) + r" \\")
    ruled = [r"\toprule", " & ".join(head) + r" \\", r"\midrule"]
    named = [rf"\label{{{how.label}}}"] if how.label else []
    if how.number_format and len(table.rows) > MOST_DOWN:
        title = rf"\caption{{{how.caption}}}{''.join(named)}\\"
        first = [rf"\begin{{longtable}}{{{columns}}}", title, *ruled, r"\endfirsthead", *ruled, r"\endhead"]
        return "\n".join([ONE_COLUMN, *first, *body, r"\bottomrule", r"\end{longtable}", r"\hitmissback"])
    inner = [rf"\begin{{tabular}}{{{columns}}}", *ruled, *body, r"\bottomrule", r"\end{tabular}"]
    if how.number_format:
        inner = [r"\begin{adjustbox}{max width=\linewidth}", *inner, r"\end{adjustbox}"]
    below = [rf"\par\footnotesize {tex(legend)}"] if legend else []
    top = [r"\begin{table}", r"\centering", *([] if how.number_format else [r"\small"]), rf"\caption{{{how.caption}}}"]
    return "\n".join([*top, *named, *inner, *below, r"\end{table}", ""])


def _narrow(table: Table) -> list[Table]:
    """Return the table as it fits the width of a page: turned if it has few rows, else in parts with its labels."""
    widths = [
        max([len(head), *(len(row[i].text) + round(0.8 * len(row[i].below)) for row in table.rows)]) + 2
        for i, head in enumerate(table.header)
    ]
    if sum(widths) <= WIDEST:
        return [table]
    if len(table.rows) <= FEW_ROWS:
        return [table.turned()]
    labels, parts, chosen = list(range(table.labels)), list[Table](), list[int]()
    for i in range(table.labels, len(table.header)):
        if chosen and sum(widths[k] for k in (*labels, *chosen, i)) > WIDEST:
            parts.append(table.columns([*labels, *chosen]))
            chosen = []
        chosen.append(i)
    parts.append(table.columns([*labels, *chosen]))
    return [replace(part, title=f"{part.title} ({i} of {len(parts)})") for i, part in enumerate(parts, start=1)]


def _cell(cell: TableCell, kind: str) -> str:
    if kind == LABEL:
        return tex(" ".join(filter(None, (cell.text, cell.below))))
    if kind == COUNT:
        return cell.text.replace(",", r"\,")
    value = tex(cell.text)
    if not any(c.isalpha() for c in cell.text):
        value = value.replace(SPECIAL["-"], SPECIAL["−"])  # in a number it is a minus sign
    shown = rf"\textbf{{{value}}}" if cell.strong and cell.mark else value
    letters = cell.mark if cell.mark.startswith("*") else rf"\mathrm{{{cell.mark}}}"
    above = f"$^{{{letters}}}$" if cell.mark else ""
    beside = rf" {{\scriptsize {_ends(cell.below)}}}" if cell.below else ""
    return f"{shown}{above}{beside}"


def _lined_up_cell(cell: TableCell, kind: str) -> str:
    """Format a number for a column in which numbers line up; what is not a number stands in braces."""
    if kind != FIGURE:
        return tex(cell.text)
    shaded = rf"\cellcolor{{orange!{7 * int(cell.shade)}}}" if cell.shade and cell.text else ""
    if not cell.text.replace("-", "").replace(".", "").isdigit():
        return f"{{{shaded}{tex(cell.text)}}}"
    bold = "\\bfseries " if cell.mark.startswith("*") else ""
    return f"{shaded}{bold}{cell.text}"


def _ends(below: str) -> str:
    return below.replace("-", SPECIAL["−"]) if below.startswith("[") else tex(below)
