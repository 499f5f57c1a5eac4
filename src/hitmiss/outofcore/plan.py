"""The counting plan and the tallies made by it: how many trials have each score, per cell.

Tallies can be serialised and sealed, and merge exactly.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core import artifacts
from hitmiss.core.errors import DataError, IncompleteRun, UsageError
from hitmiss.core.question import INNER, SYSTEM, OnNan, ReadSpec
from hitmiss.core.tally import COARSE, EXACT, Keys, Tally, bins_of, first_key, keys_of, scores_of
from hitmiss.core.trials import combined, text_codes
from hitmiss.engine.resample import Rows
from hitmiss.io.parse import Finding
from hitmiss.stats.intervals import Steps

# ----------------------------------------------------------------------
# What is counted. It is fixed once and is the same for every engine: polars, DuckDB, a warehouse, the tasks of a
# cluster.
#
#     ShardPlan    how shards are read and which columns distinguish their trials: one plan per evaluation
#     Question     the same for one table whose columns are known: what an engine compiles
#     Window       the scores that a pass covers (all of them in a first pass), and how finely they are counted
#
# An engine answers a question with counts: one row per cell and score (or bin of scores), with the number of trials.
# Counts are whole numbers, so tables may be split and merged in any way. Scores are counted by an order-preserving
# integer key (`stats.keys`). A bin is a prefix of the key's bits, so the bins of all engines are the same. The first
# pass counts bins; the second pass counts the exact scores inside the windows where a figure is decided; figures that
# need every score read them all, window by window.

Turn = Literal["", "sign", "complement"]
"""What makes a higher score mean the positive class: nothing, −score, or 1 − score."""


@dataclass(frozen=True)
class Shard:
    """One file of trials; for a file with scores of several systems, one system.

    Shards are distinguished by content, never by path.
    """

    path: str
    system: str | None = None

    @property
    def name(self) -> str:
        """The file's name, without its folder."""
        return self.path.replace("\\", "/").rpartition("/")[2]


@dataclass(frozen=True)
class KeyFiles:
    """The key of the scores, sent as the paths of its files: each process that makes a pass reads it once.

    sha256    of each file
    on        the columns that identify a trial on both sides
    columns   what is taken from the key: the label, slices
    shared    columns of both sides, which must agree
    """

    paths: tuple[str, ...]
    sha256: tuple[str, ...]
    on: tuple[str, ...] = ("item",)
    columns: tuple[str, ...] = ("label",)
    shared: tuple[str, ...] = ()

    def __repr__(self) -> str:  # identifies a plan: the content of the files, not their paths
        return f"KeyFiles({sorted(self.sha256)}, {self.on}, {self.columns}, {self.shared})"


@dataclass(frozen=True)
class ShardPlan:
    """How shards are read and counted. Tallies made by different plans do not merge.

    options      how files are read, as in the in-memory reader
    keep         the columns that define the cells, besides the label: runs, slices of the groupings, `decision`
    bits         number of key bits by which scores are counted: `EXACT`, or fewer (bins)
    cuts         keys at which bins are split: fixed thresholds, so that counts at them are exact
    turned       whether a higher score means the negative class in the file
    threshold    decide with it (score >= threshold) if `decision` is kept and no column has it
    ids          whether the hash of every id (with a key: its row there) is carried along, to find repeats
    key          the key that the shards are joined with; None if they hold their labels
    engine       what counts: `polars` or `duckdb`; the counts are the same
    """

    options: ReadSpec
    keep: tuple[str, ...] = ()
    bits: int = EXACT
    cuts: tuple[float, ...] = ()
    turned: bool = False
    threshold: float | None = None
    ids: bool = True
    key: KeyFiles | None = None
    engine: str = "polars"

    @property
    def is_exact(self) -> bool:
        """Whether every score is kept."""
        return self.bits == EXACT

    @property
    def cells(self) -> tuple[str, ...]:
        """The columns that define the cells."""
        return ("label", *self.keep)

    @property
    def turn(self) -> Turn:
        """The transformation applied to every score."""
        if not self.turned:
            return ""
        return "complement" if self.options.score_kind == "probability" else "sign"

    @property
    def fingerprint(self) -> str:
        """A hash of every setting: tallies with the same fingerprint can be merged, whichever engine counted them.

        >>> ShardPlan(ReadSpec()).fingerprint == ShardPlan(ReadSpec(), engine="duckdb").fingerprint
        True
        >>> ShardPlan(ReadSpec()).fingerprint == ShardPlan(ReadSpec(), bits=20).fingerprint
        False
        """
        told = [f.name for f in fields(self) if f.name not in ("ids", "engine", "key")]
        told += ["key"] if self.key is not None else []
        settings = [(name, getattr(self, name)) for name in told]
        return hashlib.sha256(repr(settings).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Question:
    """What to count in one table whose columns are known. An engine compiles it (to polars, to SQL).

    columns      our names and those of the table: `score`, and what the cells and the ids need
    cells        the columns that define the cells, `label` first; texts, and empty text for a missing value
    identity     the columns that identify a trial; empty if the table has no ids
    constants    cells that are not in a column: the name of a system, the target
    rename       replacements for the values of cells: (column, ((from, to), …))
    turn         makes a higher score mean the positive class; applied before everything below
    nan          scores that are NaN or null: `refuse` (counted as NaN, so that the caller finds them), `drop`, or
                 `worst`: −inf for labels in `positive`, inf for others
    positive     the words of the positive class, if `nan` or decisions need them
    threshold    if `decision` is a cell and this is given: '1' where score >= threshold, else '0'
    count        the column with the number of trials in each row; None: one
    """

    columns: Mapping[str, str]
    cells: tuple[str, ...] = ("label",)
    identity: tuple[str, ...] = ()
    constants: Mapping[str, str] = field(default_factory=dict)
    rename: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    turn: Turn = ""
    nan: OnNan = "refuse"
    positive: tuple[str, ...] = ()
    threshold: float | None = None
    count: str | None = None


@dataclass(frozen=True)
class Window:
    """The trials that a pass counts, and how finely.

    bits     number of key bits to count by: `EXACT`, or fewer for bins
    ranges   the scores, as ascending ranges (first, last) including both ends; None: all
    cuts     scores at which bins are split
    """

    bits: int = EXACT
    ranges: tuple[tuple[float, float], ...] | None = None
    cuts: tuple[float, ...] = ()

    @cached_property
    def mark(self) -> str:
        """A hash of the window, for the fingerprint of the tallies made with it."""
        return "+" + hashlib.sha256(repr(self).encode()).hexdigest()[:8]


# ----------------------------------------------------------------------
# Executors run the passes: any callable `run(function, arguments) -> results, in the order of the arguments`.
#
# `function` is a module-level function and each entry of `arguments` a tuple of picklable values, so that a pass may
# run in another process or on another machine. Results must come in order, each as soon as it and those before it are
# ready: the caller merges and then discards them, and this keeps the memory bounded.

T = TypeVar("T")


class Executor(Protocol):
    """Calls a function with each of several tuples of arguments."""

    def __call__(self, function: Callable[..., T], arguments: Sequence[tuple[Any, ...]], /) -> Iterator[T]:
        """Yield the results, in the order of the arguments."""


def sequential(function: Callable[..., T], arguments: Sequence[tuple[Any, ...]]) -> Iterator[T]:
    """Make one call after the other in this process; best on one machine, as polars uses every core inside a call.

    >>> list(sequential(divmod, [(7, 2), (9, 4)]))
    [(3, 1), (2, 1)]
    """
    for given in arguments:
        yield function(*given)


def shares_disk(run: Executor) -> bool:
    """Return whether files that a pass writes are visible to the caller; this is not so on a cluster."""
    return run is sequential or isinstance(run, Processes)


class Processes:
    """Makes the calls in separate processes: for many small shards, which one process cannot spread over the cores."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def __call__(self, function: Callable[..., T], arguments: Sequence[tuple[Any, ...]]) -> Iterator[T]:
        """Yield the results in order; at most as many calls run as there are workers, so few results wait in memory."""
        # Forking a process in which polars has started its threads can hang, so processes are spawned.
        with ProcessPoolExecutor(self.workers, mp_context=get_context("spawn")) as pool:
            waiting: deque[Future[T]] = deque()
            for given in arguments:
                waiting.append(pool.submit(function, *given))
                if len(waiting) > self.workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()


# ----------------------------------------------------------------------
# Files that are read several times must not change in between.


@dataclass(frozen=True)
class Stamps:
    """Sizes and modification times of files when the work began."""

    noted: dict[str, tuple[int, int] | None]

    @classmethod
    def of(cls, shards: Sequence[Shard]) -> Stamps:
        """Return the stamps of the files as they are now."""
        return cls({shard.path: stamp(shard.path) for shard in shards})

    def refuse_changes(self) -> None:
        """Refuse files that were written to since."""
        changed = [path for path, noted in self.noted.items() if stamp(path) != noted]
        if changed:
            raise DataError(
                f"{changed[0]} changed while it was read; evaluate again when no other process writes to it"
            )


def stamp(path: str) -> tuple[int, int] | None:
    """Return the size and the modification time of a file; None if it is not there."""
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


# ----------------------------------------------------------------------
# The tally of a shard: how many of its trials have each score, per cell. It can be serialised, and merges exactly.
#
# A cell is a combination of the label word and the values of the kept columns (codec, decision …). Counts are whole
# numbers, so merging is exact and independent of order. A tally records its shards and settings, so that a shard
# counted twice, or with different settings, is found.

Cell = tuple[str, ...]
Counts = NDArray[np.int64]
FORMAT: Final = 2
MOST_CELLS: Final = 200_000
"""The limit on combinations of slices (and units); each costs about a kilobyte, whatever it holds."""
WAITING: Final = 2**23
"""Bins that may wait to be merged, in 64 to 128 MB."""
LOWEST: Final = keys_of([-np.inf])[0]
ZERO: Final = keys_of([0.0])[0]


@dataclass(frozen=True)
class ShardFact:
    """A counted file: its name, hash (empty in a second pass), size, and what was recognised."""

    name: str
    sha256: str
    rows: int
    bytes: int
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Binned:
    """Bins (or whole keys), ascending, and the number of trials in each; None: one each."""

    bins: Keys
    counts: Counts | None = None

    @property
    def total(self) -> int:
        """The number of trials."""
        return len(self.bins) if self.counts is None else int(self.counts.sum())

    @property
    def each(self) -> Counts:
        """The number of trials in each bin."""
        return np.ones(len(self.bins), dtype=np.int64) if self.counts is None else self.counts


NOTHING: Final = Binned(np.zeros(0, dtype=np.uint64))


@dataclass(frozen=True, eq=False)
class ShardTally:
    """The result of one pass over some shards.

    plan        fingerprint of the plan (`ShardPlan.fingerprint`, and the window of a second pass)
    names       the columns that define the cells, `label` first
    shards      the files that were counted
    cells       bins and counts of each cell
    ids         hashes of all ids, in any order, if the plan asks for them and the ids do not ascend anyway
    findings    the faults found; if there are any, the counts must not be used
    noted       counts of what was done while reading: trials dropped or given a score (`on-nan`)
    """

    plan: str
    names: tuple[str, ...]
    shards: tuple[ShardFact, ...]
    cells: Mapping[Cell, Binned]
    ids: Keys | None = None
    findings: tuple[Finding, ...] = ()
    noted: Mapping[str, int] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """The number of trials."""
        return sum(cell.total for cell in self.cells.values())

    @property
    def content(self) -> str:
        """SHA-256 over what was counted: cells, counts and notes, but neither names nor paths of files."""
        about = {"names": self.names, "cells": sorted(self.cells), "noted": dict(self.noted)}
        return hashlib.sha256(
            (artifacts.digest(about) + artifacts.digest_of_arrays(self._arrays())).encode()
        ).hexdigest()

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {}
        for i, cell in enumerate(sorted(self.cells)):
            arrays[f"bins{i}"] = self.cells[cell].bins
            counts = self.cells[cell].counts
            if counts is not None:
                arrays[f"counts{i}"] = counts
        if self.ids is not None:
            arrays["ids"] = self.ids
        return arrays

    def to_bytes(self) -> bytes:
        """Return the tally in its file format: a zip of arrays and a JSON header with a digest over everything."""
        arrays = self._arrays()
        header = {
            "format": FORMAT,
            "plan": self.plan,
            "names": list(self.names),
            "shards": [vars(shard) | {"facts": dict(shard.facts)} for shard in self.shards],
            "cells": [list(cell) for cell in sorted(self.cells)],
            "findings": [vars(f) | {"places": [vars(p) for p in f.places]} for f in self.findings],
            "noted": dict(self.noted),
            "arrays": artifacts.digest_of_arrays(arrays),
        }
        text = json.dumps(artifacts.sealed(header)).encode()
        out = io.BytesIO()
        np.savez(out, allow_pickle=False, header=np.frombuffer(text, dtype=np.uint8), **arrays)
        return out.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes, file: str = "the tally") -> ShardTally:
        """Read a tally from its bytes.

        Raises
        ------
        DataError
                `tally-format`: another version; `malformed-tally`: a field or an array has the wrong form;
                `edited-artifact`: the content does not match its digest; `oversized-archive`, `unreadable-file`: not a
                valid archive.
        """
        arrays = artifacts.load_arrays(data, "tally", file)
        try:
            plain = json.loads(arrays.pop("header").tobytes())
            version = plain["format"]
        except (KeyError, ValueError, TypeError, RecursionError):
            raise DataError(
                f"{file} is damaged, or is not a tally; count its shard again", code="malformed-tally"
            ) from None
        if version != FORMAT:
            raise DataError(
                f"{file} has format {version!r}, this version reads {FORMAT}; count again", code="tally-format"
            )
        header = artifacts.check(_Header, plain, "tally")
        if not artifacts.check_seal(plain, file) or header.arrays != artifacts.digest_of_arrays(arrays):
            raise DataError(
                f"{file} does not match its own digest: it was edited or damaged; count its shard again",
                code="edited-artifact",
            )
        cells = {tuple(cell): _binned(arrays, i, file) for i, cell in enumerate(header.cells)}
        if (
            len(cells) != len(header.cells)
            or any(len(cell) != len(header.names) for cell in cells)
            or not header.shards
        ):
            raise DataError(f"{file}: its cells do not fit its columns; count its shard again", code="malformed-tally")
        ids = _whole(arrays.get("ids"), np.uint64, file)
        return cls(header.plan, header.names, header.shards, cells, ids, header.findings, header.noted)


@dataclass(frozen=True)
class _Header:
    """The fields of a tally's header."""

    format: int
    plan: str
    names: tuple[str, ...]
    shards: tuple[ShardFact, ...]
    cells: tuple[tuple[str, ...], ...]
    findings: tuple[Finding, ...]
    noted: dict[str, int]
    arrays: str
    digest: str


def _whole(array: NDArray[Any] | None, kind: type[Any], file: str) -> Any:
    """Return an array of a tally, checked to be flat and of its type."""
    if array is not None and (array.ndim != 1 or array.dtype != kind):
        raise DataError(
            f"{file} holds {array.dtype} of shape {array.shape} where flat {np.dtype(kind)} belong; count its shard again",
            code="malformed-tally",
        )
    return array


def _binned(arrays: Mapping[str, NDArray[Any]], i: int, file: str) -> Binned:
    """Return bins and counts of a cell, checked: bins ascend, and each count is at least one."""
    bins = _whole(arrays.get(f"bins{i}"), np.uint64, file)
    counts = _whole(arrays.get(f"counts{i}"), np.int64, file)
    sound = bins is not None and bool((bins[1:] > bins[:-1]).all())
    if not sound or (counts is not None and (len(counts) != len(bins) or (counts < 1).any())):
        raise DataError(f"{file}: the counts of cell {i} are not counts; count its shard again", code="malformed-tally")
    return Binned(bins, counts)


def merge_tallies(tallies: Iterable[ShardTally]) -> ShardTally:
    """Merge the tallies of all shards. Different settings and repeated shards are refused.

    Two files with the same bytes are one shard given twice: their trials would be counted twice.
    """
    merged: ShardTally | None = None
    waiting: list[ShardTally] = []
    held = 0
    for tally in tallies:
        _refuse_mixture(merged or (waiting[0] if waiting else None), tally)
        waiting.append(tally)
        held += sum(len(cell.bins) for cell in tally.cells.values())
        # Merging sorts everything, so it waits until the new part is more than twice as large as the merged one: the
        # size then at least triples with each merge, and a few merges are enough for any number of shards.
        if held > max(2 * sum(len(cell.bins) for cell in merged.cells.values()) if merged else 0, WAITING):
            merged, waiting, held = _merge([merged, *waiting] if merged else waiting), [], 0
    if waiting:
        merged = _merge([merged, *waiting] if merged else waiting)
    if merged is None:
        raise DataError("there is no tally to merge; count at least one shard")
    _refuse_twice(merged)
    return merged


def _refuse_mixture(first: ShardTally | None, other: ShardTally) -> None:
    if first is not None and (first.plan, first.names) != (other.plan, other.names):
        raise DataError(
            f"{other.shards[0].name} was counted with other settings than {first.shards[0].name}; "
            "tallies merge only where every setting is the same, so count them again alike"
        )


def _refuse_twice(merged: ShardTally) -> None:
    seen: dict[tuple[str, Any], str] = {}
    for shard in merged.shards:
        content = shard.sha256, shard.facts.get(SYSTEM)
        if shard.sha256 and content in seen:
            raise DataError(
                f"{shard.name} has the same content as {seen[content]}: the shard was given twice; leave one out"
            )
        seen[content] = shard.name


def _merge(parts: list[ShardTally]) -> ShardTally:
    if len(parts) == 1:
        return parts[0]
    keys = sorted({cell for part in parts for cell in part.cells})
    cells = {cell: merge_binned([part.cells[cell] for part in parts if cell in part.cells]) for cell in keys}
    ids = [part.ids for part in parts if part.ids is not None]
    ids = ids if len(ids) == len(parts) else []  # hashes of only some shards are of no use
    noted: dict[str, int] = {}
    for part in parts:
        for name, count in part.noted.items():
            noted[name] = noted.get(name, 0) + count
    shards = sorted((s for part in parts for s in part.shards), key=lambda s: (s.name, s.sha256))
    findings = tuple(f for part in parts for f in part.findings)
    joined = np.concatenate(ids) if ids else None
    return ShardTally(parts[0].plan, parts[0].names, tuple(shards), cells, joined, findings, noted)


def merge_binned(parts: list[Binned]) -> Binned:
    """Add up the counts of equal bins.

    >>> a, b = Binned(np.array([1, 4], dtype=np.uint64)), Binned(np.array([4, 9], dtype=np.uint64))
    >>> merge_binned([a, b]).bins.tolist(), merge_binned([a, b]).each.tolist()
    ([1, 4, 9], [1, 2, 1])
    """
    parts = [part for part in parts if len(part.bins)] or parts[:1]  # a combination of slices may have no trial
    if len(parts) == 1:
        return parts[0]
    if all(part.counts is None for part in parts):
        # a stable sort finds the parts, which are sorted, and merges them
        return counted(np.sort(np.concatenate([part.bins for part in parts]), kind="stable"))
    bins = np.concatenate([part.bins for part in parts])
    counts = np.concatenate([part.each for part in parts])
    order = np.argsort(bins, kind="stable")
    bins, counts = bins[order], counts[order]
    first = np.append(True, bins[1:] != bins[:-1])
    return Binned(bins[first], np.add.reduceat(counts, np.flatnonzero(first)))


PLACE: Final = f"{INNER}place"
PART: Final = f"{INNER}part"
EACH: Final = f"{INNER}n"
"""Columns of an engine's answer. Their prefix is the one that no stored name of a user's column has (see `stored`)."""


def cells_of_counts(answer: pl.DataFrame, cells: Sequence[str], window: Window) -> dict[Cell, Binned]:
    """Convert an engine's answer to the cells of a tally. Rows may come in any order; rows of one group add up.

    `answer` has the columns `cells`, then `score` or, for bins, `PLACE` (and `PART` if there are cuts); and `EACH`,
    unless each row is one trial.

    >>> answer = pl.DataFrame({"label": ["a", "b", "a"], "score": [1.0, -0.0, 0.5], EACH: [2, 1, 3]})
    >>> {cell: binned.each.tolist() for cell, binned in cells_of_counts(answer, ["label"], Window()).items()}
    {('a',): [3, 2], ('b',): [1]}
    """
    if not answer.height:
        return {}
    if window.bits == EXACT:
        keys = keys_of(answer["score"].to_numpy())
    else:
        part = answer[PART].to_numpy() if window.cuts else None
        keys = bins_from_places(answer[PLACE].to_numpy(), window, part)
    counts = answer[EACH].cast(pl.Int64).to_numpy() if EACH in answer.columns else None
    code, values = _cell_codes(answer, cells)
    return dict(zip(values, binned_by(code, keys, counts, len(values)), strict=True))


def binned_by(code: NDArray[Any], keys: Keys, counts: Counts | None, n: int) -> list[Binned]:
    """Count keys separately for each code from 0 to n − 1; `counts` is the number of trials per key (None: one)."""
    order = np.argsort(code.astype(np.uint16) if n < 2**16 else code, kind="stable")  # radix sort for 16-bit codes
    ends = np.cumsum(np.bincount(code, minlength=n))
    found: list[Binned] = []
    for at in np.split(order, ends[:-1]):
        if counts is None:
            found.append(counted(ordered(keys[at])))
            continue
        at = at[np.argsort(keys[at], kind="stable")]
        starts = np.flatnonzero(np.append(True, keys[at][1:] != keys[at][:-1])[: len(at)])
        found.append(Binned(keys[at][starts], np.add.reduceat(counts[at], starts) if len(starts) else counts[at]))
    return found


def bins_from_places(place: NDArray[Any], window: Window, part: NDArray[Any] | None = None) -> Keys:
    """Return the lowest key of each bin, from the highest bits of its scores and the number of cuts passed."""
    raw, sign = place.astype(np.uint64), np.uint64(1 << (window.bits - 1))
    bins = np.where(raw < sign, raw | sign, ~raw & np.uint64((1 << window.bits) - 1))
    lowest: Keys = np.maximum(first_key(bins, window.bits), LOWEST)  # below −inf there are only NaNs
    if part is not None:
        cuts = np.append(np.uint64(0), keys_of(sorted(window.cuts)))
        lowest = np.maximum(lowest, cuts[part.astype(np.int64)])
    return lowest


def _cell_codes(answer: pl.DataFrame, cells: Sequence[str]) -> tuple[NDArray[np.int64], list[Cell]]:
    """Return the number of each row's cell, and the cells."""
    places = [text_codes(answer[name]) for name in cells]
    code, size = combined((codes, len(texts)) for codes, texts in places)
    if size <= 1 << 20:
        row = np.full(size, -1, dtype=np.int64)
        row[code] = np.arange(len(code))  # the last row of each cell
        held = np.flatnonzero(row >= 0)
        number = np.zeros(size, dtype=np.int64)
        number[held] = np.arange(len(held))
        row, code = row[held], number[code]
    else:
        _, row, code = np.unique(code, return_index=True, return_inverse=True)
    if len(row) > MOST_CELLS:
        raise UsageError(
            f"{', '.join(cells[1:])} have more than {MOST_CELLS:,} combinations of values, too many to be counted apart; "
            "leave one of them out, or --stream",
            code="too-many-values",
        )
    columns = [[texts[place] for place in codes[row].tolist()] for codes, texts in places]
    return code, list(zip(*columns, strict=True))


def ranges_of(first: Keys, last: Keys) -> tuple[tuple[float, float], ...]:
    """Convert ranges of keys to ranges of scores.

    >>> ranges_of(keys_of([-1.0]), keys_of([0.0]) - np.uint64(1))  # nothing between the lowest number above 0 and 0
    ((-1.0, -5e-324),)
    """
    lowest, highest = keys_of([-np.inf, np.inf])
    last = np.where(last == ZERO - np.uint64(1), last - np.uint64(1), last)  # the key that −0.0 would have
    ends = (scores_of(np.clip(keys, lowest, highest)) + 0.0 for keys in (first, last))
    return tuple(zip(*(end.tolist() for end in ends), strict=True))


def truncated(keys: Keys, bits: int, cuts: tuple[float, ...]) -> Keys:
    """Return the lowest key of each key's bin; a cut begins a new bin.

    >>> truncated(keys_of([1.0, 1.3, 1.4]), 14, (1.35,)) == keys_of([1.0, 1.25, 1.35])
    array([ True,  True,  True])
    """
    if bits == EXACT:
        return keys
    lowest: Keys = np.maximum(first_key(bins_of(keys, bits), bits), LOWEST)
    for cut in keys_of(sorted(cuts)) if cuts else ():
        lowest[(keys >= cut) & (lowest < cut)] = cut
    return lowest


def counted(keys: Keys) -> Binned:
    """Count ascending keys with repeats."""
    if len(keys) < 2:
        return Binned(keys)
    first = np.append(True, keys[1:] != keys[:-1])
    if first.all():
        return Binned(keys)
    starts = np.flatnonzero(first)
    return Binned(keys[starts], np.diff(np.append(starts, len(keys))).astype(np.int64))


def ordered(keys: Keys) -> Keys:
    """Sort keys in ascending order; polars sorts long arrays in half the time."""
    if len(keys) < 2**16:
        return np.sort(keys)
    return pl.Series(keys).sort().to_numpy()


# ----------------------------------------------------------------------
# The seal on the tallies of one run: each records how many there are, so that a missing one is noticed.

RUN: Final = "run"
PARTS: Final = "parts"


def sealed(tallies: Sequence[ShardTally]) -> list[ShardTally]:
    """Return the tallies of one finished run, each with the run's digest and its number of shards."""
    shards = sorted(shard.sha256 for tally in tallies for shard in tally.shards)
    seal = {RUN: _digest(shards), PARTS: len(shards)}
    return [
        replace(tally, shards=tuple(replace(shard, facts={**shard.facts, **seal}) for shard in tally.shards))
        for tally in tallies
    ]


def refuse_missing(merged: ShardTally) -> None:
    """Refuse tallies that lack a part of their run, and unsealed ones, whose run has not ended."""
    for shard in merged.shards:
        if RUN not in shard.facts:
            raise IncompleteRun(
                f"the tally {shard.name} is of a run that has not ended, so others may be missing; end it first, with "
                "`hitmiss detect … --resume`"
            )
    runs: dict[tuple[str, int], list[str]] = {}
    for shard in merged.shards:
        runs.setdefault((str(shard.facts[RUN]), shard.facts.get(PARTS, 0)), []).append(shard.sha256)
    for (run, parts), shards in runs.items():
        if len(shards) != parts:
            raise DataError(
                f"{parts - len(shards)} of the {parts} tallies of run {run[:12]} are missing; "
                "give all that are in its folder `tallies`",
                code="missing-tally",
            )
        if _digest(shards) != run:
            raise DataError(
                f"the tallies of run {run[:12]} are not those that it was sealed with: one was edited or exchanged; "
                "count the run again",
                code="edited-artifact",
            )


def _digest(shards: Sequence[str]) -> str:
    """Return SHA-256 over the digests of all shards of a run, independent of order."""
    return hashlib.sha256("".join(sorted(shards)).encode()).hexdigest()


# ----------------------------------------------------------------------
# The scores of cells, all in memory as keys: the source of tallies for `measure` if every score was kept.

SPARSE = 4
"""Scores with fewer repeats than this on average are written out one by one: sorting them is faster."""


@dataclass(frozen=True, eq=False)
class ExactCells:
    """Cells whose scores are all known."""

    binned: Sequence[Binned]

    def tally(self, positive: Rows, negative: Rows) -> Tally:
        """Return the scores of some positive and some negative cells, counted together."""
        classes = self.classes(positive, negative)
        if classes is not None:
            return Tally.of_sorted(scores_of(classes[0]), scores_of(classes[1]))
        sides = [merge_binned(side) if side else NOTHING for side in self._sides(positive, negative)]
        keys = np.sort(np.concatenate([side.bins for side in sides]), kind="stable")
        keys = keys[np.append(True, keys[1:] != keys[:-1])[: len(keys)]]
        return Tally(scores_of(keys), *(_below(keys, side) for side in sides))

    def steps(self, positive: Rows, negative: Rows) -> Steps:
        """Return what the AUC of some cells and its variance need."""
        classes: Any = self.classes(
            positive, negative
        )  # keys have the order of the scores, and the AUC needs only the order
        return Steps.of_tally(self.tally(positive, negative)) if classes is None else Steps.of_classes(*classes)

    def classes(self, positive: Rows, negative: Rows) -> tuple[Keys, Keys] | None:
        """Return the keys of both classes, ascending, with repeats; None if they repeat often."""
        sides = self._sides(positive, negative)
        total, held = (sum(f(b) for side in sides for b in side) for f in (lambda b: b.total, lambda b: len(b.bins)))
        return (_in_order(sides[0]), _in_order(sides[1])) if total <= SPARSE * held else None

    def _sides(self, positive: Rows, negative: Rows) -> list[list[Binned]]:
        return [[self.binned[row] for row in rows] for rows in (positive, negative)]


@dataclass(frozen=True, eq=False)
class Resident:
    """Cells whose scores are all known, with the interface of fetching windows of them."""

    plan: str
    names: tuple[str, ...]
    cells: Mapping[Cell, Binned]

    def __call__(self, window: Window) -> ShardTally:
        """Return the trials in a window."""
        found = {cell: self._within(binned, window) for cell, binned in self.cells.items()}
        return ShardTally(self.plan, self.names, (), {cell: b for cell, b in found.items() if len(b.bins)})

    def _within(self, binned: Binned, window: Window) -> Binned:
        first, last = (keys_of([ends[i] for ends in window.ranges or ()]) for i in (0, 1))
        starts = np.searchsorted(binned.bins, first, side="left")
        ends = np.searchsorted(binned.bins, last, side="right")
        where = np.concatenate([np.zeros(0, dtype=np.intp), *map(np.arange, starts, ends)])
        keys = truncated(binned.bins[where], window.bits, window.cuts)
        return summed(keys, None if binned.counts is None else binned.counts[where])


def coarsened(binned: Binned, cuts: tuple[float, ...]) -> Binned:
    """Return the same trials in the coarsest bins."""
    starts = np.append(0, np.flatnonzero(np.diff(binned.bins >> np.uint64(EXACT - COARSE))) + 1)
    starts = np.unique(np.append(starts, np.searchsorted(binned.bins, keys_of(list(cuts))) if cuts else []))
    starts = starts[starts < len(binned.bins)].astype(np.intp)
    counts = np.add.reduceat(binned.each, starts) if len(starts) else np.zeros(0, dtype=np.int64)
    return Binned(truncated(binned.bins[starts], COARSE, cuts), counts)


def summed(keys: Keys, counts: Counts | None) -> Binned:
    """Add up the counts of ascending keys with repeats."""
    if counts is None or not len(keys):
        return counted(keys)
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return Binned(keys[starts], np.add.reduceat(counts, starts))


def _below(keys: Keys, side: Binned) -> Counts:
    """Return, for every i, how many trials of a side have one of the `i` lowest keys."""
    counts = np.zeros(len(keys) + 1, dtype=np.int64)
    np.add.at(counts, 1 + np.searchsorted(keys, side.bins), side.each)
    return np.cumsum(counts, out=counts)


def _in_order(side: Sequence[Binned]) -> Keys:
    """Return every key as often as it occurs, ascending."""
    keys = [b.bins if b.counts is None else np.repeat(b.bins, b.counts) for b in side]
    if len(keys) < 2:
        return keys[0] if keys else np.zeros(0, dtype=np.uint64)
    # a stable sort finds the runs that are already sorted, and merges them
    return np.sort(np.concatenate(keys), kind="stable")


# ----------------------------------------------------------------------
# Runs whose trials all have the same score: bins cannot show this, so the score is looked up if one bin holds all
# trials.

CLOSER: Final = 44
"""Bits that are compared before all are: scores that agree in these have few distinct values."""


def single_scores(tally: ShardTally, plan: ShardPlan, fetch: Callable[[Window], ShardTally]) -> dict[Cell, float]:
    """Return the score of each run that has only one, by the values of its run columns; `tally` holds bins."""
    runs: dict[Cell, list[Cell]] = {}
    for cell in sorted(tally.cells):
        runs.setdefault(cell[1 : 1 + len(plan.options.runs)], []).append(cell)
    ends = {run: _only(tally, cells) for run, cells in runs.items()}
    found: dict[Cell, float] = {}
    for run, key in ends.items():
        for bits in (CLOSER, EXACT):
            key = None if key is None else _only(fetch(_bin(key, bits)), runs[run])
        if key is not None:
            found[run] = float(scores_of(np.array([key], dtype=np.uint64))[0])
    return found


def _only(tally: ShardTally, cells: Sequence[Cell]) -> int | None:
    """Return the only bin of some cells; None if there are several."""
    held: Mapping[Cell, object] = tally.cells
    bins = {int(key) for cell in cells if cell in held for key in tally.cells[cell].bins[:2]}
    return bins.pop() if len(bins) == 1 else None


def _bin(key: int, bits: int) -> Window:
    first = first_key(bins_of(np.array([key], dtype=np.uint64), COARSE), COARSE)
    last = first | np.uint64((1 << (EXACT - COARSE)) - 1)
    return Window(bits, ranges_of(first, last))
