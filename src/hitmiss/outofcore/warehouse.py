"""Tables in a warehouse: the counting question as SQL in many dialects, run by Spark, DuckDB and others."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from hitmiss.core.errors import DataError, EnvironmentFault, UnknownName, UsageError
from hitmiss.core.question import Design, ReadSpec
from hitmiss.evaluation.protocol import measure_trials
from hitmiss.io.checks import check_labels, check_scores
from hitmiss.io.columns import Match, recognise, refuse_undeclared, understand
from hitmiss.io.parse import Finding, Ledger, Place, Shape, Stop, Table, TableAddress, quoted
from hitmiss.io.tables import Stack, head_of, settle
from hitmiss.outofcore.count import (
    COUNT,
    Counting,
    Opened,
    Piece,
    answer_of,
    found_columns,
    is_turned,
    sql_name,
    sql_text,
)
from hitmiss.outofcore.plan import Shard, ShardFact, ShardPlan, ShardTally, cell_codes, merge_tallies
from hitmiss.outofcore.stream import (
    MEMORY,
    Streamed,
    asked_design,
    assemble,
    kept_columns,
    read_options,
    refuse_what_needs_trials,
)

# ----------------------------------------------------------------------
# The counting question as SQL, for tables in a warehouse, which do not have to leave it.
#
# Statements are made once, in DuckDB's dialect; sqlglot, a SQL dialect compiler, translates them. Names are quoted in
# every dialect, so a column may have any name.

SCORE: Final = "score"
# must differ from the name of a user's table: Snowflake would treat an equal name as recursion
TRIALS: Final = '"hitmiss_trials"'
PLAIN: Final = "duckdb"
DIALECTS: Final = (PLAIN, "bigquery", "databricks", "postgres", "snowflake", "spark", "trino")
FILES: Final = ("databricks", "spark")
"""Dialects, besides DuckDB's, in which a statement can read files by path."""


def statement(
    table: str,
    by: Sequence[str] = (),
    *,
    dialect: str = PLAIN,
    score: str = "score",
    label: str = "label",
    step: int | None = None,
) -> str:
    """Count the trials of a table by slice, label and score.

    Parameters
    ----------
    table
        A name (`schema.table`), or for DuckDB and Spark the path or pattern of Parquet files.
    by
        The slice columns.
    dialect
        One of `DIALECTS`.
    score, label
        The table's columns with the score and the label.
    step
        Count scores rounded down to multiples of 1/step (a power of two, so that rounding is exact), for tables with
        too many distinct scores to transfer.

    Returns
    -------
    str
        The statement. Its columns are `label`, the slices, `score` and `n`.

    Raises
    ------
    UsageError
        For an unknown dialect, a step that is not a power of two, or files if the dialect reads only tables.

    Examples
    --------
    >>> print(statement("lake.trials", ["codec"], score="llr"))
    WITH "hitmiss_trials" AS (SELECT COALESCE(CAST("label" AS VARCHAR), '') AS "label", COALESCE(CAST("codec" AS VARCHAR), '') AS "codec", CAST("llr" AS DOUBLE) AS "score" FROM "lake"."trials")
    SELECT "label", "codec", "score", COUNT(*) AS "n"
    FROM "hitmiss_trials"
    GROUP BY "label", "codec", "score"
    """
    if step is not None and (step < 1 or step & (step - 1)):
        raise UsageError(f"--step must be a power of two, so that rounding is exact; found {step}", code="inexact-step")
    slices = tuple(dict.fromkeys(by))
    taken = [name for name in slices if name in ("label", SCORE, COUNT)]
    if taken:
        raise UsageError(
            f"a slice cannot be called {taken[0]!r}: the counts have a column of that name", code="taken-name"
        )
    columns = {"label": label, SCORE: score, **{n: n for n in slices}}
    source = source_of(table, dialect)
    return compiled(_counts(columns, ("label", *slices), source, step), dialect, pretty=True)


def repeats_statement(table: str, columns: Mapping[str, str], *, dialect: str = PLAIN) -> str:
    """Return SQL for the ids that are repeated or empty; unless there are none, the counts cannot be used.

    `columns` maps what identifies a trial (`item`, and target and runs if there are any) to the table's columns.

    >>> print(repeats_statement("trials", {"item": "utt"}))
    SELECT "utt" AS "item", COUNT(*) AS "n" FROM "trials" GROUP BY "utt" HAVING COUNT(*) > 1 OR COALESCE(CAST("utt" AS VARCHAR), '') = ''
    """
    shown = [f"{sql_name(theirs)} AS {sql_name(ours)}" for ours, theirs in columns.items()]
    return compiled(
        f"SELECT {', '.join(shown)}, COUNT(*) AS {sql_name(COUNT)} FROM {source_of(table, dialect)} "
        f"GROUP BY {', '.join(map(sql_name, columns.values()))} HAVING COUNT(*) > 1 OR {_text(columns['item'])} = ''",
        dialect,
    )


def _counts(columns: Mapping[str, str], cells: Sequence[str], source: str, step: int | None = None) -> str:
    """Return SQL that counts the trials of each cell by score; `columns` maps our names to those of the table."""
    taken = [f"{_text(columns[name])} AS {sql_name(name)}" for name in cells]
    taken.append(f"{_score(columns[SCORE], step)} AS {sql_name(SCORE)}")
    groups = ", ".join(map(sql_name, (*cells, SCORE)))
    return (
        f"WITH {TRIALS} AS (SELECT {', '.join(taken)} FROM {source})\n"
        f"SELECT {groups}, COUNT(*) AS {sql_name(COUNT)}\nFROM {TRIALS}\nGROUP BY {groups}"
    )


def _score(column: str, step: int | None = None) -> str:
    """Return a score as SQL, rounded down to multiples of 1/step."""
    score = f"CAST({sql_name(column)} AS DOUBLE)"
    if step is None:
        return score
    # A bare literal would be a decimal number. From 2⁵³ steps on, every double lies on the grid already (and Spark's
    # FLOOR, which returns 64 bits, would overflow).
    many, grid, whole = (f"CAST('{value!r}' AS DOUBLE)" for value in (2.0**53, 1 / step, float(step)))
    scaled = f"({score} * {whole})"
    return f"CASE WHEN ABS{scaled} < {many} THEN CAST(FLOOR({scaled}) AS DOUBLE) * {grid} ELSE {score} END"


def _text(column: str) -> str:
    return f"COALESCE(CAST({sql_name(column)} AS VARCHAR), '')"


def compiled(plain: str, dialect: str, *, pretty: bool = False) -> str:
    """Translate a DuckDB statement into another dialect."""
    if dialect == PLAIN:
        return plain
    try:
        import sqlglot
    except ImportError as error:
        raise EnvironmentFault(
            f"SQL of other dialects than {PLAIN} needs the package 'sqlglot' ({error}): pip install 'hitmiss[sql]'"
        ) from None
    return str(sqlglot.parse_one(plain, read=PLAIN).sql(dialect=dialect, identify=True, pretty=pretty))


def source_of(table: str, dialect: str = PLAIN) -> str:
    """Return a table given by name (`schema.table` too), or files given by path, in DuckDB's SQL."""
    if dialect not in DIALECTS:
        raise UnknownName("SQL dialect", dialect, DIALECTS)
    if "/" not in table and not table.endswith(".parquet"):
        return ".".join(sql_name(part) for part in table.split("."))
    if dialect == PLAIN:
        return sql_text(table)
    if dialect not in FILES:
        raise UsageError(f"{table}: {dialect} counts tables, not files; give the name of one", code="table-name")
    return f"{sql_name('parquet')}.{sql_name(table)}"


# ----------------------------------------------------------------------
# Trials in a table of Spark or DuckDB: the engine counts them there, and only the counts are transferred.
#
#     hitmiss score "spark:lake.trials" ...         a table of the session's catalogue (or the path of Parquet files)
#     hitmiss score "duckdb:results.db#trials" ...  a table of a database file
#
# The table's columns are recognised like those of a file. One statement asks for repeated ids, one for the counts of
# each cell and score. No figure depends on more than these counts, so the figures equal those of an in-memory
# evaluation to the bit.

LOOK: Final = 100
"""Rows that are inspected before anything is counted."""
ROW_BYTES: Final = 56
"""The memory per row of counts: its cell, its score and its count, and the key of its score."""
FAULTS: Final = 1000
"""Rows with a fault that are fetched; more would add no information."""


Query = Callable[[str], pl.DataFrame]
"""Returns the answer to a statement in the engine's dialect."""


def evaluate_table(
    address: TableAddress,
    *,
    reading: ReadSpec | Mapping[str, object] | None = None,
    design: Design | None = None,
    memory: int = MEMORY,
    **asked: object,
) -> Streamed:
    """Evaluate like `evaluate_streamed`, for a table that Spark or DuckDB counts.

    Parameters
    ----------
    address
            The address of the table, from `table_of`.
    reading, design, asked
        As in `evaluate_streamed`.
    memory
            Bound (in bytes) on the counts that are transferred.

    Returns
    -------
    Streamed
        The figures, and the counted trials behind them.

    Raises
    ------
    DataError
            For NaN scores, unknown labels and repeated ids, with the ids; for anything that the engine refuses to read.
    UsageError
            For figures that cannot be computed from counts.
    """
    design = design or asked_design(None, asked)
    wanted = list(design.metrics) or list(design.protocol.metrics if design.protocol else ())
    reads, ledger = read_options(design.protocol, reading), Ledger()
    columns = list(dict.fromkeys((*design.columns, *reads.where)))
    refuse_what_needs_trials(design, wanted, columns, reads)
    if reads.score_columns:
        raise UsageError(
            "a table is counted for one column of scores; name it with --column score=NAME", code="several-scores"
        )
    with (_spark if address.engine == "spark" else _duckdb)(address.place) as query:
        asking = _Asking(query, address, source_of(address.table, address.engine))
        try:
            opened = asking.look(reads, ledger)
        except Stop:
            raise ledger.error() from None
        there = opened.match.picks
        keep = kept_columns(there, wanted, found_columns(columns, there), design.threshold, reads)
        plan = ShardPlan(reads, keep, turned=is_turned([opened], reads), threshold=design.threshold, ids=False)
        tally = asking.tally(opened.match, plan, memory)
    if tally.findings:
        raise Ledger(list(tally.findings)).error()
    trials = assemble(tally, plan, "stream").retitle(reading=reads)
    return Streamed(measure_trials(trials, design), trials)


@dataclass(frozen=True)
class _Asking:
    """The questions that are sent to a table."""

    query: Query
    address: TableAddress
    source: str

    def look(self, options: ReadSpec, ledger: Ledger) -> Opened:
        """Recognise the table's columns like those of a file."""
        frame = self._answer(f"SELECT * FROM {self.source} LIMIT {LOOK}")
        name = self.address.name
        if not frame.height:
            raise ledger.stop("empty-file", "the table holds no rows", "give a table with rows", [Place(name)])
        shape = Shape(name, head_of(frame), tuple(frame.columns), frame=frame)
        match = recognise(shape, "both", options, ledger)
        refuse_undeclared(options, tuple(frame.columns), name, ledger)
        names = {ours: frame.columns[at] for ours, at in match.picks.items()}
        return Opened(Shard(name), shape, replace(match, theirs=names))

    def tally(self, match: Match, plan: ShardPlan, memory: int) -> ShardTally:
        """Return the counts, checked."""
        has_decision = plan.threshold is not None
        cells = ("label", *(name for name in plan.keep if not (name == "decision" and has_decision)))
        named = [name for name in ("item", "target", *plan.options.runs) if name in match.picks]
        identity = {name: match.theirs[name] for name in named if "item" in named}
        self._refuse_repeats(identity)
        most = max(memory // ROW_BYTES, 10**6)
        frame = self._answer(f"{_counts(match.theirs, cells, self.source)}\nLIMIT {most + 1}")
        if frame.height > most:
            raise UsageError(
                f"{self.address.table} has more than {most:,} different scores; give more --memory, or count scores that are "
                f"rounded (hitmiss sql --step, then --counts)",
                code="needs-more-memory",
            )
        frame = _plain(frame, cells)
        self._refuse_faults(frame, match.theirs, plan.options)
        seen, ledger = Counting(plan, plan.options), Ledger()
        code, own = cell_codes(frame, cells)
        found = seen.cells(Piece(own, code, frame[SCORE], frame[COUNT]))
        if seen.is_odd:
            check_scores(Stack.of([Table(self.address.name, frame)], match.theirs), plan.options, ledger)
        facts = {"layout": self.address.engine, "columns": dict(match.theirs), "has_ids": bool(identity)}
        rows = int(frame[COUNT].sum())
        fact = ShardFact(self.address.name, _digest(frame), rows, 0, facts)
        findings = tuple(map(_without_rows, ledger.findings))
        lost, noted = seen.lost()
        parts = [ShardTally((), cells) for cells in (found, lost)]
        return merge_tallies([*parts, ShardTally((fact,), {}, None, findings, noted)])

    def _refuse_repeats(self, identity: Mapping[str, str]) -> None:
        if not identity:
            return
        asked = repeats_statement(self.address.table, identity, dialect=self.address.engine)
        found = self.query(f"{asked} LIMIT {FAULTS}")
        if found.height:
            first = found["item"][0]
            what = "{n} id{s} that the table has more than once" if first else "{n} id{s} repeated or empty"
            places = [Place(self.address.name, item=str(item or "")) for item in found["item"]]
            ledger = Ledger()
            ledger.add("repeated-id", what, "remove the duplicate rows", places, identity["item"])
            raise ledger.error()

    def _refuse_faults(self, frame: pl.DataFrame, columns: Mapping[str, str], options: ReadSpec) -> None:
        """Refuse NaN scores and unknown labels, with the ids of their trials."""
        told = understand(sorted(frame["label"].unique()), options.positive, options.negative, options.positive_value)
        words = [problem.word for problem in told.problems]
        has_nan = options.nan_rule == "refuse" and frame[SCORE].is_nan().any()
        if not (words or has_nan):
            return
        names = dict.fromkeys(("item", "label", SCORE))
        shown_columns = {n: columns[n] for n in names if n in columns}
        score = _score(columns[SCORE])
        bad = [f"{score} IS NULL OR ISNAN({score})"] if has_nan else []
        bad += [f"{_text(columns['label'])} IN ({', '.join(map(sql_text, words))})"] if words else []
        selected = ", ".join(f"{sql_name(theirs)} AS {sql_name(ours)}" for ours, theirs in shown_columns.items())
        found = self._answer(f"SELECT {selected} FROM {self.source} WHERE {' OR '.join(bad)} LIMIT {FAULTS}")
        found = pl.DataFrame([settle(column, column.name == SCORE) for column in found])
        ledger = Ledger()
        stack = check_scores(Stack.of([Table(self.address.name, found)], shown_columns), options, ledger)
        if words:
            check_labels(stack, "label", told, ledger)
        ledger.findings = [_without_rows(finding) for finding in ledger.findings]
        raise ledger.error()

    def _answer(self, plain: str) -> pl.DataFrame:
        return self.query(compiled(plain, self.address.engine))


def _without_rows(finding: Finding) -> Finding:
    """Return a finding without line numbers, which a table does not have."""
    return replace(finding, places=tuple(replace(place, row=None) for place in finding.places))


def _plain(frame: pl.DataFrame, cells: Sequence[str]) -> pl.DataFrame:
    """Return an answer in order, with the types of counts; −0.0 becomes 0.0, and NULL scores become NaN."""
    score = pl.col(SCORE).cast(pl.Float64).fill_null(float("nan")) + 0.0
    frame = frame.select(
        *(pl.col(name).cast(pl.String).fill_null("") for name in cells), score, pl.col(COUNT).cast(pl.Int64)
    )
    return frame.group_by([*cells, SCORE]).agg(pl.col(COUNT).sum()).sort([*cells, SCORE])


def _digest(frame: pl.DataFrame) -> str:
    """Return a hash of sorted counts, which depends only on them."""
    sha = hashlib.sha256()
    for column in frame:
        if column.dtype == pl.String:
            data = "\0".join(column.to_list()).encode()
        else:
            data = column.to_numpy().astype(np.dtype(column.to_numpy().dtype).newbyteorder("<")).tobytes()
        sha.update(f"{column.name}\0{len(data)}\0".encode() + data)
    return sha.hexdigest()


@contextmanager
def _duckdb(place: str) -> Iterator[Query]:
    """Open a database file."""
    try:
        import duckdb
    except ImportError as error:
        raise EnvironmentFault(f"duckdb: needs the package 'duckdb' ({error}): pip install 'hitmiss[duckdb]'") from None
    if not Path(place).is_file():
        raise DataError(f"{place} is not there", code="missing-file")
    try:
        with duckdb.connect(place, read_only=True) as connection:
            yield lambda statement: answer_of(connection.sql(statement))
    except duckdb.Error as error:
        raise _refusal("DuckDB", error) from None


@contextmanager
def _spark(_: str) -> Iterator[Query]:
    """Use the running session, or start one with Spark's settings on this machine; that one is stopped afterwards."""
    try:
        import pyarrow  # noqa: F401  # answers are transferred as Arrow
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise EnvironmentFault(f"spark: needs the package 'pyspark' ({error}): pip install 'hitmiss[spark]'") from None
    session = there = SparkSession.getActiveSession()
    quiet = {"spark.ui.showConsoleProgress": "false", "spark.log.level": "FATAL", "spark.ui.enabled": "false"}
    try:
        session = there or SparkSession.builder.appName("hitmiss").config(map=quiet).getOrCreate()
    except Exception as error:
        raise EnvironmentFault(
            f"no Spark session could be started ({_first_line(error)}); it needs Java, or SPARK_REMOTE, and its master is "
            f"that of its own settings (spark-defaults.conf, PYSPARK_SUBMIT_ARGS)",
            code="no-spark",
        ) from None
    try:
        yield lambda statement: pl.DataFrame(session.sql(statement).toArrow())
    except Exception as error:  # errors from its Java side have no class of their own
        if type(error).__module__.partition(".")[0] not in ("py4j", "pyspark", "grpc"):
            raise
        raise _refusal("Spark", error) from None
    finally:
        if there is None:
            session.stop()


def _refusal(engine: str, error: BaseException) -> DataError:
    return DataError(f"{engine} does not answer: {quoted(_first_line(error))}", code="engine-refused")


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
