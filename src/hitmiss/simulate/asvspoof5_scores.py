"""Scores of two simulated spoofing countermeasures on a protocol table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LOSS = {
    "-": 0.0, "C01": 0.22, "C02": 0.30, "C03": 0.34, "C04": 0.62, "C05": 0.12, "C06": 0.14, "C07": 0.58,
    "C08": 0.42, "C09": 0.46, "C10": 0.50, "C11": 0.30,
}  # fmt: skip
"""The share of the separation that each codec removes at its lowest quality."""


@dataclass(frozen=True)
class System:
    """One countermeasure: how well it separates the classes, and how strongly conditions disturb it."""

    separation: float
    speaker: float
    recording: float
    noise: float
    attack: float
    fragility: float
    is_llr: bool

    @property
    def variance(self) -> float:
        """The variance of the scores within a class, without attacks and codecs."""
        return self.speaker**2 + self.recording**2 + self.noise**2


SYSTEMS = {
    "a": System(separation=3.55, speaker=0.35, recording=0.6, noise=0.7, attack=0.45, fragility=0.8, is_llr=True),
    "b": System(separation=3.3, speaker=0.45, recording=0.55, noise=0.7, attack=0.6, fragility=1.0, is_llr=False),
}


def scores(table: pl.DataFrame, rng: np.random.Generator) -> dict[str, Floats]:
    """Return the scores of every system for the trials of a protocol table; higher = bonafide."""
    original = table.select(pl.when(pl.col("CODEC") == "-").then("FLAC_FILE_NAME").otherwise("CODEC_SEED")).to_series()
    recording = _effect(original, rng)
    return {name: _scores_of(system, table, recording, rng) for name, system in SYSTEMS.items()}


def _scores_of(system: System, table: pl.DataFrame, recording: Floats, rng: np.random.Generator) -> Floats:
    is_bonafide = (table["KEY"] == "bonafide").to_numpy()
    kept = 1 - system.fragility * loss(table)
    hardness = system.attack * _effect(table["ATTACK_LABEL"], rng)
    mean = kept * np.where(is_bonafide, system.separation / 2, hardness - system.separation / 2) - 0.4 * (1 - kept)
    spread = system.speaker * _effect(table["SPEAKER_ID"], rng) + system.recording * recording
    score = mean + spread + system.noise * rng.standard_normal(table.height)
    return _as_llr(system, score) if system.is_llr else np.tanh(score / 3)


def loss(table: pl.DataFrame) -> Floats:
    """Return how much of the separation a trial's coding removes: the codec's share, less at better quality.

    >>> loss(pl.DataFrame({"CODEC": ["-", "C04", "C04"], "CODEC_Q": ["0", "1", "5"]})).round(3).tolist()
    [0.0, 0.62, 0.155]
    """
    worst = table["CODEC"].replace_strict(LOSS, return_dtype=pl.Float64).to_numpy()
    best_quality = np.where((table["CODEC"] == "C11").to_numpy(), 8, 5)
    quality = table["CODEC_Q"].replace({"-": "1", "0": "1"}).cast(pl.Float64).to_numpy()
    return np.asarray(worst * (1 - 0.75 * (quality - 1) / (best_quality - 1)), dtype=np.float64)


def _effect(names: pl.Series, rng: np.random.Generator) -> Floats:
    """Return one standard normal number per name, the same for all rows with that name."""
    ranks: NDArray[np.int64] = names.rank("dense").to_numpy().astype(np.int64) - 1
    return rng.standard_normal(int(ranks.max()) + 1)[ranks]


def _as_llr(system: System, score: Floats) -> Floats:
    """Return the log-likelihood ratio that is right for uncoded speech: slightly overconfident for coded speech."""
    return score * system.separation / (system.variance + system.attack**2 / 2)
