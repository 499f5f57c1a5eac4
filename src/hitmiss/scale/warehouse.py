"""Trials that live in a table of Spark or DuckDB: the engine counts them there, the counts come here.

    hitmiss score "spark:lake.trials" ...         a table of the session's catalogue (or the path of Parquet files)
    hitmiss score "duckdb:results.db#trials" ...  a table of a database file

The table's columns are recognised as those of a file are. One statement asks for ids that repeat, one for the counts of
each cell and score: these are the trials as far as any figure can tell, so the figures are those of memory to the bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Protocol

import numpy as np
import polars as pl

from hitmiss.core.errors import DataError, EnvironmentFault, UsageError
from hitmiss.core.question import Design, ReadSpec
from hitmiss.evaluation.protocol import measure_trials
from hitmiss.io.checks import check_labels, check_scores
from hitmiss.io.columns import Match, recognise, refuse_undeclared, understand
from hitmiss.io.diagnostics import Finding, Ledger, Place, Stop
from hitmiss.io.diagnostics import quoted as shown
from hitmiss.io.parse import Shape, Table
from hitmiss.io.remote import TableAddress
from hitmiss.io.tables import Stack, head_of, settle
from hitmiss.scale.assembling import assemble
from hitmiss.scale.counted import add_counts, checked_counts
from hitmiss.scale.looking import found_columns, is_turned
from hitmiss.scale.plan import Question, Shard, ShardPlan, Window
from hitmiss.scale.reading import Opened
from hitmiss.scale.sql import PLAIN, compiled, source_of
from hitmiss.scale.statements import COUNT, SCORE, counts, quoted, repeats, text
from hitmiss.scale.streaming import (
    BYTES_A_TRIAL,
    MEMORY,
    Streamed,
    asked_columns,
    asked_design,
    kept_columns,
    read_options,
    refuse_what_needs_trials,
)
from hitmiss.scale.tallies import Binned, Cell, ShardFact, ShardTally, merge_binned
from hitmiss.stats.sketch import EXACT

LOOK: Final = 100
"""Rows that are looked at before anything is counted."""
FAULTS: Final = 1000
"""Rows with a fault that are fetched; more would say nothing new."""


class Warehouse(Protocol):
    """What runs statements. `dialect` is one of `sql.DIALECTS`."""

    dialect: str

    def query(self, statement: str) -> pl.DataFrame:
        """The answer to a statement in its dialect."""


def evaluate_table(
    address: TableAddress,
    *,
    reading: ReadSpec | Mapping[str, object] | None = None,
    design: Design | None = None,
    memory: int = MEMORY,
    **asked: object,
) -> Streamed:
    """As `evaluate_streamed`, for a table that Spark or DuckDB counts.

    Parameters
    ----------
    address
        Where the table is, from `table_of`.
    reading, design, asked
        As in `evaluate_streamed`.
    memory
        Bounds (in bytes) the counts that are brought here.

    Returns
    -------
    Streamed
        The figures, and the counted trials behind them.

    Raises
    ------
    DataError
        For NaN scores, unknown labels and repeated ids, with the ids; for what the engine refuses to read.
    UsageError
        For what cannot be told from counts.
    """
    design = design or asked_design(None, asked)
    wanted = list(design.metrics) or list(design.protocol.metrics if design.protocol else ())
    reads = read_options(design.protocol, reading)
    columns = asked_columns(design)
    refuse_what_needs_trials(design, wanted, columns, reads)
    if reads.score_columns:
        raise UsageError(
            "a table is counted for one column of scores; name it with --column score=NAME", code="several-scores"
        )
    with opened_warehouse(address) as warehouse:
        asking = _Asking(warehouse, address, source_of(address.table, warehouse.dialect))
        ledger = Ledger()
        try:
            opened = asking.look(reads, ledger)
        except Stop:
            raise ledger.error() from None
        keep = kept_columns(opened, wanted, found_columns(columns, opened), design.threshold, reads)
        plan = ShardPlan(reads, keep, EXACT, turned=is_turned([opened], reads), threshold=design.threshold, ids=False)
        tally = asking.tally(opened.match, plan, memory)
    trials = assemble(tally, plan, "stream").retitle(reading=reads)
    return Streamed(measure_trials(trials, design), trials)


@dataclass(frozen=True)
class _Asking:
    """The questions that are put to a table."""

    warehouse: Warehouse
    address: TableAddress
    source: str

    def look(self, options: ReadSpec, ledger: Ledger) -> Opened:
        """What its columns are, as the reader of files recognises them."""
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
        """The counts, checked."""
        has_decision = plan.threshold is not None
        cells = ("label", *(name for name in plan.keep if not (name == "decision" and has_decision)))
        identity = tuple(name for name in ("item", "target", *plan.options.runs) if name in match.picks)
        question = Question(match.theirs, cells, identity if "item" in identity else ())
        self._refuse_repeats(question)
        most = max(memory // BYTES_A_TRIAL, 10**6)
        frame = self._answer(f"{counts(question, self.source, Window())}\nLIMIT {most + 1}")
        if frame.height > most:
            raise UsageError(
                f"{self.address.table} has more than {most:,} different scores; give more --memory, or count scores that are "
                f"rounded (hitmiss sql --step, then --counts)",
                code="needs-more-memory",
            )
        frame = _plain(frame, cells)
        self._refuse_faults(frame, question, plan.options)
        ledger = Ledger()
        stack = Stack.of([Table(self.address.name, frame)], match.theirs)
        parts: dict[Cell, list[Binned]] = {}
        add_counts(checked_counts(stack, plan.options, ledger), plan, parts)
        if ledger.findings:
            raise ledger.error()
        facts = {"layout": self.address.engine, "columns": dict(match.theirs), "has_ids": bool(question.identity)}
        rows = int(frame[COUNT].sum())
        fact = ShardFact(self.address.name, _digest(frame), rows, 0, facts)
        merged = {cell: merge_binned(binned) for cell, binned in parts.items()}
        return ShardTally(plan.fingerprint, plan.cells, (fact,), merged)

    def _refuse_repeats(self, question: Question) -> None:
        if not question.identity:
            return
        found = self._answer(f"{repeats(question, self.source)} LIMIT {FAULTS}")
        if found.height:
            first = found["item"][0]
            what = "{n} id{s} that the table has more than once" if first else "{n} id{s} repeated or empty"
            places = [Place(self.address.name, item=str(item or "")) for item in found["item"]]
            ledger = Ledger()
            ledger.add("repeated-id", what, "take out the rows that are there twice", places, question.columns["item"])
            raise ledger.error()

    def _refuse_faults(self, frame: pl.DataFrame, question: Question, options: ReadSpec) -> None:
        """NaN scores and unknown labels, with the ids of their trials."""
        told = understand(sorted(frame["label"].unique()), options.positive, options.negative, options.positive_value)
        words = [problem.word for problem in told.problems]
        has_nan = options.nan_rule == "refuse" and frame[SCORE].is_nan().any()
        if not (words or has_nan):
            return
        names = dict.fromkeys(("item", "label", SCORE))
        shown_columns = {n: question.columns[n] for n in names if n in question.columns}
        score = f"CAST({quoted(question.columns[SCORE])} AS DOUBLE)"
        bad = [f"{score} IS NULL OR ISNAN({score})"] if has_nan else []
        bad += (
            [f"COALESCE(CAST({quoted(question.columns['label'])} AS VARCHAR), '') IN ({', '.join(map(text, words))})"]
            if words
            else []
        )
        selected = ", ".join(f"{quoted(theirs)} AS {quoted(ours)}" for ours, theirs in shown_columns.items())
        found = self._answer(f"SELECT {selected} FROM {self.source} WHERE {' OR '.join(bad)} LIMIT {FAULTS}")
        found = pl.DataFrame([settle(column, column.name == SCORE) for column in found])
        ledger = Ledger()
        stack = check_scores(Stack.of([Table(self.address.name, found)], shown_columns), options, ledger)
        if words:
            check_labels(stack, "label", told, ledger)
        ledger.findings = [_without_rows(finding) for finding in ledger.findings]
        raise ledger.error()

    def _answer(self, plain: str) -> pl.DataFrame:
        return self.warehouse.query(compiled(plain, self.warehouse.dialect))


def _without_rows(finding: Finding) -> Finding:
    """A table has no rows by number."""
    return replace(finding, places=tuple(replace(place, row=None) for place in finding.places))


def _plain(frame: pl.DataFrame, cells: Sequence[str]) -> pl.DataFrame:
    """An answer in order, with the types of counts; −0.0 is 0.0, and NULL scores are NaN."""
    score = pl.col(SCORE).cast(pl.Float64).fill_null(float("nan")) + 0.0
    frame = frame.select(
        *(pl.col(name).cast(pl.String).fill_null("") for name in cells), score, pl.col(COUNT).cast(pl.Int64)
    )
    return frame.group_by([*cells, SCORE]).agg(pl.col(COUNT).sum()).sort([*cells, SCORE])


def _digest(frame: pl.DataFrame) -> str:
    """A hash of counts in order, which depends on nothing but them."""
    sha = hashlib.sha256()
    for column in frame:
        if column.dtype == pl.String:
            data = "\0".join(column.to_list()).encode()
        else:
            data = column.to_numpy().astype(np.dtype(column.to_numpy().dtype).newbyteorder("<")).tobytes()
        sha.update(f"{column.name}\0{len(data)}\0".encode() + data)
    return sha.hexdigest()


@contextmanager
def opened_warehouse(address: TableAddress) -> Iterator[Warehouse]:
    """The engine of an address, for a while."""
    with _spark() if address.engine == "spark" else _duckdb(address.place) as found:
        yield found


class _DuckDB:
    dialect = PLAIN

    def __init__(self, module: ModuleType, connection: Any) -> None:
        self._module, self._connection = module, connection

    def query(self, statement: str) -> pl.DataFrame:
        try:
            found = pl.DataFrame(self._connection.sql(statement))
        except self._module.Error as error:
            raise _refusal("DuckDB", error) from None
        return found


@contextmanager
def _duckdb(place: str) -> Iterator[Warehouse]:
    try:
        import duckdb
    except ImportError as error:
        raise EnvironmentFault(f"duckdb: needs the package 'duckdb' ({error}): pip install 'hitmiss[duckdb]'") from None
    if not Path(place).is_file():
        raise DataError(f"{place} is not there", code="missing-file")
    try:
        connection = duckdb.connect(place, read_only=True)
    except duckdb.Error as error:
        raise _refusal("DuckDB", error) from None
    try:
        yield _DuckDB(duckdb, connection)
    finally:
        connection.close()


class _Spark:
    dialect = "spark"

    def __init__(self, session: Any) -> None:
        self._session = session

    def query(self, statement: str) -> pl.DataFrame:
        from pyspark.errors import PySparkException

        try:
            table = self._session.sql(statement).toArrow()
        except PySparkException as error:
            raise _refusal("Spark", error) from None
        except Exception as error:  # what its Java side raises has no class of its own
            if type(error).__module__.partition(".")[0] not in ("py4j", "pyspark", "grpc"):
                raise
            raise _refusal("Spark", error) from None
        found = pl.from_arrow(table)
        assert isinstance(found, pl.DataFrame)  # a table is a frame
        return found


@contextmanager
def _spark() -> Iterator[Warehouse]:
    """The session that is there, or one as the settings of Spark on this machine have it; that is ended afterwards."""
    try:
        import pyarrow  # noqa: F401  # what answers travel in
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise EnvironmentFault(f"spark: needs the package 'pyspark' ({error}): pip install 'hitmiss[spark]'") from None
    there = SparkSession.getActiveSession()
    if there is not None:
        yield _Spark(there)
        return
    quiet = {"spark.ui.showConsoleProgress": "false", "spark.log.level": "FATAL", "spark.ui.enabled": "false"}
    try:
        session = SparkSession.builder.appName("hitmiss").config(map=quiet).getOrCreate()
    except Exception as error:
        raise EnvironmentFault(
            f"no session of Spark can be had ({_first_line(error)}); it needs Java, or SPARK_REMOTE, and its master is "
            f"that of its own settings (spark-defaults.conf, PYSPARK_SUBMIT_ARGS)",
            code="no-spark",
        ) from None
    try:
        yield _Spark(session)
    finally:
        session.stop()


def _refusal(engine: str, error: BaseException) -> DataError:
    return DataError(f"{engine} does not answer: {shown(_first_line(error))}", code="engine-refused")


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
