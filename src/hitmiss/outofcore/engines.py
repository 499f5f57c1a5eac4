"""Engines read the rows of a shard, and give some at a time as cells and scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core.columns import SYSTEM
from hitmiss.core.finding import Place
from hitmiss.core.packages import need_package
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.text import quoted
from hitmiss.io.aliases import SYSTEM_PREFIX
from hitmiss.io.cells import to_numbers
from hitmiss.io.diagnostics import Diagnostics
from hitmiss.io.frames import damaged_parquet, is_plain_number
from hitmiss.io.loaded import LoadedRows
from hitmiss.io.reader import normalise_values
from hitmiss.io.source import Kinds, ReadProgress
from hitmiss.outofcore.exact_cells import SPARSE
from hitmiss.outofcore.keys import NO_ROWS, UNLISTED, Key, Rows, hashed_ids, key_of
from hitmiss.outofcore.plan import Shard, ShardPlan
from hitmiss.outofcore.shard_tally import SHOWN, cell_codes
from hitmiss.outofcore.shards import open_shard


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


class ShardReader:
    """A shard that is to be counted."""

    def __init__(self, shard: Shard, plan: ShardPlan, ledger: Diagnostics) -> None:
        """Recognise the columns; one that is counted by and that the file lacks is a fault."""
        self.plan, self.read, self.unlisted = plan, ReadProgress(), list[Place]()
        self.opened = open_shard(shard, plan.options, ledger, "both" if plan.key is None else "scores")
        picks = self.opened.match.picks
        wanted = [name for name in plan.read_cells[1:] if name != SYSTEM or name in picks]
        wanted += [COUNT] if plan.is_counted else []
        from_key = plan.key.columns if plan.key is not None else ()
        absent = [name for name in wanted if name not in picks and name not in from_key]
        if absent:
            told = {"name": absent[0], "quoted": quoted(absent[0])}
            raise ledger.stop("missing-column/run", [Place(self.opened.name, 1)], absent[0], **told)
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

    def stacks(self, ledger: Diagnostics, options: ReadSpec, kinds: Kinds | None = None) -> Iterator[LoadedRows]:
        """Yield the rows as the in-memory reader reads them; as text, unless `kinds` are given."""
        for table in self.opened.pieces(self.columns, self.read, ledger, kinds):
            yield normalise_values(LoadedRows.of([table], self.opened.match.theirs), options)

    def ids(self, frame: pl.DataFrame, rows: Rows | None = None) -> pl.Series:
        """Return what must be unique: the id, hashed with its target and run if it has any; or its row of the key."""
        if self.key is None:
            return frame["item"] if self.identity == ["item"] else hashed_ids(frame, self.identity)
        rows = self.key.rows_of(frame) if rows is None else rows
        return pl.Series(np.where(rows < 0, np.uint64(UNLISTED), rows.astype(np.uint64)))

    def hashes(self) -> Iterator[tuple[LoadedRows, pl.Series]]:
        """Yield the rows with the hash of what must be unique."""
        for stack in self.stacks(Diagnostics(), self.early):
            ids = self.ids(stack.frame)
            yield stack, ids.hash() if ids.dtype == pl.String else ids


def by_polars(sheet: ShardReader, ledger: Diagnostics) -> Iterator[Piece]:
    """Read in this process."""
    plan, options = sheet.plan, sheet.plan.options
    kinds = {} if plan.is_counted else sheet.opened.match.kinds(dict.fromkeys(sheet.scores, pl.Float64()), options)
    for stack in sheet.stacks(ledger, sheet.early, kinds):
        ids, is_odd, rows = None, False, NO_ROWS if sheet.key is None else sheet.key.rows_of(stack.frame)
        if plan.is_counted:
            ids, is_odd = group_hashes(stack), bool(wrong_counts(stack.frame).any())
        elif plan.ids and "item" in stack.frame.columns:
            ids, is_odd = sheet.ids(stack.frame, rows), bool((stack.frame["item"] == "").any())
        if sheet.key is not None:
            extra = pl.Series(rows < 0).arg_true()[: MOST_LISTED - len(sheet.unlisted)]
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


def by_duckdb(sheet: ShardReader, ledger: Diagnostics) -> Iterator[Piece]:
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
    more = ", file_row_number = true" if rows > DUCKDB_ROWS else ""
    source = f"read_parquet({sql_text(sheet.opened.shard.path)}{more})"
    some = pl.scan_parquet(sheet.opened.shard.path, glob=False).select(columns["score"]).head(SHOWN).collect()
    is_shared = some.to_series().n_unique() * SPARSE < some.height
    connection = database.cursor()
    try:
        for first in range(0, rows, DUCKDB_ROWS):
            own = f" WHERE file_row_number BETWEEN {first} AND {first + DUCKDB_ROWS - 1}" if rows > DUCKDB_ROWS else ""
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


def _direct(sheet: ShardReader) -> dict[str, str] | None:
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
    duckdb = need_package("duckdb", "the engine duckdb", "hitmiss[duckdb]")
    return duckdb, duckdb.connect(config={"memory_limit": DUCKDB_MEMORY})


def answer_of(relation: Any) -> pl.DataFrame:
    """Return what a relation of DuckDB holds; taken by `pl.DataFrame`, it would be reported as leaked at the end."""
    # the method had another name before DuckDB 2
    table = relation.to_arrow_table() if hasattr(relation, "to_arrow_table") else relation.fetch_arrow_table()
    return pl.DataFrame(table)


ENGINES: Final = {"polars": by_polars, "duckdb": by_duckdb}
DUCKDB_MEMORY: Final = "500MB"
"""The memory that DuckDB may use."""
DUCKDB_ROWS: Final = 2**22
"""The rows whose scores DuckDB collects at a time."""
COUNT: Final = "n"
MOST_LISTED: Final = 1000
"""The number of ids on one side only that are listed, per shard and for the key; beyond that they are only counted."""


def group_hashes(stack: LoadedRows) -> pl.Series:
    """Return a hash of what each row counts, all columns of the file included."""
    return stack.tables[0].frame.drop(COUNT).hash_rows()


def wrong_counts(frame: pl.DataFrame) -> pl.Series:
    """Return which rows have a count that is not a whole number above 0."""
    counts = frame[COUNT].cast(pl.Float64, strict=False)
    return counts.is_null() | (counts <= 0) | (counts != counts.floor()) | (counts >= 2**53)
