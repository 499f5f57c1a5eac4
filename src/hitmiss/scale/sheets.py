"""A shard as a table under our names that an engine can query, however it is stored.

A Parquet file is scanned by the engine. Every other file (text, JSON lines, archives, columns of odd types) is read by our
own reader, piece by piece, as a source that the engine takes the pieces from: memory holds one piece of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from hitmiss.core import progress
from hitmiss.core.question import ReadSpec
from hitmiss.io.checks import to_numbers
from hitmiss.io.diagnostics import Ledger, Place, quoted
from hitmiss.io.tables import is_plain_number
from hitmiss.scale.keyfile import AT, UNLISTED, beside, key_of
from hitmiss.scale.plan import Shard, ShardPlan
from hitmiss.scale.reading import Opened, Read, open_shard, pieces

ID, NOBODY, LISTED = " id", " without an id", " listed"
"""Names that no column of ours has."""


@dataclass(frozen=True, eq=False)
class Sheet:
    """A shard as a table under our names: texts, never null; `score` a number, null where the file has none to read.

    opened     what was recognised
    lazy       the rows; with a key, its columns beside them, and `AT` (null where the key lacks the id)
    read       what the last reading of the file found; a Parquet file is read by the engine and says nothing here
    ids        what is noted of ids on the way
    carry      whether whoever counts whole scores shall bring the hashes of ids along, to spare a second reading
    """

    opened: Opened
    plan: ShardPlan
    lazy: pl.LazyFrame
    read: Read
    ids: Ids
    carry: bool = False

    @property
    def identity(self) -> list[str]:
        """The columns that name a trial."""
        return [n for n in ("item", "target", *self.plan.options.runs) if n in self.opened.match.picks]

    @property
    def rows(self) -> pl.LazyFrame:
        """The rows as they are counted: values renamed, scores turned round, decisions at a threshold made."""
        plan, score = self.plan, pl.col("score")
        renamed = [pl.col(name).replace(dict(to)) for name, to in plan.options.rename.items() if name in plan.cells]
        turned = {"": score, "sign": -score, "complement": 1 - score}[plan.turn]
        lazy = self.lazy.with_columns(*renamed, turned.alias("score"))
        if "decision" in plan.cells and plan.threshold is not None:
            lazy = lazy.with_columns(decision=decided(plan.threshold))
        return lazy

    @property
    def trials(self) -> pl.LazyFrame:
        """The rows that are trials: those that the key lists, where there is one."""
        return self.rows if self.plan.key is None else self.rows.filter(pl.col(AT).is_not_null())


@dataclass
class Ids:
    """Ids as they pass by in the order of a file: whether they ascend, which proves that none of them repeats."""

    wanted: bool = False
    is_ascending: bool = True
    first: str | None = None
    last: str = ""

    def note(self, items: pl.Series) -> None:
        """The next ones."""
        if not (self.wanted and self.is_ascending and len(items)):
            return
        follows = self.first is None or items[0] > self.last
        self.is_ascending = follows and items[0] != "" and bool((items[1:] > items[:-1]).all())
        self.first, self.last = items[0] if self.first is None else self.first, items[-1]

    @property
    def range(self) -> list[str] | None:
        """The first and the last id, where all ascend."""
        return [self.first, self.last] if self.wanted and self.is_ascending and self.first is not None else None


def open_sheet(
    shard: Shard, plan: ShardPlan, ledger: Ledger, columns: Sequence[str] | None = None, carry: bool = False
) -> Sheet:
    """Recognise the columns of a shard and make a table of it; `columns`: those to be read, where not all that are counted."""
    own = open_shard(shard, plan.options, ledger, "both" if plan.key is None else "scores")
    opened = own if plan.key is None else beside(own, plan.key)
    wanted = columns if columns is not None else needed(opened, plan, ledger)
    key = None if plan.key is None else key_of(plan.key, plan.options)
    names = wanted if key is None else [*wanted, *key.files.on, *key.files.shared]
    picks = {name: at for name, at in own.match.picks.items() if name in names}
    read, ids = Read(), Ids()
    lazy = _scanned(own, picks) if own.is_parquet else None
    if lazy is None:
        lazy = _streamed(own, picks, read, ids, plan.options, ledger)
    if key is not None:
        lazy = key.beside(lazy, key.first(shard.system, plan.options))
    if "score" not in picks and "score" in wanted:
        lazy = lazy.with_columns(score=pl.lit(0.0))  # decisions alone are counted as if all scores were the same
    return Sheet(opened, plan, lazy, read, ids, carry and "item" in opened.match.picks)


def needed(opened: Opened, plan: ShardPlan, ledger: Ledger) -> list[str]:
    """The columns that are counted; one that the plan keeps and the file lacks is a fault."""
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
    """A Parquet file as the engine reads it; None where a column is of a type that wants a closer look."""
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
                return None  # dates, booleans and the like are no scores, long whole numbers may not fit
            columns.append(column.cast(pl.Float64).alias(ours))
        elif kind.is_nested() or kind in (pl.Object, pl.Duration, pl.Binary):
            return None
        else:
            columns.append((column if kind == pl.String else column.cast(pl.String)).fill_null("").alias(ours))
    return lazy.select(columns)


def _streamed(
    opened: Opened, picks: Mapping[str, int], read: Read, ids: Ids, options: ReadSpec, ledger: Ledger
) -> pl.LazyFrame:
    """Any other file, read piece by piece by our own reader for an engine that takes the pieces as they come."""
    from polars.io.plugins import register_io_source

    def source(columns: list[str] | None, predicate: pl.Expr | None, *_: int | None) -> Iterator[pl.DataFrame]:
        read.begin()
        chosen = list(picks) if columns is None else columns
        wanted = {name: at for name, at in picks.items() if name in chosen or name == "item"} or dict(picks)
        for piece in pieces(opened, wanted, read, ledger, quick=True):
            frame = piece.frame
            if "score" in wanted:
                frame = frame.with_columns(to_numbers(frame["score"], options.decimal_sign)[0].alias("score"))
            if "item" in wanted:
                ids.note(frame["item"])
            frame = frame.select(chosen)
            yield frame if predicate is None else frame.filter(predicate)
            progress.tell(f"rows of {opened.name}", read.rows, None)

    schema = {name: pl.Float64() if name == "score" else pl.String() for name in picks}
    return register_io_source(source, schema=schema)


def id_columns(sheet: Sheet) -> list[pl.Expr]:
    """The hash of each row's id, whether the id is empty, and whether the row is a trial."""
    listed = pl.lit(True) if sheet.plan.key is None else pl.col(AT).is_not_null()
    return [hashed_id(sheet).alias(ID), (pl.col("item") == "").alias(NOBODY), listed.alias(LISTED)]


def hashed_id(sheet: Sheet) -> pl.Expr:
    """A hash of what must be there once: the id, with its target and run where there are any; or its row of the key."""
    if sheet.plan.key is not None:
        return pl.col(AT).fill_null(pl.lit(UNLISTED, dtype=pl.UInt64))
    named = sheet.identity
    return pl.col("item").hash() if named == ["item"] else pl.struct(named).hash()


def decided(threshold: float) -> pl.Expr:
    """The decision at a threshold, as text."""
    return pl.when(pl.col("score") >= threshold).then(pl.lit("1")).otherwise(pl.lit("0"))
