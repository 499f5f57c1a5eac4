"""Equal to scikit-learn to 1e-12 where scoring is hard: ties, one class, doubles one ulp apart; and laws of the table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

import hitmiss as hm
from hitmiss.core.results import Estimate
from hitmiss.metrics.counts import Counts
from hitmiss.protocols.toxicity import counts_of, evaluate_run, load_table
from hitmiss.stats.delong import RocSteps

FEW_SCORES = st.sampled_from([0.0, 0.25, 0.5, math.nextafter(0.5, 1), math.nextafter(0.5, 0), 0.75, 1.0])
ROWS = st.lists(
    st.tuples(st.sampled_from(["en", "es", "it"]), st.integers(0, 1), FEW_SCORES, st.integers(0, 1)),
    min_size=1,
    max_size=40,
)


def reference(label: np.ndarray, score: np.ndarray, decision: np.ndarray) -> dict[str, float]:
    both = 0 < label.sum() < len(label)
    return {
        "roc_auc": sk.roc_auc_score(label, score) if both else math.nan,
        "f1": sk.f1_score(label, decision, zero_division=0),
        "precision": sk.precision_score(label, decision, zero_division=0),
        "recall": sk.recall_score(label, decision, zero_division=0),
        "accuracy": sk.accuracy_score(label, decision),
    }


def frame_of(rows: Sequence[tuple[str, int, float, int]]) -> pl.DataFrame:
    language, label, score, decision = zip(*rows, strict=True)
    ids = [str(i) for i in range(len(rows))]
    return pl.DataFrame({"id": ids, "language": language, "y_true": label, "y_prob": score, "y_pred": decision})


@given(ROWS)
def test_every_row_of_the_table_is_that_of_scikit_learn(rows: list[tuple[str, int, float, int]]) -> None:
    frame = frame_of(rows)
    board = evaluate_run(load_table([frame]), bootstrap=0)
    found = {row.name: row for row in board.rows}
    names = sorted(set(frame["language"]))
    expected = {}
    for name in [*names, "micro"]:
        own = frame if name == "micro" else frame.filter(pl.col("language") == name)
        expected[name] = reference(own["y_true"].to_numpy(), own["y_prob"].to_numpy(), own["y_pred"].to_numpy())
    expected["macro"] = {}
    for metric in expected["micro"]:
        values = [expected[n][metric] for n in names if not math.isnan(expected[n][metric])]
        expected["macro"][metric] = sum(values) / len(values) if values else math.nan
    for name, figures in expected.items():
        for metric, value in figures.items():
            ours = found[name].figures[metric].value
            assert (ours is None) if math.isnan(value) else ours == pytest.approx(value, abs=1e-12), (name, metric)
    for name in [*names, "micro"]:
        own = frame if name == "micro" else frame.filter(pl.col("language") == name)
        tn, fp, fn, tp = sk.confusion_matrix(own["y_true"], own["y_pred"], labels=[0, 1]).ravel().tolist()
        counts = found[name].counts
        assert counts is not None and (counts.tp, counts.fp, counts.fn, counts.tn) == (tp, fp, fn, tn)
        rates = {"specificity": (tn, fp), "fpr": (fp, tn), "fnr": (fn, tp)}
        for metric, (hits, others) in rates.items():
            value, ours = hits / (hits + others) if hits + others else None, found[name].figures[metric].value
            assert ours is None if value is None else ours == pytest.approx(value, abs=1e-12)


@given(st.lists(st.tuples(st.integers(1, 10**9), st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9))))
def test_counts_are_found_again_from_their_shares(cells: list[tuple[int, int, int, int]]) -> None:
    """Sizes far beyond those that fit into a test: the shares that the table is made of hold the counts exactly."""
    for tp, fp, fn, tn in cells:
        n, n_positive = tp + fp + fn + tn, tp + fn
        shares = {"recall": tp / n_positive, "accuracy": (tp + tn) / n}
        figures = {name: Estimate(name, value, n=n, n_positive=n_positive) for name, value in shares.items()}
        assert counts_of(figures) == Counts(tp, fp, fn, tn)


def test_doubles_one_ulp_apart_are_not_merged(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    score = 0.1 + np.cumsum(np.full(200, math.ulp(0.1)))
    label = (rng.random(200) < np.linspace(0.2, 0.8, 200)).astype(int)
    path = tmp_path / "long.csv"
    lines = [f"{i},en,{y},{s!r}" for i, (y, s) in enumerate(zip(label.tolist(), score.tolist(), strict=True))]
    path.write_text("\n".join(["id,language,y_true,y_prob", *lines]))
    area = evaluate_run(load_table([str(path)]), bootstrap=0).rows[0].figures["roc_auc"].value
    assert area == pytest.approx(sk.roc_auc_score(label, score), abs=1e-12) and abs(area - 0.5) > 0.1


@given(ROWS)
def test_measured_slices_are_scikit_learn_in_each_group(rows: list[tuple[str, int, float, int]]) -> None:
    language, label, score, decision = (np.array(column) for column in zip(*rows, strict=True))
    trials = hm.Trials.of(label, score, decision=decision, language=language)
    found = hm.measure(trials, ["roc_auc", "accuracy", "eer"], by="language")
    for name in sorted(set(language.tolist())) if len(set(language.tolist())) > 1 else ():
        own = language == name
        wanted = reference(label[own], score[own], decision[own])
        area = found.one("roc_auc", language=name).value
        assert (math.nan if area is None else area) == pytest.approx(wanted["roc_auc"], abs=1e-12, nan_ok=True)
        assert found.one("accuracy", language=name).value == wanted["accuracy"]
        assert (found.one("eer", language=name).value is None) == math.isnan(wanted["roc_auc"])


@given(st.lists(FEW_SCORES, min_size=1, max_size=20), st.lists(FEW_SCORES, min_size=1, max_size=20))
def test_an_area_counts_pairs(positive: list[float], negative: list[float]) -> None:
    pairs = [(p > n) + 0.5 * (p == n) for p in positive for n in negative]
    assert RocSteps.of_classes(np.sort(positive), np.sort(negative)).area == sum(pairs) / len(pairs)


def test_a_single_language_has_all_rows() -> None:
    rows = [("en", i % 2, i / 40, int(i > 20)) for i in range(40)]
    board = evaluate_run(load_table([frame_of(rows)]), bootstrap=50)
    by_name = {row.name: row.figures["f1"].value for row in board.rows}
    assert list(by_name) == ["en", "macro", "micro", "worst"] and len(set(by_name.values())) == 1


def test_long_files_parquet_and_other_columns_give_the_same_figures(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "id": [f"{i:04d}" for i in range(300)],
            "platform": rng.choice(["web", "app"], 300).tolist(),
            "y_true": (label := rng.integers(0, 2, 300)),
            "y_prob": np.clip(rng.normal(0.4 + 0.2 * label, 0.2), 0, 1),
        }
    )
    frame.write_csv(tmp_path / "long.csv")
    frame.write_parquet(tmp_path / "long.parquet")
    boards = [
        evaluate_run(load_table([source], "platform"), bootstrap=0)
        for source in (str(tmp_path / "long.csv"), str(tmp_path / "long.parquet"), frame)
    ]
    tables = [[(r.name, {k: e.value for k, e in r.figures.items()}) for r in b.rows] for b in boards]
    assert tables[0] == tables[1] == tables[2]
    assert [name for name, _ in tables[0]] == ["app", "web", "macro", "micro", "worst"]
    assert boards[0].run.trials.items[0] == f"{frame['platform'][0]}/0000"
