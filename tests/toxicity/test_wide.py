"""Public toxicity files as they are: labels in a key of their own, several types side by side, shares of annotators."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import polars as pl
import pytest
from sklearn.metrics import f1_score, roc_auc_score

from hitmiss.cli.main import run
from hitmiss.core.results import Results

TYPES = ("toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate")
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def kaggle(tmp_path: Path) -> tuple[Path, Path]:
    """A submission and its labels, as Kaggle's Jigsaw challenge has them: the same names in both, -1 for unscored rows."""
    draw = Random(3)
    labels: dict[str, list[object]] = {"id": [f"x{i}" for i in range(80)]}
    scores: dict[str, list[object]] = {"id": list(reversed(labels["id"]))}
    for name in TYPES:
        truth = [int(draw.random() < 0.3) for _ in range(80)]
        labels[name] = [-1 if i % 10 == 0 else y for i, y in enumerate(truth)]
        scores[name] = [round(0.4 * y + 0.6 * draw.random(), 4) for y in reversed(truth)]
    pl.DataFrame(scores).write_csv(tmp_path / "submission.csv")
    pl.DataFrame(labels).write_csv(tmp_path / "test_labels.csv")
    return tmp_path / "submission.csv", tmp_path / "test_labels.csv"


def test_each_type_has_its_figures_and_the_mean_is_that_of_the_challenge(
    kaggle: tuple[Path, Path], tmp_path: Path
) -> None:
    scores, labels = map(str, kaggle)
    words = ["toxicity", scores, "--key", labels, "--bootstrap", "0", "--results", str(tmp_path / "r.json")]
    assert run(words) == 3, "-1 is refused unless rows may be dropped"
    assert run([*words, "--missing", "drop"]) == 0
    found = Results.load(tmp_path / "r.json")
    both = pl.read_csv(scores).join(pl.read_csv(labels), on="id", suffix="_true").filter(pl.col("toxic_true") >= 0)
    areas = []
    for name in TYPES:
        truth, score = both[f"{name}_true"], both[name]
        areas.append(roc_auc_score(truth, score))
        assert found.one("roc_auc", type=name).value == pytest.approx(areas[-1], abs=1e-12)
        assert found.one("f1", type=name).value == pytest.approx(f1_score(truth, (score >= 0.5).cast(int)))
    macro = next(e for e in found if e.metric == "roc_auc" and e.average == "macro")
    assert macro.value == pytest.approx(sum(areas) / len(areas), abs=1e-12), "the challenge's mean column-wise AUC"
    assert run(["verify", str(tmp_path / "r.json"), scores, "--key", labels]) == 0


def test_ids_that_one_file_lacks_are_refused(kaggle: tuple[Path, Path], capsys: Capture) -> None:
    scores, labels = kaggle
    lines = labels.read_text().splitlines()
    labels.write_text("\n".join(lines[:-3]) + "\n")
    words = ["toxicity", str(scores), "--key", str(labels), "--missing", "drop", "--bootstrap", "0"]
    assert run(words) == 3
    assert "3 scored ids missing from the key (ids 'x79', 'x78', 'x77')" in capsys.readouterr().err
    assert run([*words, "--allow-missing"]) == 0
    labels.write_text("\n".join([*lines, lines[-1]]) + "\n")
    capsys.readouterr()
    assert run([*words, "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "duplicate-in-key"


def test_a_key_with_one_label_is_joined_by_id(tmp_path: Path) -> None:
    ids = [f"x{i}" for i in range(30)]
    truth = [i % 3 == 0 for i in range(30)]
    score = [round(0.3 * y + (7 * i % 30) / 50, 3) for i, y in enumerate(truth)]
    pl.DataFrame({"id": ids, "y_prob": score}).write_csv(tmp_path / "run_en.csv")
    pl.DataFrame({"id": ids[::-1], "label": [int(y) for y in truth[::-1]]}).write_csv(tmp_path / "key.csv")
    pl.DataFrame({"id": ids, "y_true": list(map(int, truth)), "y_prob": score}).write_csv(tmp_path / "whole_en.csv")
    out = [str(tmp_path / name) for name in ("a.json", "b.json")]
    key = ["--key", str(tmp_path / "key.csv")]
    assert run(["toxicity", str(tmp_path / "run_en.csv"), *key, "--bootstrap", "0", "--results", out[0]]) == 0
    assert run(["toxicity", str(tmp_path / "whole_en.csv"), "--bootstrap", "0", "--results", out[1]]) == 0
    assert Results.load(out[0]).estimates == Results.load(out[1]).estimates


@pytest.mark.parametrize("cut", [0.5, 0.3])
def test_shares_of_annotators_are_cut_where_the_caller_says(tmp_path: Path, capsys: Capture, cut: float) -> None:
    draw = Random(5)
    share = [draw.choice((0.0, 0.1, 0.3, 0.4, 0.5, 0.8, 1.0)) for _ in range(90)]
    score = [round(0.6 * t + 0.4 * draw.random(), 4) for t in share]
    path = tmp_path / "civil_en.csv"
    pl.DataFrame({"id": [str(i) for i in range(90)], "target": share, "prediction": score}).write_csv(path)
    words = ["toxicity", str(path), "--column", "label=target", "--column", "score=prediction", "--bootstrap", "0"]
    assert run(words) == 3, "a share is no label until somebody says where it is cut"
    assert "neither 1 nor 0" in capsys.readouterr().err
    out = tmp_path / "r.json"
    assert run([*words, "--label-cut", str(cut), "--results", str(out)]) == 0
    found = Results.load(out)
    truth = [int(t >= cut) for t in share]
    own = next(e for e in found if e.metric == "roc_auc" and e.average is None)
    assert own.value == pytest.approx(roc_auc_score(truth, score), abs=1e-12) and own.n_positive == sum(truth)
    assert f"label-cut:{cut:g}" in found.signature
    assert run(["verify", str(out), str(path)]) == 0
    data = json.loads(out.read_text())
    assert data["design"]["languages"]["label_cut"] == cut
    path.write_text(path.read_text().replace(",0.8,", ",1.8,", 1))
    assert run([*words, "--label-cut", str(cut)]) == 3
    assert "1.8" in capsys.readouterr().err
