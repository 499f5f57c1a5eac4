"""The demo: its data is there before its commands, and its commands are such as a user could type."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from hitmiss.cli.demo import run_steps
from hitmiss.cli.demo_steps import STEPS, Step
from hitmiss.cli.main import VERBS, run

REPEATABLE = ("score", "drift", "toxicity", "triage")
"""Verbs that write the same again when they are run twice."""


@dataclass(frozen=True)
class Shown:
    """A demo that was run: its folder, and what it printed."""

    folder: Path
    out: str
    err: str


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """Every job of the demo, on little data."""
    folder, out, err = tmp_path_factory.mktemp("demo"), io.StringIO(), io.StringIO()
    jobs = [word for step in STEPS for word in ("--only", step.name)]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        assert run(["demo", "--small", *jobs, "--output", str(folder)]) == 0, err.getvalue()
    return Shown(folder, out.getvalue(), err.getvalue())


@pytest.mark.extras  # with the packages that some jobs need, so that all of them run
@pytest.mark.parametrize("step", STEPS, ids=lambda step: str(step.name))
def test_each_command_names_files_that_are_there(step: Step, whole: Shown) -> None:
    if step.lacks:
        pytest.skip(f"needs {', '.join(step.lacks)}")
    data = whole.folder / f"{step.name}_small"
    assert "SIMULATED" in (data / "README.txt").read_text()
    for words in step.commands(data):
        assert words[0] in VERBS
        paths = [Path(re.split(r"[:\[]", word)[0]) for word in words if word.startswith(str(whole.folder))]
        tools = data / "run" / "tools"  # a cache: there if the model was asked over its server
        assert paths and all(path.exists() for path in paths if path != tools)


@pytest.mark.extras
def test_the_demo_shows_what_it_runs(whole: Shown, capsys: pytest.CaptureFixture[str]) -> None:
    report = whole.folder / "report_small.html"
    assert "Triage" in report.read_text() and f"The report is {report}" in whole.err
    typed = [line for line in re.sub(r" \\\n\s*", " ", whole.err).splitlines() if line.startswith("$ hitmiss ")]
    expected = [
        words for step in STEPS if not step.lacks for words in step.commands(whole.folder / f"{step.name}_small")
    ]
    assert [shlex.split(line)[2] for line in typed] == [*(words[0] for words in expected), "report"]
    # All commands are printed and run by the same lines of code: one of each verb is enough, the last and quickest.
    for line in {verb: line for line in typed for verb in REPEATABLE if line.startswith(f"$ hitmiss {verb} ")}.values():
        assert run(shlex.split(line)[2:]) == 0
        again = capsys.readouterr()
        assert again.out != "" and again.out in whole.out


def test_the_small_demo_is_read_at_a_glance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["demo", "--small"]) == 0
    seen = capsys.readouterr()
    assert len((seen.out + seen.err).splitlines()) <= 70
    assert all(f"--only {name}" not in seen.err for name in ("asvspoof5", "toxicity"))
    assert "voices, triage, llm, ecg" in seen.err and Path("demo/report_small.html").exists()


def test_the_whole_demo_is_read_at_a_glance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As at full size: one job after the other with its conclusion; what is longer lies in files.

    These jobs are three of seven and six commands of sixteen: in proportion, the whole has at most 150 lines.
    """
    jobs = [step for step in STEPS if step.name in ("asvspoof5", "toxicity", "triage")]
    monkeypatch.chdir(tmp_path)
    run_steps(jobs, Path("demo"), small=True, is_chosen=True, brief=True)
    seen = capsys.readouterr()
    lines = (seen.out + seen.err).splitlines()
    assert len(lines) <= 62
    assert max(map(len, lines)) <= 80, "it is read in a terminal of 80 columns"
    kept = sorted(Path("demo").glob("*_small/*.txt"))
    whole = [path.read_text(encoding="utf-8") for path in kept if path.name != "README.txt"]
    assert len(whole) == 5 and all(f"lines in {path})" in seen.err for path in kept if path.name != "README.txt")
    for text in whole:
        headline = text.partition("\nIs it good?")[0].rstrip().rpartition("\n\n")[2].splitlines()[0]
        assert headline in " ".join(seen.out.split())
    assert f"The report is {Path('demo/report_small.html')}" in seen.err


def test_a_job_that_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--only", "ecgs", "--output", str(tmp_path)]) == 2
    assert "did you mean 'ecg'?" in capsys.readouterr().err
