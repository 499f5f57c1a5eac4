"""Progress of long work: the work reports it, and a listener may show it. Without a listener nothing happens.

    with progress.step("measuring", tables):                # in the work: what it is, and of how many parts
        with progress.part():                               # one of them; more than one with part(3)
            for sample in progress.each(samples, "by codec", sizes):
                progress.report("replicates", 200, 1000)    # progress of the innermost work
    with progress.listen(bar):                              # around it, in the command line
        ...

A step inside a part of another step counts as that share of it, so the listener gets one share of the whole, which
never decreases.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

T = TypeVar("T")


class Listener(Protocol):
    """An object that shows the progress of the work."""

    def update(self, what: str, done: float, total: float | None, share: float | None) -> None:
        """Show progress: how much is done of how much, and the share of the current step; None if it is not known."""

    def clear(self) -> None:
        """Clear the display, because something is about to be printed."""

    def close(self) -> None:
        """Hide the display until it is cleared."""


class _Step:
    """A step in progress: how much of it is done, and the size of its current part."""

    def __init__(self, what: str, total: float) -> None:
        self.what, self.total, self.done = what, total, 0.0
        self.begin(0.0)

    def begin(self, size: float) -> None:
        """Begin a part of this size."""
        self.part, self.inside = size, 0.0

    def share(self, of_part: float) -> float:
        """Return the share done, given the share of the current part; it never decreases."""
        self.inside = max(self.inside, of_part)
        return min((self.done + self.part * self.inside) / self.total, 1.0) if self.total > 0 else 0.0


_listeners: list[Listener] = []
_steps: list[_Step] = []


@contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Report progress to this listener while the block runs; an outer listener gets nothing in the meantime."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextmanager
def step(what: str, total: float) -> Iterator[None]:
    """Run work of this many parts (files, bytes, tables, trials: parts that take about equally long)."""
    if not _listeners:
        yield
        return
    own = _Step(what, total)
    _steps.append(own)
    report()
    try:
        yield
    finally:
        _steps.remove(own)


@contextmanager
def part(size: float = 1.0) -> Iterator[None]:
    """Run the next part of the current step, of this size; outside a step this does nothing."""
    own = _steps[-1] if _steps else None
    if own is None:
        yield
        return
    own.begin(size)
    report()
    try:
        yield
    finally:
        own.done += size
        own.begin(0.0)
        report()


def each(things: Sequence[T], what: str, sizes: Sequence[float] | None = None) -> Iterator[T]:
    """Yield the things one after the other as a step; `sizes` if they take different times.

    >>> list(each([1, 2], "numbers"))
    [1, 2]
    """
    if not _listeners:
        yield from things
        return
    weights = sizes if sizes is not None else [1.0] * len(things)
    with step(what, float(sum(weights))):
        for done, (thing, size) in enumerate(zip(things, weights, strict=True)):
            with part(size):
                report("", done, len(things))
                yield thing


def report(what: str = "", done: float = 0, total: float | None = None) -> None:
    """Report progress inside the current part, if there is one; parts that run side by side report none of their own."""
    if not _listeners or threading.current_thread() is not threading.main_thread():
        return
    share = min(done / total, 1.0) if total else 0.0
    for own in reversed(_steps):
        share = own.share(share)
    words = [own.what for own in _steps] + [what]
    named = [word for word in dict.fromkeys(words) if word]
    _listeners[-1].update(", ".join(named[:1] + named[1:][-1:]), done, total, share if total or _steps else None)


@contextmanager
def paused() -> Iterator[None]:
    """Hide the progress display while somebody types."""
    if not _listeners:
        yield
        return
    shown = _listeners[-1]
    shown.close()
    try:
        yield
    finally:
        shown.clear()


def clear() -> None:
    """Ask the progress display to make room for what is printed next."""
    if _listeners:
        _listeners[-1].clear()
