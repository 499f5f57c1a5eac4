"""The example of a comparison runs from beginning to end, and is short."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "compare.py"


def test_the_example(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["compare.py", str(tmp_path)])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    text = capsys.readouterr().out
    assert "B better; this many trials would show a difference of" in text
    assert text.count("pass eer [codec=") == 12 and "FAIL" not in text
    assert len(EXAMPLE.read_text().splitlines()) <= 40
