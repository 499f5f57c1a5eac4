"""Small values that everything shares: a rate that remembers its counts, score kinds, decisions."""

from __future__ import annotations

import math
from typing import Any, Final, Literal

ABSTAIN: Final = -1
"""The decision of a detector that declined to decide."""
FAILED: Final = -2
"""In arrays, the decision of a detector whose call failed; in a table of trials such a decision is null."""

ScoreKind = Literal["llr", "logit", "probability", "raw"]
SCORE_KINDS: Final[tuple[str, ...]] = ("llr", "logit", "probability", "raw")
"""llr: natural-log likelihood ratio; logit: log-odds; probability: 0..1; raw: only the order means anything."""

DIGITS: Final = 13
"""Significant digits of a figure: the last bits of sums, powers and logarithms differ between processors."""
END_DIGITS: Final = 10
"""Significant digits of the end of an interval, where more such operations meet."""


def steady(value: float | None, digits: int = DIGITS) -> float | None:
    """A number without the digits that another processor, another order of rows or a stream may give otherwise.

    >>> steady(0.1 + 0.2), steady(1.0), steady(None), steady(2 / 3, 4)
    (0.3, 1.0, None, 0.6667)
    """
    return value if value is None or not math.isfinite(value) else float(f"{value:.{digits - 1}e}")


class Rate(float):
    """A share that remembers what it is a share of; NaN where there is nothing to share.

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


class Over(float):
    """A figure that remembers over how many trials it was computed, where those are not all.

    >>> Over(0.25, 12)
    Over(0.25 over 12)
    """

    of: float

    def __new__(cls, value: float, of: float) -> Over:
        over = super().__new__(cls, value)
        over.of = of
        return over

    def __repr__(self) -> str:
        return f"Over({float(self):g} over {self.of:g})"

    def __reduce__(self) -> tuple[type[Over], tuple[float, float]]:
        return Over, (float(self), self.of)


class Quantile(Over):
    """A quantile that remembers which share lies below it, and the ordered values that it was read from.

    >>> Quantile(2.0, 0.5, (1.0, 2.0, 3.0)).of
    3
    """

    share: float
    ordered: Any

    def __new__(cls, value: float, share: float, ordered: Any) -> Quantile:
        quantile: Quantile = super().__new__(cls, value, len(ordered))  # type: ignore[assignment]
        quantile.share, quantile.ordered = share, ordered
        return quantile

    def __reduce__(self) -> tuple[type[Quantile], tuple[float, float, Any]]:  # type: ignore[override]
        return Quantile, (float(self), self.share, self.ordered)
