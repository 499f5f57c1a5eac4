"""When an attack has succeeded: a question of its own, apart from how the attack works.

A criterion looks at the bits predicted for the clean and for the changed record (record × class) and at the class aimed at
(one a record, −1 where there is none), and says for each record whether that counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.errors import DataError, UnknownName

Bits = NDArray[np.int8]
Mask = NDArray[np.bool_]
Rule = Callable[[Bits, Bits, NDArray[np.int64]], Any]


@dataclass(frozen=True)
class Criterion:
    """A named rule: (clean bits, changed bits, class aimed at) to one yes or no a record."""

    name: str
    rule: Rule

    def __call__(self, clean: Any, changed: Any, target: Any = None) -> Mask:
        """Which records count as successes."""
        before, after = (np.atleast_2d(np.asarray(bits)).astype(np.int8) for bits in (clean, changed))
        aimed = np.full(len(before), -1) if target is None else np.broadcast_to(np.asarray(target), len(before))
        found = np.asarray(self.rule(before, after, aimed.astype(np.int64)), dtype=bool)
        if found.shape != (len(before),):
            raise DataError(f"criterion {self.name} must give one yes or no a record; found the shape {found.shape}")
        return found


def _at(bits: Bits, target: NDArray[np.int64]) -> Bits:
    if (target < 0).any():
        raise DataError("this criterion needs a class that the attack aims at")
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


def find_criterion(given: str | Criterion | Rule) -> Criterion:
    """A criterion by name, or one of your own.

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
    """The criterion that a target mode asks for: force, suppress, or none."""
    return {None: any_bit, "force": target_on, "suppress": target_off}[mode]
