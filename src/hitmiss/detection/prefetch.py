"""Prepare batches in a thread while the model works on others."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Generic, Literal, TypeAlias

from hitmiss.detection.preparation import T

Entry: TypeAlias = tuple[Literal["value"], T] | tuple[Literal["error"], BaseException] | tuple[Literal["end"], None]


class Prefetch(Generic[T]):
    """An iterator that runs in a thread, a few results ahead of its consumer.

    >>> list(Prefetch(iter(range(5)), 2))
    [0, 1, 2, 3, 4]
    """

    def __init__(self, source: Iterator[T], depth: int) -> None:
        self._queue: queue.Queue[Entry[T]] = queue.Queue(maxsize=depth)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(source,), daemon=True)
        self._thread.start()

    def __iter__(self) -> Iterator[T]:
        while True:
            entry = self._queue.get()
            if entry[0] == "error":
                raise entry[1]
            if entry[0] == "end":
                return
            yield entry[1]

    def close(self) -> None:
        """Stop the thread and wait for it."""
        self._stop.set()
        while self._thread.is_alive():
            try:
                self._queue.get(timeout=0.05)
            except queue.Empty:
                continue
        self._thread.join()

    def _run(self, source: Iterator[T]) -> None:
        try:
            for value in source:
                if not self._put(("value", value)):
                    break
            closing = getattr(source, "close", None)
            if closing is not None:
                closing()
            self._put(("end", None))
        except BaseException as error:
            self._put(("error", error))

    def _put(self, entry: Entry[T]) -> bool:
        while not self._stop.is_set():
            try:
                self._queue.put(entry, timeout=0.05)
            except queue.Full:
                continue
            return True
        return False
