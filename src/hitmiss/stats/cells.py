"""Cells: a tally cut into stretches of scores, so that a replicate is a few counts and not a new list of trials."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hitmiss.stats.forms import AtThreshold, ClassSums, Crossing, Form, MinimumCost, PairShare
from hitmiss.tally import Floats, Tally

Indices = NDArray[np.intp]
GRID = 32
"""Stretches of equal mass per class where only single thresholds matter."""
FINE_GRID = 128
"""… where sums over all trials matter too."""
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
        grid = FINE_GRID if any(isinstance(f, ClassSums | PairShare) for f in forms) else GRID
    return Cells(tally, _cuts(tally, [*_points(tally, forms), *_even(tally, grid)]))


def cut_for_units(tally: Tally, forms: Sequence[Form]) -> Cells:
    """An even grid, and finer cuts in the cells that replicates are likeliest to open (a guess that only saves time)."""
    coarse = max(
        min(UNIT_GRID, len(tally.score) // 128), GRID
    )  # small samples: fewer cells are cheaper to open than to count
    cells = cut(tally, forms, UNIT_GRID if any(isinstance(f, PairShare) for f in forms) else coarse)
    likely = np.unique(np.concatenate([np.zeros(0, dtype=np.intp), *(_likely_open(cells, f) for f in forms)]))
    within = [np.linspace(cells.cuts[k], cells.cuts[k + 1], 9)[1:-1].astype(np.intp) for k in likely]
    return Cells(tally, _cuts(tally, np.concatenate([cells.cuts, *within]))) if within else cells


def _likely_open(cells: Cells, form: Form) -> Indices:
    tally, cuts = cells.tally, cells.cuts
    if isinstance(form, Crossing):
        k = int(np.searchsorted(cuts, form.point(tally), side="right")) - 1
        return np.arange(max(k - 4, 0), min(k + 5, len(cells)))
    if isinstance(form, MinimumCost):
        bound = (
            form.miss * tally.positives[cuts[:-1]] / tally.n_positive
            - form.false_alarm * tally.negatives[cuts[1:]] / tally.n_negative
        )
        return np.argsort(bound, kind="stable")[:32]
    return np.zeros(0, dtype=np.intp)


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


def _points(tally: Tally, forms: Sequence[Form]) -> list[int]:
    points: list[int] = []
    for form in forms:
        if isinstance(form, Crossing):
            low = form.point(tally)
            points += [low, low + 1]
        elif isinstance(form, MinimumCost):
            points.append(form.best_point(tally))
        elif isinstance(form, AtThreshold):
            points.append(tally.point_at(form.threshold))
        elif isinstance(form, ClassSums):
            points += [*_infinite_ends(tally, form), *_graded_ends(tally)]
    return points


def _infinite_ends(tally: Tally, form: ClassSums) -> list[int]:
    """Scores with an infinite term get cells of their own: one such trial makes a sum infinite, its neighbours must not."""
    if not len(tally.score):
        return []
    ends = tally.score[[0, -1]]
    infinite = ~np.isfinite(form.positive(ends)) | ~np.isfinite(form.negative(ends))
    return [place for place, found in zip((1, len(tally.score) - 1), infinite, strict=True) if found]


def _graded_ends(tally: Tally) -> list[int]:
    """Cells of 1, 1, … then 8, 16, 32 … trials at both ends of each class: few extreme terms can make most of a sum."""
    points: list[int] = []
    for cumulative in (tally.positives, tally.negatives):
        n = int(cumulative[-1])
        steps = [k for k in (*range(1, 9), *(2**i for i in range(4, 40))) if k <= n / FINE_GRID or k <= 8]
        points += np.searchsorted(cumulative, steps).tolist()
        points += (np.searchsorted(cumulative, n - np.array(steps), side="right") - 1).tolist()
    return points
