"""`hitmiss triage`: what it prints, writes and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hitmiss.cli.main import run
from hitmiss.simulate.triage import write

Capture = pytest.CaptureFixture[str]
FEW = ["--bootstrap", "50"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("triage"), share=0.3)


def said(capsys: Capture, *words: str, code: int = 0) -> tuple[str, str]:
    assert run(["triage", *words]) == code
    seen = capsys.readouterr()
    return seen.out, seen.err


def test_the_tables_of_repeated_runs(data: Path, capsys: Capture) -> None:
    out, _ = said(capsys, str(data / "results.jsonl"), "--by", "source", "--reliability", *FEW)
    for part in (
        "200 items", "× 6 runs = 1,200 trials", "agent-1|no-tools      sd", "fake_slip_rate ↓", "flip_rate ↓",
        "… by chance, at most", "95th percentile", "reliability", "by source (model agent-1, tools tools)", "repeats:trial",
        "ece: 10 equal bins, [lo, hi), the last closed",
    ):  # fmt: skip
        assert part in out, part


def test_json_holds_every_part(data: Path, capsys: Capture) -> None:
    out, _ = said(capsys, str(data / "results.jsonl"), "--json", *FEW)
    found = json.loads(out)
    assert {"schema", "estimates", "confusion", "flips", "majority", "latency", "provenance"} <= set(found)
    assert found["provenance"]["models"]["vision"] == "vision-1"
    assert {e["average"] for e in found["estimates"]} == {None, "mean", "sd"}
    assert {e["slice"]["served"] for e in found["latency"]} == {"hit", "miss"}


def test_files_are_written(data: Path, tmp_path: Path, capsys: Capture) -> None:
    metrics, results = tmp_path / "metrics.json", tmp_path / "out.json"
    said(capsys, str(data / "results.jsonl"), "--metrics-output", str(metrics), "-o", str(results), *FEW)
    assert "agent-1|tools" in json.loads(metrics.read_text())
    assert json.loads(results.read_text())["protocol"] == "triage"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("results.jsonl", ["--by", "source"]),
        ("scores.csv", ["--thresholds", "0.2", "0.8"]),
        ("scores.csv", ["--thresholds", "0.0", "1.0", "--undefined", "zero"]),
    ],
)
def test_a_claim_can_be_verified(name: str, words: list[str], data: Path, tmp_path: Path, capsys: Capture) -> None:
    claim = tmp_path / "claim.json"
    said(capsys, str(data / name), *words, "-o", str(claim), *FEW)
    assert run(["verify", str(claim), str(data / name)]) == 0, capsys.readouterr()
    told = json.loads(claim.read_text())
    told["estimates"][0]["value"] += 0.001
    claim.write_text(json.dumps(told))
    assert run(["verify", str(claim), str(data / name)]) == 1


def test_two_thresholds_make_verdicts(data: Path, capsys: Capture) -> None:
    out, _ = said(capsys, str(data / "scores.csv"), "--thresholds", "0.2", "0.8", *FEW)
    assert "thresholds=0.2,0.8 (given)" in out and "left out: there is no confidence" in out


def test_thresholds_with_a_guarantee_are_checked_on_other_rows(data: Path, capsys: Capture) -> None:
    dev = str(data / "dev_scores.csv")
    out, _ = said(capsys, str(data / "scores.csv"), "--choose", "guarantee", "--choose-on", dev, *FEW)
    assert "(guarantee 0.95 (binomial) on dev_scores.csv)" in out
    assert "target 0.05 kept" in out and str(data) not in out.split("\n!")[0]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--choose", "rates"], "empirical rates on"),
        (["--choose", "budget", "--looks", "50/1000"], "review budget 0.05 on"),
        (["--choose", "cost", "--costs", "20", "5", "1"], "least cost on"),
    ],
)
def test_other_ways_to_choose(data: Path, capsys: Capture, words: list[str], part: str) -> None:
    out, _ = said(capsys, str(data / "scores.csv"), *words, "--sweep", *FEW)
    assert part in out and "of the 200 rows" in out and "pairs of thresholds on this data" in out


def test_no_pair_that_meets_the_target_is_said(data: Path, capsys: Capture) -> None:
    _, err = said(capsys, str(data / "scores.csv"), "--choose", "guarantee", "--max-slip", "0.01", code=3)
    assert "no pair of thresholds meets the target: a slip of at most 0.01 needs 366 trials of its class" in err


def test_recalibration_is_fitted_elsewhere(data: Path, tmp_path: Path, capsys: Capture) -> None:
    lines = (data / "results.jsonl").read_text().splitlines(keepends=True)
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    first.write_text("".join(line for line in lines if int(json.loads(line)["id"][-1]) < 5))
    second.write_text("".join(line for line in lines if int(json.loads(line)["id"][-1]) >= 5))
    out, _ = said(capsys, str(second), "--recalibrate-on", str(first), "--recalibration", "isotonic", *FEW)
    assert "recalibration=isotonic(confidence) fitted on" in out and "optimistic" not in out


def test_bins_are_told(data: Path, capsys: Capture) -> None:
    out, _ = said(capsys, str(data / "results.jsonl"), "--bins", "15", "--closed", "right", *FEW)
    assert "ece: 15 equal bins, (lo, hi], the first closed" in out and "ece(bins=15, closed=right)" in out


@pytest.mark.parametrize(
    ("words", "part", "code"),
    [
        ([], "there are scores and no verdicts", 3),
        (["--thresholds", "0.2"], "takes two numbers", 2),
        (["--thresholds", "0.8", "0.2"], "must not exceed", 2),
        (["--choose", "magic"], "unknown value of --choose", 2),
        (["--choose", "cost"], "--costs", 2),
        (["--choose", "budget", "--looks", "many"], "50/1000", 2),
        (["--thresholds", "0.2", "0.8", "--undefined", "one"], "unknown value of --undefined", 2),
    ],
)
def test_senseless_questions_are_refused(data: Path, capsys: Capture, words: list[str], part: str, code: int) -> None:
    out, err = said(capsys, str(data / "scores.csv"), *words, *FEW, code=code)
    assert part in err and out == ""
