"""Which process of a cluster has which items, and which item caused a crash.

A part is a small group of items sent to one process. If a process dies, its current part is a suspect: a machine may
have failed, or an item may crash any process that handles it. A suspect is tried again, as the only part of its
process; if it crashes again it is split, down to single items, and an item that has crashed three processes is given
up. The parts that were only waiting for the process go to others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

FIRST_PART: Final = 256
"""Maximum items per part until the rate of a process is known."""
PART_SECONDS: Final = 2.0
"""Work in a part of a fast process: more would be repeated if it dies, less would leave its device waiting too often."""
ROUNDS: Final = 8
"""Minimum parts per process, so that all finish at about the same time."""
PIECES: Final = 4
PATIENCE: Final = 3
"""An item is given up as the cause after this many processes have died on it."""


@dataclass(frozen=True)
class Part:
    """Positions of items, and how many processes have died while working on them."""

    positions: tuple[int, ...]
    deaths: int = 0


class PartQueue:
    """Hands out parts, and takes back those of dead processes.

    >>> book = PartQueue(iter(range(5)), 3)
    >>> first = book.next(is_idle=True); first.positions
    (0, 1, 2)
    >>> book.died(first)                                     # nothing is given up yet
    ()
    >>> book.next(is_idle=False).positions, book.next(is_idle=True).positions
    ((3, 4), (0, 1, 2))
    >>> book.has_more, book.next(is_idle=True)
    (False, None)
    """

    def __init__(self, positions: Iterator[int], size: int, most: int | None = None) -> None:
        self._positions, self._size, self._most = positions, size, most or size
        self._suspects: deque[Part] = deque()
        self._waiting: deque[Part] = deque()
        self._fresh = self._cut()

    @property
    def has_more(self) -> bool:
        """Whether there is a part that no process has."""
        return self._fresh is not None or bool(self._suspects or self._waiting)

    def next(self, is_idle: bool) -> Part | None:
        """Return a part for a process. Suspects go only to idle ones, so that the next crash identifies the cause."""
        if is_idle and self._suspects:
            return self._suspects.popleft()
        if self._waiting:
            return self._waiting.popleft()
        fresh, self._fresh = self._fresh, self._cut() if self._fresh is not None else None
        return fresh

    def died(self, part: Part, waiting: Iterable[Part] = ()) -> tuple[int, ...]:
        """Record that a process died on a part while others waited for it; return the positions that are given up."""
        self._waiting.extend(waiting)
        deaths = part.deaths + 1
        if len(part.positions) == 1 and deaths >= PATIENCE:
            return part.positions
        if len(part.positions) > 1 and deaths > 1:
            self._suspects.extend(Part(piece, 1) for piece in _pieces(part.positions))
        else:
            self._suspects.append(Part(part.positions, deaths))
        return ()

    def learn(self, n_items: int, seconds: float) -> None:
        """Make later parts larger if a process is fast: between two parts its device has nothing to do.

        >>> book = PartQueue(iter(range(3000)), 256, most=1500)
        >>> book.learn(256, 0.25)
        >>> [len(book.next(is_idle=True).positions) for _ in range(3)]     # the first was cut before
        [256, 1500, 1244]
        """
        if seconds > 0:
            self._size = min(self._most, max(self._size, int(PART_SECONDS * n_items / seconds)))

    def _cut(self) -> Part | None:
        positions = tuple(islice(self._positions, self._size))
        return Part(positions) if positions else None


def part_size(n_items: int, n_processes: int) -> int:
    """Return the largest number of items per part.

    >>> part_size(100, 2), part_size(1_000_000, 2), part_size(3, 2)
    (7, 62500, 1)
    """
    return max(1, -(-n_items // (ROUNDS * max(1, n_processes))))


def _pieces(positions: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    step = -(-len(positions) // PIECES)
    yield from (positions[at : at + step] for at in range(0, len(positions), step))
