"""When an attack has succeeded: this is defined separately from how the attack works.

A criterion takes the bits predicted for the clean and the changed record (record × class) and the target class (one
per record, −1 if there is none), and returns for each record whether it counts as a success.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.int8]
Mask = NDArray[np.bool_]
Criterion = Callable[[Bits, Bits, NDArray[np.int64]], Mask]


def any_bit(clean: Bits, changed: Bits, target: NDArray[np.int64]) -> Mask:
    """Return the documented untargeted success: any bit differs from the clean prediction.

    >>> any_bit(np.array([[1, 0]]), np.array([[1, 1]]), np.array([-1])).tolist()
    [True]
    """
    del target
    return np.asarray((clean != changed).any(axis=1))


def target_on(clean: Bits, changed: Bits, target: NDArray[np.int64]) -> Mask:
    """Return the documented `force`: the bit of the class is 1 afterwards, whatever it was before."""
    del clean
    return np.asarray(changed[np.arange(len(changed)), target] == 1)


def target_off(clean: Bits, changed: Bits, target: NDArray[np.int64]) -> Mask:
    """Return the documented `suppress`: the bit of the class goes from 1 to 0."""
    own = np.arange(len(changed)), target
    return np.asarray((clean[own] == 1) & (changed[own] == 0))


CRITERIA: Final[Mapping[str | None, Criterion]] = {None: any_bit, "force": target_on, "suppress": target_off}
"""The criterion of each target mode; None: no target."""
