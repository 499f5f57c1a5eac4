"""The document's example comes out digit for digit, by the document's own command."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics as sk

from hitmiss.cli.main import run
from hitmiss.simulate.toxicity import LANGUAGES

TABLE = """language,n_samples,positive_rate,roc_auc,f1,precision,recall,accuracy
en,22355,0.0956,0.9686,0.7371,0.7339,0.7404,0.9495
es,251,0.1673,0.8604,0.6067,0.5745,0.6429,0.8606
it,251,0.1952,0.8430,0.5192,0.4909,0.5510,0.8008
tr,300,0.1067,0.9569,0.7368,0.8400,0.6562,0.9500
macro,23157,0.1412,0.9072,0.6500,0.6598,0.6476,0.8902
micro,23157,0.0976,0.9661,0.7296,0.7259,0.7333,0.9469
"""
DOCUMENTED = TABLE.splitlines()[0].split(",")
AFTER = ["true_positives", "true_negatives", "false_positives", "false_negatives", "specificity", "fpr", "fnr"]


def command(folder: Path, *more: str) -> list[str]:
    where = [
        "--config",
        str(folder / "configs" / "detoxify_multilingual.yaml"),
        "--pred_dir",
        str(folder / "predictions"),
    ]
    return ["toxicity", *where, "--run_tag", "baseline", "--languages", "en", "es", "it", "tr", *more]


@pytest.fixture(scope="module")
def written(rebuilt: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    path = tmp_path_factory.mktemp("out") / "baseline_metrics.csv"
    assert run(command(rebuilt, "--output", str(path), "--bootstrap", "100")) == 0
    return list(csv.DictReader(io.StringIO(path.read_text())))


def test_the_documented_table_is_printed_byte_for_byte(rebuilt: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command(rebuilt, "--documented")) == 0
    assert capsys.readouterr().out == TABLE


def test_all_figures_of_the_file_round_to_the_documented_ones(written: list[dict[str, str]]) -> None:
    wanted = list(csv.DictReader(io.StringIO(TABLE)))
    found = [
        {c: row[c] if c in ("language", "n_samples") else f"{float(row[c]):.4f}" for c in DOCUMENTED}
        for row in written[: len(wanted)]
    ]
    assert found == wanted
    assert sum(len(row) - 1 for row in wanted) == 42


def test_columns_and_rows_stand_in_the_documented_order(written: list[dict[str, str]]) -> None:
    assert list(written[0])[: len(DOCUMENTED) + len(AFTER)] == DOCUMENTED + AFTER
    assert [row["language"] for row in written] == ["en", "es", "it", "tr", "macro", "micro", "worst"]


def test_counts_are_integers_and_macro_has_none(written: list[dict[str, str]]) -> None:
    rows = {row["language"]: row for row in written}
    for language in LANGUAGES:
        c = language.counts
        found = [rows[language.name][name] for name in AFTER[:4]]
        assert found == [str(n) for n in (c.tp, c.tn, c.fp, c.fn)]
    assert [rows["micro"][name] for name in AFTER[:4]] == ["1658", "20270", "626", "603"]
    assert [rows["macro"][name] for name in AFTER[:4]] == [""] * 4


def test_the_file_has_the_figures_of_scikit_learn(rebuilt: Path, written: list[dict[str, str]]) -> None:
    rows = {row["language"]: row for row in written}
    pooled: list[np.ndarray] = []
    for name in ("en", "es", "it", "tr"):
        data = list(csv.DictReader(io.StringIO((rebuilt / "predictions" / f"baseline_{name}.csv").read_text("utf-8"))))
        table = np.array([[float(r["y_true"]), float(r["y_prob"]), float(r["best_threshold"])] for r in data])
        pooled.append(table)
        check(rows[name], table)
    check(rows["micro"], np.concatenate(pooled))


def check(row: dict[str, str], table: np.ndarray) -> None:
    label, score, decision = table[:, 0].astype(int), table[:, 1], (table[:, 1] >= table[:, 2]).astype(int)
    tn, fp, fn, tp = sk.confusion_matrix(label, decision).ravel()
    wanted = {
        "roc_auc": sk.roc_auc_score(label, score),
        "f1": sk.f1_score(label, decision),
        "precision": sk.precision_score(label, decision),
        "recall": sk.recall_score(label, decision),
        "accuracy": sk.accuracy_score(label, decision),
        "specificity": tn / (tn + fp),
        "fpr": fp / (fp + tn),
        "fnr": fn / (fn + tp),
        "f1_always_toxic": sk.f1_score(label, np.ones_like(label)),
    }
    for name, value in wanted.items():
        assert float(row[name]) == pytest.approx(value, abs=1e-12), name


def test_macro_is_the_mean_and_worst_the_least(written: list[dict[str, str]]) -> None:
    rows = {row["language"]: row for row in written}
    for name in ("roc_auc", "f1", "precision", "recall", "accuracy", "specificity"):
        values = [float(rows[x][name]) for x in ("en", "es", "it", "tr")]
        assert float(rows["macro"][name]) == pytest.approx(sum(values) / 4, abs=1e-12)
        assert float(rows["worst"][name]) == min(values)
    assert float(rows["worst"]["fnr"]) == max(float(rows[x]["fnr"]) for x in ("en", "es", "it", "tr"))


def test_intervals_are_delong_wilson_and_bootstrap(rebuilt: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command(rebuilt, "--json", "--bootstrap", "200")) == 0
    data = json.loads(capsys.readouterr().out)
    cells = [e for e in data["estimates"] if e["slice"] == {"language": "es"} and e["average"] is None]
    methods = {e["metric"]: e["method"].split(" ")[0] for e in cells}
    assert methods["roc_auc"] == "delong" and methods["precision"] == "wilson" and methods["f1"] == "bootstrap"
    averages = {(e["average"], e["metric"]): e for e in data["estimates"] if e["average"]}
    for kind in ("macro", "within"):
        row = averages[kind, "roc_auc"]
        assert row["low"] < row["value"] < row["high"]
    assert averages["worst", "f1"]["slice"] == {"language": "it"}
    assert [row["language"] for row in data["table"]] == ["en", "es", "it", "tr", "macro", "micro", "worst"]


def test_within_language_auc_is_weighted_by_pairs(rebuilt: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command(rebuilt, "--json", "--bootstrap", "0")) == 0
    data = json.loads(capsys.readouterr().out)
    areas = {r["language"]: r for r in data["table"]}
    pairs = {x.name: (x.counts.tp + x.counts.fn) * (x.counts.fp + x.counts.tn) for x in LANGUAGES}
    wanted = sum(areas[k]["roc_auc"] * n for k, n in pairs.items()) / sum(pairs.values())
    assert areas["micro"]["roc_auc_within"] == pytest.approx(wanted, abs=1e-12)


def test_dashes_underscores_and_no_config_give_the_same(rebuilt: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(rebuilt / "predictions")
    spaced = ["--languages", "en", "es", "it", "tr"]
    repeated = [word for language in spaced[1:] for word in ("--languages", language)]
    for words in (
        ["--pred-dir", folder, "--run-tag=baseline", *repeated],
        ["--pred_dir", folder, "--run_tag", "baseline", *spaced],
    ):
        assert run(["toxicity", *words, "--documented"]) == 0
        assert capsys.readouterr().out == TABLE
