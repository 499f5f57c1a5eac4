"""Which trials a second pass fetches: those whose scores lie in a window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.tally import Floats
from hitmiss.scale.counters import STEP, Codes
from hitmiss.scale.plan import KeyRanges
from hitmiss.scale.tallies import Cell
from hitmiss.stats.sketch import COARSE, EXACT, Keys, bins_of, keys_of

_last: list[tuple[KeyRanges, Opening]] = []


def opening_of(window: KeyRanges) -> Opening:
    """The window's own, made once for all shards: it holds many ranges."""
    if not _last or _last[0][0] is not window:
        _last[:] = [(window, Opening(window))]
    return _last[0][1]


class Opening:
    """Which trials lie in a window."""

    def __init__(self, window: KeyRanges) -> None:
        self._window = window
        self._ranges = [
            (np.array(first, dtype=np.uint64), np.array(last, dtype=np.uint64))
            for first, last in zip(window.first, window.last, strict=True)
        ]
        edges = np.zeros((1 << COARSE) + 1, dtype=np.int32)
        for first, last in self._ranges:
            np.add.at(edges, bins_of(first, COARSE).astype(np.int64), 1)
            np.add.at(edges, bins_of(last, COARSE).astype(np.int64) + 1, -1)
        touched = np.cumsum(edges)[:-1] > 0
        half = 1 << (COARSE - 1)
        # By the bits as they stand in a score: positive ones, then negative ones, which go downwards; and −0.0.
        self._touched = np.concatenate([touched[half:], touched[:half][::-1]])
        self._touched[half] |= touched[half]

    def places(self, cell: Codes, score: Floats, cells: Sequence[Cell]) -> NDArray[np.intp]:
        """The places of the trials that lie in the window."""
        parts = [_likely(score[at : at + STEP], self._touched) + at for at in range(0, len(score), STEP)]
        likely = np.concatenate([np.zeros(0, dtype=np.intp), *parts])
        keys = keys_of(score[likely])
        if self._window.cells is None:
            return likely[_within(keys, *self._ranges[0])]
        ranges = dict(zip(self._window.cells, self._ranges, strict=True))
        found = []
        owner = cell[likely]
        small = owner.astype(np.uint16) if len(cells) < 2**16 else owner  # small integers are sorted by radix
        order, sizes = np.argsort(small, kind="stable"), np.bincount(owner)
        ends = np.cumsum(sizes)
        for number in np.flatnonzero(sizes).tolist():
            if cells[number] in ranges:
                own = order[ends[number] - sizes[number] : ends[number]]
                found.append(likely[own[_within(keys[own], *ranges[cells[number]])]])
        return np.concatenate([np.zeros(0, dtype=np.intp), *found])


def _likely(score: Floats, touched: NDArray[np.bool_]) -> NDArray[np.intp]:
    place = score.view(np.int64) >> np.int64(EXACT - COARSE)
    place &= np.int64((1 << COARSE) - 1)
    return np.flatnonzero(touched[place])


def _within(keys: Keys, first: Keys, last: Keys) -> NDArray[np.bool_]:
    if not len(first):
        return np.zeros(len(keys), dtype=bool)
    at = np.searchsorted(first, keys, side="right")
    return np.asarray((at > 0) & (keys <= last[np.maximum(at, 1) - 1]))
