"""How the numbers of comparisons and rankings are written: with four places in a terminal, as in the verdict on a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hitmiss.core.results import Estimate, Results
from hitmiss.engine.comparison import Difference
from hitmiss.findings.wording import PLACES
from hitmiss.reports.evaluations import RUN
from hitmiss.reports.table_style import PAGE, bracketed


@dataclass(frozen=True)
class ComparedNumbers:
    """Formats values and differences of one metric; `known` are the estimates that stand elsewhere on the same page."""

    is_page: bool = False
    known: Results | None = None

    def value(self, value: float | None, metric: str, run: str = "", slice: Mapping[str, str] | None = None) -> str:
        """Format the value of one run, in a slice if one is given."""
        if value is None:
            return "–"
        if not self.is_page:
            return f"{value:.4f}"
        return PAGE.value(self._estimate(value, metric, run, slice or {}), PLACES) + PAGE.unit(metric)

    def ends(self, value: float | None, metric: str, low: float | None, high: float | None) -> str:
        """Format the interval of a value."""
        return PAGE.ends(Estimate(metric, value, low, high), PLACES) if self.is_page else bracketed(low, high)

    def difference(self, d: Difference, delta: float | None = None) -> tuple[str, str]:
        """Format a difference and its interval, each with its sign; `delta`: the same seen from the other side."""
        found = d.delta if delta is None else delta
        if found is None:
            return "–", ""
        if not self.is_page:
            ends = f"[{d.low:+.4f}, {d.high:+.4f}]" if d.low is not None and d.high is not None else ""
            return f"{found:+.4f}", ends
        own = Estimate(d.metric, found, d.low, d.high)
        sign = "+" if found > 0 else ""
        return f"{sign}{PAGE.value(own, PLACES)}{PAGE.unit(d.metric)}", PAGE.ends(own, PLACES) if delta is None else ""

    def detectable(self, d: Difference) -> str:
        """Format the least difference that the pairs would show."""
        if d.mdd is None:
            return "–"
        if not self.is_page:
            return f"±{d.mdd:.4f}"
        return f"±{PAGE.value(Estimate(d.metric, d.mdd, d.low, d.high), PLACES)}{PAGE.unit(d.metric)}"

    def _estimate(self, value: float, metric: str, run: str, slice: Mapping[str, str]) -> Estimate:
        """Return the estimate with this value on the page, whose interval gives its digits; else the value alone."""
        own = (e for e in self.known or () if e.metric == metric and dict(e.slice) == dict(slice) and e.value == value)
        return next((e for e in own if e.run.get(RUN, run) == run), Estimate(metric, value))


TERMINAL: Final = ComparedNumbers()
