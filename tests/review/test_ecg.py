"""ECG paper: the lines lie where the millivolts say, no peak is lost, and the names cannot break out."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from hitmiss.core.errors import DataError
from hitmiss.review.ecg_paper import GAIN, LEFT, SPEED, Ecg
from hitmiss.review.ecg_paper import draw_ecg as draw

SVG = "{http://www.w3.org/2000/svg}"


def parsed(ecg: Ecg) -> ElementTree.Element:
    return ElementTree.fromstring(draw(ecg).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))


def traces(ecg: Ecg) -> list[np.ndarray]:
    found = [p.attrib["d"] for p in parsed(ecg).iter(f"{SVG}path") if p.attrib["class"] == "trace"]
    return [np.array([[float(n) for n in pair.split()] for pair in re.split("[ML]", d) if pair]) for d in found]


def bases(ecg: Ecg) -> list[float]:
    pulses = [p.attrib["d"] for p in parsed(ecg).iter(f"{SVG}path") if p.attrib["class"] == "pulse"]
    return [float(re.match(r"M2 ([\d.]+)h", d)[1]) for d in pulses]  # type: ignore[index]


@pytest.mark.parametrize("fs", [100.0, 360.0, 500.0, 5000.0])
def test_lines_lie_where_the_millivolts_say(fs: float) -> None:
    rng = np.random.default_rng(2)
    signal = rng.normal(size=(3, int(4 * fs))) * 0.4
    signal[1, int(2.5 * fs)] = 2.0
    ecg = Ecg.of(signal, fs)
    for lead, line, base in zip(signal, traces(ecg), bases(ecg), strict=True):
        seconds, millivolts = (line[:, 0] - LEFT) / SPEED, (base - line[:, 1]) / GAIN
        at = np.round(seconds * fs).astype(int)
        assert np.abs(seconds * fs - at).max() < 0.05 * fs / SPEED + 0.01
        assert millivolts.max() == pytest.approx(lead.max(), abs=0.02) and millivolts.min() == pytest.approx(
            lead.min(), abs=0.02
        )
        near = [
            np.abs(lead[max(0, i - int(fs / 500) - 1) : i + int(fs / 500) + 2] - v).min()
            for i, v in zip(at, millivolts, strict=True)
        ]
        assert max(near) < 0.01, "every point drawn is a sample"
        assert (np.diff(seconds) >= -1e-9).all()


def test_a_calibration_pulse_is_one_millivolt_for_a_fifth_of_a_second() -> None:
    pulse = next(
        p.attrib["d"]
        for p in parsed(Ecg.of(np.zeros((1, 200)), 100.0)).iter(f"{SVG}path")
        if p.attrib["class"] == "pulse"
    )
    assert f"v-{GAIN:g}h{0.2 * SPEED:g}v" in pulse


def test_either_way_round_and_named() -> None:
    long = np.zeros((12, 400))
    assert (
        Ecg.of(long, 100.0).leads
        == Ecg.of(long.T, 100.0).leads
        == ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")
    )
    assert Ecg.of(np.zeros(300), 100.0).leads == ("lead 1",)
    hostile = parsed(Ecg(np.zeros((1, 50)), 50.0, ('<script>"&\u202e',)))
    assert next(hostile.iter(f"{SVG}text")).text == '<script>"&\\u202e'


@pytest.mark.parametrize(
    ("array", "fs"),
    [
        (np.full((2, 100), np.nan), 100.0), (np.zeros((100, 100)), 100.0), (np.zeros((2, 3, 4)), 100.0), (np.zeros((1, 1)), 100.0),
        (np.zeros((2, 100)), 0.0), (np.zeros((2, 100_000)), 100.0), (np.zeros((0, 0)), 100.0), (np.zeros(()), 1.0),
    ],
)  # fmt: skip
def test_what_is_no_ecg_is_refused(array: np.ndarray, fs: float) -> None:
    with pytest.raises(DataError, match="an ECG"):
        Ecg.of(array, fs)


def test_a_sound_is_drawn_by_its_extremes(tmp_path: Path) -> None:
    from hitmiss.media.audio import save_audio
    from hitmiss.review.waveform import HEIGHT, waveform
    from hitmiss.review.waveform import draw_waveform as draw

    clip = np.zeros(16_000, dtype=np.float32)
    clip[4_000], clip[12_000] = 0.5, -0.25
    save_audio(tmp_path / "a.wav", clip)
    strokes = re.findall(r"M([\d.]+) ([\d.]+)V([\d.]+)", waveform(tmp_path / "a.wav"))
    x, top, bottom = np.array(strokes, dtype=float).T
    assert x[top.argmin()] == pytest.approx(360 * 4_000 / 16_000, abs=2) and top.min() == pytest.approx(2.0, abs=0.1)
    assert x[bottom.argmax()] == pytest.approx(360 * 12_000 / 16_000, abs=2)
    assert bottom.max() == pytest.approx(HEIGHT / 2 + 19, abs=1)
    (tmp_path / "b.wav").write_bytes(b"RIFF....WAVE")
    assert waveform(tmp_path / "b.wav") == "", "what cannot be decoded is not drawn"
    assert draw(np.zeros(1, dtype=np.float32)).count("M") == 1
