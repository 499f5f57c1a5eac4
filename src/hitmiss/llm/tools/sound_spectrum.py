"""Spectrum of a sound: how its power is spread over frequencies, and where it ends.

Lossy coders and vocoders of 16 kHz cut a sound off below half its sample rate; a microphone does not.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hitmiss.llm.pixels import rounded
from hitmiss.llm.sounds import Floats, read_sound

MOST: Final = 20_000_000
FRAME: Final = 1024
FLOOR_DB: Final = -80.0
"""Below the strongest frequency by so much, nothing is left."""


def sound_spectrum(data: bytes, *, bands: int = 16) -> dict[str, Any]:
    """Mean power by frequency in dB (equal bands from 0 to half the sample rate), the centroid, the frequencies that 85 %
    and 99 % of the power lie below, and the highest one with anything left, by itself and over half the sample rate."""
    sound = read_sound(data, MOST)
    power = mean_power(sound.mono)
    frequency = np.linspace(0.0, sound.rate / 2, len(power))
    total = float(power.sum())
    if total <= 0:
        return {"sample_rate": sound.rate, "reason": "the sound is silent"}
    share = np.cumsum(power) / total
    left = np.flatnonzero(power >= power.max() * 10 ** (FLOOR_DB / 10))
    highest = float(frequency[left[-1]])
    return {
        "sample_rate": sound.rate,
        "db_by_frequency": [_db(float(part.mean())) for part in np.array_split(power, bands)],
        "centroid_hz": rounded(float((frequency * power).sum() / total)),
        "below_85_percent_hz": rounded(float(frequency[np.searchsorted(share, 0.85)])),
        "below_99_percent_hz": rounded(float(frequency[np.searchsorted(share, 0.99)])),
        "highest_hz": rounded(highest),
        "highest_over_half_rate": rounded(2 * highest / sound.rate),
    }


def mean_power(values: Floats) -> Floats:
    """Power of each frequency, the mean over Hann-windowed frames of 1024 samples that overlap by half (P. Welch, 1967)."""
    padded = np.pad(values, (0, max(0, FRAME - len(values))))
    frames = np.lib.stride_tricks.sliding_window_view(padded, FRAME)[:: FRAME // 2]
    window = np.hanning(FRAME + 1)[:-1]
    total = np.zeros(FRAME // 2 + 1)
    for start in range(0, len(frames), 1024):  # so that a long sound takes little memory
        total += (np.abs(np.fft.rfft(frames[start : start + 1024] * window, axis=1)) ** 2).sum(axis=0)
    return total / len(frames)


def _db(power: float) -> float | None:
    return rounded(10 * float(np.log10(power))) if power > 0 else None
