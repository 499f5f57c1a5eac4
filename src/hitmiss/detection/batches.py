"""Clips into batches: clips of similar length share one of bounded size, so that little or nothing is padded.

If the detector accepts clips of several lengths at once (`ragged`), or the caller accepts padding, clips of similar
length share a batch. Otherwise only clips of exactly one shape do: then no clip's score can depend on the others in
its batch.

A batch is released as soon as clips of one shape fill it, or else when the pool is full: one batch at a time, so that
loading and the model run in parallel instead of waiting for each other in turns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from hitmiss.detection.detector import Array, Item

POOL: Final = 8
"""How many batches' worth of clips are gathered where lengths differ."""


@dataclass(frozen=True)
class Piece:
    """A clip, or one of its windows: one row of a batch."""

    at: int
    part: int
    n_parts: int
    clip: Item

    @property
    def length(self) -> int:
        """The number of samples, or characters of a text: pieces are sorted by it."""
        return int(self.clip.shape[-1]) if isinstance(self.clip, np.ndarray) and self.clip.ndim else len(self.clip)

    @property
    def size(self) -> int:
        """The number of values: samples of a sound, three per pixel of a picture, characters of a text."""
        return int(self.clip.size) if isinstance(self.clip, np.ndarray) else len(self.clip)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that two clips must share to be in one array; texts always match."""
        return self.clip.shape if isinstance(self.clip, np.ndarray) else ()


@dataclass
class Budget:
    """The limits of one batch: `units` in all (clips × the largest), and at most `items` clips."""

    units: float
    items: int

    def fits(self, n: int, largest: int) -> bool:
        """Return whether n clips, the largest of this size, fit. A single clip always fits."""
        return n <= 1 or (n <= self.items and n * largest <= self.units)

    def shrink(self, n: int, largest: int) -> None:
        """Halve the limit from now on, because a batch of n clips did not fit in memory."""
        self.units = max(min(self.units, n * largest / 2), 1.0)
        self.items = max(min(self.items, n // 2), 1)


@dataclass
class Pool:
    """Collects pieces and returns them as batches."""

    budget: Budget
    may_mix: bool = False
    pieces: list[Piece] = field(default_factory=list)
    _units: float = 0.0
    _shapes: Counter[tuple[int, ...]] = field(default_factory=Counter)

    def add(self, piece: Piece) -> Iterator[list[Piece]]:
        """Add a piece; yield the batches that are due."""
        self.pieces.append(piece)
        self._units += piece.size
        self._shapes[piece.shape] += 1
        alike = self._shapes[piece.shape]
        is_array = isinstance(piece.clip, np.ndarray)
        if is_array and not self.budget.fits(alike + 1, piece.size):
            yield self._taken([p for p in self.pieces if p.shape == piece.shape])
        while self._units > POOL * self.budget.units or len(self.pieces) >= POOL * self.budget.items:
            yield self.take()

    def take(self) -> list[Piece]:
        """Return a batch with the oldest piece and those nearest to it in length; empty if there is nothing left."""
        if not self.pieces:
            return []
        order = sorted(self.pieces, key=lambda p: (p.length, p.shape, p.at, p.part))
        at = order.index(self.pieces[0])
        return self._taken(around(order, at, self.budget, self.may_mix))

    def _taken(self, batch: list[Piece]) -> list[Piece]:
        gone = {id(piece) for piece in batch}
        self.pieces = [piece for piece in self.pieces if id(piece) not in gone]
        self._units -= sum(piece.size for piece in batch)
        self._shapes -= Counter(piece.shape for piece in batch)
        return batch


def around(order: Sequence[Piece], at: int, budget: Budget, may_mix: bool) -> list[Piece]:
    """Return the piece at a position of a sorted list and its neighbours, nearest first, within the budget.

    >>> clips = [Piece(i, 0, 1, np.zeros(n)) for i, n in enumerate([4, 4, 5, 9])]
    >>> [p.at for p in around(clips, 0, Budget(10, 64), may_mix=True)]
    [0, 1]
    >>> [p.at for p in around(clips, 2, Budget(100, 64), may_mix=True)], [p.at for p in around(clips, 2, Budget(100, 64), False)]
    ([0, 1, 2, 3], [2])
    """
    low = high = at
    largest, middle = order[at].size, order[at]
    while True:
        sides = [i for i in (low - 1, high + 1) if 0 <= i < len(order)]
        sides = [i for i in sides if may_mix or order[i].shape == middle.shape]
        sides = [i for i in sides if budget.fits(high - low + 2, max(largest, order[i].size))]
        if not sides:
            return list(order[low : high + 1])
        nearest = min(sides, key=lambda i: (abs(order[i].length - middle.length), i))
        low, high, largest = min(low, nearest), max(high, nearest), max(largest, order[nearest].size)


def collate(pieces: Sequence[Piece], is_ragged: bool) -> Array | list[Item]:
    """Return the clips of a batch in the detector's form: one array if all shapes are equal, a list if they may differ.

    Texts stay a list. Clips of several lengths for a detector that needs one length are padded with zeros at the end.
    """
    clips = [p.clip for p in pieces if isinstance(p.clip, np.ndarray)]
    if len(clips) < len(pieces):
        return [p.clip for p in pieces]
    if len({clip.shape for clip in clips}) == 1:
        return np.stack(clips)
    if is_ragged:
        return list(clips)
    longest = max(p.length for p in pieces)
    out = np.zeros((len(clips), *clips[0].shape[:-1], longest), dtype=clips[0].dtype)
    for row, clip in zip(out, clips, strict=True):
        row[..., : clip.shape[-1]] = clip
    return out
