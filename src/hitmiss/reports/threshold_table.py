"""Thresholds and their numbers as a table and as plain records."""

from __future__ import annotations

from dataclasses import asdict

from hitmiss.core.registry import resolve
from hitmiss.core.results import number
from hitmiss.derive.thresholds import SEARCHES
from hitmiss.engine.tuning import DEFAULT, Known, Tuned
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
    m, default, by = tuning.by.metric, f"{DEFAULT:g}", tuning.by
    other = "grid" if by.search == "exact" else "exact"
    header = [
        tuning.group,
        "n",
        "toxic",
        f"threshold ({by.kind})",
        f"{m} validation",
        f"at {default}",
        f"{other} ({m})",
    ]
    judged = tuning.test is not None
    header += ["test n", f"{m} test", "drop", f"test at {default}", f"gain over {default}"] if judged else []
    rows = tuple(_row(row, other, judged) for row in tuning.rows)
    is_low = resolve(m)[1].best == "low"
    title = f"thresholds that {'minimise' if is_low else 'maximise'} {m} on validation"
    if by.kind in SEARCHES:
        return Table(title, tuple(header), rows)
    title = f"{title}, with {by.keep}" if by.keep else f"thresholds that keep {by.guarantee or 'the capacity'}"
    rows = tuple((*row[:6], *row[7:]) for row in rows)  # there is one search
    return Table(title, (*header[:6], *header[7:]), rows)


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


def load_table(tuning: Tuning) -> list[Table]:
    """Return what each threshold means in use, if that was said: the queue, precision and recall, with intervals."""
    if not any(row.load for row in tuning.rows):
        return []
    rows = []
    for row in tuning.rows:
        load, use = row.load, row.use
        assert load is not None and use is not None
        counts = [f"{use.volume:,.0f}" if use.volume else "", f"{use.capacity:,.0f}" if use.capacity else ""]
        queue = _whole(load.queue) if load.queue else ("", "")
        shares = [
            TableCell(number(known.value), bracketed(known.low, known.high)) for known in (load.precision, load.recall)
        ]
        share = f"{use.prevalence:.4g}{'' if use.is_said else ' (validation)'}"
        rows.append((TableCell(row.group), TableCell(share), *map(TableCell, counts), TableCell(*queue), *shares))
    header = (tuning.group, "prevalence", "items", "capacity", "expected queue", "precision", "recall")
    judged = all(row.load and row.load.is_judged for row in tuning.rows)
    where = "from test" if judged else "from the validation data that chose the threshold: optimistic"
    return [Table(f"in use ({where})", header, tuple(rows)).trimmed()]


def _whole(known: Known) -> tuple[str, str]:
    ends = "" if known.low is None or known.high is None else f"[{known.low:,.0f}, {known.high:,.0f}]"
    return "" if known.value is None else f"{known.value:,.0f}", ends
