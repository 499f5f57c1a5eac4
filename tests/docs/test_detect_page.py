"""The page about detect: its commands print what it shows, its Python runs, and its settings are those of the code."""

from __future__ import annotations

import contextlib
import re
import shlex
from pathlib import Path

import pytest

from hitmiss.cli.main import run
from hitmiss.core.run_spec import RunSpec
from hitmiss.detection import batches, score_checks, worker
from hitmiss.detection.on_device import CPU_SECONDS, GPU_SECONDS
from hitmiss.runs import segments, store

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "detect.md").read_text(encoding="utf-8")


def fenced(kind: str) -> str:
    (found,) = re.findall(rf"```{kind}\n(.*?)```", PAGE, re.S)
    return str(found)


def test_the_commands_print_what_the_page_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.split(r"^\$ hitmiss ", fenced("console"), flags=re.M)[1:]
    assert len(blocks) == 2
    with contextlib.chdir(tmp_path):
        assert run(["demo", "--files", "--only", "text"]) == 0 and "`hitmiss demo --files --only text`" in PAGE
        capsys.readouterr()
        for block in blocks:
            command, _, shown = block.partition("\n")
            assert run(shlex.split(command)) == 0, capsys.readouterr().err
            printed = "".join(capsys.readouterr())
            steady = [line for line in shown.strip().splitlines() if "/s, " not in line]
            assert [line for line in steady if line not in printed.splitlines()] == []


def test_the_block_of_python_runs(tmp_path: Path) -> None:
    names: dict[str, object] = {"__name__": "block"}
    with contextlib.chdir(tmp_path):
        exec(fenced("python"), names)
    assert len(names["trials"]) == 4  # type: ignore[arg-type]


def test_the_page_states_the_settings_of_the_code() -> None:
    assert f"{CPU_SECONDS:g} on a processor, {GPU_SECONDS:g} on CUDA" in PAGE
    assert worker.CPU_SECONDS == CPU_SECONDS and batches.POOL > 1
    assert f"above {score_checks.TOLERANCE:g} is reported" in PAGE
    assert f"each takes {store.PART} items" in PAGE and f"the first {RunSpec().patience} items" in PAGE
    assert f"every {segments.SYNC_SECONDS} s or {segments.SYNC_LINES} lines" in PAGE
