"""Perturbations of ECGs, with the function names of the ECG attack evaluation document.

Conventions
-----------
Signals are (sample, lead) in mV; a model is anything with `.predict`, a callable that returns probabilities, a torch
module, an ONNX session or a scikit-learn estimator; bits are `proba >= threshold`. Untargeted success is any bit that
differs from the clean prediction. A rate with an empty denominator is NaN with the count 0. For many records at once see
`attack.run`; its numbers and those here are the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from hitmiss.attacks.batched import as_numbers, check_signals
from hitmiss.attacks.config import PerturbationConfig
from hitmiss.attacks.model import LAYOUTS, as_classifier, binarize
from hitmiss.attacks.perform import Performed, Records, perform
from hitmiss.attacks.result import AttackResult, describe, smoothness
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.sorting import Array
from hitmiss.detection.outputs import to_probability
from hitmiss.metrics.counts import Counts, f1, precision, recall
from hitmiss.metrics.ranking import roc_auc
from hitmiss.protocols.ecg_summaries import (
    compute_targeted_success,
    compute_untargeted_asr,
    results_to_dataframe,
    summarize_norms,
    summarize_smoothness,
    summarize_success,
)
from hitmiss.stats.random import noise_generator

CLASSES = ("CD", "HYP", "MI", "NORM", "STTC")
"""The classes of the ECG attack evaluation document, in the order of its label binarizer; `classes=` names others."""

__all__ = [
    "AttackResult", "PerturbationConfig", "apply_perturbation", "binarize_predictions", "compute_global_metrics",
    "compute_smoothness", "compute_targeted_success", "compute_untargeted_asr", "plot_asr_vs_strength",
    "plot_classwise_metric_bars", "plot_norm_distributions", "predict_proba_batch", "predict_proba_single", "results_to_dataframe",
    "run_attack_on_sample", "run_attacks_on_samples", "summarize_norms", "summarize_smoothness", "summarize_success",
]  # fmt: skip


def predict_proba_single(model: object, x: ArrayLike) -> NDArray[np.float64]:
    """Return the probabilities of one record (sample × lead), one per class.

    >>> predict_proba_single(lambda X: X.mean(axis=1), np.full((10, 2), 0.25)).tolist()
    [0.25, 0.25]
    """
    record = np.asarray(x)
    if record.ndim != 2:
        raise DataError.of("wrong-shape", name="one record", form="sample × lead", shape=str(record.shape))
    return np.asarray(predict_proba_batch(model, record[None])[0])


def predict_proba_batch(model: object, X: ArrayLike) -> NDArray[np.float64]:
    """Return the probabilities of records (record × sample × lead) as record × class."""
    signals = as_numbers(X)
    if signals.ndim != 3:
        raise DataError.of("wrong-shape", name="records", form="record × sample × lead", shape=str(signals.shape))
    return as_classifier(model).proba(signals)


def binarize_predictions(proba: ArrayLike, threshold: ArrayLike = 0.5) -> NDArray[np.int8]:
    """Return 1 where `proba >= threshold`, else 0; the threshold is one number, or one per class.

    >>> binarize_predictions([0.2, 0.5]).tolist()
    [0, 1]
    """
    return binarize(proba, threshold)


def compute_smoothness(delta: ArrayLike, fs: float | None = None) -> float:
    """Compute the mean squared first difference of a change over time and leads (mV²/sample²; with `fs` per second²).

    >>> compute_smoothness([[0.0, 0.0], [1.0, 0.0]])
    0.5
    """
    return smoothness(delta, fs)


def apply_perturbation(
    x: ArrayLike,
    config: PerturbationConfig,
    *,
    fs: float,
    model: object = None,
    y_true: ArrayLike | None = None,
    r_peaks: ArrayLike | None = None,
    rng: Generator | None = None,
    threshold: ArrayLike = 0.5,
    classes: Sequence[str] | None = None,
    layout: str = "sample_lead",
) -> NDArray[np.float64]:
    """Return the perturbed record, in float64 and the layout of `x`; at strength 0 it equals `x` exactly.

    Without `rng` the generator is seeded from the configuration, so the same call gives the same signal.
    """
    record = _turned(x, layout)
    asked = model if config.needs_model else None  # noise does not ask the model
    records = _records(asked, record, y_true, fs, r_peaks, threshold, classes)
    return _turned(_performed(records, config, rng).x[0], layout)


def _turned(x: ArrayLike, layout: str) -> NDArray[np.float64]:
    if layout not in LAYOUTS:
        raise UnknownName("layout", layout, LAYOUTS)
    record = as_numbers(x)
    if record.ndim != 2:
        raise DataError.of("wrong-shape", name="one record", form="sample × lead", shape=str(record.shape))
    return record.T if layout == "lead_sample" else record


def _records(
    model: object,
    x: NDArray[np.float64],
    y_true: ArrayLike | None,
    fs: float,
    r_peaks: ArrayLike | None,
    threshold: ArrayLike,
    classes: Sequence[str] | None,
) -> Records:
    wrapped = None if model is None else as_classifier(model)
    truth = None if y_true is None else np.atleast_2d(np.asarray(y_true, dtype=np.float64))
    peaks = None if r_peaks is None else [np.asarray(r_peaks)]
    return _named(Records(x[None], truth, fs, wrapped, (), threshold, peaks), classes)


def _named(records: Records, classes: Sequence[str] | None) -> Records:
    """Return the records with class names: those given, else the documented ones if as many, else numbers."""
    width = len(CLASSES) if records.model is None else records.clean.shape[1]
    names = (
        tuple(classes) if classes is not None else CLASSES if width == len(CLASSES) else tuple(map(str, range(width)))
    )
    if records.model is not None and len(names) != width:
        raise DataError.of("output-count", name="the model", n=width, n_classes=len(names))
    records.classes = names
    return records


def _performed(records: Records, config: PerturbationConfig, rng: Generator | None) -> Performed:
    return perform(records, [0], [config], [_own_generator(records.x[0], config) if rng is None else rng])


def _own_generator(record: NDArray[np.float64], config: PerturbationConfig) -> Generator:
    """Return a separate generator for each (record, configuration), seeded by the record's id or by its content."""
    name = config.extra.get("record_id")
    return noise_generator(
        0, "attack", hashlib.blake2b(record.tobytes()).hexdigest() if name is None else name, str(config)
    )


def run_attack_on_sample(
    model: object,
    x_clean: ArrayLike,
    y_true: ArrayLike,
    config: PerturbationConfig,
    *,
    fs: float,
    rng: Generator | None = None,
    threshold: ArrayLike = 0.5,
    compute_delta_smoothness: bool = True,
    r_peaks: ArrayLike | None = None,
    classes: Sequence[str] | None = None,
    layout: str = "sample_lead",
) -> tuple[AttackResult, NDArray[np.float64]]:
    """Perturb one record, predict before and after, and return the result with the perturbed signal.

    `morph_*` families use `r_peaks`, or find R peaks themselves and say so in the result's `notes`.
    """
    record = _turned(x_clean, layout)
    wrapped = as_classifier(model)
    records = _records(wrapped, record, y_true, fs, r_peaks, threshold, classes)
    done = _performed(records, config, rng)
    after = to_probability(wrapped.log_odds(done.x))[0]
    result = _result(records, 0, config, done, after, describe(records.x, done.x), compute_delta_smoothness)
    return result, _turned(done.x[0], layout)


def run_attacks_on_samples(
    model: object,
    X: ArrayLike,
    y_true: ArrayLike,
    configs: PerturbationConfig | Sequence[PerturbationConfig],
    *,
    fs: float,
    seed: int = 0,
    threshold: ArrayLike = 0.5,
    r_peaks: Sequence[ArrayLike | None] | None = None,
    record_ids: Sequence[object] | None = None,
    classes: Sequence[str] | None = None,
    batch: int = 32,
) -> tuple[list[AttackResult], NDArray[np.float64]]:
    """Attack many records at once, with one configuration for all or one each (own strength, window and target).

    Each record has a generator seeded from its id and its configuration: the results are the same in any batch.
    """
    model = as_classifier(model)
    signals = check_signals(X)
    each = [configs] * len(signals) if isinstance(configs, PerturbationConfig) else list(configs)
    ids = list(range(len(signals))) if record_ids is None else list(record_ids)
    truth = np.asarray(y_true, dtype=np.float64)
    if not len(signals) == len(each) == len(ids):
        raise UsageError.of("unequal-counts", n=len(signals), n_configs=len(each), n_each=len(ids), what="ids")
    if len(set(ids)) != len(ids):
        raise DataError.of("duplicate-id/noise")
    records = _named(Records(signals, truth, fs, model, (), threshold, r_peaks, batch), classes)
    rngs = [noise_generator(seed, "attack", name, str(config)) for name, config in zip(ids, each, strict=True)]
    done = perform(records, range(len(signals)), each, rngs)
    after, numbers = model.proba(done.x), describe(records.x, done.x)
    results = [_result(records, i, each[i], done, after[i], numbers, True) for i in range(len(signals))]
    for result, name in zip(results, ids, strict=True):
        result.record_id = name
    return results, done.x


def _result(
    records: Records,
    at: int,
    config: PerturbationConfig,
    done: Performed,
    after: Array,
    numbers: Mapping[str, NDArray[np.float64]],
    smooth: bool,
) -> AttackResult:
    """Build one result from what was done to one record."""
    before = to_probability(records.clean[at])
    bits = records.bits(np.stack([before, after]))
    if records.y is None or records.y.shape[1] != len(before):
        raise DataError.of("bad-truth/outputs", n_before=len(before))
    about = {name: float(values[at]) for name, values in numbers.items()}
    target = records.target_of(config)
    aimed = None if target < 0 else bool(config.criterion(bits[:1], bits[1:], np.array([target]))[0])
    return AttackResult(
        config.extra.get("record_id"), config.family, config.strength, config.center_time, config.window_seconds,
        config.target_class, config.mode, dict(config.extra), records.y[at], bits[0], bits[1], before, after,
        about["delta_l2"], about["delta_linf"],
        about["smoothness"] if smooth else None, bool((bits[0] != bits[1]).any()), aimed,
        records.threshold, records.classes, about["snr_db"], float(done.budget[at]), done.norm[at],
        bool(done.zero_gradient[at]), done.notes[at],
    )  # fmt: skip


class GlobalMetrics(dict[str, dict[str, float]]):
    """Numbers per class, `metrics["MI"]["auc"]`, with the mean under "macro"; `undefined` names the others."""

    undefined: dict[str, str]

    def __init__(self, figures: Mapping[str, dict[str, float]], undefined: dict[str, str]) -> None:
        super().__init__(figures)
        self.undefined = undefined


def compute_global_metrics(
    y_true: ArrayLike, y_proba: ArrayLike, threshold: ArrayLike = 0.5, *, classes: Sequence[str] | None = None
) -> GlobalMetrics:
    """Compute ROC AUC, precision, recall and F1 of each class at a threshold (one number, or one per class).

    A class with only one label value has no AUC, and one that is never predicted has no precision: these are NaN and
    named in `.undefined`, and the macro number is the mean over the others.

    >>> m = compute_global_metrics([[1, 1], [0, 1]], [[0.9, 0.8], [0.2, 0.7]], classes=("MI", "CD"))
    >>> m["MI"]["auc"], m["CD"]["auc"], m.undefined
    (1.0, nan, {'CD': 'only positives'})
    """
    truth, proba = np.atleast_2d(np.asarray(y_true)), np.atleast_2d(np.asarray(y_proba, dtype=np.float64))
    if truth.shape != proba.shape:
        raise DataError.of("bad-truth/shape", shape=str(truth.shape), shape_2=str(proba.shape))
    if ((proba < 0) | (proba > 1)).any():
        raise DataError.of("not-probabilities", name="the outputs", low=proba.min(), high=proba.max())
    names = tuple(classes) if classes is not None else CLASSES if truth.shape[1] == len(CLASSES) else None
    names = tuple(str(k) for k in range(truth.shape[1])) if names is None else names
    if len(names) != truth.shape[1] or len(set(names)) != len(names) or "macro" in names:
        raise DataError.of("class-names", shape=truth.shape[1], names=tuple(names))
    bits, undefined = binarize(proba, threshold), {}
    figures: dict[str, dict[str, float]] = {}
    for k, name in enumerate(names):
        positives = int(truth[:, k].sum())
        if positives in (0, len(truth)):
            undefined[name] = "only positives" if positives else "no positives"
        counts = Counts.of(truth[:, k], bits[:, k])
        auc = float("nan") if name in undefined else float(roc_auc(truth[:, k], proba[:, k]))
        scores = {"precision": precision.of(counts), "recall": recall.of(counts), "f1": f1.of(counts)}
        if not bits[:, k].any():
            undefined[f"{name} precision"] = "never predicted, so the macro precision is over the other classes"
        figures[name] = {"auc": auc, **{key: float(v) for key, v in scores.items()}, "support": float(positives)}
    keys = ("auc", "precision", "recall", "f1")
    figures["macro"] = {key: _mean([figures[name][key] for name in names]) for key in keys}
    return GlobalMetrics(figures, undefined)


def _mean(values: Sequence[float]) -> float:
    known = [v for v in values if v == v]
    return float(np.mean(known)) if known else float("nan")


def _pictures() -> ModuleType:
    return import_module("hitmiss.reports.attack_figures")  # upwards: documented functions draw


def plot_asr_vs_strength(results: Sequence[AttackResult], ax: object = None) -> tuple[object, object]:
    """Plot success against strength, one line per family, with Wilson intervals; return `(figure, axes)`."""
    return _pictures().asr_vs_strength(results, ax)  # type: ignore[no-any-return]


def plot_norm_distributions(results: Sequence[AttackResult], ax: object = None) -> tuple[object, object]:
    """Draw box plots of the L2 and L∞ norms per family and strength; return `(figure, axes)`."""
    return _pictures().norm_distributions(results, ax)  # type: ignore[no-any-return]


def plot_classwise_metric_bars(
    metrics: Mapping[str, Mapping[str, Mapping[str, float]]], metric: str = "auc", ax: object = None
) -> tuple[object, object]:
    """Draw bars per class, side by side for each condition: `{"clean": compute_global_metrics(…), "pgd": …}`."""
    return _pictures().classwise_metric_bars(metrics, metric, ax)  # type: ignore[no-any-return]
