"""Gaps and spreads of two runs beside each other: both numbers, and their difference with an interval from both intervals.

That interval is right for independent runs, and wider than necessary for runs on the same trials, which vary together.
"""

from __future__ import annotations

from dataclasses import replace

from hitmiss.core.design import INDEPENDENT, Design
from hitmiss.core.finding import Remark
from hitmiss.core.results import Estimate
from hitmiss.core.sampling import SamplingPlan
from hitmiss.core.trials import Trials
from hitmiss.engine.comparison import NOT_TESTED, UNDEFINED, Difference
from hitmiss.engine.interval import both_intervals
from hitmiss.engine.measure import measure_design

GAPS = ("gap", "spread", "ratio")


def compared_gaps(a: Trials, b: Trials, design: Design, plan: SamplingPlan) -> list[Difference]:
    """Return one row per gap and metric of a design, for runs that were paired."""
    if not design.gaps:
        return []
    asked = replace(design, by=(), matrix=(), contest=None, require=(), unit=plan.unit or INDEPENDENT)
    sides = [[e for e in measure_design(run, asked) if e.average in GAPS] for run in (a, b)]
    return [_difference(one, other) for one, other in zip(*sides, strict=True)]


def _difference(a: Estimate, b: Estimate) -> Difference:
    row = Difference(a.metric, a.value, b.value, None, n_pairs=a.n, n_positive=a.n_positive, best=a.best)
    row = replace(row, slice={**a.run, **a.slice}, average=a.average, note=a.note if a.value is None else b.note)
    if a.value is None or b.value is None:
        return replace(row, verdict=UNDEFINED)
    found = both_intervals((a.value, a.low, a.high), (b.value, b.low, b.high))
    row = replace(row, delta=b.value - a.value, low=found.low, high=found.high, verdict=NOT_TESTED)
    return replace(row, note=Remark.of("from-both-intervals")) if found.low is not None else row
