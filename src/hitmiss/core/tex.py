"""Text that LaTeX prints literally."""

from __future__ import annotations

from typing import Final

from hitmiss.core.text import escape_invisible

SPECIAL: Final = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "×": r"$\times$", "−": "$-$", "–": "--", "↓": r"$\downarrow$", "↑": r"$\uparrow$", "∞": r"$\infty$", "|": r"\textbar{}",
    "≤": r"$\le$", "≥": r"$\ge$", "[": "{[}", "]": "{]}", "*": "{*}", "-": "{-}", "'": "{'}", "`": r"\textasciigrave{}",
    "\u00a0": "~",
}  # fmt: skip
"""How LaTeX prints a character literally: after `\\\\` a bracket or a star would be an option, and two hyphens a dash."""


def tex(text: str) -> str:
    r"""Escape text so that LaTeX prints it literally.

    >>> print(tex("codec_q 50% <b>"))
    codec\_q 50\% \textless{}b\textgreater{}
    """
    return "".join(SPECIAL.get(c, c) for c in escape_invisible(text, keep="\u00a0"))
