"""The minimum strength at which a record flips: all records at once, each with its own bracket.

If only success or failure is known, the bracket is halved. If attempts also report their distance from success, the
next strength is where the line through the last two failures reaches 0, kept so close to the middle that no record
takes more than one attempt beyond halving (like the ITP method: Oliveira & Takahashi, ACM TOMS 47(1), 2020). Most
records then take two or three attempts instead of seven.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.attacks.arrays import Floats
from hitmiss.core.errors import UsageError

Ints = NDArray[np.int64]
SLACK: Final = 1
"""Attempts that a record may take beyond halving."""
SHORT: Final = 0.8
"""Before the first failure: the share of the way from clean to the crossing that is tried.

An attack that stops once a record has flipped has only just crossed, so the estimated crossing is too high.
"""
CLOSING: Final = 0.95
"""Nothing is tried nearer than this share of the tolerance to an end of the bracket: one attempt can then finish."""


@dataclass(frozen=True, eq=False)
class AttemptResult:
    """The result of one attempt: the strength at which each record flipped (infinite: not), and its margin.

    An attack that flips a record with less than its budget has flipped it at that smaller strength.
    """

    flipped_at: Floats
    margin: Floats
    """Above 0: the distance from flipping; it only steers the search."""


Attempt = Callable[[Ints, Floats], AttemptResult | ArrayLike]
"""Maps records (by position) and strengths to the result: `AttemptResult`, the strengths of the flips, or yes and no."""


def minimal_strength(
    attempt: Attempt,
    n: int,
    *,
    top: float = 1.0,
    rounds: int = 7,
    tolerance: float | None = None,
    start: Floats | None = None,
) -> Floats:
    """Return for each record the minimum strength at which it flipped; infinite if it does not flip even at `top`.

    A record is finished once it flips at most `tolerance` (by default top × 2^−rounds) above a strength at which it did
    not. The result is a strength that did succeed, so it errs upwards. `start`: the distance of each clean record from
    flipping; without it, brackets are halved.

    >>> least = np.array([0.3, 0.9, 2.0])
    >>> minimal_strength(lambda at, s: s >= least[at], 3, rounds=10).round(2).tolist()
    [0.3, 0.9, inf]
    """
    if not 0.0 < top <= 1.0 or rounds < 1:
        raise UsageError.of("bad-search", top=top, rounds=rounds)
    width = top * 2.0**-rounds if tolerance is None else tolerance
    found = _tried(attempt, np.arange(n), np.full(n, top))
    bracket = _Bracket.of(found, start)
    most = bracket.most(width)
    for done in range(int(most.max(initial=0.0))):
        rows = np.flatnonzero(bracket.open(width))
        if not len(rows):
            break
        strength = bracket.next(rows, width, most[rows] - done)
        bracket.narrow(rows, strength, _tried(attempt, rows, strength))
    return bracket.high


@dataclass(eq=False)
class _Bracket:
    """For each record, a strength at which it did not flip, one at which it did, and its margin at both."""

    low: Floats
    high: Floats
    margin_low: Floats
    margin_high: Floats
    before: Floats
    """The failure before the last; NaN if there is only the clean record."""
    margin_before: Floats
    is_halving: bool

    @classmethod
    def of(cls, found: AttemptResult, start: Floats | None) -> _Bracket:
        """Make it from the clean records and the first attempt."""
        n, none = len(found.margin), np.full(len(found.margin), np.nan)
        margin = np.ones(n) if start is None else start
        return cls(
            np.zeros(n), found.flipped_at, _above(margin), _below(found.margin), none, none.copy(), start is None
        )

    def open(self, width: float) -> NDArray[np.bool_]:
        """Return which records flip and are not finished."""
        return np.isfinite(self.high) & (np.where(np.isfinite(self.high), self.high, 0.0) - self.low > width)

    def most(self, width: float) -> Floats:
        """Return how many more attempts each record may take."""
        size = np.where(np.isfinite(self.high), self.high - self.low, 0.0)
        return np.asarray(np.ceil(np.log2(np.maximum(size / width, 1.0))) + (0 if self.is_halving else SLACK))

    def next(self, rows: Ints, width: float, left: Floats) -> Floats:
        """Return the strength to try: the middle, or the estimate, limited by the remaining attempts."""
        low, high = self.low[rows], self.high[rows]
        middle, size = (low + high) / 2, high - low
        if self.is_halving:
            return middle
        edge = np.minimum(CLOSING * width, size / 2)
        estimate = np.clip(self._estimate(rows), low + edge, high - edge)
        reach = np.maximum(width / 2 * 2.0**left - size / 2, 0.0)
        return np.asarray(np.clip(estimate, middle - reach, middle + reach))

    def _estimate(self, rows: Ints) -> Floats:
        """Estimate where a record would just flip: from the last two failures, else between clean and the flip."""
        low, above, below = self.low[rows], self.margin_low[rows], self.margin_high[rows]
        between = low + SHORT * (self.high[rows] - low) * above / (above - below)
        before, fallen = self.before[rows], self.margin_before[rows] - above
        falling = fallen > 0  # false for NaN
        along = low + above * (low - before) / np.where(falling, fallen, 1.0)
        return np.where(falling, along, between)

    def narrow(self, rows: Ints, strength: Floats, found: AttemptResult) -> None:
        """Update with the result of an attempt."""
        hit = np.isfinite(found.flipped_at)
        flipped, failed = rows[hit], rows[~hit]
        self.high[flipped], self.margin_high[flipped] = found.flipped_at[hit], _below(found.margin[hit])
        self.before[failed], self.margin_before[failed] = self.low[failed], self.margin_low[failed]
        self.low[failed], self.margin_low[failed] = strength[~hit], _above(found.margin[~hit])
        self.low = np.minimum(self.low, self.high)


def _above(margin: Floats) -> Floats:
    return np.clip(margin, 1e-6, 1e6)


def _below(margin: Floats) -> Floats:
    return np.clip(margin, -1e6, -1e-6)


def _tried(attempt: Attempt, rows: Ints, strength: Floats) -> AttemptResult:
    """Convert any answer to `AttemptResult`, with no flip above the allowed strength."""
    answer = attempt(rows, strength)
    if isinstance(answer, AttemptResult):
        return AttemptResult(
            np.where(np.isinf(answer.flipped_at), np.inf, np.minimum(answer.flipped_at, strength)), answer.margin
        )
    found = np.asarray(answer)
    flipped = found if found.dtype == bool else np.isfinite(found)
    at = strength if found.dtype == bool else np.minimum(found.astype(np.float64), strength)
    return AttemptResult(np.where(flipped, at, np.inf), np.where(flipped, -1.0, 1.0))
