"""Cells: a tally cut into stretches of scores, so that a replicate is a few counts and not a new list of trials."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hitmiss.stats.forms import FINE_GRID, Form
from hitmiss.tally import Floats, Tally

Indices = NDArray[np.intp]
GRID = 32
"""Stretches of equal mass per class where only single thresholds matter."""
UNIT_GRID = 256
"""… for units, whose cells are cheap to count (a matrix product) and dear to open (trial by trial)."""
WHOLE_GRID = 1024
"""… for figures that need the whole curve."""


@dataclass(frozen=True, eq=False)
class Cells:
    """A tally with cuts: cell k holds the distinct scores cuts[k] .. cuts[k+1] − 1."""

    tally: Tally
    cuts: Indices

    @cached_property
    def positives(self) -> Floats:
        """Positives in each cell."""
        return np.diff(self.tally.positives[self.cuts]).astype(np.float64)

    @cached_property
    def negatives(self) -> Floats:
        """Negatives in each cell."""
        return np.diff(self.tally.negatives[self.cuts]).astype(np.float64)

    def __len__(self) -> int:
        return len(self.cuts) - 1

    def index_of(self, point: int) -> int:
        """Which cut stands at that point of the error curve."""
        return int(np.searchsorted(self.cuts, point))

    def coarse(self) -> Tally:
        """The tally with each cell as one group at its median-rank score: the input of figures that need the whole curve."""
        middle = (self.cuts[:-1] + self.cuts[1:] - 1) // 2
        return Tally(self.tally.score[middle], self.tally.positives[self.cuts], self.tally.negatives[self.cuts])


def cut(tally: Tally, forms: Sequence[Form], grid: int | None = None) -> Cells:
    """Cuts where the forms need them: their sample points, fixed thresholds, infinite scores and an even grid."""
    if grid is None:
        grid = FINE_GRID if any(f.is_summed for f in forms) else GRID
    return Cells(tally, _cuts(tally, [*(p for form in forms for p in form.points(tally)), *_even(tally, grid)]))


def cut_for_units(tally: Tally, forms: Sequence[Form]) -> Cells:
    """An even grid, and finer cuts in the cells that replicates are likeliest to open (a guess that only saves time)."""
    coarse = max(
        min(UNIT_GRID, len(tally.score) // 128), GRID
    )  # small samples: fewer cells are cheaper to open than to count
    cells = cut(tally, forms, UNIT_GRID if any(f.fine_unit_cells for f in forms) else coarse)
    likely = np.unique(np.concatenate([np.zeros(0, dtype=np.intp), *(f.likely_open(cells) for f in forms)]))
    within = [np.linspace(cells.cuts[k], cells.cuts[k + 1], 9)[1:-1].astype(np.intp) for k in likely]
    return Cells(tally, _cuts(tally, np.concatenate([cells.cuts, *within]))) if within else cells


def cut_finely(tally: Tally) -> Cells:
    """Cuts for figures that need the whole curve: an even grid in both classes."""
    return Cells(tally, _cuts(tally, _even(tally, WHOLE_GRID)))


def _cuts(tally: Tally, points: Iterable[int]) -> Indices:
    inside = np.unique(np.asarray([0, len(tally.score), *points], dtype=np.intp))
    return inside[(inside >= 0) & (inside <= len(tally.score))]


def _even(tally: Tally, grid: int) -> list[int]:
    if len(tally.score) <= grid:
        return list(range(len(tally.score) + 1))
    shares = np.arange(1, grid) / grid
    by_class = [np.searchsorted(c, shares * c[-1]) for c in (tally.positives, tally.negatives)]
    return [int(i) for i in np.concatenate(by_class)]
