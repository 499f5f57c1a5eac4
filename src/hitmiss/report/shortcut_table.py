"""The shortcut table: what each shortcut alone reaches in each slice, as AUC."""

from __future__ import annotations

from hitmiss.core.results import Estimate, Results, number
from hitmiss.report.tables import Cell, Table, short_interval


def shortcut_table(results: Results, by: str) -> Table:
    """AUC of every shortcut (down) in every value of a slice column (across)."""
    own = [e for e in results if e.metric == "roc_auc" and e.average is None and set(e.slice) == {by}]
    at = {(e.run["shortcut"], e.slice[by]): e for e in own}
    down = list(dict.fromkeys(name for name, _ in at))
    across = sorted({value for _, value in at})
    rows = [(Cell(name), *(_cell(at.get((name, value))) for value in across)) for name in down]
    return Table(f"roc_auc ↑ of shortcuts by {by}", ("shortcut", *across), tuple(rows))


def _cell(e: Estimate | None) -> Cell:
    return Cell("") if e is None else Cell(number(e.value) if e.value is not None else "–", short_interval(e))
