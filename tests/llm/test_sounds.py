"""Sounds: what is sent instead of them, and the tools that listen to them, against soundfile, scipy and plain arithmetic."""

from __future__ import annotations

import hashlib
import io
import math
from typing import Any

import numpy as np
import pytest

from hitmiss.core.errors import DataError
from hitmiss.llm.cache import ToolCache
from hitmiss.llm.items import media_type
from hitmiss.llm.sound import as_wav, to_send
from hitmiss.llm.tools import BY_KIND, call_tool
from hitmiss.llm.tools.sounds import mean_power, sound_container, sound_levels, sound_spectrum

soundfile = pytest.importorskip("soundfile", reason="soundfile is not installed")

RATE = 16000
NOISE = np.random.default_rng(3).normal(scale=0.1, size=RATE)
TONE = 0.5 * np.sin(2 * math.pi * 1000 * np.arange(RATE) / RATE)
TOOLS = [tool.name for tool in BY_KIND["audio"]]


def packed(samples: Any, form: str = "WAV", rate: int = RATE, **more: Any) -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format=form, **more)
    return buffer.getvalue()


class TestSending:
    def test_wav_and_mp3_go_as_they_are(self) -> None:
        for form, media, word in (("WAV", "audio/wav", "wav"), ("MP3", "audio/mp3", "mp3")):
            data = packed(NOISE, form)
            assert media_type(data) == media and to_send(data, media) == (data, word, None)

    @pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24"])
    def test_flac_loses_nothing(self, subtype: str) -> None:
        stereo = np.stack([NOISE, TONE], axis=1)
        data = packed(stereo, "FLAC", 44100, subtype=subtype)
        sent, word, told = to_send(data, media_type(data))
        bits = int(subtype[-2:])
        assert word == "wav" and media_type(sent) == "audio/wav" and told is not None
        assert told == {
            "from": "audio/flac",
            "to": "audio/wav",
            "sample_rate": 44100,
            "channels": 2,
            "bits": bits,
            "sha256": hashlib.sha256(sent).hexdigest(),
        }
        before, after = (soundfile.read(io.BytesIO(d), dtype="int32", always_2d=True)[0] for d in (data, sent))
        assert np.array_equal(before, after)

    def test_ogg_is_decoded(self) -> None:
        data = packed(TONE, "OGG")
        sent, told = as_wav(data)
        decoded, after = (soundfile.read(io.BytesIO(d))[0] for d in (data, sent))
        assert told["bits"] == 16 and np.abs(decoded - after).max() <= 1.01 / 32768

    @pytest.mark.parametrize("data", [b"fLaC" + bytes(40), b"OggS", packed(np.zeros(0), "FLAC")])
    def test_broken_and_empty_sounds_are_a_sentence(self, data: bytes) -> None:
        with pytest.raises(DataError, match="the sound"):
            as_wav(data)

    def test_a_sound_that_unfolds_too_far(self) -> None:
        data = packed(np.zeros((9_000_000, 2), dtype=np.int16), "FLAC")
        assert len(data) < 2**20
        with pytest.raises(DataError, match="32 MiB"):
            as_wav(data)


class TestTools:
    def test_levels_by_hand(self) -> None:
        samples = np.concatenate([np.zeros(RATE // 2), TONE, np.zeros(RATE // 4)])
        found = sound_levels(packed(samples, subtype="FLOAT"))
        assert found["seconds"] == 1.75 and found["peak_db"] == pytest.approx(20 * math.log10(0.5), abs=1e-3)
        assert found["rms_db"] == pytest.approx(10 * math.log10(0.125 / 1.75), abs=1e-3)
        assert found["silent_seconds_at_start"] == 0.5
        assert found["silent_seconds_at_end"] == pytest.approx(0.25, abs=0.02)
        assert found["silent_share"] == pytest.approx(0.75 / 1.75, abs=0.01) and found["clipped_share"] == 0
        loud = sound_levels(packed(np.tile([1.0, -1.0, 0.25, 0.25], 1000), subtype="FLOAT"))
        assert (loud["clipped_share"], loud["offset"], loud["zero_share"]) == (0.5, 0.125, 0.0)
        assert sound_levels(packed(np.zeros(100)))["silent_share"] == 1.0

    def test_the_spectrum_is_scipy_s(self) -> None:
        from scipy.signal import welch

        power = mean_power(NOISE)
        _, theirs = welch(NOISE, window="hann", nperseg=1024, noverlap=512, detrend=False, scaling="spectrum")
        theirs[1:-1] /= 2  # one-sided there
        scale = np.hanning(1025)[:-1].sum() ** 2
        assert power == pytest.approx(theirs * scale, rel=1e-9)

    def test_where_a_sound_ends(self) -> None:
        spectrum = np.fft.rfft(NOISE)
        spectrum[4000:] = 0  # nothing above 4 kHz, but what the window smears
        low = sound_spectrum(packed(np.fft.irfft(spectrum), subtype="FLOAT"))
        full = sound_spectrum(packed(NOISE, subtype="FLOAT"))
        assert low["highest_hz"] == pytest.approx(4000, abs=250) and full["highest_over_half_rate"] == 1.0
        assert low["below_99_percent_hz"] < 4000 < full["below_99_percent_hz"]
        assert full["centroid_hz"] == pytest.approx(4000, rel=0.05)  # white: the middle
        tone = sound_spectrum(packed(TONE, subtype="FLOAT"))
        assert tone["centroid_hz"] == pytest.approx(1000, abs=10) and len(tone["db_by_frequency"]) == 16
        assert tone["db_by_frequency"].index(max(tone["db_by_frequency"])) in (1, 2)
        assert "silent" in sound_spectrum(packed(np.zeros(5000)))["reason"]

    def test_what_a_file_says(self) -> None:
        found = sound_container(packed(TONE, "FLAC"))
        assert (found["format"], found["coding"], found["seconds"]) == ("FLAC", "PCM_16", 1.0)
        assert any("libFLAC" in mark for mark in found["encoder_marks"]) and found["chunks"] == []
        wav = sound_container(packed(TONE) + b"LIST\x04\x00\x00\x00INFO")
        assert wav["chunks"] == ["fmt ", "data", "LIST"] and wav["channels"] == 1
        assert any(
            "Lavc" in m for m in sound_container(packed(TONE) + b"junk\x0c\x00\x00\x00Lavc58.134  ")["encoder_marks"]
        )

    @pytest.mark.parametrize("name", TOOLS)
    def test_broken_sounds_are_a_result(self, name: str) -> None:
        for data in (b"", b"no sound", packed(TONE)[:30], b"fLaC" + bytes(40)):
            assert "the sound" in call_tool(name, data).result["error"]

    def test_results_are_cached(self, tmp_path: Any) -> None:
        cache = ToolCache(tmp_path)
        for name in TOOLS:
            first, second = (call_tool(name, packed(NOISE), cache) for _ in range(2))
            assert (first.cached, second.cached) == (False, True) and first.result == second.result
