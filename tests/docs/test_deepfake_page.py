"""The page about deepfake audio: its commands and its block of Python are run, and the example with them."""

from __future__ import annotations

import contextlib
import importlib.util
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from tests.docs.pages import joined

from hitmiss.cli.main import run
from hitmiss.core.registry import forget

pytest.importorskip("av", reason="the extra audio is not installed")
ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "deepfake_audio.md").read_text(encoding="utf-8")


def fenced(kind: str) -> str:
    (found,) = re.findall(rf"```{kind}\n(.*?)```", PAGE, re.S)
    return str(found)


def test_the_commands_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.chdir(tmp_path):
        assert run(["demo", "--files", "--only", "voices"]) == 0 and "`hitmiss demo --files --only voices`" in PAGE
        for line in joined(fenced("console")).splitlines():
            assert run(shlex.split(line)[2:]) == 0, f"{line}\n{capsys.readouterr().err}"


def test_the_block_of_python_runs() -> None:
    names: dict[str, object] = {"__name__": "block"}
    try:
        exec(fenced("python"), names)
    finally:
        forget("hum", "attack")
    assert np.abs(np.asarray(names["hummed"])).max() == pytest.approx(0.05, rel=1e-3)


@pytest.mark.nightly
def test_the_example_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("example_deepfake", ROOT / "examples" / "deepfake_audio.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(tmp_path, codecs="gsm,ulaw")
    shown = capsys.readouterr().out
    for part in ("eer [codec=X02]", "eer [attack=V04]", "drift at the threshold", "frr_drift [codec × codec_q=X01"):
        assert part in shown
