"""The waveform of a sound as SVG: each stroke shows the lowest and the highest sample of its part."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import DataError, EnvironmentFault

STROKES: Final = 180
WIDTH, HEIGHT = 360.0, 80.0
LONGEST_SECONDS: Final = 600.0
"""Seconds; a longer sound is played but not drawn."""


def waveform(path: Path) -> str:
    """Return the waveform of a sound file; empty if it cannot be decoded here (decoding needs the extra `audio`)."""
    from hitmiss.media.audio import load_audio

    try:
        return draw_waveform(load_audio(path, max_seconds=LONGEST_SECONDS))
    except (DataError, EnvironmentFault):
        return ""


def draw_waveform(clip: NDArray[np.float32]) -> str:
    """Draw strokes from the lowest to the highest sample; the loudest fills the height.

    >>> draw_waveform(np.array([0.0, 0.5, -0.5, 0.0], dtype=np.float32)).count("M")
    4
    """
    ends = np.linspace(0, len(clip), min(STROKES, len(clip)) + 1).astype(np.int64)[:-1]
    low, high = np.minimum.reduceat(clip, ends), np.maximum.reduceat(clip, ends)
    loudest = max(float(np.abs(clip).max()), 1e-9)
    middle, half = HEIGHT / 2, HEIGHT / 2 - 2
    step = WIDTH / len(ends)
    strokes = [
        f"M{step * (i + 0.5):.2f} {middle - half * b / loudest:.2f}V{middle - half * min(a, b - 1e-3) / loudest + 0.4:.2f}"
        for i, (a, b) in enumerate(zip(low.tolist(), high.tolist(), strict=True))
    ]
    return (
        f'<svg class="wave" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" aria-hidden="true"><path d="{"".join(strokes)}"/></svg>'
    )
