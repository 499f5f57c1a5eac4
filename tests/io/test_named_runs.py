"""Which rows belong together: runs under their usual names, one label per item, repeated rows, mixed conditions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random

import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

import hitmiss as hm
from hitmiss.cli.main import run
from hitmiss.core.errors import DataError
from hitmiss.core.header import Header
from hitmiss.core.trials import Trials

Capture = pytest.CaptureFixture[str]
NAMES = (
    "model",
    "model_name",
    "Model-ID",
    "system",
    "system_id",
    "detector",
    "run",
    "run_id",
    "experiment",
    "classifier",
)
Row = dict[str, object]


def scored(names: Iterable[str], column: str, n: int = 40, seed: int = 0) -> list[Row]:
    """Scores of several runs on the same items."""
    draw = Random(seed)
    return [
        {
            "id": f"i{k}",
            column: name,
            "label": "bonafide" if k % 2 else "spoof",
            "score": round(k % 2 + draw.gauss(0, 1), 4),
        }
        for name in names
        for k in range(n)
    ]


def table(path: Path, rows: Iterable[Mapping[str, object]]) -> str:
    pl.DataFrame(list(rows)).write_csv(path)
    return str(path)


def lines(path: Path, rows: Iterable[Mapping[str, object]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def told(capsys: Capture, *words: str, code: int = 0) -> str:
    assert run([*words]) == code, capsys.readouterr().err
    seen = capsys.readouterr()
    return seen.out if not code else seen.err


def area(rows: Iterable[Mapping[str, object]]) -> float:
    own = list(rows)
    return float(roc_auc_score([row["label"] == "bonafide" for row in own], [row["score"] for row in own]))


@pytest.mark.parametrize("column", NAMES)
@pytest.mark.parametrize("stream", [[], ["--stream"]], ids=["memory", "stream"])
def test_two_models_in_one_file_are_two_runs(tmp_path: Path, capsys: Capture, column: str, stream: list[str]) -> None:
    rows = scored("ab", column)
    path = table(tmp_path / "s.csv", rows)
    found = json.loads(told(capsys, "score", path, "-m", "roc_auc", "--json", *stream))
    values = {e["run"][column]: e["value"] for e in found["estimates"]}
    assert values == pytest.approx({name: area(r for r in rows if r[column] == name) for name in "ab"}, abs=1e-12)
    assert f"40 trials × 2 runs ({column})" in told(capsys, "score", path, "-m", "roc_auc", *stream)


def test_every_verb_takes_them_for_two_runs(tmp_path: Path, capsys: Capture) -> None:
    rows = scored("ab", "system")
    path, out = table(tmp_path / "s.csv", rows), tmp_path / "r.json"
    expected = [area(r for r in rows if r["system"] == name) for name in "ab"]
    compared = json.loads(told(capsys, "compare", path, "-m", "roc_auc", "--bootstrap", "50", "--json"))
    assert [compared["differences"][0][side] for side in "ab"] == pytest.approx(expected, abs=1e-12)
    gated = told(capsys, "gate", path, "--fail-if", "roc_auc < 0.1")
    assert "roc_auc [system=a]" in gated and "2 checks: 2 passed" in gated
    assert "run system: a 40, b 40" in told(capsys, "validate", path)
    told(capsys, "score", path, "-m", "roc_auc", "-o", str(out))
    assert run(["verify", str(out), path]) == 0
    told(capsys, "report", path, "-m", "roc_auc", "-o", str(tmp_path / "r.html"))
    read = hm.read(path)
    assert len(read) == 80 and len(read.completeness.runs) == 2 and read.completeness.is_full
    one = json.loads(told(capsys, "score", path, "-m", "roc_auc", "--where", "system=a", "--json"))
    assert [e["value"] for e in one["estimates"]] == pytest.approx(expected[:1], abs=1e-12)


def test_nine_runs_and_their_seeds(tmp_path: Path, capsys: Capture) -> None:
    names = [f"m{k}" for k in range(9)]
    rows = [{**row, "seed": seed} for seed in (1, 2) for row in scored(names, "detector", seed=seed)]
    found = json.loads(told(capsys, "score", table(tmp_path / "s.csv", rows), "-m", "roc_auc", "--json"))
    values = {(e["run"]["detector"], e["run"]["seed"]): e["value"] for e in found["estimates"]}
    assert len(values) == 18
    for (name, seed), value in values.items():
        assert value == pytest.approx(area(r for r in rows if (r["detector"], str(r["seed"])) == (name, seed)))


def test_rows_without_ids_are_not_pooled_either(tmp_path: Path, capsys: Capture) -> None:
    rows = [{k: v for k, v in row.items() if k != "id"} for row in scored("ab", "model_name")]
    out = told(capsys, "score", table(tmp_path / "s.csv", rows), "-m", "roc_auc")
    assert "80 trials of 2 runs (model_name)" in out and "incomplete" not in out
    said = [{"model_name": m, "label": x, "prediction": x} for m in "ab" for x in ("fake", "real") * 20]
    out = told(capsys, "triage", lines(tmp_path / "r.jsonl", said), "--bootstrap", "0")
    assert "rows without ids, of 2 runs" in out and "asked once" not in out


def test_a_column_model_that_describes_the_items_is_no_run(tmp_path: Path, capsys: Capture) -> None:
    rows = scored("a", "x")
    made = [{**row, "model": "-" if row["label"] == "bonafide" else "tts-1"} for row in rows]
    found = json.loads(told(capsys, "score", table(tmp_path / "s.csv", made), "-m", "roc_auc", "--json"))
    assert [e["value"] for e in found["estimates"]] == pytest.approx([area(rows)])
    apart = [{**row, "model": "ab"[k // 20]} for k, row in enumerate(rows)]
    out = told(capsys, "score", table(tmp_path / "t.csv", apart), "-m", "roc_auc")
    assert "no id occurs under two of them" in " ".join(out.split()) and "--run-column model" in " ".join(out.split())


def test_two_rows_of_one_id_and_one_run_are_refused_with_what_tells_them_apart(tmp_path: Path, capsys: Capture) -> None:
    rows = [{**row, "model": "m"} for row in scored("ab", "prompt")]
    err = told(capsys, "score", table(tmp_path / "s.csv", rows), "-m", "eer", code=3)
    assert "80 differing rows of shared ids" in err and "They differ in prompt" in err and "--run-column prompt" in err
    assert "× 2 runs (prompt)" in told(capsys, "score", str(tmp_path / "s.csv"), "-m", "eer", "--run-column", "prompt")
    same = table(tmp_path / "t.csv", [*rows[:40], *rows[:40]])
    assert "merge identical rows with --dedupe" in told(capsys, "score", same, "-m", "eer", code=3)
    assert "40 trials:" in told(capsys, "score", same, "-m", "eer", "--dedupe")


def test_columns_that_are_named_like_those_of_the_engine(tmp_path: Path, capsys: Capture) -> None:
    rows = [{**row, "target": f"t{k % 3}", "decision_clean": "x", "system": row["system"]}
            for k, row in enumerate(scored("ab", "system"))]  # fmt: skip
    found = json.loads(told(capsys, "score", table(tmp_path / "s.csv", rows), "-m", "roc_auc", "--json"))
    values = {e["run"]["system"]: e["value"] for e in found["estimates"] if "target" not in e["run"]}
    assert values == pytest.approx({name: area(r for r in rows if r["system"] == name) for name in "ab"})


def verdicts(model: str, trial: int, swapped: bool = False) -> list[Row]:
    other = {"fake": "real", "real": "fake"}
    return [
        {"id": f"i{k}", "label": other[word] if swapped else word, "prediction": word, "model": model, "trial": trial}
        for k, word in enumerate(("fake", "real") * 10)
    ]


@pytest.mark.parametrize(
    "rows",
    [verdicts("m", 0) + verdicts("m", 1, True), verdicts("a", 0) + verdicts("b", 0, True)],
    ids=["trials", "models"],
)
def test_an_item_has_one_label(tmp_path: Path, capsys: Capture, rows: list[Row]) -> None:
    path = lines(tmp_path / "r.jsonl", rows)
    err = told(capsys, "triage", path, code=3)
    assert "r.jsonl, row 1: 40 rows of ids with two labels in different runs (here 'fake', 'real' in row 21)" in err
    parts = [lines(tmp_path / f"{k}.jsonl", part) for k, part in enumerate((rows[:20], rows[20:]))]
    err = told(capsys, "triage", *parts, code=3)
    assert "0.jsonl, row 1" in err and "'real' in 1.jsonl, row 1" in err
    told(capsys, "report", *parts, "-p", "triage", "-o", str(tmp_path / "r.html"), code=3)
    told(capsys, "compare", *parts, "-p", "triage", "-m", "accuracy", code=3)


def test_an_item_has_one_label_in_scores_and_in_python(tmp_path: Path, capsys: Capture) -> None:
    rows = scored("ab", "system")
    rows[-1] = {**rows[-1], "label": "spoof"}
    err = told(capsys, "score", table(tmp_path / "s.csv", rows), "-m", "eer", code=3)
    assert "2 rows of ids with two labels" in err and "row 41" in err and "row 81" in err
    with pytest.raises(
        DataError, match="two labels in different runs, the first is 'x': positive in seed 1 and negative"
    ):
        Trials.of([1, 0], [0.2, 0.3], item=["x", "x"], seed=["1", "2"], header=Header(runs=("seed",)))
    same = [{**row, "label": {"bonafide": "Bona-fide"}.get(str(row["label"]), row["label"])} for row in rows[40:-1]]
    path = table(tmp_path / "t.csv", [*rows[:40], *same])
    assert run(["score", path, "-m", "eer"]) == 0, "two spellings of one class are one label"


def test_a_run_that_mixes_conditions_says_so(tmp_path: Path, capsys: Capture) -> None:
    rows = [{**row, "temperature": k % 2} for k, row in enumerate(scored("a", "x"))]
    out = told(capsys, "score", table(tmp_path / "s.csv", rows), "-m", "eer")
    assert "✗ conditions: this file mixes answers" in out and "temperature (0, 1)" in out
    alone = [row for row in rows if row["temperature"] == 0]
    for k, row in enumerate(alone):
        row["label"] = ("bonafide", "spoof")[k % 2]
    assert "conditions" not in told(capsys, "score", table(tmp_path / "t.csv", alone), "-m", "eer")


@pytest.mark.parametrize("as_files", [False, True], ids=["one file", "two files"])
def test_nested_conditions_are_seen_too(tmp_path: Path, capsys: Capture, as_files: bool) -> None:
    rows = [{**row, "prompt_hashes": {"system": "abc"[k // 10]}, "run_config": {"temperature": 0, "workers": k}}
            for k, row in enumerate(verdicts("m", 0))]  # fmt: skip
    parts = (rows[:10], rows[10:]) if as_files else (rows,)
    paths = [lines(tmp_path / f"{k}.jsonl", part) for k, part in enumerate(parts)]
    out = told(capsys, "triage", *paths, "--bootstrap", "0")
    assert "✗ conditions: m mixes answers" in out and "prompt_hashes.system (a, b)" in out and "workers" not in out
    two = [{**row, "model": f"m{k // 10}"} for k, row in enumerate(rows)]
    assert "conditions" not in told(capsys, "triage", lines(tmp_path / "two.jsonl", two), "--bootstrap", "0")
