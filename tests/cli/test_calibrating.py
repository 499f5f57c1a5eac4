"""`hitmiss score --calibrate-on` for every kind of scores, against an independent logistic regression."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

import hitmiss as hm
from hitmiss.cli.main import run
from hitmiss.core.errors import DataError

Ask = Callable[..., Any]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Run `hitmiss score … --json` and return its JSON."""

    def asked(*words: object) -> Any:
        code = run(["score", *map(str, words), "--json"])
        out, errors = capsys.readouterr()
        assert code == 0, errors
        return json.loads(out)

    return asked


def log_odds(seed: int, n: int = 900) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    """Labels, and log-odds that are far too sure of themselves."""
    rng = np.random.default_rng(seed)
    label = rng.random(n) < 0.3
    return label, 4 * (rng.normal(0, 1.2, n) + np.where(label, 1.4, -1.0)) + 3


def saved(path: Path, label: np.ndarray, score: np.ndarray) -> Path:  # type: ignore[type-arg]
    ids = [f"{path.stem}{i}" for i in range(len(label))]
    pl.DataFrame({"id": ids, "label": np.where(label, "bonafide", "spoof"), "score": score}).write_csv(path)
    return path


def softmax(z: np.ndarray, saturates: bool) -> np.ndarray:  # type: ignore[type-arg]
    """Probabilities; of single precision, where many are exactly 1."""
    p = 1 / (1 + np.exp(-z))
    return p.astype(np.float32).astype(np.float64) if saturates else p


def fitted(label: np.ndarray, x: np.ndarray, other: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    """The likelihood ratios of other scores by logistic regression with both classes of equal weight."""
    model = LogisticRegression(C=np.inf, class_weight="balanced", tol=1e-10, max_iter=10_000)
    spread = x.std()
    return np.asarray(model.fit(x[:, None] / spread, label).decision_function(other[:, None] / spread))


def cllr(label: np.ndarray, llr: np.ndarray) -> float:  # type: ignore[type-arg]
    sides = np.logaddexp(0, -llr[label]).mean(), np.logaddexp(0, llr[~label]).mean()
    return float(sum(sides) / 2 / math.log(2))


def of(found: dict[str, Any], metric: str) -> dict[str, float]:
    return {e["run"]["calibration"]: e["value"] for e in found["estimates"] if e["metric"] == metric}


@pytest.mark.parametrize("kind", ["raw", "logit", "llr"])
def test_cllr_is_measured_after_the_calibration(tmp_path: Path, ask: Ask, kind: str) -> None:
    dev, test = log_odds(1), log_odds(2)
    words = [saved(tmp_path / "test.csv", *test), "--calibrate-on", saved(tmp_path / "dev.csv", *dev)]
    found = ask(*words, "--score-kind", kind, "-m", "cllr", "-m", "eer")
    expected = {"after affine": cllr(test[0], fitted(*dev, test[1]))}
    if kind == "llr":
        expected["before"] = cllr(*test)
    assert of(found, "cllr") == pytest.approx(expected, abs=1e-6)
    assert len(of(found, "eer")) == 2
    alone = ask(*words, "--score-kind", kind, "-m", "cllr")
    assert of(alone, "cllr") == of(found, "cllr")


@pytest.mark.parametrize(("saturates", "higher"), [(False, "bonafide"), (True, "bonafide"), (False, "spoof")])
def test_probabilities_are_fitted_as_log_odds(tmp_path: Path, ask: Ask, saturates: bool, higher: str) -> None:
    sets = [log_odds(3), log_odds(4)]
    sign = 1 if higher == "bonafide" else -1
    given = [softmax(sign * z, saturates) for _, z in sets]
    inner = given[0][(given[0] > 0) & (given[0] < 1)]
    low, high = inner.min() / 2, (1 - inner.max()) / 2
    assert ((given[0] == 1).sum() > 5) == saturates

    def mapped(p: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        return sign * (np.log(np.where(p == 0, low, p)) - np.log(np.where(p == 1, high, 1 - p)))

    expected = cllr(sets[1][0], fitted(sets[0][0], mapped(given[0]), mapped(given[1])))
    paths = [saved(tmp_path / f"{name}.csv", s[0], p) for name, s, p in zip("ab", sets, given, strict=True)]
    found = ask(
        paths[1],
        "--calibrate-on",
        paths[0],
        "--score-kind",
        "probability",
        "--higher",
        higher,
        "-m",
        "cllr",
        "-m",
        "eer",
    )
    assert of(found, "cllr") == pytest.approx({"after affine": expected}, abs=1e-6)
    before, after = of(found, "eer").values()
    assert before == pytest.approx(after, abs=1e-12)
    (said,) = [w for w in found["warnings"] if "mapped to log-odds" in w]
    assert ("saturated" in said) == saturates


def test_every_kind_of_the_same_scores_gives_the_same_ratios(tmp_path: Path) -> None:
    (label, z), (other, w) = log_odds(5), log_odds(6)
    z, w = z / 4, w / 4
    made = []
    for kind, turn in (("logit", lambda v: v), ("probability", lambda v: softmax(v, False))):
        paths = [saved(tmp_path / f"{kind}{n}.csv", y, turn(v)) for n, y, v in (("d", label, z), ("t", other, w))]
        made.append(hm.calibrate(*(hm.read(p, positive="bonafide", score_kind=kind) for p in paths)))
    np.testing.assert_allclose(made[0].score, made[1].score, rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", ["affine", "pav"])
def test_nothing_advises_to_calibrate_after_calibrating(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], method: str
) -> None:
    words = [saved(tmp_path / "test.csv", *log_odds(7)), "--calibrate-on", saved(tmp_path / "dev.csv", *log_odds(8))]
    assert run(["score", *map(str, words), "-p", "asvspoof5", "--calibration", method, "--bootstrap", "0"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "cllr" in out and "left out" not in out and "add --calibrate-on" not in out
    assert "after the calibration only" in out


def test_raw_scores_that_may_be_probabilities_are_said(tmp_path: Path, ask: Ask) -> None:
    (label, z), (other, w) = log_odds(9), log_odds(10)
    paths = [saved(tmp_path / f"{n}.csv", y, softmax(v, False)) for n, y, v in (("d", label, z), ("t", other, w))]
    words = [paths[1], "--calibrate-on", paths[0], "-m", "cllr"]
    assert any("--score-kind probability" in text for text in ask(*words, "--score-kind", "raw")["warnings"])
    assert not any(
        "--score-kind probability" in text for text in ask(*words, "--score-kind", "probability")["warnings"]
    )


def test_a_fit_set_of_zeros_and_ones_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "d.csv", np.array([True, True, False, False]), np.array([1.0, 0.0, 0.0, 1.0]))
    trials = hm.read(path, positive="bonafide", score_kind="probability")
    with pytest.raises(DataError) as caught:
        hm.calibrate(trials, trials)
    assert caught.value.code == "saturated-scores"


@pytest.mark.parametrize("kind", ["raw", "probability"])
def test_a_threshold_stays_one_of_the_file(tmp_path: Path, ask: Ask, kind: str) -> None:
    (label, z), (other, w) = log_odds(11), log_odds(12)
    given = [softmax(-v, False) for v in (z, w)]
    paths = [saved(tmp_path / f"{n}.csv", y, p) for n, y, p in zip("dt", (label, other), given, strict=True)]
    words = [paths[1], "--calibrate-on", paths[0], "--score-kind", kind, "--higher", "spoof", "--threshold", 0.2]
    found = ask(*words, "-m", "f1", "-m", "cllr")
    expected = f1_score(other, given[1] < 0.2)
    assert of(found, "f1") == pytest.approx({"before": expected, "after affine": expected})
    assert found["decisions"] == "score >= 0.2 means spoof, below it bonafide (given)"


def test_a_fusion_of_probabilities_is_one_of_log_odds() -> None:
    (label, z), rng = log_odds(13), np.random.default_rng(0)
    z, second = z / 4, z / 8 + rng.normal(0, 1, len(z))
    kinds: dict[str, Any] = {"logit": lambda v: v, "probability": lambda v: softmax(v, False)}
    made = []
    for kind, turn in kinds.items():
        head = hm.Header(score_kind=kind)  # type: ignore[arg-type]
        systems = {n: hm.Trials.of(label.astype(int), turn(v), header=head) for n, v in (("a", z), ("b", second))}
        made.append(hm.fuse(systems, systems).score)
    np.testing.assert_allclose(made[0], made[1], rtol=0, atol=1e-8)
