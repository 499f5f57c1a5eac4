"""Files of other leaderboards: written in their layouts, and read back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.boards.conftest import Challenge

from hitmiss.boards.board import Board, make_board
from hitmiss.boards.exchange import read_published, write_arena, write_hub
from hitmiss.boards.plan import find_plan
from hitmiss.core.design import Design
from hitmiss.core.errors import DataError, UsageError


@pytest.fixture
def board(challenge: Challenge) -> Board:
    """A board whose data sets are published somewhere."""
    plan = find_plan(challenge.submissions, challenge.keys)
    named = tuple(replace(d, id=f"org/{d.name}", revision="0123456789abcdef") for d in plan.datasets)
    return make_board(replace(plan, datasets=named), Design.of(["eer"], bootstrap=100))


def test_arena_files_hold_what_the_board_shows(board: Board, tmp_path: Path) -> None:
    """One file per system and data set, in per cent, with the counts; nothing but the fields of the layout."""
    from ruamel.yaml import YAML

    written = write_arena(board, tmp_path, arena_url="https://arena.example", scores_url="https://s.example/{slug}")
    assert len(written) == 3 * 2
    one = tmp_path / "good" / ".eval_results" / "org" / "wild" / "result.yaml"
    assert one in written
    data = YAML(typ="safe").load(one.read_text())
    assert set(data) == {"schema_version", "system", "dataset", "scores", "arena", "artifact"}
    assert data["dataset"] == {"id": "org/wild", "revision": "0123456789abcdef", "split": "test"}
    (found,) = read_published(one)
    cell = board["good"].cells["wild"]
    assert found.value == pytest.approx(cell.value, abs=1e-8)
    assert (found.n_trials, found.n_skipped, found.metric, found.system) == (600, 0, "eer", "good")


def test_hub_files_are_read_back(board: Board, tmp_path: Path) -> None:
    """Hugging Face's files hold the value exactly, and the interval in the notes."""
    written = write_hub(board, tmp_path, source_url="https://board.example", date="2026-11-18")
    assert len(written) == 3 * 2
    (found,) = read_published(tmp_path / "fair" / ".eval_results" / "org-studio.yaml")
    cell = board["fair"].cells["studio"]
    assert (found.value, found.metric, found.dataset) == (cell.value, "eer", "org/studio")
    assert f"{cell.low:.6g}" in found.notes


@pytest.mark.parametrize(
    "text",
    ["", "hello", "a: [", "schema_version: 1\n", "- value: 3\n", "schema_version: 1\nsystem: {}\nmore: 1\n", "- 7\n"],
)
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    """A file of neither layout is one sentence."""
    file = tmp_path / "result.yaml"
    file.write_text(text)
    with pytest.raises(DataError) as error:
        read_published(file)
    assert error.value.code == ("not-a-file" if text == "a: [" else "not-published") and "result.yaml" in str(
        error.value
    )


def test_data_sets_must_say_where_they_are(challenge: Challenge, tmp_path: Path) -> None:
    """Without an id nothing is written, and the message says how to give one."""
    plain = make_board(find_plan(challenge.submissions, challenge.keys), Design.of(["eer"], bootstrap=0))
    with pytest.raises(UsageError, match=r"board\.toml"):
        write_hub(plain, tmp_path)
