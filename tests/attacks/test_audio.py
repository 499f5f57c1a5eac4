"""The laws of the audio manipulations: what they promise in decibels, semitones and seconds, measured."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitmiss.attacks.audio import SUITE, transform
from hitmiss.attacks.family import perturbation
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.media.audio import Clip

RATE = 16000


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def clip(seed: int = 0, n: int = 16000) -> Clip:
    return (0.1 * rng(seed).standard_normal(n)).astype(np.float32)


def tone(hertz: float, seconds: float = 1.5) -> Clip:
    return (0.3 * np.sin(2 * np.pi * hertz * np.arange(int(seconds * RATE)) / RATE)).astype(np.float32)


def run(text: str, x: Clip, seed: int = 0) -> Clip:
    return transform(text)(x, RATE, rng(seed))


def decibels(ratio: float) -> float:
    return float(20 * np.log10(ratio))


@given(st.floats(-30, 30), st.floats(0.05, 1), st.integers(0, 50))
def test_gain_is_exact(db: float, strength: float, seed: int) -> None:
    x = clip(seed, 400)
    assert run(f"gain(db={db!r}, strength={strength!r})", x) == pytest.approx(x * 10 ** (strength * db / 20), rel=1e-6)


@given(st.floats(-5, 40), st.sampled_from(["white", "pink"]), st.integers(0, 50), st.floats(0.001, 0.9))
def test_the_snr_is_reached(snr: float, color: str, seed: int, level: float) -> None:
    x = (level * clip(seed, 4000) / 0.1).astype(np.float32)
    added = run(f"noise(snr={snr!r}, color={color})", x, seed).astype(np.float64) - x
    reached = decibels(float(np.sqrt(np.mean(x.astype(np.float64) ** 2) / np.mean(added**2))))
    assert reached == pytest.approx(snr, abs=0.1)


def test_half_the_strength_is_six_decibels_less_noise() -> None:
    x = clip()
    full, half = (run(f"noise(snr=10, strength={s})", x).astype(np.float64) - x for s in (1.0, 0.5))
    assert decibels(float(np.sqrt(np.mean(full**2) / np.mean(half**2)))) == pytest.approx(6.02, abs=0.01)


def test_pink_noise_falls_by_three_decibels_an_octave() -> None:
    x = clip(n=1 << 16)
    power = np.abs(np.fft.rfft(run("noise(snr=0, color=pink)", x).astype(np.float64) - x)) ** 2
    octaves = [power[b : 2 * b].mean() for b in (1 << k for k in range(8, 14))]
    slope = np.polyfit(np.arange(6), 10 * np.log10(octaves), 1)[0]
    assert slope == pytest.approx(-3.01, abs=0.3)


def test_silence_stays_silent() -> None:
    assert not run("noise(snr=0)", np.zeros(1000, dtype=np.float32)).any()


def test_an_echo_comes_once_and_later() -> None:
    x = np.zeros(8000, dtype=np.float32)
    x[100] = 1.0
    out = run("echo(delay=0.1, level=0.5)", x)
    assert np.flatnonzero(out).tolist() == [100, 1700] and out[1700] == 0.5
    assert np.array_equal(run("echo(delay=2.0)", x), x)  # later than the end


def test_a_shift_loses_nothing() -> None:
    x = clip(n=8000)
    out = run("shift(seconds=0.1)", x)
    assert np.array_equal(out[:-1600], x[1600:]) and np.array_equal(out[-1600:], x[:1600])


@pytest.mark.parametrize("shape", ["linear", "exponential"])
def test_a_fade_rises_holds_and_falls(shape: str) -> None:
    out = run(f"fade(share=0.25, shape={shape})", np.ones(4000, dtype=np.float32))
    assert (np.diff(out[:1000]) > 0).all() and (out[1000:3000] == 1).all() and np.array_equal(out, out[::-1])
    assert out[0] < 0.01


def test_a_band_keeps_what_is_low_and_loses_what_is_high() -> None:
    low, high = tone(1000), tone(6000)
    inner = slice(2000, -2000)
    assert run("band(rate=8000)", low)[inner] == pytest.approx(low[inner], abs=2e-3)
    assert np.abs(run("band(rate=8000)", high)[inner]).max() < 1e-3


@pytest.mark.parametrize("semitones", [-5.0, -1.0, 1.0, 7.0])
def test_pitch_moves_by_semitones_and_keeps_the_length(semitones: float) -> None:
    out = run(f"pitch(semitones={semitones})", tone(300))
    assert len(out) == len(tone(300))
    assert loudest(out) == pytest.approx(300 * 2 ** (semitones / 12), rel=0.01)


@pytest.mark.parametrize("factor", [0.5, 0.9, 1.1, 1.5])
def test_tempo_changes_the_length_and_keeps_the_pitch(factor: float) -> None:
    out = run(f"tempo(factor={factor})", tone(300))
    assert len(out) == pytest.approx(len(tone(300)) / factor, abs=1)
    assert loudest(out) == pytest.approx(300, rel=0.01)
    assert np.std(out) == pytest.approx(np.std(tone(300)), rel=0.05)


def test_the_suite_runs_and_is_written_as_it_reads() -> None:
    x = clip(n=24000)
    for text in SUITE:
        assert str(perturbation(text)) == text
        assert np.isfinite(run(text, x)).all()
    assert len(set(SUITE)) == len(SUITE)


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (lambda x: 2 * x, 2.0),
        (lambda x, rate: x * (rate / 8000), 2.0),
        (lambda x, rate, generator: x * (1 + 0 * generator.random()), 1.0),
        (lambda x, scale=3.0: x * scale, 3.0),
    ],
)
def test_any_callable_will_do(function: object, wanted: float) -> None:
    x = clip()
    assert transform(function)(x, RATE, rng()) == pytest.approx(wanted * x, rel=1e-6)  # type: ignore[arg-type]


def test_a_callable_that_draws_from_the_global_generators_is_settled() -> None:
    import random

    def noisy(x: Clip) -> Clip:
        return x + np.float32(random.random()) + np.float32(np.random.random())  # noqa: NPY002

    random.seed(5)
    before = random.getstate()
    one, again, other = (transform(noisy)(clip(), RATE, rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(one, again) and not np.array_equal(one, other)
    assert random.getstate() == before


def test_what_is_no_clip_is_refused() -> None:
    for bad in (lambda x: x[:0], lambda x: x * np.nan, lambda x: np.stack([x, x])):
        with pytest.raises(DataError):
            transform(bad)(clip(), RATE, rng())
    with pytest.raises(UsageError, match="callable"):
        transform(7)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["noise(color=brown)", "fade(shape=round)", "fade(share=0.8)", "band(rate=0)", "tempo(factor=0)", "echo(delay=0)"]
)  # fmt: skip
def test_senseless_settings_are_refused(text: str) -> None:
    with pytest.raises((UnknownName, UsageError)):
        run(text, clip())


@pytest.mark.extras
def test_audiomentations_are_taken_as_they_are() -> None:
    audiomentations = pytest.importorskip("audiomentations")
    chain = audiomentations.Compose([audiomentations.AddGaussianNoise(p=1.0), audiomentations.Gain(p=1.0)])
    one, again, other = (transform(chain)(clip(), RATE, rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(one, again) and not np.array_equal(one, other)
    assert not np.array_equal(one, clip())


def loudest(x: Clip) -> float:
    spectrum = np.abs(np.fft.rfft(x * np.hanning(len(x)), 1 << 18))
    return float(np.argmax(spectrum)) * RATE / (1 << 18)
