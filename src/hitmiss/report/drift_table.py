"""The drift table: a row a condition, FAR and FRR at the frozen threshold, their drift, and how scores moved."""

from __future__ import annotations

from typing import Final

from hitmiss.core.results import Estimate, Results
from hitmiss.report.tables import Cell, Table, short_interval
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
SIGNED: Final = ("far_drift", "frr_drift", "shift_fake", "shift_real")


def drift_table(results: Results) -> Table:
    """The results of `manipulation.drift` as a table; the clean row comes first."""
    by = next(iter(results.estimates[0].slice))
    values = list(dict.fromkeys(e.slice[by] for e in results))
    at = {(e.slice[by], e.metric): e for e in results}
    rows = [(Cell(v), *(_cell(at.get((v, metric))) for metric in COLUMNS)) for v in values]
    return Table(f"drift by {by}, at the threshold of the first row", (by, *COLUMNS.values()), tuple(rows))


def _cell(e: Estimate | None) -> Cell:
    if e is None:
        return Cell("")
    if e.value is None:
        return Cell("–")
    text = f"{e.value:+.4f}" if e.metric in SIGNED else f"{e.value:.4f}"
    return Cell(text + ("†" if e.note == CHANGED else ""), short_interval(e))
