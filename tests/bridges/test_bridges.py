"""Bridges: what they compute is what the package computes, and what they log can be read back."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score

import hitmiss as hm
from hitmiss.bridges.accumulator import MOST_PARTS, Accumulator
from hitmiss.bridges.learning import compute_metrics, log_odds, score_function, scorer
from hitmiss.bridges.sinks import figures_of, log
from hitmiss.core.errors import DataError, EnvironmentFault, UsageError
from hitmiss.core.results import Estimate, Results
from hitmiss.core.trials import Trials

METRICS = ("eer", "min_dcf", "roc_auc", "average_precision", "min_cllr", "cllr")


def batches(seed: int, sizes: list[int]) -> list[tuple[np.ndarray, np.ndarray]]:  # type: ignore[type-arg]
    rng = np.random.default_rng(seed)
    labels = [rng.integers(0, 2, n) for n in sizes]
    return [(y, np.round(rng.normal(size=len(y)) + y, 1)) for y in labels]


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 9), min_size=1, max_size=8), st.integers(1, 4))
def test_shards_in_any_order_give_the_whole(seed: int, sizes: list[int], workers: int) -> None:
    parts = [*batches(seed, sizes), (np.array([1, 0]), np.array([0.3, 0.2]))]
    label, score = (np.concatenate(side) for side in zip(*parts, strict=True))
    held = [Accumulator(METRICS) for _ in range(workers)]
    for i, (y, s) in enumerate(parts):
        held[i % workers].update(y, s)
    got = held[0].merge(*held[1:]).compute()
    for name in METRICS:
        assert got[name] == pytest.approx(getattr(hm.metrics, name)(label, score), abs=1e-12)
    assert len(held[0]) == len(label)


def test_an_accumulator_stays_small_and_travels_as_arrays() -> None:
    seen = Accumulator(["eer(ties=interpolated)"])
    for y, s in batches(1, [10] * (3 * MOST_PARTS)):
        seen.update(y.tolist(), s.reshape(-1, 1))
    assert len(seen._parts) <= MOST_PARTS + 1
    other = Accumulator(["eer(ties=interpolated)"])
    other.add_state(seen.state())
    assert other.compute() == seen.compute()
    seen.reset()
    with pytest.raises(DataError, match="nothing was counted"):
        seen.compute()
    for wrong in ("accuracy", "ece"):
        with pytest.raises(UsageError, match=wrong):
            Accumulator([wrong])
    with pytest.raises(UsageError, match="other metrics"):
        Accumulator(["eer"]).merge(Accumulator(["roc_auc"]))


def test_metrics_of_probabilities_get_probabilities() -> None:
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1], 90)
    x = rng.normal(size=(180, 3)) + y[:, None]
    model = LogisticRegression()
    for ours, theirs in (("brier", "neg_brier_score"), ("log_loss", "neg_log_loss")):
        got = cross_val_score(model, x, y, scoring=scorer(ours), cv=3, error_score="raise")
        assert got == pytest.approx(cross_val_score(model, x, y, scoring=theirs, cv=3), abs=1e-12)
    logits = rng.normal(size=(40, 2)) * 2
    labels = rng.integers(0, 2, 40)
    p = 1 / (1 + np.exp(logits[:, 0] - logits[:, 1]))
    found = compute_metrics(["roc_auc", "brier"])((logits, labels))
    assert list(found) == ["roc_auc", "brier"] and found["brier"] == pytest.approx(np.mean((p - labels) ** 2))


def test_scorers_pickle() -> None:
    rng = np.random.default_rng(6)
    y = rng.integers(0, 2, 60)
    x = rng.normal(size=(60, 2)) + y[:, None]
    model = LogisticRegression().fit(x, y)
    for name in ("eer", "f1", "brier", "tpr_at_fpr(fpr=0.05)"):
        made = scorer(name)
        assert pickle.loads(pickle.dumps(made))(model, x, y) == made(model, x, y)
        assert name.split("(")[0] in repr(made)


def test_scorers_choose_models() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    x = rng.normal(size=(400, 3)) + y[:, None] * [1.2, 0.0, 0.0]
    model = LogisticRegression()
    for metric, sign in (("eer", -1), ("roc_auc", 1), ("accuracy", 1)):
        got = cross_val_score(model, x, y, scoring=scorer(metric), cv=3)
        assert got.shape == (3,) and (sign * got > 0).all() and (np.abs(got) <= 1).all()
    words = np.where(y == 1, "spoof", "bonafide")
    named = cross_val_score(model, x, words, scoring=scorer("roc_auc", positive="spoof"), cv=3)
    assert named == pytest.approx(cross_val_score(model, x, y, scoring="roc_auc", cv=3))
    search = GridSearchCV(model, {"C": [1e-6, 1.0]}, scoring=scorer("min_dcf"), cv=3).fit(x, y)
    assert search.best_params_["C"] in (1e-6, 1.0)
    own = make_scorer(score_function("f1"), response_method="predict")
    assert own(model.fit(x, y), x, y) == pytest.approx(hm.metrics.f1(y, model.predict(x)))


def test_compute_metrics_reads_what_a_trainer_gives() -> None:
    rng = np.random.default_rng(1)
    label = rng.integers(0, 2, 200)
    logits = rng.normal(size=(200, 2)) + np.stack([1 - label, label], axis=1)
    got = compute_metrics(["roc_auc", "accuracy"])(SimpleNamespace(predictions=(logits, "hidden"), label_ids=label))
    assert got["roc_auc"] == pytest.approx(hm.metrics.roc_auc(label, logits[:, 1] - logits[:, 0]))
    assert got["accuracy"] == pytest.approx((logits.argmax(axis=1) == label).mean())
    turned = compute_metrics(["roc_auc"], positive_index=0)((logits, label))["roc_auc"]
    assert turned == pytest.approx(got["roc_auc"])
    three = rng.normal(size=(5, 3))
    p = np.exp(three) / np.exp(three).sum(axis=1, keepdims=True)
    assert log_odds(three, 2)[0] == pytest.approx(np.log(p[:, 2] / (1 - p[:, 2])))
    with pytest.raises(UsageError, match="say which is the positive class"):
        compute_metrics(["eer"])((three, [0, 1, 2, 0, 1]))
    with pytest.raises(UsageError, match="no output column 5"):
        log_odds(three, 5)
    with pytest.raises(DataError, match="shape"):
        log_odds(np.zeros((2, 2, 2)))


@pytest.fixture(scope="module")
def results() -> Results:
    label = np.arange(60) % 2
    trials = Trials.of(label, np.arange(60) % 7 + label, codec=["a/b", "a/b", "c d<e>", "c d<e>"] * 15)
    return hm.measure(trials, ["eer", "roc_auc"], by=["codec"], bootstrap=20)


def test_figures_have_safe_names_of_their_own(results: Results) -> None:
    named = figures_of(results, prefix="dev")
    assert named["dev/eer"] == results.one("eer").value and named["dev/eer_low"] == results.one("eer").low
    assert "dev/codec=a_b/eer" in named and "dev/codec=c d_e_/eer" in named and "dev/codec/eer_macro" in named
    assert not {folder for name in named for folder in map(str, Path(name).parents)} & set(named)
    assert not any("codec" in name for name in figures_of(results, slices=False))
    twins = Results((Estimate("x", 1.0, slice={"k": "<"}), Estimate("x", 2.0, slice={"k": ">"})))
    assert sorted(figures_of(twins).values()) == [1.0, 2.0]


def test_sinks_that_are_not_there_say_so(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    def nothing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", nothing)
    for sink in ("mlflow", "wandb"):
        with pytest.raises(EnvironmentFault, match=f"pip install '{sink}'"):
            log(results, sink)
    with pytest.raises(UsageError, match="cannot log to 'tensorbord'"):
        log(results, "tensorbord")


@pytest.mark.extras
def test_mlflow_keeps_figures_and_artifacts(results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # the skinny package has no other store
    mlflow = pytest.importorskip("mlflow", reason="mlflow-skinny is not installed; make test-extras")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    report = tmp_path / "report.html"
    report.write_text("<p>report</p>")
    with mlflow.start_run() as run:
        log(results, "mlflow", step=3, report=report)
    kept = mlflow.get_run(run.info.run_id)
    assert kept.data.metrics["eer"] == results.one("eer").value
    assert kept.data.tags["hitmiss.signature"] == results.signature
    names = {a.path for a in mlflow.MlflowClient().list_artifacts(run.info.run_id)}
    assert names == {"results.json", "report.html"}


@pytest.mark.extras
def test_wandb_keeps_figures_offline(results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = pytest.importorskip("wandb", reason="wandb is not installed; make test-extras")
    monkeypatch.setenv("WANDB_SILENT", "true")
    with pytest.raises(UsageError, match=r"call wandb\.init"):
        log(results, "wandb")
    report = tmp_path / "report.html"
    report.write_text("<p>report</p>")
    run = wandb.init(project="hitmiss", dir=tmp_path, mode="offline")
    try:
        log(results, "wandb", step=3, report=report)
        assert run.summary["eer"] == results.one("eer").value and run.summary["results"]["nrows"] == len(results)
        assert run.summary["hitmiss.signature"] == results.signature
    finally:
        run.finish()


@pytest.mark.extras
def test_tensorboard_keeps_figures(results: Results, tmp_path: Path) -> None:
    writers = pytest.importorskip("tensorboardX", reason="tensorboardX is not installed; make test-extras")
    reading = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator",
        reason="tensorboard is not installed; make test-extras",
    )
    with writers.SummaryWriter(str(tmp_path)) as writer:
        log(results, writer, step=7)
    kept = reading.EventAccumulator(str(tmp_path))
    kept.Reload()
    (event,) = kept.Scalars("eer")
    assert event.step == 7 and event.value == pytest.approx(results.one("eer").value)


@pytest.mark.extras
def test_torch_tensors_are_taken_as_they_are() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed; make test-extras")
    label, score = torch.tensor([1, 0, 1, 0]), torch.tensor([0.9, 0.6, 0.4, 0.1], requires_grad=True)
    seen = Accumulator(["roc_auc"])
    seen.update(label, score)
    assert seen.compute()["roc_auc"] == 0.75
    logits = torch.stack([-score, score], dim=1).to(torch.bfloat16)
    assert compute_metrics(["roc_auc"])((logits, label))["roc_auc"] == 0.75
