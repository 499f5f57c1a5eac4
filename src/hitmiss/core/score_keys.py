"""Scores as whole numbers in the same order, so that a prefix of the bits is a bin."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.core.sorting import Floats

Keys = NDArray[np.uint64]
EXACT: Final = 64
"""Number of bits of a whole key."""
COARSE: Final = 20
"""Number of bits of the bins that scores are counted in when there are too many trials to keep each score."""
_SIGN: Final = np.uint64(1 << 63)


def keys_of(score: ArrayLike) -> Keys:
    """Return the keys of scores. −0.0 and 0.0 have the same key. NaN has no place in the order and is not allowed.

    >>> keys = keys_of([-np.inf, -1.0, -0.0, 0.0, 5e-324, 1.0, np.inf])
    >>> bool((np.diff(keys.astype(object)) >= 0).all()), int(keys[3] - keys[2])
    (True, 0)
    """
    values = np.asarray(score, dtype=np.float64) + 0.0  # −0.0 + 0.0 is 0.0
    bits = values.view(np.int64)
    return values.view(np.uint64) ^ ((bits >> 63).view(np.uint64) | _SIGN)


def scores_of(keys: Keys) -> Floats:
    """Return the scores that have these keys.

    >>> scores_of(keys_of([-2.5, 0.1, np.inf]))
    array([-2.5,  0.1,  inf])
    """
    negative = keys < _SIGN
    return (keys ^ np.where(negative, ~np.uint64(0), _SIGN)).view(np.float64)


def bins_of(keys: Keys, bits: int) -> Keys:
    """Return the bins of keys: their highest bits.

    >>> bins_of(keys_of([1.0, 1.001, 1.01]), COARSE).tolist()
    [786176, 786176, 786178]
    """
    return keys if bits == EXACT else keys >> np.uint64(EXACT - bits)


def first_key(bins: Keys, bits: int) -> Keys:
    """Return the lowest key of each bin."""
    return bins if bits == EXACT else bins << np.uint64(EXACT - bits)
