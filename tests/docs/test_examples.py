"""Every example runs from beginning to end."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run_example(name: str, folder: Path) -> None:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(folder)


def test_asvspoof5(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_example("asvspoof5", tmp_path)
    text = capsys.readouterr().out
    for part in ("min_dcf = ", "eer [codec=C04] = ", "unit=speaker", "NONE", "MinDcf("):
        assert part in text


def test_triage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_example("triage", tmp_path)
    text = capsys.readouterr().out
    for part in (
        "no-tools mean fake_slip_rate",
        "tools flip_rate",
        "guarantee 0.95 (binomial)",
        "real_false_flag_rate = 0.",
    ):
        assert part in text
    assert (tmp_path / "metrics.json").is_file()


def test_review(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_example("review", tmp_path)
    text = capsys.readouterr().out
    for part in ("the system alone", "76 verdicts of 2 reviewers"):
        assert part in text
    page = (EXAMPLES.parent / "docs" / "review.md").read_text(encoding="utf-8")
    from hitmiss.cli.main import run

    assert run(["review", str(tmp_path / "results.jsonl"), "--status"]) == 0
    shown = capsys.readouterr().out
    assert all(line in page for line in shown.splitlines()), "the page shows what the command prints"
    assert run(["triage", str(tmp_path / "results.jsonl"), "--human", str(tmp_path / "verdicts.jsonl")]) == 0
    shown = capsys.readouterr().out
    table = shown[shown.index("the system alone") : shown.index("76 verdicts of 2 reviewers")]
    assert all(line in page for line in table.splitlines()), "here too"
