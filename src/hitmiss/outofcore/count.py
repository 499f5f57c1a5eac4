"""Count shards: read in pieces, check like the reader, join with the key, and count the scores of every cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core import progress
from hitmiss.core.classes import Reading, same_class
from hitmiss.core.columns import SYSTEM, find_column, user_name
from hitmiss.core.errors import DataError, EnvironmentFault, UnknownName, UsageError
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.tally import Keys, keys_of
from hitmiss.core.trials import FIXED
from hitmiss.io import tables
from hitmiss.io.cells import check_labels, check_scores, to_numbers, understand
from hitmiss.io.checks import (
    SHOWN_IDS,
    check_ids,
    check_repeats,
    differing,
    no_common_id,
    refuse_conflicts,
    refuse_missing,
)
from hitmiss.io.columns import SYSTEM_PREFIX, Match, Role, recognise, refuse_undeclared
from hitmiss.io.parse import GZIP, Kinds, Ledger, Place, Shape, Stop, Table, digest, expand, quoted
from hitmiss.io.reader import Side, Words, look_by_plugin, names_in, open_side, read_words, settle, worst_scores
from hitmiss.io.tables import Read, Stack, damaged_parquet, is_plain_number
from hitmiss.io.tables import look as look_whole
from hitmiss.outofcore.cells import NOTHING, SPARSE, Binned, Disk, Kept, merge_binned, stretches
from hitmiss.outofcore.plan import (
    SHOWN,
    Cell,
    Executor,
    KeyFiles,
    Shard,
    ShardFact,
    ShardPlan,
    ShardTally,
    cell_codes,
    cells_of,
    merge_tallies,
    sequential,
)
from hitmiss.outofcore.units import UnitRuns
from hitmiss.stats import sketch

# ----------------------------------------------------------------------
# Shards whose columns are known, read in pieces by the reader.

PACKED: Final = 6
"""How much longer a compressed text becomes, roughly."""


@dataclass(frozen=True)
class Opened:
    """A shard whose columns are known: its first rows, what they were recognised as, and about how many trials it has."""

    shard: Shard
    shape: Shape
    match: Match
    trials: int = 0

    @property
    def name(self) -> str:
        """The file's name, without its folder."""
        return self.shard.name

    @property
    def is_parquet(self) -> bool:
        """Whether the file is a Parquet file."""
        return self.shape.content is None

    def pieces(self, names: Sequence[str], read: Read, ledger: Ledger, kinds: Kinds | None = None) -> Iterator[Table]:
        """Yield columns of the file in pieces (see `io.tables.pieces`)."""
        picks = {name: at for name, at in self.match.picks.items() if name in names}
        match = self.match
        for piece in tables.pieces(
            self.shard.path, self.shape, match.has_header, match.numeric, picks, read, ledger, kinds
        ):
            progress.report(f"rows of {self.name}", read.rows, None)
            yield piece


def open_shard(shard: Shard, options: ReadSpec, ledger: Ledger, role: Role = "both") -> Opened:
    """Look at the beginning of a file and recognise its columns, like the in-memory reader."""
    shape = look_by_plugin(shard.path, role, options, ledger) or tables.look_at_head(shard.path, options, ledger)
    return Opened(shard, shape, recognise(shape, role, options, ledger), _trials_of(shard, shape))


def _trials_of(shard: Shard, shape: Shape) -> int:
    """Return as many trials as a Parquet file declares; of a text, about how many, judged by its size."""
    if shape.is_read and shape.frame is not None:
        return shape.frame.height
    path = Path(shard.path)
    if shape.content is None:
        return shape.rows
    with path.open("rb") as file:
        times = PACKED if file.read(2) == GZIP else 1
    seen = shape.content.data
    return int(path.stat().st_size * times * max(seen.count(b"\n"), 1) / max(len(seen), 1)) + 1


# ----------------------------------------------------------------------
# The key of streamed scores: read whole, by the reader, then kept small.
#
# Ids stay texts, all other columns become codes, and only those that are needed are kept. The row of the key that holds
# the id identifies a trial exactly, so it serves to find repeated ids, ids that the key lacks, and ids without a score.

INDEX_BYTES: Final = 40
"""The memory per row of a key beside its columns: the hash of its id, its place in the order of hashes, and copies."""
UNLISTED: Final = 2**64 - 1
LEAST: Final = 10**7
"""The memory reserved for the scores, however large the key is."""
Rows = NDArray[np.int64]
NO_ROWS: Final[Rows] = np.zeros(0, dtype=np.int64)
SMALL: Final = 2**28
"""A key of fewer bytes is read whatever memory may be used."""


@dataclass(frozen=True, eq=False)
class Key:
    """A key that has been read."""

    files: KeyFiles
    stack: Stack
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

    def joined(self, stack: Stack, rows: Rows, options: ReadSpec, ledger: Ledger) -> Stack:
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


_read: dict[tuple[KeyFiles, str], Key] = {}
"""The last key that this process has read: every shard is joined with it."""


def key_of(files: KeyFiles, options: ReadSpec) -> Key:
    """Return the key, reading it only if this process has not read it before."""
    if (files, repr(options)) not in _read:
        side = _opened_key(files.paths, options, Ledger())
        for path, noted, found in zip(files.paths, files.sha256, _hashes_of(side), strict=True):
            if found != noted:
                raise DataError(f"{Shard(path).name}: the key has changed since it was first read; begin again")
        _checked_key(files, side, options, Ledger())
    return _read[files, repr(options)]


def open_key(given: object, options: ReadSpec, opened: Sequence[Opened], columns: Sequence[str], memory: int) -> Key:
    """Read a key as the reader does, check it, and keep what is needed of it; `columns` are taken from either side."""
    ledger, picks = Ledger(), opened[0].match.picks
    if set(options.runs) - {SYSTEM}:
        raise UsageError("a key is not joined with several runs at a time; leave --stream out")
    paths = list(map(str, expand(given)))
    on_disk = sum(Path(path).stat().st_size for path in paths if Path(path).is_file())
    if on_disk > SMALL:
        _refuse_large(on_disk, memory)
    try:
        side = _opened_key(paths, options, ledger)
        refuse_undeclared(options, (*names_of_shards(opened), *side.names), opened[0].name, ledger)
        theirs = side.match.picks
        on = tuple(name for name in ("item", "target") if name in theirs and name in picks)
        both = tuple(name for name in theirs if name in picks and name not in ("item", *on))
        wanted = ("target", *found_columns(columns, {**picks, **theirs}))
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


def _opened_key(paths: Sequence[str], options: ReadSpec, ledger: Ledger) -> Side:
    said = options.for_key
    return open_side([look_whole(path, said, ledger) for path in paths], "key", said, ledger)


def _hashes_of(side: Side) -> tuple[str, ...]:
    return tuple(shape.content.sha256 if shape.content else "" for shape in side.shapes)


def _checked_key(files: KeyFiles, side: Side, options: ReadSpec, ledger: Ledger) -> Key:
    """Record every fault of a key that the reader would find, and keep what is needed of it."""
    every = settle(side.stack, options)
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
        fix = "say which one it is with --column target=NAME"
        raise ledger.stop("missing-column", "there is no column for the target", fix, [every.place(0)], "target")
    kept = [name for name in dict.fromkeys((*files.columns, *files.shared)) if name not in files.on]
    frame = every.frame.select(*files.on, pl.col(kept).cast(pl.String).cast(pl.Categorical))
    lines = tuple(replace(table, frame=table.frame.select("item")) for table in side.stack.tables)
    key = Key(files, replace(side.stack, tables=lines, frame=frame), reading)
    _read.clear()
    if not ledger.findings:
        _read[files, repr(options)] = key
    progress.report(f"rows of the key {side.shapes[0].name}", key.height, key.height)
    return key


def _refuse_large(size: int, memory: int) -> None:
    if size > memory // 2:
        raise UsageError(
            f"a key of {size / 1e6:,.0f} MB does not fit into half of --memory, and every piece of the scores is joined with "
            f"it; raise --memory to {2 * size / 1e9 + 0.1:.1f}GB, or write the labels into the score files",
            code="key-beyond-memory",
        )


# ----------------------------------------------------------------------
# The first look at shards: their columns, and the direction of their scores.


def found_columns(columns: Sequence[str], there: Iterable[str]) -> list[str]:
    """Return columns to group or resample by, under their stored names; refuse a column that no file has."""
    known = list(there)
    found = {name: find_column(name, known) for name in columns}
    for name, column in found.items():
        if column is None:
            raise UnknownName("column", name, [user_name(c) for c in known if c not in FIXED])
    return [column for column in found.values() if column is not None]


def look_at_shards(shards: Sequence[Shard], options: ReadSpec, role: Role) -> list[Opened]:
    """Recognise the columns of every shard; all must be of one kind."""
    found, ledger = list[Opened](), Ledger()
    for shard in progress.each(shards, "looking at the shards"):
        with suppress(Stop):
            one = open_shard(shard, options, ledger, role)
            # of a file that a plug-in has read, only the first rows are kept
            found.append(replace(one, shape=replace(one.shape, frame=None)) if one.shape.is_read else one)
            if set(one.match.picks) != set(found[0].match.picks):
                what = f"its columns differ from those of {found[0].name}"
                ledger.add("shards-differ", what, "give shards of one kind", [Place(found[-1].name, 1)])
    if role == "both" and not ledger.findings:
        with suppress(Stop):
            refuse_undeclared(options, names_of_shards(found), found[0].name, ledger)
    if ledger.findings:
        raise ledger.error()
    return found


def names_of_shards(opened: Sequence[Opened]) -> tuple[str, ...]:
    """Return the names of all columns that the shards have."""
    return tuple(dict.fromkeys(name for one in opened for name in names_in([one.shape], one.match)))


def is_turned(opened: Sequence[Opened], options: ReadSpec) -> bool:
    """Return whether a higher score means the negative class, judged from the options and the first rows."""
    if options.higher is None:
        return False
    words = {
        row[o.match.picks["label"]]
        for o in opened
        for row in o.shape.first[o.match.has_header and o.shape.names is None :]
    }
    return is_for_negative(
        understand(sorted(words), options.positive, options.negative, options.positive_value), options
    )


def is_for_negative(reading: Reading, options: ReadSpec) -> bool:
    """Return whether a higher score means the negative class."""
    higher = options.higher
    return higher is not None and same_class(higher, reading.negative) and not same_class(higher, reading.positive)


# ----------------------------------------------------------------------
# Engines read the rows of a shard, and give some at a time as cells and scores.


@dataclass(frozen=True, eq=False)
class Piece:
    """Some rows of a shard: the different cells, the number of each row's cell, its score, and what identifies it.

    cells    the columns that define the cells, except decisions at a threshold
    score    null if the file has no readable one
    counts   how many trials each row counts for; None: one
    ids      the ids as texts, or numbers that identify them; None if they are not looked at
    """

    cells: pl.DataFrame
    code: NDArray[np.int64]
    score: pl.Series
    counts: pl.Series | None = None
    ids: pl.Series | None = None

    is_odd: bool = False


class Sheet:
    """A shard that is to be counted."""

    def __init__(self, shard: Shard, plan: ShardPlan, ledger: Ledger) -> None:
        """Recognise the columns; one that is counted by and that the file lacks is a fault."""
        self.plan, self.read, self.unlisted = plan, Read(), list[Place]()
        self.opened = open_shard(shard, plan.options, ledger, "both" if plan.key is None else "scores")
        picks = self.opened.match.picks
        wanted = [name for name in plan.read_cells[1:] if name != SYSTEM or name in picks]
        wanted += [COUNT] if plan.is_counted else []
        from_key = plan.key.columns if plan.key is not None else ()
        absent = [name for name in wanted if name not in picks and name not in from_key]
        if absent:
            what = f"there is no column {quoted(absent[0])}; there are {', '.join(map(quoted, picks))}"
            fix = f"say which one it is with --column {absent[0]}=NAME"
            raise ledger.stop("missing-column", what, fix, [Place(self.opened.name, 1)], absent[0])
        both = plan.key.shared if plan.key is not None else ()
        self.identity = [name for name in ("item", "target", *plan.options.runs) if name in picks]
        self.scores = [name for name in picks if name == "score" or name.startswith(SYSTEM_PREFIX)]
        self.columns = [*picks] if plan.is_counted else [*self.identity, "label", *self.scores, *wanted, *both]
        # Values that are compared are brought to one spelling row by row, those of cells once per cell.
        early, rename = {*self.identity, *both}, plan.options.rename
        self.early = plan.options.changed(rename={name: rename[name] for name in rename if name in early})
        late = [name for name in rename if name not in early and name not in from_key]
        self.late = plan.options.changed(rename={name: rename[name] for name in late})

    @cached_property
    def key(self) -> Key | None:
        """The key that the shard is joined with."""
        return None if self.plan.key is None else key_of(self.plan.key, self.plan.options)

    def stacks(self, ledger: Ledger, options: ReadSpec, kinds: Kinds | None = None) -> Iterator[Stack]:
        """Yield the rows as the in-memory reader reads them; as text, unless `kinds` are given."""
        for table in self.opened.pieces(self.columns, self.read, ledger, kinds):
            yield settle(Stack.of([table], self.opened.match.theirs), options)

    def ids(self, frame: pl.DataFrame, rows: Rows | None = None) -> pl.Series:
        """Return what must be unique: the id, hashed with its target and run if it has any; or its row of the key."""
        if self.key is None:
            return frame["item"] if self.identity == ["item"] else hashed_ids(frame, self.identity)
        rows = self.key.rows_of(frame) if rows is None else rows
        return pl.Series(np.where(rows < 0, np.uint64(UNLISTED), rows.astype(np.uint64)))

    def hashes(self) -> Iterator[tuple[Stack, pl.Series]]:
        """Yield the rows with the hash of what must be unique."""
        for stack in self.stacks(Ledger(), self.early):
            ids = self.ids(stack.frame)
            yield stack, ids.hash() if ids.dtype == pl.String else ids


def hashed_ids(frame: pl.DataFrame, names: Sequence[str]) -> pl.Series:
    """Return a hash of what identifies a trial."""
    return frame.select(pl.col(names[0]).hash() if len(names) == 1 else pl.struct(names).hash()).to_series()


def by_polars(sheet: Sheet, ledger: Ledger) -> Iterator[Piece]:
    """Read in this process."""
    plan, options = sheet.plan, sheet.plan.options
    kinds = {} if plan.is_counted else sheet.opened.match.kinds(dict.fromkeys(sheet.scores, pl.Float64()), options)
    for stack in sheet.stacks(ledger, sheet.early, kinds):
        ids, is_odd, rows = None, False, NO_ROWS if sheet.key is None else sheet.key.rows_of(stack.frame)
        if plan.is_counted:
            ids, is_odd = _groups(stack), bool(wrong_counts(stack.frame).any())
        elif plan.ids and "item" in stack.frame.columns:
            ids, is_odd = sheet.ids(stack.frame, rows), bool((stack.frame["item"] == "").any())
        if sheet.key is not None:
            extra = pl.Series(rows < 0).arg_true()[: MOST_TOLD - len(sheet.unlisted)]
            sheet.unlisted += stack.at(extra)
            stack = sheet.key.joined(stack, rows, options, ledger)
        frame = stack.frame
        if not sheet.scores:  # decisions alone are counted as if all scores were equal
            frame = frame.with_columns(score=0.0)
        code, cells = cell_codes(frame, [name for name in plan.read_cells if name in frame.columns])
        counts = frame[COUNT].cast(pl.Float64, strict=False).cast(pl.Int64, strict=False) if plan.is_counted else None
        for name in sheet.scores or ["score"]:
            if name != "score":  # the scores of one system, whose name is the run
                named = cells.with_columns(pl.lit(name.removeprefix(SYSTEM_PREFIX)).alias(SYSTEM))
                cells = named.select(name for name in plan.cells if name in named.columns)
            yield Piece(cells, code, to_numbers(frame[name], options.decimal_sign)[0], counts, ids, is_odd)
            ids = None


def by_duckdb(sheet: Sheet, ledger: Ledger) -> Iterator[Piece]:
    """Let DuckDB collect the scores of each cell; a file that it would read differently from our reader is read by ours."""
    columns = _direct(sheet)
    if columns is None:
        yield from by_polars(sheet, ledger)
        return
    module, database = _database()
    cells = [name for name in sheet.plan.read_cells if name in columns]
    taken = [f"{sql_name(columns[name])} AS {sql_name(name)}" for name in cells]
    score = f"CAST({sql_name(columns['score'])} AS DOUBLE)"
    rows, groups = sheet.opened.trials, ", ".join(map(sql_name, cells))
    more = ", file_row_number = true" if rows > AT_ONCE else ""
    source = f"read_parquet({sql_text(sheet.opened.shard.path)}{more})"
    some = pl.scan_parquet(sheet.opened.shard.path, glob=False).select(columns["score"]).head(SHOWN).collect()
    is_shared = some.to_series().n_unique() * SPARSE < some.height
    connection = database.cursor()
    try:
        for first in range(0, rows, AT_ONCE):
            own = f" WHERE file_row_number BETWEEN {first} AND {first + AT_ONCE - 1}" if rows > AT_ONCE else ""
            asked, rest = f"SELECT {', '.join(taken)}, {score} AS s", f"FROM {source}{own}"
            if is_shared:
                found = answer_of(connection.sql(f"{asked}, COUNT(*) AS n {rest} GROUP BY ALL"))
                code, named = cell_codes(found.with_columns(pl.col(cells).fill_null("")), cells)
                yield Piece(named, code, found["s"], found["n"])
            else:
                found = answer_of(connection.sql(f"SELECT {groups}, LIST(s) AS s FROM ({asked} {rest}) GROUP BY ALL"))
                code = np.repeat(np.arange(found.height), found["s"].list.len().to_numpy())
                yield Piece(found.select(pl.col(cells).fill_null("")), code, found["s"].explode())
    except module.Error as error:
        raise damaged_parquet(sheet.opened.name, error, ledger) from None
    finally:
        connection.close()
    if sheet.plan.ids and "item" in columns:
        for table in sheet.opened.pieces(["item"], sheet.read, ledger):
            is_odd = bool((table.frame["item"] == "").any())
            yield Piece(pl.DataFrame(), code[:0], pl.Series(dtype=pl.Float64), None, sheet.ids(table.frame), is_odd)


def _direct(sheet: Sheet) -> dict[str, str] | None:
    """Return the columns of a Parquet file for DuckDB to read; None if some are not plain texts and numbers."""
    opened, names, plan = sheet.opened, sheet.opened.shape.names, sheet.plan
    picks = {name: at for name, at in opened.match.picks.items() if name in sheet.columns}
    if not opened.is_parquet or names is None or plan.key is not None or plan.is_counted or "score" not in picks:
        return None
    if plan.options.matching == "stem" or len(sheet.identity) > 1:
        return None
    schema = pl.read_parquet_schema(opened.shard.path)
    kinds = {name: schema[names[at]] for name, at in picks.items()}
    is_plain = all(is_plain_number(kind) if name == "score" else kind == pl.String for name, kind in kinds.items())
    return {name: names[at] for name, at in picks.items()} if is_plain else None


def sql_name(name: str) -> str:
    """Return a name quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'


def sql_text(value: str) -> str:
    """Return a text as a SQL literal."""
    return "'" + value.replace("'", "''") + "'"


@cache
def _database() -> tuple[Any, Any]:
    """Return DuckDB and a database in memory for this process: opening one takes as long as counting 100,000 trials."""
    try:
        import duckdb
    except ImportError as error:
        raise EnvironmentFault(f"--engine duckdb needs a package ({error}): pip install 'hitmiss[duckdb]'") from None
    return duckdb, duckdb.connect(config={"memory_limit": LIMIT})


def answer_of(relation: Any) -> pl.DataFrame:
    """Return what a relation of DuckDB holds; taken by `pl.DataFrame`, it would be reported as leaked at the end."""
    # the method had another name before DuckDB 2
    table = relation.to_arrow_table() if hasattr(relation, "to_arrow_table") else relation.fetch_arrow_table()
    return pl.DataFrame(table)


ENGINES: Final = {"polars": by_polars, "duckdb": by_duckdb}
LIMIT: Final = "500MB"
"""The memory that DuckDB may use."""
AT_ONCE: Final = 2**22
"""The rows whose scores DuckDB collects at a time."""


# ----------------------------------------------------------------------
# One pass over a shard. Rows are examined one by one only if the counts show a problem (a NaN score, a label that is
# not understood): then the file is read again as text, and the reader's own checks report what is wrong and where.

COUNT: Final = "n"
RANGE: Final = "ids"
"""The fact about a shard that its ids ascend, from the first to the last."""
ENOUGH: Final = 1000
"""The number of faults after which a shard is not read any further."""
MOST_TOLD: Final = 1000
"""The number of ids on one side only that are listed, per shard and for the key; beyond that they are only counted."""


Counter = Callable[[Shard, ShardPlan], Iterator[ShardTally]]


class Covering(NamedTuple):
    """How many ids of a key have a score, how many it lists, and how many scored ids it lacks; the first of both."""

    scored: int
    listed: int
    unlisted: int
    first: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())


def count(shard: Shard, plan: ShardPlan) -> Iterator[ShardTally]:
    """Count a shard piece by piece. The last tally says which file it was, and holds the faults."""
    ledger, fact = Ledger(), ShardFact(shard.name, "", 0, 0)
    cells, noted, unlisted = dict[Cell, Binned](), dict[str, int](), list[Place]()
    with suppress(Stop):
        sheet, quick = Sheet(shard, plan, ledger), Ledger()
        seen, match, unlisted = Counting(plan, sheet.late), sheet.opened.match, sheet.unlisted
        facts: dict[str, Any] = {"layout": match.layout, "columns": dict(match.theirs)}
        facts |= {"layout": "counts"} if plan.is_counted else {"has_ids": "item" in match.picks}
        fact = replace(fact, facts=facts)
        with suppress(Stop):
            for piece in ENGINES[plan.engine](sheet, quick):
                yield ShardTally((), seen.cells(piece), seen.ids(piece))
        if quick.findings or seen.is_odd or seen.is_unclear or seen.repeated is not None:
            look_closely(sheet, seen, ledger)
            ledger.findings = ledger.findings or quick.findings
        rows = sheet.opened.trials if sheet.opened.is_parquet else sheet.read.rows
        sha, size = digest(shard.path) if sheet.opened.is_parquet else (sheet.read.sha256, sheet.read.bytes)
        fact = replace(fact, rows=rows, sha256=sha, bytes=size, facts={**fact.facts, **seen.range})
        if not rows and not ledger.findings:
            what = "there is a header and no row under it"
            raise ledger.stop("empty-file", what, "give a file with rows", [Place(fact.name, 1)])
        cells, noted = ({}, {}) if ledger.findings else seen.lost()
    yield ShardTally((fact,), cells, None, tuple(ledger.findings), noted, tuple(unlisted))


def tallies(
    shards: Sequence[Shard], plan: ShardPlan, run: Executor, counter: Counter = count, step: str = "shards counted"
) -> Iterator[ShardTally]:
    """Yield the tallies of all shards: piece by piece if they are counted here, else one per shard."""
    found = None if run is sequential else run(first_pass, [(shard, plan, counter) for shard in shards])
    for shard in progress.each(shards, step):
        yield from counter(shard, plan) if found is None else [next(found)]


def count_all(
    shards: Sequence[Shard], plan: ShardPlan, run: Executor, memory: int, disk: Disk | None, units: UnitRuns | None
) -> tuple[ShardTally, Covering | None]:
    """Count all shards, each id once; return also how much of the key they cover, if there is one."""
    found = tallies(shards, plan, run)
    tally = merge_tallies(found if units is None else units.without_units(found), disk)
    if tally.findings:
        ledger = Ledger()
        ledger.take(Ledger(list(tally.findings)))  # one finding per kind, over all shards
        raise ledger.error()
    covering = None
    if plan.key is not None and tally.ids is not None:
        covering = settle_coverage(tally, shards, plan, run, memory)
    else:
        for part in _in_parts(every_id(tally, shards, plan, run, disk), memory):
            refuse_hashes(part.bins[part.each > 1], shards, plan, run)
    return replace(tally, ids=None), covering


def first_pass(shard: Shard, plan: ShardPlan, counter: Counter = count) -> ShardTally:
    """Count every trial of a shard: per cell, how many have each score. Faults are in the tally's findings."""
    return merge_tallies(counter(shard, plan))


class Counting:
    """The trials of one table counted, and what the rows show beside: words, scores that are missing, ids in order."""

    def __init__(self, plan: ShardPlan, late: ReadSpec) -> None:
        self.plan, self._late, self.is_odd, self.is_out_of_order = plan, late, False, False
        self._words: dict[str, set[str]] = {"label": set(), "decision": set()}
        self._lost: dict[Cell, int] = {}
        self._groups: list[pl.Series] = []
        self._ends: tuple[str, str] | None = None

    def cells(self, piece: Piece) -> dict[Cell, Binned]:
        """Return the scores of each cell, turned so that a higher one means positive."""
        plan, score, code = self.plan, piece.score, piece.code
        self.is_odd |= piece.is_odd
        cells = settle(Stack.of([Table("", piece.cells.cast(pl.String))], {}), self._late).frame.rows()
        values = score.to_numpy()
        values = plan.scale.turned(values)
        if plan.options.score_kind == "probability":
            self.is_odd |= bool(((values < 0) | (values > 1)).any())
        if plan.decides:
            at = plan.cells.index("decision")
            cells = [(*cell[:at], said, *cell[at:]) for cell in cells for said in "01"]
            code = 2 * code + plan.scale.accepts(values, plan.threshold or 0.0)
        for name in self._words.keys() & set(plan.cells):
            self._words[name] |= {cell[plan.cells.index(name)] for cell in cells}
        nan, counts = np.isnan(values), None if piece.counts is None else piece.counts.to_numpy()
        if nan.any():
            self.is_odd |= plan.options.nan_rule == "refuse" or bool(score.null_count())
            lost = np.bincount(code[nan], None if counts is None else counts[nan], minlength=len(cells))
            for cell, n in zip(cells, lost.astype(int).tolist(), strict=True):
                self._lost[cell] = self._lost.get(cell, 0) + n
            values, code, counts = values[~nan], code[~nan], None if counts is None else counts[~nan]
        return cells_of(cells, code, values, counts)

    def ids(self, piece: Piece) -> Binned | None:
        """Return the hashes of ids; nothing of ids that could ascend, since then none of them repeats."""
        ids = piece.ids
        if ids is None or not len(ids):
            return None
        if self.plan.is_counted:
            self._groups.append(ids)
        elif ids.dtype == pl.UInt64:
            return Binned(ids.to_numpy(), is_sorted=False)
        elif not self.is_out_of_order:
            follows = self._ends is None or ids[0] > self._ends[1]
            self.is_out_of_order = not (follows and (ids[1:] > ids[:-1]).all())
            self._ends = ids[0] if self._ends is None else self._ends[0], ids[-1]
        return None

    @property
    def range(self) -> dict[str, tuple[str, str]]:
        """The first and the last id if all ascend."""
        return {RANGE: self._ends} if self._ends is not None and not self.is_out_of_order else {}

    @property
    def repeated(self) -> pl.Series | None:
        """The hashes of groups that are counted in more than one row; None if there are none."""
        groups = pl.concat(self._groups) if self._groups else pl.Series(dtype=pl.UInt64)
        return None if groups.n_unique() == len(groups) else groups.filter(groups.is_duplicated()).unique()

    @cached_property
    def words(self) -> Words:
        """The meaning of the words, when all have been seen."""
        return words_of(self._words["label"], self._words["decision"], self.plan)

    @property
    def is_unclear(self) -> bool:
        """Whether some word names no class."""
        return any(one.problems for one in self.words.values())

    def lost(self) -> tuple[dict[Cell, Binned], dict[str, int]]:
        """Return the trials without a score as the caller wants them counted, and what to note about them."""
        rule, n, plan = self.plan.options.nan_rule, sum(self._lost.values()), self.plan
        if rule != "worst" or not n:
            return {}, {f"on-nan:{rule}": n} if n else {}
        low, high = worst_scores(plan.options.score_kind)
        found: dict[Cell, Binned] = {}
        for cell, own in self._lost.items():
            score = low if cell[0] in self.words["label"].positive_words else high
            if plan.decides:
                at = plan.cells.index("decision")
                cell = (*cell[:at], "01"[bool(plan.scale.accepts(score, plan.threshold or 0.0))], *cell[at + 1 :])
            found[cell] = merge_binned([found.get(cell, NOTHING), Binned(keys_of([score]), np.array([own]))])
        return {cell: one for cell, one in found.items() if one.total}, {f"on-nan:{rule}": n}


def look_closely(sheet: Sheet, seen: Counting, ledger: Ledger) -> None:
    """Read a shard like the in-memory reader, with its checks; faults go into the ledger, with their rows."""
    options, repeated = sheet.plan.options, seen.repeated
    for stack in sheet.stacks(ledger, options):
        if repeated is not None:
            again = _groups(stack).is_in(repeated.implode())
            what = "{n} row{s} of groups that are counted in another row too"
            fix = "remove the duplicates, or add up the counts of each group first"
            ledger.add("repeated-group", what, fix, [Place(p.file, p.row) for p in stack.places(again)])
        if "item" in stack.frame.columns:
            check_ids(stack, ledger)
        stack = check_scores(stack, options, ledger)
        if sheet.plan.is_counted:
            check_counts(stack, ledger)
        if sheet.key is not None:
            stack = sheet.key.joined(stack, sheet.key.rows_of(stack.frame), options, ledger)
            stack = stack.put(pl.col(pl.Categorical).cast(pl.String))
        for name in [n for n in seen.words if n in stack.frame.columns and seen.is_unclear]:
            check_labels(stack, name, seen.words[name], ledger, options.abstain)
        if sum(len(f.places) for f in ledger.findings) >= ENOUGH:
            break


def _groups(stack: Stack) -> pl.Series:
    """Return a hash of what each row counts, all columns of the file included."""
    return stack.tables[0].frame.drop(COUNT).hash_rows()


def wrong_counts(frame: pl.DataFrame) -> pl.Series:
    """Return which rows have a count that is not a whole number above 0."""
    counts = frame[COUNT].cast(pl.Float64, strict=False)
    return counts.is_null() | (counts <= 0) | (counts != counts.floor()) | (counts >= 2**53)


def check_counts(stack: Stack, ledger: Ledger) -> None:
    """Report counts that are none."""
    places = [Place(p.file, p.row, p.value) for p in stack.places(wrong_counts(stack.frame), COUNT)]
    what = "{n} row{s} with a count that is not a whole number above 0"
    ledger.add("bad-count", what, "fix them", places, stack.title(COUNT))


def words_of(labels: Iterable[str], decisions: Iterable[str], plan: ShardPlan) -> Words:
    """Return the meaning of the words of labels and decisions; decisions at a threshold are our own words."""
    return read_words(sorted(labels), sorted(decisions) if plan.threshold is None else (), plan.options)


# ----------------------------------------------------------------------
# Ids that occur in the shards more than once: found by their hashes, reported with file and row.

HASH_BYTES = 32
"""The memory per hash while hashes are examined: the hash, and copies of it while hashes are sorted."""
MOST = 1000
"""The number of repeated ids that are looked up; more would add no information."""


def hashes_of(shard: Shard, plan: ShardPlan) -> Iterator[ShardTally]:
    """Yield tallies of nothing but the ids of a shard."""
    for _, ids in Sheet(shard, plan, Ledger()).hashes():
        yield ShardTally((), {}, Binned(ids.to_numpy(), is_sorted=False))


def every_id(
    tally: ShardTally, shards: Sequence[Shard], plan: ShardPlan, run: Executor, disk: Disk | None
) -> Kept | None:
    """Return the hashes of all ids; None if there are none, or if ids ascend from shard to shard and none can repeat."""
    if tally.ids is not None or not (plan.ids and any(shard.facts.get("has_ids") for shard in tally.shards)):
        return tally.ids
    ranges = sorted(tuple(shard.facts[RANGE]) for shard in tally.shards if RANGE in shard.facts)
    if len(ranges) == len(tally.shards) and all(a[1] < b[0] for a, b in pairwise(ranges)):
        return None
    return merge_tallies(tallies(shards, plan, run, hashes_of, "ids compared"), disk).ids


def locate(shard: Shard, plan: ShardPlan, wanted: frozenset[int]) -> list[tuple[int, Place]]:
    """Return the rows of a shard whose ids have these hashes: (hash, place), in the order of the file."""
    found, among = list[tuple[int, Place]](), pl.Series(sorted(wanted), dtype=pl.UInt64).implode()
    for stack, hashed in Sheet(shard, plan, Ledger()).hashes():
        rows = hashed.is_in(among).arg_true()
        found += zip(hashed[rows].to_list(), stack.at(rows), strict=True) if len(rows) else []
    return found


def _in_parts(ids: Kept | None, memory: int) -> Iterator[Binned]:
    """Yield the hashes of all ids, as many at a time as fit; equal hashes are in the same part."""
    if ids is not None:
        yield from (ids.between(*ends) for ends in stretches([ids.coarse(())], memory // HASH_BYTES))


def refuse_hashes(twice: Keys, shards: Sequence[Shard], plan: ShardPlan, run: Executor) -> None:
    """Refuse ids that occur twice in all shards. Equal hashes prove nothing: the ids themselves are compared."""
    if not len(twice):
        return
    wanted = frozenset(twice[:MOST].tolist())
    groups: dict[tuple[int, str], list[Place]] = {}
    for found in run(locate, [(shard, plan, wanted) for shard in shards]):
        for hashed, place in found:
            groups.setdefault((hashed, place.item or ""), []).append(place)
    ledger = Ledger()
    places = [place for group in groups.values() if len(group) > 1 for place in group]
    what, each = "{n} row{s} of repeated ids", "the id occurs more than once"
    fix = "each trial must occur once: take the others out, or merge identical rows without --stream and with --dedupe"
    ledger.add("duplicate-id", what, fix, places, "item", each)
    if ledger.findings:
        raise ledger.error()


# ----------------------------------------------------------------------
# Which trials of a key have a score, over all shards: ids on one side only, and ids that are scored twice.


def settle_coverage(
    tally: ShardTally, shards: Sequence[Shard], plan: ShardPlan, run: Executor, memory: int
) -> Covering:
    """Refuse ids that are scored twice and, unless the caller allows it, ids on one side only."""
    assert plan.key is not None
    key, ledger = key_of(plan.key, plan.options), Ledger()
    seen, twice, unlisted = np.zeros(key.height, dtype=bool), list[Keys](), 0
    for part in _in_parts(tally.ids, memory):
        is_listed = part.bins != np.uint64(UNLISTED)
        seen[part.bins[is_listed].astype(np.int64)] = True
        twice.append(part.bins[is_listed & (part.each > 1)])
        unlisted += int(part.each[~is_listed].sum())
    extra, absent = list(tally.unlisted), np.flatnonzero(~seen)
    if not seen.any():
        scored = [place.item or "" for place in extra]
        no_common_id(scored, key.stack.frame["item"].to_list(), [extra[0], key.stack.place(0)], ledger)
        raise ledger.error()
    refuse_hashes(np.concatenate(twice), shards, plan, run)
    if not plan.options.allow_missing and (unlisted or len(absent)):
        column = tally.shards[0].facts["columns"]["item"]
        places = key.stack.at(pl.Series(absent[:MOST_TOLD]))
        refuse_missing(extra, places, column, ledger, (unlisted, len(absent)))
        raise ledger.error()
    unscored = key.stack.frame["item"].gather(absent[:SHOWN_IDS]).to_list()
    first = tuple(place.item or "" for place in extra[:SHOWN_IDS]), tuple(unscored)
    return Covering(key.height - len(absent), key.height, unlisted, first)
