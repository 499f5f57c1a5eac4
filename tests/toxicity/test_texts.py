"""Several labels of one text: the text is the unit, headlines count texts, and what a join leaves out is said."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from sklearn.metrics import f1_score, roc_auc_score

from hitmiss.cli.main import run

TYPES = ("toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate")
Capture = pytest.CaptureFixture[str]
N = 400


def labelled(n: int = N, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Labels and scores of texts × types with a common part, so that the labels of one text are alike."""
    rng = np.random.default_rng(seed)
    text = rng.normal(size=(n, 1))
    truth = (text + 0.7 * rng.normal(size=(n, 6)) > 0.9).astype(np.int64)
    score = 1 / (1 + np.exp(-(1.5 * text + 0.8 * rng.normal(size=(n, 1)) + 0.5 * rng.normal(size=(n, 6)) - 1)))
    return truth, np.round(score, 6)


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("wide")
    truth, score = labelled()
    for name, values in (("key", truth), ("submission", score)):
        columns = {"id": [f"t{k}" for k in range(N)], **{t: values[:, j] for j, t in enumerate(TYPES)}}
        pl.DataFrame(columns).write_csv(folder / f"{name}.csv")
    return str(folder / "submission.csv"), str(folder / "key.csv")


@pytest.fixture(scope="module")
def stacked(tmp_path_factory: pytest.TempPathFactory) -> str:
    truth, score = labelled()
    rows = [
        {"id": f"t{k}", "kind": t, "y_true": int(truth[k, j]), "y_prob": float(score[k, j])}
        for j, t in enumerate(TYPES)
        for k in range(N)
    ]
    path = tmp_path_factory.mktemp("stacked") / "preds.csv"
    pl.DataFrame(rows).write_csv(path)
    return str(path)


def told(capsys: Capture, *words: str) -> str:
    assert run([*words]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def figures(out: str) -> dict[tuple[str, str], dict[str, float]]:
    """The figures by metric and row: a type, macro or micro."""
    found = {}
    for e in json.loads(out)["estimates"]:
        where = e["average"] or next(iter(e["slice"].values()), "micro")
        found[e["metric"], where] = e
    return found


def brute(draws: int = 2000) -> dict[str, NDArray[np.float64]]:
    """Figures of all decisions together, in samples of whole texts."""
    truth, score = labelled()
    said = score >= 0.5
    rng = np.random.default_rng(1)
    found: dict[str, list[float]] = {"accuracy": [], "f1": [], "recall": []}
    for _ in range(draws):
        rows = rng.integers(0, N, N)
        y, p = truth[rows].ravel(), said[rows].ravel()
        tp = int((y & p).sum())
        found["accuracy"].append(float((y == p).mean()))
        found["recall"].append(tp / int(y.sum()))
        found["f1"].append(2 * tp / int(y.sum() + p.sum()))
    return {name: np.array(values) for name, values in found.items()}


@pytest.mark.parametrize("unit", [[], ["--unit", "item"], ["--unit", "id"]], ids=["default", "item", "id"])
def test_intervals_are_over_texts(wide: tuple[str, str], capsys: Capture, unit: list[str]) -> None:
    scores, key = wide
    found = figures(told(capsys, "toxicity", scores, "--key", key, "--bootstrap", "2000", "--json", *unit))
    truth, score = labelled()
    assert found["roc_auc", "micro"]["value"] == pytest.approx(roc_auc_score(truth.ravel(), score.ravel()), abs=1e-12)
    assert found["f1", "micro"]["value"] == pytest.approx(f1_score(truth.ravel(), score.ravel() >= 0.5), abs=1e-12)
    for metric, drawn in brute().items():
        e, expected = found[metric, "micro"], np.quantile(drawn, [0.025, 0.975])
        assert e["units"] == N
        assert [e["low"], e["high"]] == pytest.approx(expected, abs=0.15 * (expected[1] - expected[0]))
        rows = 2 * 1.96 * np.sqrt(e["value"] * (1 - e["value"]) / e["of"]) if e["of"] else 0.0
        assert e["high"] - e["low"] > 1.3 * rows, "decisions are not independent"


def test_the_headline_counts_texts_and_decisions(wide: tuple[str, str], stacked: str, capsys: Capture) -> None:
    toxic = int(labelled()[0].sum())
    out = told(capsys, "toxicity", wide[0], "--key", wide[1], "--bootstrap", "50", "--full")
    assert f"{N} texts, 6 × type: {N * 6:,} decisions, {toxic} toxic" in out.splitlines()[0]
    assert (
        "✓ independence: Intervals draw whole units: item." in out and f"unit=item,auto,0.95,seed=0|units:{N}|" in out
    )
    out = told(capsys, "toxicity", stacked, "--group", "kind", "--bootstrap", "50")
    assert f"{N} texts, 6 × kind: {N * 6:,} decisions, {toxic} toxic" in out.splitlines()[0]


def test_stacked_and_wide_files_give_the_same(wide: tuple[str, str], stacked: str, capsys: Capture) -> None:
    one = figures(told(capsys, "toxicity", wide[0], "--key", wide[1], "--bootstrap", "200", "--json"))
    two = figures(told(capsys, "toxicity", stacked, "--group", "kind", "--bootstrap", "200", "--json"))
    for place in one:
        for end in ("value", "low", "high"):
            assert one[place][end] == pytest.approx(two[place][end], abs=0.02 if end != "value" else 1e-12), place


def test_one_label_alone_is_not_changed(wide: tuple[str, str], capsys: Capture, tmp_path: Path) -> None:
    """The rows of one type are each of another text: their intervals are those of a file with this type alone."""
    truth, score = labelled()
    found = figures(told(capsys, "toxicity", wide[0], "--key", wide[1], "--bootstrap", "200", "--json"))
    for j in (0, 3):
        ids = [f"t{k}" for k in range(N)]
        pl.DataFrame({"id": ids, "y_true": truth[:, j], "y_prob": score[:, j]}).write_csv(tmp_path / "one_en.csv")
        alone = figures(told(capsys, "toxicity", str(tmp_path / "one_en.csv"), "--bootstrap", "200", "--json"))
        for metric in ("roc_auc", "precision", "recall", "accuracy"):
            for end in ("value", "low", "high"):
                assert found[metric, TYPES[j]][end] == pytest.approx(alone[metric, "micro"][end], abs=1e-12)


def test_ids_of_languages_are_other_texts(tmp_path: Path, capsys: Capture) -> None:
    truth, score = labelled(60)
    for j, language in enumerate(("en", "es")):
        columns = {"id": range(60), "y_true": truth[:, j], "y_prob": score[:, j]}
        pl.DataFrame(columns).write_csv(tmp_path / f"run_{language}.csv")
    paths = [str(tmp_path / f"run_{language}.csv") for language in ("en", "es")]
    out = told(capsys, "toxicity", *paths, "--bootstrap", "50")
    assert "120 texts" in out.splitlines()[0] and "unit=" not in out


def test_score_by_target_draws_items(stacked: str, capsys: Capture) -> None:
    words = ["score", stacked, "--column", "target=kind", "--by", "target", "-m", "roc_auc", "--positive", "toxic",
             "--positive-value", "1", "--bootstrap", "200", "--json"]  # fmt: skip
    found = {e["average"] or next(iter(e["slice"].values()), ""): e
             for e in json.loads(told(capsys, *words))["estimates"]}  # fmt: skip
    assert found[""]["units"] == N and "unit=item" in found[""]["method"] and "unit=item" in found["macro"]["method"]
    assert found["threat"]["units"] is None


def test_what_a_key_leaves_out_is_said(wide: tuple[str, str], tmp_path: Path, capsys: Capture) -> None:
    scores, key = (Path(path).read_text().splitlines() for path in wide)
    for name, rows in (("few", scores[:-7]), ("less", key[:-3])):
        (tmp_path / f"{name}.csv").write_text("\n".join(rows) + "\n")
    few, less = str(tmp_path / "few.csv"), str(tmp_path / "less.csv")
    assert run(["toxicity", few, "--key", wide[1]]) == 3
    capsys.readouterr()
    out = told(capsys, "toxicity", few, "--key", wide[1], "--bootstrap", "0", "--allow-missing", "--full")
    assert f"covers {N - 7} of {N} texts of the key" in out and "'t393', 't394', 't395'" in " ".join(out.split())
    assert f"✗ completeness: Trials are missing: {N - 7} of {N} are there." in out and f"complete:{N - 7}/{N}" in out
    out = told(capsys, "toxicity", wide[0], "--key", less, "--bootstrap", "0", "--allow-missing", "--full")
    assert "3 scored ids are not in the key and were left out" in out and "unlisted:3" in out
    assert "✓ completeness" not in out


@pytest.mark.parametrize("stream", [[], ["--stream"]], ids=["memory", "stream"])
def test_score_says_what_it_left_out(tmp_path: Path, capsys: Capture, stream: list[str]) -> None:
    key, scores = tmp_path / "key.csv", tmp_path / "scores.csv"
    key.write_text("id,label\n" + "".join(f"i{k},{('spoof', 'bonafide')[k % 2]}\n" for k in range(40)))
    scores.write_text("id,score\n" + "".join(f"i{k},{k % 7}\n" for k in range(36)) + "zz,1\n")
    words = ["score", str(scores), "--key", str(key), "-m", "eer", "--allow-missing", *stream]
    out = told(capsys, *words)
    assert "covers 36 of 40 trials" in out and "|complete:36/40|" in out and "unlisted:1" in out
    assert "✗ completeness: Trials are missing: 36 of 40 are there, unlisted:1." in out
    if not stream:
        assert "as 'i36', 'i37', 'i38'" in out and "as 'zz'" in out
        gated = told(capsys, "gate", *words[1:4], "--allow-missing", "--fail-if", "eer > 0.99")
        assert "36 of 40 trials of the key have a score" in gated


def test_means_over_seeds_need_the_same_items(tmp_path: Path, capsys: Capture) -> None:
    for seed in (1, 2, 3):
        rows = [f"i{k},{('spoof', 'bonafide')[k % 2]},{(k * seed * 7) % 13}\n" for k in range(40 if seed < 3 else 12)]
        (tmp_path / f"s{seed}.csv").write_text("id,label,score\n" + "".join(rows))
    words = ["score", *(str(tmp_path / f"s{seed}.csv") for seed in (1, 2, 3)), "--seeds", "-m", "roc_auc"]
    assert run(words) == 3
    assert "incomplete: 92 of 120 trials (40 items × 3 runs); seed s3 has 12 of 40" in capsys.readouterr().err
    found = json.loads(told(capsys, *words, "--allow-missing", "--json"))
    (mean,) = [e for e in found["estimates"] if e["average"] == "mean"]
    own = [roc_auc_score([k % 2 for k in range(12)], [(k * s * 7) % 13 for k in range(12)]) for s in (1, 2, 3)]
    assert mean["value"] == pytest.approx(np.mean(own), abs=1e-12) and "complete:36/120" in found["signature"]
