"""Clips of one length: each is fitted by itself, before it goes into a batch, so that padding is never repeated.

Rules for a clip that is too short: `tile` repeats it, `mirror` plays it forwards and backwards, `zero` adds silence,
`truncate` leaves it short. A clip that is too long is cropped: `first` keeps the beginning, `centre` the middle,
`random` a part at a random position.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.detection.detect_spec import LengthRule, Pooling
from hitmiss.detection.preparation import Number

Crop = Literal["first", "centre", "random"]
LENGTH_RULES: Final = get_args(LengthRule)
CROPS: Final = get_args(Crop)
POOLINGS: Final[dict[str, Callable[[NDArray[np.float64]], np.float64]]] = {
    "mean": np.mean,
    "median": np.median,
    "min": np.min,
    "max": np.max,
}
SILENCE: Final = -1


def fit_length(
    clip: NDArray[Number],
    cut_length: int | None,
    rule: LengthRule = "tile",
    *,
    crop: Crop = "first",
    rng: np.random.Generator | None = None,
) -> NDArray[Number]:
    """Return the clip with `cut_length` samples (None: unchanged); the last axis is time.

    >>> fit_length(np.array([1, 2, 3]), 7).tolist(), fit_length(np.array([1, 2, 3]), 2).tolist()
    ([1, 2, 3, 1, 2, 3, 1], [1, 2])
    >>> fit_length(np.array([1, 2, 3]), 6, "mirror").tolist(), fit_length(np.array([1, 2]), 4, "zero").tolist()
    ([1, 2, 3, 2, 1, 2], [1, 2, 0, 0])
    """
    if cut_length is None or clip.shape[-1] == cut_length:
        return clip
    at = positions(clip.shape[-1], cut_length, rule, crop=crop, rng=rng)
    return np.where(at == SILENCE, clip.dtype.type(0), clip[..., at])


def positions(
    n: int,
    cut_length: int,
    rule: LengthRule = "tile",
    *,
    crop: Crop = "first",
    rng: np.random.Generator | None = None,
) -> NDArray[np.intp]:
    """Return which of a clip's `n` samples is at each position of the fitted clip; `SILENCE` (-1) for padding.

    >>> positions(2, 5).tolist(), positions(5, 3, crop="centre").tolist()
    ([0, 1, 0, 1, 0], [1, 2, 3])
    """
    _check(n, cut_length, rule, crop)
    if n >= cut_length:
        return _start(n - cut_length, crop, rng) + np.arange(cut_length)
    places = np.arange(n if rule == "truncate" else cut_length)
    if rule == "tile":
        return places % n
    if rule == "mirror":
        turn = places % max(2 * n - 2, 1)
        return np.minimum(turn, 2 * n - 2 - turn)
    return np.where(places < n, places, SILENCE)


def _check(n: int, cut_length: int, rule: str, crop: str) -> None:
    if n < 1:
        raise DataError.of("empty-clip")
    if cut_length < 1:
        raise UsageError.of("out-of-range/above", name="cut_length", low=0, found=cut_length)
    if rule not in LENGTH_RULES:
        raise UnknownName("length rule", rule, LENGTH_RULES)
    if crop not in CROPS:
        raise UnknownName("crop", crop, CROPS)


def _start(spare: int, crop: Crop, rng: np.random.Generator | None) -> int:
    if crop == "random":
        if rng is None:
            raise UsageError.of("no-generator")
        return int(rng.integers(spare + 1))
    return spare // 2 if crop == "centre" else 0


def windows(clip: NDArray[Number], length: int, hop: int | None = None) -> NDArray[Number]:
    """Cut a long clip into overlapping windows (window × sample) that cover it; tile a short one to one window.

    >>> windows(np.arange(7), 4, 2).tolist()
    [[0, 1, 2, 3], [2, 3, 4, 5], [3, 4, 5, 6]]
    """
    hop = length // 2 if hop is None else hop
    if not 1 <= hop <= length:
        raise UsageError.of("out-of-range", name="the advance of windows", low=1, high=length, found=hop)
    n = clip.shape[-1]
    if n <= length:
        return fit_length(clip, length)[None]
    starts = [*range(0, n - length, hop), n - length]
    return np.stack([clip[s : s + length] for s in starts])


def pool(scores: ArrayLike, how: Pooling = "mean") -> float:
    """Pool the scores of a clip's windows into one; `min` detects a spoofed part of an otherwise real clip.

    >>> pool([2.0, -1.0, 2.0]), pool([2.0, -1.0, 2.0], "min")
    (1.0, -1.0)
    """
    if how not in POOLINGS:
        raise UnknownName("pooling", how, POOLINGS)
    values = np.asarray(scores, dtype=np.float64)
    if not values.size:
        raise DataError.of("no-windows")
    return float(POOLINGS[how](values))
