"""Clips into batches: a pool of clips is sorted by length and cut by seconds of sound, so that little or nothing is padded.

Where the detector takes clips of several lengths at once (`ragged`), or the caller accepts padding, neighbours in length
share a batch. Else only clips of exactly one shape do: then no clip's score can depend on its company.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

POOL: Final = 8
"""How many batches' worth of clips are gathered before they are sorted."""


@dataclass(frozen=True)
class Piece:
    """A clip, or one of its windows: what takes one row of a batch."""

    at: int
    part: int
    n_parts: int
    clip: Any

    @property
    def length(self) -> int:
        """Samples along time, or characters of a text."""
        return int(self.clip.shape[-1]) if isinstance(self.clip, np.ndarray) and self.clip.ndim else len(self.clip)

    @property
    def shape(self) -> tuple[int, ...]:
        """What two clips must share to stand in one array; texts always do."""
        return self.clip.shape if isinstance(self.clip, np.ndarray) else ()


@dataclass
class Budget:
    """How much goes into one batch: `units` of length in all (clips × the longest), and at most `items` clips."""

    units: float
    items: int

    def fits(self, n: int, longest: int) -> bool:
        """Whether n clips, the longest of this length, are not too much. One clip always fits."""
        return n <= 1 or (n <= self.items and n * longest <= self.units)

    def shrink(self, n: int, longest: int) -> None:
        """A batch of n clips was too much for the memory: ask for half of it from now on."""
        self.units = max(min(self.units, n * longest / 2), 1.0)
        self.items = max(min(self.items, n // 2), 1)


@dataclass
class Pool:
    """Gathers pieces and gives them back as batches."""

    budget: Budget
    may_mix: bool = False
    pieces: list[Piece] = field(default_factory=list)
    _units: float = 0.0

    def add(self, piece: Piece) -> None:
        """Put a piece in."""
        self.pieces.append(piece)
        self._units += piece.length

    @property
    def is_full(self) -> bool:
        """Whether there is enough to sort."""
        return self._units >= POOL * self.budget.units or len(self.pieces) >= POOL * self.budget.items

    def empty(self) -> Iterator[list[Piece]]:
        """All pieces as batches, short clips first; the order of the results is restored by their positions."""
        pieces = sorted(self.pieces, key=lambda p: (p.length, p.shape, p.at, p.part))
        self.pieces, self._units = [], 0.0
        yield from cut(pieces, self.budget, self.may_mix)


def cut(pieces: Sequence[Piece], budget: Budget, may_mix: bool) -> Iterator[list[Piece]]:
    """Sorted pieces as batches within the budget.

    >>> clips = [Piece(i, 0, 1, np.zeros(n)) for i, n in enumerate([4, 4, 5, 9])]
    >>> [[p.at for p in b] for b in cut(clips, Budget(10, 64), may_mix=True)]
    [[0, 1], [2], [3]]
    >>> [[p.at for p in b] for b in cut(clips, Budget(100, 64), may_mix=False)]
    [[0, 1], [2], [3]]
    """
    batch: list[Piece] = []
    for piece in pieces:
        is_alike = not batch or may_mix or piece.shape == batch[0].shape
        if batch and not (is_alike and budget.fits(len(batch) + 1, piece.length)):
            yield batch
            batch = []
        batch.append(piece)
    if batch:
        yield batch


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
