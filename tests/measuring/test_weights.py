"""Declared weights: frequency weights equal repeated rows; sampling weights equal scikit-learn and hold the truth."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn import metrics as sk

import hitmiss as hm
from hitmiss.cli.main import run
from hitmiss.core.protocol import Gap
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.registry import find_metric, forget
from hitmiss.core.tally import Tally
from hitmiss.reports.displays.roc import RocDisplay
from hitmiss.stats.forms.base import Form
from hitmiss.stats.units import UnitSample, unit_replicates

Arrays = dict[str, Any]
FREQUENCY, SAMPLING = (("--weight", "w", "--weight-kind", kind) for kind in ("frequency", "sampling"))
METRICS = (
    *(
        "roc_auc",
        "average_precision",
        "eer",
        "eer(ties=interpolated)",
        "eer_threshold",
        "min_dcf",
        "dcf_at(threshold=0.4)",
    ),
    *("tpr_at_fpr(fpr=0.1)", "fpr_at_tpr", "accuracy", "precision", "recall", "specificity", "fpr", "fnr", "f1", "mcc"),
    *(
        "balanced_accuracy",
        "brier",
        "log_loss",
        "ece",
        "brier_confidence",
        "smooth_ece",
        "augrc",
        "coverage",
        "abstain_rate",
    ),
)


def data(n: int = 160, seed: int = 1) -> Arrays:
    """Probabilities with ties, decisions of which some are withheld, confidences and slices; the labels are fixed."""
    rng = np.random.default_rng(seed)
    label = (np.random.default_rng(n).random(n) < 0.45).astype(int)
    score = np.round(1.0 / (1.0 + np.exp(-rng.normal(0.0, 1.2, n) - 1.6 * label + 0.8)), 2)
    decision = np.where(rng.random(n) < 0.08, -1, (score >= 0.5).astype(int))
    return {
        "label": label,
        "score": score,
        "decision": decision,
        "confidence": np.maximum(score, 1.0 - score),
        "codec": rng.choice(["C1", "C2"], n),
        "speaker": rng.choice([f"s{i:02}" for i in range(14)], n),
    }


def whole_weights(n: int, seed: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 4, n)


def odd_weights(n: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).exponential(size=n) * 7.0 + 0.05


def trials(arrays: Arrays, **more: Any) -> hm.Trials:
    return hm.Trials.of(**arrays, header=hm.Header(score_kind="probability"), **more)


def repeated(arrays: Arrays, weights: np.ndarray) -> Arrays:
    return {name: np.repeat(values, weights) for name, values in arrays.items()}


def rows(results: Any) -> list[dict[str, Any]]:
    return json.loads(results.to_json())["estimates"]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "asked", [{}, {"bootstrap": 60}, {"bootstrap": 60, "unit": "speaker"}, {"bootstrap": 40, "interval": "percentile"}]
)
def test_frequency_weights_are_repeated_rows(asked: Arrays) -> None:
    own = data()
    weights = whole_weights(len(own["label"]))
    asked = {**asked, "by": ["codec"], "gap": Gap("codec", ("C1",))}
    metrics = (*METRICS, "aurc", "e_aurc", "eer(ties=official)")
    weighted = hm.measure(trials(own, weight=weights, weight_kind="frequency"), metrics, **asked)
    longer = hm.measure(trials(repeated(own, weights)), metrics, **asked)
    assert rows(weighted) == rows(longer)


def table(folder: Path, name: str, seed: int = 1) -> tuple[Path, Path]:
    """Write a file with weights, and one in which its rows are repeated."""
    own = data(seed=seed)
    n = len(own["label"])
    weights, asked = whole_weights(n), data()  # all systems answer the same questions
    frame = pl.DataFrame(
        {
            "id": [f"u{i:03}" for i in range(n)],
            "label": np.where(asked["label"] == 1, "bonafide", "spoof"),
            "score": own["score"] + 0.3 * asked["label"],
            "codec": asked["codec"],
            "w": weights,
        }
    )
    frame.write_csv(folder / f"{name}.csv")
    longer = frame[np.repeat(np.arange(n), weights)].drop("w")
    number = np.concatenate([np.arange(1, w + 1) for w in weights])
    ids = [i if k == 1 else f"{i}#{k}" for i, k in zip(longer["id"], number, strict=True)]
    longer.with_columns(id=pl.Series(ids)).write_csv(folder / f"{name}_long.csv")
    return folder / f"{name}.csv", folder / f"{name}_long.csv"


def told(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> tuple[str, str]:
    got = run([str(w) for w in words])
    out, err = capsys.readouterr()
    assert got == code, err
    return out, err


def test_a_file_with_frequency_weights_scores_like_the_longer_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short, longer = table(tmp_path, "a")
    asked = (
        "-m",
        "eer",
        "-m",
        "roc_auc",
        "-m",
        "f1",
        "--threshold",
        "0.6",
        "--by",
        "codec",
        "--bootstrap",
        "50",
        "--json",
    )
    one, other = (json.loads(told(capsys, "score", *words, *asked)[0]) for words in ((short, *FREQUENCY), (longer,)))
    assert one["estimates"] == other["estimates"]
    assert "weight:w(frequency" in one["signature"] and '"weight":"w"' in one["signature"]
    streamed = json.loads(told(capsys, "score", short, *FREQUENCY, *asked, "--stream")[0])
    assert streamed["estimates"] == other["estimates"]


def test_pairs_with_frequency_weights_are_those_of_the_longer_files(tmp_path: Path) -> None:
    names = {}
    for kind in (0, 1):
        sides = [table(tmp_path, name, seed)[kind] for name, seed in (("a", 1), ("b", 5))]
        how = {} if kind else {"weight": "w", "weight_kind": "frequency"}
        runs = [hm.decide(hm.read(side, **how), 0.6) for side in sides]
        found = hm.compare(*runs, ["eer", "roc_auc", "accuracy", "f1"], by=["codec"], bootstrap=60)
        names[kind] = json.loads(found.to_json())
    for part in ("differences", "discordances"):
        assert names[0].get(part) == names[1].get(part)
    assert [r for r in names[0].values() if isinstance(r, list)]


def test_sampling_weights_give_the_figures_of_scikit_learn() -> None:
    own = data(400)
    own["decision"] = (own["score"] >= 0.5).astype(int)
    own["score"] = np.clip(own["score"], 0.01, 0.99)
    label, score, decision = own["label"], own["score"], own["decision"]
    weights = odd_weights(len(label))
    found = hm.measure(trials(own, weight=weights, weight_kind="sampling"), METRICS)
    truth = {
        "roc_auc": sk.roc_auc_score(label, score, sample_weight=weights),
        "average_precision": sk.average_precision_score(label, score, sample_weight=weights),
        "accuracy": sk.accuracy_score(label, decision, sample_weight=weights),
        "precision": sk.precision_score(label, decision, sample_weight=weights),
        "recall": sk.recall_score(label, decision, sample_weight=weights),
        "f1": sk.f1_score(label, decision, sample_weight=weights),
        "mcc": sk.matthews_corrcoef(label, decision, sample_weight=weights),
        "balanced_accuracy": sk.balanced_accuracy_score(label, decision, sample_weight=weights),
        "brier": sk.brier_score_loss(label, score, sample_weight=weights),
        "log_loss": sk.log_loss(label, score, sample_weight=weights),
    }
    for name, value in truth.items():
        assert found.one(name).value == pytest.approx(value, abs=1e-12), name


def test_every_metric_uses_sampling_weights_whatever_their_scale() -> None:
    own = data(200)
    weights = odd_weights(200)
    found = {k: hm.measure(trials(own, weight=k * weights, weight_kind="sampling"), METRICS) for k in (1.0, 1000.0)}
    plain = hm.measure(trials(own), METRICS)
    for text in METRICS:
        name, _, settings = text.partition("(")
        arrays = [own[c] for c in find_metric(name).columns]
        value = found[1.0].one(text).value
        assert value == pytest.approx(found[1000.0].one(text).value, abs=1e-12), text
        if not settings:
            assert value == pytest.approx(getattr(hm.metrics, name)(*arrays, weights), abs=1e-12), text
    changed = [text for text in METRICS if found[1.0].one(text).value != plain.one(text).value]
    assert {*METRICS} - {*changed} <= {"eer_threshold"}  # a threshold is one of the scores, whatever they weigh


def test_equal_sampling_weights_change_no_figure() -> None:
    own = data(150)
    weighted = hm.measure(trials(own, weight=np.full(150, 2.5), weight_kind="sampling"), METRICS, by=["codec"])
    plain = hm.measure(trials(own), METRICS, by=["codec"])
    for one, other in zip(weighted, plain, strict=True):
        assert one.value == pytest.approx(other.value, abs=1e-12), one


def test_slices_gaps_and_averages_are_weighted() -> None:
    own = data(300)
    own["decision"] = (own["score"] >= 0.5).astype(int)
    weights = odd_weights(300)
    made = trials(own, weight=weights, weight_kind="sampling")
    found = hm.measure(made, ["accuracy", "roc_auc"], by=["codec"], gap=Gap("codec", ("C1",)), bootstrap=60)
    right = own["decision"] == own["label"]
    shares = {c: np.average(right[own["codec"] == c], weights=weights[own["codec"] == c]) for c in ("C1", "C2")}
    for codec, share in shares.items():
        row = found.one("accuracy", codec=codec)
        assert row.value == pytest.approx(share, abs=1e-12)
        assert row.weight == pytest.approx(weights[own["codec"] == codec].sum())
    averages = {e.average: e for e in found if e.metric == "accuracy" and e.average}
    assert averages["macro"].value == pytest.approx(np.mean([*shares.values()]), abs=1e-12)
    assert averages["gap"].value == pytest.approx(shares["C2"] - shares["C1"], abs=1e-12)
    assert averages["gap"].low < averages["gap"].value < averages["gap"].high


@pytest.mark.parametrize(
    "metric", ["eer", "min_dcf", "tpr_at_fpr(fpr=0.1)", "average_precision", "roc_auc", "min_cllr"]
)
def test_replicates_of_weighted_rows_equal_counting_them_anew(metric: str) -> None:
    from hitmiss.core.registry import resolve
    from hitmiss.engine.prepare import form_of

    rng = np.random.default_rng(4)
    n = 250
    positive, weight = rng.random(n) < 0.4, rng.exponential(size=n) + 0.01
    score = np.round(rng.normal(size=n) + positive, 1)
    _, entry, settings = resolve(metric)
    form = form_of(entry, settings)
    assert isinstance(form, Form)
    for unit in (np.arange(n), rng.integers(0, 20, n)):
        drawn = rng.poisson(1.0, (30, int(unit.max()) + 1)).astype(np.float64)
        found = unit_replicates(UnitSample.of(positive, score, unit, drawn.shape[1], weight), [form], drawn)[0]
        anew = [form.value(Tally.of(positive, score, weight * times[unit])) for times in drawn]
        np.testing.assert_allclose(found, anew, atol=1e-9)


def test_an_interval_with_sampling_weights_has_the_width_of_the_linearised_error() -> None:
    own = data(600)
    own["decision"] = (own["score"] >= 0.5).astype(int)
    weights = odd_weights(600)
    found = hm.measure(trials(own, weight=weights, weight_kind="sampling"), ["accuracy"], bootstrap=400).one("accuracy")
    right = (own["decision"] == own["label"]).astype(float)
    share = np.average(right, weights=weights)
    error = math.sqrt(np.sum((weights * (right - share)) ** 2)) / weights.sum()
    assert found.low is not None and found.high is not None
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.15)
    plain = math.sqrt(share * (1 - share) / 600)
    assert error > 1.2 * plain  # rows of unequal weight say less than as many of equal weight


@pytest.mark.nightly
def test_intervals_with_sampling_weights_hold_the_truth() -> None:
    """A tenth of the cases is hard and makes half of the sample, so its rows weigh a ninth of the others."""
    rng = np.random.default_rng(11)

    def draw(easy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        label = (rng.random(len(easy)) < 0.5).astype(int)
        return label, rng.normal(size=len(easy)) + label * np.where(easy, 3.0, 1.0)

    label, score = draw(rng.random(400_000) < 0.9)
    truth = {"accuracy": float(np.mean((score >= 1.0) == label)), "roc_auc": float(sk.roc_auc_score(label, score))}
    held, sets = dict.fromkeys(truth, 0), 80
    easy = np.arange(240) % 2 == 0
    for seed in range(sets):
        label, score = draw(easy)
        made = hm.Trials.of(
            label, score, decision=(score >= 1.0).astype(int), weight=np.where(easy, 9.0, 1.0), weight_kind="sampling"
        )
        found = hm.measure(made, [*truth], bootstrap=100, seed=seed)
        for name, value in truth.items():
            row = found.one(name)
            held[name] += row.low is not None and row.high is not None and row.low <= value <= row.high
    assert all(0.88 * sets <= n for n in held.values()), held


def test_without_draws_no_interval_ignores_the_weights() -> None:
    own = data(120)
    found = hm.measure(trials(own, weight=odd_weights(120), weight_kind="sampling"), ["accuracy", "roc_auc", "recall"])
    assert all(e.low is None and "sampling weights" in str(e.note) for e in found)


@pytest.mark.parametrize("kind", ["frequency", "sampling"])
def test_a_row_of_weight_0_is_no_row(kind: str) -> None:
    own = data(120)
    weights = np.where(np.arange(120) % 5 == 0, 0, 2)
    kept = weights > 0
    one = hm.measure(trials(own, weight=weights, weight_kind=kind), ["eer", "accuracy"], bootstrap=50)
    own = {name: values[kept] for name, values in own.items()}
    other = hm.measure(trials(own, weight=weights[kept], weight_kind=kind), ["eer", "accuracy"], bootstrap=50)
    assert [e.value for e in one] == [e.value for e in other]
    assert one.one("eer").n == other.one("eer").n


@pytest.mark.parametrize(
    ("cell", "kind"),
    [("-1", "sampling"), ("nan", "sampling"), ("", "sampling"), ("1.5", "frequency"), ("inf", "sampling")],
)
def test_a_weight_that_cannot_be_used_is_refused_with_its_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cell: str, kind: str
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(f"id,label,score,w\na,bonafide,2,1\nb,spoof,1,{cell}\nc,bonafide,0,1\n")
    _, err = told(capsys, "score", path, "-m", "eer", "--weight", "w", "--weight-kind", kind, code=3)
    assert "bad.csv, row 3" in err and f"a {kind} weight is" in err


def test_weights_need_their_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short, _ = table(tmp_path, "a")
    _, err = told(capsys, "score", short, "-m", "eer", "--weight", "w", code=2)
    assert "--weight w --weight-kind frequency" in err and "--weight w --weight-kind sampling" in err
    told(capsys, "score", short, "-m", "eer", "--weight-kind", "sampling", code=2)
    _, err = told(capsys, "score", short, "-m", "eer", "--weight", "ww", "--weight-kind", "sampling", code=3)
    assert "did you mean --weight w?" in err
    with pytest.raises(hm.UsageError, match="weight_kind='sampling'") as fault:
        hm.Trials.of([1, 0], [2.0, 1.0], weight=[1.0, 2.0])
    assert fault.value.code == "weight-kind"


def test_a_column_of_weights_that_is_not_declared_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "said.csv"
    path.write_text("id,label,score,weight\na,bonafide,2,1\nb,spoof,1,3\nc,bonafide,0,1\n")
    for words in (
        ("score", path, "-m", "eer"),
        ("score", path, "-m", "eer", "--stream"),
        ("compare", path, path, "-m", "eer"),
    ):
        out = " ".join(told(capsys, *words)[0].split())
        assert "the column 'weight' is not used as weights; --weight weight --weight-kind" in out, words
    assert any("'weight' is not used" in note for note in hm.read(path).header.notes)
    predictions = tmp_path / "run_en.csv"
    predictions.write_text("id,y_true,y_prob,sample_weight\na,1,0.9,1\nb,0,0.2,3\nc,1,0.4,1\nd,0,0.6,1\n")
    out = " ".join(told(capsys, "toxicity", predictions, "--bootstrap", "0")[0].split())
    assert "the column 'sample_weight' is not used as weights" in out
    out, _ = told(capsys, "score", path, "-m", "eer", "--weight", "weight", "--weight-kind", "frequency")
    assert "is not used" not in out


def test_weights_may_stand_in_the_key(tmp_path: Path) -> None:
    scores, key, both = (tmp_path / name for name in ("s.csv", "k.csv", "b.csv"))
    scores.write_text("id,score\na,2\nb,1\nc,0\nd,1.5\n")
    key.write_text("id,label,w\na,bonafide,1\nb,spoof,3\nc,bonafide,2\nd,spoof,1\n")
    both.write_text("id,label,score,w\na,bonafide,2,1\nb,spoof,1,3\nc,bonafide,0,2\nd,spoof,1.5,1\n")
    how = {"weight": "w", "weight_kind": "sampling"}
    one, other = (
        hm.measure(t, ["roc_auc"]).one("roc_auc") for t in (hm.read(scores, key, **how), hm.read(both, **how))
    )
    assert (
        one.value
        == other.value
        == pytest.approx(sk.roc_auc_score([1, 0, 1, 0], [2, 1, 0, 1.5], sample_weight=[1, 3, 2, 1]))
    )


def test_weights_are_part_of_the_content_and_verify_replays_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short, _ = table(tmp_path, "a")
    made = tmp_path / "made.json"
    for words in (FREQUENCY, SAMPLING):
        told(capsys, "score", short, "-m", "eer", "-m", "roc_auc", "--bootstrap", "40", *words, "-o", made)
        told(capsys, "verify", made, short)
        stored = json.loads(made.read_text())
        assert stored["reading"]["weight_kind"] == words[-1]
        assert ReadSpec.from_plain({k: v for k, v in stored["reading"].items() if not k.startswith("weight")})
    frame = pl.read_csv(short)
    other = tmp_path / "other.csv"
    frame.with_columns(w=pl.col("w") + 1).write_csv(other)
    told(capsys, "verify", made, other, code=1)
    how = {"weight": "w", "weight_kind": "sampling"}
    assert hm.read(frame, **how).content != hm.read(pl.read_csv(other), **how).content


def test_a_pair_has_one_weight() -> None:
    own = data(80)
    items = [f"u{i}" for i in range(80)]
    for kind, weights in (("sampling", odd_weights(80)), ("frequency", whole_weights(80) + 1)):
        a = trials(own, item=items, weight=weights, weight_kind=kind)
        b = trials(own, item=items, weight=np.where(np.arange(80) == 7, weights + 1, weights), weight_kind=kind)
        for allow in (False, True):
            with pytest.raises(hm.DataError, match="'u7'") as fault:
                hm.compare(a, b, ["roc_auc"], bootstrap=20, allow_missing=allow)
            assert fault.value.code == "other-weights"
        with pytest.raises(hm.DataError, match="has none"):
            hm.compare(a, trials(own, item=items), ["roc_auc"], bootstrap=20, allow_missing=True)


def test_a_difference_with_sampling_weights_is_weighted_and_tested_with_them() -> None:
    first, second = data(300), data(300, seed=9)
    second = {**first, "score": second["score"], "decision": (second["score"] >= 0.5).astype(int)}
    first = {**first, "decision": (first["score"] >= 0.5).astype(int)}
    weights, items = odd_weights(300), [str(i) for i in range(300)]
    a, b = (trials(own, item=items, weight=weights, weight_kind="sampling") for own in (first, second))
    found = hm.compare(a, b, ["accuracy", "roc_auc"], bootstrap=400)
    right = [(own["decision"] == own["label"]).astype(float) for own in (first, second)]
    gained = right[1] - right[0]
    delta = np.average(gained, weights=weights)
    error = math.sqrt(np.sum((weights * (gained - delta)) ** 2)) / weights.sum()
    row = found.one("accuracy")
    assert row.delta == pytest.approx(delta, abs=1e-12)
    assert row.low is not None and row.high is not None
    assert row.high - row.low == pytest.approx(2 * 1.97 * error, rel=0.2)
    flips = np.random.default_rng(0).choice([-1.0, 1.0], (20_000, 300)) @ (weights * gained / weights.sum())
    p = np.mean(np.abs(flips) >= abs(delta) - 1e-12)
    assert row.test == "permutation" and row.p_value == pytest.approx(p, abs=0.02)
    areas = [sk.roc_auc_score(own["label"], own["score"], sample_weight=weights) for own in (first, second)]
    assert found.one("roc_auc").delta == pytest.approx(areas[1] - areas[0], abs=1e-12)


def test_curves_and_chance_are_weighted() -> None:
    from hitmiss.conclude.chance import chance_level

    own = data(200)
    own["decision"] = (own["score"] >= 0.5).astype(int)
    weights = odd_weights(200)
    made = trials(own, weight=weights, weight_kind="sampling")
    drawn = RocDisplay.from_trials(made)
    assert drawn.area == pytest.approx(sk.roc_auc_score(own["label"], own["score"], sample_weight=weights), abs=1e-12)
    share = np.average(own["label"], weights=weights)
    level = chance_level(hm.measure(made, ["accuracy"]).one("accuracy"))
    assert level is not None and level.value == pytest.approx(max(share, 1 - share))


def test_what_cannot_use_sampling_weights_refuses_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short, _ = table(tmp_path, "a")
    counts, predictions = tmp_path / "counts.csv", tmp_path / "run_en.csv"
    counts.write_text("label,score,n,w\nbonafide,1,3,1\nspoof,0,4,1\n")
    predictions.write_text("id,y_true,y_prob,w\na,1,0.9,1\nb,0,0.2,3\nc,1,0.4,1\n")
    times = tmp_path / "times.csv"
    times.write_text("id,label,score,seconds,w\na,bonafide,2,1.5,1\nb,spoof,1,2.5,3\n")
    for words in (
        ("compare", short, short, short, "-m", "eer"),
        ("drift", short, "--by", "codec"),
        ("triage", short),
        ("toxicity", predictions),
        ("threshold", predictions),
        ("plan", short, "-m", "eer", "--width", "0.05"),
        ("score", short, "-m", "eer(ties=official)"),
        ("score", times, "-m", "median_seconds"),
        ("score", counts, "--counts", "-m", "eer"),
    ):
        _, err = told(capsys, *words, *SAMPLING, code=2)
        assert "weight" in err and len(err.strip().splitlines()) == 1, (words, err)


def test_a_protocol_leaves_out_what_cannot_be_weighted_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short, _ = table(tmp_path, "a")
    out = " ".join(told(capsys, "score", short, "-p", "asvspoof5", *SAMPLING, "--bootstrap", "0")[0].split())
    assert "eer left out: it with ties=official goes through tied trials one by one" in out
    out = " ".join(told(capsys, "compare", short, short, "-p", "asvspoof5", *SAMPLING, "--bootstrap", "20")[0].split())
    assert "eer left out: it with ties=official goes through tied trials one by one" in out


def test_a_calibration_is_fitted_with_the_weights() -> None:
    own = data(200)
    weights = whole_weights(200) + 1
    arrays = {name: own[name] for name in ("label", "score")}
    dev = {
        "weighted": hm.Trials.of(**arrays, weight=weights, weight_kind="sampling"),
        "repeated": hm.Trials.of(**repeated(arrays, weights)),
    }
    target = hm.Trials.of([1, 0, 1], [0.2, 0.5, 0.9])
    found = {name: hm.calibrate(one, target).score for name, one in dev.items()}
    np.testing.assert_allclose(found["weighted"], found["repeated"], rtol=1e-8)


@pytest.mark.parametrize("metric", ["brier_confidence", "accuracy", "roc_auc", "sharpness"])
def test_the_interval_of_weighted_rows_does_not_depend_on_their_order(metric: str) -> None:
    """Each row keeps its own weight, whatever order a metric puts the rows in."""

    @hm.metric(best="high")
    def sharpness(confidence: np.ndarray, weight: np.ndarray | None = None) -> float:
        return float(np.average(confidence, weights=weight))

    rng = np.random.default_rng(8)
    own = data(120)
    columns = {
        "item": np.array([f"i{k:03d}" for k in range(120)]),
        "label": own["label"],
        "score": own["score"],
        "decision": (own["score"] >= 0.5).astype(int),
        "confidence": rng.uniform(0.5, 1.0, 120),
        "weight": odd_weights(120),
    }
    try:
        ends = []
        for order in (np.arange(120), np.arange(120)[::-1], rng.permutation(120)):
            made = hm.Trials.of(**{name: values[order] for name, values in columns.items()}, weight_kind="sampling")
            row = hm.measure(made, [metric], bootstrap=200).one(metric)
            assert row.low is not None and row.high is not None, row.note
            ends.append((row.value, row.low, row.high))
        assert ends[1] == pytest.approx(ends[0], rel=1e-9) and ends[2] == pytest.approx(ends[0], rel=1e-9)
    finally:
        forget("sharpness")
