"""The key of streamed scores: read whole, by the reader, then kept small.

Ids stay texts, all other columns become codes, and only those that are needed are kept. The row of the key that holds
the id identifies a trial exactly, so it serves to find repeated ids, ids that the key lacks, and ids without a score.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core import progress
from hitmiss.core.classes import Reading
from hitmiss.core.columns import SYSTEM, find_column
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.score_keys import Keys
from hitmiss.io.checks import check_ids, check_repeats
from hitmiss.io.columns import refuse_undeclared
from hitmiss.io.diagnostics import Diagnostics, Stop
from hitmiss.io.fetch import expand
from hitmiss.io.join import differing, refuse_conflicts
from hitmiss.io.labels import check_labels, understand
from hitmiss.io.loaded import LoadedRows
from hitmiss.io.reader import normalise_values
from hitmiss.io.sides import Side, open_side
from hitmiss.io.tables import look as look_whole
from hitmiss.outofcore.plan import KeyFiles, Shard
from hitmiss.outofcore.shards import OpenedShard, found_columns, names_of_shards
from hitmiss.stats import sketch

INDEX_BYTES: Final = 40
"""The memory per row of a key beside its columns: the hash of its id, its place in the order of hashes, and copies."""
UNLISTED: Final = 2**64 - 1
LEAST_FOR_SCORES: Final = 10**7
"""The memory reserved for the scores, however large the key is."""
Rows = NDArray[np.int64]
NO_ROWS: Final[Rows] = np.zeros(0, dtype=np.int64)
SMALL_KEY_BYTES: Final = 2**28
"""A key of fewer bytes is read whatever memory may be used."""


@dataclass(frozen=True, eq=False)
class Key:
    """A key that has been read."""

    files: KeyFiles
    stack: LoadedRows
    reading: Reading

    @property
    def height(self) -> int:
        """The number of trials it lists."""
        return self.stack.frame.height

    @property
    def bytes(self) -> int:
        """Its size in memory."""
        return int(self.stack.frame.estimated_size()) + INDEX_BYTES * self.height

    @cached_property
    def _index(self) -> tuple[Keys, NDArray[np.intp]]:
        hashes = self._hashed(self.stack.frame)
        order = np.argsort(hashes)
        return hashes[order], order

    def _hashed(self, frame: pl.DataFrame) -> Keys:
        return hashed_ids(frame, self.files.on).to_numpy()

    def rows_of(self, frame: pl.DataFrame) -> Rows:
        """Return the row of the key for each row of scores; -1 if the key lacks its id."""
        (known, order), hashes, on = self._index, self._hashed(frame), list(self.files.on)
        at = np.minimum(np.searchsorted(known, hashes), self.height - 1)
        found = known[at] == hashes
        rows = order[at]
        theirs = self.stack.frame.select(on)[rows]
        same = np.logical_and.reduce([(frame[name] == theirs[name]).to_numpy() for name in on])
        if (found & ~same).any():  # different ids with one hash
            listed = self.stack.frame.select(on).with_row_index(" at")
            joined = frame.select(on).join(listed, on=on, how="left", maintain_order="left")
            return joined[" at"].cast(pl.Int64).fill_null(-1).to_numpy()
        return np.where(found, rows, -1)

    def joined(self, stack: LoadedRows, rows: Rows, options: ReadSpec, ledger: Diagnostics) -> LoadedRows:
        """Return the scores that the key lists, with its columns. Columns that both sides have must agree."""
        if (rows < 0).any():
            stack = stack.keep(pl.Series(rows >= 0))
        theirs = self.stack.frame[rows[rows >= 0]]
        for name in self.files.shared:
            differ, reading = differing(stack.frame[name], theirs[name].cast(pl.String), options)
            if reading is not None:
                check_labels(stack, name, reading, ledger)
            refuse_conflicts(stack, name, differ, ledger)
        return stack.put(*(theirs[name] for name in self.files.columns))


_keys_read: dict[tuple[KeyFiles, str], Key] = {}
"""The last key that this process has read: every shard is joined with it."""


def key_of(files: KeyFiles, options: ReadSpec) -> Key:
    """Return the key, reading it only if this process has not read it before."""
    if (files, repr(options)) not in _keys_read:
        side = _opened_key(files.paths, options, Diagnostics())
        for path, noted, found in zip(files.paths, files.sha256, _hashes_of(side), strict=True):
            if found != noted:
                raise DataError.of("changed-while-read/key", name=Shard(path).name)
        _checked_key(files, side, options, Diagnostics())
    return _keys_read[files, repr(options)]


def open_key(
    given: object,
    options: ReadSpec,
    opened: Sequence[OpenedShard],
    columns: Sequence[str],
    memory: int,
    further: Collection[str] = (),
) -> Key:
    """Read a key as the reader does, check it, and keep what is needed of it.

    `columns` are taken from either side, and so are `further` ones if they exist.
    """
    ledger, picks = Diagnostics(), opened[0].match.picks
    if set(options.runs) - {SYSTEM}:
        raise UsageError.of("key-of-runs/stream")
    paths = list(map(str, expand(given)))
    on_disk = sum(Path(path).stat().st_size for path in paths if Path(path).is_file())
    if on_disk > SMALL_KEY_BYTES:
        _refuse_large(on_disk, memory)
    try:
        side = _opened_key(paths, options, ledger)
        refuse_undeclared(options, (*names_of_shards(opened), *side.names), opened[0].name, ledger)
        theirs = side.match.picks
        on = tuple(name for name in ("item", "target") if name in theirs and name in picks)
        both = tuple(name for name in theirs if name in picks and name not in ("item", *on))
        there = [name for name in further if find_column(name, {**picks, **theirs})]
        wanted = ("target", *found_columns([*columns, *there], {**picks, **theirs}))
        taken = dict.fromkeys(("label", *(name for name in wanted if name in theirs and name not in on)))
        files = KeyFiles(tuple(paths), _hashes_of(side), on, tuple(taken), both, tuple(theirs))
        key = _checked_key(files, side, options, ledger)
    except Stop:
        raise ledger.error() from None
    if ledger.findings:
        raise ledger.error()
    if key.height > sketch.LARGE:
        _refuse_large(key.bytes, memory)
    return key


def _opened_key(paths: Sequence[str], options: ReadSpec, ledger: Diagnostics) -> Side:
    said = options.for_key
    return open_side([look_whole(path, said, ledger) for path in paths], "key", said, ledger)


def _hashes_of(side: Side) -> tuple[str, ...]:
    return tuple(shape.content.sha256 if shape.content else "" for shape in side.shapes)


def _checked_key(files: KeyFiles, side: Side, options: ReadSpec, ledger: Diagnostics) -> Key:
    """Record every fault of a key that the reader would find, and keep what is needed of it."""
    every = normalise_values(side.stack, options)
    check_ids(every, ledger)
    labels = every.frame["label"]
    reading = understand(labels.unique().sort().to_list(), options.positive, options.negative, options.positive_value)
    if reading.problems:
        check_labels(every, "label", reading, ledger)
    names = [name for name in ("item", "target") if name in every.frame.columns]
    check_repeats(every, names, True, options, ledger)
    is_listed_by_target = "target" in names and "target" not in files.on
    if is_listed_by_target and not ledger.findings and labels.len() > every.frame["item"].n_unique():
        # The key lists an item once per target, and the scores do not say which target they are about.
        raise ledger.stop("missing-column/target", [every.place(0)], "target")
    kept = [name for name in dict.fromkeys((*files.columns, *files.shared)) if name not in files.on]
    frame = every.frame.select(*files.on, pl.col(kept).cast(pl.String).cast(pl.Categorical))
    lines = tuple(replace(table, frame=table.frame.select("item")) for table in side.stack.tables)
    key = Key(files, replace(side.stack, tables=lines, frame=frame), reading)
    _keys_read.clear()
    if not ledger.findings:
        _keys_read[files, repr(options)] = key
    progress.report(f"rows of the key {side.shapes[0].name}", key.height, key.height)
    return key


def _refuse_large(size: int, memory: int) -> None:
    if size > memory // 2:
        raise UsageError.of("key-beyond-memory", size=size / 1000000.0, size_2=2 * size / 1000000000.0 + 0.1)


def hashed_ids(frame: pl.DataFrame, names: Sequence[str]) -> pl.Series:
    """Return a hash of what identifies a trial."""
    return frame.select(pl.col(names[0]).hash() if len(names) == 1 else pl.struct(names).hash()).to_series()
