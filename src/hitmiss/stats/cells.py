"""Cells: a tally cut into stretches of scores, so that a replicate is a few counts instead of a new list of trials."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.sorting import Array, Floats
from hitmiss.core.tally import Tally
from hitmiss.stats.forms.base import FINE_GRID, Form

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Table: TypeAlias = Floats | csr_array


Indices = NDArray[np.intp]
GRID = 32
"""Number of stretches with equal numbers of trials per class, for estimates that depend on single thresholds."""
UNIT_GRID = 256
"""… for units and numbers that are read off the stretches: their cells are cheap to count (a matrix product)."""
WHOLE_GRID = 1024
"""… for numbers that depend on the whole curve."""


@dataclass(frozen=True, eq=False)
class Cells:
    """A tally with cuts: cell k holds the distinct scores cuts[k] .. cuts[k+1] − 1."""

    tally: Tally
    cuts: Indices

    @cached_property
    def positives(self) -> Floats:
        """The number of positives in each cell."""
        return np.diff(self.tally.positives[self.cuts]).astype(np.float64)

    @cached_property
    def negatives(self) -> Floats:
        """The number of negatives in each cell."""
        return np.diff(self.tally.negatives[self.cuts]).astype(np.float64)

    def __len__(self) -> int:
        return len(self.cuts) - 1

    def index_of(self, point: int) -> int:
        """Return the index of the cut at a point of the error curve."""
        return int(np.searchsorted(self.cuts, point))

    def coarse(self) -> Tally:
        """Return a tally with each cell as one group at its middle score, for numbers that need the whole curve."""
        middle = (self.cuts[:-1] + self.cuts[1:] - 1) // 2
        return Tally(self.tally.score[middle], self.tally.positives[self.cuts], self.tally.negatives[self.cuts])


def cut(tally: Tally, forms: Sequence[Form], grid: int | None = None) -> Cells:
    """Cut a tally where the forms need it: sample points, fixed thresholds, infinite scores and an even grid."""
    if grid is None and forms and all(f.thresholds for f in forms):
        grid = 1  # what is read at fixed thresholds depends on nothing between them
    elif grid is None:
        grid = FINE_GRID if any(f.is_summed for f in forms) else GRID
    return Cells(tally, _cuts(tally, [*(p for form in forms for p in form.points(tally)), *_even(tally, grid)]))


def cut_for_units(tally: Tally, forms: Sequence[Form]) -> Cells:
    """Cut on an even grid: coarse for numbers at one place of the curve, because open cells are divided further."""
    return cut(tally, forms, UNIT_GRID if any(f.fine_unit_cells for f in forms) else GRID)


def cut_finely(tally: Tally) -> Cells:
    """Cut on an even grid in both classes, for numbers that depend on the whole curve."""
    return Cells(tally, _cuts(tally, _even(tally, WHOLE_GRID)))


def _cuts(tally: Tally, points: Iterable[int]) -> Indices:
    inside = np.unique(np.asarray([0, len(tally.score), *points], dtype=np.intp))
    return inside[(inside >= 0) & (inside <= len(tally.score))]


def _even(tally: Tally, grid: int) -> list[int]:
    if len(tally.score) <= grid:
        return list(range(len(tally.score) + 1))
    shares = np.arange(1, grid) / grid
    by_class = [np.searchsorted(c, _as_counts(shares * c[-1], c)) for c in (tally.positives, tally.negatives)]
    return [int(i) for i in np.concatenate(by_class)]


def _as_counts(values: Floats, counts: Array) -> Array:
    """Return values with the type of counts, rounded up: numpy would turn all whole counts into floats to find them."""
    return np.ceil(values).astype(counts.dtype) if counts.dtype.kind in "iu" else values


PART = 1 << 20
"""Number of trials that are looked at together; what is computed from them is as small, wherever the trials are."""
