"""The key of streamed scores: read piece by piece as the door reads it, checked, and kept small.

Ids stay texts, all other columns are codes; beside them the hashes of the ids in ascending order, by which the row of
an id is found. Equal hashes prove nothing: the ids themselves are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core import progress
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.question import ReadSpec
from hitmiss.io.checks import check_ids, check_labels, check_repeats
from hitmiss.io.columns import Reading, understand
from hitmiss.io.diagnostics import Ledger, Place
from hitmiss.io.parse import Table
from hitmiss.io.tables import Stack
from hitmiss.scale.plan import KeyFiles, Shard
from hitmiss.scale.reading import Opened, Read, digest, open_shard, pieces, trials_expected
from hitmiss.stats import sketch
from hitmiss.stats.sketch import Keys

INDEX_BYTES: Final = 40
"""A row in the index (the hash of its id, and its place), and the row once more where it is scored."""
Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Key:
    """A key that was read: its rows, and where ids stand in it."""

    files: KeyFiles
    stack: Stack
    reading: Reading
    hashes: Keys
    rows: Rows

    @property
    def height(self) -> int:
        """How many trials it lists."""
        return self.stack.frame.height

    @property
    def bytes(self) -> int:
        """What it takes in memory."""
        return _size(self.stack.frame)

    def find(self, frame: pl.DataFrame, guess: int = 0) -> Rows:
        """The row of each id; -1 where the key has none. `guess`: the row of the first, should the order be the same."""
        on, own = self.files.on, self.stack.frame
        if all(own[name].slice(guess, frame.height).equals(frame[name]) for name in on):
            return np.arange(guess, guess + frame.height)
        hashed = id_hashes(frame, on)
        order = np.argsort(hashed)  # looking up in ascending order stays in the cache
        at = np.empty(len(hashed), dtype=np.int64)
        at[order] = np.searchsorted(self.hashes, hashed[order])
        found = np.full(len(hashed), -1, dtype=np.int64)
        left = np.arange(len(hashed))
        while True:  # again where different ids have one hash
            left = left[at[left] < len(self.hashes)]
            left = left[self.hashes[at[left]] == hashed[left]]
            if not len(left):
                return found
            rows = self.rows[at[left]]
            same = np.ones(len(left), dtype=bool)
            for name in on:
                same &= (own[name].gather(rows) == frame[name].gather(left)).to_numpy()
            found[left[same]] = rows[same]
            left = left[~same]
            at[left] += 1


def id_hashes(frame: pl.DataFrame, on: Sequence[str]) -> Keys:
    """The hash of what names a trial."""
    if len(on) == 1:
        return frame[on[0]].hash().to_numpy()
    return frame.select(pl.struct(list(on)).hash().alias("id"))["id"].to_numpy()


_read: dict[tuple[KeyFiles, str], Key] = {}
"""The last key that this process has read: a pass over a shard needs it again and again."""


def key_of(files: KeyFiles, options: ReadSpec) -> Key:
    """The key, read where this process has not read it before."""
    if (files, repr(options)) not in _read:
        for path, sha in zip(files.paths, files.sha256, strict=True):
            if digest(path)[0] != sha:
                raise DataError(f"{Shard(path).name}: the key has changed since it was first read; begin again")
        read_key(files, options, Ledger(), None)
    return _read[files, repr(options)]


def read_key(files: KeyFiles, options: ReadSpec, ledger: Ledger, memory: int | None) -> Key:
    """Read a key, with every fault that the door would find in the ledger; one that memory cannot hold is refused."""
    _read.clear()
    tables: list[Table] = []
    theirs: dict[str, str] = {}
    rows = size = 0
    sides = [open_shard(Shard(path), options, ledger, "key") for path in files.paths]
    for opened in sides:
        theirs = dict(opened.match.theirs)
        picks = {
            name: opened.match.picks[name] for name in dict.fromkeys((*files.on, "item", *files.columns, *files.shared))
        }
        read, expected = Read(), trials_expected([opened])
        for piece in pieces(opened, picks, read, ledger):
            tables.append(_checked(piece, files, theirs, ledger))
            rows, size = rows + piece.frame.height, size + _size(tables[-1].frame)
            progress.tell(f"rows of the key {opened.name}", min(read.rows, expected), expected)
            _refuse_large(rows, size, memory, sides)
        if not read.rows:
            what = "there is a header and no row under it"
            raise ledger.stop("empty-file", what, "give a file with rows", [Place(opened.name, 1)])
    stack = Stack.of(tables, theirs)
    stack = replace(stack, frame=stack.frame.rechunk())
    reading = _read_words(stack, options, ledger)
    hashes = id_hashes(stack.frame, files.on)
    order = np.argsort(hashes)
    _check_repeats(hashes[order], stack, files, options, ledger)
    key = Key(files, stack, reading, hashes[order], order)
    if not ledger.findings:
        _read[files, repr(options)] = key
    return key


def _checked(piece: Table, files: KeyFiles, theirs: dict[str, str], ledger: Ledger) -> Table:
    """Some rows of a key: ids as texts, all else as codes; only what tells their lines is kept beside them."""
    check_ids(Stack.of([piece], theirs), ledger)
    coded = [name for name in piece.frame.columns if name not in (*files.on, "item")]
    return Table(
        piece.name, piece.frame.with_columns(pl.col(coded).cast(pl.Categorical)), piece.first_line, piece.lines
    )


def _size(frame: pl.DataFrame) -> int:
    return int(frame.estimated_size()) + INDEX_BYTES * frame.height


def _refuse_large(rows: int, size: int, memory: int | None, sides: Sequence[Opened]) -> None:
    if memory is not None and rows > sketch.LARGE and size > memory // 2:
        expected = max(rows, trials_expected(sides))
        enough = 2 * size / rows * expected / 1e9 + 0.1
        raise UsageError(
            f"a key of about {expected:,} rows does not fit into half of --memory, and every piece of the scores is joined with "
            f"it; raise --memory to {enough:.1f}GB, or write the labels into the score files"
        )


def _read_words(stack: Stack, options: ReadSpec, ledger: Ledger) -> Reading:
    renamed = dict(options.rename.get("label", {}))
    labels = stack.frame["label"]
    words = [renamed.get(word, word) for word in labels.unique().cast(pl.String).to_list()]
    reading = understand(sorted(set(words)), options.positive, options.negative, options.positive_value)
    if reading.problems:
        check_labels(stack.put(labels.cast(pl.String).replace(renamed).alias("label")), "label", reading, ledger)
    return reading


def _check_repeats(ascending: Keys, stack: Stack, files: KeyFiles, options: ReadSpec, ledger: Ledger) -> None:
    """Ids that stand in the key more than once, told as the door tells them: by all columns of their rows."""
    twice = np.unique(ascending[1:][ascending[1:] == ascending[:-1]])
    if not len(twice):
        return
    suspects = stack.frame["item"].filter(np.isin(id_hashes(stack.frame, files.on), twice)).unique()
    tables: list[Table] = []
    theirs: dict[str, str] = {}
    for path in files.paths:
        opened = open_shard(Shard(path), options, Ledger(), "key")
        theirs = dict(opened.match.theirs)
        tables += _rows_of(opened, suspects)
    every = Stack.of(tables, theirs)
    for name, values in options.rename.items():
        if name in every.frame.columns:
            every = every.put(pl.col(name).replace(dict(values)))
    names = [name for name in ("item", "target") if name in every.frame.columns]
    check_repeats(every, names, True, options, ledger)
    if "target" in names and "target" not in files.on and not ledger.findings:
        # The key lists an item once a target, and the scores do not say which of them they are about.
        fix = "say which one it is with --column target=NAME"
        raise ledger.stop("missing-column", "there is no column for the target", fix, [every.place(0)], "target")


def _rows_of(opened: Opened, items: pl.Series) -> list[Table]:
    """The whole rows of some ids."""
    found = []
    for piece in pieces(opened, opened.match.picks, Read(), Ledger()):
        where = piece.frame["item"].is_in(items.implode())
        lines = np.array([piece.line(row) for row in where.arg_true().to_list()], dtype=np.int64)
        found.append(Table(piece.name, piece.frame.filter(where), lines=lines))
    return found
