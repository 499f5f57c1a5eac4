"""Thresholds and their numbers as a table and as plain records."""

from __future__ import annotations

from dataclasses import asdict

from hitmiss.core.results import number
from hitmiss.engine.tuning import DEFAULT, Tuned
from hitmiss.protocols.tuning import Tuning
from hitmiss.reports.table import Table, TableCell
from hitmiss.reports.table_style import bracketed


def records(tuning: Tuning) -> list[dict[str, object]]:
    """Return one mapping per group: both searches, and the numbers on test data if there are any."""
    rows = []
    for row in tuning.rows:
        facts = asdict(row)
        rows.append({**facts, "threshold": row.chosen.threshold, "drop": row.drop, "gain": row.gain})
    return rows


def table(tuning: Tuning) -> Table:
    """Return one row per group: the chosen threshold, validation against test, and 0.5 on both."""
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
    title = f"thresholds that maximise {m} on validation"
    if tuning.guarantee is None:
        return Table(title, tuple(header), rows)
    rows = tuple((*row[:6], *row[7:]) for row in rows)  # there is one search
    return Table(f"thresholds that keep {tuning.guarantee}", (*header[:6], *header[7:]), rows)


def _row(row: Tuned, other: str, judged: bool) -> tuple[TableCell, ...]:
    rival = row.choices[other]
    cells = [
        TableCell(row.group),
        TableCell(f"{row.n:,}"),
        TableCell(f"{row.n_positive:,}"),
        TableCell(f"{row.chosen.threshold:.6g}", strong=True),
        TableCell(number(row.chosen.value)),
        TableCell(number(row.at_default)),
        TableCell(f"{rival.threshold:.4g} ({number(rival.value)})"),
    ]
    if judged:
        drop = f"{row.drop:+.4f}" if row.drop is not None else ""
        gain = f"{row.gain:+.4f}" if row.gain is not None else ""
        cells += [
            TableCell(f"{row.test_n:,}"),
            TableCell(number(row.test), bracketed(row.test_low, row.test_high)),
            TableCell(drop),
            TableCell(number(row.test_at_default)),
            TableCell(gain, bracketed(row.gain_low, row.gain_high)),
        ]
    return tuple(cells)
