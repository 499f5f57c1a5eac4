"""Audits and their plans as tables and plain records."""

from __future__ import annotations

from collections.abc import Sequence

from hitmiss.core.results import number
from hitmiss.evaluation.auditing import FLAGGED, Audited, Ends, PlannedStratum
from hitmiss.reports.table import Table, TableCell
from hitmiss.reports.table_style import bracketed

ALL = "all"
NUMBERS = ("precision", "recall", "prevalence")


def records(rows: Sequence[Audited] | Sequence[PlannedStratum]) -> list[dict[str, object]]:
    """Return one plain mapping per group or stratum."""
    names = list(dict.fromkeys(k for row in rows if isinstance(row, Audited) for k in row.group))
    return [_plan(row) if isinstance(row, PlannedStratum) else _audited(row, names) for row in rows]


def _plan(row: PlannedStratum) -> dict[str, object]:
    own = row.stratum
    return {**own.cells, FLAGGED: own.flagged, "n": own.n, "labels": row.labels, "rate": row.rate}


def _audited(row: Audited, names: Sequence[str]) -> dict[str, object]:
    made: dict[str, object] = {name: row.group.get(name, ALL) for name in names}
    made |= {"n": row.n, FLAGGED: row.flagged, "labelled": row.labelled}
    for name in NUMBERS:
        found: Ends | None = getattr(row, name)
        for end, value in zip(("", "_low", "_high"), found or (None,) * 3, strict=True):
            made[f"{name}{end}"] = value
    return made


def audit_table(rows: Sequence[Audited], level: float) -> Table:
    """Return one row per group: items, labels, precision, recall and prevalence."""
    names = list(dict.fromkeys(k for row in rows for k in row.group))
    made = []
    for row in rows:
        cells = [TableCell(row.group.get(name, ALL)) for name in names]
        cells += [TableCell(f"{n:,}") for n in (row.n, row.flagged, row.labelled)]
        cells += [_cell(getattr(row, name)) for name in NUMBERS]
        made.append(tuple(cells))
    title = f"audit of decisions by a stratified sample, {level:.0%} intervals"
    return Table(title, (*names, "items", FLAGGED, "labelled", *NUMBERS), tuple(made))


def plan_table(plan: Sequence[PlannedStratum]) -> Table:
    """Return one row per stratum: how many items it has and how many to label."""
    names = list(plan[0].stratum.cells) if plan else []
    rows = tuple(
        (
            *(TableCell(row.stratum.cells[name]) for name in names),
            TableCell("yes" if row.stratum.flagged else "no"),
            TableCell(f"{row.stratum.n:,}"),
            TableCell(f"{row.labels:,}", strong=True),
            TableCell(f"{row.rate:.3g}"),
        )
        for row in plan
    )
    total = sum(row.labels for row in plan)
    return Table(f"labels to buy: {total:,}", (*names, FLAGGED, "items", "labels", "sampling rate"), rows)


def _cell(found: Ends | None) -> TableCell:
    return TableCell("undefined") if found is None else TableCell(number(found[0]), bracketed(found[1], found[2]))
