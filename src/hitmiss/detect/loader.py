"""Items to batches: loaded, transformed, brought to length, cut into windows, in one process or several."""

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.core.errors import DataError, EnvironmentFault, UnknownName, UsageError
from hitmiss.detect.pinning import file_digest
from hitmiss.io.manifest import Manifest, inside

# ----------------------------------------------------------------------
# Items to clips: loaded, transformed, brought to length and cut into windows; in this process or in several.
#
# A file that cannot be read becomes a `Failed` and the run goes on; so does one that kills the process that reads it.

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
    pin: str = ""
    """The file that it was made of, by content (see `file_pin`); empty where it was none."""


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
    several. A loader that reads files has a method `pin(row)` that says by what content (see `file_pin`).
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
            pin = self.load.pin(row) if hasattr(self.load, "pin") else ""
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
        return Prepared(at, parts, length, loaded - start, time.perf_counter() - loaded, pin)


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
    pipe.send((Prepared(result.at, [], result.length, result.decode, result.augment, result.pin), slot, forms))


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


# ----------------------------------------------------------------------
# What is loaded for a row of a manifest: sound, a picture, a text, or the path alone. All can be sent to worker processes.

INPUTS: Final = ("audio", "image", "text", "path")


def file_pin(path: Path) -> str:
    """A file by content: a short SHA-256, its size and the time of its last change."""
    status = path.stat()
    return f"{file_digest(path)}:{status.st_size}:{status.st_mtime_ns}"


def is_pinned(path: Path, pin: str) -> bool:
    """Whether a file still holds what a pin says; it is read only where its size or time has changed."""
    digest, _, status = pin.partition(":")
    try:
        now = path.stat()
        return f"{now.st_size}:{now.st_mtime_ns}" == status or file_digest(path) == digest
    except OSError:
        return False


class ReadsFiles:
    """A loader of the files that a manifest names, below its root."""

    root: Path | None

    def path(self, row: Mapping[str, Any]) -> Path:
        """The file of a row."""
        return inside(self.root, row["file"])

    def pin(self, row: Mapping[str, Any]) -> str:
        """What the file of a row holds."""
        return file_pin(self.path(row))


@dataclass(frozen=True)
class AudioLoader(ReadsFiles):
    """The sound of a row's file: mono float32 at the detector's rate; of a long file no more than `first` samples."""

    root: Path | None
    sample_rate: int
    first: int | None = None

    def __call__(self, row: Mapping[str, Any]) -> Any:
        from hitmiss.media.audio import length_of, load_audio

        path = self.path(row)
        if self.first is None:
            return load_audio(path, self.sample_rate)
        clip = load_audio(path, self.sample_rate, first_seconds=self.first / self.sample_rate)
        return Loaded(clip[: self.first], length_of(path, self.sample_rate) or len(clip))


@dataclass(frozen=True)
class ImageLoader(ReadsFiles):
    """The picture of a row's file: height × width × red, green, blue, from 0 to 255."""

    root: Path | None

    def __call__(self, row: Mapping[str, Any]) -> Any:
        from hitmiss.media.image import load_image

        return load_image(self.path(row))


@dataclass(frozen=True)
class PathLoader(ReadsFiles):
    """The path of a row's file, for programs that read it themselves."""

    root: Path | None

    def __call__(self, row: Mapping[str, Any]) -> str:
        return str(self.path(row))


@dataclass(frozen=True)
class ColumnLoader:
    """The text that stands in a column of the manifest.

    >>> ColumnLoader("text")({"item": "1", "text": "hello"})
    'hello'
    """

    column: str

    def __call__(self, row: Mapping[str, Any]) -> str:
        return str(row[self.column])


def make_loader(
    kind: str, manifest: Manifest, sample_rate: int | None, column: str = "text", first: int | None = None
) -> Any:
    """The loader of that kind of input; of sound the `first` samples alone, where no more is used."""
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
# Clips to one length, each by itself and before they are put into a batch, so that padding is never repeated as sound.
#
# Rules for a clip that is too short: `tile` repeats it, `mirror` plays it to and fro, `zero` adds silence, `truncate`
# leaves it short. What is too long is cropped: `first` keeps the beginning, `centre` the middle, `random` a place drawn
# from a generator.

LengthRule = Literal["tile", "mirror", "zero", "truncate"]
Crop = Literal["first", "centre", "random"]
Pooling = Literal["mean", "median", "min", "max"]
LENGTH_RULES: Final = get_args(LengthRule)
CROPS: Final = get_args(Crop)
POOLINGS: Final[dict[str, Any]] = {"mean": np.mean, "median": np.median, "min": np.min, "max": np.max}
SILENCE: Final = -1


def fit_length(
    clip: NDArray[Any],
    cut_length: int | None,
    rule: LengthRule = "tile",
    *,
    crop: Crop = "first",
    rng: np.random.Generator | None = None,
) -> NDArray[Any]:
    """The clip with `cut_length` samples (None: as it is); the last axis is time.

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
    """Which of a clip's `n` samples stands at each place of the fitted clip; `SILENCE` (-1) for none.

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
            raise UsageError("a random crop needs a generator: rng=…, one a clip")
        return int(rng.integers(spare + 1))
    return spare // 2 if crop == "centre" else 0


def windows(clip: NDArray[Any], length: int, hop: int | None = None) -> NDArray[Any]:
    """A long clip as overlapping windows (window × sample) that cover it to the end; a short one is tiled to one.

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
    """One score for a clip from those of its windows; `min` finds a spoofed part of a clip that is real elsewhere.

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
# Clips into batches: neighbours in length share one, and its size is bounded, so that little or nothing is padded.
#
# Where the detector takes clips of several lengths at once (`ragged`), or the caller accepts padding, neighbours in length
# share a batch. Else only clips of exactly one shape do: then no clip's score can depend on its company.
#
# A batch leaves as soon as clips of one shape fill it, and else when the pool is full: one at a time, so that loading and
# the model never wait for each other in turns.

POOL: Final = 8
"""How many batches' worth of clips are gathered where lengths differ."""


@dataclass(frozen=True)
class Piece:
    """A clip, or one of its windows: what takes one row of a batch."""

    at: int
    part: int
    n_parts: int
    clip: Any

    @property
    def length(self) -> int:
        """Samples along time, or characters of a text: what neighbours are alike in."""
        return int(self.clip.shape[-1]) if isinstance(self.clip, np.ndarray) and self.clip.ndim else len(self.clip)

    @property
    def size(self) -> int:
        """Numbers in it: samples of a sound, three for each pixel of a picture, characters of a text."""
        return int(self.clip.size) if isinstance(self.clip, np.ndarray) else len(self.clip)

    @property
    def shape(self) -> tuple[int, ...]:
        """What two clips must share to stand in one array; texts always do."""
        return self.clip.shape if isinstance(self.clip, np.ndarray) else ()


@dataclass
class Budget:
    """How much goes into one batch: `units` in all (clips × the largest), and at most `items` clips."""

    units: float
    items: int

    def fits(self, n: int, largest: int) -> bool:
        """Whether n clips, the largest of this size, are not too much. One clip always fits."""
        return n <= 1 or (n <= self.items and n * largest <= self.units)

    def shrink(self, n: int, largest: int) -> None:
        """A batch of n clips was too much for the memory: ask for half of it from now on."""
        self.units = max(min(self.units, n * largest / 2), 1.0)
        self.items = max(min(self.items, n // 2), 1)


@dataclass
class Pool:
    """Gathers pieces and gives them back as batches."""

    budget: Budget
    may_mix: bool = False
    pieces: list[Piece] = field(default_factory=list)
    _units: float = 0.0
    _shapes: Counter[tuple[int, ...]] = field(default_factory=Counter)

    def add(self, piece: Piece) -> Iterator[list[Piece]]:
        """Put a piece in; the batches that are due, if any are."""
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
        """A batch with the oldest piece and those nearest to it in length; empty when there is nothing left."""
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
    """The piece at a place of a sorted list, and its neighbours on both sides, nearest first, within the budget.

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


def collate(pieces: Sequence[Piece], is_ragged: bool) -> Any:
    """The clips of a batch as the detector wants them: one array where the shapes are one, a list where it may vary.

    Texts stay a list. Clips of several lengths for a detector that takes none are padded with zeros at the end.
    """
    clips = [p.clip for p in pieces]
    if not all(isinstance(clip, np.ndarray) for clip in clips):
        return clips
    if len({clip.shape for clip in clips}) == 1:
        return np.stack(clips)
    if is_ragged:
        return clips
    longest = max(p.length for p in pieces)
    out = np.zeros((len(clips), *clips[0].shape[:-1], longest), dtype=clips[0].dtype)
    for row, clip in zip(out, clips, strict=True):
        row[..., : clip.shape[-1]] = clip
    return out
