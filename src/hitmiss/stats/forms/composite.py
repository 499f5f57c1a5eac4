"""Forms made of several estimates: they combine the values, and the replicates, of their parts.

    Mean          over slices or repeats, plain or weighted (macro averages, pairs within slices)
    Difference    the second part less the first (the gap between domains, two runs on the same trials)
    Extreme       the worst of several slices
    Spread        the greatest of several slices less the least, or the least divided by the greatest
    Expression    a formula that a protocol makes of several metrics

They say what is combined. Which interval the combination gets is decided in `engine.interval`, as for every other form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hitmiss.core.sorting import Floats, Number
from hitmiss.stats.forms.base import Functional


@dataclass(frozen=True, eq=False)
class Mean:
    """The mean of parts of one form; `weights`: how much each counts (None: all alike)."""

    of: Functional | Difference
    weights: Floats | None = None

    def combine(self, parts: Sequence[Floats] | Sequence[float]) -> Floats:
        """Return the mean of the parts, replicate by replicate."""
        table = np.asarray(parts, dtype=np.float64)
        if self.weights is None:
            return np.asarray(table.mean(axis=0))
        return np.asarray(self.weights @ table / self.weights.sum())


@dataclass(frozen=True, eq=False)
class Difference:
    """The second part less the first; `paired`: both rest on the same trials."""

    of: Functional
    paired: bool = False

    def combine(self, parts: Sequence[Floats] | Sequence[float]) -> Floats:
        """Return the difference, replicate by replicate."""
        return np.asarray(parts[1] - parts[0])


@dataclass(frozen=True, eq=False)
class Extreme:
    """The worst of several slices; `sign`: 1 if high values are worse, −1 if low ones are."""

    of: Functional
    sign: float

    def place(self, values: Sequence[float]) -> int:
        """Return which part is the worst."""
        return int(np.argmax(self.sign * np.asarray(values)))


@dataclass(frozen=True, eq=False)
class Spread:
    """The greatest of several slices less the least; `is_ratio`: the least divided by the greatest."""

    of: Functional
    is_ratio: bool = False

    def value(self, values: Sequence[float]) -> float:
        """Return the spread of the numbers of all slices; NaN for a ratio to 0."""
        least, most = min(values), max(values)
        if not self.is_ratio:
            return most - least
        return least / most if most else math.nan


@dataclass(frozen=True, eq=False)
class Expression:
    """A formula of several estimates; `is_extreme`: it takes the greatest or the least of noisy numbers.

    `is_smooth`: none of them is read at a quantile.
    """

    formula: Callable[[Sequence[Number]], Number]
    is_extreme: bool = False
    is_smooth: bool = True

    def combine(self, parts: Sequence[Floats]) -> Floats:
        """Return the value of the formula, replicate by replicate."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.formula(parts))


Composite = Mean | Difference | Extreme | Spread | Expression
