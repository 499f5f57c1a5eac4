"""Perturbations of ECGs that need no model: noises, morphology, leads. All in batches, drawn record by record.

Each returns the change of the signal; strength scales it from nothing to what the settings say. The level of a noise is
relative to each lead's own standard deviation. Signals are record × sample × lead, in millivolts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hitmiss.attacks.arrays import Floats, Ints
from hitmiss.attacks.batched import RecordBatch, batched
from hitmiss.attacks.leads import LEADS, need_twelve
from hitmiss.core.errors import UnknownName, UsageError

REACH: Final = 9.0
"""Deviations beyond which a Gaussian bump is zero in float64."""


@batched()
def baseline_wander(r: RecordBatch, *, alpha: float = 0.1, low: float = 0.05, high: float = 0.5) -> Floats:
    """Add a slow sine per lead, `low` to `high` Hz, with amplitude strength × `alpha` × the lead's deviation."""
    _check_band(low, high, r.fs)
    n_leads = r.shape[1]
    drawn = r.draw(lambda rng: np.stack([rng.uniform(low, high, n_leads), rng.uniform(0, 2 * np.pi, n_leads)]))
    return r.windowed(_sines(r, drawn[:, :1], drawn[:, 1:]) * (r.strength * alpha * r.deviation))


@batched()
def band_noise(r: RecordBatch, *, beta: float = 0.1, low: float = 5.0, high: float = 40.0) -> Floats:
    """Add Gaussian noise from `low` to `high` Hz; its deviation over the record is strength × `beta` × the lead's."""
    return r.windowed(_noise(r, low, high, r.strength * beta * r.deviation))


@batched()
def powerline(r: RecordBatch, *, hertz: float = 50.0, level: float = 0.1, drift: float = 0.2) -> Floats:
    """Add mains hum to all leads, each with its own share and phase; at rates below 2 × `hertz` it aliases."""
    n_leads = r.shape[1]

    def draw(rng: Generator) -> Floats:
        return np.stack(
            [rng.uniform(0.3, 1.0, n_leads), rng.uniform(0, 2 * np.pi, n_leads), np.full(n_leads, rng.normal(0, drift))]
        )

    share, phase, off = np.split(r.draw(draw), 3, axis=1)
    wave = share * _sines(r, hertz + off, phase)
    return r.windowed(_unit(wave, r.strength * level * r.deviation))


@batched()
def muscle(r: RecordBatch, *, level: float = 0.1, bursts: int = 3, low: float = 20.0) -> Floats:
    """Add muscle noise: everything above `low` Hz, rising and falling in a few bursts common to all leads."""
    samples = r.shape[0]
    noise = _noise(r, low, r.fs / 2, np.ones((len(r.x), 1, r.shape[1])))
    places = r.draw(lambda rng: np.stack([rng.uniform(0, samples / r.fs, bursts), rng.uniform(0.3, 1.2, bursts)]))
    away = (_seconds(r)[None, :, None] - places[:, :1]) / places[:, 1:]
    envelope = 0.2 + np.exp(-0.5 * away**2).sum(axis=2, keepdims=True)
    return r.windowed(_unit(envelope * noise, r.strength * level * r.deviation))


@batched()
def electrode_motion(r: RecordBatch, *, level: float = 0.5, events: int = 2, decay: float = 0.4) -> Floats:
    """Move an electrode: the baseline jumps and returns over `decay` seconds, in the leads that share it."""
    samples, n_leads = r.shape
    drawn = r.draw(lambda rng: _motion(rng, samples / r.fs, n_leads, events))
    since = _seconds(r)[None, :, None] - drawn[:, :1, :events]
    size = drawn[:, 1:, :events]  # record × lead × event
    jump = np.where(since >= 0, np.exp(-np.maximum(since, 0) / decay) * np.minimum(since / 0.04, 1.0), 0.0)
    wave = np.matmul(jump, size.transpose(0, 2, 1))
    return r.windowed(wave * (r.strength * level * r.deviation))


def _motion(rng: Generator, seconds: float, n_leads: int, events: int) -> Floats:
    """Return when each event happens (first row), and how far and in which direction it moves each lead."""
    times = rng.uniform(0.0, 0.9 * seconds, events)
    touched = rng.random((n_leads, events)) < 0.5
    touched[int(rng.integers(n_leads))] = True
    return np.vstack(
        [times, touched * rng.uniform(0.5, 2.0, (n_leads, events)) * rng.choice([-1.0, 1.0], (n_leads, events))]
    )


@batched()
def lead_loss(r: RecordBatch, *, leads: int = 1) -> Floats:
    """Fade out some leads, drawn for each record (at strength 1 they are flat)."""
    n_leads = r.shape[1]
    if not 1 <= leads <= n_leads:
        raise UsageError.of("out-of-range", name="the number of lost leads", low=1, high=n_leads, found=leads)
    lost = r.draw(lambda rng: np.isin(np.arange(n_leads), rng.permutation(n_leads)[:leads]))
    return r.windowed(r.x * (-r.strength * lost[:, None, :]))


@batched()
def lead_swap(r: RecordBatch, *, kind: str = "la_ra") -> Floats:
    """Exchange electrodes: `la_ra` the arms, `la_ll` left arm and left leg, or `v1_v2`.

    With `la_ra`, lead I is inverted, and II and III, and aVR and aVL, change places.
    """
    need_twelve(r.shape[1])
    if kind not in ("la_ra", "la_ll", "v1_v2"):
        raise UnknownName("swap of electrodes", kind, ("la_ra", "la_ll", "v1_v2"))
    return r.windowed(r.strength * (r.x @ (_swap(kind) - np.eye(12)).T))


def _swap(kind: str) -> Floats:
    """Return the matrix from the correct leads to the leads with two electrodes exchanged."""
    new = {
        "la_ra": {"I": (-1, "I"), "II": (1, "III"), "III": (1, "II"), "aVR": (1, "aVL"), "aVL": (1, "aVR")},
        "la_ll": {"I": (1, "II"), "II": (1, "I"), "III": (-1, "III"), "aVL": (1, "aVF"), "aVF": (1, "aVL")},
        "v1_v2": {"V1": (1, "V2"), "V2": (1, "V1")},
    }[kind]
    matrix = np.eye(12)
    for lead, (sign, source) in new.items():
        matrix[LEADS.index(lead)] = sign * np.eye(12)[LEADS.index(source)]
    return matrix


@batched(needs_peaks=True)
def morph_amp(r: RecordBatch, *, gamma_max: float = 0.15, sigma_ms: float = 80.0) -> Floats:
    """Make each beat taller or flatter: a random gain up to strength × `gamma_max` under a bump at its R peak.

    `sigma_ms` is the width of the bump.
    """
    sigma = sigma_ms / 1000.0 * r.fs
    around = np.arange(-int(REACH * sigma), int(REACH * sigma) + 1)
    bump = np.exp(-0.5 * (around / sigma) ** 2)
    gains = np.zeros((len(r.x), r.shape[0]))
    for i, (beats, rng) in enumerate(zip(_beats(r), r.rngs, strict=True)):
        gains[i] = _laid(beats, around, rng.uniform(-1.0, 1.0, len(beats))[:, None] * bump, r.shape[0])
    return r.strength * gamma_max * gains[:, :, None] * r.x


@batched(needs_peaks=True)
def morph_time(r: RecordBatch, *, epsilon_max: float = 0.1, pre_ms: float = 60.0, post_ms: float = 80.0) -> Floats:
    """Make each beat wider or narrower: stretch it around its R peak by up to strength × `epsilon_max`.

    The stretch acts from `pre_ms` before to `post_ms` after the R peak and is tapered to nothing at both ends, so the
    signal has no steps.
    """
    if pre_ms <= 0 or post_ms <= 0:
        raise UsageError.of("bad-beat", pre_ms=pre_ms, post_ms=post_ms)
    if epsilon_max >= 1.0:
        raise UsageError.of("bad-stretch", epsilon_max=epsilon_max)
    before, after = pre_ms / 1000.0 * r.fs, post_ms / 1000.0 * r.fs
    around = np.arange(-int(before), int(after) + 1)
    taper = 0.5 * (1.0 + np.cos(np.pi * np.where(around < 0, -around / before, around / after)))
    delta = np.zeros_like(r.x)
    for i, (beats, rng) in enumerate(zip(_beats(r), r.rngs, strict=True)):
        stretch = 1.0 + rng.uniform(-1.0, 1.0, len(beats))[:, None] * epsilon_max * float(r.strength[i, 0, 0])
        shift = _laid(beats, around, taper * (around / stretch - around), r.shape[0])
        moved = np.flatnonzero(shift)
        delta[i, moved] = _read(r.x[i], moved + shift[moved]) - r.x[i, moved]
    return delta


def _laid(beats: Ints, around: Ints, values: Floats, samples: int) -> Floats:
    """Add up the effect of each beat (a row of values) on the samples around it, along the record."""
    at = beats[:, None] + around
    inside = (at >= 0) & (at < samples)
    return np.asarray(np.bincount(at[inside], values[inside], samples), dtype=np.float64)


def _read(x: Floats, place: Floats) -> Floats:
    """Interpolate a record linearly between its samples."""
    last = len(x) - 1
    kept = np.clip(place, 0, last)
    low = np.minimum(kept.astype(np.intp), max(last - 1, 0))
    part = (kept - low)[:, None]
    return np.asarray(x[low] * (1.0 - part) + x[np.minimum(low + 1, last)] * part)


def _beats(r: RecordBatch) -> list[Ints]:
    """Return the R peaks of each record that lie inside its window."""
    assert r.peaks is not None
    return [beats[window[beats, 0] > 0] for beats, window in zip(r.peaks, r.window, strict=True)]


def _seconds(r: RecordBatch) -> Floats:
    return np.arange(r.shape[0]) / r.fs


def _sines(r: RecordBatch, hertz: Floats, phase: Floats) -> Floats:
    """Return one sine per lead: record × sample × lead, from a frequency and a phase each (record × 1 × lead).

    Sines at a few coarse and a few fine positions are combined by sin(a + b) = sin a cos b + cos a sin b: a product is
    many times faster than a sine.
    """
    samples, n_leads = r.shape
    size = max(math.isqrt(samples), 1)
    turns = 2.0 * np.pi * hertz[:, :, None] / r.fs
    coarse = turns * np.arange(0, samples, size)[:, None, None] + phase[:, :, None]
    fine = turns * np.arange(size)[:, None]
    wave = np.sin(coarse) * np.cos(fine)
    wave += np.cos(coarse) * np.sin(fine)
    return np.asarray(wave.reshape(len(wave), -1, n_leads)[:, :samples])


def _noise(r: RecordBatch, low: float, high: float, level: Floats) -> Floats:
    """Return Gaussian noise between two frequencies, with a given deviation in each lead (record × 1 × lead).

    Only the Fourier coefficients in the band are drawn (independent normal numbers, as for white noise), each by its
    length and direction, which is faster than by its two parts. The sum of their squares is the variance (Parseval), so
    no forward transform and no measurement afterwards are needed.
    """
    from scipy.fft import irfft

    _check_band(low, high, r.fs)
    samples, n_leads = r.shape
    hertz = np.fft.rfftfreq(samples, 1.0 / r.fs)
    band = np.flatnonzero((hertz >= low) & (hertz <= high) & (hertz > 0))  # a mean is not noise
    if not len(band):
        raise UsageError.of("no-frequency", samples=samples, low=low, high=high)
    has_middle = 2 * int(band[-1]) == samples  # half the rate: a real coefficient, with twice the variance
    spectrum = np.zeros((len(r.x), len(hertz), n_leads), dtype=np.complex128)
    inside = spectrum[:, band[0] : band[-1] + 1]
    _drawn(r.rngs, inside)
    if has_middle:
        inside[:, -1] = inside[:, -1].real * np.sqrt(2.0)
    parts = inside.view(np.float64)  # the real and the imaginary part of each lead side by side
    squares = 2.0 * np.einsum("nkj,nkj->nj", parts, parts) - has_middle * parts[:, -1] ** 2
    deviation = np.sqrt(squares[:, ::2] + squares[:, 1::2]) / samples
    parts *= np.repeat(level[:, 0] / deviation, 2, axis=1)[:, None]
    return np.asarray(irfft(spectrum, samples, axis=1, overwrite_x=True))


def _drawn(rngs: Sequence[Generator], out: NDArray[np.complex128]) -> None:
    """Draw complex numbers with independent normal parts: √(2E) in a random direction, E exponential."""
    length, angle = (np.empty(out.shape, dtype=np.float32) for _ in range(2))
    for i, rng in enumerate(rngs):
        rng.standard_exponential(dtype=np.float32, out=length[i])
        rng.random(dtype=np.float32, out=angle[i])
    np.sqrt(np.multiply(length, 2.0, out=length), out=length)
    angle *= np.float32(2.0 * np.pi)
    np.multiply(length, np.cos(angle), out=out.real)
    np.multiply(length, np.sin(angle), out=out.imag)


def _unit(wave: Floats, level: Floats) -> Floats:
    """Scale each lead to a given deviation; a flat lead stays flat."""
    deviation = wave.std(axis=1, keepdims=True)
    return np.asarray(wave * np.divide(level, deviation, out=np.zeros_like(deviation), where=deviation > 1e-12))


def _check_band(low: float, high: float, fs: float) -> None:
    if not 0.0 <= low < high or low >= fs / 2:
        raise UsageError.of("bad-band", fs=fs / 2, low=low, high=high)
