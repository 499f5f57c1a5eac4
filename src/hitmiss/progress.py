"""How far long work is: whoever works says so, whoever can show it listens. Without a listener nothing happens.

    for sample in progress.each(samples, "by codec"):     # in the work
        ...
    with progress.heard_by(bar):                          # around it, in the command line
        ...
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

T = TypeVar("T")


class Listener(Protocol):
    """Somebody who shows how far the work is."""

    def told(self, what: str, done: int, total: int | None) -> None:
        """The work is here: so many of so many done, or nobody knows of how many."""

    def hushed(self) -> None:
        """Something is about to be printed: be out of its way."""


_listeners: list[Listener] = []


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Tell this listener for as long as the block runs; an outer one hears nothing meanwhile."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def tell(what: str, done: int = 0, total: int | None = None) -> None:
    """Say how far the work is."""
    if _listeners:
        _listeners[-1].told(what, done, total)


def each(things: Sequence[T], what: str) -> Iterator[T]:
    """The things one after the other, counted for whoever listens.

    >>> list(each([1, 2], "numbers"))
    [1, 2]
    """
    for done, thing in enumerate(things):
        tell(what, done, len(things))
        yield thing


def hush() -> None:
    """Ask whoever shows progress to be out of the way of what is printed next."""
    if _listeners:
        _listeners[-1].hushed()
