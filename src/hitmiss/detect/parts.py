"""The book of a run that many processes work on: which items are whose, and whose fault it is when one dies.

A part is a few items that go to one process together. When a process dies, the part that it was at is a suspect: a
machine may have gone, or an item may kill whoever touches it. A suspect is tried again, alone with its process; one that
kills again is cut up, until single items are left, and an item that has killed three processes is given up. The parts
that only waited for the process go to others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

MOST: Final = 256
"""Most items of a part: what is done again when a process dies."""
ROUNDS: Final = 8
"""Parts for each process at the least, so that all end at about the same time."""
PIECES: Final = 4
PATIENCE: Final = 3
"""An item that so many processes have died over is to blame."""


@dataclass(frozen=True)
class Part:
    """Positions of items, and how many processes have died over them."""

    positions: tuple[int, ...]
    deaths: int = 0


class Book:
    """Hands out parts and takes back what dead processes had.

    >>> book = Book(iter(range(5)), 3)
    >>> first = book.next(is_idle=True); first.positions
    (0, 1, 2)
    >>> book.died(first)                                     # nothing is given up yet
    ()
    >>> book.next(is_idle=False).positions, book.next(is_idle=True).positions
    ((3, 4), (0, 1, 2))
    >>> book.has_more, book.next(is_idle=True)
    (False, None)
    """

    def __init__(self, positions: Iterator[int], size: int) -> None:
        self._positions, self._size = positions, size
        self._suspects: deque[Part] = deque()
        self._waiting: deque[Part] = deque()
        self._fresh = self._cut()

    @property
    def has_more(self) -> bool:
        """Whether there is a part that nobody has."""
        return self._fresh is not None or bool(self._suspects or self._waiting)

    def next(self, is_idle: bool) -> Part | None:
        """A part for a process. Suspects go to idle ones only, so that what dies next tells who was to blame."""
        if is_idle and self._suspects:
            return self._suspects.popleft()
        if self._waiting:
            return self._waiting.popleft()
        fresh, self._fresh = self._fresh, self._cut() if self._fresh is not None else None
        return fresh

    def died(self, part: Part, waiting: Iterable[Part] = ()) -> tuple[int, ...]:
        """A process died over a part, while others waited for it. Gives the positions that are given up."""
        self._waiting.extend(waiting)
        deaths = part.deaths + 1
        if len(part.positions) == 1 and deaths >= PATIENCE:
            return part.positions
        if len(part.positions) > 1 and deaths > 1:
            self._suspects.extend(Part(piece, 1) for piece in _pieces(part.positions))
        else:
            self._suspects.append(Part(part.positions, deaths))
        return ()

    def _cut(self) -> Part | None:
        positions = tuple(islice(self._positions, self._size))
        return Part(positions) if positions else None


def part_size(n_items: int, n_processes: int) -> int:
    """Items of a part.

    >>> part_size(100, 2), part_size(1_000_000, 2), part_size(3, 2)
    (7, 256, 1)
    """
    return max(1, min(MOST, -(-n_items // (ROUNDS * max(1, n_processes)))))


def _pieces(positions: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    step = -(-len(positions) // PIECES)
    yield from (positions[at : at + step] for at in range(0, len(positions), step))
