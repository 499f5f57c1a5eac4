"""Clips into batches: neighbours in length share one, and its size is bounded, so that little or nothing is padded.

Where the detector takes clips of several lengths at once (`ragged`), or the caller accepts padding, neighbours in length
share a batch. Else only clips of exactly one shape do: then no clip's score can depend on its company.

A batch leaves as soon as clips of one shape fill it, and else when the pool is full: one at a time, so that loading and
the model never wait for each other in turns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

POOL: Final = 8
"""How many batches' worth of clips are gathered where lengths differ."""


@dataclass(frozen=True)
class Piece:
    """A clip, or one of its windows: what takes one row of a batch."""

    at: int
    part: int
    n_parts: int
    clip: Any

    @property
    def length(self) -> int:
        """Samples along time, or characters of a text: what neighbours are alike in."""
        return int(self.clip.shape[-1]) if isinstance(self.clip, np.ndarray) and self.clip.ndim else len(self.clip)

    @property
    def size(self) -> int:
        """Numbers in it: samples of a sound, three for each pixel of a picture, characters of a text."""
        return int(self.clip.size) if isinstance(self.clip, np.ndarray) else len(self.clip)

    @property
    def shape(self) -> tuple[int, ...]:
        """What two clips must share to stand in one array; texts always do."""
        return self.clip.shape if isinstance(self.clip, np.ndarray) else ()


@dataclass
class Budget:
    """How much goes into one batch: `units` in all (clips × the largest), and at most `items` clips."""

    units: float
    items: int

    def fits(self, n: int, largest: int) -> bool:
        """Whether n clips, the largest of this size, are not too much. One clip always fits."""
        return n <= 1 or (n <= self.items and n * largest <= self.units)

    def shrink(self, n: int, largest: int) -> None:
        """A batch of n clips was too much for the memory: ask for half of it from now on."""
        self.units = max(min(self.units, n * largest / 2), 1.0)
        self.items = max(min(self.items, n // 2), 1)


@dataclass
class Pool:
    """Gathers pieces and gives them back as batches."""

    budget: Budget
    may_mix: bool = False
    pieces: list[Piece] = field(default_factory=list)
    _units: float = 0.0
    _shapes: Counter[tuple[int, ...]] = field(default_factory=Counter)

    def add(self, piece: Piece) -> Iterator[list[Piece]]:
        """Put a piece in; the batches that are due, if any are."""
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
        """A batch with the oldest piece and those nearest to it in length; empty when there is nothing left."""
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
    """The piece at a place of a sorted list, and its neighbours on both sides, nearest first, within the budget.

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


def collate(pieces: Sequence[Piece], is_ragged: bool) -> Any:
    """The clips of a batch as the detector wants them: one array where the shapes are one, a list where it may vary.

    Texts stay a list. Clips of several lengths for a detector that takes none are padded with zeros at the end.
    """
    clips = [p.clip for p in pieces]
    if not all(isinstance(clip, np.ndarray) for clip in clips):
        return clips
    if len({clip.shape for clip in clips}) == 1:
        return np.stack(clips)
    if is_ragged:
        return clips
    longest = max(p.length for p in pieces)
    out = np.zeros((len(clips), *clips[0].shape[:-1], longest), dtype=clips[0].dtype)
    for row, clip in zip(out, clips, strict=True):
        row[..., : clip.shape[-1]] = clip
    return out
