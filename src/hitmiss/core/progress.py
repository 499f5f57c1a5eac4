"""How far long work is: whoever works says so, whoever can show it listens. Without a listener nothing happens.

    with progress.step("measuring", tables):              # in the work: what it is, and of how many parts
        with progress.part():                             # one of them; more than one with part(3)
            for sample in progress.each(samples, "by codec", sizes):
                progress.tell("replicates", 200, 1000)    # the innermost word
    with progress.heard_by(bar):                          # around it, in the command line
        ...

A step inside a part of another is that share of it, so the listener hears one share of the whole, which never falls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

T = TypeVar("T")


class Listener(Protocol):
    """Somebody who shows how far the work is."""

    def told(self, what: str, done: float, total: float | None, share: float | None) -> None:
        """The work is here: so many of so many done, and this share of the step under way; None where nobody knows."""

    def hushed(self) -> None:
        """Something is about to be printed: be out of its way."""


class _Step:
    """A step under way: how much of it is done, and how much the part at hand is."""

    def __init__(self, what: str, total: float) -> None:
        self.what, self.total, self.done = what, total, 0.0
        self.begin(0.0)

    def begin(self, size: float) -> None:
        """The part at hand is this large, and nothing of it is done."""
        self.part, self.inside = size, 0.0

    def share(self, of_part: float) -> float:
        """The share done, where this much of the part at hand is; what was further before stays there."""
        self.inside = max(self.inside, of_part)
        return min((self.done + self.part * self.inside) / self.total, 1.0) if self.total > 0 else 0.0


_listeners: list[Listener] = []
_steps: list[_Step] = []


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Tell this listener for as long as the block runs; an outer one hears nothing meanwhile."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextmanager
def step(what: str, total: float) -> Iterator[None]:
    """Work of so many parts (files, bytes, tables, trials: whatever takes alike long)."""
    own = _Step(what, total)
    _steps.append(own)
    tell()
    try:
        yield
    finally:
        _steps.remove(own)


@contextmanager
def part(size: float = 1.0) -> Iterator[None]:
    """The next part of the step at hand, so many of its total; outside of a step nothing happens."""
    own = _steps[-1] if _steps else None
    if own is None:
        yield
        return
    own.begin(size)
    tell()
    try:
        yield
    finally:
        own.done += size
        own.begin(0.0)
        tell()


def each(things: Sequence[T], what: str, sizes: Sequence[float] | None = None) -> Iterator[T]:
    """The things one after the other as a step of its own; `sizes` where they take differently long.

    >>> list(each([1, 2], "numbers"))
    [1, 2]
    """
    weights = sizes if sizes is not None else [1.0] * len(things)
    with step(what, float(sum(weights))):
        for done, (thing, size) in enumerate(zip(things, weights, strict=True)):
            with part(size):
                tell("", done, len(things))
                yield thing


def tell(what: str = "", done: float = 0, total: float | None = None) -> None:
    """Say how far the work is, inside the part at hand where there is one."""
    if not _listeners:
        return
    share = min(done / total, 1.0) if total else 0.0
    for own in reversed(_steps):
        share = own.share(share)
    words = [own.what for own in _steps] + [what]
    said = [word for word in dict.fromkeys(words) if word]
    _listeners[-1].told(", ".join(said[:1] + said[1:][-1:]), done, total, share if total or _steps else None)


def hush() -> None:
    """Ask whoever shows progress to be out of the way of what is printed next."""
    if _listeners:
        _listeners[-1].hushed()
