"""How the numbers of comparisons and rankings are written: with four places in a terminal, as in the verdict on a page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from hitmiss.core.results import Estimate, Results
from hitmiss.engine.comparison import Difference
from hitmiss.findings.wording import PLACES
from hitmiss.reports.grids import RUN
from hitmiss.reports.table_style import PAGE, bracketed


@dataclass(frozen=True)
class ComparedNumbers:
    """Formats values and differences of one metric; `known` are the estimates that stand elsewhere on the same page."""

    is_page: bool = False
    known: Results | None = None

    def value(self, e: Estimate, run: str = "", like: Difference | None = None) -> str:
        """Format the value of one run, in the slice of the estimate; `like`: the difference that gives it its digits."""
        if e.value is None:
            return "–"
        if not self.is_page:
            return f"{e.value:.4f}"
        found = e if e.low is not None else self._known(e, run)
        if found.low is None and like is not None:
            found = replace(found, low=like.low, high=like.high)
        return PAGE.value(found, PLACES) + PAGE.unit(e.metric)

    def ends(self, e: Estimate) -> str:
        """Format the interval of a value."""
        return PAGE.ends(e, PLACES) if self.is_page else bracketed(e.low, e.high)

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

    def _known(self, e: Estimate, run: str) -> Estimate:
        """Return the estimate with this value on the page, whose interval gives its digits; else the one given."""
        own = (k for k in self.known or () if k.metric == e.metric and dict(k.slice) == dict(e.slice))
        return next((k for k in own if k.value == e.value and k.run.get(RUN, run) == run), e)


TERMINAL: Final = ComparedNumbers()
