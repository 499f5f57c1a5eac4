"""Items × runs × trials: what is missing is counted and said, and means are over items."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pytest

import hitmiss as hm
from hitmiss.cli.main import run
from hitmiss.core.completeness import in_rounds
from hitmiss.core.header import Header
from hitmiss.core.trials import Trials

Capture = pytest.CaptureFixture[str]
OTHER = {"fake": "real", "real": "fake"}
Row = dict[str, object]


def written(path: Path, rows: Iterable[Mapping[str, object]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def answers(model: str, trial: int, wrong: Iterable[int], items: Iterable[int] = range(40)) -> list[Row]:
    """One trial of a model: fake and real in turn, all right except for some."""
    rows: list[Row] = []
    for k in items:
        label = "fake" if k % 2 else "real"
        said = OTHER[label] if k in set(wrong) else label
        rows.append({"id": f"i{k:02d}", "label": label, "prediction": said, "confidence": 0.8, "model": model,
                     "trial": trial, "source": "ab"[k % 4 // 2]})  # fmt: skip
    return rows


def incomplete(model: str = "m") -> list[Row]:
    """Trials 0 and 1 whole and 90 % right, trial 2 with one wrong row."""
    return [*answers(model, 0, range(4)), *answers(model, 1, range(4, 8)), *answers(model, 2, [10], [10])]


def over_items(rows: list[Row]) -> float:
    """Each item's own mean first, then the mean over items."""
    own: dict[object, list[bool]] = {}
    for row in rows:
        own.setdefault(row["id"], []).append(row["prediction"] == row["label"])
    return float(np.mean([np.mean(right) for right in own.values()]))


def told(capsys: Capture, *words: str, code: int = 0) -> str:
    assert run([*words]) == code, capsys.readouterr().err
    return capsys.readouterr().out


def test_the_mean_is_over_items_and_the_matrix_is_said(tmp_path: Path, capsys: Capture) -> None:
    rows = incomplete()
    path, metrics = written(tmp_path / "r.jsonl", rows), tmp_path / "metrics.json"
    out = told(capsys, "triage", path, "--bootstrap", "50", "--by", "source", "--metrics-output", str(metrics))
    assert "incomplete: 81 of 120 trials" in out.splitlines()[1]
    assert "✗ completeness: Trials are missing: 81 of 120 are there." in out
    assert "✓ completeness" not in out and "|complete:81/120|" in out
    assert f"accuracy ↑       {over_items(rows):.4f}" in out
    mean = json.loads(metrics.read_text())["m|-"]["summary"]["mean"]
    assert mean["accuracy"] == pytest.approx(over_items(rows), abs=1e-12)
    found = json.loads(told(capsys, "triage", path, "--bootstrap", "50", "--by", "source", "--json"))
    by = {e["slice"]["source"]: e for e in found["estimates"]
          if e["metric"] == "accuracy" and e["slice"] and e["average"] is None}  # fmt: skip
    for source, e in by.items():
        own = [row for row in rows if row["source"] == source]
        assert e["value"] == pytest.approx(over_items(own), abs=1e-12) and e["n"] == len(own)


def test_the_deviation_over_trials_leaves_out_those_that_lack_items(tmp_path: Path, capsys: Capture) -> None:
    rows = [*answers("m", 0, range(4)), *answers("m", 1, range(8)), *answers("m", 2, [10], [10])]
    found = json.loads(told(capsys, "triage", written(tmp_path / "r.jsonl", rows), "--bootstrap", "0", "--json"))
    (sd,) = [e for e in found["estimates"] if e["metric"] == "accuracy" and e["average"] == "sd"]
    assert sd["value"] == pytest.approx(np.std([0.9, 0.8], ddof=1)) and "1 that lack items" in sd["note"]


def test_a_whole_matrix_is_complete_whatever_the_numbers_of_trials(tmp_path: Path, capsys: Capture) -> None:
    rows = [*answers("a", 0, [1]), *answers("a", 1, [2]), *answers("a", 2, [3]), *answers("b", 0, [1, 2])]
    path = written(tmp_path / "r.jsonl", rows)
    out = told(capsys, "triage", path, "--bootstrap", "50")
    assert "✓ completeness" in out and "incomplete" not in out and "40 items (20 fake, 20 real) × 4 runs = 160" in out
    compared = json.loads(
        told(capsys, "compare", path, "-p", "triage", "-m", "accuracy", "--bootstrap", "50", "--json")
    )
    (row,) = [d for d in compared["differences"] if not d["slice"]]
    own = [over_items([r for r in rows if r["model"] == model]) for model in "ab"]
    assert [row["a"], row["b"]] == pytest.approx(own, abs=1e-12)


@pytest.mark.parametrize("models", [2, 9])
def test_runs_are_compared_by_item_means(tmp_path: Path, capsys: Capture, models: int) -> None:
    rows: list[Row] = []
    for k in range(models):
        rows += answers(f"m{k}", 0, range(k)) + answers(f"m{k}", 1, range(3), range(30)) + answers(f"m{k}", 2, [5], [5])
    path = written(tmp_path / "r.jsonl", rows)
    reading = ["--layout", "triage", "--positive", "fake"]
    out = told(capsys, "compare", path, "-m", "accuracy", "--bootstrap", "50", *reading, "--json")
    made = json.loads(out)
    expected = {f"m{k}": over_items([r for r in rows if r["model"] == f"m{k}"]) for k in range(models)}
    if models == 2:
        (row,) = made["differences"]
        found = {"m0": row["a"], "m1": row["b"]}
        assert row["n_pairs"] == 71, "each pair counts once"
    else:
        found = {s["run"]: s["value"] for s in made["standings"] if s["metric"] == "accuracy"}
    assert found == pytest.approx(expected, abs=1e-12)
    assert "|complete:71/120|" in made["signature"]
    assert any("incomplete: 71 of 120" in text for text in made["warnings"])
    text = told(capsys, "compare", path, "-m", "accuracy", "--bootstrap", "50", *reading)
    assert "✗ completeness: Trials are missing: 71 of 120 are there." in text


def test_nine_runs_of_which_one_lacks_items(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "scores.csv"
    lines = [f"i{k},s{s},{'bonafide' if k % 2 else 'spoof'},{k % 2 + (k * s) % 7}" for s in range(9) for k in range(30)]
    path.write_text("\n".join(["id,system,label,score", *lines[:-12]]) + "\n")
    out = told(capsys, "score", str(path), "-m", "eer", "--run-column", "system")
    assert "30 items × 9 runs (system)" in out and "covers 258 of 270 trials" in out
    assert "system s8 has 18 of 30; the first missing: i18, i19, i20" in " ".join(out.split())
    assert "✗ completeness: Trials are missing: 258 of 270 are there." in out


def test_python_says_what_is_missing() -> None:
    trials = Trials.of([1, 0, 1], [0.9, 0.1, 0.8], item=list("aba"), seed=list("112"), header=Header(runs=("seed",)))
    there = trials.completeness
    assert (there.n, there.of, there.questions, there.first) == (3, 4, 2, ("b",))
    assert [dict(run) for run, _ in there.short] == [{"seed": "2"}] and not there.is_full
    assert "complete:3/4" in hm.measure(trials, ["roc_auc"]).signature


@pytest.mark.parametrize("seed", range(5))
def test_a_completed_run_gives_each_item_the_mean_of_its_own_answers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [(f"i{k}", str(t)) for t in range(5) for k in range(12) if rng.random() < 0.6 or t == k % 5]
    answer = rng.random(len(rows))
    trials = Trials.of(np.ones(len(rows)), answer, item=[i for i, _ in rows], trial=[t for _, t in rows],
                       header=Header(runs=("trial",)))  # fmt: skip
    table, is_exact = in_rounds(trials.frame, ["trial"])
    own = {f"i{k}": np.mean([a for a, (i, _) in zip(answer, rows, strict=True) if i == f"i{k}"]) for k in range(12)}
    assert is_exact and table.group_by("item", "trial").len()["len"].unique().to_list() == [1]
    assert table["score"].mean() == pytest.approx(np.mean([*own.values()]), abs=1e-12)
