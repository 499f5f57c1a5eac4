"""From sound files to tables by the command line, on simulated voices; no torch, no ONNX."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hitmiss.cli.main import run
from hitmiss.io import read
from hitmiss.simulate.voice_detector import train
from hitmiss.simulate.voices import write

pytest.importorskip("av", reason="the extra audio is not installed")


@pytest.fixture(scope="module")
def voices(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A small corpus and its detector."""
    folder = write(tmp_path_factory.mktemp("voices"), share=0.02)
    return folder, train(folder)


@pytest.fixture(scope="module")
def coded(voices: tuple[Path, str]) -> Path:
    """A run over two codecs."""
    folder, detector = voices
    words = ["detect", "--detector", detector, "--data", str(folder / "eval.tsv"), "-p", "deepfake-audio"]
    assert run([*words, "--codecs", "mp3:1,ulaw", "--cut-length", "32000", "-o", str(folder / "run")]) == 0
    return folder / "run"


def out_json(capsys: pytest.CaptureFixture[str], words: list[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert run([*words, "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


def test_every_clip_is_there_under_every_codec(coded: Path) -> None:
    trials = read(str(coded), positive="real", negative="fake")
    counts = trials.frame.group_by("codec").len().rows()
    assert {codec for codec, _ in counts} == {"NONE", "C05", "X01"} and len({n for _, n in counts}) == 1
    by_codec = {c: trials.where(codec=c).frame.sort("source") for c in ("NONE", "C05", "X01")}
    assert by_codec["NONE"]["source"].equals(by_codec["C05"]["source"])
    assert (by_codec["NONE"]["score"] != by_codec["X01"]["score"]).all()


def test_scores_per_codec_and_attack(coded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["score", str(coded), "-p", "deepfake-audio", "--by", "codec", "--by", "attack"]
    found = out_json(capsys, [*words, "--bootstrap", "100", "--unit", "speaker"])
    cells = [e["slice"] for e in found["estimates"] if e["metric"] == "eer" and e["average"] is None]
    assert {"codec": "X01"} in cells and {"attack": "V04"} in cells and {} in cells


def test_drift_by_codec(coded: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = out_json(
        capsys, ["drift", str(coded), "--by", "codec", "--unit", "speaker", "-o", str(tmp_path / "d.json")]
    )
    values = {(e["metric"], e["slice"]["codec"]): e["value"] for e in found["estimates"]}
    assert values["far", "NONE"] == pytest.approx(values["frr", "NONE"], abs=0.1)
    assert values["far_drift", "C05"] == pytest.approx(values["far", "C05"] - values["far", "NONE"])
    assert json.loads((tmp_path / "d.json").read_text())["signature"] == found["signature"]
    assert run(["drift", str(coded), "--by", "codec"]) == 0
    shown = capsys.readouterr().out
    assert "drift by codec" in shown and "score > " in shown and "optimistic" in shown


def test_fakes_only(voices: tuple[Path, str], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder, detector = voices
    words = ["detect", "--detector", detector, "--data", str(folder / "eval.tsv"), "-p", "deepfake-audio"]
    words += ["--cut-length", "32000", "--manipulate", "noise(snr=10); gain(db=-6)", "-o", str(tmp_path / "run")]
    assert run([*words, "--only", "spoof"]) == 0  # another word for fake
    found = out_json(capsys, ["drift", str(tmp_path / "run")])
    values = {(e["metric"], e["slice"]["manipulation"]): e["value"] for e in found["estimates"]}
    assert values["frr_drift", "noise(snr=10)"] == values["shift_real", "noise(snr=10)"] == 0.0
    assert values["shift_fake", "noise(snr=10)"] != 0.0
    assert values["shift_fake", "gain(db=-6)"] == pytest.approx(0.0, abs=0.01)  # this detector takes the level out
    assert any("read FAR" in w for w in found["warnings"])
    assert run([*words[:-1], str(tmp_path / "other"), "--only", "robots"]) == 2
    assert run([*words[:-1], str(tmp_path / "third"), "--codecs", "gsm"]) == 2


def test_shortcuts(voices: tuple[Path, str], capsys: pytest.CaptureFixture[str]) -> None:
    folder, _ = voices
    found = out_json(capsys, ["shortcuts", str(folder / "eval.tsv"), "--unit", "speaker"])
    areas = {e["run"]["shortcut"]: e["value"] for e in found["estimates"] if e["metric"] == "roc_auc"}
    assert len(areas) == 8 and all(0 <= v <= 1 for v in areas.values())
    assert np.all([v >= 0.5 for name, v in areas.items() if name != "all together"])
    assert run(["shortcuts", str(folder / "eval.tsv"), "--by", "attack"]) == 0
    assert "V04" in capsys.readouterr().out
