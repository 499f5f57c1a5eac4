"""Metrics under the names that the field uses, in any spelling; an unknown name gives the nearest ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics as sk

import hitmiss as hm
from hitmiss.cli.main import run
from hitmiss.core.registry import all_metrics, known_name

RNG = np.random.default_rng(1)
LABEL = RNG.integers(0, 2, 300)
SCORE = RNG.normal(LABEL * 1.3, 1.0)
SAID = SCORE >= 0.5
TRUTH = {
    ("auc", "AUC", "auroc", "AUROC", "roc-auc", "ROC_AUC", "RocAuc", "roc_auc_score"): sk.roc_auc_score(LABEL, SCORE),
    ("ap", "AUPRC", "pr_auc", "PR-AUC", "Average Precision"): sk.average_precision_score(LABEL, SCORE),
    ("acc", "Accuracy", "accuracy_score"): sk.accuracy_score(LABEL, SAID),
    ("bacc", "balanced-accuracy"): sk.balanced_accuracy_score(LABEL, SAID),
    ("F1", "f1_score", "F1-Score"): sk.f1_score(LABEL, SAID),
    ("PPV", "Precision"): sk.precision_score(LABEL, SAID),
    ("TPR", "sensitivity", "Recall"): sk.recall_score(LABEL, SAID),
    ("TNR",): sk.recall_score(LABEL, SAID, pos_label=0),
    ("false_positive_rate",): 1 - sk.recall_score(LABEL, SAID, pos_label=0),
    ("miss rate",): 1 - sk.recall_score(LABEL, SAID),
    ("MCC", "matthews_corrcoef"): sk.matthews_corrcoef(LABEL, SAID),
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for names, value in TRUTH.items() for name in names])
def test_the_usual_names_are_understood(name: str, value: float) -> None:
    trials = hm.decide(hm.Trials.of(LABEL, SCORE), 0.5)
    assert hm.measure(trials, name)[0].value == pytest.approx(value, abs=1e-12)


def test_by_command_and_with_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"i{i},{('spoof', 'bonafide')[y]},{s:.8f}" for i, (y, s) in enumerate(zip(LABEL, SCORE, strict=True))]
    (tmp_path / "s.csv").write_text("\n".join(["item,label,score", *lines]) + "\n")
    asked = ["-m", "EER", "-m", "minDCF(c_fa=1, p_target=0.5)", "-m", "AUC"]
    assert run(["score", str(tmp_path / "s.csv"), *asked, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)["estimates"]
    assert [e["metric"] for e in made] == ["eer", "min_dcf(c_fa=1, p_target=0.5)", "roc_auc"]
    assert made[2]["value"] == pytest.approx(sk.roc_auc_score(LABEL, SCORE), abs=1e-6)
    assert run(["gate", str(tmp_path / "s.csv"), "--fail-if", f"AUROC < {made[2]['value'] + 1e-6!r}"]) == 1


def test_no_spelling_means_two_metrics() -> None:
    entries = all_metrics()
    owners: dict[str, set[str]] = {}
    for name, entry in entries.items():
        for word in (name, *entry.also):
            owners.setdefault(word.replace("_", "").lower(), set()).add(name)
    assert {word: names for word, names in owners.items() if len(names) > 1} == {}
    assert all(known_name(name) == name for name in entries), "a metric's own name always means itself"


@pytest.mark.parametrize(("name", "near"), [("aucc", "roc_auc"), ("eeer", "eer"), ("accurcay", "accuracy")])
def test_an_unknown_name_gives_the_three_nearest(name: str, near: str) -> None:
    with pytest.raises(hm.UsageError) as caught:
        hm.measure(hm.Trials.of(LABEL, SCORE), name)
    assert caught.value.code == "unknown-metric"
    given = str(caught.value).partition("did you mean ")[2].partition("?")[0]
    assert given.count("'") == 6 and given.startswith(repr(near))
