"""Numbers of a board that are made of other numbers: averages over data sets, and the worst data set."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from hitmiss.core.kinds import Json
from hitmiss.core.metric import Best
from hitmiss.core.results import Estimate

__all__ = ["BoardNumber", "average", "worst"]


@dataclass(frozen=True)
class BoardNumber:
    """A number with its interval; without a value, `note` says why."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    n_positive: int = 0
    note: str = ""
    dataset: str = ""
    """The data set that a worst number belongs to."""

    @classmethod
    def of(cls, e: Estimate) -> BoardNumber:
        """Return the number of an estimate."""
        return cls(e.value, e.low, e.high, e.n, e.n_positive, e.note or "")

    def to_dict(self) -> dict[str, Json]:
        """Return the JSON form."""
        found: dict[str, Json] = {"value": self.value, "low": self.low, "high": self.high, "n": self.n}
        found["n_positive"] = self.n_positive
        return {**found, **{k: v for k, v in (("note", self.note), ("dataset", self.dataset)) if v}}


def average(numbers: Sequence[BoardNumber], weights: Sequence[float]) -> BoardNumber:
    """Return the weighted mean of numbers of independent data sets, with an interval made of theirs.

    The squared distances from each number to its own ends are added up with the squared weights (Zou and Donner, 2008),
    so the interval keeps the shape of those that it is made of. One number that is undefined leaves no average.

    >>> found = average([BoardNumber(0.1, 0.07, 0.14), BoardNumber(0.2, 0.16, 0.23)], [1, 1])
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (0.15, 0.125, 0.175)
    """
    total = math.fsum(weights)
    shares = [w / total for w in weights]
    n, n_positive = sum(b.n for b in numbers), sum(b.n_positive for b in numbers)
    values = [b.value for b in numbers]
    if any(v is None for v in values):
        return BoardNumber(None, n=n, n_positive=n_positive, note="a data set has no number")
    value = math.fsum(w * v for w, v in zip(shares, values, strict=True) if v is not None)
    below, above = 0.0, 0.0
    for w, b in zip(shares, numbers, strict=True):
        if b.low is None or b.high is None or b.value is None:
            return BoardNumber(value, n=n, n_positive=n_positive, note="a data set has no interval")
        below += (w * (b.value - b.low)) ** 2
        above += (w * (b.high - b.value)) ** 2
    return BoardNumber(value, value - math.sqrt(below), value + math.sqrt(above), n, n_positive)


def worst(numbers: Mapping[str, BoardNumber], best: Best, level: float) -> BoardNumber:
    """Return the worst of the numbers of several data sets, with an interval that allows for the choice.

    Every interval is widened until all hold together (Bonferroni); the worst true number then lies between the worst
    of their lower ends and the worst of their upper ends.

    >>> found = worst({"a": BoardNumber(0.1, 0.08, 0.12), "b": BoardNumber(0.2, 0.15, 0.25)}, "low", 0.95)
    >>> found.dataset, found.value, found.low < 0.15, found.high > 0.25
    ('b', 0.2, True, True)
    """
    known = {name: b for name, b in numbers.items() if b.value is not None}
    if not known:
        return BoardNumber(None, note="no data set has a number")
    choose = max if best == "low" else min
    name = choose(known, key=lambda one: known[one].value or 0.0)
    chosen = known[name]
    if any(b.low is None or b.high is None for b in known.values()):
        return BoardNumber(chosen.value, n=chosen.n, n_positive=chosen.n_positive, dataset=name)
    alone, together = (NormalDist().inv_cdf(0.5 + own / 2) for own in (level, 1 - (1 - level) / len(known)))
    factor = together / alone
    lows = [b.value - factor * (b.value - b.low) for b in known.values() if b.value is not None and b.low is not None]
    highs = [
        b.value + factor * (b.high - b.value) for b in known.values() if b.value is not None and b.high is not None
    ]
    return BoardNumber(chosen.value, choose(lows), choose(highs), chosen.n, chosen.n_positive, dataset=name)
