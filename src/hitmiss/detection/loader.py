"""From items to batches: load, transform, fit to length, cut into windows, in one process or several."""

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
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.core.errors import DataError, EnvironmentFault, UnknownName, UsageError
from hitmiss.detection.detector import Array, Item
from hitmiss.detection.pinning import file_digest
from hitmiss.io.manifest import Manifest, inside

# ----------------------------------------------------------------------
# From items to clips: load, transform, fit to length and cut into windows, in this process or in several.
#
# A file that cannot be read becomes a `Failed` and the run continues; so does a file that crashes the process reading
# it.

Row = Mapping[str, str]
T = TypeVar("T")
Number = TypeVar("Number", bound=np.generic)
IN_FLIGHT: Final = 4
"""Pending tasks per worker, so that it does not have to wait for the next."""
SLOT: Final = 2**23
"""Bytes for the clip of one task in the memory shared with a worker: two minutes at 16 kHz."""
SMALL: Final = 8192
"""A larger task is sent only to an idle worker: a busy one may be waiting for the parent to read (a deadlock)."""


@dataclass(frozen=True)
class Prepared:
    """An item ready for the model: its clip or its windows, and how long the preparation took."""

    at: int
    parts: list[Item]
    length: int
    decode: float
    augment: float
    pin: str = ""
    """The content of the source file (see `file_pin`); empty if there is no file."""


class Loaded(NamedTuple):
    """A clip of which only the first part was loaded, and its full length."""

    clip: Item
    length: int


Load = Callable[[Row], Item | Loaded]
Transform = Callable[..., Item]
Fit = Callable[..., Item]
Buffer = Callable[[int], NDArray[np.uint8]]
Form = tuple[tuple[int, ...], str]
"""The shape and the type of an array."""


@dataclass(frozen=True)
class Failed:
    """An item that could not be prepared, and why."""

    at: int
    reason: str


Prepare = Callable[[int, Row], Prepared | Failed]
"""Prepares an item: a `Preparation`, or an object that has it done elsewhere."""


@dataclass(frozen=True)
class Preparation:
    """What is done to an item before it goes to the model. Worker processes need importable functions.

    `load(row)` returns the clip; `transform(clip, row)` a changed one; `fit(clip)` one of the right length;
    `windows(clip)` several. A loader that reads files has a method `pin(row)` that identifies the content (see
    `file_pin`).
    """

    load: Load
    transform: Transform | None = None
    fit: Fit | None = None
    windows: Callable[..., Iterable[Item]] | None = None

    def __call__(self, at: int, row: Row) -> Prepared | Failed:
        """Prepare one item; faults of the item are recorded, faults of the machine are raised."""
        start = time.perf_counter()
        try:
            found = self.load(row)
            pin = self.load.pin(row) if hasattr(self.load, "pin") else ""
            loaded = time.perf_counter()
            whole = found.length if isinstance(found, Loaded) else None
            clip = found.clip if isinstance(found, Loaded) else found
            length = whole or (int(clip.shape[-1]) if isinstance(clip, np.ndarray) and clip.ndim else len(clip))
            clip = clip if self.transform is None else self.transform(clip, row)
            clip = clip if self.fit is None else self.fit(clip)
            parts = [clip] if self.windows is None else list(self.windows(clip))
        except EnvironmentFault:
            raise
        except Exception as error:
            return Failed(at, reason(error))
        return Prepared(at, parts, length, loaded - start, time.perf_counter() - loaded, pin)


def reason(error: BaseException) -> str:
    """Return an error as one line for a record."""
    text = " ".join(str(error).split()) or type(error).__name__
    known = isinstance(error, ValueError | OSError)
    return (text if known else f"{type(error).__name__}: {text}")[:500]


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
    crew = Crew(preparation, workers, buffer)
    try:
        yield from crew.work(tasks)
    finally:
        crew.close()


@dataclass
class Worker:
    """A process, the pipe to it, and its pending tasks."""

    process: BaseProcess
    pipe: Connection
    desk: Desk | None
    tasks: deque[tuple[int, Row]] = field(default_factory=deque)


class Crew:
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
            raise UsageError(
                f"worker processes need load and transform to be functions of a module ({reason(error)}); use workers=0"
            ) from None
        self._context = multiprocessing.get_context("spawn")
        self._workers = [self._hire() for _ in range(n)]

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
                    result = _receive(worker.pipe, worker.desk, self._buffer)
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

    def _replace(self, worker: Worker, again: deque[tuple[int, Row]], suspects: set[int]) -> Failed | None:
        """Replace a dead worker; its tasks go to others. A task that two have died on is recorded as the cause.

        One death may have come from outside, as when the machine has too little memory.
        """
        worker.process.join()
        worker.pipe.close()
        if worker.desk is not None:
            worker.desk.close()
        code = worker.process.exitcode
        at, row = worker.tasks.popleft()
        again.extend(worker.tasks)
        self._workers[self._workers.index(worker)] = self._hire()
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
        desk = Desk.open(place) if place is not None else None
        preparation: Prepare = pickle.loads(pickled)  # these bytes are our own
        for turn in count():
            at, row = pickle.loads(pipe.recv_bytes())
            try:
                _send(pipe, preparation(at, row), desk, turn % IN_FLIGHT)
            except EnvironmentFault as error:
                pipe.send(error)
    except (EOFError, OSError):
        return


def _send(pipe: Connection, result: Prepared | Failed, desk: Desk | None, slot: int) -> None:
    """Send a result: arrays through shared memory, in this turn's slot, or through the pipe if they are too large."""
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
    pipe.send((Prepared(result.at, [], result.length, result.decode, result.augment, result.pin), slot, forms))


def _receive(pipe: Connection, desk: Desk | None, buffer: Buffer | None) -> Prepared | Failed | Exception:
    message: Prepared | Failed | Exception | tuple[Prepared, int, list[Form]] = pipe.recv()
    if not isinstance(message, tuple):
        return message
    prepared, slot, forms = message
    assert desk is not None  # a worker sends places only where it has a desk
    prepared.parts.extend(desk.take(slot, forms, buffer))
    return prepared


class Desk:
    """Memory shared by a worker and its parent: clips are copied in and out, which is cheaper than a pipe.

    It has as many slots as a worker may have pending tasks. A worker gets a new task only after an earlier result was
    read, so the slot of its turn is always free and no further synchronisation is needed.
    """

    def __init__(self, fd: int, place: str) -> None:
        self._memory = mmap.mmap(fd, SLOT * IN_FLIGHT)
        self._fd, self.place = fd, place

    @classmethod
    def make(cls) -> Desk | None:
        """Make a new one; return None if the system has no such memory."""
        if not hasattr(os, "memfd_create"):
            return None
        fd = os.memfd_create("hitmiss")
        os.ftruncate(fd, SLOT * IN_FLIGHT)
        return cls(fd, f"/proc/{os.getpid()}/fd/{fd}")

    @classmethod
    def open(cls, place: str) -> Desk:
        """Open the parent's memory in the worker."""
        return cls(os.open(place, os.O_RDWR), place)

    def lay(self, slot: int, arrays: Sequence[Array]) -> list[Form]:
        """Put arrays into a slot; return their shapes and types."""
        start = slot * SLOT
        for array in arrays:
            np.frombuffer(self._memory, array.dtype, array.size, start)[...] = array.reshape(-1)
            start += array.nbytes
        return [(array.shape, array.dtype.str) for array in arrays]

    def take(self, slot: int, forms: Sequence[Form], buffer: Buffer | None = None) -> list[Array]:
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


Entry: TypeAlias = tuple[Literal["value"], T] | tuple[Literal["error"], BaseException] | tuple[Literal["end"], None]


class Ahead(Generic[T]):
    """An iterator that runs in a thread, a few results ahead of its consumer.

    >>> list(Ahead(iter(range(5)), 2))
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


# ----------------------------------------------------------------------
# Loaders for the rows of a manifest: sound, a picture, a text, or only the path. All can be sent to worker processes.

INPUTS: Final = ("audio", "image", "text", "path")


def file_pin(path: Path) -> str:
    """Identify a file by content: a short SHA-256, its size and its modification time."""
    status = path.stat()
    return f"{file_digest(path)}:{status.st_size}:{status.st_mtime_ns}"


def is_pinned(path: Path, pin: str) -> bool:
    """Return whether a file still matches a pin; it is read only if its size or modification time has changed."""
    digest, _, status = pin.partition(":")
    try:
        now = path.stat()
        return f"{now.st_size}:{now.st_mtime_ns}" == status or file_digest(path) == digest
    except OSError:
        return False


class ReadsFiles:
    """A loader of the files that a manifest names, relative to its root."""

    root: Path | None

    def path(self, row: Row) -> Path:
        """Return the file of a row."""
        return inside(self.root, row["file"])

    def pin(self, row: Row) -> str:
        """Return the pin of the content of a row's file."""
        return file_pin(self.path(row))


@dataclass(frozen=True)
class AudioLoader(ReadsFiles):
    """Loads the sound of a row's file: mono float32 at the detector's rate; at most `first` samples of a long file."""

    root: Path | None
    sample_rate: int
    first: int | None = None

    def __call__(self, row: Row) -> Array | Loaded:
        from hitmiss.media.audio import length_of, load_audio

        path = self.path(row)
        if self.first is None:
            return load_audio(path, self.sample_rate)
        clip = load_audio(path, self.sample_rate, first_seconds=self.first / self.sample_rate)
        return Loaded(clip[: self.first], length_of(path, self.sample_rate) or len(clip))


@dataclass(frozen=True)
class ImageLoader(ReadsFiles):
    """Loads the picture of a row's file: height × width × red, green, blue, from 0 to 255."""

    root: Path | None

    def __call__(self, row: Row) -> Array:
        from hitmiss.media.image import load_image

        return load_image(self.path(row))


@dataclass(frozen=True)
class PathLoader(ReadsFiles):
    """Returns the path of a row's file, for programs that read it themselves."""

    root: Path | None

    def __call__(self, row: Row) -> str:
        return str(self.path(row))


@dataclass(frozen=True)
class ColumnLoader:
    """Returns the text in a column of the manifest.

    >>> ColumnLoader("text")({"item": "1", "text": "hello"})
    'hello'
    """

    column: str

    def __call__(self, row: Row) -> str:
        return str(row[self.column])


def make_loader(
    kind: str, manifest: Manifest, sample_rate: int | None, column: str = "text", first: int | None = None
) -> Load:
    """Return the loader for a kind of input; for sound, only the `first` samples if no more are used."""
    if kind not in INPUTS:
        raise UnknownName("input", kind, INPUTS)
    if kind == "audio":
        return AudioLoader(manifest.root, sample_rate or 16000, first)
    if kind == "image":
        return ImageLoader(manifest.root)
    if kind == "path":
        return PathLoader(manifest.root)
    if column not in manifest.frame.columns:
        raise UnknownName("column of the manifest", column, manifest.frame.columns)
    return ColumnLoader(column)


# ----------------------------------------------------------------------
# Clips of one length: each is fitted by itself, before it goes into a batch, so that padding is never repeated as
# sound.
#
# Rules for a clip that is too short: `tile` repeats it, `mirror` plays it forwards and backwards, `zero` adds silence,
# `truncate` leaves it short. A clip that is too long is cropped: `first` keeps the beginning, `centre` the middle,
# `random` a part at a random position.

LengthRule = Literal["tile", "mirror", "zero", "truncate"]
Crop = Literal["first", "centre", "random"]
Pooling = Literal["mean", "median", "min", "max"]
LENGTH_RULES: Final = get_args(LengthRule)
CROPS: Final = get_args(Crop)
POOLINGS: Final[dict[str, Callable[[NDArray[np.float64]], np.float64]]] = {
    "mean": np.mean,
    "median": np.median,
    "min": np.min,
    "max": np.max,
}
SILENCE: Final = -1


def fit_length(
    clip: NDArray[Number],
    cut_length: int | None,
    rule: LengthRule = "tile",
    *,
    crop: Crop = "first",
    rng: np.random.Generator | None = None,
) -> NDArray[Number]:
    """Return the clip with `cut_length` samples (None: unchanged); the last axis is time.

    >>> fit_length(np.array([1, 2, 3]), 7).tolist(), fit_length(np.array([1, 2, 3]), 2).tolist()
    ([1, 2, 3, 1, 2, 3, 1], [1, 2])
    >>> fit_length(np.array([1, 2, 3]), 6, "mirror").tolist(), fit_length(np.array([1, 2]), 4, "zero").tolist()
    ([1, 2, 3, 2, 1, 2], [1, 2, 0, 0])
    """
    if cut_length is None or clip.shape[-1] == cut_length:
        return clip
    at = positions(clip.shape[-1], cut_length, rule, crop=crop, rng=rng)
    return np.where(at == SILENCE, clip.dtype.type(0), clip[..., at])


def positions(
    n: int,
    cut_length: int,
    rule: LengthRule = "tile",
    *,
    crop: Crop = "first",
    rng: np.random.Generator | None = None,
) -> NDArray[np.intp]:
    """Return which of a clip's `n` samples is at each position of the fitted clip; `SILENCE` (-1) for padding.

    >>> positions(2, 5).tolist(), positions(5, 3, crop="centre").tolist()
    ([0, 1, 0, 1, 0], [1, 2, 3])
    """
    _check(n, cut_length, rule, crop)
    if n >= cut_length:
        return _start(n - cut_length, crop, rng) + np.arange(cut_length)
    places = np.arange(n if rule == "truncate" else cut_length)
    if rule == "tile":
        return places % n
    if rule == "mirror":
        turn = places % max(2 * n - 2, 1)
        return np.minimum(turn, 2 * n - 2 - turn)
    return np.where(places < n, places, SILENCE)


def _check(n: int, cut_length: int, rule: str, crop: str) -> None:
    if n < 1:
        raise DataError("an empty clip cannot be brought to a length")
    if cut_length < 1:
        raise UsageError(f"cut_length is a number of samples above 0; found {cut_length}")
    if rule not in LENGTH_RULES:
        raise UnknownName("length rule", rule, LENGTH_RULES)
    if crop not in CROPS:
        raise UnknownName("crop", crop, CROPS)


def _start(spare: int, crop: Crop, rng: np.random.Generator | None) -> int:
    if crop == "random":
        if rng is None:
            raise UsageError("a random crop needs a generator: rng=…, one per clip")
        return int(rng.integers(spare + 1))
    return spare // 2 if crop == "centre" else 0


def windows(clip: NDArray[Number], length: int, hop: int | None = None) -> NDArray[Number]:
    """Cut a long clip into overlapping windows (window × sample) that cover it; tile a short one to one window.

    >>> windows(np.arange(7), 4, 2).tolist()
    [[0, 1, 2, 3], [2, 3, 4, 5], [3, 4, 5, 6]]
    """
    hop = length // 2 if hop is None else hop
    if not 1 <= hop <= length:
        raise UsageError(f"windows of {length} samples must advance by 1 to {length}; found {hop}")
    n = clip.shape[-1]
    if n <= length:
        return fit_length(clip, length)[None]
    starts = [*range(0, n - length, hop), n - length]
    return np.stack([clip[s : s + length] for s in starts])


def pool(scores: ArrayLike, how: Pooling = "mean") -> float:
    """Pool the scores of a clip's windows into one; `min` detects a spoofed part of an otherwise real clip.

    >>> pool([2.0, -1.0, 2.0]), pool([2.0, -1.0, 2.0], "min")
    (1.0, -1.0)
    """
    if how not in POOLINGS:
        raise UnknownName("pooling", how, POOLINGS)
    values = np.asarray(scores, dtype=np.float64)
    if not values.size:
        raise DataError("there are no window scores to pool")
    return float(POOLINGS[how](values))


# ----------------------------------------------------------------------
# Clips into batches: clips of similar length share one of bounded size, so that little or nothing is padded.
#
# If the detector accepts clips of several lengths at once (`ragged`), or the caller accepts padding, clips of similar
# length share a batch. Otherwise only clips of exactly one shape do: then no clip's score can depend on the others in
# its batch.
#
# A batch is released as soon as clips of one shape fill it, or else when the pool is full: one batch at a time, so that
# loading and the model run in parallel instead of waiting for each other in turns.

POOL: Final = 8
"""How many batches' worth of clips are gathered where lengths differ."""


@dataclass(frozen=True)
class Piece:
    """A clip, or one of its windows: one row of a batch."""

    at: int
    part: int
    n_parts: int
    clip: Item

    @property
    def length(self) -> int:
        """The number of samples, or characters of a text: pieces are sorted by it."""
        return int(self.clip.shape[-1]) if isinstance(self.clip, np.ndarray) and self.clip.ndim else len(self.clip)

    @property
    def size(self) -> int:
        """The number of values: samples of a sound, three per pixel of a picture, characters of a text."""
        return int(self.clip.size) if isinstance(self.clip, np.ndarray) else len(self.clip)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that two clips must share to be in one array; texts always match."""
        return self.clip.shape if isinstance(self.clip, np.ndarray) else ()


@dataclass
class Budget:
    """The limits of one batch: `units` in all (clips × the largest), and at most `items` clips."""

    units: float
    items: int

    def fits(self, n: int, largest: int) -> bool:
        """Return whether n clips, the largest of this size, fit. A single clip always fits."""
        return n <= 1 or (n <= self.items and n * largest <= self.units)

    def shrink(self, n: int, largest: int) -> None:
        """Halve the limit from now on, because a batch of n clips did not fit in memory."""
        self.units = max(min(self.units, n * largest / 2), 1.0)
        self.items = max(min(self.items, n // 2), 1)


@dataclass
class Pool:
    """Collects pieces and returns them as batches."""

    budget: Budget
    may_mix: bool = False
    pieces: list[Piece] = field(default_factory=list)
    _units: float = 0.0
    _shapes: Counter[tuple[int, ...]] = field(default_factory=Counter)

    def add(self, piece: Piece) -> Iterator[list[Piece]]:
        """Add a piece; yield the batches that are due."""
        self.pieces.append(piece)
        self._units += piece.size
        self._shapes[piece.shape] += 1
        alike = self._shapes[piece.shape]
        is_array = isinstance(piece.clip, np.ndarray)
        if is_array and not self.budget.fits(alike + 1, piece.size):
            yield self._taken([p for p in self.pieces if p.shape == piece.shape])
        while self._units > POOL * self.budget.units or len(self.pieces) >= POOL * self.budget.items:
            yield self.take()

    def take(self) -> list[Piece]:
        """Return a batch with the oldest piece and those nearest to it in length; empty if there is nothing left."""
        if not self.pieces:
            return []
        order = sorted(self.pieces, key=lambda p: (p.length, p.shape, p.at, p.part))
        at = order.index(self.pieces[0])
        return self._taken(around(order, at, self.budget, self.may_mix))

    def _taken(self, batch: list[Piece]) -> list[Piece]:
        gone = {id(piece) for piece in batch}
        self.pieces = [piece for piece in self.pieces if id(piece) not in gone]
        self._units -= sum(piece.size for piece in batch)
        self._shapes -= Counter(piece.shape for piece in batch)
        return batch


def around(order: Sequence[Piece], at: int, budget: Budget, may_mix: bool) -> list[Piece]:
    """Return the piece at a position of a sorted list and its neighbours, nearest first, within the budget.

    >>> clips = [Piece(i, 0, 1, np.zeros(n)) for i, n in enumerate([4, 4, 5, 9])]
    >>> [p.at for p in around(clips, 0, Budget(10, 64), may_mix=True)]
    [0, 1]
    >>> [p.at for p in around(clips, 2, Budget(100, 64), may_mix=True)], [p.at for p in around(clips, 2, Budget(100, 64), False)]
    ([0, 1, 2, 3], [2])
    """
    low = high = at
    largest, middle = order[at].size, order[at]
    while True:
        sides = [i for i in (low - 1, high + 1) if 0 <= i < len(order)]
        sides = [i for i in sides if may_mix or order[i].shape == middle.shape]
        sides = [i for i in sides if budget.fits(high - low + 2, max(largest, order[i].size))]
        if not sides:
            return list(order[low : high + 1])
        nearest = min(sides, key=lambda i: (abs(order[i].length - middle.length), i))
        low, high, largest = min(low, nearest), max(high, nearest), max(largest, order[nearest].size)


def collate(pieces: Sequence[Piece], is_ragged: bool) -> Array | list[Item]:
    """Return the clips of a batch in the detector's form: one array if all shapes are equal, a list if they may differ.

    Texts stay a list. Clips of several lengths for a detector that needs one length are padded with zeros at the end.
    """
    clips = [p.clip for p in pieces if isinstance(p.clip, np.ndarray)]
    if len(clips) < len(pieces):
        return [p.clip for p in pieces]
    if len({clip.shape for clip in clips}) == 1:
        return np.stack(clips)
    if is_ragged:
        return list(clips)
    longest = max(p.length for p in pieces)
    out = np.zeros((len(clips), *clips[0].shape[:-1], longest), dtype=clips[0].dtype)
    for row, clip in zip(out, clips, strict=True):
        row[..., : clip.shape[-1]] = clip
    return out
