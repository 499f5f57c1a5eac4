"""Thinned curves: of a million points, the few that the eye can distinguish, without moving the drawn line.

Coordinates are pixels of the plot, so a DET curve is thinned after its rates were mapped to normal deviates. Nothing is
clipped: a point beyond the axes is kept, and one at infinity is not drawn.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.sorting import Floats

Places = NDArray[np.intp]
PIXELS: Final = 600
"""The side length of the plot for which curves are thinned."""
HALF_PIXEL: Final = 0.5
GRAIN: Final = 0.1
"""Side of the squares within which neighbouring points count as one; a seventh of a pixel across."""


def thin(x: Floats, y: Floats, tolerance: float = HALF_PIXEL, stops: int = 0) -> Places:
    """Return the indices of the points to keep: every other point is within `tolerance` of the line through these.

    Neighbours inside one small square are joined first, then Ramer–Douglas–Peucker spends what is left of the tolerance.
    `stops` points, evenly spaced along the line, are kept in any case, so that a pointer finds real thresholds everywhere.

    >>> x = np.linspace(0, 600, 100_000)
    >>> thin(x, x).tolist()
    [0, 99999]
    """
    if len(x) != len(y) or not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("a curve to be thinned has as many x as y, all of them finite")
    if len(x) < 3:
        return np.arange(len(x))
    grain = GRAIN * min(1.0, tolerance / HALF_PIXEL)
    ends = _ends_of_runs(x, y, grain)
    x, y = x[ends], y[ends]
    return ends[_peucker(x, y, _stops(x, y, stops), tolerance - grain * np.sqrt(2.0))]


def _ends_of_runs(x: Floats, y: Floats, grain: float) -> Places:
    """Return the first and the last point of each run of neighbours that share a square."""
    column, row = np.floor(x / grain), np.floor(y / grain)
    moved = (column[1:] != column[:-1]) | (row[1:] != row[:-1])
    is_end = np.concatenate([moved, [True]]) | np.concatenate([[True], moved])
    return np.flatnonzero(is_end)


def _peucker(x: Floats, y: Floats, fixed: Places, tolerance: float) -> Places:
    """Run Ramer–Douglas–Peucker between fixed points, with the distance to the segment, without recursion."""
    keep = np.zeros(len(x), dtype=bool)
    keep[fixed] = True
    pending = list(pairwise(fixed.tolist()))
    while pending:
        first, last = pending.pop()
        if last - first < 2:
            continue
        away = distance_to_segment(x[first + 1 : last], y[first + 1 : last], (x[first], y[first]), (x[last], y[last]))
        far = int(np.argmax(away))
        if away[far] > tolerance:
            middle = first + 1 + far
            keep[middle] = True
            pending += [(first, middle), (middle, last)]
    return np.flatnonzero(keep)


def distance_to_segment(x: Floats, y: Floats, start: tuple[float, float], end: tuple[float, float]) -> Floats:
    """Return the distances of points from a segment.

    >>> distance_to_segment(np.array([0.0, 5.0]), np.array([1.0, 0.0]), (-1.0, 0.0), (1.0, 0.0)).tolist()
    [1.0, 4.0]
    """
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = dx * dx + dy * dy
    along = np.clip(((x - start[0]) * dx + (y - start[1]) * dy) / length, 0.0, 1.0) if length > 0 else 0.0
    return np.asarray(np.hypot(x - start[0] - along * dx, y - start[1] - along * dy))


def _stops(x: Floats, y: Floats, stops: int) -> Places:
    """Return the first index, the last, and some more between them, evenly spaced along the line."""
    ends = np.array([0, len(x) - 1])
    along = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))])
    if stops < 1 or not along[-1] > 0:
        return ends
    between = np.searchsorted(along, np.linspace(0.0, along[-1], stops))
    return np.union1d(ends, np.minimum(between, len(x) - 1))
