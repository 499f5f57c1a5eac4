"""Where in a record a perturbation acts: Hann windows.

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
