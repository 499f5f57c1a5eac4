"""Perturbations of ECGs that need no model: noises, morphology, leads. All in batches, all drawn record by record.

Each gives the change of the signal; strength scales it from nothing to what the settings say. The level of a noise is
relative to each lead's own standard deviation. Signals are record × sample × lead, in millivolts.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.random import Generator

from hitmiss.attack.batch import Floats, Records, batched
from hitmiss.attack.leads import LEADS, need_twelve
from hitmiss.attack.peaks import Ints
from hitmiss.errors import UnknownName, UsageError

DOCUMENTED: Final = ("baseline_wander", "band_noise", "morph_amp", "morph_time", "smooth_adv")
"""The families of the document."""


@batched()
def baseline_wander(r: Records, *, alpha: float = 0.1, low: float = 0.05, high: float = 0.5) -> Floats:
    """A slow sine a lead, `low` to `high` Hz, its amplitude strength × `alpha` × the lead's deviation."""
    _check_band(low, high, r.fs)
    n_leads = r.shape[1]
    drawn = r.draw(lambda rng: np.stack([rng.uniform(low, high, n_leads), rng.uniform(0, 2 * np.pi, n_leads)]))
    wave = np.sin(2 * np.pi * drawn[:, :1] * _seconds(r)[None, :, None] + drawn[:, 1:])
    return r.window * wave * (r.strength * alpha * r.deviation)


@batched()
def band_noise(r: Records, *, beta: float = 0.1, low: float = 5.0, high: float = 40.0) -> Floats:
    """Gaussian noise from `low` to `high` Hz; over the whole record its deviation is strength × `beta` × the lead's."""
    return _noise(r, low, high) * (r.window * (r.strength * beta * r.deviation))


@batched()
def powerline(r: Records, *, hertz: float = 50.0, level: float = 0.1, drift: float = 0.2) -> Floats:
    """Mains hum in all leads at once, each with a share and a phase of its own; at rates below 2 × `hertz` it folds."""
    n_leads = r.shape[1]

    def draw(rng: Generator) -> Floats:
        return np.stack(
            [rng.uniform(0.3, 1.0, n_leads), rng.uniform(0, 2 * np.pi, n_leads), np.full(n_leads, rng.normal(0, drift))]
        )

    share, phase, off = np.split(r.draw(draw), 3, axis=1)
    wave = share * np.sin(2 * np.pi * (hertz + off) * _seconds(r)[None, :, None] + phase)
    return r.window * _unit(wave) * (r.strength * level * r.deviation)


@batched()
def muscle(r: Records, *, level: float = 0.1, bursts: int = 3, low: float = 20.0) -> Floats:
    """Muscle noise: everything above `low` Hz, swelling and fading in a few bursts that all leads share."""
    samples = r.shape[0]
    noise = _noise(r, low, r.fs / 2)
    places = r.draw(lambda rng: np.stack([rng.uniform(0, samples / r.fs, bursts), rng.uniform(0.3, 1.2, bursts)]))
    away = (_seconds(r)[None, :, None] - places[:, :1]) / places[:, 1:]
    envelope = 0.2 + np.exp(-0.5 * away**2).sum(axis=2, keepdims=True)
    return r.window * _unit(envelope * noise) * (r.strength * level * r.deviation)


@batched()
def electrode_motion(r: Records, *, level: float = 0.5, events: int = 2, decay: float = 0.4) -> Floats:
    """An electrode moves: the baseline jumps and creeps back over `decay` seconds, in the leads that share it."""
    samples, n_leads = r.shape
    drawn = r.draw(lambda rng: _motion(rng, samples / r.fs, n_leads, events))
    since = _seconds(r)[None, :, None] - drawn[:, :1, :events]
    size = drawn[:, 1:, :events]  # record × lead × event
    jump = np.where(since >= 0, np.exp(-np.maximum(since, 0) / decay) * np.minimum(since / 0.04, 1.0), 0.0)
    wave = np.matmul(jump, size.transpose(0, 2, 1))
    return np.asarray(r.window * wave * (r.strength * level * r.deviation))


def _motion(rng: Generator, seconds: float, n_leads: int, events: int) -> Floats:
    """When each event happens (first row), and how far and which way it pushes each lead."""
    times = rng.uniform(0.0, 0.9 * seconds, events)
    touched = rng.random((n_leads, events)) < 0.5
    touched[int(rng.integers(n_leads))] = True
    return np.vstack(
        [times, touched * rng.uniform(0.5, 2.0, (n_leads, events)) * rng.choice([-1.0, 1.0], (n_leads, events))]
    )


@batched()
def lead_loss(r: Records, *, leads: int = 1) -> Floats:
    """Some leads, drawn for each record, fade to nothing (at strength 1 they are flat)."""
    n_leads = r.shape[1]
    if not 1 <= leads <= n_leads:
        raise UsageError(f"of {n_leads} leads 1 to {n_leads} can be lost; found {leads}")
    lost = r.draw(lambda rng: np.isin(np.arange(n_leads), rng.permutation(n_leads)[:leads]))
    return -r.window * r.strength * r.x * lost[:, None, :]


@batched()
def lead_swap(r: Records, *, kind: str = "la_ra") -> Floats:
    """Electrodes exchanged: `la_ra` arms (I turns round, II and III, aVR and aVL change), `la_ll` left arm and leg, `v1_v2`."""
    need_twelve(r.shape[1])
    if kind not in ("la_ra", "la_ll", "v1_v2"):
        raise UnknownName("swap of electrodes", kind, ("la_ra", "la_ll", "v1_v2"))
    return r.window * r.strength * (r.x @ _swap(kind).T - r.x)


def _swap(kind: str) -> Floats:
    """The matrix from the leads as they should be to the leads with two electrodes exchanged."""
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
def morph_amp(r: Records, *, gamma_max: float = 0.15, sigma_ms: float = 80.0) -> Floats:
    """Each beat taller or flatter: a random gain up to strength × `gamma_max` under a bump of `sigma_ms` at its R peak."""
    at, sigma = np.arange(r.shape[0]), sigma_ms / 1000.0 * r.fs
    gains = np.zeros((len(r.x), r.shape[0]))
    for i, (beats, rng) in enumerate(zip(_beats(r), r.rngs, strict=True)):
        drawn = rng.uniform(-1.0, 1.0, len(beats))
        gains[i] = drawn @ np.exp(-0.5 * ((at - beats[:, None]) / sigma) ** 2)
    return r.strength * gamma_max * gains[:, :, None] * r.x


@batched(needs_peaks=True)
def morph_time(r: Records, *, epsilon_max: float = 0.1, pre_ms: float = 60.0, post_ms: float = 80.0) -> Floats:
    """Each beat wider or narrower: `pre_ms` before to `post_ms` after its R peak stretched by up to strength × `epsilon_max`.

    The stretch is tapered to nothing at both ends, so the signal has no steps.
    """
    before, after = pre_ms / 1000.0 * r.fs, post_ms / 1000.0 * r.fs
    shift = np.zeros((len(r.x), r.shape[0]))
    for i, (beats, rng) in enumerate(zip(_beats(r), r.rngs, strict=True)):
        stretch = 1.0 + rng.uniform(-1.0, 1.0, len(beats)) * epsilon_max * float(r.strength[i, 0, 0])
        shift[i] = _warp(np.arange(float(r.shape[0])) - beats[:, None], stretch[:, None], before, after)
    return _shifted(r.x, shift) - r.x


def _warp(away: Floats, stretch: Floats, before: float, after: float) -> Floats:
    """By how many samples the signal is read elsewhere, under a taper that is 1 at the peak and 0 at both ends."""
    part = np.where(away < 0, -away / before, away / after)
    taper = np.where(part < 1.0, 0.5 * (1.0 + np.cos(np.pi * np.minimum(part, 1.0))), 0.0)
    return np.asarray((taper * (away / stretch - away)).sum(axis=0))


def _shifted(x: Floats, shift: Floats) -> Floats:
    """The signal read at t + shift(t), between samples by straight lines."""
    last = x.shape[1] - 1
    place = np.clip(np.arange(last + 1) + shift, 0, last)
    low = np.minimum(place.astype(np.intp), max(last - 1, 0))
    part = (place - low)[:, :, None]
    rows = np.arange(len(x))[:, None]
    return np.asarray(x[rows, low] * (1.0 - part) + x[rows, np.minimum(low + 1, last)] * part)


def _beats(r: Records) -> list[Ints]:
    """The R peaks of each record that lie inside its window."""
    assert r.peaks is not None
    return [beats[window[beats, 0] > 0] for beats, window in zip(r.peaks, r.window, strict=True)]


def _seconds(r: Records) -> Floats:
    return np.arange(r.shape[0]) / r.fs


def _noise(r: Records, low: float, high: float) -> Floats:
    """Gaussian noise between two frequencies, with the deviation 1 in each lead.

    Its Fourier coefficients are drawn (independent normal numbers, as those of white noise are), and only those in the band. What
    their squares add up to is the variance (Parseval), so nothing is transformed forwards and nothing measured afterwards.
    """
    from scipy.fft import irfft

    _check_band(low, high, r.fs)
    samples, n_leads = r.shape
    hertz = np.fft.rfftfreq(samples, 1.0 / r.fs)
    band = np.flatnonzero((hertz >= low) & (hertz <= high) & (hertz > 0))  # a mean is no noise
    if not len(band):
        raise UsageError(f"a record of {samples} samples has no frequency from {low:g} to {high:g} Hz")
    drawn = np.empty((len(r.x), 2, len(band), n_leads))
    for i, rng in enumerate(r.rngs):
        drawn[i] = rng.standard_normal(drawn.shape[1:], dtype=np.float32)
    has_middle = 2 * int(band[-1]) == samples  # half the rate: a real coefficient, of twice the variance
    drawn[:, 1, -1] *= not has_middle
    deviation = np.sqrt(2.0 * np.square(drawn).sum(axis=(1, 2))) / samples
    drawn /= deviation[:, None, None]
    drawn[:, 0, -1] *= np.sqrt(2.0) if has_middle else 1.0
    spectrum = np.zeros((len(r.x), len(hertz), n_leads), dtype=np.complex128)
    place = slice(int(band[0]), int(band[-1]) + 1)
    spectrum.real[:, place], spectrum.imag[:, place] = drawn[:, 0], drawn[:, 1]
    return np.asarray(irfft(spectrum, samples, axis=1))


def _unit(wave: Floats) -> Floats:
    """Each lead with the deviation 1; what is flat stays flat."""
    deviation = wave.std(axis=1, keepdims=True)
    return np.asarray(np.divide(wave, deviation, out=np.zeros_like(wave), where=deviation > 1e-12))


def _check_band(low: float, high: float, fs: float) -> None:
    if not 0.0 <= low < high or low >= fs / 2:
        raise UsageError(f"a band runs from low to high below {fs / 2:g} Hz; found {low:g} to {high:g}")
