"""The README's first screen is what the commands really print."""

from __future__ import annotations

import contextlib
import re
import shlex
from pathlib import Path

import pytest
from tests.docs.conftest import SetUp
from tests.docs.pages import joined

from hitmiss.cli.main import run

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")


BLOCK = re.search(
    r"<!-- demo: clips -->\n```console\n\$ hitmiss (demo --files)\n\$ hitmiss ((?:[^\n]*\\\n)*[^\n]*)\n(.*?)\n\$ ",
    README,
    re.S,
)


def test_the_table_is_real(set_up: SetUp, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert BLOCK is not None
    set_up(BLOCK[1], tmp_path)
    capsys.readouterr()
    with contextlib.chdir(tmp_path):
        assert run(shlex.split(joined(BLOCK[2]))) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in BLOCK[3].splitlines() if line.strip() != "…" and line not in printed] == []


def test_the_rows_are_those_of_the_file(set_up: SetUp, tmp_path: Path) -> None:
    rows = re.search(r"```text\n(file,label.*?)```", README, re.S)
    assert rows is not None
    set_up("demo --files", tmp_path)
    assert (tmp_path / "clips.csv").read_text(encoding="utf-8").startswith(rows[1])


def test_it_is_one_screen_and_a_half() -> None:
    assert len(README.splitlines()) <= 110
