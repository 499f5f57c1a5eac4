"""The tables as a terminal shows them: nothing is cut at any width, figures stand under each other, brackets are explained."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from hitmiss.protocols.toxicity import Board, evaluate_run, load_run
from hitmiss.reports import terminal, toxicity_tables


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def board(rebuilt: Path) -> Board:
    return evaluate_run(
        load_run(rebuilt / "predictions", "baseline", ["en", "es", "it", "tr"]), bootstrap=50, level=0.9
    )


def drawn(board: Board, width: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    terminal.write_tables(toxicity_tables.tables(board), out)
    return [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in out.getvalue().splitlines()]


@pytest.mark.parametrize("width", [80, 100, 140])
def test_every_figure_is_there_at_every_width(board: Board, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = drawn(board, width, monkeypatch)
    assert max(map(len, lines)) <= width and not any("…" in line for line in lines)
    shown = " ".join(lines)
    for row in board.rows:
        for estimate in row.figures.values():
            assert f"{estimate.value:.4f}" in shown


def test_a_hundred_columns_hold_a_row_in_a_line(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = drawn(board, 100, monkeypatch)
    rows = [
        line for line in lines if line.split()[:1] in ([name] for name in ("en", "es", "it", "tr", "macro", "worst"))
    ]
    assert len(rows) == 6 * 3
    for start in (0, 6):  # the figures of a column begin at the same place, also where a language stands beside one
        own = rows[start : start + 6]
        starts = [[m.start() for m in re.finditer(r"0\.\d{4}  (?=\[|it)", line)] for line in own]
        assert len({tuple(s) for s in starts}) == 1 and starts[0]


def test_the_worst_row_names_its_language_in_every_table(board: Board) -> None:
    for table in toxicity_tables.tables(board):
        worst = table.rows[-1]
        assert worst[0].text == "worst" and {cell.below for cell in worst if cell.text.startswith("0.")} == {"it"}


def test_brackets_are_explained(board: Board) -> None:
    said = next(line for line in toxicity_tables.remarks(board) if line.startswith("in brackets"))
    assert "90% intervals" in said
    assert (
        "DeLong (roc_auc)" in said
        and "bootstrap (f1, macro)" in said
        and "Wilson (precision, recall, accuracy)" in said
    )
