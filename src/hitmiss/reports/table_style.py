"""How the numbers of a table are written: digits, intervals, per cent, marks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hitmiss.core.finding import has_code
from hitmiss.core.results import Estimate, number
from hitmiss.findings.wording import PER_CENT, PLACES, figure, interval, is_share, per_cent, places
from hitmiss.reports.table import ARROW, TableCell


def _no_mark(e: Estimate) -> str:
    del e
    return ""


@dataclass(frozen=True)
class TableStyle:
    """How numbers are written: with the digits that their intervals support (`exact`) or with four, which in per cent,
    with which marks; a single run by metric, in words; which numbers are highlighted; intervals as bars too.

    On a page a number is written as in its verdict wherever it stands: a share in per cent, with the digits of its own
    interval.
    """

    exact: bool = True
    intervals: bool = True
    percent: tuple[str, ...] = ()
    mark: Callable[[Estimate], str] = _no_mark
    by_metric: bool = False
    is_page: bool = False

    def scale(self, metric: str) -> float:
        """Return 100 for metrics in per cent, else 1."""
        if self.is_page:
            return 100.0 if is_share(metric) else 1.0
        return 100.0 if metric.split("(")[0] in self.percent or metric in self.percent else 1.0

    def unit(self, metric: str) -> str:
        """Return the unit of a metric, with the space before it."""
        return PER_CENT if self.scale(metric) != 1.0 else ""

    def digits(self, own: Sequence[Estimate]) -> int:
        """Return the decimal places of a column."""
        return places(own, self.scale(own[0].metric)) if self.exact and own else PLACES

    def value(self, e: Estimate | None, digits: int) -> str:
        """Format a number; empty if there is none."""
        if e is None:
            return ""
        return figure(e.value, self._own(e, digits), self.scale(e.metric)) if self.exact else number(e.value)

    def _own(self, e: Estimate, digits: int) -> int:
        """Return the places of one number: on a page those of its own interval, elsewhere those of its column."""
        return places([e], self.scale(e.metric)) if self.is_page else digits

    def ends(self, e: Estimate, digits: int) -> str:
        """Format the interval of a number; empty if it has none."""
        if not self.intervals or e.value is None:
            return ""
        return interval(e, self._own(e, digits), self.scale(e.metric)) if self.exact else short_interval(e)

    def cell(self, e: Estimate | None, digits: int = PLACES, average: str | None = None) -> TableCell:
        """Return the cell of a number; of the worst slice with where that is (`average`: which average its row is)."""
        if e is None or e.value is None:
            return TableCell("") if e is None else TableCell("–", about=e.note or "undefined")
        mark, few = self.mark(e), has_code(e.note, "few-of-class") and (self.is_page or not self.exact)
        where = " × ".join(e.slice.values()) if average == "worst" else ""
        below = (
            (where if self.is_page else f"({where})")
            if where and self.exact
            else f"{where} {self.ends(e, digits)}".strip()
        )
        strong = self.is_page or mark.startswith("*")
        about = ", ".join(filter(None, (self.ends(e, digits) if where else "", e.note)))
        return TableCell(self.value(e, digits) + "*" * few, below, strong, about, mark)

    def share(self, value: float, low: float, high: float) -> TableCell:
        """Return the cell of a share of trials that is no metric."""
        if not self.is_page:
            return TableCell(number(value), bracketed(low, high))
        return TableCell(per_cent(value), f"[{100 * low:.1f}, {100 * high:.1f}]")

    def cell_with_unit(self, e: Estimate) -> TableCell:
        """Return the cell of a number that stands among numbers of other metrics."""
        made = self.cell(e)
        return made if e.value is None else replace(made, text=made.text + self.unit(e.metric))


TEXT: Final = TableStyle(exact=False, by_metric=True)
"""How a terminal shows numbers."""
PAGE: Final = TableStyle(by_metric=True, is_page=True)
"""How a page shows numbers."""


def titled(e: Estimate) -> str:
    """Return a metric's name with an arrow for the better direction."""
    return f"{e.shown} {ARROW[e.best]}"


def short_interval(e: Estimate) -> str:
    """Format an interval without leading zeros, `[.0821, .0863]`, because tables have little room."""
    return "" if e.low is None or e.high is None else bracketed(e.low, e.high)


def bracketed(low: float | None, high: float | None) -> str:
    """Format the ends of an interval without leading zeros; empty if it has none.

    >>> bracketed(0.0821, -0.5), bracketed(None, 1.0), bracketed(float("nan"), 1.0)
    ('[.0821, -.5000]', '', '')
    """
    if low is None or high is None or math.isnan(low):
        return ""
    return f"[{_short(low)}, {_short(high)}]"


def _short(value: float) -> str:
    text = f"{value:.4f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text
