"""Which stretches of scores must be examined trial by trial in a paired bootstrap, and for which counts are enough.

This choice is a guess from the sample. It only decides how much is drawn: every replicate is checked afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.sorting import Floats
from hitmiss.core.tally import Tally
from hitmiss.stats.forms.base import Form
from hitmiss.stats.forms.least_cost import Bound

Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
CELLS = 4096
"""Number of cells of the grid on which stretches are chosen."""
DEVIATIONS = 4.5
"""How many standard deviations replicates are expected to stay within; the few others are computed by brute force."""
BIG_GROUP = 2048
"""A group of equal scores with more trials than this is counted as a whole, because no threshold lies inside it."""


@dataclass(frozen=True, eq=False)
class Windows:
    """Stretch k holds the distinct scores cuts[k] .. cuts[k+1] − 1; trials in open stretches are drawn one by one."""

    tally: Tally
    cuts: Indices
    is_open: Mask

    def stretch_of(self, score: Floats) -> Indices:
        """Return the stretch that contains each score."""
        return np.searchsorted(self.tally.score[self.cuts[1:-1]], score, side="right")


def choose_windows(tally: Tally, forms: Sequence[Form], even: int = 1) -> Windows:
    """Open the stretches where a crossing or a least cost can lie; elsewhere make blocks as wide as the bounds allow.

    A block holds at most about 1/`even` of the trials.
    """
    forms = [single for form in forms for single in form.single]
    bounds = [bound for f in forms if (bound := f.bound(tally, DEVIATIONS)) is not None]
    fixed = np.array([tally.point_at(t) for f in forms for t in f.thresholds], dtype=np.intp)
    shares = np.arange(1, even) / even * (float(tally.n_positive) + float(tally.n_negative))
    fixed = np.append(fixed, np.searchsorted(tally.positives + tally.negatives, shares))
    groups = len(tally.score)
    # Fixed thresholds must be ends of stretches: there the counts of every replicate are known without opening any.
    grid = np.unique(np.concatenate([np.linspace(0, groups, min(groups, CELLS) + 1).astype(np.intp), fixed]))
    low, high = grid[:-1], grid[1:]
    closed = _all_hold(bounds, low, high)
    for form in forms:
        groups_of = form.expected(tally, DEVIATIONS)
        if groups_of is not None:
            closed &= (high <= groups_of[0]) | (low > groups_of[1])
    return _with_big_groups(tally, _merged(tally, bounds, grid, closed, fixed))


def _all_hold(bounds: Sequence[Bound], low: Indices, high: Indices) -> Mask:
    hold = np.ones(len(high), dtype=bool)
    for bound in bounds:
        hold &= bound.cannot_win(low, high)
    return hold


def _merged(tally: Tally, bounds: Sequence[Bound], grid: Indices, closed: Mask, fixed: Indices) -> Windows:
    """Merge neighbouring open cells into one stretch, and neighbouring closed cells into as few blocks as possible."""
    cuts, is_open = [0], []
    stops = np.flatnonzero(np.append((closed[1:] != closed[:-1]) | np.isin(grid[1:-1], fixed), True)) + 1
    start = 0
    for stop in stops:
        while start < stop:
            end = int(stop)
            if closed[start]:
                # A wider block is cheaper but has a weaker bound: take the widest block for which all bounds still
                # hold.
                fine = _all_hold(bounds, grid[start : start + 1], grid[start + 1 : stop + 1])
                end = start + (len(fine) if fine.all() else max(int(np.argmin(fine)), 1))
            cuts.append(int(grid[end]))
            is_open.append(not closed[start])
            start = end
    return Windows(tally, np.array(cuts, dtype=np.intp), np.array(is_open, dtype=bool))


def _with_big_groups(tally: Tally, windows: Windows) -> Windows:
    """Make big groups inside open stretches closed stretches of their own."""
    size = tally.positive_counts + tally.negative_counts
    big = np.flatnonzero(size > BIG_GROUP)
    big = big[windows.is_open[np.searchsorted(windows.cuts, big, side="right") - 1]]
    cuts = np.unique(np.concatenate([windows.cuts, big, big + 1]))
    is_open = windows.is_open[np.searchsorted(windows.cuts, cuts[:-1], side="right") - 1]
    is_open[np.searchsorted(cuts, big)] = False
    return Windows(tally, cuts, is_open)
