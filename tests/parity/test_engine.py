"""The whole way, file to figure, against the official package on its own kind of files (set 19 of the references)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hitmiss as hm
from hitmiss.core.results import Results

MATRIX = {"eer": "eer", "min_dcf": "min_dcf", "act_dcf": "act_dcf", "cllr": "cllr_bits"}


@pytest.fixture(scope="module")
def expected(reference: Path) -> dict[str, Any]:
    return json.loads((reference / "expected.json").read_text())["sets"]["19_realistic_4k"]  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def results(reference: Path) -> Results:
    by = ["codec", "codec_q", "codec,codec_q", "gender", "attack", "attack,codec"]
    return evaluated(reference, by=by, metrics=list(MATRIX))


def evaluated(reference: Path, **options: Any) -> Results:
    path = reference / "19_realistic_4k.csv.gz"
    return hm.evaluate(path, protocol="asvspoof5", score_kind="llr", columns={"score": "score"}, **options)


def coded(value: str) -> str:
    return "NONE" if value in ("-", "0") else value


@pytest.mark.parametrize("name", ["codec", "codec_q", "gender"])
def test_tables_by_one_column(results: Results, expected: dict[str, Any], name: str) -> None:
    for value, row in expected[f"by_{name}"].items():
        for metric, theirs in MATRIX.items():
            got = results.one(metric, **{name: coded(value)})
            assert got.value == pytest.approx(row[theirs], abs=1e-12), (value, metric)
            assert (got.n, got.n_positive) == (row["n"], row["n_bonafide"])


def test_codec_by_quality(results: Results, expected: dict[str, Any]) -> None:
    for key, row in expected["by_codec_x_codec_q"].items():
        codec, quality = map(coded, key.split("|"))
        for metric, theirs in MATRIX.items():
            got = results.one(metric, codec=codec, codec_q=quality)
            if isinstance(row[theirs], float):
                assert got.value == pytest.approx(row[theirs], abs=1e-12), (key, metric)
            else:
                assert got.value is None and got.note is not None


def test_attack_by_codec_matrix(results: Results, expected: dict[str, Any]) -> None:
    matrix = expected["official_full_matrix"]
    compared = 0
    for metric in ("eer", "min_dcf"):
        for attack, line in zip(matrix["rows_attack"], matrix[metric], strict=True):
            for codec, theirs in zip(matrix["cols_codec"], line, strict=True):
                cell = {k: coded(v) for k, v in (("attack", attack), ("codec", codec)) if v != "pooled"}
                if isinstance(theirs, float):
                    assert results.one(metric, **cell).value == pytest.approx(theirs, abs=1e-12), cell
                    compared += 1
    assert compared > 400


def test_the_four_printed_lines(results: Results, expected: dict[str, Any]) -> None:
    printed = expected["official_cli_printed"]
    assert f"{results.one('min_dcf').value:.5f}" == printed["eval_mindcf"]
    assert f"{100 * results.one('eer').value:.3f}" == printed["eval_eer (%)"]
    assert f"{results.one('cllr').value:.5f}" == printed["eval_cllr (bits)"]
    assert f"{results.one('act_dcf').value:.5f}" == printed["eval_actDCF"]


@pytest.mark.parametrize("unit, key", [("none", "eer_stratified_by_class"), ("speaker", "eer_cluster_speaker")])
def test_intervals_agree_with_resampling_the_official_package(
    reference: Path, expected: dict[str, Any], unit: str, key: str
) -> None:
    theirs = expected["bootstrap_reference"][key]
    ours = evaluated(reference, metrics=["eer"], bootstrap=4000, unit=unit, interval="percentile").one("eer")
    width = theirs["p97.5"] - theirs["p2.5"]
    assert ours.low == pytest.approx(theirs["p2.5"], abs=0.1 * width)  # 400 replicates of theirs
    assert ours.high == pytest.approx(theirs["p97.5"], abs=0.1 * width)


def test_real_scores_both_eers_and_saturation(published: Path) -> None:
    path = published / "asvspoof5_eval50k_scores.tsv.gz"
    got = hm.evaluate(
        path, protocol="asvspoof5", score_columns=["w2v2_dann_v2"], score_kind="probability", by=["codec"]
    )
    whole = {e.metric: e.value for e in got if not e.slice and e.average is None}
    assert whole["eer"] == pytest.approx(0.1960, abs=5e-5) and whole["eer(ties=grouped)"] == pytest.approx(
        0.1826, abs=5e-5
    )
    assert any("ties matter" in w for w in got.warnings)
    assert sum(e.n for e in got if e.slice and e.average is None and e.metric == "eer") == 50_000


def test_the_polarity_trap_is_called_out(published: Path) -> None:
    path = published / "asvspoof2019_la_eval_air.tsv.gz"
    got = hm.evaluate(path, protocol="asvspoof5", score_columns=["air_softmax", "air_ocsoftmax"], metrics=["roc_auc"])
    assert got.one("roc_auc", system="air_ocsoftmax").value == pytest.approx(0.0045, abs=5e-5)
    (warning,) = [w for w in got.warnings if "REVERSED" in w]
    assert warning.startswith("system=air_ocsoftmax")
