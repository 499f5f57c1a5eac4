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


@pytest.mark.parametrize("full", [True, False])
def test_the_worst_row_names_its_language_in_every_table(board: Board, full: bool) -> None:
    for table in toxicity_tables.tables(board, full):
        *rows, worst = table.rows
        groups = [row for row in rows if row[0].text in ("en", "es", "it", "tr")]
        assert worst[0].text == "worst" and len(groups) == 4
        named = 0
        for at, (title, cell) in enumerate(zip(table.header, worst, strict=True)):
            if cell.text.startswith("0."):  # the same number stands in the row of the language that it names
                end = max if title.split()[0] in ("fpr", "fnr") else min
                least = end(float(row[at].text.rstrip("*")) for row in groups)
                assert cell.below in {row[0].text for row in groups if float(row[at].text.rstrip("*")) == least}
                named += 1
        assert named


def test_brackets_are_explained(board: Board) -> None:
    said = next(line for line in toxicity_tables.remarks(board) if line.startswith("in brackets"))
    assert "90% intervals" in said
    assert (
        "DeLong (roc_auc)" in said
        and "bootstrap (f1, macro)" in said
        and "Wilson (precision, recall, accuracy)" in said
    )
