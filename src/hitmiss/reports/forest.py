"""A forest plot: the rows of a comparison or a ranking as points with their intervals, one below the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hitmiss.core.errors import DataError
from hitmiss.engine.comparison import Comparison, Difference
from hitmiss.engine.ranking import RankedRun, Ranking
from hitmiss.reports.matplots import COLUMN, axes_for, label_of
from hitmiss.reports.notebook import Drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def forest(found: Comparison | Ranking, ax: Axes | None = None) -> Axes | Drawn:
    """Draw every defined difference of a comparison, or every run's number of a ranking, with its interval.

    Parameters
    ----------
    found
        A comparison or a ranking.
    ax
        The axes to draw into; None makes new ones, which a notebook shows.
    """
    rows = [row for row in found if _middle(row) is not None]
    if not rows:
        raise DataError.of("nothing-to-draw")
    axes = axes_for(ax, (COLUMN[0], 0.6 + 0.22 * len(rows)))
    for place, row in enumerate(rows):
        if row.low is not None and row.high is not None:
            axes.plot([row.low, row.high], [place, place], color="0.45", linewidth=1.2)
        axes.plot([_middle(row) or 0.0], [place], "o", color="C0", markersize=4)
    axes.set_yticks(range(len(rows)), [label_of(_name(row)) for row in rows])
    axes.invert_yaxis()
    if isinstance(found, Comparison):
        axes.axvline(0.0, color="0.7", linewidth=0.8, zorder=0)
        axes.set_xlabel(label_of(f"{found.names[1]} − {found.names[0]}"))
    return axes if ax is not None else Drawn(axes)


def _middle(row: Difference | RankedRun) -> float | None:
    return row.delta if isinstance(row, Difference) else row.value


def _name(row: Difference | RankedRun) -> str:
    where = ", ".join(f"{k}={v}" for k, v in row.slice.items())
    run = row.run if isinstance(row, RankedRun) else ""
    return " ".join(filter(None, (row.average, row.metric, f"[{where}]" if where else "", run)))
