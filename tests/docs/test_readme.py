"""The README's first screen is what the commands really print."""

from __future__ import annotations

import contextlib
import re
import shlex
from pathlib import Path

import pytest
from tests.docs.conftest import SetUp

from hitmiss.cli.main import run

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")


def test_the_table_is_real(set_up: SetUp, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    block = re.search(
        r"<!-- demo: asvspoof5 -->\n```console\n\$ hitmiss (demo --small)[^\n]*\n\$ hitmiss (.*?)\n(.*?)```",
        README,
        re.S,
    )
    assert block is not None
    set_up(block[1], tmp_path)
    capsys.readouterr()
    with contextlib.chdir(tmp_path):
        assert run(shlex.split(block[2])) == 0
    printed = capsys.readouterr().out.splitlines()
    for line in block[3].splitlines():
        assert line.strip() == "…" or line in printed or any(p.startswith(line.removesuffix("…")) for p in printed), (
            line
        )
