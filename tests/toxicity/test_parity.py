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

from hitmiss.errors import DataError, UsageError
from hitmiss.metrics import roc_auc
from hitmiss.metrics.counts import Counts
from hitmiss.metrics.groups import by_group
from hitmiss.protocols.toxicity import counts_of, evaluate_run, load_table
from hitmiss.results import Estimate
from hitmiss.stats.runs import Runs, pair_share

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
            value = hits / (hits + others) if hits + others else 0.0
            assert found[name].figures[metric].value == pytest.approx(value, abs=1e-12)


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
def test_by_group_is_scikit_learn_in_each_group(rows: list[tuple[str, int, float, int]]) -> None:
    language, label, score, decision = (np.array(column) for column in zip(*rows, strict=True))
    found = by_group(["roc_auc", "accuracy", "eer"], label=label, group=language, score=score, decision=decision)
    assert list(found["roc_auc"]) == sorted(set(language.tolist()))
    for name in found["roc_auc"]:
        own = language == name
        wanted = reference(label[own], score[own], decision[own])
        assert found["roc_auc"][name] == pytest.approx(wanted["roc_auc"], abs=1e-12, nan_ok=True)
        assert found["accuracy"][name] == wanted["accuracy"]
        assert math.isnan(found["eer"][name]) == math.isnan(wanted["roc_auc"])


@given(st.lists(st.tuples(st.integers(0, 1), FEW_SCORES, st.integers(0, 400)), min_size=1, max_size=60))
def test_runs_hold_every_score_once_in_order(rows: list[tuple[int, float, int]]) -> None:
    label, score, group = (np.array(column) for column in zip(*rows, strict=True))
    for n_groups, codes in ((401, group), (3, group % 3)):  # many groups and few take different ways
        runs = Runs.of(label == 1, score.astype(float), codes, n_groups)
        for g in set(codes.tolist()):
            own = codes == g
            assert runs.positives(g).tolist() == sorted(score[own & (label == 1)].tolist())
            assert runs.negatives(g).tolist() == sorted(score[own & (label == 0)].tolist())
            assert runs.pair_share(g) == pytest.approx(roc_auc(label[own], score[own]), abs=1e-15, nan_ok=True)


def test_pieces_longer_than_one_are_put_together() -> None:
    rng = np.random.default_rng(1)
    n = 300_000
    positive, score, group = rng.random(n) < 0.3, rng.random(n), rng.integers(0, 5, n)
    runs = Runs.of(positive, score, group, 5)
    for g in range(5):
        assert np.array_equal(runs.positives(g), np.sort(score[positive & (group == g)]))


@given(st.lists(FEW_SCORES, min_size=1, max_size=20), st.lists(FEW_SCORES, min_size=1, max_size=20))
def test_pair_share_counts_pairs(positive: list[float], negative: list[float]) -> None:
    pairs = [(p > n) + 0.5 * (p == n) for p in positive for n in negative]
    wanted = sum(pairs) / len(pairs)
    assert pair_share(np.sort(positive), np.sort(negative)) == wanted


@pytest.mark.parametrize("group", [[0, 0, 7, 7], ["b", "b", "a", "a"], [3, 3, 3, 3]])
def test_groups_may_be_texts_or_numbers_with_gaps(group: list[object]) -> None:
    found = by_group(["recall"], label=[1, 0, 1, 1], group=group, decision=[1, 0, 0, 1])["recall"]
    assert list(found) == sorted({str(g) for g in group})
    assert found[str(group[0])] == (2 / 3 if group[0] == 3 else 1.0)


def test_by_group_says_what_is_missing() -> None:
    with pytest.raises(UsageError, match="needs score"):
        by_group(["roc_auc"], label=[1, 0], group=[0, 0], decision=[1, 0])
    with pytest.raises(DataError, match="equally long"):
        by_group(["recall"], label=[1, 0], group=[0], decision=[1, 0])


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
