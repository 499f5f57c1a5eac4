"""Shards and their key: files whose columns are known, read in pieces by the reader (`io.tables.pieces`), and joined."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import polars as pl

from hitmiss.core import registry, shared
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.question import SYSTEM, ReadSpec, find, shown
from hitmiss.core.trials import FIXED, Header, Source
from hitmiss.io import tables
from hitmiss.io.checks import check_ids, check_labels, check_repeats, stems, to_numbers
from hitmiss.io.columns import SYSTEM_PREFIX, Match, Reading, Role, recognise, refuse_undeclared, same_class, understand
from hitmiss.io.parse import GZIP, Kinds, Ledger, Place, Shape, Stop, Table, digest, expand, quoted
from hitmiss.io.reader import Side, open_side, settle
from hitmiss.io.tables import Read, Stack, frame_of, is_plain_number
from hitmiss.io.tables import look as look_whole
from hitmiss.outofcore.plan import KeyFiles, Shard, ShardPlan, stamp
from hitmiss.stats import sketch

PACKED: Final = 6
"""How much longer a compressed text becomes, roughly."""
CONSTANT: Final = -1
"""The position of a column that the file does not have: the name of the system."""


@dataclass(frozen=True)
class Opened:
    """A shard whose columns are known: its first rows and what they were recognised as.

    `by_stem`: its ids are read without folder and suffix.
    """

    shard: Shard
    shape: Shape
    match: Match
    by_stem: bool = field(default=False, kw_only=True)

    @property
    def name(self) -> str:
        """The file's name, without its folder."""
        return Path(self.shard.path).name

    @property
    def is_parquet(self) -> bool:
        """Whether the file is a Parquet file."""
        return self.shape.content is None


def open_shard(shard: Shard, options: ReadSpec, ledger: Ledger, role: Role = "both") -> Opened:
    """Look at the beginning of a file and recognise its columns, like the in-memory reader."""
    shape = tables.look_at_head(shard.path, options, ledger)
    match = recognise(shape, role, options, ledger)
    match = match if shard.system is None else _of_one_system(match, shard.system)
    return Opened(shard, shape, match, by_stem=options.matching == "stem")


def _of_one_system(match: Match, system: str) -> Match:
    """Return a match with one system's scores as the scores, and its name as the run."""
    column = SYSTEM_PREFIX + system
    picks = {name: at for name, at in match.picks.items() if not name.startswith(SYSTEM_PREFIX)}
    if column in match.picks:  # otherwise the absence is reported later: see `keyed`
        picks["score"] = match.picks[column]
    return replace(match, picks={**picks, SYSTEM: CONSTANT}, theirs={**match.theirs, "score": system})


def rows_of_parquet(path: str) -> int:
    """Return the number of rows that a Parquet file declares."""
    return int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())


def trials_expected(opened: Sequence[Opened]) -> int:
    """Estimate the number of trials: from the row counts of Parquet files, and from the size of texts."""
    return sum(rows_of_parquet(o.shard.path) if o.is_parquet else _lines_expected(o) for o in opened)


def _lines_expected(opened: Opened) -> int:
    path = Path(opened.shard.path)
    with path.open("rb") as file:
        times = PACKED if file.read(2) == GZIP else 1
    shown = opened.shape.content.data if opened.shape.content else b"\n"
    return int(path.stat().st_size * times * max(shown.count(b"\n"), 1) / max(len(shown), 1)) + 1


def pieces(
    opened: Opened, picks: Mapping[str, int], read: Read, ledger: Ledger, kinds: Kinds | None = None
) -> Iterator[Table]:
    """Yield the columns `picks` of a shard in pieces (see `io.tables.pieces`), ids by their stems if requested."""
    own = {name: at for name, at in picks.items() if at != CONSTANT}
    added = [pl.lit(opened.shard.system).alias(SYSTEM)] if len(own) < len(picks) else []
    added += [stems(pl.col("item"))] if opened.by_stem and "item" in own else []
    match = opened.match
    for piece in tables.pieces(
        opened.shard.path, opened.shape, match.has_header, match.numeric, own, read, ledger, kinds
    ):
        yield replace(piece, frame=piece.frame.with_columns(added)) if added else piece


# ----------------------------------------------------------------------
# Files that need a plug-in's reader, streamed: temporarily converted to Parquet files of the same names.


@dataclass(frozen=True)
class Plugged:
    """What to count, how to read it, and the original file of each (by the hash of the converted file)."""

    scores: Any
    options: ReadSpec
    made_from: Mapping[str, Source] = field(default_factory=dict)

    def named(self, header: Header) -> Header:
        """Return a header whose sources are the original files."""
        return replace(header, sources=tuple(self.made_from.get(s.sha256, s) for s in header.sources))


@contextmanager
def plugged(scores: Any, options: ReadSpec, scratch: str | None) -> Iterator[Plugged]:
    """Convert files of a plug-in's reader to tables in a folder made in `scratch`; leave other files unchanged."""
    reader = registry.find("reader", options.layout) if options.layout is not None else None
    if not callable(reader):
        yield Plugged(scores, options)
        return
    with tempfile.TemporaryDirectory(prefix="hitmiss-", dir=scratch) as folder:
        made = [_made(reader, path, Path(folder) / str(at)) for at, path in enumerate(map(str, expand(scores)))]
        yield Plugged(
            [str(path) for path, _, _ in made], replace(options, layout=None), {sha: was for _, sha, was in made}
        )


def _made(reader: Callable[..., Any], path: str | Path, folder: Path) -> tuple[Path, str, Source]:
    folder.mkdir()
    table = folder / Path(path).name
    frame_of(reader(path)).write_parquet(table)
    return table, digest(str(table))[0], Source(table.name, digest(str(path))[0])


# ----------------------------------------------------------------------
# The key of streamed scores: read whole, by the reader, then kept small and joined with the scores.
#
# Ids stay texts, all other columns become codes, and only those that are needed are kept. Scores get the columns taken
# from the key and `AT`, the row of the key that holds their id. That row identifies a trial exactly, so it serves to
# find repeated ids, ids that the key lacks, and ids without a score.

INDEX_BYTES: Final = 40
"""The memory per row during the join: its position among the ids, and the row again if it is scored."""
AT: Final = "row of the key"
UNLISTED: Final = 2**64 - 1
FROM_KEY: Final = -1
"""The position of a column that the score file does not have."""
BESIDE: Final = "of the key: "
"""The prefix for the name of a column that both sides have."""


@dataclass(frozen=True)
class Joined(Opened):
    """A file of scores with the key: `match` describes the columns of both, `own` those of the scores."""

    own: Match
    key: KeyFiles


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

    def beside(self, lazy: pl.LazyFrame, first: int = 0) -> pl.LazyFrame:
        """Return scores with the columns of the key added; `first` is the number of the key's first row."""
        taken = [pl.col(name).cast(pl.String) for name in self.files.columns]
        shared = [pl.col(name).cast(pl.String).alias(BESIDE + name) for name in self.files.shared]
        at = pl.int_range(first, first + pl.len(), dtype=pl.UInt64).alias(AT)
        key = self.stack.frame.lazy().select(*self.files.on, *taken, *shared, at)
        mine = pl.exclude([name for name in self.files.columns if name not in self.files.on])
        said = [pl.col(name).alias(f"{BESIDE}{name}, as scored") for name in self.files.shared]
        return lazy.select(mine, *said).join(key, on=list(self.files.on), how="left", maintain_order="left")

    def first(self, system: str | None, options: ReadSpec) -> int:
        """Return the number of the first row: the rows of each further system get the following numbers."""
        return 0 if system is None else options.score_columns.index(system) * self.height


def conflicts(lazy: pl.LazyFrame, key: KeyFiles | None, options: ReadSpec) -> bool:
    """Return whether scores and key seem to disagree in a column that both have."""
    if key is None or not key.shared:
        return False
    differ = []
    for name in key.shared:
        renamed = dict(options.rename.get(name, {}))
        mine, theirs = (pl.col(c).replace(renamed) for c in (f"{BESIDE}{name}, as scored", BESIDE + name))
        differ.append(((mine != theirs) & pl.col(AT).is_not_null()).any().alias(name))
    return any(lazy.select(differ).collect(engine="streaming").row(0))


def door_pieces(opened: Joined, names: Sequence[str], key: Key, options: ReadSpec, ledger: Ledger) -> Iterator[Table]:
    """Yield a file of scores as the in-memory reader reads it, with its rows of the key; report disagreements."""
    wanted = (*names, *key.files.on, *key.files.shared)
    picks = {name: at for name, at in opened.own.picks.items() if name in wanted}
    first = key.first(opened.shard.system, options)
    for piece in pieces(replace(opened, match=opened.own), picks, Read(), ledger):
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
    """Return a file of scores with the columns that are taken from the key."""
    picks = {**opened.match.picks, **dict.fromkeys(key.columns, FROM_KEY)}
    theirs = {**{name: name for name in key.columns}, **opened.match.theirs}
    slices = tuple(dict.fromkeys((*opened.match.slices, *(name for name in key.columns if name != "label"))))
    match = replace(opened.match, picks=picks, theirs=theirs, slices=slices)
    return Joined(opened.shard, opened.shape, match, opened.match, key, by_stem=opened.by_stem)


def open_key(given: object, options: ReadSpec, ledger: Ledger) -> Side:
    """Read the files of a key as the reader does."""
    said = options.for_key
    return open_side([look_whole(source, said, ledger) for source in expand(given)], "key", said, ledger)


def files_of(given: object, key: Side, scores: Opened, keep: Sequence[str]) -> KeyFiles:
    """Return what is taken from a key: the label, and the columns to keep that it has."""
    theirs, ours = key.match.picks, scores.match.picks
    on = tuple(name for name in ("item", "target") if name in theirs and name in ours)
    shared = tuple(name for name in theirs if name in ours and name not in ("item", SYSTEM, *on))
    columns = dict.fromkeys(("label", *(name for name in ("target", *keep) if name in theirs and name not in on)))
    return KeyFiles(tuple(map(str, expand(given))), _hashes(key), on, tuple(columns), shared)


def _hashes(key: Side) -> tuple[str, ...]:
    return tuple(shape.content.sha256 if shape.content else "" for shape in key.shapes)


_read: dict[tuple[KeyFiles, str], Key] = {}
"""The last key that this process has read: every shard is joined with it."""


def key_of(files: KeyFiles, options: ReadSpec) -> Key:
    """Return the key, reading it only if this process has not read it before."""
    if (files, repr(options)) not in _read:
        side = open_key(list(files.paths), options, Ledger())
        for path, noted, found in zip(files.paths, files.sha256, _hashes(side), strict=True):
            if found != noted:
                raise DataError(f"{Shard(path).name}: the key has changed since it was first read; begin again")
        checked_key(files, side, options, Ledger())
    return _read[files, repr(options)]


def checked_key(files: KeyFiles, side: Side, options: ReadSpec, ledger: Ledger) -> Key:
    """Record every fault of a key that the reader would find, and keep what is needed of it."""
    every = settle(side.stack, options)
    check_ids(every, ledger)
    labels = every.frame["label"]
    reading = understand(labels.unique().sort().to_list(), options.positive, options.negative, options.positive_value)
    if reading.problems:
        check_labels(every, "label", reading, ledger)
    names = [name for name in ("item", "target") if name in every.frame.columns]
    check_repeats(every, names, True, options, ledger)
    if (
        "target" in names
        and "target" not in files.on
        and not ledger.findings
        and labels.len() > every.frame["item"].n_unique()
    ):
        # The key lists an item once per target, and the scores do not say which target they are about.
        fix = "say which one it is with --column target=NAME"
        raise ledger.stop("missing-column", "there is no column for the target", fix, [every.place(0)], "target")
    kept = [name for name in dict.fromkeys((*files.columns, *files.shared)) if name not in files.on]
    frame = side.stack.frame.select(
        every.frame["item"],
        *(pl.col(name) for name in files.on if name != "item"),
        pl.col(kept).cast(pl.String).cast(pl.Categorical),
    )
    lines = tuple(replace(table, frame=table.frame.select("item")) for table in side.stack.tables)
    key = Key(files, replace(side.stack, tables=lines, frame=frame), reading)
    _read.clear()
    if not ledger.findings:
        _read[files, repr(options)] = key
    shared.tell(f"rows of the key {side.shapes[0].name}", key.height, key.height)
    return key


def _refuse_large(size: int, memory: int) -> None:
    if size > memory // 2:
        raise UsageError(
            f"a key of {size / 1e6:,.0f} MB does not fit into half of --memory, and every piece of the scores is joined with "
            f"it; raise --memory to {2 * size / 1e9 + 0.1:.1f}GB, or write the labels into the score files",
            code="key-beyond-memory",
        )


# ----------------------------------------------------------------------
# The first look at shards and their key: the columns, the expected number of trials, the direction of scores.

SMALL: Final = 2**28
"""A key of fewer bytes is read whatever memory may be used."""
LEAST: Final = 10**7
"""The memory reserved for the scores, however large the key is."""


@dataclass(frozen=True)
class Looked:
    """The result of a first look.

    opened     the shards with their columns, including those of the key
    key        the key, if there is one, read and checked
    expected   about how many trials there are
    turned     whether a higher score means the negative class
    memory     the memory that remains beside the key
    columns    the requested columns, by the names that they are stored under
    there      all columns that the shards and the key have
    """

    opened: Sequence[Opened]
    key: KeyFiles | None
    expected: int
    turned: bool
    memory: int
    columns: Sequence[str]
    there: Sequence[str]


def look(shards: Sequence[Shard], key: object, options: ReadSpec, columns: Sequence[str], memory: int) -> Looked:
    """Recognise the columns of every shard and of the key, which is read; `columns` are needed from either."""
    opened = look_at_shards(shards, options, "both" if key is None else "scores")
    ledger = Ledger()
    try:
        if key is None:
            refuse_undeclared(options, _names(opened), opened[0].name, ledger)
            columns = found_columns(columns, opened[0])
            there = [*opened[0].match.picks]
            return Looked(opened, None, trials_expected(opened), is_turned(opened, options), memory, columns, there)
        return _with_key(opened, key, options, columns, memory, ledger)
    except Stop:
        raise ledger.error() from None


def _with_key(
    opened: Sequence[Opened],
    given: object,
    options: ReadSpec,
    columns: Sequence[str],
    memory: int,
    ledger: Ledger,
) -> Looked:
    if set(options.runs) - {SYSTEM}:
        raise UsageError("a key is not joined with several runs at a time; leave --stream out")
    on_disk = sum(Path(str(path)).stat().st_size for path in expand(given) if Path(str(path)).is_file())
    if on_disk > SMALL:
        _refuse_large(on_disk, memory)
    side = open_key(given, options, ledger)
    refuse_undeclared(options, (*_names(opened), *side.names), opened[0].name, ledger)
    columns = found_columns(columns, opened[0], side)
    files = files_of(given, side, opened[0], columns)
    key = checked_key(files, side, options, ledger)
    if ledger.findings:
        raise ledger.error()
    if key.height > sketch.LARGE:
        _refuse_large(key.bytes, memory)
    joined = [beside(one, files) for one in opened]
    expected = min(trials_expected(opened), key.height)
    there = [*opened[0].match.picks, *side.match.picks]
    memory, turned = max(memory - key.bytes, LEAST), _is_reversed(key.reading, options)
    return Looked(joined, files, expected, turned, memory, columns, there)


def found_columns(columns: Sequence[str], *sides: Opened | Side) -> list[str]:
    """Return columns to group or resample by, under their stored names; refuse a column that no file has."""
    there = list(dict.fromkeys(name for side in sides for name in side.match.picks))
    found = {name: find(name, there) for name in columns}
    for name, column in found.items():
        if column is None:
            raise UnknownName("column", name, [shown(c) for c in there if c not in FIXED])
    return [column for column in found.values() if column is not None]


def look_at_shards(shards: Sequence[Shard], options: ReadSpec, role: Role = "both") -> list[Opened]:
    """Recognise the columns of every shard; all must be of one kind."""
    ledger = Ledger()
    found: list[Opened] = []
    for shard in shared.each(shards, "looking at the shards"):
        try:
            found.append(open_shard(shard, options, ledger, role))
            first = next(one for one in found if one.shard.system == shard.system)
            if set(found[-1].match.picks) != set(first.match.picks):
                what = f"its columns differ from those of {first.name}"
                ledger.add("shards-differ", what, "give shards of one kind", [Place(found[-1].name, 1)])
        except Stop:
            continue
    if ledger.findings:
        raise ledger.error()
    return found


def _names(opened: Sequence[Opened]) -> tuple[str, ...]:
    """Return the names of all columns; without a header, their positions in both spellings."""
    found: dict[str, None] = {}
    for one in opened:
        if one.match.has_header:
            found |= dict.fromkeys(one.shape.names or one.shape.first[0])
        else:
            found |= dict.fromkeys(said.format(i + 1) for i in range(one.shape.width) for said in ("{}", "column_{}"))
    return tuple(found)


def is_turned(opened: Sequence[Opened], options: ReadSpec) -> bool:
    """Return whether a higher score means the negative class, judged from the options and the first rows."""
    if options.higher is None:
        return False
    rows = {
        row[o.match.picks["label"]]
        for o in opened
        for row in o.shape.first[o.match.has_header and o.shape.names is None :]
    }
    return _is_reversed(understand(sorted(rows), options.positive, options.negative, options.positive_value), options)


def _is_reversed(reading: Reading, options: ReadSpec) -> bool:
    higher = options.higher
    return higher is not None and same_class(higher, reading.negative) and not same_class(higher, reading.positive)


# ----------------------------------------------------------------------
# A shard as a table under our names that an engine can query, however it is stored.
#
# A Parquet file is scanned by the engine. Every other file (text, JSON lines, archives, columns of unusual types) is
# read by our own reader in pieces, and the engine takes the pieces one by one: memory holds one piece of the file.

ID, NOBODY, LISTED = " id", " without an id", " listed"
"""Names that none of our columns has."""


@dataclass(frozen=True, eq=False)
class Sheet:
    """A shard as a table under our names: texts, never null; `score` a number, null if the file has no readable one.

    opened     what was recognised
    lazy       the rows; with a key, its columns beside them, and `AT` (null if the key lacks the id)
    read       what the last reading of the file found; empty for a Parquet file, which the engine reads
    columns    the columns that are read of the file
    """

    opened: Opened
    plan: ShardPlan
    lazy: pl.LazyFrame
    read: Read
    columns: tuple[str, ...]

    @property
    def identity(self) -> list[str]:
        """The columns that identify a trial."""
        return [n for n in ("item", "target", *self.plan.options.runs) if n in self.opened.match.picks]

    def asked(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Return what is counted of the rows.

        The cells as codes, `score` (higher = positive), and if the plan asks for ids each id (`ID`; its hash, if more
        than one column identifies a trial) and whether it is empty (`NOBODY`); with a key also whether it lists the row
        (`LISTED`).
        """
        plan, score = self.plan, pl.col("score")
        renamed = [pl.col(name).replace(dict(to)) for name, to in plan.options.rename.items() if name in plan.cells]
        turned = {"": score, "sign": -score, "complement": 1 - score}[plan.turn]
        rows = plan.decided(rows.with_columns(*renamed, turned.cast(pl.Float64).alias("score")))
        more = []
        if plan.ids and "item" in self.opened.match.picks:
            own = pl.col("item") if plan.key is None and self.identity == ["item"] else hashed_id(self)
            more += [own.alias(ID), (pl.col("item") == "").alias(NOBODY)]
        if plan.key is not None:
            more += [pl.col(AT).is_not_null().alias(LISTED)]
        return rows.select(*(pl.col(name).cast(pl.Categorical) for name in plan.cells), "score", *more)


_opened: dict[tuple[Shard, tuple[int, int] | None, str, Role], Opened] = {}
"""Parquet files that this process has opened, as they were then: every pass over them begins with their columns."""
MOST_OPENED: Final = 2000


def open_sheet(shard: Shard, plan: ShardPlan, ledger: Ledger, columns: Sequence[str] | None = None) -> Sheet:
    """Recognise the columns of a shard and make a table of it; `columns` limits what is read."""
    role: Role = "both" if plan.key is None else "scores"
    seen = shard, stamp(shard.path), repr(plan.options), role
    own = _opened.get(seen) or open_shard(shard, plan.options, ledger, role)
    if own.is_parquet and len(_opened) < MOST_OPENED:
        _opened[seen] = own
    opened = own if plan.key is None else beside(own, plan.key)
    wanted = columns if columns is not None else needed(opened, plan, ledger)
    key = None if plan.key is None else key_of(plan.key, plan.options)
    names = wanted if key is None else [*wanted, *key.files.on, *key.files.shared]
    picks = {name: at for name, at in own.match.picks.items() if name in names}
    read = Read()
    lazy = _scanned(own, picks) if own.is_parquet else None
    if lazy is None:
        lazy = _streamed(own, picks, read, plan.options, ledger)
    if key is not None:
        lazy = key.beside(lazy, key.first(shard.system, plan.options))
    if "score" not in picks and "score" in wanted:
        lazy = lazy.with_columns(score=pl.lit(0.0))  # decisions alone are counted as if all scores were equal
    return Sheet(opened, plan, lazy, read, tuple(picks))


def needed(opened: Opened, plan: ShardPlan, ledger: Ledger) -> list[str]:
    """Return the columns that are counted; a column that the plan keeps and the file lacks is a fault."""
    picks = opened.match.picks
    has_decision = plan.threshold is not None or "decision" in picks
    absent = [name for name in plan.keep if name not in picks and not (name == "decision" and has_decision)]
    if absent:
        there = ", ".join(map(quoted, picks))
        what = f"there is no column {quoted(absent[0])}; there are {there}"
        fix = f"say which one it is with --column {absent[0]}=NAME"
        raise ledger.stop("missing-column", what, fix, [Place(opened.name, 1)], absent[0])
    names = ["item", "target", *plan.options.runs, "label", "score", *plan.keep]
    return [name for name in dict.fromkeys(names) if name in picks or name == "score"]


def _scanned(opened: Opened, picks: Mapping[str, int]) -> pl.LazyFrame | None:
    """Return a Parquet file scanned by the engine; None if a column has a type that needs our own reader."""
    names = opened.shape.names
    assert names is not None
    lazy = pl.scan_parquet(opened.shard.path, glob=False)
    schema, columns = lazy.collect_schema(), []
    for ours, at in picks.items():
        if at < 0:  # the name of the system
            columns.append(pl.lit(opened.shard.system).alias(ours))
            continue
        kind, column = schema[names[at]], pl.col(names[at])
        if ours in opened.match.numeric:
            if not is_plain_number(kind):
                return None  # dates, booleans and the like are not scores; large integers may not fit a double
            columns.append(column.cast(pl.Float64).alias(ours))
        elif kind.is_nested() or kind in (pl.Object, pl.Duration, pl.Binary):
            return None
        else:
            texts = (column if kind == pl.String else column.cast(pl.String)).fill_null("")
            columns.append((stems(texts) if ours == "item" and opened.by_stem else texts).alias(ours))
    return lazy.select(columns)


def _streamed(opened: Opened, picks: Mapping[str, int], read: Read, options: ReadSpec, ledger: Ledger) -> pl.LazyFrame:
    """Return any other file as a lazy table: our own reader yields pieces to the engine on demand."""
    from polars.io.plugins import register_io_source

    def source(columns: list[str] | None, predicate: pl.Expr | None, *_: int | None) -> Iterator[pl.DataFrame]:
        chosen = list(picks) if columns is None else columns
        wanted = {name: at for name, at in picks.items() if name in chosen} or dict(picks)
        kinds = opened.match.kinds({"score": pl.Float64()}, options)
        for piece in pieces(opened, wanted, read, ledger, kinds):
            frame = piece.frame
            if "score" in wanted:
                frame = frame.with_columns(to_numbers(frame["score"], options.decimal_sign)[0].alias("score"))
            frame = frame.select(chosen)
            yield frame if predicate is None else frame.filter(predicate)
            shared.tell(f"rows of {opened.name}", read.rows, None)

    schema = {name: pl.Float64() if name == "score" else pl.String() for name in picks}
    return register_io_source(source, schema=schema)


def hashed_id(sheet: Sheet) -> pl.Expr:
    """Return a hash of what must be unique: the id, with its target and run if any; or its row of the key."""
    if sheet.plan.key is not None:
        return pl.col(AT).fill_null(pl.lit(UNLISTED, dtype=pl.UInt64))
    named = sheet.identity
    return pl.col("item").hash() if named == ["item"] else pl.struct(named).hash()
