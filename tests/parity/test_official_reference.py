"""Every figure of the reference sets, each against the public tool that made it, to 1e-12."""

from __future__ import annotations

import csv
import gzip
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hitmiss import metrics as m
from hitmiss.core.errors import DataError

SETS = {
    "01_separable": "01_separable.csv",
    "02_overlapping": "02_overlapping.csv",
    "03_heavy_ties": "03_heavy_ties.csv",
    "04_constant": "04_constant.csv",
    "05_tiny_1v1": "05_tiny_1v1.csv",
    "06_tiny_2v3": "06_tiny_2v3.csv",
    "07_few_bonafide": "07_few_bonafide.csv",
    "08_few_spoof": "08_few_spoof.csv",
    "09_llr_calibrated": "09_llr_calibrated.csv",
    "10_probabilities_saturated": "10_probabilities_saturated.csv",
    "11_reversed": "11_reversed.csv",
    "12_float32_near_ties": "12_float32_near_ties.csv",
    "13_infinite_scores": "13_infinite_scores.csv",
    "14_huge_finite_llr": "14_huge_finite_llr.csv",
    "15_bayes_threshold_edge": "15_bayes_threshold_edge.csv",
    "16_tie_trap": "16_tie_trap.csv",
    "19_realistic_4k": "19_realistic_4k.csv.gz",
}
each_set = pytest.mark.parametrize("name", SETS)
EXACT = {"abs": 1e-12, "rel": 1e-12}

Row = dict[str, str]
Arrays = tuple[np.ndarray, np.ndarray]


def rows(folder: Path, file: str) -> list[Row]:
    content = (folder / file).read_bytes()
    text = gzip.decompress(content) if file.endswith(".gz") else content
    return list(csv.DictReader(text.decode().splitlines()))


def arrays(table: list[Row], column: str = "score") -> Arrays:
    key = "label" if "label" in table[0] else "KEY"
    return np.array([r[key] == "bonafide" for r in table]), np.array([float(r[column]) for r in table])


def trials(folder: Path, name: str) -> Arrays:
    return arrays(rows(folder, SETS[name]))


def numbers(block: Any) -> Any:
    """JSON has no inf and nan: they are texts there."""
    if isinstance(block, dict):
        return {key: numbers(value) for key, value in block.items()}
    return float(block) if block in ("inf", "-inf", "nan") else block


@pytest.fixture(scope="module")
def expected(reference: Path) -> dict[str, Any]:
    sets: dict[str, Any] = numbers(json.loads((reference / "expected.json").read_text())["sets"])
    return sets


def block(expected: dict[str, Any], name: str, tool: str) -> dict[str, Any]:
    """What a tool said about a set; a skip where it was not run on it or refused."""
    found: dict[str, Any] = expected[name].get(tool, {"error": "not run"})
    if "error" in found:
        pytest.skip(f"{tool} gives no figures for {name}: {found['error']}")
    return found


def test_no_set_is_left_out(expected: dict[str, Any]) -> None:
    elsewhere = {"17_nan_scores", "18_single_class", "20_sasv_900"}
    assert set(expected) == set(SETS) | elsewhere


# --- the official package ---------------------------------------------------------------------------------------


@each_set
def test_official_eer_and_its_threshold(reference: Path, expected: dict[str, Any], name: str) -> None:
    want = block(expected, name, "official_asvspoof5")
    label, score = trials(reference, name)
    assert m.eer(label, score, ties="official") == pytest.approx(want["eer"], **EXACT)
    assert m.eer_threshold(label, score, ties="official") == want["eer_threshold"]


@each_set
@pytest.mark.parametrize("setting", ["asvspoof5", "seed_p_target_0.05_is_P_bonafide", "seed_read_as_P_spoof_0.05"])
def test_official_costs(reference: Path, expected: dict[str, Any], name: str, setting: str) -> None:
    want = block(expected, name, "official_asvspoof5")["dcf"][setting]
    label, score = trials(reference, name)
    costs = {"p_target": round(1 - want["P_spoof"], 15), "c_miss": want["C_miss"], "c_fa": want["C_fa"]}
    assert m.bayes_threshold(**costs) == want["bayes_threshold"]
    assert m.min_dcf(label, score, **costs) == pytest.approx(want["min_dcf"], **EXACT)
    assert m.act_dcf(label, score, **costs) == pytest.approx(want["act_dcf"], **EXACT)
    assert m.dcf_at(label, score, **costs, threshold=want["bayes_threshold"]) == m.act_dcf(label, score, **costs)


@each_set
def test_official_cllr(reference: Path, expected: dict[str, Any], name: str) -> None:
    want = block(expected, name, "official_asvspoof5")["cllr_bits"]
    found = m.cllr(*trials(reference, name))
    if name == "14_huge_finite_llr":  # the official figure overflows there; two other tools are stable
        assert math.isinf(want)
        assert math.isfinite(found)
    else:
        assert found == pytest.approx(want, **EXACT)


# --- the other tools --------------------------------------------------------------------------------------------


@each_set
def test_bosaris(reference: Path, expected: dict[str, Any], name: str) -> None:
    want = block(expected, name, "pybosaris")
    label, score = trials(reference, name)
    assert m.eer(label, score, ties="hull") == pytest.approx(want["rocch_eer"], **EXACT)
    assert m.min_dcf(label, score) == pytest.approx(want["min_dcf_asvspoof5"], **EXACT)
    assert m.cllr(label, score) == pytest.approx(want["cllr_bits"], **EXACT)
    assert m.min_cllr(label, score) == pytest.approx(want["min_cllr_bits"], **EXACT)
    act = m.act_dcf(label, score)
    if (
        name == "15_bayes_threshold_edge"
    ):  # its threshold is one unit in the last place off, on purpose hit by 12 scores
        assert abs(act - want["act_dcf_asvspoof5"]) > 0.05
    else:
        assert act == pytest.approx(want["act_dcf_asvspoof5"], **EXACT)


@each_set
def test_pyllr(reference: Path, expected: dict[str, Any], name: str) -> None:
    want = block(expected, name, "pyllr")
    label, score = trials(reference, name)
    assert m.cllr(label, score) == pytest.approx(want["cllr_bits"], **EXACT)
    assert m.min_cllr(label, score) == pytest.approx(want["min_cllr_bits"], **EXACT)
    assert m.eer(label, score, ties="hull") == pytest.approx(want["rocch_eer"], abs=1e-8)  # a numeric search


@each_set
def test_sklearn_curves(reference: Path, expected: dict[str, Any], name: str) -> None:
    want = block(expected, name, "sklearn")
    label, score = trials(reference, name)
    assert m.roc_auc(label, score) == pytest.approx(want["roc_auc"], **EXACT)
    positive, negative = "average_precision_bonafide_positive", "average_precision_spoof_positive_on_minus_score"
    assert m.average_precision(label, score) == pytest.approx(want[positive], **EXACT)
    assert m.average_precision(~label, -score) == pytest.approx(want[negative], **EXACT)
    assert m.eer(label, score) == pytest.approx(want["eer_roc_mean_at_argmin"], **EXACT)
    assert m.eer(label, score, ties="interpolated") == pytest.approx(want["eer_roc_straight_line_crossing"], **EXACT)


@each_set
def test_sklearn_eer_threshold(reference: Path, expected: dict[str, Any], name: str) -> None:
    """sklearn walks the curve downwards, hitmiss upwards: they meet unless two points are equally near."""
    want = block(expected, name, "sklearn")["eer_roc_threshold_accept_if_ge"]
    label, score = trials(reference, name)
    found = m.eer_threshold(label, score)
    gap = [abs(np.mean(score[label] < t) - np.mean(score[~label] >= t)) for t in (found, want)]
    assert gap[0] == pytest.approx(gap[1], **EXACT)
    assert found <= want
    if name not in ("04_constant", "16_tie_trap"):
        assert found == want


@each_set
def test_sklearn_figures_at_threshold_zero(reference: Path, expected: dict[str, Any], name: str) -> None:
    want = block(expected, name, "sklearn_at_threshold_0")
    label, score = trials(reference, name)
    decision = (score >= 0).astype(int)
    (tn, fp), (fn, tp) = want["confusion_rows_true_spoof_bonafide"]
    assert m.accuracy(label, decision) == pytest.approx(want["accuracy"], **EXACT)
    assert m.balanced_accuracy(label, decision) == pytest.approx(want["balanced_accuracy"], **EXACT)
    assert m.f1(label, decision) == pytest.approx(want["f1_bonafide"], **EXACT)
    assert m.f1(~label, 1 - decision) == pytest.approx(want["f1_spoof"], **EXACT)
    assert (m.recall(label, decision).hits, m.specificity(label, decision).hits) == (tp, tn)
    assert (m.fnr(label, decision).hits, m.fpr(label, decision).hits) == (fn, fp)
    if tn + fn:
        assert m.mcc(label, decision) == pytest.approx(want["mcc"], **EXACT)
    else:  # sklearn calls it 0 where nothing was called negative; here it is undefined
        assert want["mcc"] == 0.0
        assert math.isnan(m.mcc(label, decision))


@each_set
def test_sklearn_probabilities(reference: Path, expected: dict[str, Any], name: str) -> None:
    want = block(expected, name, "sklearn_probability")
    label, score = trials(reference, name)
    assert m.brier(label, score) == pytest.approx(want["brier"], **EXACT)
    assert m.log_loss(label, score) == pytest.approx(want["log_loss"], **EXACT)


@each_set
def test_torchmetrics(reference: Path, expected: dict[str, Any], name: str) -> None:
    want = block(expected, name, "torchmetrics")["binary_eer"]
    assert m.eer(*trials(reference, name)) == pytest.approx(want, abs=1e-6)


# --- what single sets are for -----------------------------------------------------------------------------------


def test_float32_and_float64_readings_agree(reference: Path) -> None:
    label, score = trials(reference, "12_float32_near_ties")
    single = score.astype(np.float32)
    for ties in ("grouped", "official", "interpolated", "hull"):
        assert m.eer(label, single, ties=ties) == m.eer(label, score, ties=ties)
    assert m.min_dcf(label, single) == m.min_dcf(label, score)
    assert m.roc_auc(label, single) == m.roc_auc(label, score)


def test_the_tie_trap_separates_the_conventions(reference: Path) -> None:
    label, score = trials(reference, "16_tie_trap")
    assert len({round(m.eer(label, score, ties=t), 6) for t in ("grouped", "official", "interpolated")}) == 3


def test_the_reversed_set_is_the_mirror_of_the_second(reference: Path) -> None:
    label, score = trials(reference, "02_overlapping")
    backwards = trials(reference, "11_reversed")
    assert m.roc_auc(label, score) + m.roc_auc(*backwards) == pytest.approx(1.0, **EXACT)


def test_nan_scores_are_refused(reference: Path) -> None:
    table = rows(reference, "17_nan_scores.csv")
    label, score = arrays(table)
    assert np.isnan(score).sum() == 2
    for metric in (m.eer, m.min_dcf, m.act_dcf, m.cllr, m.min_cllr, m.roc_auc, m.average_precision):
        with pytest.raises(DataError, match="2 of 100 scores are NaN"):
            metric(label, score)


def test_a_single_class_is_undefined(reference: Path) -> None:
    label, score = arrays(rows(reference, "18_single_class.csv"))
    assert label.all()
    for metric in (m.eer, m.eer_threshold, m.min_dcf, m.act_dcf, m.cllr, m.min_cllr, m.roc_auc):
        assert math.isnan(metric(label, score))


# --- set 19: groups ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def realistic(reference: Path) -> list[Row]:
    return rows(reference, SETS["19_realistic_4k"])


def figures(label: np.ndarray, score: np.ndarray) -> dict[str, float]:
    return {
        "eer": m.eer(label, score, ties="official"),
        "min_dcf": m.min_dcf(label, score),
        "act_dcf": m.act_dcf(label, score),
        "cllr_bits": m.cllr(label, score),
    }


def test_each_attack_against_all_bonafide_of_its_codec(realistic: list[Row], expected: dict[str, Any]) -> None:
    matrix = expected["19_realistic_4k"]["official_full_matrix"]
    undefined = 0
    for i, attack in enumerate(matrix["rows_attack"]):
        for j, codec in enumerate(matrix["cols_codec"]):
            domain = [r for r in realistic if codec in ("pooled", r["CODEC"])]
            cell = arrays([r for r in domain if r["KEY"] == "bonafide" or attack in ("pooled", r["ATTACK_LABEL"])])
            for figure, found in figures(*cell).items():
                want = matrix[figure][i][j]
                undefined += want is None
                want = math.nan if want is None else want
                assert found == pytest.approx(want, nan_ok=True, **EXACT), (figure, attack, codec)
    assert undefined < len(matrix["rows_attack"])


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("by_codec", ["CODEC"]),
        ("by_codec_q", ["CODEC_Q"]),
        ("by_gender", ["SPEAKER_GENDER"]),
        ("by_codec_x_codec_q", ["CODEC", "CODEC_Q"]),
    ],
)
def test_groups(realistic: list[Row], expected: dict[str, Any], table: str, columns: list[str]) -> None:
    wanted = expected["19_realistic_4k"][table]
    assert set(wanted) == {"|".join(r[c] for c in columns) for r in realistic}
    for group, want in wanted.items():
        label, score = arrays([r for r in realistic if "|".join(r[c] for c in columns) == group])
        assert (len(label), int(label.sum())) == (want["n"], want["n_bonafide"])
        for figure, found in figures(label, score).items():
            assert found == pytest.approx(want[figure], **EXACT), (figure, group)


def test_the_second_system(realistic: list[Row], expected: dict[str, Any]) -> None:
    want = expected["19_realistic_4k"]["score_b"]
    label, score = arrays(realistic, "score_b")
    official, hull = want["official_asvspoof5"], want["pybosaris"]["rocch_eer"]
    assert m.eer(label, score, ties="official") == pytest.approx(official["eer"], **EXACT)
    assert m.min_dcf(label, score) == pytest.approx(official["dcf"]["asvspoof5"]["min_dcf"], **EXACT)
    assert m.cllr(label, score) == pytest.approx(official["cllr_bits"], **EXACT)
    assert m.roc_auc(label, score) == pytest.approx(want["sklearn"]["roc_auc"], **EXACT)
    assert m.eer(label, score, ties="hull") == pytest.approx(hull, **EXACT)


def test_what_the_official_command_prints(realistic: list[Row], expected: dict[str, Any]) -> None:
    want = expected["19_realistic_4k"]["official_cli_printed"]
    found = figures(*arrays(realistic))
    assert f"{found['min_dcf']:.5f}" == want["eval_mindcf"]
    assert f"{100 * found['eer']:.3f}" == want["eval_eer (%)"]
    assert f"{found['cllr_bits']:.5f}" == want["eval_cllr (bits)"]
    assert f"{found['act_dcf']:.5f}" == want["eval_actDCF"]
