"""The drift table: one row per condition, FAR and FRR at the fixed threshold, their drift, and the score shift."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hitmiss.core.finding import has_code
from hitmiss.core.registry import find_metric
from hitmiss.core.results import Estimate, Results
from hitmiss.reports.table import Table, TableCell, crossed
from hitmiss.reports.table_style import short_interval
from hitmiss.robustness.manipulation import CHANGED

COLUMNS: Final = {
    "far": "FAR ↓",
    "far_drift": "drift",
    "frr": "FRR ↓",
    "frr_drift": "drift",
    "shift_fake": "fake shift",
    "shift_real": "real shift",
    "eer": "EER ↓",
}


def drift_table(results: Results) -> Table:
    """Return the results of `manipulation.drift` as a table; the clean row comes first."""
    by = next(iter(results.estimates[0].slice))
    cells = [((e.slice[by],), e.metric, _cell(e)) for e in results]
    table = crossed(f"drift by {by}, at the threshold of the first row", (by,), cells, tuple(COLUMNS))
    return replace(table, header=(by, *COLUMNS.values()))


def _cell(e: Estimate) -> TableCell:
    if e.value is None:
        return TableCell("–")
    text = f"{e.value:+.4f}" if find_metric(e.metric).range[0] < 0 else f"{e.value:.4f}"
    return TableCell(text + ("†" if has_code(e.note, CHANGED.code) else ""), short_interval(e))
