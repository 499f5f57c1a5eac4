"""Tables as LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hitmiss.core.text import escape_invisible
from hitmiss.reports.table import COUNT, LABEL, Table, TableCell

SPECIAL: Final = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "×": r"$\times$", "−": "$-$", "–": "--", "↓": r"$\downarrow$", "↑": r"$\uparrow$", "∞": r"$\infty$", "|": r"\textbar{}",
    "≤": r"$\le$", "≥": r"$\ge$", "[": "{[}", "]": "{]}", "*": "{*}", "-": "{-}", "'": "{'}", "`": r"\textasciigrave{}",
}  # fmt: skip
"""How LaTeX prints a character literally: after `\\\\` a bracket or a star would be an option, and two hyphens a dash."""
PLAIN: Final = "\u017f"
"""The last letter (Latin Extended-A) that pdfLaTeX supports without packages."""
TYPED: Final = "‐–—‘’‚“”„†‡•…‰‹›€™"
"""Further characters that it supports."""
OTHERS: Final = (
    "% some names have letters that pdfLaTeX does not know: compile with LuaLaTeX or XeLaTeX and a font that has them"
)


def latex(tables: Sequence[Table], signature: str = "", legend: str = "") -> str:
    """Return tables for a paper that loads booktabs; bold where a saved comparison shows a figure to be better."""
    text = "\n".join(_latex_table(table, legend) for table in tables)
    head = ["% needs \\usepackage{booktabs}"]
    head += [f"% {escape_invisible(line)}" for line in signature.splitlines()]
    told = [OTHERS] if any(c > PLAIN and c not in TYPED for c in text) else []
    return "\n".join([*head, *told, "", text])


def _latex_table(table: Table, legend: str) -> str:
    columns = "l" * table.labels + "r" * (len(table.header) - table.labels)
    kinds = [kind for _, kind, _ in table.heads]
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{tex(table.caption + '.')}}}"]
    lines += [rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
    lines += [" & ".join(r"$n$" if head == "n" else tex(head) for head in table.header) + r" \\", r"\midrule"]
    for row_kind, _, row in table.body:
        if row_kind == "pooled" and len(table.rows) > 1:
            lines.append(r"\midrule")
        lines.append(" & ".join(map(_tex_cell, row, kinds)) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\footnotesize {tex(legend)}"] if legend else []
    return "\n".join([*lines, r"\end{table}", ""])


def tex(text: str) -> str:
    r"""Escape text so that LaTeX prints it literally.

    >>> print(tex("codec_q 50% <b>"))
    codec\_q 50\% \textless{}b\textgreater{}
    """
    return "".join(SPECIAL.get(c, c) for c in escape_invisible(text))


def _tex_cell(cell: TableCell, kind: str) -> str:
    if kind == LABEL:
        return tex(" ".join(filter(None, (cell.text, cell.below))))
    if kind == COUNT:
        return cell.text.replace(",", r"\,")
    value = tex(cell.text)
    if not any(c.isalpha() for c in cell.text):
        value = value.replace(SPECIAL["-"], SPECIAL["−"])  # in a number it is a minus sign
    ends = cell.below.replace("-", SPECIAL["−"]) if cell.below.startswith("[") else tex(cell.below)
    shown = rf"\textbf{{{value}}}" if cell.strong and cell.mark else value
    above = rf"$^{{{_superscript(cell.mark)}}}$" if cell.mark else ""
    beside = rf" {{\scriptsize {ends}}}" if ends else ""
    return f"{shown}{above}{beside}"


def _superscript(mark: str) -> str:
    return mark if mark.startswith("*") else rf"\mathrm{{{mark}}}"
