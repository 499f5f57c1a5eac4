"""Noise residual: what is left of a picture when a 3 × 3 median has taken the scene away.

A sensor leaves noise everywhere, alike in all directions; a generator often leaves less, and a pasted region another
amount than its surroundings (J. Fridrich and J. Kodovsky, IEEE TIFS 2012, use such residuals).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hitmiss.llm.pixels import Floats, blocks, decode, luminance, rounded


def noise_residual(data: bytes, *, grid: int = 8) -> dict[str, Any]:
    """Standard deviation and excess kurtosis of the residual, its correlation with the next pixel to the right and
    below, the deviation in each block of a grid, and the highest block's over the lowest's."""
    noise = residual(luminance(decode(data)))
    deviations = [[float(b.std()) for b in row] for row in blocks(noise, grid)]
    lowest = float(np.min(deviations))
    return {
        "deviation": rounded(float(noise.std())),
        "excess_kurtosis": _kurtosis(noise),
        "correlation_right": _correlation(noise[:, :-1], noise[:, 1:]),
        "correlation_below": _correlation(noise[:-1], noise[1:]),
        "highest_block_over_lowest": rounded(float(np.max(deviations)) / lowest) if lowest else None,
        "block_deviations": [[round(d, 3) for d in row] for row in deviations],
    }


def residual(values: Floats) -> Floats:
    """The picture minus its 3 × 3 median; the border is continued by reflection."""
    from scipy.ndimage import median_filter

    return np.asarray(values - median_filter(values, size=3, mode="reflect"))


def _kurtosis(noise: Floats) -> float | None:
    centred = noise - noise.mean()
    variance = float((centred**2).mean())
    return rounded(float((centred**4).mean()) / variance**2 - 3.0) if variance else None


def _correlation(one: Floats, other: Floats) -> float | None:
    a, b = one - one.mean() if one.size else one, other - other.mean() if other.size else other
    scale = float(np.sqrt((a**2).sum() * (b**2).sum()))
    return rounded(float((a * b).sum()) / scale) if scale else None
