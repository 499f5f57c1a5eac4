"""How much worse a figure is than the baseline's, and how sure that is: what a regression gate decides on.

Where both runs are at hand their answers are paired, and the interval is that of `compare`. From two tables of results it is
put together from the two intervals (MOVER, Zou & Donner 2008), as if the runs had nothing in common; on the same trials
they mostly have, so it is wider than need be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from hitmiss.comparing.differences import Comparison, Difference
from hitmiss.errors import UnknownName
from hitmiss.results import Estimate

POINT, BOUND, SHOWN = "point", "bound", "shown"
DECIDE: Final = (POINT, BOUND, SHOWN)
"""`point`: the figures themselves. `bound`: the worst that the interval leaves possible, so what is not ruled out fails.
`shown`: the least that it leaves possible, so only what is shown fails."""
NEARLY: Final = 1e-12
"""A change this near to what is allowed is allowed."""


@dataclass(frozen=True)
class Change:
    """Above 0 is worse. `low` and `high` are None where there is no interval."""

    worse: float
    low: float | None = None
    high: float | None = None
    how: str = ""

    def passes(self, allowed: float, decide: str) -> bool:
        """Whether it is no worse than allowed; what cannot be decided does not pass.

        >>> small = Change(0.01, -0.02, 0.04)
        >>> [small.passes(0.015, d) for d in DECIDE]
        [True, False, True]
        """
        if decide not in DECIDE:
            raise UnknownName("way to decide on a regression", decide, DECIDE)
        value = {POINT: self.worse, BOUND: self.high, SHOWN: self.low}[decide]
        return value is not None and (value <= allowed or math.isclose(value, allowed, rel_tol=NEARLY, abs_tol=NEARLY))

    def told(self, allowed: float, decide: str) -> str:
        """The change in words, with what decided."""
        words = f"worse by {self.worse:.6g}" if self.worse > 0 else f"better by {-self.worse:.6g}"
        words = "unchanged" if self.worse == 0 else words
        if self.high is None or self.low is None:
            lacking = "there is no interval to decide by; score with --bootstrap"
            return words if decide == POINT else f"{words}, and {lacking}"
        words += f", interval of worse {self.low:.6g} to {self.high:.6g} ({self.how})"
        open_ = decide != BOUND and self.passes(allowed, decide) and not self.passes(allowed, BOUND)
        return f"{words}; more than {allowed:g} is not ruled out" if open_ else words


def change(e: Estimate, base: Estimate, paired: Comparison | None = None) -> Change:
    """The change from the baseline's figure to this one; both must be defined."""
    assert e.value is not None and base.value is not None
    sign = 1.0 if e.best == "low" else -1.0
    row = _row(e, paired)
    if row is not None and row.low is not None and row.high is not None:
        return _turned(e.value - base.value, row.low, row.high, sign, "paired")
    if None in (e.low, e.high, base.low, base.high):
        return Change(sign * (e.value - base.value))
    assert e.low is not None and e.high is not None and base.low is not None and base.high is not None
    delta = e.value - base.value
    low = delta - math.hypot(e.value - e.low, base.high - base.value)
    high = delta + math.hypot(e.high - e.value, base.value - base.low)
    return _turned(delta, low, high, sign, "from both intervals")


def _turned(delta: float, low: float, high: float, sign: float, how: str) -> Change:
    ends = sorted((sign * low, sign * high))
    return Change(sign * delta, ends[0], ends[1], how)


def _row(e: Estimate, paired: Comparison | None) -> Difference | None:
    """The row of a comparison for the same metric, slice and average."""
    cell = {**e.run, **e.slice}
    same = [d for d in paired or () if d.metric == e.metric and d.average == e.average and dict(d.slice) == cell]
    return same[0] if len(same) == 1 else None
