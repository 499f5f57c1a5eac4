"""Real detectors' scores: what was published about them is reproduced where it is right, and missed where it is not."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from hitmiss import metrics as m

SYSTEMS = ("w2v2_erm", "w2v2_dann", "w2v2_dann_v2", "wavlm_erm")
EXACT = {"abs": 1e-12, "rel": 0.0}
AS_PUBLISHED = {"p_target": 0.05, "c_miss": 1.0, "c_fa": 1.0}
each_system = pytest.mark.parametrize("system", SYSTEMS)


class Scores:
    """One file of scores, as text where it is text."""

    def __init__(self, path: Path) -> None:
        self.table = pl.read_csv(path, separator="\t", infer_schema=False)
        self.is_bonafide = (self.table["key"] == "bonafide").to_numpy()

    def of(self, system: str, **cell: str) -> tuple[np.ndarray, np.ndarray]:
        inside = np.ones(len(self.table), dtype=bool)
        for column, value in cell.items():
            inside &= (self.table[column] == value).to_numpy()
        return self.is_bonafide[inside], self.table[system].cast(pl.Float64).to_numpy()[inside]


@pytest.fixture(scope="module")
def scores(published: Path) -> Scores:
    return Scores(published / "asvspoof5_eval50k_scores.tsv.gz")


@pytest.fixture(scope="module")
def figures(published: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((published / "asvspoof5_eval50k_published_metrics.json").read_text())
    assert set(found) == set(SYSTEMS)
    return found


# --- what is right ----------------------------------------------------------------------------------------------


@each_system
def test_published_area_under_the_curve(scores: Scores, figures: dict[str, Any], system: str) -> None:
    assert m.roc_auc(*scores.of(system)) == pytest.approx(figures[system]["overall"]["auc"], **EXACT)


@each_system
def test_published_figures_at_the_published_threshold(scores: Scores, figures: dict[str, Any], system: str) -> None:
    want = figures[system]["overall"]
    label, score = scores.of(system)
    decision = (score >= want["eer_threshold"]).astype(int)
    found = {
        "precision_bonafide": m.precision(label, decision),
        "recall_bonafide": m.recall(label, decision),
        "f1_bonafide": m.f1(label, decision),
        "precision_spoof": m.precision(~label, 1 - decision),
        "recall_spoof": m.specificity(label, decision),
        "f1_spoof": m.f1(~label, 1 - decision),
        "recall_macro": m.balanced_accuracy(label, decision),
    }
    assert found == pytest.approx({name: want[name] for name in found}, **EXACT)


def test_published_cost_and_eer_of_the_system_that_does_not_saturate(scores: Scores, figures: dict[str, Any]) -> None:
    want = figures["wavlm_erm"]["overall"]
    label, score = scores.of("wavlm_erm")
    assert m.min_dcf(label, score, **AS_PUBLISHED) == pytest.approx(want["min_dcf"], **EXACT)
    assert m.eer(label, score) == pytest.approx(want["eer"], **EXACT)
    assert m.eer(label, score, ties="official") == pytest.approx(want["eer"], **EXACT)


@pytest.mark.parametrize(("table", "column"), [("metrics_by_codec", "codec"), ("metrics_by_codec_q", "codec_q")])
def test_published_tables_of_the_system_that_does_not_saturate(
    scores: Scores, figures: dict[str, Any], table: str, column: str
) -> None:
    wanted = figures["wavlm_erm"][table]
    assert {row["domain"] for row in wanted} == set(scores.table[column])
    for row in wanted:
        label, score = scores.of("wavlm_erm", **{column: row["domain"]})
        assert (len(label), int(label.sum())) == (row["n_samples"], row["n_bonafide"])
        assert m.min_dcf(label, score, **AS_PUBLISHED) == pytest.approx(row["min_dcf"], **EXACT)
        assert m.eer(label, score) == pytest.approx(row["eer"], **EXACT)


# --- what is not ------------------------------------------------------------------------------------------------


def test_the_published_cost_is_not_the_official_one(scores: Scores, figures: dict[str, Any]) -> None:
    official = m.min_dcf(*scores.of("wavlm_erm"), p_target=0.95, c_miss=1, c_fa=10)
    assert official == pytest.approx(0.2142, abs=5e-5)
    assert figures["wavlm_erm"]["overall"]["min_dcf"] == pytest.approx(0.6360, abs=5e-5)


@each_system
def test_no_published_cost_is_above_what_thresholds_give(scores: Scores, figures: dict[str, Any], system: str) -> None:
    """Thresholds inside a tie do not exist: costs read there are too low, never too high."""
    for row in figures[system]["metrics_by_codec"]:
        label, score = scores.of(system, codec=row["domain"])
        assert m.min_dcf(label, score, **AS_PUBLISHED) >= row["min_dcf"] - 1e-12


def test_ones_in_the_saturated_systems(scores: Scores) -> None:
    ones = {system: int(np.sum(scores.of(system)[1] == 1.0)) for system in SYSTEMS}
    assert ones == {"w2v2_dann_v2": 14892, "w2v2_erm": 12068, "w2v2_dann": 4964, "wavlm_erm": 24}


def test_saturation_moves_the_eer_by_points(scores: Scores, figures: dict[str, Any]) -> None:
    label, score = scores.of("w2v2_dann_v2")
    spoof_first = m.eer(label, np.where(label, score, np.nextafter(score, -1)), ties="official")
    bonafide_first = m.eer(label, np.where(label, np.nextafter(score, -1), score), ties="official")
    found = [100 * bonafide_first, 100 * spoof_first, 100 * m.eer(label, score, ties="interpolated")]
    assert found == pytest.approx([19.60, 17.08, 18.50], abs=0.005)
    assert m.eer(label, score, ties="official") == bonafide_first
    assert 100 * figures["w2v2_dann_v2"]["overall"]["eer"] == pytest.approx(18.54, abs=0.005)
    assert spoof_first < m.eer(label, score) < bonafide_first


@each_system
def test_the_published_table_by_attack_says_nothing(scores: Scores, figures: dict[str, Any], system: str) -> None:
    rows = figures[system]["metrics_by_attack_label"]
    attacks = [row for row in rows if row["n_bonafide"] == 0]
    assert len(attacks) == 16
    for row in attacks:
        label, score = scores.of(system, attack=row["domain"])
        assert len(label) == row["n_samples"]
        assert (row["eer"], row["min_dcf"]) == (0.5, 1.0)
        assert math.isnan(m.eer(label, score))
        assert math.isnan(m.min_dcf(label, score))


def test_the_polarity_trap(published: Path) -> None:
    air = Scores(published / "asvspoof2019_la_eval_air.tsv.gz")
    assert m.roc_auc(*air.of("air_ocsoftmax")) == pytest.approx(0.0045, abs=5e-5)
    label, score = air.of("air_ocsoftmax")
    assert m.roc_auc(label, -score) == pytest.approx(1 - m.roc_auc(label, score), **EXACT)
    assert m.roc_auc(*air.of("air_softmax")) > 0.98
