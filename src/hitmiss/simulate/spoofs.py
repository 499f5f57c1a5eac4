"""Four ways to degrade a voice as synthesis does: the artefacts of vocoders, without their quality."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hitmiss.media.audio import Clip

Floats = NDArray[np.float64]
FRAME: Final = 512
HOP: Final = 128
ORDER: Final = 18
LPC_FRAME: Final = 400


@dataclass(frozen=True)
class Spoof:
    """A kind of spoof: its description, and how a real clip becomes one."""

    about: str
    make: Callable[[Clip, Generator], Clip]


def smeared(clip: Clip, rng: Generator) -> Clip:
    """Keep only the magnitudes of 40 bands and estimate the phases again: copy-synthesis by Griffin and Lim."""
    spectrum = _stft(clip)
    bands = _bands(40, spectrum.shape[0])
    magnitude = np.linalg.pinv(bands) @ (bands @ np.abs(spectrum))
    magnitude = np.maximum(magnitude, 0.0)
    guess: NDArray[np.complex128] = magnitude * np.exp(2j * np.pi * rng.random(magnitude.shape))
    for _ in range(8):
        guess = magnitude * np.exp(1j * np.angle(_stft(_istft(guess, len(clip)))))
    return _as_loud(_istft(guess, len(clip)), clip)


def buzzed(clip: Clip, rng: Generator) -> Clip:
    """Apply linear prediction per frame, driven by plain pulses at the detected pitch, or by noise if there is none."""
    from scipy.signal import lfilter

    out, state, phase = np.zeros(len(clip)), np.zeros(ORDER), 0.0
    for start in range(0, len(clip) - LPC_FRAME, LPC_FRAME // 2):
        frame = clip[start : start + LPC_FRAME].astype(np.float64)
        a, gain, period = _prediction(frame * np.hanning(LPC_FRAME))
        if period:
            ticks = (phase + np.arange(LPC_FRAME // 2)) / period
            drive = np.sqrt(period) * (np.diff(np.floor(ticks), prepend=np.floor(ticks[0])) > 0)
            phase = (phase + LPC_FRAME // 2) % period
        else:
            drive = rng.standard_normal(LPC_FRAME // 2)
        out[start : start + LPC_FRAME // 2], state = lfilter([gain], a, drive, zi=state)
    return _as_loud(out, clip)


def _prediction(frame: Floats) -> tuple[Floats, float, float]:
    """Return the filter, its gain, and the pitch period in samples (0: unvoiced)."""
    from scipy.linalg import solve_toeplitz

    lags = np.correlate(frame, frame, mode="full")[len(frame) - 1 :]
    lags[0] = lags[0] * 1.0001 + 1e-9
    a = np.concatenate([[1.0], -solve_toeplitz(lags[:ORDER], lags[1 : ORDER + 1])])
    gain = float(np.sqrt(max(lags[: ORDER + 1] @ a, 1e-12) / len(frame)))
    at = int(np.argmax(lags[60:220])) + 60
    return a, gain, float(at) if lags[at] > 0.3 * lags[0] else 0.0


def mirrored(clip: Clip, rng: Generator) -> Clip:  # noqa: ARG001
    """Replace the upper half of the spectrum by a quiet mirror image of the lower half: cheap upsampling."""
    spectrum = _stft(clip)
    half = spectrum.shape[0] // 2
    image = spectrum[half - 1 :: -1]
    level = np.abs(spectrum[half : half + len(image)]).mean() / max(float(np.abs(image).mean()), 1e-9)
    spectrum[half : half + len(image)] = image * level
    return _as_loud(_istft(spectrum, len(clip)), clip)


def untouched(clip: Clip, rng: Generator) -> Clip:  # noqa: ARG001
    """Return the clip unchanged: this kind is synthesised anew, without natural irregularities (see `utter`)."""
    return clip


SPOOFS: Final = {
    "V01": Spoof("linear prediction with pulses or noise", buzzed),
    "V02": Spoof("copy-synthesis from 40 bands, phases guessed", smeared),
    "V03": Spoof("spoken without jitter, shimmer, breath and room, pitch in stairs", untouched),
    "V04": Spoof("upper half of the spectrum mirrored from the lower", mirrored),
}


def _stft(clip: object) -> NDArray[np.complex128]:
    padded = np.pad(np.asarray(clip, dtype=np.float64), (FRAME, FRAME + HOP))
    frames = np.lib.stride_tricks.sliding_window_view(padded, FRAME)[::HOP] * np.hanning(FRAME + 1)[:-1]
    return np.fft.rfft(frames, axis=1).T


def _istft(spectrum: NDArray[np.complex128], n: int) -> Floats:
    window = np.hanning(FRAME + 1)[:-1]
    frames = np.fft.irfft(spectrum.T, FRAME, axis=1) * window
    out, weight = np.zeros(len(frames) * HOP + FRAME), np.zeros(len(frames) * HOP + FRAME)
    for i, frame in enumerate(frames):
        out[i * HOP : i * HOP + FRAME] += frame
        weight[i * HOP : i * HOP + FRAME] += window**2
    return (out / np.maximum(weight, 1e-6))[FRAME : FRAME + n]


def _bands(count: int, bins: int) -> Floats:
    """Return triangles on a mel axis, band × bin."""
    mel = np.linspace(0, 2595 * np.log10(1 + 8000 / 700), count + 2)
    edges = 700 * (10 ** (mel / 2595) - 1) / 8000 * (bins - 1)
    at = np.arange(bins)[None]
    low, mid, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    rising, falling = (at - low) / np.maximum(mid - low, 1.0), (high - at) / np.maximum(high - mid, 1.0)
    return np.asarray(np.maximum(np.minimum(rising, falling), 0.0))


def _as_loud(changed: Floats, clip: Clip) -> Clip:
    power = float(np.sqrt(np.mean(np.square(changed)))) or 1.0
    return np.asarray(np.clip(changed * float(np.sqrt(np.mean(np.square(clip)))) / power, -1, 1), dtype=np.float32)
