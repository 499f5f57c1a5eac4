"""The figure of a board: a dot with its interval for each system, and lines that join systems not shown to differ."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from hitmiss.boards.board import Board, BoardRow
from hitmiss.core.results import Estimate
from hitmiss.reports.plate import Curve, Mark
from hitmiss.reports.slice_plates import forest_plate
from hitmiss.reports.svg import svg_of
from hitmiss.stats.letters import groups

MOST_ROWS: Final = 60
"""Systems that the figure has room for; the table has them all."""
BETWEEN: Final = 0.03
"""Between two lines that join systems, as a share of the axis."""


def board_figure(board: Board) -> str:
    """Return the figure as an SVG element without a script; it has a row for each ranked system.

    The lines on the right are those of a critical-difference diagram: each joins systems of which no pair was shown to
    differ.
    """
    rows = [row for row in board.rows if row.number.value is not None][:MOST_ROWS]
    if not rows:
        return ""
    own = [
        (r.system, Estimate(board.metric, r.number.value, r.number.low, r.number.high, best=board.best)) for r in rows
    ]
    forest = forest_plate(own, board.metric)
    step, marks = BETWEEN * (forest.x.high - forest.x.low), list[Mark](forest.marks)
    place = {row.system: float(len(rows) - 1 - i) for i, row in enumerate(rows)}
    joined = _joined(board, rows)
    for k, group in enumerate(joined):
        at = [place[name] for name in group]
        across = np.full(2, forest.x.high + step * (k + 1))
        about = f"{len(group)} systems of which no pair was shown to differ"
        marks.append(Curve(across, np.array([max(at) + 0.3, min(at) - 0.3]), k % 6, about))
    x = replace(forest.x, high=forest.x.high + step * (len(joined) + 1))
    label = f"{len(rows)} systems by {board.metric}; the numbers are in the table."
    return svg_of(replace(forest, x=x, marks=tuple(marks)), "board", label=label)


def _joined(board: Board, rows: list[BoardRow]) -> list[tuple[str, ...]]:
    """Return the largest groups of two systems or more of which no pair was shown to differ, the best first."""
    names = [row.system for row in rows if row.rank is not None]
    differing = [
        (duel.a, duel.b)
        for duel in board.pairs
        if {duel.a, duel.b} <= set(names) and (duel.difference.p_adjusted or 1.0) < 1.0 - board.level
    ]
    return [group for group in groups(names, differing) if len(group) > 1] if board.pairs else []
