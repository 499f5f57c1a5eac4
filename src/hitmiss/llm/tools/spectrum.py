"""Frequency spectrum: how the power of a picture is spread over spatial frequencies, and whether a period stands out.

Photographs fall off about as 1 / f² in power (D. J. Field, JOSA A 1987); generators that upsample leave too little power
at high frequencies, or peaks at the period of their grid (R. Durall et al., CVPR 2020).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hitmiss.llm.pixels import Floats, decode, luminance, rounded


def spectrum(data: bytes, *, bins: int = 16) -> dict[str, Any]:
    """Radial power profile (log10, mean per bin of frequency from 0 to 0.5 cycles a pixel), the share of power above
    0.25, the slope of log power over log frequency, and the strongest frequency over the median of its own bin."""
    frequency, power = power_spectrum(luminance(decode(data)))
    edges = np.linspace(0.0, 0.5, bins + 1)
    which = np.digitize(frequency, edges[1:-1])
    inside = (frequency > 0) & (frequency <= 0.5)
    profile = [_mean(power[inside & (which == b)]) for b in range(bins)]
    total = float(power[inside].sum())
    return {
        "log10_power_by_frequency": [None if p is None or p <= 0 else round(float(np.log10(p)), 3) for p in profile],
        "share_above_quarter": rounded(float(power[inside & (frequency > 0.25)].sum()) / total) if total else None,
        "slope": _slope((edges[:-1] + edges[1:]) / 2, profile),
        "peak_over_median": _peak(power, which, inside & (which > 0), bins),
    }


def power_spectrum(values: Floats) -> tuple[Floats, Floats]:
    """Frequency (cycles a pixel, distance from zero) and power of each term, mean removed and Hann-windowed."""
    height, width = values.shape
    window = np.outer(np.hanning(height + 2)[1:-1], np.hanning(width + 2)[1:-1])
    centred = (values - values.mean()) * window
    power = np.abs(np.fft.fft2(centred)) ** 2 / values.size
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width)[None, :])
    return frequency, power


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if values.size else None


def _slope(centres: Floats, profile: list[float | None]) -> float | None:
    """Least squares through the bins that have power; a photograph has about −2."""
    known = [(np.log10(f), np.log10(p)) for f, p in zip(centres, profile, strict=True) if p]
    if len(known) < 3:
        return None
    x, y = np.array(known).T
    x = x - x.mean()
    return rounded(float((x * (y - y.mean())).sum() / (x * x).sum()))


def _peak(power: Floats, which: Any, usable: Any, bins: int) -> float | None:
    ratios = []
    for b in range(1, bins):
        own = power[usable & (which == b)]
        middle = float(np.median(own)) if own.size else 0.0
        ratios += [float(own.max()) / middle] if middle else []
    return rounded(max(ratios)) if ratios else None
