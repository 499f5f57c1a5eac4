"""A board arranged as tables: who leads, every system on every data set, and what was left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hitmiss.boards.board import AVERAGE, POOLED_RANK, Board
from hitmiss.boards.numbers import BoardNumber
from hitmiss.reports.ranking_tables import rank_text
from hitmiss.reports.table import ARROW, Bar, Table, TableCell
from hitmiss.reports.table_style import bracketed

TIERS = "Tier: no system was shown to differ from the best system of its tier; all pairs were judged at once."


def board_tables(board: Board) -> list[Table]:
    """Return the order of the systems, then every system on every data set, then the submissions that were left out."""
    found = [standing_table(board)]
    if len(board.datasets) > 1:
        found.append(dataset_table(board))
    if board.rejected:
        found.append(rejected_table(board))
    return found


def ranked_by(board: Board) -> str:
    """Say what the board ranks by."""
    n = len(board.datasets)
    if board.rank_by == AVERAGE:
        even = len({d.weight for d in board.datasets}) == 1
        return f"{'' if even else 'weighted '}average {board.metric} over {n} data sets"
    if board.rank_by == POOLED_RANK:
        return f"{board.metric} of all trials of {n} data sets under one threshold"
    return board.metric if n == 1 else f"{board.metric} on {board.rank_by}"


def standing_table(board: Board) -> Table:
    """Return the systems from best to worst with rank, its interval and tier."""
    bars = _scale([row.number for row in board.rows])
    rows = tuple(
        (
            TableCell(row.system),
            number_cell(row.number, strong=True, bar=bars(row.number)),
            TableCell("–" if row.rank is None else str(row.rank)),
            TableCell(rank_text(row)),
            TableCell("" if row.tier is None else str(row.tier)),
            number_cell(row.worst, below=row.worst.dataset),
        )
        for row in board.rows
    )
    header = ("system", f"{board.metric} {ARROW[board.best]}", "rank", f"rank, {board.level:.0%}", "tier", "worst")
    lost = [row.system for row in board.rows if row.missing]
    note = TIERS if board.pairs else ""
    if lost:
        note = f"{note} Not ranked, because data sets are missing: {', '.join(lost[:8])}{' …' if lost[8:] else ''}.".strip()
    table = Table(ranked_by(board), header, rows, note=note, name="board")
    return table.columns([0, 1, 2, 3, 4]) if len(board.datasets) == 1 else table


def dataset_table(board: Board) -> Table:
    """Return every system on every data set, with the average, and all trials under one threshold."""
    names = [d.name for d in board.datasets]
    rows = tuple(
        (
            TableCell(row.system),
            *(number_cell(row.cells[name]) for name in names),
            number_cell(row.average, strong=True),
            number_cell(row.pooled),
        )
        for row in board.rows
    )
    title = f"{board.metric} {ARROW[board.best]} by data set"
    return Table(title, ("system", *names, "average", "pooled"), rows, name="datasets")


def rejected_table(board: Board) -> Table:
    """Return the submissions that could not be used, each with its first sentence."""
    rows = tuple(
        (
            TableCell(one.system),
            TableCell(one.dataset),
            TableCell(one.code),
            TableCell(one.text.splitlines()[0] if one.text else ""),
        )
        for one in board.rejected
    )
    return Table("left out", ("system", "data set", "code", "reason"), rows, labels=4, name="rejected")


def number_cell(
    number: BoardNumber | None, *, strong: bool = False, bar: Bar | None = None, below: str = ""
) -> TableCell:
    """Return a number with its interval as a cell; a dash where there is none."""
    if number is None or number.value is None:
        return TableCell("–", about=number.note if number is not None else "")
    ends = bracketed(number.low, number.high)
    return TableCell(f"{number.value:.4f}", " ".join(filter(None, (below, ends))), strong, number.note, bar=bar)


def _scale(numbers: Sequence[BoardNumber]) -> Callable[[BoardNumber], Bar | None]:
    """Return how a number is drawn as a bar on the common scale of all of them."""
    ends = [x for b in numbers for x in (b.low, b.high, b.value) if x is not None]
    least, greatest = (min(ends), max(ends)) if ends else (0.0, 1.0)
    width = greatest - least or 1.0

    def drawn(number: BoardNumber) -> Bar | None:
        if number.value is None or number.low is None or number.high is None:
            return None
        low, high, at = (round(100 * (x - least) / width, 1) for x in (number.low, number.high, number.value))
        return Bar(low, high, at)

    return drawn
