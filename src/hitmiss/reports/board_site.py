"""A board as a static site: one page with all systems, and a page for each of them. It holds no label and no id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hitmiss._version import __version__
from hitmiss.boards.board import Board, BoardRow
from hitmiss.boards.system import POOLED
from hitmiss.core import artifacts
from hitmiss.reports.board_figure import MOST_ROWS, board_figure
from hitmiss.reports.board_tables import board_tables, number_cell, ranked_by
from hitmiss.reports.html import asset, environment, policy, raw
from hitmiss.reports.html_table import page_table
from hitmiss.reports.ranking_tables import rank_text
from hitmiss.reports.table import ARROW, Table, TableCell

if TYPE_CHECKING:
    from markupsafe import Markup

INDEX = "index.html"
OF_ALL_SCORES = ("scores-reversed", "scores-constant")
"""Faults whose sentences are about all scores of a submission, and quote none."""
READING = (
    "Each dot is a system's number with its interval. Lines on the right join systems of which no pair was shown to "
    "differ; all pairs were judged at once."
)


def write_site(board: Board, folder: str | Path) -> int:
    """Write the pages of a board into a folder, and the board as `board.json`; return their size in bytes."""
    board = without_ids(board)
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    names = {row.system: f"system-{i:03d}.html" for i, row in enumerate(board.rows, 1)}
    pages = {INDEX: _index(board, names)}
    pages |= {names[row.system]: team_page(board, row) for row in board.rows}
    pages["board.json"] = board.to_json() + "\n"
    for name, text in pages.items():
        artifacts.write(place / name, text)
    return sum(len(text.encode("utf-8")) for text in pages.values())


def without_ids(board: Board) -> Board:
    """Return a board whose reasons for leaving submissions out name no trial: a sentence about a file quotes its rows."""
    told = [
        r
        if r.code in OF_ALL_SCORES
        else replace(r, text=f"{r.code.replace('-', ' ')}; the organisers have the details")
        for r in board.rejected
    ]
    return replace(board, rejected=tuple(told))


def _index(board: Board, names: dict[str, str]) -> str:
    left = len([row for row in board.rows if row.number.value is not None]) - MOST_ROWS
    more = f" {left} more systems are in the table." if left > 0 else ""
    return _page(
        board,
        title=board.title or "Board",
        lead=f"{len(board.rows)} systems, ranked by {ranked_by(board)}; intervals at {board.level:.0%}.",
        tables=board_tables(board),
        links={TableCell(system).text: page for system, page in names.items()},  # by the name as it is shown
        figure=board_figure(board),
        reading=READING + more,
        back="",
        css="report.css",
        js=asset("report.js"),
    )


def team_page(board: Board, row: BoardRow) -> str:
    """Return the page of one system: its numbers by data set and slice, and what was left out."""
    rank = f"rank {row.rank} ({rank_text(row)} at {board.level:.0%})" if row.rank is not None else "not ranked"
    lost = f"; no usable submission for {', '.join(row.missing)}" if row.missing else ""
    return _page(
        board,
        title=row.system,
        lead=f"{rank} by {ranked_by(board)}{lost}.",
        tables=[*_details(board, row), *_refusals(board, row)],
        links={},
        figure="",
        reading="",
        back=INDEX,
        css="board.css",
        js="",
    )


def _page(board: Board, *, css: str, js: str, figure: str, **context: object) -> str:
    style = asset(css)
    units = f"whole units ({', '.join(board.unit)})" if board.unit else "trials"
    made = f"Intervals from {board.draws:,} draws of {units}, seed {board.seed}. Made with hitmiss {__version__}."
    return (
        environment()
        .get_template("board.html")
        .render(
            css=raw(style),
            js=raw(js),
            policy=policy(style, (js,) if js else ()),
            figure=raw(figure),
            table=_table,
            made=made,
            **context,
        )
    )


def _table(table: Table, links: Mapping[str, str]) -> Markup:
    """Return a table as markup; its texts are escaped by the writer."""
    return raw(page_table(table, links=links))


def _details(board: Board, row: BoardRow) -> list[Table]:
    """Return the metrics of a system by data set, and each data set by slice."""
    names = [d.name for d in board.datasets if d.name in row.details]
    metrics = list(dict.fromkeys(metric for name in names for metric in row.details[name]))
    rows = []
    for metric in metrics:
        cells = [row.details[name].get(metric, {}).get("") for name in names]
        whole = row.details.get(POOLED, {}).get(metric, {}).get("")
        rows.append(
            (TableCell(metric), *(number_cell(c) for c in [*cells, *([whole] if POOLED in row.details else [])]))
        )
    header = ("metric", *names, *(["pooled"] if POOLED in row.details else []))
    found = [Table("by data set", header, tuple(rows))] if rows else []
    for name in names:
        slices = list(dict.fromkeys(where for own in row.details[name].values() for where in own if where))
        if slices:
            lines = tuple(
                (TableCell(where), *(number_cell(row.details[name].get(m, {}).get(where)) for m in metrics))
                for where in slices
            )
            heads = [f"{m} {ARROW[board.best]}" if m == board.metric else m for m in metrics]
            found.append(Table(f"{name} by slice", ("slice", *heads), lines))
    return found


def _refusals(board: Board, row: BoardRow) -> list[Table]:
    own = [r for r in board.rejected if r.system == row.system]
    rows = tuple((TableCell(r.dataset), TableCell(r.code), TableCell(r.text.splitlines()[0])) for r in own)
    return [Table("left out", ("data set", "code", "reason"), rows, labels=3)] if rows else []
