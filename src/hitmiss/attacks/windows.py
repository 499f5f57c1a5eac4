"""Where in a record a perturbation acts: Hann windows, and windows where the model is sensitive.

A window is the whole Hann taper of `window_seconds` around `center_time`, cut off (never compressed) at the record's
ends; no window means the whole record, all ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from hitmiss.attacks.arrays import Floats
from hitmiss.core.errors import UsageError


def hann_window(n: int, fs: float, center_time: float = 0.0, window_seconds: float | None = None) -> Floats:
    """Return weights in 0..1, one per sample.

    >>> hann_window(5, 1.0, 2.0, 4.0).round(4).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    >>> hann_window(3, 1.0, 0.0, 4.0).round(4).tolist()  # cut off at the start, not squeezed into what is left
    [1.0, 0.5, 0.0]
    >>> hann_window(3, 1.0).tolist()
    [1.0, 1.0, 1.0]
    """
    if window_seconds is None:
        return np.ones(n)
    if not window_seconds > 0:  # also refuses NaN
        raise UsageError.of("out-of-range/above", name="window_seconds", low=0, found=window_seconds)
    if not 0.0 <= center_time <= n / fs:
        raise UsageError.of("bad-window/center", center_time=center_time, n=n / fs)
    away = np.abs(np.arange(n) / fs - center_time) / (window_seconds / 2)
    if not (away < 1.0).any():
        raise UsageError.of("bad-window/empty", window_seconds=window_seconds, center_time=center_time, fs=fs)
    return np.where(away < 1.0, 0.5 * (1.0 + np.cos(np.pi * np.minimum(away, 1.0))), 0.0)


def hann_windows(n: int, fs: float, centers: ArrayLike, seconds: Sequence[float | None]) -> Floats:
    """Return one window per record: record × sample."""
    times = np.broadcast_to(np.asarray(centers, dtype=np.float64), len(seconds))
    made = {key: hann_window(n, fs, *key) for key in set(zip(times.tolist(), seconds, strict=True))}
    return np.stack([made[key] for key in zip(times.tolist(), seconds, strict=True)])


def center_times(n: int, fs: float, window_seconds: float, overlap: float = 0.5) -> Floats:
    """Return centres of windows that cover a record from its first whole window to its last.

    >>> center_times(1000, 100.0, 2.0).tolist()
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
    """
    if not 0.0 <= overlap < 1.0:
        raise UsageError.of("bad-overlap", overlap=overlap)
    last = n / fs - window_seconds / 2
    if window_seconds <= 0 or last < window_seconds / 2:
        raise UsageError.of("bad-window/long", window_seconds=window_seconds, n=n / fs)
    step = window_seconds * (1.0 - overlap)
    places = np.arange(int((last - window_seconds / 2) / step + 1e-9) + 1, dtype=np.float64)
    return np.asarray((window_seconds / 2 + step * places).round(9))


def salient_centers(
    saliency: ArrayLike, fs: float, window_seconds: float = 2.0, count: int = 3, overlap: float = 0.25
) -> list[Floats]:
    """Return for each record the centres of the most salient windows, best first, overlapping by at most `overlap`.

    `saliency` is record × sample (see `methods.saliency`). A window's saliency is the sum under its Hann taper.

    >>> salient_centers(np.eye(400)[[200]], 100.0, 1.0, count=1)[0].tolist()
    [2.0]
    """
    values = np.atleast_2d(np.asarray(saliency, dtype=np.float64))
    n = values.shape[1]
    centers = center_times(n, fs, window_seconds, overlap=1.0 - 1.0 / max(round(window_seconds * fs / 10), 1))
    tapers = np.stack([hann_window(n, fs, c, window_seconds) for c in centers])
    found = values @ tapers.T
    return [_apart(centers, row, window_seconds * (1.0 - overlap), count) for row in found]


def _apart(centers: Floats, score: Floats, distance: float, count: int) -> Floats:
    """Return the best centres that keep a distance from each other."""
    chosen: list[float] = []
    for at in np.argsort(-score, kind="stable"):
        if all(abs(centers[at] - c) >= distance - 1e-9 for c in chosen):
            chosen.append(float(centers[at]))
        if len(chosen) == count:
            break
    return np.array(chosen)


def moving_mean(values: ArrayLike, size: int = 11) -> Floats:
    """Return the mean over `size` neighbours along the last axis; fewer at the ends.

    >>> moving_mean([0.0, 3.0, 0.0], 3).tolist()
    [1.5, 1.0, 1.5]
    """
    rows = np.atleast_2d(np.asarray(values, dtype=np.float64))
    kernel, ones = np.ones(size), np.ones(rows.shape[1])
    count = np.convolve(ones, kernel, mode="same")
    smooth = np.stack([np.convolve(row, kernel, mode="same") / count for row in rows])
    return smooth.reshape(np.shape(values))
