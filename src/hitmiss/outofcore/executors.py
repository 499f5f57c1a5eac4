"""Executors run the passes: any callable `run(function, arguments) -> results, in the order of the arguments`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Executor(Protocol):
    """Calls a function with each of several tuples of arguments."""

    def __call__(self, function: Callable[..., T], arguments: Sequence[tuple[Any, ...]], /) -> Iterator[T]:
        """Yield the results, in the order of the arguments."""


def sequential(function: Callable[..., T], arguments: Sequence[tuple[Any, ...]]) -> Iterator[T]:
    """Make one call after the other in this process; best on one machine, as engines use every core.

    >>> list(sequential(divmod, [(7, 2), (9, 4)]))
    [(3, 1), (2, 1)]
    """
    for given in arguments:
        yield function(*given)
