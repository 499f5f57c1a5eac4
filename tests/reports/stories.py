"""Small data sets with one known truth each, for what the first screen must say about them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.design import Design
from hitmiss.core.header import Header
from hitmiss.core.trials import Trials
from hitmiss.evaluation.protocol import find_protocol
from hitmiss.reports.evaluations import RunData
from hitmiss.reports.sources import Measuring, measured

Floats = NDArray[np.float64]
BY_CODEC = Measuring(Design.of(["eer", "roc_auc"], by="codec", bootstrap=200))


def trials(label: NDArray[np.int_], score: Floats, codec: NDArray[np.str_]) -> Trials:
    """Trials with ids and a codec."""
    return Trials.of(label, score, codec=codec.tolist(), item=[f"i{n}" for n in range(len(label))])


def layout(n: int, codecs: int) -> tuple[NDArray[np.int_], NDArray[np.str_]]:
    """Labels and codecs: every codec has as many of each class."""
    return np.tile([1, 0], n // 2), np.char.add("c", np.char.zfill((np.arange(n) // 2 % codecs).astype(str), 2))


def coin_flip(seed: int = 0) -> RunData:
    """Scores that say nothing."""
    label, codec = layout(2000, 5)
    return measured(trials(label, np.random.default_rng(seed).normal(size=2000), codec), "coin", BY_CODEC)


def score_shift(seed: int = 0) -> RunData:
    """Each codec is easy by itself, and puts its scores elsewhere."""
    label, codec = layout(3000, 5)
    away = 12.0 * (np.arange(3000) // 2 % 5)
    score = np.random.default_rng(seed).normal(size=3000) + 2.6 * label + away
    return measured(trials(label, score, codec), "shift", BY_CODEC)


def homogeneous(seed: int) -> RunData:
    """Twenty codecs of one and the same distribution."""
    label, codec = layout(4000, 20)
    score = np.random.default_rng([9, seed]).normal(size=4000) + 1.75 * label
    return measured(trials(label, score, codec), f"noise{seed}", BY_CODEC)


def one_bad_slice(seed: int = 0) -> RunData:
    """Codec c07 alone is hard."""
    label, codec = layout(4000, 20)
    apart = np.where(codec == "c07", 0.2, 2.6)
    score = np.random.default_rng(seed).normal(size=4000) + apart * (label - 0.5)
    return measured(trials(label, score, codec), "one-bad", BY_CODEC)


def backwards(seed: int = 0) -> RunData:
    """A good detector whose scores point the other way."""
    label, codec = layout(2000, 5)
    score = np.random.default_rng(seed).normal(size=2000) - 2.0 * label
    return measured(trials(label, score, codec), "backwards", BY_CODEC)


def saturated(seed: int = 0) -> RunData:
    """Most scores are exactly 0 or 1."""
    label, codec = layout(2000, 5)
    score = np.round(1 / (1 + np.exp(-np.random.default_rng(seed).normal(size=2000) * 9 - 9 * (label - 0.5))), 0)
    return measured(trials(label, score, codec), "saturated", BY_CODEC)


def systems(n: int, seed: int = 0, size: int = 600) -> list[RunData]:
    """So many systems on the same trials; the first is clearly the best, the others are alike in pairs."""
    rng = np.random.default_rng(seed)
    label, codec = layout(size, 3)
    common = rng.normal(size=size)
    made = []
    for i in range(n):
        apart = 3.2 if i == 0 else 1.0 + 0.02 * i
        score = 0.8 * common + 0.6 * rng.normal(size=size) + apart * label
        made.append(measured(trials(label, score, codec), f"sys{i:02d}", BY_CODEC))
    return made


def triage_with_people(folder: Path, seed: int = 0) -> RunData:
    """A system that leaves 40 % of the items open and errs on 5 % of the others; two people who are nearly always right."""
    rng, n = np.random.default_rng(seed), 400
    label = np.tile([1, 0], n // 2)
    said = np.where(rng.random(n) < 0.4, -1, np.where(rng.random(n) < 0.05, 1 - label, label))
    items = [f"i{k}" for k in range(n)]
    rows = []
    for at in np.flatnonzero(said < 0):
        for who in ("ann", "bob"):
            word = ("real", "fake")[label[at] if rng.random() < 0.98 else 1 - label[at]]
            rows.append({"id": items[at], "model": "human", "trial": who, "prediction": word, "per_item": 2})
    file = folder / "people.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    system = Trials.of(label, item=items, decision=said.tolist(), header=Header("fake", "real"))
    design = Design.of(["accuracy", "fake_slip_rate"], bootstrap=200, gap=False)
    design = design.changed(protocol=find_protocol("triage"))
    return measured(system, "agent", Measuring(design, human=str(file)))
