"""`hitmiss report`, `hitmiss score --report` and `hitmiss export` from files to exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hitmiss.cli.main import run
from hitmiss.reports.pictures import load
from hitmiss.simulate.asvspoof5 import write


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("simulated") / "asvspoof5", share=0.004)


def scored(data: Path, system: str = "a") -> list[str]:
    key = str(data / "ASVspoof5.eval.track_1.tsv")
    return [str(data / f"scores_{system}.tsv"), "--key", key, "-p", "asvspoof5", "--score-kind", "llr"]


@pytest.fixture(scope="module")
def results(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    for system in "ab":
        words = [
            *scored(data, system),
            "--by",
            "codec",
            "--matrix",
            "attack,codec",
            "-o",
            str(folder / f"{system}.json"),
        ]
        assert run(["score", *words]) == 0
    return folder


def test_scores_become_a_report(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "r.html"
    files = [str(data / f"scores_{s}.tsv") for s in "ab"]
    words = [
        *files,
        *scored(data)[1:],
        "--bootstrap",
        "20",
        "--by",
        "codec",
        "-o",
        str(out),
        "--name",
        "first",
        "--name",
        "second",
    ]
    assert run(["report", *words, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said == {"schema": 1, "report": str(out), "bytes": out.stat().st_size, "runs": ["first", "second"]}
    page = out.read_text()
    assert "first does better than second" in page and "Minimum detection cost" in page and "By codec" in page


def test_a_folder_of_results_becomes_a_report_with_curves(results: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    assert run(["report", str(results), "-o", str(out)]) == 0
    page = out.read_text()
    assert '"e1-det-0-t"' in page and "attack × codec" in page and "nothing was tested" in page
    assert len(load(results / "a.json")[1][0].displays) == 7


def test_score_writes_a_report_beside_its_tables(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*scored(data), "--by", "codec", "--report", str(tmp_path / "r.html")]
    assert run(["score", *words]) == 0
    seen = capsys.readouterr()
    assert "by codec" in seen.out and "wrote" in seen.err
    assert "Worst errors" in (tmp_path / "r.html").read_text()


def test_calibrated_and_repeated_runs_are_shown_apart(data: Path, tmp_path: Path) -> None:
    dev = ["--calibrate-on", str(data / "dev_scores_a.tsv"), "--calibrate-key", str(data / "ASVspoof5.dev.track_1.tsv")]
    assert (
        run(["score", *scored(data), *dev, "-o", str(tmp_path / "c.json"), "--report", str(tmp_path / "c.html")]) == 0
    )
    assert [p.run["calibration"] for p in load(tmp_path / "c.json")[1]] == ["before", "after affine"]
    assert "after affine" in (tmp_path / "c.html").read_text()
    seeds = [str(data / "scores_a.tsv"), str(data / "scores_b.tsv"), *scored(data)[1:], "--seeds"]
    assert run(["score", *seeds, "--report", str(tmp_path / "s.html")]) == 0
    assert "Repeated runs" in (tmp_path / "s.html").read_text()


def test_static_and_private_reports(data: Path, tmp_path: Path) -> None:
    words = ["report", *scored(data), "--bootstrap", "0", "--by", "codec", "-o", str(tmp_path / "r.html")]
    assert run([*words, "--static", "--no-samples"]) == 0
    page = (tmp_path / "r.html").read_text()
    assert "<script" not in page and "E_00" not in page and "No samples" in page


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (["report", "nothing.tsv", "-p", "asvspoof5"], 3, "nothing.tsv"),
        (["report", "{empty}"], 3, "holds no results"),
        (["report", "{json}"], 3, "holds no results"),
        (["report", "{results}", "--name", "only-one"], 2, "1 name given for 2 runs"),
        (["report", "{a}", "-o", "no/such/folder/r.html"], 2, "there is no folder"),
        (["export", "{a}"], 2, "give a format"),
        (["export", "{a}", "--to", "latecs"], 2, "did you mean 'latex'"),
        (["export", "{a}", "--to", "xlsx"], 2, "cannot be printed"),
        (["export", "{empty}/none.json", "--to", "csv"], 3, "is not there"),
        (["export"], 2, "the results to export"),
    ],
)
def test_wrong_questions_are_told_apart(
    words: list[str], code: int, hint: str, results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.json").write_text("{}")
    (tmp_path / "empty").mkdir()
    places = {"empty": tmp_path / "empty", "json": tmp_path / "x.json", "results": results, "a": results / "a.json"}
    assert run([word.format(**places) for word in words]) == code
    error = capsys.readouterr().err
    assert hint in error and "Traceback" not in error


def test_exports_from_files(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = str(results / "a.json")
    assert run(["export", a, "--to", "markdown", "--table", "codec", "-m", "eer"]) == 0
    assert "| C01 |" in capsys.readouterr().out
    for ending in ("tex", "md", "csv", "xlsx", "json", "yaml"):
        assert run(["export", a, "-o", str(tmp_path / f"t.{ending}")]) == 0
        assert (tmp_path / f"t.{ending}").stat().st_size > 500
    assert run(["export", a, "--json"]) == 0
    capsys.readouterr()
    assert run(["export", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "hitmiss results"
