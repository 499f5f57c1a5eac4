"""Runs whose trials all have one and the same score: bins cannot tell, so it is looked up where one bin holds all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from hitmiss.scale.plan import ShardPlan, Window
from hitmiss.scale.tallies import Cell, ShardTally, ranges_of
from hitmiss.stats.sketch import COARSE, EXACT, bins_of, first_key, scores_of

CLOSER: Final = 44
"""Bits that are looked at before all are: scores that agree in these have few values."""


def single_scores(tally: ShardTally, plan: ShardPlan, fetch: Callable[[Window], ShardTally]) -> dict[Cell, float]:
    """The score of each run that has no other one, by the values of its run columns; `tally` holds bins."""
    runs: dict[Cell, list[Cell]] = {}
    for cell in sorted(tally.cells):
        runs.setdefault(cell[1 : 1 + len(plan.options.runs)], []).append(cell)
    ends = {run: _only(tally, cells) for run, cells in runs.items()}
    found: dict[Cell, float] = {}
    for run, key in ends.items():
        for bits in (CLOSER, EXACT):
            key = None if key is None else _only(fetch(_bin(key, bits)), runs[run])
        if key is not None:
            found[run] = float(scores_of(np.array([key], dtype=np.uint64))[0])
    return found


def _only(tally: ShardTally, cells: Sequence[Cell]) -> int | None:
    """The one bin of some cells; None where there are several."""
    held: Mapping[Cell, object] = tally.cells
    bins = {int(key) for cell in cells if cell in held for key in tally.cells[cell].bins[:2]}
    return bins.pop() if len(bins) == 1 else None


def _bin(key: int, bits: int) -> Window:
    first = first_key(bins_of(np.array([key], dtype=np.uint64), COARSE), COARSE)
    last = first | np.uint64((1 << (EXACT - COARSE)) - 1)
    return Window(bits, ranges_of(first, last))
