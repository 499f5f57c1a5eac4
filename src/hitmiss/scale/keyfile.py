"""The key of streamed scores: read piece by piece as the door reads it, checked, kept small, and joined with the scores.

Ids stay texts, all other columns are codes. Scores get the columns that are taken from the key and `AT`, the row of the key
that their id is in. That row names a trial exactly, so by it repeated ids are found, ids that the key lacks, and ids
without a score.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl

from hitmiss.core import progress
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.question import SYSTEM, ReadSpec
from hitmiss.io.checks import check_ids, check_labels, check_repeats
from hitmiss.io.columns import Match, Reading, understand
from hitmiss.io.diagnostics import Ledger, Place
from hitmiss.io.parse import Table, expand
from hitmiss.io.tables import Stack
from hitmiss.scale.plan import KeyFiles, Shard
from hitmiss.scale.reading import Opened, Read, digest, open_shard, pieces, trials_expected
from hitmiss.stats import sketch

INDEX_BYTES: Final = 40
"""A row while it is joined (its place among the ids), and the row once more where it is scored."""
AT: Final = "row of the key"
UNLISTED: Final = 2**64 - 1
FROM_KEY: Final = -1
"""The position of a column that the file of scores does not have."""
BESIDE: Final = "of the key: "
"""Before the name of a column that both sides have."""


@dataclass(frozen=True)
class Joined(Opened):
    """A file of scores and the key: `match` tells of the columns of both, `own` of those of the scores."""

    own: Match
    key: KeyFiles


@dataclass(frozen=True, eq=False)
class Key:
    """A key that was read."""

    files: KeyFiles
    stack: Stack
    reading: Reading

    @property
    def height(self) -> int:
        """How many trials it lists."""
        return self.stack.frame.height

    @property
    def bytes(self) -> int:
        """What it takes in memory."""
        return _size(self.stack.frame)

    def beside(self, lazy: pl.LazyFrame, first: int = 0) -> pl.LazyFrame:
        """Scores with the columns of the key beside them; `first`: what its first row counts as."""
        taken = [pl.col(name).cast(pl.String) for name in self.files.columns]
        shared = [pl.col(name).cast(pl.String).alias(BESIDE + name) for name in self.files.shared]
        at = pl.int_range(first, first + pl.len(), dtype=pl.UInt64).alias(AT)
        key = self.stack.frame.lazy().select(*self.files.on, *taken, *shared, at)
        mine = pl.exclude([name for name in self.files.columns if name not in self.files.on])
        said = [pl.col(name).alias(f"{BESIDE}{name}, as scored") for name in self.files.shared]
        return lazy.select(mine, *said).join(key, on=list(self.files.on), how="left", maintain_order="left")

    def first(self, system: str | None, options: ReadSpec) -> int:
        """What the first row counts as: the rows of a further system follow on."""
        return 0 if system is None else options.score_columns.index(system) * self.height


def conflicts(lazy: pl.LazyFrame, key: KeyFiles | None, options: ReadSpec) -> bool:
    """Whether scores and key seem to say different things in a column that both have."""
    if key is None or not key.shared:
        return False
    differ = []
    for name in key.shared:
        renamed = dict(options.rename.get(name, {}))
        mine, theirs = (pl.col(c).replace(renamed) for c in (f"{BESIDE}{name}, as scored", BESIDE + name))
        differ.append(((mine != theirs) & pl.col(AT).is_not_null()).any().alias(name))
    return any(lazy.select(differ).collect(engine="streaming").row(0))


def door_pieces(opened: Joined, names: Sequence[str], key: Key, options: ReadSpec, ledger: Ledger) -> Iterator[Table]:
    """A file of scores as the door reads it, with its rows of the key; what the two say differently is found."""
    wanted = (*names, *key.files.on, *key.files.shared)
    picks = {name: at for name, at in opened.own.picks.items() if name in wanted}
    first = key.first(opened.shard.system, options)
    for piece in pieces(Opened(opened.shard, opened.shape, opened.own), picks, Read(), ledger):
        frame = key.beside(piece.frame.lazy(), first).collect()
        _refuse_conflicts(replace(piece, frame=frame), opened.own.theirs, key, options, ledger)
        yield Table(piece.name, frame, piece.first_line, piece.lines)


def _refuse_conflicts(table: Table, theirs: Mapping[str, str], key: Key, options: ReadSpec, ledger: Ledger) -> None:
    for name in key.files.shared:
        stack = Stack.of([table], theirs)
        renamed = dict(options.rename.get(name, {}))
        ours, other = (table.frame[column].replace(renamed) for column in (f"{BESIDE}{name}, as scored", BESIDE + name))
        stack = stack.put(ours.alias(name))
        listed = table.frame[AT].is_not_null()
        if name == "label":
            words = {*ours.unique(), *(w for w in other.unique() if w is not None)}
            reading = understand(sorted(words), options.positive, options.negative, options.positive_value)
            check_labels(stack, name, reading, ledger)
            ours, other = (values.is_in(list(reading.positive_words)) for values in (ours, other))
        differ = ((ours != other) & listed).fill_null(False)
        if differ.any():
            kind = "label-conflict" if name == "label" else "column-conflict"
            what = f"{{n}} row{{s}} with another {name} than in the key"
            fix = "make both files say the same, or take the column out of one"
            ledger.add(kind, what, fix, stack.places(differ, name), stack.title(name), f"the key says another {name}")


def beside(opened: Opened, key: KeyFiles) -> Joined:
    """A file of scores with the columns that are taken from the key."""
    picks = {**opened.match.picks, **dict.fromkeys(key.columns, FROM_KEY)}
    theirs = {**{name: name for name in key.columns}, **opened.match.theirs}
    slices = tuple(dict.fromkeys((*opened.match.slices, *(name for name in key.columns if name != "label"))))
    match = replace(opened.match, picks=picks, theirs=theirs, slices=slices)
    return Joined(opened.shard, opened.shape, match, opened.match, key)


def look_at_key(given: str | Sequence[str], options: ReadSpec, ledger: Ledger) -> list[Opened]:
    """The files of a key, recognised; all must be of one kind."""
    opened = [open_shard(Shard(str(path)), options, ledger, "key") for path in expand(given)]
    for one in opened[1:]:
        if set(one.match.picks) != set(opened[0].match.picks):
            what = f"its columns differ from those of {opened[0].name}"
            raise ledger.stop("shards-differ", what, "give shards of one kind", [Place(one.name, 1)])
    return opened


def files_of(key: Sequence[Opened], scores: Opened, keep: Sequence[str]) -> KeyFiles:
    """What is taken from a key: the label, and the columns to be kept that it has."""
    theirs, ours = key[0].match.picks, scores.match.picks
    on = tuple(name for name in ("item", "target") if name in theirs and name in ours)
    shared = tuple(name for name in theirs if name in ours and name not in ("item", SYSTEM, *on))
    columns = tuple(
        dict.fromkeys(("label", *(name for name in ("target", *keep) if name in theirs and name not in on)))
    )
    paths = tuple(one.shard.path for one in key)
    return KeyFiles(paths, tuple(digest(path)[0] for path in paths), on, columns, shared)


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
    _check_repeats(stack, files, options, ledger)
    key = Key(files, stack, reading)
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


def _check_repeats(stack: Stack, files: KeyFiles, options: ReadSpec, ledger: Ledger) -> None:
    """Ids that are in the key more than once, told as the door tells them: by all columns of their rows."""
    ids = stack.frame.select(files.on)
    named = ids["item"] if files.on == ("item",) else ids.to_struct("id")
    if named.n_unique() == len(named):
        return
    suspects = stack.frame["item"].filter(named.is_duplicated()).unique()
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
