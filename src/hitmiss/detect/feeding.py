"""Items to clips: loaded, transformed, brought to length and cut into windows; in this process or in several.

A file that cannot be read becomes a `Failed` and the run goes on; so does one that kills the process that reads it.
"""

from __future__ import annotations

import math
import mmap
import multiprocessing
import os
import pickle
import queue
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.connection import Connection, wait
from typing import Any, Final, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hitmiss.errors import EnvironmentFault, UsageError

Row = Mapping[str, Any]
Array = NDArray[Any]
T = TypeVar("T")
IN_FLIGHT: Final = 4
"""Tasks that a worker has before it, so that it need not wait for the next."""
SLOT: Final = 2**23
"""Bytes for the clip of one task in the memory that is shared with a worker: two minutes at 16 kHz."""
SMALL: Final = 8192
"""A larger task is sent to an idle worker only: one that is busy may itself be waiting for us to read."""


@dataclass(frozen=True)
class Prepared:
    """An item ready for the model: its clip, or its windows, and how long that took."""

    at: int
    parts: list[Any]
    length: int
    decode: float
    augment: float


class Loaded(NamedTuple):
    """A clip of which the first part alone was loaded, and how long it is as a whole."""

    clip: Any
    length: int


@dataclass(frozen=True)
class Failed:
    """An item that could not be made ready, and why."""

    at: int
    reason: str


Prepare = Callable[[int, Row], Prepared | Failed]
"""What makes an item ready: a `Preparation`, or something that has one done elsewhere."""


@dataclass(frozen=True)
class Preparation:
    """What is done to an item before the model sees it. For worker processes its parts must be importable functions.

    `load(row)` gives the clip; `transform(clip, row)` a changed one; `fit(clip)` one of the right length; `windows(clip)`
    several.
    """

    load: Callable[[Row], Any]
    transform: Callable[[Any, Row], Any] | None = None
    fit: Callable[[Any], Any] | None = None
    windows: Callable[[Any], Any] | None = None

    def __call__(self, at: int, row: Row) -> Prepared | Failed:
        """One item made ready; what is wrong with it is told, save what is wrong with the machine."""
        start = time.perf_counter()
        try:
            clip = self.load(row)
            loaded = time.perf_counter()
            whole = clip.length if isinstance(clip, Loaded) else None
            clip = clip.clip if isinstance(clip, Loaded) else clip
            length = whole or (int(clip.shape[-1]) if isinstance(clip, np.ndarray) and clip.ndim else len(clip))
            clip = clip if self.transform is None else self.transform(clip, row)
            clip = clip if self.fit is None else self.fit(clip)
            parts = [clip] if self.windows is None else list(self.windows(clip))
        except EnvironmentFault:
            raise
        except Exception as error:
            return Failed(at, reason(error))
        return Prepared(at, parts, length, loaded - start, time.perf_counter() - loaded)


def reason(error: BaseException) -> str:
    """An error as one line of a record."""
    text = " ".join(str(error).split()) or type(error).__name__
    known = isinstance(error, ValueError | OSError)
    return (text if known else f"{type(error).__name__}: {text}")[:500]


def feed(
    preparation: Prepare,
    tasks: Iterator[tuple[int, Row]],
    workers: int,
    buffer: Callable[[int], Array] | None = None,
) -> Iterator[Prepared | Failed]:
    """Every task made ready: in order in this process, or as they come from `workers` others.

    `buffer(n_bytes)` gives memory for a clip that comes from a worker, where the detector has a kind that it likes best.
    """
    if workers <= 0:
        yield from (preparation(at, row) for at, row in tasks)
        return
    crew = Crew(preparation, workers, buffer)
    try:
        yield from crew.work(tasks)
    finally:
        crew.close()


@dataclass
class Worker:
    """A process, the pipe to it, and the tasks that it has."""

    process: Any
    pipe: Connection
    desk: Desk | None
    tasks: deque[tuple[int, Row]] = field(default_factory=deque)


class Crew:
    """Worker processes that prepare items."""

    def __init__(self, preparation: Prepare, n: int, buffer: Callable[[int], Array] | None = None) -> None:
        self._buffer = buffer
        try:
            self._preparation = pickle.dumps(preparation)
        except Exception as error:
            raise UsageError(
                f"worker processes need load and transform to be functions of a module ({reason(error)}); use workers=0"
            ) from None
        self._context = multiprocessing.get_context("spawn")
        self._workers = [self._hire() for _ in range(n)]

    def work(self, tasks: Iterator[tuple[int, Row]]) -> Iterator[Prepared | Failed]:
        """Hand out tasks and give back what comes, until all are done."""
        again: deque[tuple[int, Row]] = deque()
        source = iter(tasks)
        while True:
            for worker in self._workers:
                _fill(worker, again, source)
            busy = {w.pipe: w for w in self._workers if w.tasks}
            if not busy:
                return
            for pipe in wait(list(busy)):
                worker = busy[pipe]  # type: ignore[index]
                try:
                    result = _receive(worker.pipe, worker.desk, self._buffer)
                except (EOFError, OSError):
                    yield self._replace(worker, again)
                    continue
                worker.tasks.popleft()
                if isinstance(result, BaseException):
                    raise result
                yield result

    def close(self) -> None:
        """Send everybody home."""
        for worker in self._workers:
            worker.pipe.close()
        for worker in self._workers:
            worker.process.join(timeout=5)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
            if worker.desk is not None:
                worker.desk.close()

    def _hire(self) -> Worker:
        ours, theirs = self._context.Pipe()
        desk = Desk.make()
        place = desk.place if desk is not None else None
        process = self._context.Process(target=_serve, args=(theirs, self._preparation, place), daemon=True)
        process.start()
        theirs.close()
        return Worker(process, ours, desk)

    def _replace(self, worker: Worker, again: deque[tuple[int, Row]]) -> Failed:
        """A worker died: the task that it had is to blame, the others are for somebody else."""
        worker.process.join()
        worker.pipe.close()
        if worker.desk is not None:
            worker.desk.close()
        code = worker.process.exitcode
        at, _ = worker.tasks.popleft()
        again.extend(worker.tasks)
        self._workers[self._workers.index(worker)] = self._hire()
        return Failed(at, f"the process that read it died (exit code {code})")


def _fill(worker: Worker, again: deque[tuple[int, Row]], source: Iterator[tuple[int, Row]]) -> None:
    while len(worker.tasks) < IN_FLIGHT:
        task = again.popleft() if again else next(source, None)
        if task is None:
            return
        message = pickle.dumps(task)
        if worker.tasks and len(message) > SMALL:
            again.appendleft(task)
            return
        worker.tasks.append(task)
        try:
            worker.pipe.send_bytes(message)
        except OSError:  # it is dead; the tasks are taken from it when its pipe is read
            return


def _serve(pipe: Connection, pickled: bytes, place: str | None) -> None:
    """The life of a worker: a task in, a clip out, until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is told, and closes the pipe
    try:
        desk = Desk.open(place) if place is not None else None
        preparation: Prepare = pickle.loads(pickled)  # our own bytes
        for turn in count():
            at, row = pickle.loads(pipe.recv_bytes())
            try:
                _send(pipe, preparation(at, row), desk, turn % IN_FLIGHT)
            except EnvironmentFault as error:
                pipe.send(error)
    except (EOFError, OSError):
        return


def _send(pipe: Connection, result: Prepared | Failed, desk: Desk | None, slot: int) -> None:
    """Arrays are laid on the desk, in the slot of this turn; what is too large for it goes through the pipe."""
    arrays = (
        []
        if isinstance(result, Failed)
        else [np.ascontiguousarray(p) for p in result.parts if isinstance(p, np.ndarray)]
    )
    fits = desk is not None and sum(a.nbytes for a in arrays) <= SLOT
    if isinstance(result, Failed) or len(arrays) != len(result.parts) or desk is None or not fits:
        pipe.send(result)
        return
    forms = desk.lay(slot, arrays)
    pipe.send((Prepared(result.at, [], result.length, result.decode, result.augment), slot, forms))


def _receive(pipe: Connection, desk: Desk | None, buffer: Callable[[int], Array] | None) -> Any:
    message = pipe.recv()
    if not isinstance(message, tuple) or desk is None:
        return message
    prepared, slot, forms = message
    prepared.parts.extend(desk.take(slot, forms, buffer))
    return prepared


class Desk:
    """Memory that a worker and its parent share: clips are laid on it and copied off, which is cheaper than a pipe.

    It has as many slots as a worker may have tasks before it. A worker gets a task only after an earlier result was
    taken, so the slot of its turn is free: nothing has to be said about that.
    """

    def __init__(self, fd: int, place: str) -> None:
        self._memory = mmap.mmap(fd, SLOT * IN_FLIGHT)
        self._fd, self.place = fd, place

    @classmethod
    def make(cls) -> Desk | None:
        """A new one, or None where the system has no such memory."""
        if not hasattr(os, "memfd_create"):
            return None
        fd = os.memfd_create("hitmiss")
        os.ftruncate(fd, SLOT * IN_FLIGHT)
        return cls(fd, f"/proc/{os.getpid()}/fd/{fd}")

    @classmethod
    def open(cls, place: str) -> Desk:
        """The parent's, seen from the worker."""
        return cls(os.open(place, os.O_RDWR), place)

    def lay(self, slot: int, arrays: Sequence[Array]) -> list[tuple[tuple[int, ...], str]]:
        """Put arrays into a slot; their shapes and types."""
        start = slot * SLOT
        for array in arrays:
            np.frombuffer(self._memory, array.dtype, array.size, start)[...] = array.reshape(-1)
            start += array.nbytes
        return [(array.shape, array.dtype.str) for array in arrays]

    def take(
        self, slot: int, forms: Sequence[tuple[tuple[int, ...], str]], buffer: Callable[[int], Array] | None = None
    ) -> list[Array]:
        """Copies of the arrays in a slot: the one copy that the parent makes before a clip goes to the device."""
        start, found = slot * SLOT, []
        for shape, kind in forms:
            array = np.frombuffer(self._memory, np.dtype(kind), math.prod(shape), start).reshape(shape)
            copy = (
                np.empty(shape, array.dtype)
                if buffer is None
                else buffer(array.nbytes).view(array.dtype).reshape(shape)
            )
            copy[...] = array
            found.append(copy)
            start += array.nbytes
        return found

    def close(self) -> None:
        """Give the memory back."""
        self._memory.close()
        os.close(self._fd)


class Ahead(Generic[T]):
    """An iterator that works in a thread, a few results ahead of its user.

    >>> list(Ahead(iter(range(5)), 2))
    [0, 1, 2, 3, 4]
    """

    def __init__(self, source: Iterator[T], depth: int) -> None:
        self._queue: queue.Queue[tuple[str, Any]] = queue.Queue(maxsize=depth)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(source,), daemon=True)
        self._thread.start()

    def __iter__(self) -> Iterator[T]:
        while True:
            kind, value = self._queue.get()
            if kind == "error":
                raise value
            if kind == "end":
                return
            yield value

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

    def _put(self, entry: tuple[str, Any]) -> bool:
        while not self._stop.is_set():
            try:
                self._queue.put(entry, timeout=0.05)
            except queue.Full:
                continue
            return True
        return False
