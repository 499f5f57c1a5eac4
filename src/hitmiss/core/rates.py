"""Estimates that keep what they were computed from: rates with their counts, quantiles; and their stable digits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hitmiss.core.sorting import Floats

DIGITS: Final = 13
"""Significant digits of a number: the last bits of sums, powers and logarithms differ between processors."""
END_DIGITS: Final = 10
"""Significant digits of the end of an interval, which needs more of these operations."""


def round_number(value: float | None, digits: int = DIGITS) -> float | None:
    """Round a number to the digits that do not depend on the processor, the order of rows or streaming.

    >>> round_number(0.1 + 0.2), round_number(1.0), round_number(None), round_number(2 / 3, 4)
    (0.3, 1.0, None, 0.6667)
    """
    if value is None or not math.isfinite(value):
        return value
    # First what is above the noise of sums: a number halfway between two would go either way by its last bit.
    return float(f"{float(f'{value:.13e}'):.{digits - 1}e}")


class Rate(float):
    """A share that keeps its numerator and denominator; NaN if the denominator is 0.

    >>> Rate(1, 4)
    Rate(1/4 = 0.25)
    >>> Rate(1, 4) + 0.5
    0.75
    >>> Rate(0, 0)
    Rate(0/0 = nan)
    """

    hits: float
    of: float

    def __new__(cls, hits: float, of: float) -> Rate:
        rate = super().__new__(cls, hits / of if of else float("nan"))
        rate.hits, rate.of = hits, of
        return rate

    def __repr__(self) -> str:
        return f"Rate({self.hits:g}/{self.of:g} = {float(self):g})"

    def __reduce__(self) -> tuple[type[Rate], tuple[float, float]]:
        return Rate, (self.hits, self.of)


class PartialEstimate(float):
    """An estimate that keeps the number of trials it was computed over, if these are not all.

    >>> PartialEstimate(0.25, 12)
    PartialEstimate(0.25 over 12)
    """

    of: float

    def __new__(cls, value: float, of: float) -> PartialEstimate:
        estimate = super().__new__(cls, value)
        estimate.of = of
        return estimate

    def __repr__(self) -> str:
        return f"PartialEstimate({float(self):g} over {self.of:g})"

    def __reduce__(self) -> tuple[type[PartialEstimate], tuple[float, float]]:
        return PartialEstimate, (float(self), self.of)


class Quantile(PartialEstimate):
    """A quantile that keeps its share and the ordered values it was read from.

    >>> Quantile(2.0, 0.5, (1.0, 2.0, 3.0)).of
    3
    """

    share: float
    ordered: Sequence[float] | Floats

    def __new__(cls, value: float, share: float, ordered: Sequence[float] | Floats) -> Quantile:
        quantile: Quantile = super().__new__(cls, value, len(ordered))  # type: ignore[assignment]
        quantile.share, quantile.ordered = share, ordered
        return quantile

    def __reduce__(self) -> tuple[type[Quantile], tuple[float, float, Sequence[float] | Floats]]:  # type: ignore[override]
        return Quantile, (float(self), self.share, self.ordered)
