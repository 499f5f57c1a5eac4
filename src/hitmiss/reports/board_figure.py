"""The figure of a board: a dot with its interval for each system, and lines that join systems not shown to differ."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Final

from hitmiss.boards.board import Board, BoardRow
from hitmiss.core.text import escape_invisible
from hitmiss.reports.plate import ticks
from hitmiss.stats.letters import letters

ROW: Final = 20
PLOT: Final = 340
JOINED: Final = 11
"""Pixels between two lines that join systems."""
MOST_ROWS: Final = 60
"""Systems that the figure has room for; the table has them all."""
LONGEST: Final = 26
LETTER: Final = 6.6
"""Width in pixels of an average letter."""


def board_figure(board: Board) -> str:
    """Return the figure as an SVG element without a script; it has a row for each ranked system.

    The lines on the right are those of a critical-difference diagram: each joins systems of which no pair was shown to
    differ.
    """
    rows = [row for row in board.rows if row.number.value is not None][:MOST_ROWS]
    if not rows:
        return ""
    ends = [x for row in rows for x in (row.number.low, row.number.high, row.number.value) if x is not None]
    marked = ticks(min(ends), max(ends))
    least, greatest = min(min(ends), marked[0][0]), max(max(ends), marked[-1][0])
    width = greatest - least or 1.0

    names = 20 + round(LETTER * max(len(_short(row.system)) for row in rows))

    def across(value: float) -> float:
        return round(names + PLOT * (value - least) / width, 1)

    groups = _groups(board, rows)
    bottom = ROW * len(rows) + 6
    total = names + PLOT + 24 + JOINED * len(groups)
    parts = [f'<path class="g" d="M{across(at)} 0V{bottom}"/>' for at, _ in marked]
    parts += [f'<text x="{across(at)}" y="{bottom + 16}" text-anchor="middle">{text}</text>' for at, text in marked]
    for i, row in enumerate(rows):
        parts.append(_row(row, names - 10, ROW * i + 13, across))
    for k, group in enumerate(groups):
        places = [i for i, row in enumerate(rows) if row.system in group]
        x = names + PLOT + 18 + JOINED * k
        about = f"{len(group)} systems of which no pair was shown to differ"
        top, end = ROW * places[0] + 6, ROW * places[-1] + 20
        parts.append(f'<path class="line k{k % 6}" d="M{x} {top}V{end}"><title>{about}</title></path>')
    label = f"{len(rows)} systems by {escape(board.metric)}; the numbers are in the table."
    return (
        f'<svg class="plate board" viewBox="0 0 {total} {bottom + 24}" role="img" aria-label="{label}">'
        f"{''.join(parts)}</svg>"
    )


def _row(row: BoardRow, x: int, y: int, across: Callable[[float], float]) -> str:
    number = row.number
    assert number.value is not None
    name = escape_invisible(row.system)
    ends = ""
    about = f"{name}: {number.value:.4f}"
    if number.low is not None and number.high is not None:
        ends = f'<path class="line k0" d="M{across(number.low)} {y - 4}H{across(number.high)}"/>'
        about += f" [{number.low:.4f}, {number.high:.4f}]"
    return (
        f'<g><title>{escape(about)}</title><text x="{x}" y="{y}" text-anchor="end">{escape(_short(row.system))}</text>'
        f'{ends}<circle class="dot k0" cx="{across(number.value)}" cy="{y - 4}" r="4"/></g>'
    )


def _short(name: str) -> str:
    shown = escape_invisible(name)
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"


def _groups(board: Board, rows: list[BoardRow]) -> list[set[str]]:
    """Return the largest groups of two systems or more of which no pair was shown to differ, the best first."""
    names = [row.system for row in rows if row.rank is not None]
    alpha = 1.0 - board.level
    told = [
        (duel.a, duel.b)
        for duel in board.pairs
        if {duel.a, duel.b} <= set(names) and (duel.difference.p_adjusted or 1.0) < alpha
    ]
    if not board.pairs:
        return []
    signs = letters(names, told)
    found: dict[str, set[str]] = {}
    for name, sign in signs.items():
        for letter in _split(sign):
            found.setdefault(letter, set()).add(name)
    return [group for group in found.values() if len(group) > 1]


def _split(sign: str) -> list[str]:
    import re

    return re.findall(r"[a-z]\d*", sign)
