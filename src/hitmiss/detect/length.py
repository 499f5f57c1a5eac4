"""Clips to one length, each by itself and before they are put into a batch, so that padding is never repeated as sound.

Rules for a clip that is too short: `tile` repeats it, `mirror` plays it to and fro, `zero` adds silence, `truncate`
leaves it short. What is too long is cropped: `first` keeps the beginning, `centre` the middle, `random` a place drawn
from a generator.
"""

from __future__ import annotations

from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.errors import DataError, UnknownName, UsageError

LengthRule = Literal["tile", "mirror", "zero", "truncate"]
Crop = Literal["first", "centre", "random"]
Pooling = Literal["mean", "median", "min", "max"]
LENGTH_RULES: Final = get_args(LengthRule)
CROPS: Final = get_args(Crop)
POOLINGS: Final[dict[str, Any]] = {"mean": np.mean, "median": np.median, "min": np.min, "max": np.max}
SILENCE: Final = -1


def fit_length(
    clip: NDArray[Any],
    cut_length: int | None,
    rule: LengthRule = "tile",
    *,
    crop: Crop = "first",
    rng: np.random.Generator | None = None,
) -> NDArray[Any]:
    """The clip with `cut_length` samples (None: as it is); the last axis is time.

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
    """Which of a clip's `n` samples stands at each place of the fitted clip; `SILENCE` (-1) for none.

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
        raise DataError("an empty clip cannot be brought to a length")
    if cut_length < 1:
        raise UsageError(f"cut_length is a number of samples above 0; found {cut_length}")
    if rule not in LENGTH_RULES:
        raise UnknownName("length rule", rule, LENGTH_RULES)
    if crop not in CROPS:
        raise UnknownName("crop", crop, CROPS)


def _start(spare: int, crop: Crop, rng: np.random.Generator | None) -> int:
    if crop == "random":
        if rng is None:
            raise UsageError("a random crop needs a generator: rng=…, one a clip")
        return int(rng.integers(spare + 1))
    return spare // 2 if crop == "centre" else 0


def windows(clip: NDArray[Any], length: int, hop: int | None = None) -> NDArray[Any]:
    """A long clip as overlapping windows (window × sample) that cover it to the end; a short one is tiled to one.

    >>> windows(np.arange(7), 4, 2).tolist()
    [[0, 1, 2, 3], [2, 3, 4, 5], [3, 4, 5, 6]]
    """
    hop = length // 2 if hop is None else hop
    if not 1 <= hop <= length:
        raise UsageError(f"windows of {length} samples must advance by 1 to {length}; found {hop}")
    n = clip.shape[-1]
    if n <= length:
        return fit_length(clip, length)[None]
    starts = [*range(0, n - length, hop), n - length]
    return np.stack([clip[s : s + length] for s in starts])


def pool(scores: ArrayLike, how: Pooling = "mean") -> float:
    """One score for a clip from those of its windows; `min` finds a spoofed part of a clip that is real elsewhere.

    >>> pool([2.0, -1.0, 2.0]), pool([2.0, -1.0, 2.0], "min")
    (1.0, -1.0)
    """
    if how not in POOLINGS:
        raise UnknownName("pooling", how, POOLINGS)
    values = np.asarray(scores, dtype=np.float64)
    if not values.size:
        raise DataError("there are no window scores to pool")
    return float(POOLINGS[how](values))
