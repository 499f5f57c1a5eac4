"""`hitmiss attack` from files to a run folder, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.simulate.graphs import ecg_graph

from hitmiss.cli.main import run
from hitmiss.io import read
from hitmiss.simulate.ecg import simulate
from hitmiss.simulate.ecg_detector import ConvBaseline, train


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("ecg")
    simulate(200, 0, "train").save(here / "train.npz")
    simulate(18, 0, "test").save(here / "test.npz")
    assert train(here).endswith("detector.py:detector")
    return here


def words(folder: Path, *more: str) -> list[str]:
    return ["attack", "--detector", f"{folder / 'detector.py'}:detector", "--data", str(folder / "test.npz"), *more]


def test_from_signals_to_numbers(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    families = ["--family", "band_noise(beta=1)", "--family", "morph_time", "--strengths", "0.1", "0.5", "1"]
    assert run(words(folder, *families, "--minimal", "band_noise(beta=3)", "-o", str(tmp_path / "run"))) == 0
    said = capsys.readouterr()
    assert "18 records × 8 conditions" in said.out and "-p ecg-attacks" in said.out
    assert (
        run(
            [
                "score",
                str(tmp_path / "run"),
                "-p",
                "ecg-attacks",
                "--by",
                "target",
                "--by",
                "sex",
                "--bootstrap",
                "20",
                "--json",
            ]
        )
        == 0
    )
    rows = json.loads(capsys.readouterr().out)["estimates"]
    assert {r["metric"] for r in rows} >= {
        "changed",
        "changed_correct",
        "exact_match",
        "macro_auc",
        "flipped",
        "roc_auc",
        "snr_db",
        "median_minimal_strength",
    }
    assert {r["run"]["strength"] for r in rows if r["run"]["attack"] == "band_noise"} == {"0.1", "0.5", "1", "minimal"}
    assert {r["slice"].get("target") for r in rows} >= {"CD", "HYP", "MI", "NORM", "STTC"}
    assert run(["score", str(tmp_path / "run"), "-p", "ecg-attacks"]) == 0
    assert "noise ~ band_noise" in capsys.readouterr().out


def test_the_same_run_twice_and_resumed(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = [
        "--family",
        "random_search(queries=10)",
        "--strengths",
        "0.5",
        "--target",
        "MI:suppress",
        "--window",
        "2",
        "--center",
        "3",
        "5",
        "--limit",
        "6",
        "--json",
    ]
    for name in ("a", "b"):
        assert run(words(folder, *more, "-o", str(tmp_path / name))) == 0
        assert json.loads(capsys.readouterr().out)["records"] == 6
    tables = [(tmp_path / name / "trials.parquet").read_bytes() for name in ("a", "b")]
    assert tables[0] == tables[1]
    assert run(words(folder, *more, "--resume", "-o", str(tmp_path / "a"))) == 0
    assert run(words(folder, *more, "--seed", "1", "--resume", "-o", str(tmp_path / "a"))) == 4
    assert run(["score", str(tmp_path / "a"), "-p", "ecg-attacks"]) == 0
    assert "suppress MI" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "code", "word"),
    [
        ([], 2, "say what to do"),
        (["--family", "band_noise"], 2, "give strengths"),
        (["--family", "band_nose", "--strengths", "0.5"], 2, "did you mean 'band_noise'"),
        (["--family", "band_noise(bta=1)", "--strengths", "0.5"], 2, "did you mean 'beta'"),
        (["--family", "band_noise", "--strengths", "1.5"], 2, "between 0 and 1"),
        (["--family", "band_noise", "--strengths", "0.5", "--window", "2"], 2, "needs a center"),
        (["--family", "random_search", "--strengths", "0.5", "--target", "IM"], 2, "unknown class 'IM'"),
    ],
)
def test_wrong_commands_are_refused(
    folder: Path, tmp_path: Path, more: list[str], code: int, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words(folder, *more, "-o", str(tmp_path / "run"))) == code
    assert word in capsys.readouterr().err


def test_classes_of_model_and_data_must_agree(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with np.load(folder / "test.npz") as stored:
        arrays = dict(stored)
    np.savez(tmp_path / "other.npz", **{**arrays, "classes": np.array(["A", "B", "C", "D", "E"])})
    asked = [
        "attack",
        "--detector",
        f"{folder / 'detector.py'}:detector",
        "--data",
        str(tmp_path / "other.npz"),
        "--family",
        "muscle",
        "--strengths",
        "1",
    ]
    assert run([*asked, "-o", str(tmp_path / "run")]) == 3
    assert "the model's classes are CD" in capsys.readouterr().err


@pytest.mark.extras
def test_the_documented_command_on_an_onnx_model(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for package in ("torch", "onnx", "onnxruntime"):
        pytest.importorskip(package)
    import torch

    torch.set_num_threads(1)
    ecg_graph(ConvBaseline.load(folder / "detector.npz"), tmp_path / "model.onnx")
    typed = f"attack --detector {tmp_path}/model.onnx --data {folder}/test.npz --family band_noise --family smooth_adv --strengths 0.1 0.2 0.35 0.5 --output {tmp_path}/run/"
    assert run(typed.split()) == 0
    assert run(["score", f"{tmp_path}/run/", "-p", "ecg-attacks", "--json"]) == 0
    out = capsys.readouterr().out
    results = json.loads(out[out.index("{") :])
    changed = {
        (e["run"]["attack"], e["run"]["strength"]): e["value"] for e in results["estimates"] if e["metric"] == "changed"
    }
    assert changed["smooth_adv", "0.5"] > changed["noise ~ smooth_adv", "0.5"]


def test_classes_that_exclude_each_other_are_declared(folder: Path, tmp_path: Path) -> None:
    asked = ["--family", "worst_case(queries=20)", "--strengths", "1", "--no-control"]
    for flag, name in (("--single-label", "one"), ("--multi-label", "many")):
        assert run(words(folder, *asked, flag, "-o", str(tmp_path / name))) == 0
    one, many = (read(str(tmp_path / name)).frame.sort("attack", "item") for name in ("one", "many"))
    counts = one["decision"].to_numpy().reshape(-1, 5).sum(axis=1)
    assert (counts == 1).all()
    assert (many["decision"].to_numpy().reshape(-1, 5).sum(axis=1) != 1).any()
    assert (
        run(words(folder, *asked, "--resume", "-o", str(tmp_path / "one"))) == 4
    )  # another way to decide: another run
