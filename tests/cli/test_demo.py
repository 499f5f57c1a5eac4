"""The demo: its data is there before its commands, and its commands are such as a user could type."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from hitmiss.cli.demo import SMALL, STEPS, Step
from hitmiss.cli.main import VERBS, run


@pytest.mark.parametrize("step", STEPS, ids=lambda step: str(step.name))
def test_each_command_names_files_that_are_there(step: Step, tmp_path: Path) -> None:
    data = step.simulate(tmp_path / step.name, SMALL)
    assert "SIMULATED" in (data / "README.txt").read_text()
    for words in step.commands(data):
        assert words[0] in VERBS
        files = [word for word in words if word.startswith(str(tmp_path))]
        assert len(files) >= 2 and all(Path(file).is_file() for file in files)


def test_the_demo_shows_what_it_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("hitmiss.cli.score", reason="the verb score is not there yet", exc_type=ModuleNotFoundError)
    assert run(["demo", "--small", "--output", str(tmp_path)]) == 0
    seen = capsys.readouterr()
    (typed,) = [line for line in seen.err.splitlines() if line.startswith("$ hitmiss score")]
    assert run(shlex.split(typed)[2:]) == 0
    again = capsys.readouterr()
    assert again.out == seen.out != ""
