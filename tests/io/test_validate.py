"""`hitmiss validate` lists every fault and ends with the code of the data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hitmiss.cli.main import run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.tsv").write_text("filename\tcm-score\na\t1.5\nb\tnan\nb\x1b[31m\t0.5\n")
    (tmp_path / "k.tsv").write_text("filename\tcm-label\na\tbonafide\nb\tspoof\nc\tspoof\n")
    (tmp_path / "good.csv").write_text("utt,truth,llr\na,bonafide,1\nb,spoof,2\n")
    return tmp_path


def test_clean_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert folder.is_dir()
    assert run(["validate", "good.csv", "--column", "label=truth"]) == 0
    out = capsys.readouterr().out
    assert "good.csv: 2 rows, table, utf-8" in out
    assert "2 trials: 1 bonafide, 1 spoof; positive = bonafide" in out
    assert out.endswith("no faults\n")


def test_every_fault_is_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert folder.is_dir()
    assert run(["validate", "s.tsv", "--key", "k.tsv"]) == 3
    out = capsys.readouterr().out
    assert "nan-score: s.tsv, row 3, column cm-score: the score is NaN, id 'b' (found 'nan')" in out
    assert "only-in-key: k.tsv, row 4: the id has no score, id 'c'" in out
    assert "only-in-scores: s.tsv, row 4" in out
    assert "\x1b" not in out
    assert out.endswith("3 faults\n")


def test_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert folder.is_dir()
    assert run(["validate", "s.tsv", "--key", "k.tsv", "--json"]) == 3
    report = json.loads(capsys.readouterr().out)
    assert (report["clean"], len(report["faults"]), report["schema"]) == (False, 3, 1)
    assert report["faults"][0] == {
        "kind": "nan-score",
        "message": "the score is NaN, id 'b'",
        "file": "s.tsv",
        "row": 3,
        "column": "cm-score",
        "value": "nan",
    }
    assert [file["layout"] for file in report["summary"]["files"]] == ["cm-scores", "cm-key"]
    assert run(["validate", "good.csv", "--column", "label=truth", "--positive", "spoof", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["positive"] == "spoof"


def test_a_file_that_is_not_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert folder.is_dir()
    assert run(["validate", "none.tsv"]) == 3
    assert "there is no file none.tsv" in capsys.readouterr().err
