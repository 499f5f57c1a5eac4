"""Thresholds and their figures as a table and as plain records."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hitmiss.core.results import number
from hitmiss.engine.tuning import DEFAULT, Tuned
from hitmiss.protocols.tuning import Tuning
from hitmiss.report.tables import Cell, Table


def records(tuning: Tuning) -> list[dict[str, Any]]:
    """One mapping a group: both searches, and the figures on test where there are any."""
    rows = []
    for row in tuning.rows:
        facts = asdict(row)
        rows.append({**facts, "threshold": row.chosen.threshold, "drop": row.drop, "gain": row.gain})
    return rows


def table(tuning: Tuning) -> Table:
    """One row a group: the chosen threshold, validation against test, and 0.5 on both."""
    m, default = tuning.maximize, f"{DEFAULT:g}"
    other = "grid" if tuning.search == "exact" else "exact"
    header = [
        tuning.group,
        "n",
        "toxic",
        f"threshold ({tuning.search})",
        f"{m} validation",
        f"at {default}",
        f"{other} ({m})",
    ]
    judged = tuning.test is not None
    header += ["test n", f"{m} test", "drop", f"test at {default}", f"gain over {default}"] if judged else []
    rows = tuple(_row(row, other, judged) for row in tuning.rows)
    return Table(f"thresholds that maximise {m} on validation", tuple(header), rows)


def _row(row: Tuned, other: str, judged: bool) -> tuple[Cell, ...]:
    rival = row.choices[other]
    cells = [
        Cell(row.group),
        Cell(f"{row.n:,}"),
        Cell(f"{row.n_positive:,}"),
        Cell(f"{row.chosen.threshold:.6g}", strong=True),
        Cell(number(row.chosen.value)),
        Cell(number(row.at_default)),
        Cell(f"{rival.threshold:.4g} ({number(rival.value)})"),
    ]
    if judged:
        drop = f"{row.drop:+.4f}" if row.drop is not None else ""
        gain = f"{row.gain:+.4f}" if row.gain is not None else ""
        cells += [
            Cell(f"{row.test_n:,}"),
            Cell(number(row.test), _ends(row.test_low, row.test_high)),
            Cell(drop),
            Cell(number(row.test_at_default)),
            Cell(gain, _ends(row.gain_low, row.gain_high)),
        ]
    return tuple(cells)


def _ends(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{low:.4f}, {high:.4f}]"
