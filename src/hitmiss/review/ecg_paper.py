"""An ECG on ECG paper, as SVG: 25 mm per second, 10 mm per millivolt, every lead in full."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import DataError
from hitmiss.core.text import escape_invisible

Floats = NDArray[np.float64]
SPEED: Final = 25.0
"""Millimetres per second."""
GAIN: Final = 10.0
"""Millimetres per millivolt."""
BIN_MM: Final = 0.2
"""Samples that share this much of the paper are drawn as their extremes."""
LEFT, EDGE, LEAST_ROW = 12.0, 4.0, 15.0
STANDARD: Final = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")
MOST_LEADS, MOST_SECONDS = 32, 120.0


@dataclass(frozen=True, eq=False)
class Ecg:
    """Leads × samples in millivolts, the sampling rate, and the names of the leads."""

    signal: Floats
    fs: float
    leads: tuple[str, ...]

    def __post_init__(self) -> None:
        n, samples = self.signal.shape if self.signal.ndim == 2 else (0, 0)
        if not (1 <= n <= MOST_LEADS and samples >= 2 and np.isfinite(self.signal).all()):
            raise DataError.of("bad-ecg", MOST_LEADS=MOST_LEADS, shape=str(self.signal.shape))
        if not 0 < self.fs <= 100_000 or samples / self.fs > MOST_SECONDS:
            raise DataError.of("bad-ecg/long", MOST_SECONDS=MOST_SECONDS, samples=samples, fs=self.fs)
        if len(self.leads) != n:
            raise DataError.of("lead-names/count", n=n, n_leads=len(self.leads))

    @classmethod
    def of(cls, array: NDArray[np.generic], fs: float, leads: tuple[str, ...] | None = None) -> Ecg:
        """Create it from an array in either orientation: time is the longer side. Twelve leads get the usual names."""
        signal = np.asarray(array, dtype=np.float64)
        if signal.ndim == 1:
            signal = signal[None, :]
        if signal.ndim == 2 and signal.shape[0] > signal.shape[1]:
            signal = signal.T
        n = signal.shape[0] if signal.ndim == 2 else 0
        return cls(signal, fs, leads or (STANDARD if n == len(STANDARD) else tuple(f"lead {i + 1}" for i in range(n))))


def draw_ecg(ecg: Ecg) -> str:
    """Return the SVG. One unit is one millimetre; colours come from the page's style by class.

    >>> draw_ecg(Ecg(np.zeros((1, 100)), 100.0, ("<I>",)))[:24], "&lt;I&gt;" in draw_ecg(Ecg(np.zeros((1, 9)), 9.0, ("<I>",)))
    ('<svg class="ecg" viewBox', True)
    """
    seconds = ecg.signal.shape[1] / ecg.fs
    rows = _heights(ecg.signal)
    width = LEFT + _up(SPEED * seconds + EDGE)
    height = EDGE + float(sum(top + bottom for top, bottom in rows))
    height = _up(height + EDGE)
    parts = [
        f'<svg class="ecg" viewBox="0 0 {width:g} {height:g}" role="img" aria-label="ECG, {len(rows)} leads, {seconds:.3g} seconds">',
        f'<path class="fine" d="{_grid(width, height, 1.0)}"/><path class="bold" d="{_grid(width, height, 5.0)}"/>',
    ]
    base = EDGE
    for lead, (signal, (top, bottom)) in enumerate(zip(ecg.signal, rows, strict=True)):
        base += top
        parts.append(f'<path class="pulse" d="M2 {base:.1f}h2v-{GAIN:g}h5v{GAIN:g}h2"/>')
        parts.append(
            f'<text x="{LEFT + 1.5:g}" y="{base - top + 4.5:.1f}">{escape(escape_invisible(ecg.leads[lead]))}</text>'
        )
        parts.append(f'<path class="trace" d="{_trace(signal, ecg.fs, base)}"/>')
        base += bottom
    return "".join([*parts, "</svg>"])


def _up(value: float) -> float:
    """Round up to the next bold line."""
    return float(np.ceil(value / 5.0) * 5.0)


def _heights(signal: Floats) -> list[tuple[float, float]]:
    """Return the millimetres above and below the base line of each lead that its values need."""
    ends = [(max(float(s.max()), 0.0) * GAIN, max(-float(s.min()), 0.0) * GAIN) for s in signal]
    limit = 60.0  # a lead with extreme values must not make the paper endless
    tops = [
        (max(min(up, limit) + 2.0, LEAST_ROW * 0.8), max(min(down, limit) + 2.0, LEAST_ROW * 0.4)) for up, down in ends
    ]
    return [(float(np.ceil(a)), float(np.ceil(b))) for a, b in tops]


def _grid(width: float, height: float, step: float) -> str:
    down = "".join(f"M{x:g} 0V{height:g}" for x in np.arange(0.0, width + 0.5, step))
    return down + "".join(f"M0 {y:g}H{width:g}" for y in np.arange(0.0, height + 0.5, step))


def _trace(signal: Floats, fs: float, base: float) -> str:
    x, y = _thinned(signal, fs)
    points = np.column_stack([LEFT + x * SPEED, base - y * GAIN])
    return "M" + "L".join(f"{a:.2f} {b:.2f}" for a, b in points.tolist())


def _thinned(signal: Floats, fs: float) -> tuple[Floats, Floats]:
    """Return seconds and millivolts; where many samples share a spot, only its extremes, so that no peak is lost."""
    n = len(signal)
    size = int(fs * BIN_MM / SPEED)
    if size <= 2:
        return np.arange(n) / fs, signal
    whole = n // size * size
    parts = signal[:whole].reshape(-1, size)
    start = np.arange(0, whole, size)[:, None]
    at = np.sort(start + np.column_stack([parts.argmin(axis=1), parts.argmax(axis=1)]), axis=1).reshape(-1)
    at = np.concatenate([at, np.arange(whole, n)])
    return at / fs, signal[at]
