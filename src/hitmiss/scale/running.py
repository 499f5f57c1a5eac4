"""Who makes the passes: an executor is any callable `run(function, arguments) -> results, in the order of the arguments`.

`function` is a module-level function and each entry of `arguments` a tuple of picklable values, so that a pass may be
made in another process or on another machine. Results must come in order, and each as soon as it and those before it
are there: the caller merges and forgets them, and that is what keeps the memory bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Executor(Protocol):
    """Calls a function with each of several tuples of arguments."""

    def __call__(self, function: Callable[..., T], arguments: Sequence[tuple[Any, ...]], /) -> Iterator[T]:
        """The results, in the order of the arguments."""


def sequential(function: Callable[..., T], arguments: Sequence[tuple[Any, ...]]) -> Iterator[T]:
    """One call after the other, here. Polars uses every core inside a call, so this is the way on one machine.

    >>> list(sequential(divmod, [(7, 2), (9, 4)]))
    [(3, 1), (2, 1)]
    """
    for given in arguments:
        yield function(*given)


def shares_disk(run: Executor) -> bool:
    """Whether what a pass writes into a folder is there for whoever asked for the pass: not so on a cluster."""
    return run is sequential or isinstance(run, Processes)


class Processes:
    """Calls in processes of their own: for many small shards, whose reading one process cannot spread over the cores."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def __call__(self, function: Callable[..., T], arguments: Sequence[tuple[Any, ...]]) -> Iterator[T]:
        """The results in order; no more calls are under way than there are workers, so few results wait."""
        # A fork of a process in which polars has started its threads can hang: processes begin afresh.
        with ProcessPoolExecutor(self.workers, mp_context=get_context("spawn")) as pool:
            waiting: deque[Future[T]] = deque()
            for given in arguments:
                waiting.append(pool.submit(function, *given))
                if len(waiting) > self.workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
