"""The one-minute card of an evaluation: what was tested, the headline, and what may be concluded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from hitmiss.conclude.verdict import Beside, conclude
from hitmiss.core.results import Estimate
from hitmiss.core.verdict import Verdict
from hitmiss.engine.comparison import Comparison
from hitmiss.engine.ranking import Ranking
from hitmiss.findings.wording import PER_CENT, Shown, explain, is_share, shown
from hitmiss.reports.evaluations import Evaluation
from hitmiss.reports.grids import RUN

TILES: Final = 5
MOST_RANKS: Final = 6
"""Number of runs that a card names one by one; the others are in the table below."""


@dataclass(frozen=True)
class Summary:
    """One evaluation in a card; `verdict` answers whether it is good, where it fails and whether to trust it."""

    title: str
    tested: str
    headlines: tuple[tuple[str, Shown], ...]
    tiles: tuple[Shown, ...]
    verdict: Verdict
    left_out: int = 0


def summarize(evaluation: Evaluation, compared: Comparison | Ranking | None = None) -> Summary:
    """Return the card of an evaluation; `compared` is the outcome of a paired test of its runs."""
    whole = evaluation.wholes
    primary = [e for e in whole if e.metric == evaluation.primary]
    deviations = {(e.metric, e.run.get(RUN)): e for e in evaluation.results if e.average == "sd" and not e.slice}
    heads = tuple(
        (e.run.get(RUN, ""), _with_spread(shown(e), e, deviations.get((e.metric, e.run.get(RUN)))))
        for e in sorted(primary, key=_rank)
    )
    heads = heads or tuple(_worst_slice(evaluation))
    others = [e for e in whole if e.metric != evaluation.primary] if len(primary) == 1 else []
    extras = tuple(s.extras for s in evaluation.sources if s.extras is not None)
    designs = [s.results.design for s in evaluation.sources]
    required = tuple(dict.fromkeys(text for design in designs if design is not None for text in design.require))
    verdict = conclude(evaluation.results, evaluation.primary, beside=Beside(compared, require=required, asides=extras))
    ranked, left_out = (heads[:MOST_RANKS], len(heads) - MOST_RANKS) if len(heads) > MOST_RANKS else (heads, 0)
    tiles = tuple(map(shown, others[:TILES]))
    return Summary(evaluation.title, _tested(evaluation), ranked, tiles, verdict, left_out)


def _worst_slice(evaluation: Evaluation) -> list[tuple[str, Shown]]:
    """Use the worst slice as the headline if nothing was measured over all trials, as in a drift table."""
    own = [e for e in evaluation.results if e.metric == evaluation.primary and e.slice and e.value is not None]
    if not own:
        return []
    worst = max(own, key=_rank)
    where = ", ".join(f"{k} {v}" for k, v in worst.slice.items())
    return [("", replace(shown(worst), title=f"{explain(worst.metric).title}, at worst: {where}"))]


def _with_spread(made: Shown, e: Estimate, deviation: Estimate | None) -> Shown:
    """Add the standard deviation to a mean over repetitions, and say that it is one."""
    if e.average != "mean":
        return made
    scale, unit = (100.0, PER_CENT) if is_share(e.metric) else (1.0, "")
    sd = deviation.value if deviation is not None else None
    spread = f"sd {scale * sd:.2g}{unit}" if sd is not None else ""
    ends = ", ".join(filter(None, (made.interval, spread)))
    return replace(made, interval=ends, gist=f"Mean over repeated runs. {made.gist}")


def _rank(e: Estimate) -> tuple[bool, float]:
    value = e.value if e.value is not None else 0.0
    return e.value is None, value if e.best == "low" else -value


def _tested(evaluation: Evaluation) -> str:
    first = next((e for e in evaluation.results if not e.slice and e.average is None), None)
    if first is None:
        return evaluation.members[0].name
    positive, negative = evaluation.classes
    counts = f"{first.n:,} trials ({first.n_positive:,} {positive}, {first.n - first.n_positive:,} {negative})"
    n = len(evaluation.members)
    return f"{n} runs on {counts}" if n > 1 else f"{evaluation.members[0].name} · {counts}"
