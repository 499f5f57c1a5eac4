"""Two runs slice by slice: both values on one axis, the distance between them, and whether a test shows it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from hitmiss.core.errors import UsageError
from hitmiss.core.metric_spec import parse
from hitmiss.core.registry import find_metric
from hitmiss.core.results import Estimate
from hitmiss.engine.comparison import A_BETTER, B_BETTER, Comparison, Difference
from hitmiss.engine.ranking import Ranking
from hitmiss.findings.wording import PLACES, explain
from hitmiss.reports.evaluations import Evaluation
from hitmiss.reports.grids import RUN, groupings
from hitmiss.reports.table_style import PAGE

MARGIN: Final = 0.05
UNTESTED: Final = "not tested"


@dataclass(frozen=True)
class Bell:
    """One slice: its name, both values as text and as places on a scale of 0..100, and the verdict."""

    name: str
    n: int
    texts: tuple[str, str]
    at: tuple[float, float]
    verdict: str
    better: int | None = None


@dataclass(frozen=True)
class Dumbbells:
    """A grouping: its title, the two runs, the slices with the largest difference first, and the ends of the scale."""

    title: str
    runs: tuple[str, str]
    rows: tuple[Bell, ...]
    ends: tuple[str, str]


def dumbbells(evaluation: Evaluation, compared: Comparison | Ranking | None) -> tuple[Dumbbells, ...]:
    """Return one table per grouping for two runs; nothing for one run or more than two."""
    if len(evaluation.members) != 2:
        return ()
    runs = evaluation.members[0].name, evaluation.members[1].name
    made = []
    for names in groupings(evaluation.results):
        cells: dict[tuple[str, ...], dict[str, Estimate]] = {}
        for e in evaluation.results:
            if tuple(e.slice) == names and e.metric == evaluation.primary and e.average is None and e.value is not None:
                cells.setdefault(tuple(e.slice.values()), {})[e.run.get(RUN, "")] = e
        both = {key: (own[runs[0]], own[runs[1]]) for key, own in cells.items() if set(runs) <= set(own)}
        if both:
            made.append(_table(names, runs, both, compared if isinstance(compared, Comparison) else None))
    return tuple(made)


def _table(
    names: tuple[str, ...],
    runs: tuple[str, str],
    both: dict[tuple[str, ...], tuple[Estimate, Estimate]],
    compared: Comparison | None,
) -> Dumbbells:
    every = [e.value for pair in both.values() for e in pair if e.value is not None]
    room = MARGIN * (max(every) - min(every)) or 0.01
    first = next(iter(both.values()))[0]
    least, most = _range_of(first.metric)
    low, high = max(min(every) - room, least), min(max(every) + room, most)
    tests = {tuple(d.slice.values()): d for d in compared or () if tuple(d.slice) == names and d.metric == first.metric}
    rows = []
    for key, (a, b) in both.items():
        assert a.value is not None and b.value is not None
        at = 100 * (a.value - low) / (high - low), 100 * (b.value - low) / (high - low)
        texts = PAGE.value(a, PLACES), PAGE.value(b, PLACES)
        verdict, better = _verdict(tests.get(key), runs)
        rows.append(Bell(" × ".join(key), a.n, texts, at, verdict, better))
    rows.sort(key=lambda bell: -abs(bell.at[1] - bell.at[0]))
    unit = ", %," if PAGE.unit(first.metric) else ""
    title = f"{explain(first.metric).title}{unit} of both runs by {' × '.join(names)}, the greatest distance first"
    return Dumbbells(title, runs, tuple(rows), (_end(low, first), _end(high, first)))


def _end(value: float, like: Estimate) -> str:
    """Format an end of the scale with as many places as a number on it."""
    return PAGE.value(replace(like, value=value), PLACES)


def _range_of(metric: str) -> tuple[float, float]:
    """Return the least and the greatest value of a metric; infinite where that is not known."""
    try:
        return find_metric(parse(metric).name).range
    except UsageError:
        return -math.inf, math.inf


def _verdict(d: Difference | None, runs: tuple[str, str]) -> tuple[str, int | None]:
    if d is None:
        return UNTESTED, None
    if d.verdict in (A_BETTER, B_BETTER):
        better = 0 if d.verdict == A_BETTER else 1
        return f"{runs[better]} better", better
    return d.verdict, None
