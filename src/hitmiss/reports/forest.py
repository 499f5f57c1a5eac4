"""A forest plot: the rows of a comparison or a ranking as points with their intervals, one below the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hitmiss.core.errors import DataError
from hitmiss.core.results import Estimate
from hitmiss.engine.comparison import Comparison, Difference
from hitmiss.engine.ranking import RankedRun, Ranking
from hitmiss.reports.matplots import COLUMN, draw
from hitmiss.reports.notebook import Drawn
from hitmiss.reports.slice_plates import forest_plate

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
    rows = [(_name(row), _estimate(row)) for row in found]
    if all(e.value is None for _, e in rows):
        raise DataError.of("nothing-to-draw")
    is_compared = isinstance(found, Comparison)
    title = f"{found.names[1]} − {found.names[0]}" if isinstance(found, Comparison) else ""
    plate = forest_plate(rows, title, 0.0 if is_compared else None, "", is_share=False)
    axes = draw(plate, ax, size=(COLUMN[0], 0.6 + 0.22 * plate.rows))
    return axes if ax is not None else Drawn(axes)


def _estimate(row: Difference | RankedRun) -> Estimate:
    return Estimate(row.metric, row.delta if isinstance(row, Difference) else row.value, row.low, row.high)


def _name(row: Difference | RankedRun) -> str:
    where = ", ".join(f"{k}={v}" for k, v in row.slice.items())
    run = row.run if isinstance(row, RankedRun) else ""
    return " ".join(filter(None, (row.average, row.metric, f"[{where}]" if where else "", run)))
