"""The page about attacks on ECGs and its example: commands print what the page shows, the example runs."""

from __future__ import annotations

import contextlib
import importlib.util
import re
import shlex
from pathlib import Path

import pytest
from tests.docs.conftest import SetUp
from tests.docs.pages import joined

from hitmiss.cli.main import run

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "ecg_attacks.md").read_text(encoding="utf-8")


def shown() -> list[tuple[list[str], list[str]]]:
    """Each command of the page that can run here, and the lines that it shows."""
    found = []
    for block in re.finditer(r"test_ecg_page[^\n]*-->\n```console\n(.*?)```", PAGE, re.S):
        for part in re.split(r"^\$ ", joined(block[1]), flags=re.M)[1:]:
            command, _, output = part.partition("\n")
            found.append((shlex.split(command, comments=True), output.splitlines()))
    return found


def test_the_commands_print_what_the_page_shows(
    set_up: SetUp, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "`hitmiss demo --files --only ecg`" in PAGE
    set_up("demo --files --only ecg", tmp_path)
    capsys.readouterr()
    with contextlib.chdir(tmp_path):
        assert len(shown()) == 5
        for words, lines in shown():
            assert run(words[1:]) == 0
            printed = capsys.readouterr().out
            said = {" ".join(line.split()) for line in printed.splitlines()}
            for line in lines:
                if line.strip() not in ("", "…") and not line.startswith("ecg-attacks|"):
                    assert " ".join(line.split()) in said, line


@pytest.mark.nightly
def test_the_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("example_ecg", ROOT / "examples" / "ecg_attacks.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(tmp_path)
    text = capsys.readouterr().out
    for part in ("changed: Rate(", "MI forced: (Rate(", "changed [attack=noise ~ random_search, strength=1] = "):
        assert part in text
    assert (tmp_path / "asr.png").stat().st_size > 5000
