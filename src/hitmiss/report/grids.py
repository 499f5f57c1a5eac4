"""Results pivoted for people: a grid has rows of slices or runs and a column a metric; cells are the estimates themselves.

How a grid is written (HTML, LaTeX, Markdown, a sheet) is another file's business; how many digits a figure deserves is
settled here, from the width of its interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from hitmiss.report.tables import groupings, runs
from hitmiss.results import Estimate, Results

PLACES: Final = 4
"""Places of a figure that has no interval."""
MOST_PLACES: Final = 6
AVERAGES: Final = ("pooled", "macro", "within", "worst")
REPEATS: Final = ("mean", "sd", "min", "max")


@dataclass(frozen=True)
class Row:
    """A slice, a run or an average: its labels, its size, and one estimate (or none) a metric."""

    labels: tuple[str, ...]
    cells: tuple[Estimate | None, ...]
    average: str | None = None

    @property
    def n(self) -> int | None:
        """How many trials, where the row is one set of trials."""
        found = next((e for e in self.cells if e is not None), None)
        return found.n if found is not None and self.average in (None, "pooled") else None

    @property
    def n_positive(self) -> int | None:
        """How many of them are positive."""
        found = next((e for e in self.cells if e is not None), None)
        return found.n_positive if found is not None and self.average in (None, "pooled") else None


@dataclass(frozen=True)
class Grid:
    """Rows with the same label columns and the same metrics."""

    title: str
    names: tuple[str, ...]
    metrics: tuple[str, ...]
    rows: tuple[Row, ...]

    def column(self, i: int) -> list[Estimate]:
        """The estimates of one metric."""
        return [e for row in self.rows if (e := row.cells[i]) is not None]

    @property
    def best(self) -> tuple[str, ...]:
        """Which direction is better, a metric."""
        return tuple(self.column(i)[0].best if self.column(i) else "low" for i in range(len(self.metrics)))

    def best_value(self, i: int) -> float | None:
        """The best figure of a metric, averages apart; None where there is nothing to choose from."""
        values = [e.value for row in self.rows if row.average is None and (e := row.cells[i]) is not None]
        known = [value for value in values if value is not None]
        if len(known) < 2:
            return None
        return min(known) if self.best[i] == "low" else max(known)


def overall(results: Results) -> Grid:
    """All trials: a row a run."""
    own = [e for e in results if not e.slice and e.average is None]
    names = tuple(dict.fromkeys(k for e in own for k in e.run))
    rows = [
        _row(tuple(run.get(k, "") for k in names), [e for e in own if dict(e.run) == run], own) for run in runs(results)
    ]
    return Grid("all trials", names, _metrics(own), tuple(row for row in rows if any(row.cells)))


def by_slice(results: Results, names: tuple[str, ...], run: Mapping[str, str]) -> Grid:
    """One run by slice columns: a row a slice, then the averages."""
    own = [e for e in results if dict(e.run) == dict(run)]
    inside = [e for e in own if tuple(e.slice) == names]
    cells = [e for e in inside if e.average is None]
    keys = list(dict.fromkeys(tuple(e.slice.values()) for e in cells))
    rows = [_row(key, [e for e in cells if tuple(e.slice.values()) == key], cells) for key in keys]
    ends = {kind: [e for e in inside if e.average == kind] for kind in AVERAGES}
    ends["pooled"] = [e for e in own if not e.slice and e.average is None]
    called = {kind: kind for kind in AVERAGES}
    if not ends["pooled"]:  # of repeated trials the mean stands for the whole
        ends["pooled"], called["pooled"] = [e for e in own if not e.slice and e.average == "mean"], "mean of the trials"
    blank = ("",) * (len(names) - 1)
    rows += [_row((called[kind], *blank), found, cells, kind) for kind, found in ends.items() if found]
    title = f"by {' × '.join(names)}"
    return Grid(title, names, _metrics(cells), tuple(row for row in rows if any(row.cells)))


def repeats(results: Results) -> Grid | None:
    """Mean, standard deviation, least and greatest over repeated runs, where the results hold them."""
    own = [e for e in results if e.average in REPEATS]
    if not own:
        return None
    names = tuple(dict.fromkeys(k for e in own for k in (*e.run, *e.slice)))
    keys = list(dict.fromkeys((tuple({**e.run, **e.slice}.items()), e.average or "") for e in own))
    rows = []
    for cell, kind in keys:
        found = [e for e in own if tuple({**e.run, **e.slice}.items()) == cell and e.average == kind]
        rows.append(_row((*(dict(cell).get(k, "all") for k in names), kind), found, own, kind))
    return Grid("over repeated runs", (*names, "over runs"), _metrics(own), tuple(rows))


def gaps(results: Results) -> Grid | None:
    """Figures outside a domain less those inside it, where the results hold them."""
    own = [e for e in results if e.average == "gap"]
    if not own:
        return None
    keys = list(dict.fromkeys((tuple(e.run.values()), *e.slice.items()) for e in own))
    names = tuple(dict.fromkeys(k for e in own for k in e.run))
    rows = []
    for run, *cell in keys:
        found = [e for e in own if tuple(e.run.values()) == run and list(e.slice.items()) == cell]
        rows.append(_row((*run, ", ".join(f"{k}: {v}" for k, v in cell)), found, own, "gap"))
    return Grid("gap, out − in", (*names, "domain"), _metrics(own), tuple(rows))


def grids(results: Results) -> list[Grid]:
    """Every grid that the results hold: all trials, each grouping of each run, repeats, gaps."""
    found = [overall(results)]
    for names in groupings(results):
        for run in runs(results):
            grid = by_slice(results, names, run)
            named = f" ({', '.join(f'{k} {v}' for k, v in run.items())})" if run else ""
            found += [Grid(grid.title + named, grid.names, grid.metrics, grid.rows)] if grid.rows else []
    return [g for g in (*found, repeats(results), gaps(results)) if g is not None and g.rows]


def _metrics(own: Iterable[Estimate]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(e.metric for e in own))


def _row(labels: tuple[str, ...], own: Sequence[Estimate], of: Sequence[Estimate], average: str | None = None) -> Row:
    at = {e.metric: e for e in own}
    return Row(labels, tuple(at.get(metric) for metric in _metrics(of)), average)


def places(estimates: Iterable[Estimate], scale: float = 1.0) -> int:
    """How many decimal places figures deserve: two significant digits of the half width of their interval.

    The median decides for a column, so that its figures line up. Without intervals: four (two for percentages).

    >>> places([Estimate("eer", 0.07741, 0.0758, 0.0791)])
    4
    >>> places([Estimate("eer", 0.0774, 0.04, 0.12)]), places([Estimate("eer", 0.0774)])
    (3, 4)
    """
    halves = [scale * (e.high - e.low) / 2 for e in estimates if e.low is not None and e.high is not None]
    known = [half for half in halves if math.isfinite(half) and half > 0]
    if not known:
        return PLACES if scale == 1.0 else PLACES - 2
    return min(max(1 - math.floor(math.log10(median(known))), 0), MOST_PLACES)


def figure(value: float | None, digits: int, scale: float = 1.0) -> str:
    """A figure with so many places; `–` where it is undefined.

    >>> figure(0.07741, 4), figure(None, 4), figure(0.07741, 2, 100), figure(-0.00001, 2)
    ('0.0774', '–', '7.74', '0.00')
    """
    if value is None:
        return "–"
    if not math.isfinite(value):
        return "∞" if value > 0 else "-∞"
    text = f"{scale * value:.{digits}f}"
    return text.removeprefix("-") if text.startswith("-") and not text.strip("-0.") else text


def interval(e: Estimate, digits: int, scale: float = 1.0) -> str:
    """`[0.0758, 0.0791]`, or nothing."""
    if e.low is None or e.high is None:
        return ""
    return f"[{figure(e.low, digits, scale)}, {figure(e.high, digits, scale)}]"
