"""A threshold is on the scale and in the direction of the user's file: compared with scikit-learn on the raw file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score

import hitmiss as hm
from hitmiss.cli.main import run
from hitmiss.core.errors import UsageError
from hitmiss.core.tally import Tally
from hitmiss.derive.thresholds import best_threshold
from hitmiss.reports.displays.det import DetDisplay
from hitmiss.reports.displays.histogram import HistogramDisplay

Ask = Callable[..., Any]
N = 300


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Iterator[Ask]:
    """Run a command and return its JSON."""

    def asked(*words: object) -> Any:
        code = run([str(word) for word in words])
        out, errors = capsys.readouterr()
        assert code == 0, errors
        return json.loads(out)

    yield asked


def trials(seed: int = 3, n: int = N) -> pl.DataFrame:
    """Rounded P(fake) of real and fake items, with many ties at every threshold that is used here."""
    rng = np.random.default_rng(seed)
    fake = rng.random(n) < 0.45
    log_odds = rng.normal(0, 1.2, n) + np.where(fake, 1.2, -1.2)
    score = np.round(1 / (1 + np.exp(-log_odds)), 1)
    return pl.DataFrame({"id": [f"t{i}" for i in range(n)], "label": np.where(fake, "fake", "real"), "score": score})


def written(folder: Path, frame: pl.DataFrame, name: str = "p.csv") -> Path:
    frame.write_csv(folder / name)
    return folder / name


def values(results: dict[str, Any]) -> dict[str, float]:
    return {e["metric"]: e["value"] for e in results["estimates"] if not e["slice"]}


def truth(frame: pl.DataFrame, threshold: float, positive: str) -> dict[str, float]:
    said = np.where(frame["score"].to_numpy() >= threshold, "fake", "real")
    label = frame["label"].to_numpy()
    return {"f1": f1_score(label, said, pos_label=positive), "accuracy": accuracy_score(label, said)}


KINDS = {
    "raw": lambda f: f,
    "probability": lambda f: f,
    "logit": lambda f: f.with_columns(score=(pl.col("score").clip(0.05, 0.95) * 20 - 10).round(0)),
}
LIMITS = {"raw": 0.3, "probability": 0.3, "logit": 2.0}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("positive", ["real", "fake"])
@pytest.mark.parametrize("way", [(), ("--stream",)])
def test_a_threshold_is_one_of_the_file(tmp_path: Path, ask: Ask, kind: str, positive: str, way: tuple[str]) -> None:
    frame, limit = KINDS[kind](trials()), LIMITS[kind]
    assert (frame["score"] == limit).any(), "a tie at the threshold"
    words = [written(tmp_path, frame), "--positive", positive, "--higher", "fake", "--score-kind", kind, *way]
    found = ask("score", *words, "--threshold", limit, "-m", "f1", "-m", "accuracy", "--json")
    assert values(found) == pytest.approx(truth(frame, limit, positive))
    assert found["decisions"] == f"score >= {limit:g} means fake, below it real (given)"
    assert f"|threshold:{limit!r} (given)|" in found["signature"]


def test_the_terminal_says_what_a_threshold_means(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, trials())
    words = ["score", str(path), "--positive", "real", "--threshold", "0.3", "-m", "f1"]
    assert run([*words, "--higher", "fake"]) == 0
    out = capsys.readouterr().out
    assert "higher = fake" in out and "score >= 0.3 means fake, below it real (given)" in out
    assert run([*words, "--higher", "real"]) == 0
    assert "score >= 0.3 means real, below it fake (given)" in capsys.readouterr().out


@pytest.mark.extras
def test_duckdb_decides_as_the_file_says(tmp_path: Path, ask: Ask) -> None:
    pytest.importorskip("duckdb")
    frame = trials()
    words = [written(tmp_path, frame), "--positive", "real", "--higher", "fake", "--score-kind", "probability"]
    found = ask("score", *words, "--engine", "duckdb", "--threshold", 0.3, "-m", "f1", "-m", "accuracy", "--json")
    assert values(found) == pytest.approx(truth(frame, 0.3, "real"))


@pytest.mark.parametrize("kind", ["raw", "probability"])
def test_python_decides_as_the_file_says(tmp_path: Path, kind: str) -> None:
    frame = trials()
    read = hm.read(written(tmp_path, frame), positive="real", higher="fake", score_kind=kind)
    decided = hm.decide(read, 0.3)
    assert decided.column("decision").to_list() == (frame["score"] < 0.3).cast(int).to_list()
    assert decided.header.threshold is not None and decided.header.threshold.value == 0.3


def test_a_threshold_lost_in_rounding_is_refused(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": ["a", "b"], "label": ["fake", "real"], "score": [0.9, 0.0]})
    read = hm.read(written(tmp_path, frame), positive="real", higher="fake", score_kind="probability")
    with pytest.raises(UsageError) as caught:
        hm.decide(read, 1e-20)
    assert caught.value.code == "threshold-too-small"


def test_gate_compare_and_verify_take_the_thresholds_of_the_file(
    tmp_path: Path, ask: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = trials()
    path = written(tmp_path, frame)
    reading = ["--positive", "real", "--higher", "fake"]
    known = {t: truth(frame, t, "real")["accuracy"] for t in (0.3, 0.6)}
    gate = ["gate", str(path), *reading, "--threshold", "0.3"]
    rules = {0: f"accuracy < {known[0.3] - 1e-9}", 1: f"accuracy < {known[0.3] + 1e-9}"}
    for code, rule in rules.items():
        assert run([*gate, "--fail-if", rule]) == code, capsys.readouterr().out
    capsys.readouterr()
    pair = ask("compare", path, path, *reading, "--threshold", 0.3, "--threshold", 0.6, "-m", "accuracy", "--json")
    (row,) = [d for d in pair["differences"] if not d["slice"]]
    assert (row["a"], row["b"]) == pytest.approx((known[0.3], known[0.6]))
    claim = tmp_path / "claim.json"
    found = ask("score", path, *reading, "--threshold", 0.3, "-m", "accuracy", "--json", "-o", claim)
    assert run(["verify", str(claim), str(path)]) == 0, capsys.readouterr().out
    assert run(["verify", found["signature"], str(path)]) == 0, capsys.readouterr().out
    again = hm.Results.load(claim)
    assert again.decided == found["decisions"]


@pytest.mark.parametrize("kind", ["raw", "probability"])
def test_the_threshold_of_a_metric_is_one_of_the_file(tmp_path: Path, ask: Ask, kind: str) -> None:
    frame = trials()
    words = [written(tmp_path, frame), "--positive", "real", "--higher", "fake", "--score-kind", kind]
    costs = "p_target=0.5, c_miss=1, c_fa=1, normalize=False"
    found = ask("score", *words, "-m", f"dcf_at(threshold=0.3, {costs})", "--json")
    said = np.where(frame["score"].to_numpy() >= 0.3, "fake", "real")
    label = frame["label"].to_numpy()
    miss, alarm = (said[label == "real"] == "fake").mean(), (said[label == "fake"] == "real").mean()
    assert [e["value"] for e in found["estimates"]] == pytest.approx([0.5 * miss + 0.5 * alarm])
    streamed = ask("score", *words, "-m", f"dcf_at(threshold=0.3, {costs})", "--json", "--stream")
    assert streamed["estimates"][0]["value"] == found["estimates"][0]["value"]


# ----------------------------------------------------------------------
# Bands: two thresholds of the file, given or chosen.


def verdicts(score: np.ndarray, low: float, high: float) -> np.ndarray:  # type: ignore[type-arg]
    """The verdicts where a higher score means real."""
    return np.where(score >= high, "real", np.where(score < low, "fake", "uncertain"))


def outcomes(label: np.ndarray, said: np.ndarray) -> dict[str, dict[str, int]]:  # type: ignore[type-arg]
    names = ["fake", "real", "uncertain"]
    counted = confusion_matrix(label, said, labels=names)
    return {truth: dict(zip(names, map(int, counted[at]), strict=True)) for at, truth in enumerate(names[:2])}


def reversed_trials(seed: int = 3) -> pl.DataFrame:
    return trials(seed).with_columns(score=(1 - pl.col("score")).round(1))


@pytest.mark.parametrize("kind", ["raw", "probability"])
def test_two_thresholds_are_those_of_the_file(tmp_path: Path, ask: Ask, kind: str) -> None:
    frame = reversed_trials()
    words = [written(tmp_path, frame), "--positive", "fake", "--higher", "real", "--score-kind", kind]
    found = ask("triage", *words, "--thresholds", 0.3, 0.8, "--bootstrap", 0, "--json")
    told = outcomes(frame["label"].to_numpy(), verdicts(frame["score"].to_numpy(), 0.3, 0.8))
    for name, row in told.items():
        assert {said: found["confusion"][0][name][said] for said in row} == row
    assert found["decisions"] == "score >= 0.8 means real, below 0.3 fake, between them uncertain (given)"


@pytest.mark.parametrize("kind", ["raw", "probability"])
@pytest.mark.parametrize(
    "way",
    [
        ("rates", "--max-slip", 0.1, "--max-false-flag", 0.1),
        ("cost", "--costs", 20, 5, 1),
        ("budget", "--looks", "30/100"),
    ],
)
def test_chosen_thresholds_can_be_used_on_the_file(
    tmp_path: Path, ask: Ask, kind: str, way: tuple[object, ...]
) -> None:
    dev, test = reversed_trials(5), reversed_trials(6)
    words = [written(tmp_path, test), "--positive", "fake", "--higher", "real", "--score-kind", kind, "--bootstrap", 0]
    found = ask("triage", *words, "--choose", *way, "--choose-on", written(tmp_path, dev, "dev.csv"), "--json")
    point = found["choice"]["point"]
    low, high = point["bands"]["low"], point["bands"]["high"]
    label, said = dev["label"].to_numpy(), verdicts(dev["score"].to_numpy(), low, high)
    assert (said[label == "fake"] == "real").mean() == pytest.approx(rate(point["slip"]))
    assert (said[label == "real"] == "fake").mean() == pytest.approx(rate(point["false_flag"]))
    assert (said == "uncertain").mean() == pytest.approx(rate(point["review"]))
    told = outcomes(test["label"].to_numpy(), verdicts(test["score"].to_numpy(), low, high))
    for name, row in told.items():
        assert {said: found["confusion"][0][name][said] for said in row} == row


def rate(value: object) -> float:
    """A share in JSON, as a number or as its counts."""
    if isinstance(value, dict):
        return float(value["hits"]) / float(value["of"])
    assert isinstance(value, int | float)
    return float(value)


# ----------------------------------------------------------------------
# Tuning: the threshold that is printed, and written, is one of the file.


def predictions(seed: int, decimals: int) -> pl.DataFrame:
    """P(non-toxic) of texts."""
    rng = np.random.default_rng(seed)
    toxic = rng.random(N) < 0.4
    p = 1 / (1 + np.exp(rng.normal(0, 1.2, N) + np.where(toxic, 1.0, -1.0)))
    return pl.DataFrame(
        {"id": [f"x{i}" for i in range(N)], "y_true": toxic.astype(int), "y_prob": np.round(p, decimals)}
    )


@pytest.mark.parametrize("decimals", [1, 2, 17])
@pytest.mark.parametrize("search", ["exact", "grid"])
def test_a_tuned_threshold_can_be_used_on_the_file(tmp_path: Path, ask: Ask, decimals: int, search: str) -> None:
    dev, test = predictions(1, decimals), predictions(2, decimals)
    paths = [written(tmp_path, f, n) for f, n in ((dev, "dev_en.csv"), (test, "test_en.csv"))]
    words = ["threshold", paths[0], "--test", paths[1], "--higher", "non-toxic", "--search", search, "--json"]
    (row,) = ask(*words, "--bootstrap", 0, "--output-dir", tmp_path / "out")["thresholds"]

    def f1(frame: pl.DataFrame, threshold: float) -> float:
        return float(f1_score(frame["y_true"], (frame["y_prob"] < threshold).cast(int), zero_division=0.0))

    tried = [*dev["y_prob"].unique(), np.inf] if search == "exact" else [k / 100 for k in range(10, 91)]
    assert row["choices"][search]["value"] == pytest.approx(max(f1(dev, t) for t in tried))
    assert f1(dev, row["threshold"]) == pytest.approx(row["choices"][search]["value"])
    assert f1(test, row["threshold"]) == pytest.approx(row["test"])
    assert (row["at_default"], row["test_at_default"]) == pytest.approx((f1(dev, 0.5), f1(test, 0.5)))
    stored = pl.read_csv(tmp_path / "out" / "test_en.csv")
    assert stored["best_threshold"].unique().to_list() == [row["threshold"]]
    board = ask("toxicity", tmp_path / "out" / "test_en.csv", "--higher", "non-toxic", "--bootstrap", 0, "--json")
    shown = [e["value"] for e in board["estimates"] if e["metric"] == "f1"]
    assert shown[0] == pytest.approx(row["test"])
    assert board["decisions"].startswith("score >= ") and "means non-toxic, below it toxic" in board["decisions"]


def test_the_best_threshold_of_a_reversed_tally_is_the_lowest_of_the_file() -> None:
    scale = hm.read(
        pl.DataFrame({"id": list("abcd"), "label": ["real", "real", "fake", "fake"], "score": [0.1, 0.2, 0.6, 0.7]}),
        positive="real",
        higher="fake",
    ).header.scale
    tally = Tally.of([1, 1, 0, 0], [-0.1, -0.2, -0.6, -0.7])
    assert best_threshold(tally, "f1", scale=scale).threshold == 0.6
    everything = Tally.of([1, 1, 1, 0], [-0.9, -0.2, -0.6, -0.1])
    assert best_threshold(everything, "f1", scale=scale).threshold == np.inf


# ----------------------------------------------------------------------
# Drift, figures, and the direction of scores.


def test_the_frozen_threshold_of_a_drift_is_one_of_the_file(tmp_path: Path) -> None:
    clean = trials().with_columns(manipulation=pl.lit("clean"), source=pl.col("id"))
    noisy = trials(8).with_columns(
        pl.Series("label", clean["label"]), manipulation=pl.lit("noise"), source=pl.col("id")
    )
    both = pl.concat([clean, noisy.with_columns(id=pl.col("id") + "n")])
    read = hm.read(
        written(tmp_path, both),
        positive="real",
        higher="fake",
        score_kind="probability",
        slices=["manipulation", "source"],
    )
    found = hm.drift(read, "manipulation", threshold=0.3, bootstrap=0)
    for name, frame in (("clean", clean), ("noise", noisy)):
        accepted = frame["score"].to_numpy() < 0.3
        fake = frame["label"].to_numpy() == "fake"
        assert found.one("far", manipulation=name).value == pytest.approx(accepted[fake].mean())
        assert found.one("frr", manipulation=name).value == pytest.approx(1 - accepted[~fake].mean())
    assert any("score < 0.3" in warning for warning in found.warnings)


@pytest.mark.parametrize("kind", ["raw", "probability"])
def test_figures_show_the_scores_of_the_file(tmp_path: Path, kind: str) -> None:
    frame = trials()
    decided = hm.decide(hm.read(written(tmp_path, frame), positive="real", higher="fake", score_kind=kind), 0.3)
    drawn = HistogramDisplay.from_trials(decided)
    assert (drawn.edges[0], drawn.edges[-1]) == pytest.approx((frame["score"].min(), frame["score"].max()))
    assert drawn.higher == "fake" and np.all(np.diff(drawn.edges) > 0)
    middle = (drawn.edges[:-1] + drawn.edges[1:]) / 2
    assert drawn.positives @ middle < drawn.negatives @ middle, "real items have the lower scores"
    again = HistogramDisplay.from_dict(drawn.to_dict())
    assert again.higher == "fake"
    points = {p.label: p for p in DetDisplay.from_trials(decided).points}
    accepted = frame["score"].to_numpy() <= points["threshold"].threshold + 1e-9
    assert accepted.tolist() == (frame["score"].to_numpy() < 0.3).tolist()


@pytest.mark.parametrize("way", [(), ("--stream",)])
@pytest.mark.parametrize("metric", ["roc_auc", "eer"])
def test_a_coin_flip_shows_no_direction(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], way: tuple[str], metric: str
) -> None:
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        {"id": [f"t{i}" for i in range(400)], "label": ["bonafide", "spoof"] * 200, "score": rng.normal(size=400)}
    )
    assert run(["score", str(written(tmp_path, frame)), "-m", metric, *way]) == 0
    out = capsys.readouterr().out
    assert "Higher scores go with the positive class" not in out
    (line,) = [line for line in out.splitlines() if "direction:" in line]
    assert "?" in line and "not shown" in line
    told = frame.with_columns(score=pl.col("score") + 3.0 * (pl.col("label") == "bonafide"))
    assert run(["score", str(written(tmp_path, told)), "-m", metric, *way]) == 0
    assert "✓ direction: Higher scores go with the positive class." in capsys.readouterr().out
