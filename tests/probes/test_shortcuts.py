"""The shortcut probe finds a shortcut that was put there, and none where there is none."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from hitmiss.core.errors import DataError
from hitmiss.io.manifest import Manifest
from hitmiss.probes.shortcuts import ALL, FEATURES, shortcut_features, shortcut_probe, shortcut_trials
from hitmiss.reports.shortcut_table import shortcut_table

N = 120


def manifest(n: int = N) -> Manifest:
    label = ["real" if i % 2 else "fake" for i in range(n)]
    attack = ["-" if i % 2 else f"A{i % 4}" for i in range(n)]
    speaker = [f"s{i // 4 % 20}" for i in range(n)]
    frame = pl.DataFrame(
        {"item": [str(i) for i in range(n)], "file": "x", "label": label, "speaker": speaker, "attack": attack}
    )
    return Manifest(frame, "real", "fake")


def features(n: int = N, longer: float = 0.0) -> list[dict[str, float]]:
    rng = np.random.default_rng(4)
    rows = [dict(zip(FEATURES, rng.standard_normal(len(FEATURES)).tolist(), strict=True)) for _ in range(n)]
    for i, row in enumerate(rows):
        row["duration"] += longer * (i % 2)
    return rows


def test_a_planted_shortcut_is_found() -> None:
    found = shortcut_probe(manifest(), features(longer=4.0), unit="speaker", bootstrap=200)
    assert found.one("roc_auc", shortcut="duration").value > 0.97
    assert found.one("roc_auc", shortcut=ALL).value > 0.97
    assert found.one("roc_auc", shortcut="level").value < 0.65


def test_where_there_is_none_folds_keep_the_probe_honest() -> None:
    assert 0.3 < shortcut_probe(manifest(), features(), unit="speaker").one("roc_auc", shortcut=ALL).value < 0.65


def test_a_shortcut_in_the_other_direction_is_turned() -> None:
    trials = shortcut_trials(manifest(), features(longer=-4.0))
    assert trials.where(shortcut="duration").score[1] > 0  # shorter reals: the sign is turned


def test_what_is_measured_of_a_clip() -> None:
    rng = np.random.default_rng(0)
    voice = (0.1 * rng.standard_normal(16000)).astype(np.float32)
    quiet = np.zeros(8000, dtype=np.float32)
    found = shortcut_features(np.concatenate([quiet, voice, quiet[:4000]]))
    assert found["duration"] == 1.75 and found["lead_silence"] == 0.5 and found["tail_silence"] == 0.24
    assert found["zeros"] == pytest.approx(12000 / 28000, abs=1e-3)
    louder = shortcut_features(2 * voice)
    assert louder["level"] - shortcut_features(voice)["level"] == pytest.approx(6.02, abs=0.01)
    assert shortcut_features(np.zeros(5, dtype=np.float32))["level"] == -120


def test_one_class_is_refused() -> None:
    one = Manifest(manifest().frame.filter(pl.col("label") == "real"), "real", "fake")
    with pytest.raises(DataError, match="both classes"):
        shortcut_trials(one, features(60))
    with pytest.raises(DataError, match="labels"):
        shortcut_trials(Manifest(manifest().frame.drop("label")), features())


def test_the_table_has_every_shortcut_and_attack() -> None:
    table = shortcut_table(shortcut_probe(manifest(), features(), by=["attack"]), "attack")
    assert table.header == ("shortcut", "A0", "A2")
    assert {row[0].text for row in table.rows} == {*FEATURES, ALL}
