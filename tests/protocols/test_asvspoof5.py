"""The names of the ASVspoof 5 document: as written there, and equal to the engine."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from hitmiss import metrics
from hitmiss.core.errors import AssumedMeaning, DataError, UsageError
from hitmiss.evaluation.protocol import find_protocol, read_trials
from hitmiss.protocols.asvspoof5 import (
    OFFICIAL,
    bootstrap_ci,
    compute_eer,
    compute_min_dcf,
    evaluate_per_domain,
    normalize_domain,
    train_domain_probe,
)


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    n = 600
    key = np.where(rng.random(n) < 0.3, "bonafide", "spoof")
    score = rng.normal(0, 1, n) + 1.5 * (key == "bonafide")
    return pd.DataFrame({"score": score, "key": key, "codec": rng.choice(["-", "C01", "C02"], n)})


def test_signatures_are_those_of_the_document() -> None:
    expected = {
        compute_min_dcf: "(scores, labels, c_miss=1.0, c_fa=1.0, p_target=0.05)",
        compute_eer: "(scores, labels)",
        evaluate_per_domain: "(df, score_col='score', label_col='key', domain_col='codec')",
        train_domain_probe: "(embeddings, domain_labels)",
    }
    for function, text in expected.items():
        given = inspect.signature(function).parameters.values()
        assert all(p.name == "bonafide" for p in given if p.kind is p.KEYWORD_ONLY)
        plain = [p.replace(annotation=p.empty) for p in given if p.kind is not p.KEYWORD_ONLY]
        assert str(inspect.Signature(plain)) == text
    assert list(inspect.signature(bootstrap_ci).parameters)[:5] == [
        "scores",
        "labels",
        "metric_fn",
        "n_bootstrap",
        "ci",
    ]


def test_booleans_and_words_mean_bonafide_and_integers_follow_the_docstring(frame: pd.DataFrame) -> None:
    is_bonafide = frame["key"] == "bonafide"
    by_word = compute_eer(frame["score"], frame["key"])
    with pytest.warns(AssumedMeaning, match="True = bona fide, False = spoof"):
        by_bool = compute_eer(frame["score"], is_bonafide)
    with pytest.warns(AssumedMeaning, match="0 = bona fide, 1 = spoof"):
        by_number = compute_eer(frame["score"], np.where(is_bonafide, 0, 1))
    assert by_word == by_bool == by_number
    assert by_word[0] == metrics.eer(is_bonafide, frame["score"], ties="official") < 0.5


@pytest.mark.parametrize(
    ("labels", "bonafide"), [((0, 1), 0), ((1, 0), 1), ((True, False), True), ((False, True), False), ((1.0, 0.0), 1)]
)
def test_a_declared_label_is_read_without_a_warning(frame: pd.DataFrame, labels: tuple, bonafide: object) -> None:  # type: ignore[type-arg]
    given = np.where(frame["key"] == "bonafide", *labels)
    for function in (compute_eer, compute_min_dcf):
        assert function(frame["score"], given, bonafide=bonafide) == function(frame["score"], frame["key"])
    numbered = frame.assign(key=given)
    pd.testing.assert_frame_equal(evaluate_per_domain(numbered, bonafide=bonafide), evaluate_per_domain(frame))
    few = bootstrap_ci(frame["score"], given, compute_eer, 50, bonafide=bonafide)
    assert few == bootstrap_ci(frame["score"], frame["key"], compute_eer, 50)


def test_a_wrong_word_or_number_is_refused() -> None:
    with pytest.raises(DataError, match=r"1 labels are .bonafied.*did you mean .bonafide"):
        compute_eer([1.0, 0.0], ["bonafied", "spoof"])
    with pytest.raises(DataError, match="found 2"):
        compute_eer([1.0, 0.0], [0, 2])


def test_min_dcf_has_the_documents_parameters_and_says_so(frame: pd.DataFrame) -> None:
    literal = compute_min_dcf(frame["score"], frame["key"])
    official = compute_min_dcf(frame["score"], frame["key"], **OFFICIAL)
    positive = frame["key"] == "bonafide"
    assert literal == metrics.min_dcf(positive, frame["score"], p_target=0.05, c_miss=1, c_fa=1)
    assert official == metrics.min_dcf(positive, frame["score"])
    assert "c_fa=1)" in repr(literal) and "c_fa=10)" in repr(official)


def test_per_domain_by_position_whatever_the_index(frame: pd.DataFrame) -> None:
    plain = evaluate_per_domain(frame)
    shuffled = frame.sample(frac=1.0, random_state=1)
    pd.testing.assert_frame_equal(plain, evaluate_per_domain(shuffled))
    pd.testing.assert_frame_equal(plain, evaluate_per_domain(pl.DataFrame(frame.to_dict("list"))))
    assert list(plain.columns)[:4] == ["domain", "n_samples", "eer", "min_dcf"]
    assert list(plain["domain"]) == ["C01", "C02", "NONE"] and plain["n_samples"].sum() == len(frame)
    part = frame[frame["codec"] == "-"]
    assert (
        plain.set_index("domain").loc["NONE", "eer"]
        == compute_eer(part["score"], part["key"] == "bonafide", bonafide=True)[0]
    )


def test_a_domain_with_one_class_is_undefined_not_a_half() -> None:
    frame = pd.DataFrame({"score": [1.0, 0.0, 2.0], "key": ["bonafide", "spoof", "spoof"], "codec": ["-", "-", "C01"]})
    row = evaluate_per_domain(frame).set_index("domain").loc["C01"]
    assert np.isnan(row["eer"]) and np.isnan(row["min_dcf"]) and row["note"] == "undefined: only spoof here"
    with pytest.raises(UsageError, match="no column 'quality'"):
        evaluate_per_domain(frame, domain_col="quality")


def test_uncoded_trials_are_units_of_their_own_and_copies_belong_to_their_original(tmp_path: Path) -> None:
    rows = [
        "S1 E_1 F - 0 - - bonafide bonafide -",
        "S1 E_2 F C01 1 E_1 - bonafide bonafide -",
        "S2 E_3 M - 0 - AC1 A17 spoof -",
    ]
    (tmp_path / "key.tsv").write_text("\n".join(rows) + "\n")
    (tmp_path / "scores.tsv").write_text("filename\tcm-score\nE_1\t1\nE_2\t2\nE_3\t0\n")
    trials = read_trials(tmp_path / "scores.tsv", tmp_path / "key.tsv", find_protocol("asvspoof5"))
    assert trials.column("codec_seed").to_list() == ["E_1", "E_1", "E_3"]


def test_zero_is_uncoded_only_for_qualities() -> None:
    assert normalize_domain([0, 3, "-"], "codec_q").tolist() == ["NONE", "3", "NONE"]
    assert normalize_domain(["0"], "codec").tolist() == ["0"]


def test_probe_is_the_documented_snippet() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(120, 6)), np.repeat(["C01", "C02", "-"], 40)
    x[:, 0] += (y == "C01") * 1.5
    expected = cross_val_score(LogisticRegression(max_iter=1000), x, y, cv=5).mean()
    assert train_domain_probe(x, y) == expected


@pytest.mark.parametrize("ours", [compute_eer, metrics.roc_auc, metrics.eer])
def test_our_metrics_take_the_fast_way_and_agree_with_brute_force(frame: pd.DataFrame, ours) -> None:  # type: ignore[no-untyped-def]
    labels = frame["key"]

    def slow(scores, labels):  # type: ignore[no-untyped-def]
        return ours(labels == "bonafide", scores) if ours in (metrics.roc_auc, metrics.eer) else ours(scores, labels)

    fast = bootstrap_ci(frame["score"], labels, ours, n_bootstrap=2000)
    brute = bootstrap_ci(frame["score"], labels, slow, n_bootstrap=2000)
    assert fast[0] == brute[0]
    assert fast[1:] == pytest.approx(brute[1:], abs=0.012)


def test_any_callable_gets_the_labels_as_they_were_given(frame: pd.DataFrame) -> None:
    seen: set[str] = set()

    def spread(scores, labels):  # type: ignore[no-untyped-def]
        seen.update(labels.tolist())
        return scores[labels == "bonafide"].mean() - scores[labels == "spoof"].mean()

    estimate, low, high = bootstrap_ci(frame["score"], frame["key"], spread, n_bootstrap=300)
    assert seen == {"bonafide", "spoof"} and low < estimate < high
    assert bootstrap_ci(frame["score"], frame["key"], spread, 300, seed=1) != (estimate, low, high)
    assert bootstrap_ci(frame["score"], frame["key"], spread, 300) == (estimate, low, high)


def test_decision_metrics_are_refused_with_the_way_out(frame: pd.DataFrame) -> None:
    with pytest.raises(UsageError, match="needs decisions"):
        bootstrap_ci(frame["score"], frame["key"], metrics.f1)
