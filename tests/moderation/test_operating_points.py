"""Thresholds as they are chosen in operation: costs, F-beta, precision at recall, a review queue; by scikit-learn."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import fbeta_score, precision_score, recall_score

from hitmiss.cli.main import run

Capture = pytest.CaptureFixture[str]
Part = dict[str, tuple[np.ndarray, np.ndarray]]


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str, Part, Part]:
    rng = np.random.default_rng(8)
    sides: list[Part] = []
    for name in ("val", "test"):
        rows, own = ["id,language,y_true,y_prob"], {}
        for language, n in (("en", 300), ("tr", 200)):
            label = (rng.random(n) < 0.3).astype(int)
            score = np.round(norm.cdf(rng.normal(size=n) + 1.5 * label - 1.0), 4)
            own[language] = (label, score)
            rows += [f"{language}{i},{language},{y},{s}" for i, (y, s) in enumerate(zip(label, score, strict=True))]
        (tmp_path / f"{name}.csv").write_text("\n".join(rows) + "\n")
        sides.append(own)
    return str(tmp_path / "val.csv"), str(tmp_path / "test.csv"), sides[0], sides[1]


def told(capsys: Capture, *words: str) -> dict[str, dict[str, object]]:
    assert run(["threshold", *words, "--bootstrap", "0", "--json"]) == 0
    return {row["group"]: row for row in json.loads(capsys.readouterr().out)["thresholds"]}


def test_f_beta_and_costs_are_the_best_of_all_thresholds(files: tuple[str, str, Part, Part], capsys: Capture) -> None:
    found = told(capsys, files[0], "--maximize", "fbeta(beta=2)")
    costs = told(capsys, files[0], "--maximize", "decision_cost(c_fp=1,c_fn=5)")
    for language, (label, score) in files[2].items():
        best = max(fbeta_score(label, score >= t, beta=2) for t in score)
        assert found[language]["choices"]["exact"]["value"] == pytest.approx(best, abs=1e-12)  # type: ignore[index]
        least = min(np.mean((score >= t) & (label == 0)) + 5 * np.mean((score < t) & (label == 1)) for t in score)
        assert costs[language]["choices"]["exact"]["value"] == pytest.approx(least, abs=1e-12)  # type: ignore[index]


def test_the_best_precision_at_a_recall(files: tuple[str, str, Part, Part], capsys: Capture) -> None:
    found = told(capsys, files[0], "--maximize", "precision", "--keep", "recall >= 0.8")
    for language, (label, score) in files[2].items():
        said = [score >= t for t in score]
        best = max(precision_score(label, s) for s in said if recall_score(label, s) >= 0.8)
        assert found[language]["choices"]["exact"]["value"] == pytest.approx(best, abs=1e-12)  # type: ignore[index]


def test_a_queue_is_filled_and_judged_on_test(files: tuple[str, str, Part, Part], capsys: Capture) -> None:
    """300 alerts a day of 2,000 posts with 5 % toxic ones, and 100 of 1,000."""
    words = ["--capacity", "en=300", "--capacity", "tr=100", "--volume", "en=2000", "--volume", "tr=1000"]
    found = told(capsys, files[0], "--test", files[1], *words, "--prevalence", "5%")
    for language, room, items in (("en", 300, 2000), ("tr", 100, 1000)):
        row = found[language]
        label, score = files[2][language]

        def flagged(t: float, label: np.ndarray = label, score: np.ndarray = score) -> float:
            return float(0.05 * np.mean(score[label == 1] >= t) + 0.95 * np.mean(score[label == 0] >= t))

        fits = [t for t in score if items * flagged(t) <= room]
        assert row["threshold"] == min(fits), "the lowest threshold that fits, so the most recall"
        label, score = files[3][language]
        caught, alarms = (np.mean(score[label == k] >= row["threshold"]) for k in (1, 0))
        load = row["load"]
        queue, precision = load["queue"], load["precision"]  # type: ignore[index]
        share = 0.05 * caught + 0.95 * alarms
        assert queue["value"] == pytest.approx(items * share, abs=1e-9)
        assert precision["value"] == pytest.approx(0.05 * caught / share, abs=1e-12)
        assert queue["low"] < queue["value"] < queue["high"]
        assert load["recall"]["value"] == pytest.approx(caught, abs=1e-12)  # type: ignore[index]


def test_what_is_not_said_of_every_group_is_refused(files: tuple[str, str, Part, Part], capsys: Capture) -> None:
    for words in (
        ["--capacity", "300", "--volume", "2000"],
        ["--capacity", "en=300", "--volume", "en=2000"],
        ["--capacity", "en=300"],
        ["--prevalence", "150%"],
        ["--keep", "recall >= 0.8", "--guarantee", "fpr <= 0.1"],
        ["--volume", "en=many", "--volume", "tr=1"],
        ["--prevalence", "fr=1%"],
        ["--keep", "worst recall >= 0.8"],
    ):
        assert run(["threshold", files[0], *words]) == 2, words
    assert run(["threshold", files[0], "--keep", "precision > 1.0", "--maximize", "recall"]) in (2, 3)
    capsys.readouterr()


def test_queues_in_use_lie_within_their_intervals() -> None:
    """Gaussian scores, whose true rates are known: 95 % intervals of the queue hold at least 93 of 100 times."""
    from hitmiss.core.sampling import SamplingPlan
    from hitmiss.core.trials import Trials
    from hitmiss.derive.decisions import at_threshold
    from hitmiss.engine.tuning import InUse, load_of

    rng, held, repeats = np.random.default_rng(4), 0, 300
    true = 1000 * (0.02 * norm.sf(1.0 - 1.5) + 0.98 * norm.sf(1.0))
    for _ in range(repeats):
        label = np.repeat([1, 0], [60, 140])
        trials = at_threshold(Trials.of(label, rng.normal(size=200) + 1.5 * label), 1.0)
        queue = load_of(trials, InUse(0.02, True, 1000.0), SamplingPlan(), True).queue
        assert queue is not None and queue.low is not None and queue.high is not None
        held += queue.low <= true <= queue.high
    assert held >= 0.93 * repeats
