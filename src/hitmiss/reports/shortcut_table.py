"""The shortcut table: the AUC of each shortcut alone in each slice."""

from __future__ import annotations

from hitmiss.core.results import Results
from hitmiss.findings.wording import PLACES
from hitmiss.metrics.usual import AREA
from hitmiss.reports.table import Table, crossed
from hitmiss.reports.table_style import TEXT


def shortcut_table(results: Results, by: str) -> Table:
    """Return the AUC of every shortcut (rows) in every value of a slice column (columns)."""
    own = [e for e in results if e.metric == AREA and e.average is None and set(e.slice) == {by}]
    cells = [((e.run["shortcut"],), e.slice[by], TEXT.cell(e, PLACES)) for e in own]
    across = sorted({e.slice[by] for e in own})
    return crossed(f"roc_auc ↑ of shortcuts by {by}", ("shortcut",), cells, across)
