"""When an attack has succeeded: this is defined separately from how the attack works.

A criterion takes the bits predicted for the clean and the changed record (record × class) and the target class (one
per record, −1 if there is none), and returns for each record whether it counts as a success.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.core.errors import DataError, UnknownName

Bits = NDArray[np.int8]
Mask = NDArray[np.bool_]
SuccessRule = Callable[[Bits, Bits, NDArray[np.int64]], ArrayLike]


@dataclass(frozen=True)
class Criterion:
    """A named rule: (clean bits, changed bits, target class) to one yes or no per record."""

    name: str
    rule: SuccessRule

    def __call__(self, clean: ArrayLike, changed: ArrayLike, target: ArrayLike | None = None) -> Mask:
        """Return which records count as successes."""
        before, after = (np.atleast_2d(np.asarray(bits)).astype(np.int8) for bits in (clean, changed))
        aimed = np.full(len(before), -1) if target is None else np.broadcast_to(np.asarray(target), len(before))
        found = np.asarray(self.rule(before, after, aimed.astype(np.int64)), dtype=bool)
        if found.shape != (len(before),):
            raise DataError.of("criterion-give-yes", name=self.name, shape=str(found.shape))
        return found


def _at(bits: Bits, target: NDArray[np.int64]) -> Bits:
    if (target < 0).any():
        raise DataError.of("criterion-needs-class-attack")
    return np.asarray(bits[np.arange(len(bits)), target])


any_bit: Final = Criterion("any_bit", lambda clean, changed, target: (clean != changed).any(axis=1))
"""The documented untargeted success: any bit differs from the clean prediction."""
target_on: Final = Criterion("target_on", lambda clean, changed, target: _at(changed, target) == 1)
"""The documented `force`: the bit of the class is 1 afterwards, whatever it was before."""
target_off: Final = Criterion(
    "target_off", lambda clean, changed, target: (_at(clean, target) == 1) & (_at(changed, target) == 0)
)
"""The documented `suppress`: the bit of the class goes from 1 to 0."""
CRITERIA: Final = {c.name: c for c in (any_bit, target_on, target_off)}


def find_criterion(given: str | Criterion | SuccessRule) -> Criterion:
    """Return a criterion by name, or wrap the caller's own.

    >>> find_criterion("any_bit")([[1, 0]], [[1, 1]]).tolist()
    [True]
    >>> lost_all = find_criterion(lambda clean, changed, target: changed.sum(axis=1) == 0)
    >>> lost_all([[1, 0]], [[0, 0]]).tolist()
    [True]
    """
    if isinstance(given, Criterion):
        return given
    if callable(given):
        return Criterion(getattr(given, "__name__", "custom"), given)
    if given not in CRITERIA:
        raise UnknownName("criterion", given, CRITERIA)
    return CRITERIA[given]


def for_mode(mode: str | None) -> Criterion:
    """Return the criterion of a target mode: force, suppress, or None."""
    return {None: any_bit, "force": target_on, "suppress": target_off}[mode]
