"""Manipulations of sound that keep a voice recognisable: gain, noise, echo, shift, fade, pitch, tempo, …

Each is an `Attack`: strength 0 changes nothing, strength 1 does what the settings say, and values in between do less
of the same. Chains of them, including codecs, are channels (`attacks.channels`), as are the
conditions of published studies. Any
callable can be used in their place: see `transform`.
"""

# ruff: noqa: ARG001  (every attack is given a generator; most of these draw nothing)

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.random import Generator

from hitmiss.attacks.arrays import Array
from hitmiss.attacks.family import Perturbation, attack, perturbation
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.media.audio import Clip, load_audio, resample

Transform = Callable[[Clip, int, Generator], Clip]
"""Maps a clip, its sample rate and its own generator to the changed clip."""
SOUNDS: Final = (".wav", ".flac", ".ogg", ".opus", ".mp3", ".m4a")
FADES: Final[dict[str, Callable[[Array], Array]]] = {
    "linear": lambda f: f,
    "exponential": lambda f: (10.0 ** (2 * f) - 1.0) / 99.0,
    "soft_exponential": lambda f: 2.0 ** (f - 1.0) * f,
    "logarithmic": lambda f: np.log10(0.1 + f) + 1.0,
    "quarter_sine": lambda f: np.sin(f * np.pi / 2),
    "half_sine": lambda f: np.sin(f * np.pi - np.pi / 2) / 2 + 0.5,
}
SUITE: Final = (
    "gain(db=-10)", "gain(db=10)",
    "noise(snr=25)", "noise(snr=20)", "noise(snr=15)", "noise(color=pink, snr=20)",
    "echo(delay=0.1, level=0.3)", "echo(delay=0.3, level=0.5)",
    "shift(seconds=0.5)", "fade(shape=linear, share=0.3)", "fade(shape=exponential, share=0.3)",
    "band(rate=8000)", "band(rate=11025)",
    "pitch(semitones=1)", "pitch(semitones=-1)", "tempo(factor=1.1)", "tempo(factor=0.9)",
)  # fmt: skip
"""The default manipulations of a drift table."""


@attack
def gain(x: Array, strength: float, rng: Generator, *, db: float = -10.0) -> Array:
    """Change the level by strength × `db` decibels, without clipping."""
    return np.asarray(x * 10.0 ** (strength * db / 20.0))


@attack
def noise(
    x: Array,
    strength: float,
    rng: Generator,
    *,
    snr: float = 20.0,
    color: Literal["white", "pink"] = "white",
    folder: str = "",
    files: str = "*",
    sample_rate: int = 16000,
) -> Array:
    """Add noise: at strength 1 at `snr` decibels to the clip's own mean power; below, its amplitude × strength.

    Stationary, white or pink; or a piece of one of the sound files of a `folder` whose names fit `files`.
    """
    if color not in ("white", "pink"):
        raise UnknownName("colour of noise", color, ("white", "pink"))
    power = float(np.mean(np.square(x, dtype=np.float64)))
    if power == 0.0:
        return x.copy()  # a ratio to silence is undefined
    if folder:
        drawn = _piece(_sound_of(folder, files, rng, sample_rate), len(x), rng)
    else:
        white = rng.standard_normal(len(x))
        drawn = _pink(white) if color == "pink" else white
    if not drawn.any():
        return x.copy()
    level = strength * np.sqrt(power * 10.0 ** (-snr / 10.0) / np.mean(drawn**2))
    return np.asarray(x + level * drawn)


def _sound_of(folder: str, files: str, rng: Generator, sample_rate: int) -> Clip:
    """Return a random sound file of a folder."""
    place = Path(folder)
    found = sorted(p for p in place.rglob(files) if p.suffix.lower() in SOUNDS) if place.is_dir() else []
    if not found:
        raise UsageError.of("empty-folder", files=files, folder=folder)
    return load_audio(found[int(rng.integers(len(found)))], sample_rate)


def _piece(sound: Clip, n: int, rng: Generator) -> Array:
    """Return `n` samples from a random position on, continuing from the beginning at the end."""
    start = int(rng.integers(len(sound)))
    return np.asarray(sound[(start + np.arange(n)) % len(sound)], dtype=np.float64)


@attack
def rir(
    x: Array, strength: float, rng: Generator, *, folder: str = "", files: str = "*", sample_rate: int = 16000
) -> Array:
    """Add a room: convolve with a random impulse response of a `folder`, without delay, at the same loudness."""
    response = np.asarray(_sound_of(folder, files, rng, sample_rate), dtype=np.float64)
    at = int(np.argmax(np.abs(response)))
    size = 1 << (len(x) + len(response) - 1).bit_length()
    wet = np.fft.irfft(np.fft.rfft(x, size) * np.fft.rfft(response, size), size)[at : at + len(x)]
    level = np.sqrt(np.mean(np.square(x, dtype=np.float64)) / max(float(np.mean(wet**2)), 1e-20))
    return np.asarray((1.0 - strength) * x + strength * level * wet)


@attack
def packet_loss(
    x: Array,
    strength: float,
    rng: Generator,
    *,
    rate: float = 0.1,
    burst: float = 1.5,
    packet: float = 0.02,
    sample_rate: int = 16000,
) -> Array:
    """Silence lost packets of `packet` seconds: a share strength × `rate`, in bursts of about `burst` (Gilbert)."""
    if not 0.0 <= rate < 1.0 or burst < 1.0:
        raise UsageError.of("bad-burst", rate=rate, burst=burst)
    size = _samples("packet", packet, sample_rate)
    lost, out, share = False, x.copy(), strength * rate
    for start in range(0, len(x), size):
        draw = rng.random()
        lost = draw >= 1.0 / burst if lost else draw < share / max(burst * (1.0 - share), 1e-9)
        if lost:
            out[start : start + size] = 0
    return out


@attack
def speed(x: Array, strength: float, rng: Generator, *, rate: int = 15000, sample_rate: int = 16000) -> Array:
    """Resample to `rate` and play at the original rate: a lower `rate` is faster and higher, a higher one slower."""
    wanted = round(sample_rate * (rate / sample_rate) ** strength)
    if wanted < 1000:
        raise UsageError.of("out-of-range/least", name="the rate", least=1000, found=rate)
    return resample(_f32(x), sample_rate, wanted)


@attack
def rawboost(x: Array, strength: float, rng: Generator, *, snr: float = 20.0, share: float = 0.1) -> Array:
    """Apply the three parts of RawBoost in series.

    They are a random filter with harmonics, impulsive noise that follows the signal, and stationary noise through a random
    filter at `snr` dB.
    """
    signal = np.asarray(x, dtype=np.float64)
    top = max(float(np.abs(signal).max()), 1e-12)
    mixed = sum(
        10.0 ** (-6.0 * k / 20.0) * np.convolve((signal / top) ** (k + 1), _drawn_filter(rng), "same") for k in range(5)
    )
    mixed = mixed / max(float(np.abs(mixed).max()), 1e-12) * top
    hit = rng.random(len(mixed)) < share
    mixed = mixed + hit * mixed * rng.uniform(-1, 1, len(mixed)) * rng.uniform(-1, 1, len(mixed))
    hiss = np.convolve(rng.standard_normal(len(mixed)), _drawn_filter(rng), "same")
    power = float(np.mean(mixed**2))
    mixed = mixed + hiss * np.sqrt(power * 10.0 ** (-snr / 10.0) / max(float(np.mean(hiss**2)), 1e-20))
    return np.asarray((1.0 - strength) * signal + strength * mixed)


def _drawn_filter(rng: Generator, taps: int = 65) -> Array:
    """Return a zero-phase linear filter with five random notches."""
    response = np.ones(taps // 2 + 1)
    for _ in range(5):
        centre, width = rng.uniform(0, 1), rng.uniform(0.02, 0.2)
        response *= 1.0 - rng.uniform(0.3, 1.0) * np.exp(-(((np.linspace(0, 1, len(response)) - centre) / width) ** 2))
    return np.asarray(np.roll(np.fft.irfft(response, taps - 1), taps // 2) * np.hanning(taps - 1))


def _pink(white: Array) -> Array:
    """Return white noise changed to power falling as 1/f."""
    spectrum = np.fft.rfft(white)
    spectrum /= np.sqrt(np.maximum(np.arange(len(spectrum)), 1.0))
    return np.fft.irfft(spectrum, len(white))


@attack
def echo(
    x: Array, strength: float, rng: Generator, *, sample_rate: int = 16000, delay: float = 0.1, level: float = 0.5
) -> Array:
    """Add one echo after `delay` seconds, strength × `level` as loud as the clip; the length stays."""
    late = _samples("delay", delay, sample_rate)
    echoed = np.zeros_like(x)
    echoed[late:] = x[: max(len(x) - late, 0)]
    return x + strength * level * echoed


@attack
def shift(x: Array, strength: float, rng: Generator, *, sample_rate: int = 16000, seconds: float = 0.5) -> Array:
    """Start the clip strength × `seconds` later; its beginning moves to the end."""
    return np.roll(x, -round(strength * seconds * sample_rate))


@attack
def fade(
    x: Array,
    strength: float,
    rng: Generator,
    *,
    share: float = 0.3,
    shape: Literal["linear", "exponential", "soft_exponential", "logarithmic", "quarter_sine", "half_sine"] = "linear",
) -> Array:
    """Fade in over the first and out over the last strength × `share` of the clip (at most a half each).

    `soft_exponential` and those after it are the shapes of torchaudio's fades.
    """
    if shape not in FADES:
        raise UnknownName("shape of a fade", shape, FADES)
    if not 0.0 <= share <= 0.5:
        raise UsageError.of("out-of-range", name="the share of a fade", low=0, high=0.5, found=share)
    n = round(strength * share * len(x))
    ramp = np.arange(1, n + 1) / (n + 1)
    ramp = np.clip(FADES[shape](ramp), 0.0, 1.0)
    envelope = np.ones(len(x))
    envelope[:n] *= ramp
    envelope[len(x) - n :] *= ramp[::-1]
    return x * envelope


@attack
def band(x: Array, strength: float, rng: Generator, *, sample_rate: int = 16000, rate: int = 8000) -> Array:
    """Resample to a lower rate and back, losing what lies above half of it; strength moves it to `rate`."""
    if not 0 < rate <= sample_rate:
        raise UsageError.of("out-of-range/up-to", name="the rate", low=0, high=sample_rate, found=rate)
    low = round(sample_rate * (rate / sample_rate) ** strength)
    return _exactly(resample(resample(_f32(x), sample_rate, low), low, sample_rate), len(x))


@attack
def pitch(x: Array, strength: float, rng: Generator, *, sample_rate: int = 16000, semitones: float = 1.0) -> Array:
    """Raise the pitch and the formants by strength × `semitones`, at the same tempo and length."""
    factor = 2.0 ** (strength * semitones / 12.0)
    slower = _stretch(_f32(x), factor, sample_rate)
    return _exactly(resample(slower, round(sample_rate * factor), sample_rate), len(x))


@attack
def tempo(x: Array, strength: float, rng: Generator, *, sample_rate: int = 16000, factor: float = 1.1) -> Array:
    """Play faster by `factor` ** strength at the same pitch: the clip becomes that much shorter."""
    if factor <= 0:
        raise UsageError.of("out-of-range/above", name="a tempo", low=0, found=factor)
    return _stretch(_f32(x), factor**-strength, sample_rate)


def _stretch(x: Clip, factor: float, sample_rate: int) -> Clip:
    """Make a clip `factor` times as long at the same pitch: frames are moved to where the wave continues (WSOLA)."""
    size = 2 * max(int(0.015 * sample_rate), 8)
    hop, reach = size // 2, size // 2
    n_out = max(round(len(x) * factor), 1)
    window = np.hanning(size + 1)[:-1]
    padded = np.pad(x, (reach, size + 2 * reach + hop))
    out, weight = np.zeros(n_out + 2 * size), np.zeros(n_out + 2 * size)
    follow: Array | None = None
    for place in range(0, n_out + hop, hop):
        ideal = min(round(place / factor), len(x))
        at = ideal if follow is None else ideal + _best_offset(padded[ideal : ideal + size + 2 * reach], follow)
        out[place : place + size] += window * padded[at : at + size]
        weight[place : place + size] += window
        follow = padded[at + hop : at + hop + size]
    return (out[:n_out] / np.maximum(weight[:n_out], 1e-3)).astype(np.float32)


def _best_offset(region: Array, wanted: Array) -> int:
    """Return where in a region the wanted frame fits best: the peak of the normalised correlation."""
    size = len(wanted)
    score = np.correlate(region, wanted, mode="valid")
    energy = np.convolve(region**2, np.ones(size), mode="valid")
    return int(np.argmax(score / np.sqrt(np.maximum(energy, 1e-12))))


def transform(given: str | Perturbation | Callable[..., object]) -> Transform:
    """Return anything that changes a clip as one kind of function: (clip, sample rate, generator) -> clip.

    Accepted are the text of a perturbation (`noise(snr=15)`), an audiomentations transform or chain (called with
    `samples=` and `sample_rate=`), and any callable that takes the clip, the clip and its rate, or these and a
    generator. Draws of a callable from the global generators of `random` and numpy are made reproducible by the clip's
    own generator.
    """
    if isinstance(given, str | Perturbation):
        return _Bound(perturbation(given))
    if not callable(given):
        raise UsageError.of("bad-manipulation", example="noise(snr=15)", name=type(given).__name__)
    return _Called(given)


class _Bound:
    """A perturbation as a transform; a class, so that it can be sent to worker processes."""

    def __init__(self, bound: Perturbation) -> None:
        self.bound = bound

    def __call__(self, clip: Clip, sample_rate: int, rng: Generator) -> Clip:
        return _checked(self.bound(clip, rng, sample_rate=sample_rate), str(self.bound))

    def __str__(self) -> str:
        return str(self.bound)


class _Called:
    """A user's callable as a transform."""

    def __init__(self, function: Callable[..., object]) -> None:
        self.function = function
        self.names = parameters_of(function)

    def __call__(self, clip: Clip, sample_rate: int, rng: Generator) -> Clip:
        with seeded(rng):
            if "samples" in self.names and "sample_rate" in self.names:
                changed = self.function(samples=clip.copy(), sample_rate=sample_rate)
            else:
                changed = self.function(*(clip.copy(), sample_rate, rng)[: max(len(self.names), 1)])
        return _checked(changed, str(self))

    def __str__(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)


def parameters_of(function: Callable[..., object]) -> list[str]:
    """Return the names of the required arguments."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ["clip"]
    return [p.name for p in found if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


@contextmanager
def seeded(rng: Generator) -> Iterator[None]:
    """Seed the global generators from ours for the block, and restore them afterwards."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    seed = int(rng.integers(2**32))
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002


def _checked(changed: object, name: str) -> Clip:
    clip = np.asarray(changed, dtype=np.float32)
    if clip.ndim != 1 or not len(clip):
        raise DataError.of(
            "wrong-shape", name=f"what {name} gives", form="one channel of samples", shape=str(clip.shape)
        )
    if not np.isfinite(clip).all():
        raise DataError.of("not-finite", name=name)
    return clip


def _samples(what: str, seconds: float, sample_rate: int) -> int:
    n = round(seconds * sample_rate)
    if n < 1:
        raise UsageError.of("out-of-range/above", name=f"the {what} in seconds", low=0, found=seconds)
    return n


def _f32(x: Array) -> Clip:
    return np.ascontiguousarray(x, dtype=np.float32)


def _exactly(x: Clip, n: int) -> Clip:
    return np.pad(x, (0, max(n - len(x), 0)))[:n]
