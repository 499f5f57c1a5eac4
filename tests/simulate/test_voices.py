"""The simulated voices: the same for the same seed, voice-like, said to be simulated, and a detector learns on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.simulate.graphs import spectral_graph

from hitmiss.core.read_spec import ReadSpec
from hitmiss.detection.opening import open_detector
from hitmiss.io.manifest import read_manifest
from hitmiss.media.audio import load_audio
from hitmiss.metrics.detection import eer
from hitmiss.simulate.saved_detectors import trained
from hitmiss.simulate.spectral_baseline import SpectralBaseline
from hitmiss.simulate.spoofs import SPOOFS
from hitmiss.simulate.voice_detector import train
from hitmiss.simulate.voices import SPLITS, corpus, make_speaker, utter, write


def test_a_speaker_is_the_same_everywhere_and_another_is_not() -> None:
    assert make_speaker("x", 0) == make_speaker("x", 0) != make_speaker("x", 1)
    assert make_speaker("x", 0).pitch != make_speaker("y", 0).pitch


def test_an_utterance_sounds_like_a_voice() -> None:
    speaker = make_speaker("someone", 3)
    clip = utter(speaker, np.random.default_rng(0))
    assert clip.dtype == np.float32 and 1.2 < len(clip) / 16000 < 5 and np.abs(clip).max() <= 1
    lags = np.fft.irfft(np.abs(np.fft.rfft(clip, 1 << 17)) ** 2)
    period = 60 + int(np.argmax(lags[60:250]))
    assert 16000 / period == pytest.approx(speaker.pitch, rel=0.35)
    spectrum = np.abs(np.fft.rfft(clip)) ** 2
    hertz = np.fft.rfftfreq(len(clip), 1 / 16000)
    assert spectrum[hertz < 4000].sum() > 5 * spectrum[hertz > 4000].sum()


@pytest.mark.parametrize("kind", ["V01", "V02", "V04"])
def test_a_spoof_keeps_length_and_level_and_changes_the_rest(kind: str) -> None:
    clip = utter(make_speaker("someone", 3), np.random.default_rng(0))
    fake = SPOOFS[kind].make(clip, np.random.default_rng(1))
    assert len(fake) == len(clip) and np.isfinite(fake).all()
    assert np.std(fake) == pytest.approx(np.std(clip), rel=0.05)
    assert np.corrcoef(clip, fake)[0, 1] < 0.999


def test_splits_share_no_speaker_and_hold_a_new_kind() -> None:
    train_rows, eval_rows = ([row for row, _ in corpus(split, 3, 4)] for split in ("train", "eval"))
    assert not {r["speaker"] for r in train_rows} & {r["speaker"] for r in eval_rows}
    assert {r["attack"] for r in eval_rows} - {r["attack"] for r in train_rows} == set(SPLITS["eval"]) - set(
        SPLITS["train"]
    )
    assert [r["label"] for r in eval_rows].count("real") == len(eval_rows) / 2


@pytest.mark.nightly
def test_the_folder_is_whole_and_a_detector_learns(tmp_path: Path) -> None:
    folder = write(tmp_path / "voices", share=0.02)
    again = write(tmp_path / "again", share=0.02)
    assert "SIMULATED" in (folder / "README.txt").read_text()
    assert (folder / "eval.tsv").read_text() == (again / "eval.tsv").read_text()
    manifest = read_manifest(folder / "eval.tsv", options=ReadSpec(positive="real"))
    assert (manifest.positive, manifest.negative) == ("real", "fake") and manifest.slices == (
        "speaker",
        "gender",
        "attack",
    )
    first = manifest.row(0)["file"]
    assert np.array_equal(load_audio(folder / first), load_audio(again / first))
    text = train(folder)
    assert text == trained(folder) == f"{folder / 'detector.py'}:detector"
    model = open_detector(text)
    rows = pl.read_csv(folder / "train.tsv", separator="\t", infer_schema_length=0)
    outputs = model.outputs([load_audio(folder / file) for file in rows["file"]])
    assert eer((rows["label"] == "real").to_numpy(), outputs[:, 1] - outputs[:, 0]) < 0.3


def test_numbers_come_back(tmp_path: Path) -> None:
    clips = [utter(make_speaker(f"s{i}", 0), np.random.default_rng(i), is_flat=i % 2 == 1) for i in range(6)]
    model = SpectralBaseline.fit(clips, [True, False] * 3)
    model.save(tmp_path / "a.npz")
    back = SpectralBaseline.load(tmp_path / "a.npz")
    assert np.array_equal(back.outputs(clips), model.outputs(clips)) and back.identity == model.identity
    assert model.outputs([4 * clips[0]]) == pytest.approx(model.outputs([clips[0]]), abs=1e-3)  # the level is no cue


@pytest.mark.extras
def test_the_graph_computes_the_same(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    clips = [utter(make_speaker(f"s{i}", 0), np.random.default_rng(i), is_flat=i % 2 == 1)[:16000] for i in range(6)]
    model = SpectralBaseline.fit(clips, [True, False] * 3)
    spectral_graph(model, tmp_path / "a.onnx")
    session = runtime.InferenceSession(tmp_path / "a.onnx")
    (logits,) = session.run(None, {"audio": np.stack(clips)})
    assert logits == pytest.approx(model.outputs(clips), abs=1e-4)
    assert open_detector(str(tmp_path / "a.onnx")).outputs(np.stack(clips)) == pytest.approx(logits, abs=1e-5)
