"""The scale and direction of scores: how those of a file became those inside, and what a threshold means on each.

Inside, a higher score always means the positive class. In a file it may mean the other one (`--higher`); the scores are
then reversed when they are read. A threshold that a user gives or sees is always one of the file. The class that higher
scores mean is decided where `score >= threshold`: in a reversed file, that is the negative class.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from hitmiss.core.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from hitmiss.core.tally import Tally

    Scores = TypeVar("Scores", float, np.ndarray, pl.Series, pl.Expr)
    Limit = TypeVar("Limit", float, pl.Series)

ROUNDING: Final = 2.0**-53
"""The most by which 1 - p and back again differs from p."""
MOST_DECIMALS: Final = 16


@dataclass(frozen=True)
class ScoreScale:
    """How the scores of a file were changed so that a higher one means the positive class.

    Parameters
    ----------
    is_reversed
        Whether a higher score in the file means the negative class.
    is_probability
        Whether the scores are probabilities, which are reversed as 1 - p; others change their sign.

    >>> scale = ScoreScale(is_reversed=True, is_probability=True)
    >>> scale.turned(0.25), bool(scale.accepts(0.75, 0.5)), bool(scale.accepts(0.5, 0.5))
    (0.75, True, False)
    >>> scale.threshold_text(0.5, "real", "fake")
    'score >= 0.5 means fake, below it real'
    """

    is_reversed: bool = False
    is_probability: bool = False

    def turned(self, score: Scores) -> Scores:
        """Return scores of the file as those inside, or those inside as those of the file."""
        if not self.is_reversed:
            return score
        return 1 - score if self.is_probability else -score

    def accepts(self, score: Scores, threshold: Limit) -> Scores:
        """Return which scores inside are decided positive at a threshold of the file, or at one for each of them."""
        if not self.is_reversed:
            return score >= threshold  # type: ignore[return-value]
        return score > self._limit(threshold)  # type: ignore[return-value]

    def _limit(self, threshold: Limit) -> Limit:
        """Return a threshold of a reversed file as a score inside, above which scores are decided positive."""
        limit = self.turned(threshold)
        if isinstance(threshold, float) and self.is_probability and threshold > 0.0 and limit == 1.0:
            raise UsageError.of("threshold-too-small", threshold=threshold)
        return limit

    def to_inside(self, threshold: float) -> float:
        """Return the threshold t of the scores inside for which `score >= t` decides as a threshold of the file does.

        >>> ScoreScale().to_inside(0.5), ScoreScale(is_reversed=True).to_inside(0.5)
        (0.5, -0.49999999999999994)
        """
        return math.nextafter(self._limit(threshold), math.inf) if self.is_reversed else threshold

    def threshold_of(self, tally: Tally, point: int) -> float:
        """Return the threshold of the file that accepts what a point of the tally accepts: usable on the file as it is.

        It is the lowest score of the file that gets the class that higher scores mean; +inf if none does. Of 1 - p the
        last digit of p is not known: then it is a short number between this score and the next lower one.
        """
        if not self.is_reversed:
            return tally.threshold_of(point)
        if point == 0:  # a probability of 1 is not below 1
            return 1.0 if self.is_probability and tally.score[0] > 0.0 else math.inf
        least = self.turned(float(tally.score[point - 1]))
        if not self.is_probability:
            return least
        below = self.turned(float(tally.score[point])) if point < len(tally.score) else -math.inf
        return _short_between(below + ROUNDING, least - ROUNDING, least)

    def threshold_text(self, threshold: float, positive: str, negative: str) -> str:
        """Say what a threshold of the file means."""
        above, below = (negative, positive) if self.is_reversed else (positive, negative)
        return f"score >= {threshold:.6g} means {above}, below it {below}"

    def thresholds_text(self, low: float, high: float, positive: str, negative: str) -> str:
        """Say what two thresholds of the file mean, with what lies between left to people."""
        above, below = (negative, positive) if self.is_reversed else (positive, negative)
        return f"score >= {high:.6g} means {above}, below {low:.6g} {below}, between them uncertain"


def _short_between(low: float, high: float, otherwise: float) -> float:
    """Return a number above `low`, up to `high`, with as few decimals as possible; if there is none, the other one.

    >>> _short_between(0.2871, 0.3, 0.3), _short_between(0.3, 0.3, 0.5)
    (0.3, 0.5)
    """
    for decimals in range(1, MOST_DECIMALS):
        found = math.floor(high * 10.0**decimals) / 10.0**decimals
        if low < found <= high:
            return found
    return otherwise
