"""The codec bank on speech-like sound: deterministic, as long as its source, aligned with it, better at higher rates."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitmiss.attacks.codec_engines import Engine, to_pcm
from hitmiss.attacks.codecs import Codec, all_codecs, code, delay, find_codec, lag, probe_sound
from hitmiss.core.errors import DataError, EnvironmentFault, UnknownName, UsageError
from hitmiss.media.audio import Clip
from hitmiss.simulate.voices import make_speaker, utter

for package in ("av", "soundfile", "soxr"):
    pytest.importorskip(package, reason="the extra audio is not installed")

RATE = 16000
OURS = [codec for codec in all_codecs().values() if codec.engine.by != "program"]
CASES = [(codec, q) for codec in OURS for q in codec.qualities]
THEIRS = [codec for codec in all_codecs().values() if codec.engine.by == "program"]


@cache
def speech(number: int = 0) -> Clip:
    return utter(make_speaker(f"codec test {number}", 1), np.random.default_rng(number))


def snr(source: Clip, other: Clip) -> float:
    error = other.astype(np.float64) - source
    return float(10 * np.log10(np.sum(source.astype(np.float64) ** 2) / np.sum(error**2)))


def voiced(x: Clip) -> Clip:
    """The part that telephone codecs pass: their high-pass filters turn the phase of what lies below."""
    spectrum = np.fft.rfft(x)
    hertz = np.fft.rfftfreq(len(x), 1 / RATE)
    spectrum[(hertz < 400) | (hertz > 3400)] = 0
    return np.fft.irfft(spectrum, len(x)).astype(np.float32)


@pytest.mark.parametrize(("codec", "quality"), CASES, ids=lambda value: getattr(value, "name", str(value)))
def test_each_codec_keeps_length_and_place(codec: Codec, quality: int) -> None:
    source = speech()
    coded = code(source, codec, quality)
    assert coded.clip.shape == source.shape and coded.clip.dtype == np.float32
    assert np.isfinite(coded.clip).all()
    assert abs(lag(voiced(source), voiced(coded.clip))) <= 1
    assert np.corrcoef(voiced(source), voiced(coded.clip))[0, 1] > 0.75
    assert coded.kbps == pytest.approx(codec.rate_of(quality), rel=0.25)


@pytest.mark.parametrize("codec", OURS, ids=lambda codec: str(codec.name))
def test_the_same_clip_gives_the_same_samples(codec: Codec) -> None:
    first, second = (code(speech(), codec, 1).clip for _ in range(2))
    code(speech(1), codec, 1)
    assert np.array_equal(first, second) and np.array_equal(first, code(speech(), codec, 1).clip)


@pytest.mark.parametrize("name", ["opus_wb", "mp3_wb", "m4a_wb"])
def test_more_bits_come_nearer_to_the_source(name: str) -> None:
    codec = find_codec(name)
    mean = [np.mean([snr(speech(i), code(speech(i), codec, q).clip) for i in range(3)]) for q in codec.qualities]
    assert mean[-1] > mean[0] + 4
    assert all(later > earlier - 0.5 for earlier, later in pairwise(mean))


@pytest.mark.parametrize("name", ["opus_wb", "mp3_wb", "m4a_wb", "opus_nb", "amr_nb"])
def test_a_higher_quality_uses_more_bits(name: str) -> None:
    codec = find_codec(name)
    reached = [code(speech(), codec, q).kbps for q in codec.qualities]
    assert reached == sorted(reached) and reached[-1] > 1.3 * reached[0]


@pytest.mark.parametrize("codec", OURS, ids=lambda codec: str(codec.name))
def test_narrow_codecs_take_what_is_above_four_kilohertz(codec: Codec) -> None:
    power = np.abs(np.fft.rfft(code(speech(), codec, len(codec.kbps)).clip)) ** 2
    share = power[np.fft.rfftfreq(len(speech()), 1 / RATE) > 4200].sum() / power.sum()
    assert (share < 1e-4) == (codec.sample_rate == 8000)


def test_the_delay_that_is_taken_out_is_there() -> None:
    assert delay(find_codec("m4a_wb"), 48, RATE) == 1024  # the priming of AAC
    assert delay(find_codec("g722"), 64, RATE) == 22
    assert delay(find_codec("g711_ulaw"), 64, RATE) == 0


@pytest.mark.parametrize("rate", [8000, 22050, 44100])
def test_clips_of_other_rates(rate: int) -> None:
    source = probe_sound(rate)
    coded = code(source, "aac", 5, sample_rate=rate)
    assert len(coded.clip) == len(source) and abs(lag(source, coded.clip)) <= 1


@settings(max_examples=25)
@given(st.integers(1, 3000), st.sampled_from(["opus", "mp3", "aac", "amr-nb", "g722", "gsm", "ulaw"]))
def test_clips_of_any_length(n: int, name: str) -> None:
    clip = (0.1 * np.random.default_rng(n).standard_normal(n)).astype(np.float32)
    coded = code(clip, name, 1).clip
    assert coded.shape == clip.shape and np.isfinite(coded).all()


def test_what_is_too_loud_is_clipped_and_silence_is_quiet() -> None:
    assert to_pcm(np.array([3.0, -3.0], dtype=np.float32)).tolist() == [32767, -32768]
    assert np.abs(code(np.zeros(8000, dtype=np.float32), "gsm").clip).max() < 1e-3


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(UnknownName, match="did you mean 'opus'"):
        code(speech(), "opsu")
    with pytest.raises(UsageError, match="qualities 1 to 5"):
        code(speech(), "opus", 6)
    with pytest.raises(DataError, match="one channel"):
        code(np.zeros((2, 100), dtype=np.float32), "opus")


def test_a_coder_that_is_not_there_is_named() -> None:
    missing = Codec("Z1", "nothing", 16000, (1.0,), Engine("av", "no_such_coder", "no_such_coder"))
    with pytest.raises(EnvironmentFault, match="no_such_coder"):
        code(speech(), missing)
    lost = Codec("Z2", "nothing", 16000, (1.0,), Engine("program", "no_such_coder", "no_such_coder", "ogg"))
    with pytest.raises(EnvironmentFault, match="HITMISS_FFMPEG"):
        code(speech(), lost)


@pytest.mark.extras
@pytest.mark.parametrize("codec", THEIRS, ids=lambda codec: str(codec.name))
def test_the_codecs_of_the_ffmpeg_program(codec: Codec) -> None:
    if codec.engine.lacks():
        pytest.skip(str(codec.engine.lacks()))
    for quality in (1, 5):
        coded = code(speech(), codec, quality)
        assert len(coded.clip) == len(speech())
        assert abs(lag(voiced(speech()), voiced(coded.clip))) <= 1
        assert np.array_equal(coded.clip, code(speech(), codec, quality).clip)
