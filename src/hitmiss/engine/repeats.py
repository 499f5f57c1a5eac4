"""Summarise numbers over repeated runs: mean, sample standard deviation, minimum and maximum, per metric and slice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hitmiss.core.errors import UsageError
from hitmiss.core.finding import Remark
from hitmiss.core.results import Estimate, Results


def over_repeats(results: Results, column: str = "seed") -> Results:
    """Add rows `mean`, `sd`, `min` and `max` over the runs that differ only in one column.

    `sd` is the sample standard deviation (n − 1). Undefined numbers are left out; the note says how many runs were
    used.

    Parameters
    ----------
    results
        Results with several runs.
    column
        The run column in which the repetitions differ.

    Returns
    -------
    Results
        The given estimates, followed by the summary rows.

    Raises
    ------
    UsageError
        If the results have no such run column.

    >>> rows = tuple(Estimate("eer", v, run={"seed": s}) for s, v in (("1", 0.1), ("2", 0.2)))
    >>> [(e.average, round(e.value, 4)) for e in over_repeats(Results(rows)) if e.average]
    [('mean', 0.15), ('sd', 0.0707), ('min', 0.1), ('max', 0.2)]
    """
    cells: dict[tuple[object, ...], list[Estimate]] = {}
    for e in results:
        if column not in e.run:
            raise UsageError.of("no-run-column", column=column)
        if e.average in (None, "macro", "gap"):
            rest = {k: v for k, v in e.run.items() if k != column}
            key = (e.metric, tuple(sorted(rest.items())), tuple(e.slice.items()), e.average)
            cells.setdefault(key, []).append(e)
    return replace(
        results, estimates=results.estimates + tuple(row for own in cells.values() for row in _summary(own, column))
    )


def _summary(own: list[Estimate], column: str) -> list[Estimate]:
    values = np.array([e.value for e in own if e.value is not None])
    rest = {k: v for k, v in own[0].run.items() if k != column}
    kind = f" of {own[0].average}" if own[0].average else ""
    note = f"{len(values)} of {len(own)} runs" if len(values) < len(own) else f"{len(own)} runs"
    row = replace(own[0], run=rest, low=None, high=None, method=None, note=note, value=None)
    if not len(values):
        return [replace(row, average=f"mean{kind}", note=Remark.of("undefined/every-run"))]
    figures = {
        "mean": float(values.mean()),
        "sd": float(values.std(ddof=1)) if len(values) > 1 else None,
        "min": float(values.min()),
        "max": float(values.max()),
    }
    return [replace(row, average=f"{name}{kind}", value=v) for name, v in figures.items()]
