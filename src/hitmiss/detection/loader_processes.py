"""Prepare items in several processes; one that dies is replaced, and the item that killed it is found."""

from __future__ import annotations

import math
import mmap
import multiprocessing
import os
import pickle
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Final

import numpy as np

from hitmiss.core.errors import EnvironmentFault, UsageError
from hitmiss.detection.detector import Array
from hitmiss.detection.preparation import Buffer, Failed, Form, Prepare, Prepared, Row, reason

IN_FLIGHT: Final = 4
"""Pending tasks per worker, so that it does not have to wait for the next."""
SLOT: Final = 2**23
"""Bytes for the clip of one task in the memory shared with a worker: two minutes at 16 kHz."""
SMALL: Final = 8192
"""A larger task is sent only to an idle worker: a busy one may be waiting for the parent to read (a deadlock)."""


def feed(
    preparation: Prepare,
    tasks: Iterator[tuple[int, Row]],
    workers: int,
    buffer: Buffer | None = None,
) -> Iterator[Prepared | Failed]:
    """Prepare every task: in order in this process, or in order of completion from `workers` other processes.

    `buffer(n_bytes)` returns memory for a clip that comes from a worker, if the detector prefers a special kind of
    memory.
    """
    if workers <= 0:
        yield from (preparation(at, row) for at, row in tasks)
        return
    loaders = LoaderProcesses(preparation, workers, buffer)
    try:
        yield from loaders.work(tasks)
    finally:
        loaders.close()


@dataclass
class Worker:
    """A process, the pipe to it, and its pending tasks."""

    process: BaseProcess
    pipe: Connection
    slots: SharedSlots | None
    tasks: deque[tuple[int, Row]] = field(default_factory=deque)


class LoaderProcesses:
    """Worker processes that prepare items."""

    def __init__(
        self,
        preparation: Prepare,
        n: int,
        buffer: Buffer | None = None,
        dumps: Callable[[Prepare], bytes] = pickle.dumps,
    ) -> None:
        self._buffer = buffer
        try:
            self._preparation = dumps(preparation)
        except Exception as error:
            raise UsageError.of("not-picklable", error=reason(error)) from None
        self._context = multiprocessing.get_context("spawn")
        self._workers = [self._start() for _ in range(n)]

    def work(self, tasks: Iterator[tuple[int, Row]]) -> Iterator[Prepared | Failed]:
        """Distribute tasks and yield results as they arrive, until all are done."""
        again: deque[tuple[int, Row]] = deque()
        suspects: set[int] = set()
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
                    result = _receive(worker.pipe, worker.slots, self._buffer)
                except (EOFError, OSError):
                    failed = self._replace(worker, again, suspects)
                    if failed is not None:
                        yield failed
                    continue
                worker.tasks.popleft()
                if isinstance(result, BaseException):
                    raise result
                yield result

    def close(self) -> None:
        """Stop all workers."""
        for worker in self._workers:
            worker.pipe.close()
        for worker in self._workers:
            worker.process.join(timeout=5)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
            if worker.slots is not None:
                worker.slots.close()

    def _start(self) -> Worker:
        ours, theirs = self._context.Pipe()
        slots = SharedSlots.make()
        place = slots.place if slots is not None else None
        process = self._context.Process(target=_serve, args=(theirs, self._preparation, place), daemon=True)
        process.start()
        theirs.close()
        return Worker(process, ours, slots)

    def _replace(self, worker: Worker, again: deque[tuple[int, Row]], suspects: set[int]) -> Failed | None:
        """Replace a dead worker; its tasks go to others. A task that two have died on is recorded as the cause.

        One death may have come from outside, as when the machine has too little memory.
        """
        worker.process.join()
        worker.pipe.close()
        if worker.slots is not None:
            worker.slots.close()
        code = worker.process.exitcode
        at, row = worker.tasks.popleft()
        again.extend(worker.tasks)
        self._workers[self._workers.index(worker)] = self._start()
        if at in suspects:
            return Failed(at, f"the process that read it died (exit code {code})")
        suspects.add(at)
        again.append((at, row))
        return None


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
        except OSError:  # it is dead; its tasks are taken back when its pipe is read
            return


def _serve(pipe: Connection, pickled: bytes, place: str | None) -> None:
    """Run a worker: receive a task, send a clip, until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent receives the signal, and closes the pipe
    try:
        slots = SharedSlots.open(place) if place is not None else None
        preparation: Prepare = pickle.loads(pickled)  # these bytes are our own
        for turn in count():
            at, row = pickle.loads(pipe.recv_bytes())
            try:
                _send(pipe, preparation(at, row), slots, turn % IN_FLIGHT)
            except EnvironmentFault as error:
                pipe.send(error)
    except (EOFError, OSError):
        return


def _send(pipe: Connection, result: Prepared | Failed, slots: SharedSlots | None, slot: int) -> None:
    """Send a result: arrays through shared memory, in this turn's slot, or through the pipe if they are too large."""
    arrays = (
        []
        if isinstance(result, Failed)
        else [np.ascontiguousarray(p) for p in result.parts if isinstance(p, np.ndarray)]
    )
    fits = slots is not None and sum(a.nbytes for a in arrays) <= SLOT
    if isinstance(result, Failed) or len(arrays) != len(result.parts) or slots is None or not fits:
        pipe.send(result)
        return
    forms = slots.write(slot, arrays)
    pipe.send((Prepared(result.at, [], result.length, result.decode, result.augment, result.pin), slot, forms))


def _receive(pipe: Connection, slots: SharedSlots | None, buffer: Buffer | None) -> Prepared | Failed | Exception:
    message: Prepared | Failed | Exception | tuple[Prepared, int, list[Form]] = pipe.recv()
    if not isinstance(message, tuple):
        return message
    prepared, slot, forms = message
    assert slots is not None  # a worker sends places only where it has a slots
    prepared.parts.extend(slots.read(slot, forms, buffer))
    return prepared


class SharedSlots:
    """Memory shared by a worker and its parent: clips are copied in and out, which is cheaper than a pipe.

    It has as many slots as a worker may have pending tasks. A worker gets a new task only after an earlier result was
    read, so the slot of its turn is always free and no further synchronisation is needed.
    """

    def __init__(self, fd: int, place: str) -> None:
        self._memory = mmap.mmap(fd, SLOT * IN_FLIGHT)
        self._fd, self.place = fd, place

    @classmethod
    def make(cls) -> SharedSlots | None:
        """Make a new one; return None if the system has no such memory."""
        if not hasattr(os, "memfd_create"):
            return None
        fd = os.memfd_create("hitmiss")
        os.ftruncate(fd, SLOT * IN_FLIGHT)
        return cls(fd, f"/proc/{os.getpid()}/fd/{fd}")

    @classmethod
    def open(cls, place: str) -> SharedSlots:
        """Open the parent's memory in the worker."""
        return cls(os.open(place, os.O_RDWR), place)

    def write(self, slot: int, arrays: Sequence[Array]) -> list[Form]:
        """Put arrays into a slot; return their shapes and types."""
        start = slot * SLOT
        for array in arrays:
            np.frombuffer(self._memory, array.dtype, array.size, start)[...] = array.reshape(-1)
            start += array.nbytes
        return [(array.shape, array.dtype.str) for array in arrays]

    def read(self, slot: int, forms: Sequence[Form], buffer: Buffer | None = None) -> list[Array]:
        """Return copies of the arrays in a slot: the parent's only copy before a clip goes to the device."""
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
        """Release the memory."""
        self._memory.close()
        os.close(self._fd)
