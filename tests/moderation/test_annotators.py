"""Votes of annotators: rows or columns, agreement, soft labels by scikit-learn, and the range that single votes leave."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

from hitmiss.cli.main import run

Capture = pytest.CaptureFixture[str]
PEOPLE = ("ann", "bob", "eve", "kim")
N = 80


@pytest.fixture
def votes(tmp_path: Path) -> tuple[Path, np.ndarray, np.ndarray]:
    """Votes in both shapes (−1: not asked), and scores of a classifier."""
    rng = np.random.default_rng(6)
    true = rng.random(N)
    said = (rng.random((N, len(PEOPLE))) < true[:, None]).astype(int)
    said[rng.random(said.shape) < 0.2] = -1
    said[:, 0] = np.where((said < 0).all(axis=1), 1, said[:, 0])
    score = np.round(np.clip(true + rng.normal(0, 0.2, N), 0, 1), 3)
    cells = {1: "yes", 0: "no", -1: ""}
    wide = [f"t{i}," + ",".join(cells[v] for v in row) for i, row in enumerate(said)]
    long = [f"t{i},{who},{v}" for i, row in enumerate(said) for who, v in zip(PEOPLE, row, strict=True) if v >= 0]
    (tmp_path / "wide.csv").write_text("\n".join(["id," + ",".join(PEOPLE), *wide]) + "\n")
    (tmp_path / "long.csv").write_text("\n".join(["id,annotator,label", *long]) + "\n")
    (tmp_path / "scores.csv").write_text("\n".join(["id,score", *(f"t{i},{s}" for i, s in enumerate(score))]) + "\n")
    return tmp_path, said, score


def told(capsys: Capture, *words: object) -> dict[str, object]:
    assert run(["annotators", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


def test_both_shapes_say_the_same(votes: tuple[Path, np.ndarray, np.ndarray], capsys: Capture) -> None:
    folder, said, _ = votes
    wide = told(capsys, folder / "wide.csv", "--votes", ",".join(PEOPLE))
    long = told(capsys, folder / "long.csv")
    assert wide == long
    pairs = [(a, b) for row in said for i, a in enumerate(row) for b in row[i + 1 :] if a >= 0 and b >= 0]
    assert long["n_votes"] == (said >= 0).sum()
    assert long["agreement"]["agreeing"] == pytest.approx(np.mean([a == b for a, b in pairs]), abs=0.05)  # type: ignore[index]
    assert long["n_disputed"] == sum({0, 1} <= set(row.tolist()) for row in said)


def test_majority_and_soft_numbers_are_those_of_scikit_learn(
    votes: tuple[Path, np.ndarray, np.ndarray], capsys: Capture
) -> None:
    folder, said, score = votes
    share = np.array([row[row >= 0].mean() for row in said])
    sure = share != 0.5
    words = (folder / "long.csv", "--scores", folder / "scores.csv", "--threshold", "0.5", "--bootstrap", "20")
    rows = told(capsys, *words, "-m", "roc_auc", "-m", "f1", "-m", "accuracy")["numbers"]
    found = {row["metric"]: row for row in rows}  # type: ignore[attr-defined]
    label, decision = share > 0.5, score >= 0.5
    twice = np.repeat([1, 0], N), np.concatenate([share, 1 - share])
    wanted = {
        "roc_auc": (roc_auc_score, score),
        "f1": (f1_score, decision),
        "accuracy": (accuracy_score, decision),
    }
    for name, (function, answer) in wanted.items():
        row = found[name]
        assert row["majority"] == pytest.approx(function(label[sure], answer[sure]), abs=1e-12)
        soft = function(twice[0], np.tile(answer, 2), sample_weight=twice[1])
        assert row["soft"] == pytest.approx(soft, abs=1e-12)
        assert row["votes_low"] <= row["soft"] <= row["votes_high"]
    assert found["roc_auc"]["people"] is None and 0.0 < found["accuracy"]["people"] < 1.0


def test_the_range_of_single_votes_is_that_of_all_ways_to_pick_one(tmp_path: Path, capsys: Capture) -> None:
    """Eight disputed texts of two votes have 256 labellings, all equally likely."""
    score = np.linspace(0.1, 0.9, 10)
    rows = ["id,annotator,label", "t0,a,0", "t0,b,0", "t9,a,1", "t9,b,1"]
    rows += [f"t{i},{who},{v}" for i in range(1, 9) for who, v in (("a", 0), ("b", 1))]
    (tmp_path / "v.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "s.csv").write_text("\n".join(["id,score", *(f"t{i},{s}" for i, s in enumerate(score))]) + "\n")
    words = (tmp_path / "v.csv", "--scores", tmp_path / "s.csv", "--bootstrap", "20", "--level", "0.8")
    (row,) = told(capsys, *words)["numbers"]  # type: ignore[misc]
    every = [roc_auc_score([0, *labels, 1], score) for labels in product((0, 1), repeat=8)]
    assert (row["votes_low"], row["votes_high"]) == pytest.approx(np.quantile(every, [0.1, 0.9]), abs=0.05)


def test_the_key_of_votes_is_read_by_every_verb(votes: tuple[Path, np.ndarray, np.ndarray], capsys: Capture) -> None:
    folder, said, score = votes
    key = str(folder / "key.csv")
    assert run(["annotators", str(folder / "long.csv"), "-o", key]) == 0
    capsys.readouterr()
    words = [str(folder / "scores.csv"), "--key", key, "--key-column", "label=share", "--label-cut", "0.5"]
    assert run(["score", *words, "-m", "roc_auc", "--bootstrap", "0", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["estimates"]
    share = np.array([line[line >= 0].mean() for line in said])
    assert row["value"] == pytest.approx(roc_auc_score(share >= 0.5, score), abs=1e-12)


@pytest.mark.parametrize(
    ("rows", "words", "code"),
    [
        (["id,annotator,label", "t0,a,maybe"], [], "bad-vote"),
        (["id,annotator,label", "t0,a,1", "t0,a,0"], [], "two-votes"),
        (["id,annotator,label", "t0,,1"], [], "vote-of-nobody"),
        (["id,annotator,label", "t0,a,"], [], "no-votes"),
        (["id,who,label", "t0,a,1"], [], "votes-column"),
        (["id,annotator,label", "t0,a,1"], ["--scores"], "votes-and-scores"),
    ],
)
def test_what_is_no_vote_is_refused(
    rows: list[str], words: list[str], code: str, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "v.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "s.csv").write_text("id,score\nt7,0.5\nt8,0.6\n")
    more = [*words, str(tmp_path / "s.csv")] if words else []
    assert run(["annotators", str(tmp_path / "v.csv"), *more, "--json"]) in (2, 3)
    assert json.loads(capsys.readouterr().out)["error"]["code"] == code
