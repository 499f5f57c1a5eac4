"""Levels of a sound: how loud it is, what is silent, and whether samples are clipped.

Recordings have a noise floor of their own; a stretch of exact zeros, or silence at both ends as if cut, is worth a look.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hitmiss.llm.pixels import rounded
from hitmiss.llm.sounds import Floats, read_sound

MOST: Final = 20_000_000
FRAME_SECONDS: Final = 0.02
CLIPPED: Final = 0.999
DEEPEST: Final = -120.0


def sound_levels(data: bytes, *, silence: float = -60.0) -> dict[str, Any]:
    """Peak and RMS in dB of full scale, offset, shares of clipped samples and of exact zeros; of frames of 20 ms the
    5th percentile (the noise floor), and the share, the beginning and the end that lie below `silence` dB."""
    sound = read_sound(data, MOST)
    values = sound.mono
    frames = frame_levels(values, max(1, round(FRAME_SECONDS * sound.rate)))
    loud = np.flatnonzero(frames >= silence)
    ends = (loud[0], len(frames) - 1 - loud[-1]) if loud.size else (len(frames), len(frames))
    return {
        "seconds": rounded(len(values) / sound.rate),
        "peak_db": decibels(float(np.abs(values).max())),
        "rms_db": decibels(float(np.sqrt(np.mean(values**2)))),
        "offset": rounded(float(values.mean())),
        "clipped_share": rounded(float(np.mean(np.abs(sound.samples) >= CLIPPED))),
        "zero_share": rounded(float(np.mean(values == 0.0))),
        "noise_floor_db": rounded(float(np.percentile(frames, 5))),
        "silent_share": rounded(float(np.mean(frames < silence))),
        "silent_seconds_at_start": rounded(float(ends[0]) * FRAME_SECONDS),
        "silent_seconds_at_end": rounded(float(ends[1]) * FRAME_SECONDS),
    }


def frame_levels(values: Floats, size: int) -> Floats:
    """RMS in dB of each whole frame; a sound shorter than a frame is one."""
    whole = values[: len(values) // size * size].reshape(-1, size) if len(values) >= size else values[None]
    power = np.mean(whole**2, axis=1)
    return np.asarray(10 * np.log10(np.maximum(power, 10 ** (DEEPEST / 10))))


def decibels(amplitude: float) -> float:
    """dB of full scale; silence is −120.

    >>> decibels(1.0), decibels(0.1), decibels(0.0)
    (0.0, -20.0, -120.0)
    """
    return rounded(20 * float(np.log10(max(amplitude, 10 ** (DEEPEST / 20)))))
