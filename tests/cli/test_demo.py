"""The demo: its data is there before its commands, and its commands are such as a user could type."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from hitmiss.cli.demo import SMALL, STEPS, Step
from hitmiss.cli.main import VERBS, run

REPEATABLE = ("score", "drift", "toxicity", "triage")
"""Verbs that write the same again when they are run twice."""


@pytest.mark.parametrize("step", STEPS, ids=lambda step: str(step.name))
def test_each_command_names_files_that_are_there(step: Step, tmp_path: Path) -> None:
    data = step.simulate(tmp_path / step.name, SMALL)
    assert "SIMULATED" in (data / "README.txt").read_text()
    for words in step.commands(data):
        assert words[0] in VERBS
        paths = [Path(re.split(r"[:\[]", word)[0]) for word in words if word.startswith(str(tmp_path))]
        made = (
            "run",
            "tools",
            "baseline_metrics.csv",
            "results.json",
            "answers.jsonl",
            "metrics.json",
        )  # there once the command has run
        assert paths and all(path.exists() for path in paths if path.name not in made)


def test_the_demo_shows_what_it_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = [word for step in STEPS for word in ("--only", step.name)]
    assert run(["demo", "--small", *jobs, "--output", str(tmp_path)]) == 0
    seen = capsys.readouterr()
    assert "Triage" in (tmp_path / "report_small.html").read_text() and f"The report is {tmp_path}" in seen.err
    typed = [line for line in seen.err.splitlines() if line.startswith("$ hitmiss ")]
    expected = [words for step in STEPS if not step.lacks for words in step.commands(tmp_path / f"{step.name}_small")]
    assert [shlex.split(line)[2] for line in typed] == [*(words[0] for words in expected), "report"]
    # All commands are printed and run by the same lines of code: one of each verb is enough, the last and quickest.
    for line in {verb: line for line in typed for verb in REPEATABLE if line.startswith(f"$ hitmiss {verb} ")}.values():
        assert run(shlex.split(line)[2:]) == 0
        again = capsys.readouterr()
        assert again.out != "" and again.out in seen.out


def test_the_small_demo_is_read_at_a_glance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--small", "--output", str(tmp_path)]) == 0
    seen = capsys.readouterr()
    assert len((seen.out + seen.err).splitlines()) <= 60
    assert all(f"--only {name}" not in seen.err for name in ("asvspoof5", "toxicity"))
    assert "voices, triage, llm, ecg" in seen.err and (tmp_path / "report_small.html").exists()


def test_a_job_that_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--only", "ecgs", "--output", str(tmp_path)]) == 2
    assert "did you mean 'ecg'?" in capsys.readouterr().err
