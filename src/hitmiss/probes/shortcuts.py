"""The shortcut probe: how well do duration, silence and level alone separate the classes?

A detector can look good on a corpus whose fakes are shorter, quieter or begin with digital silence. Here only those
properties are used: each alone, and together in a small logistic regression that is evaluated on speakers it was not
trained on. A detector must beat their result before its score says anything about voices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core.errors import DataError
from hitmiss.core.header import Header
from hitmiss.core.protocol import Protocol
from hitmiss.core.results import Results
from hitmiss.core.sorting import Array
from hitmiss.core.trials import Trials, stack
from hitmiss.engine.measure import measure
from hitmiss.io.manifest import Manifest, inside
from hitmiss.media.audio import Clip, load_audio
from hitmiss.metrics.usual import AREA, ERROR
from hitmiss.stats.logistic import fit_logistic
from hitmiss.stats.random import generator

FEATURES: Final = ("duration", "silence", "lead_silence", "tail_silence", "zeros", "level", "peak")
ALL: Final = "all together"
QUIET: Final = 10.0 ** (-40 / 20)
"""A 20 ms frame is silent if it lies 40 dB below the clip's loudest one."""
FOLDS: Final = 5


def shortcut_features(clip: Clip, sample_rate: int = 16000) -> dict[str, float]:
    """Return simple properties of a clip: seconds, shares of silence and of exact zeros, levels in dB.

    >>> x = np.concatenate([np.zeros(1600), 0.5 * np.ones(1600)]).astype(np.float32)
    >>> f = shortcut_features(x)
    >>> f["duration"], f["silence"], f["lead_silence"], f["zeros"], round(f["peak"], 2)
    (0.2, 0.5, 0.1, 0.5, -6.02)
    """
    size = max(sample_rate // 50, 1)
    whole = clip[: max(len(clip) // size, 1) * size].astype(np.float64)
    frames = whole.reshape(-1, min(size, len(whole)))
    loudness = np.sqrt((frames**2).mean(axis=1))
    silent = loudness <= QUIET * loudness.max()
    heard = np.flatnonzero(~silent)
    first, last = (int(heard[0]), int(heard[-1])) if len(heard) else (len(silent), -1)
    return {
        "duration": len(clip) / sample_rate,
        "silence": float(silent.mean()),
        "lead_silence": first * size / sample_rate,
        "tail_silence": (len(silent) - 1 - last) * size / sample_rate,
        "zeros": float((clip == 0).mean()),
        "level": _decibel(float(np.sqrt(np.mean(np.square(clip, dtype=np.float64))))),
        "peak": _decibel(float(np.abs(clip).max())),
    }


def _decibel(amplitude: float) -> float:
    return float(20 * np.log10(max(amplitude, 1e-6)))


def read_features(manifest: Manifest, sample_rate: int = 16000) -> list[dict[str, float]]:
    """Return the features of every file of a manifest, in order."""
    files = [inside(manifest.root, file) for file in manifest.frame["file"]]
    return [shortcut_features(load_audio(file, sample_rate), sample_rate) for file in files]


def shortcut_trials(manifest: Manifest, features: Sequence[Mapping[str, float]], unit: str | None = None) -> Trials:
    """Return trials of detectors with one shortcut each, and one with all; the run column is `shortcut`.

    A single shortcut scores in the direction that separates the classes on the whole set, so its AUC is at least a
    half.
    """
    if not manifest.has_labels:
        raise DataError.of("no-labels/shortcut")
    label = (manifest.frame["label"] == manifest.positive).to_numpy()
    if label.all() or not label.any():
        raise DataError.of("one-class", what="the shortcut probe")
    table = np.array([[row[name] for name in FEATURES] for row in features])
    groups = manifest.frame[unit].to_numpy() if unit is not None else np.arange(len(label))
    scores = {name: _turned(table[:, i], label) for i, name in enumerate(FEATURES)}
    scores[ALL] = _out_of_fold(table, label, groups)
    slices = {name: manifest.frame[name] for name in manifest.slices}
    header = Header(manifest.positive, manifest.negative, "raw", slices=tuple(slices))
    base = pl.DataFrame({"item": manifest.items, "label": label.astype(np.int8), **slices})
    parts = {n: Trials.from_frame(base.with_columns(score=pl.Series(s)), header) for n, s in scores.items()}
    return stack(parts, "shortcut")


def shortcut_probe(
    manifest: Manifest,
    features: Sequence[Mapping[str, float]],
    *,
    by: Sequence[str] = (),
    unit: str | None = None,
    bootstrap: int = 0,
    seed: int = 0,
) -> Results:
    """Measure AUC and EER of each shortcut alone and of all together, per slice, with intervals over `unit`."""
    trials = shortcut_trials(manifest, features, unit)
    protocol = Protocol("shortcuts", negative_only=("attack", "attack_tag"))
    return measure(trials, [AREA, ERROR], by=by, bootstrap=bootstrap, unit=unit, seed=seed, protocol=protocol)


def _turned(values: NDArray[np.float64], label: NDArray[np.bool_]) -> NDArray[np.float64]:
    from hitmiss.metrics.ranking import roc_auc

    return values if roc_auc(label, values) >= 0.5 else -values


def _out_of_fold(table: NDArray[np.float64], label: NDArray[np.bool_], groups: Array) -> NDArray[np.float64]:
    """Return the score of each clip from a classifier that was trained on other speakers."""
    names = np.unique(groups)
    order = generator(0, "shortcut folds").permutation(len(names))
    fold_of = dict(zip(names.tolist(), (order % min(FOLDS, len(names))).tolist(), strict=True))
    fold = np.array([fold_of[g] for g in groups.tolist()])
    scores = np.zeros(len(label))
    for held in np.unique(fold):
        train, test = fold != held, fold == held
        if label[train].all() or not label[train].any():
            raise DataError.of("too-few-speakers")
        middle, spread = table[train].mean(axis=0), table[train].std(axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        fit = fit_logistic((table[train] - middle) / spread, label[train], balanced=True)
        scores[test] = fit.log_odds((table[test] - middle) / spread)
    return scores
