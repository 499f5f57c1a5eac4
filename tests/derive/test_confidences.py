"""Confidences that declared probabilities say: metrics of confidence on files that hold probabilities alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import hitmiss as hm

RNG = np.random.default_rng(5)
LABEL = RNG.integers(0, 2, 300)
P = np.clip(RNG.normal(0.3 + 0.4 * LABEL, 0.25), 0.0, 1.0)
P[:3] = 0.5, 0.0, 1.0


def expected_error(label: np.ndarray, p: np.ndarray, threshold: float = 0.5, bins: int = 10) -> float:
    """Guo et al. 2017, over bins [k/n, (k+1)/n): the confidence is the probability of the decided class."""
    said = p >= threshold
    sure, right = np.where(said, p, 1 - p), said == (label == 1)
    place = np.minimum((sure * bins).astype(int), bins - 1)
    return sum(abs(right[place == k].mean() - sure[place == k].mean()) * np.mean(place == k) for k in np.unique(place))


def trials(p: np.ndarray = P) -> hm.Trials:
    return hm.Trials.of(LABEL, p, header=hm.Header(score_kind="probability"))


@pytest.mark.parametrize("threshold", [None, 0.3])
def test_the_error_of_probabilities(threshold: float | None) -> None:
    made = hm.evaluate(LABEL, P, score_kind="probability", metrics=["ece", "brier", "eer"], threshold=threshold)
    assert made["ece"].value == pytest.approx(expected_error(LABEL, P, threshold or 0.5), abs=1e-12)
    assert made["brier"].value == pytest.approx(np.mean((P - LABEL) ** 2), abs=1e-12)
    assert any("no confidence is stated" in note for note in made.warnings), "what is derived is said"
    assert "confidence:probability" in made.signature
    assert made.decided.startswith(f"score >= {threshold or 0.5}")


def test_probabilities_of_the_negative_class() -> None:
    table = pl.DataFrame({"label": np.where(LABEL == 1, "fake", "real"), "p_real": 1 - P})
    made = hm.evaluate(table, score="p_real", positive="fake", higher="real", score_kind="probability", metrics="ece")
    turned = np.where(1 - P >= 0.5, 0.0, 1.0)  # at 0.5 the class of the column is said
    sure = np.where(turned == 1, P, 1 - P)
    assert made["ece"].value == pytest.approx(float(hm.metrics.ece(LABEL, turned, sure)), abs=1e-12)


def test_measured_compared_and_ranked_alike() -> None:
    worse = np.clip(P + RNG.normal(0, 0.3, len(P)), 0, 1)
    ours, theirs = expected_error(LABEL, P), expected_error(LABEL, worse)
    assert hm.measure(trials(), "ece")["ece"].value == pytest.approx(ours, abs=1e-12)
    found = hm.compare(trials(), trials(worse), "ece", bootstrap=20)
    assert (found["ece"].a, found["ece"].b) == pytest.approx((ours, theirs), abs=1e-12)
    ranked = hm.rank({"a": trials(), "b": trials(worse)}, "ece", bootstrap=20)
    assert ranked["ece", "run=b"].value == pytest.approx(theirs, abs=1e-12)


def test_stated_decisions_and_confidences_are_kept() -> None:
    decision = np.where(RNG.random(len(P)) < 0.1, -1, RNG.integers(0, 2, len(P)))
    of_decisions = trials().put(decision=pl.Series(decision, dtype=pl.Int8))
    sure = np.where(decision == 1, P, 1 - P)
    own = hm.metrics.ece(LABEL[decision >= 0], decision[decision >= 0], sure[decision >= 0])
    assert hm.measure(of_decisions, "ece")["ece"].value == pytest.approx(float(own), abs=1e-12)
    stated = of_decisions.put(confidence=pl.Series(np.full(len(P), 0.7)))
    assert hm.measure(stated, "ece").signature.count("confidence:probability") == 0


def test_nothing_is_guessed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(hm.UsageError, match="score_kind='probability'") as raised:
        hm.evaluate(LABEL, P, metrics="ece")
    assert raised.value.code == "no-confidence"
    with pytest.raises(hm.UsageError) as raised:  # accuracy depends on the threshold, which somebody must choose
        hm.evaluate(LABEL, P, score_kind="probability", metrics=["ece", "accuracy"])
    assert raised.value.code == "no-decisions"
    pl.DataFrame({"item": range(len(P)), "label": LABEL, "score": P}).write_csv(tmp_path / "p.csv")
    assert hm.run(["score", str(tmp_path / "p.csv"), "-m", "ece"]) == 2
    assert "--score-kind probability" in capsys.readouterr().err


def test_a_file_of_probabilities_is_measured_and_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, saved = str(tmp_path / "p.csv"), str(tmp_path / "r.json")
    pl.DataFrame({"item": range(len(P)), "label": LABEL, "score": P}).write_csv(file)
    assert hm.run(["score", file, "-m", "ece", "--score-kind", "probability", "-o", saved, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["estimates"][0]["value"] == pytest.approx(expected_error(LABEL, P), abs=1e-12)
    assert hm.run(["verify", saved, file]) == 0
