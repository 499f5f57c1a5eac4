"""Small values that everything shares: a rate that remembers its counts, score kinds, decisions."""

from __future__ import annotations

from typing import Final, Literal

ABSTAIN: Final = -1
"""The decision of a detector that declined to decide."""

ScoreKind = Literal["llr", "logit", "probability", "raw"]
SCORE_KINDS: Final[tuple[str, ...]] = ("llr", "logit", "probability", "raw")
"""llr: natural-log likelihood ratio; logit: log-odds; probability: 0..1; raw: only the order means anything."""


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
