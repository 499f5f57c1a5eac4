"""What no caller of the ECG document may get: a figure from input that cannot mean anything, or another library's traceback."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hitmiss.core.errors import DataError, HitmissError, UnknownName, UsageError
from hitmiss.protocols.ecg_attacks import (
    PerturbationConfig,
    apply_perturbation,
    binarize_predictions,
    compute_global_metrics,
    compute_targeted_success,
    plot_classwise_metric_bars,
    predict_proba_batch,
    run_attack_on_sample,
    run_attacks_on_samples,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 300, 12))
Y = np.array([[1, 0, 0, 1, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 1], [0, 0, 0, 1, 0]])
WEIGHTS = RNG.normal(size=(12, 5))


def model(x: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-20.0 * np.asarray(x).mean(axis=1) @ WEIGHTS))


def three(x: Any) -> Any:
    return model(x)[:, :3]


def config(**given: Any) -> PerturbationConfig:
    return PerturbationConfig(**{"ptype": "band_noise", "strength": 0.5, "center_time": 1.0, **given})


def attack(
    x: Any = X[0],
    y: Any = Y[0],
    how: PerturbationConfig | None = None,
    asked: Any = model,
    fs: float = 100,
    **more: Any,
) -> Any:
    return run_attack_on_sample(asked, x, y, how or config(), fs=fs, **more)[0]


def holed(value: float) -> np.ndarray:
    x = X[0].copy()
    x[5, 3] = value
    return x


REFUSED: dict[str, tuple[Callable[[], Any], type[HitmissError], str]] = {
    "strength as text": (lambda: config(strength="0.5"), UsageError, "between 0 and 1"),
    "no strength": (lambda: config(strength=None), UsageError, "between 0 and 1"),
    "strength NaN": (lambda: config(strength=float("nan")), UsageError, "between 0 and 1"),
    "a class by its number": (lambda: config(target_class=2), UsageError, "name of a class"),
    "a setting as text": (lambda: config(extra={"beta": "a"}), UsageError, "beta of band_noise must be 0 or more"),
    "a setting NaN": (lambda: config(extra={"beta": float("nan")}), UsageError, "beta"),
    "a budget below 0": (
        lambda: config(ptype="pgd", extra={"eps_max": -1.0}),
        UsageError,
        "eps_max of pgd must be 0 or more",
    ),
    "no queries": (lambda: config(ptype="random_search", extra={"queries": 0}), UsageError, "1 or more"),
    "half a step": (lambda: config(ptype="pgd", extra={"steps": 1.5}), UsageError, "whole number"),
    "beats turned round": (
        lambda: attack(how=config(ptype="morph_time", extra={"epsilon_max": 1.0})),
        UsageError,
        "below 1",
    ),
    "a signal with NaN": (lambda: attack(holed(np.nan)), DataError, "NaN or infinite"),
    "a signal with infinity": (lambda: attack(holed(np.inf)), DataError, "NaN or infinite"),
    "lead × sample": (lambda: attack(X[0].T), DataError, "layout='lead_sample'"),
    "complex signal": (lambda: attack(X[0] + 1j), DataError, "complex"),
    "texts": (lambda: attack(X[0].astype(str)), DataError, "numbers"),
    "no samples": (lambda: attack(X[0][:0]), DataError, "at least one sample"),
    "label 2": (lambda: attack(y=2 * Y[0]), DataError, "0 and 1; found 2"),
    "label NaN": (lambda: attack(y=np.full(5, np.nan)), DataError, "0 and 1; found nan"),
    "label 0.7": (lambda: attack(y=0.7 * Y[0]), DataError, "0 and 1; found 0.7"),
    "rate 0": (lambda: attack(fs=0), UsageError, "sample rate"),
    "threshold NaN": (lambda: attack(threshold=float("nan")), UsageError, "0 to 1"),
    "threshold 2": (lambda: attack(threshold=2.0), UsageError, "0 to 1"),
    "three thresholds": (lambda: attack(threshold=[0.5] * 3), UsageError, "each of the 5 classes"),
    "window NaN": (lambda: attack(how=config(window_seconds=float("nan"))), UsageError, "above 0"),
    "window between samples": (
        lambda: attack(how=config(window_seconds=0.001, center_time=1.0052)),
        UsageError,
        "holds no sample",
    ),
    "logits": (lambda: attack(asked=lambda x: 9 * model(x)), DataError, "must be probabilities"),
    "NaN answers": (lambda: attack(asked=lambda x: model(x) * np.nan), DataError, "NaN or infinite"),
    "three outputs": (lambda: attack(asked=three), DataError, "each of the 3 outputs"),
    "a class that three outputs do not have": (
        lambda: attack(y=Y[0][:3], asked=three, how=config(target_class="MI")),
        UnknownName,
        "Known: 0, 1, 2",
    ),
    "more names than outputs": (
        lambda: attack(y=Y[0][:3], asked=three, classes=("A", "B", "C", "D")),
        DataError,
        "3 outputs and 4 classes",
    ),
    "peaks of fewer records": (
        lambda: run_attacks_on_samples(model, X, Y, config(ptype="morph_amp"), fs=100, r_peaks=[[100]]),
        DataError,
        "R peaks of 1",
    ),
    "fewer ids": (lambda: run_attacks_on_samples(model, X, Y, config(), fs=100, record_ids=["a"]), UsageError, "1 ids"),
    "an id twice": (
        lambda: run_attacks_on_samples(model, X, Y, config(), fs=100, record_ids=list("abca")),
        DataError,
        "same id",
    ),
    "fewer configurations": (lambda: run_attacks_on_samples(model, X, Y, [config()], fs=100), UsageError, "1 config"),
    "one record as many": (lambda: predict_proba_batch(model, X[0]), DataError, "record × sample × lead"),
    "a probability NaN": (lambda: binarize_predictions([0.2, np.nan]), DataError, "NaN"),
    "logits as probabilities": (lambda: compute_global_metrics(Y, 3 * model(X)), DataError, "logits"),
    "two names for five": (lambda: compute_global_metrics(Y, model(X), classes=("A", "B")), DataError, "5 classes"),
    "a name twice": (lambda: compute_global_metrics(Y, model(X), classes=tuple("AABCD")), DataError, "of its own"),
    "a class called macro": (
        lambda: compute_global_metrics(Y[:, :2], model(X)[:, :2], classes=("macro", "B")),
        DataError,
        "none of them macro",
    ),
    "bars of other classes": (
        lambda: plot_classwise_metric_bars(
            {"clean": compute_global_metrics(Y, model(X)), "x": compute_global_metrics(Y[:, :2], model(X)[:, :2])}
        ),
        DataError,
        "other classes",
    ),
    "a class misspelt": (lambda: compute_targeted_success([attack()], "Mi", "force"), UnknownName, "MI"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_one_sentence(name: str) -> None:
    call, kind, words = REFUSED[name]
    with pytest.raises(kind, match=words):
        call()


def test_allowed() -> None:
    """Odd, and with a meaning: these are no errors."""
    assert attack(how=config(strength=0)).delta_norm_l2 == 0.0
    assert attack(how=config(ptype="morph_amp"), r_peaks=[]).delta_norm_l2 == 0.0  # no beat, nothing to change
    assert attack(y=Y[0][:3], asked=three).classes == ("0", "1", "2")
    assert attack(y=Y[0][:3], asked=three, classes=("A", "B", "C"), how=config(target_class="C")).target_index == 2
    assert attack(X[0].T, layout="lead_sample").delta_norm_l2 == pytest.approx(attack().delta_norm_l2, rel=1e-9)
    assert attack(X[0].astype(np.float32)).delta_norm_l2 == pytest.approx(attack().delta_norm_l2, rel=1e-5)
    strict: Any = lambda x: (_ for _ in ()).throw(AssertionError)  # noqa: E731
    assert apply_perturbation(X[0], config(), fs=100, model=strict).shape == X[0].shape  # a noise asks no model
