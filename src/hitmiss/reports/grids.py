"""Results pivoted for people: a grid has rows of slices or runs and one column per metric; its cells are estimates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hitmiss.core.results import Estimate, Results
from hitmiss.metrics.bias import AVERAGE, FINAL

RUN: Final = "run"
"""The run column that distinguishes runs of several files."""


def runs(results: Results) -> list[dict[str, str]]:
    """Return the runs in the results, in order; summaries over runs are not runs."""
    return [dict(r) for r in dict.fromkeys(tuple(e.run.items()) for e in results if e.average is None)]


def groupings(results: Results) -> list[tuple[str, ...]]:
    """Return the slice columns by which the results are grouped, in order."""
    return list(dict.fromkeys(tuple(e.slice) for e in results if e.slice and e.average is None))


AVERAGES: Final = ("pooled", "macro", "within", "worst", AVERAGE)
REPEATS: Final = ("mean", "sd", "min", "max")


@dataclass(frozen=True)
class Row:
    """A slice, a run or an average: its labels, its size, and at most one estimate per metric."""

    labels: tuple[str, ...]
    cells: tuple[Estimate | None, ...]
    average: str | None = None

    @property
    def n(self) -> int | None:
        """The number of trials, if the row is one set of trials."""
        found = next((e for e in self.cells if e is not None), None)
        return found.n if found is not None and self.average in (None, "pooled") else None

    @property
    def n_positive(self) -> int | None:
        """The number of positive trials."""
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
        """Return the estimates of one metric."""
        return [e for row in self.rows if (e := row.cells[i]) is not None]

    @property
    def titles(self) -> tuple[str, ...]:
        """Return the names of the metrics: those of the protocol (APCER for fpr), else their own."""
        return tuple(own[0].shown if (own := self.column(i)) else m for i, m in enumerate(self.metrics))

    @property
    def best(self) -> tuple[str, ...]:
        """Return the better direction of a metric."""
        return tuple(self.column(i)[0].best if self.column(i) else "low" for i in range(len(self.metrics)))


def overall(results: Results) -> Grid:
    """Return all trials: one row per run; the final number over identities is one about all texts."""
    own = [e for e in results if (not e.slice and e.average is None) or e.metric == FINAL]
    names = tuple(dict.fromkeys(k for e in own for k in e.run))
    rows = [
        _row(tuple(run.get(k, "") for k in names), [e for e in own if dict(e.run) == run], own) for run in runs(results)
    ]
    return Grid("all trials", names, _metrics(own), tuple(row for row in rows if any(row.cells)))


def by_slice(results: Results, names: tuple[str, ...], run: Mapping[str, str]) -> Grid:
    """Return one run by slice columns: one row per slice, then the averages."""
    own = [e for e in results if dict(e.run) == dict(run)]
    inside = [e for e in own if tuple(e.slice) == names]
    cells = [e for e in inside if e.average is None]
    keys = list(dict.fromkeys(tuple(e.slice.values()) for e in cells))
    rows = [_row(key, [e for e in cells if tuple(e.slice.values()) == key], cells) for key in keys]
    ends = {kind: [e for e in inside if e.average == kind] for kind in AVERAGES}
    ends["pooled"] = [e for e in own if not e.slice and e.average is None]
    called = {kind: kind for kind in AVERAGES}
    if not ends["pooled"]:  # for repeated trials the mean represents the whole
        ends["pooled"], called["pooled"] = [e for e in own if not e.slice and e.average == "mean"], "mean of the trials"
    blank = ("",) * (len(names) - 1)
    rows += [_row((called[kind], *blank), found, cells, kind) for kind, found in ends.items() if found]
    title = f"by {' × '.join(names)}"
    return Grid(title, names, _metrics(cells), tuple(row for row in rows if any(row.cells)))


def _metrics(own: Iterable[Estimate]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(e.metric for e in own))


def _row(labels: tuple[str, ...], own: Sequence[Estimate], of: Sequence[Estimate], average: str | None = None) -> Row:
    at = {e.metric: e for e in own}
    return Row(labels, tuple(at.get(metric) for metric in _metrics(of)), average)


def is_campaign(results: Results) -> bool:
    """Say whether the runs of some results are attacks at strengths."""
    found = runs(results)
    return bool(found) and all({"attack", "strength"} <= set(run) for run in found)
