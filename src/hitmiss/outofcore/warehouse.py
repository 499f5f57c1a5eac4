"""Tables in a warehouse: the counting question as SQL in many dialects, run by Spark, DuckDB and others."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, cast

import numpy as np
import polars as pl

from hitmiss.core.design import Design
from hitmiss.core.errors import DataError, EnvironmentFault, UnknownName, UsageError
from hitmiss.core.read_spec import ReadSpec
from hitmiss.evaluation.protocol import measure_trials
from hitmiss.io.cells import check_labels, check_scores, understand
from hitmiss.io.checks import SHOWN_IDS, conflict, differing, no_common_id, refuse_missing
from hitmiss.io.columns import Match, Role, recognise, refuse_undeclared
from hitmiss.io.parse import Finding, Ledger, Place, Shape, Stop, Table, TableAddress, quoted
from hitmiss.io.reader import settle as settle_stack
from hitmiss.io.tables import Stack, head_of, settle
from hitmiss.outofcore.count import (
    COUNT,
    Counting,
    Covering,
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
    covered,
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
    key: str | None = None,
    item: str = "item",
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
    key
        The table with the labels and slices, if the first one has only scores; both have the column `item`.
    item
        The column with the id, by which a key is joined.

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
    if key is not None:
        pair = Pair(source, source_of(key, dialect), {"item": (item, item)})
        source = pair.joined({score: (SCORES, score), **{name: (KEY, name) for name in (label, *slices)}})
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


SCORES: Final = '"s"'
KEY: Final = '"k"'
"""The names of the two tables in statements that join them."""


@dataclass(frozen=True)
class Pair:
    """A table of scores and its key, in SQL; `on` maps what identifies a trial to the columns of either."""

    scores: str
    key: str
    on: Mapping[str, tuple[str, str]]

    def joined(self, taken: Mapping[str, tuple[str, str]]) -> str:
        """Return the trials that both have; `taken` maps names to the table and its column.

        >>> print(Pair("scores", "key", {"item": ("a", "b")}).joined({"score": (SCORES, "llr"), "label": (KEY, "word")}))
        (SELECT "s"."llr" AS "score", "k"."word" AS "label" FROM scores AS "s" JOIN key AS "k" ON COALESCE(CAST("s"."a" AS VARCHAR), '') = COALESCE(CAST("k"."b" AS VARCHAR), '')) AS "hitmiss_joined"
        """
        picked = ", ".join(f"{side}.{sql_name(theirs)} AS {sql_name(ours)}" for ours, (side, theirs) in taken.items())
        return f'(SELECT {picked} FROM {self.scores} AS {SCORES} JOIN {self.key} AS {KEY} ON {self._same}) AS "hitmiss_joined"'

    def alone(self, side: str) -> str:
        """Return SQL for the ids that only one of the two tables has.

        >>> print(Pair('"scores"', '"key"', {"item": ("utt", "id")}).alone(KEY))
        SELECT COALESCE(CAST("k"."id" AS VARCHAR), '') AS "item" FROM "key" AS "k" LEFT JOIN "scores" AS "s" ON COALESCE(CAST("s"."utt" AS VARCHAR), '') = COALESCE(CAST("k"."id" AS VARCHAR), '') WHERE "s"."utt" IS NULL
        """
        here, there = (self.scores, self.key) if side == SCORES else (self.key, self.scores)
        other, at = (KEY, 0) if side == SCORES else (SCORES, 1)
        own, theirs = self.on["item"][at], self.on["item"][1 - at]
        return (
            f'SELECT {_text(own, side)} AS "item" FROM {here} AS {side} LEFT JOIN {there} AS {other} ON {self._same} '
            f"WHERE {other}.{sql_name(theirs)} IS NULL"
        )

    @property
    def _same(self) -> str:
        return " AND ".join(f"{_text(ours, SCORES)} = {_text(theirs, KEY)}" for ours, theirs in self.on.values())


def key_statements(table: str, key: str, item: str = "item", *, dialect: str = PLAIN) -> dict[str, str]:
    """Return SQL for ids that the key repeats, and for those that only one of the tables has; none may give a row."""
    pair = Pair(source_of(table, dialect), source_of(key, dialect), {"item": (item, item)})
    return {
        "key_repeats": repeats_statement(key, {"item": item}, dialect=dialect),
        "only_in_key": compiled(pair.alone(KEY), dialect),
        "only_in_scores": compiled(pair.alone(SCORES), dialect),
    }


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


def _text(column: str, side: str = "") -> str:
    return f"COALESCE(CAST({side and f'{side}.'}{sql_name(column)} AS VARCHAR), '')"


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
    key: TableAddress | None = None,
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
    key
            The address of the table with the labels, if the first one has only scores; the engine joins them.
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
            For NaN scores, unknown labels, repeated ids and ids that only one table has, with the ids; for anything that
            the engine refuses to read.
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
    if key is not None and (key.engine, key.place) != (address.engine, address.place):
        raise UsageError("scores and key must be tables of the same engine and database", code="other-database")
    with (_spark if address.engine == "spark" else _duckdb)(address.place) as query:
        asking = _Asking(query, address, source_of(address.table, address.engine))
        try:
            opened = asking.look(reads, ledger, "both" if key is None else "scores")
            if key is not None:
                listing = _Asking(query, key, source_of(key.table, key.engine))
                asking, opened, covering = _joined(asking, opened, listing, reads, ledger)
        except Stop:
            raise ledger.error() from None
        there = opened.match.picks
        keep = kept_columns(there, wanted, found_columns(columns, there), design.threshold, reads)
        plan = ShardPlan(reads, keep, turned=is_turned([opened], reads), threshold=design.threshold, ids=False)
        tally = asking.tally(opened.match, plan, memory)
    if tally.findings:
        raise Ledger(list(tally.findings)).error()
    trials = assemble(tally, plan, "stream").retitle(reading=reads)
    trials = trials.retitle(notes=(*dict.fromkeys(ledger.notes), *trials.header.notes))
    if key is not None:
        files = [*cast(list[object], trials.header.provenance["files"]), {"name": key.name, "role": "key"}]
        trials = covered(trials, covering).retitle(provenance={**trials.header.provenance, "files": files})
    return Streamed(measure_trials(trials, design), trials)


@dataclass(frozen=True)
class _Asking:
    """The questions that are sent to a table."""

    query: Query
    address: TableAddress
    source: str
    key: str | None = None
    """The name of the table with the labels, if the source is a join with one."""

    def look(self, options: ReadSpec, ledger: Ledger, role: Role = "both") -> Opened:
        """Recognise the table's columns like those of a file."""
        frame = self._answer(f"SELECT * FROM {self.source} LIMIT {LOOK}")
        name = self.address.name
        if not frame.height:
            raise ledger.stop("empty-file", "the table holds no rows", "give a table with rows", [Place(name)])
        shape = Shape(name, head_of(frame), tuple(frame.columns), frame=frame)
        match = recognise(shape, role, options, ledger)
        if role == "both":
            refuse_undeclared(options, tuple(frame.columns), name, ledger)
        names = {ours: frame.columns[at] for ours, at in match.picks.items()}
        return Opened(Shard(name), shape, replace(match, theirs=names))

    def tally(self, match: Match, plan: ShardPlan, memory: int) -> ShardTally:
        """Return the counts, checked."""
        cells = plan.read_cells
        identity = _identity(match, plan.options.runs)
        if self.key is None:  # of two tables each was asked before
            self.refuse_repeats(identity)
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

    def refuse_repeats(self, identity: Mapping[str, str], kind: str = "duplicate-id") -> None:
        if not identity:
            return
        asked = repeats_statement(self.address.table, identity, dialect=self.address.engine)
        found = self.query(f"{asked} LIMIT {FAULTS}")
        if found.height:
            first = found["item"][0]
            what = "{n} id{s} that the table has more than once" if first else "{n} id{s} repeated or empty"
            places = [Place(self.address.name, item=str(item or "")) for item in found["item"]]
            ledger = Ledger()
            ledger.add(kind, what, "remove the duplicate rows", places, identity["item"])
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
        check_scores(Stack.of([Table(self.address.name, found)], shown_columns), options, ledger)
        if words:
            labels = Stack.of([Table(self.key or self.address.name, found)], shown_columns)
            check_labels(labels, "label", told, ledger)
        ledger.findings = [_without_rows(finding) for finding in ledger.findings]
        raise ledger.error()

    def places(self, plain: str) -> tuple[list[Place], int]:
        """Return where the ids are that a statement finds, some of them, and how many there are."""
        n = int(self._answer(f'SELECT COUNT(*) AS {sql_name(COUNT)} FROM ({plain}) AS "hitmiss_found"')[COUNT][0])
        found = self._answer(f"{plain} LIMIT {FAULTS}")["item"].to_list() if n else []
        return [Place(self.address.name, item=str(item)) for item in sorted(found)], n

    def _answer(self, plain: str) -> pl.DataFrame:
        return self.query(compiled(plain, self.address.engine))


def _identity(match: Match, runs: Sequence[str] = ()) -> dict[str, str]:
    """Return the table's columns that identify a trial; nothing without ids."""
    named = [name for name in ("item", "target", *runs) if name in match.picks]
    return {name: match.theirs[name] for name in named if "item" in named}


# ----------------------------------------------------------------------
# A table of scores with a key in another table: the engine joins them, with the checks that files have.


def _joined(
    scores: _Asking, opened: Opened, key: _Asking, options: ReadSpec, ledger: Ledger
) -> tuple[_Asking, Opened, Covering]:
    """Return the trials that both tables have as a table, its columns, and how much of the key is scored."""
    listed = key.look(options.for_key, ledger, "key")
    ours, theirs = opened.match, listed.match
    refuse_undeclared(options, (*(opened.shape.names or ()), *(listed.shape.names or ())), scores.address.name, ledger)
    if set(options.runs):
        raise UsageError("a key is joined with the scores of one run; give a table of one run", code="key-of-runs")
    on = {n: (ours.theirs[n], theirs.theirs[n]) for n in ("item", "target") if n in ours.picks and n in theirs.picks}
    pair = Pair(scores.source, key.source, on)
    for asking, match, kind in ((scores, ours, "duplicate-id"), (key, theirs, "duplicate-in-key")):
        asking.refuse_repeats(_identity(match), kind)
        if len(on) < len(_identity(match)):  # trials of several targets, and the other table does not say which
            asking.refuse_repeats({"item": match.theirs["item"]}, kind)
    absent, n_absent = key.places(pair.alone(KEY))
    extra, n_extra = scores.places(pair.alone(SCORES))
    total = int(key._answer(f"SELECT COUNT(*) AS {sql_name(COUNT)} FROM {key.source}")[COUNT][0])
    if n_absent == total:
        no_common_id([p.item or "" for p in extra], [p.item or "" for p in absent], [extra[0], absent[0]], ledger)
    elif not options.allow_missing:
        refuse_missing(extra, absent, on["item"][0], ledger, (n_extra, n_absent))
    shared = [name for name in theirs.picks if name in ours.picks and name not in ("item", *on)]
    for name in [] if ledger.findings else shared:
        _refuse_conflict(scores, pair, name, (ours.theirs[name], theirs.theirs[name]), options, ledger)
    if ledger.findings:
        ledger.findings = [
            replace(f, fix=f.fix.replace(": say --match stem", " (a view can do that)")) for f in ledger.findings
        ]
        raise ledger.error()
    taken = {name: (SCORES, own) for name, own in ours.theirs.items()}
    taken |= {name: (KEY, own) for name, own in theirs.theirs.items() if name not in on}
    # the joined table has our names; its labels are those of the first rows of the key
    match = replace(theirs, theirs={name: name for name in taken}, picks={**dict.fromkeys(taken, 0), **theirs.picks})
    both = replace(scores, source=pair.joined(taken), key=key.address.name)
    first = tuple(tuple(place.item or "" for place in side[:SHOWN_IDS]) for side in (extra, absent))
    return both, replace(listed, match=match), Covering(total - n_absent, total, n_extra, (first[0], first[1]))


def _refuse_conflict(
    scores: _Asking, pair: Pair, name: str, columns: tuple[str, str], options: ReadSpec, ledger: Ledger
) -> None:
    """Refuse trials for which a column that both tables have says something else in the key."""
    a, b = (sql_name(letter) for letter in "ab")
    both = pair.joined({"item": (SCORES, pair.on["item"][0]), "a": (SCORES, columns[0]), "b": (KEY, columns[1])})
    differ = f"{_text('a')} <> {_text('b')}"
    found = scores._answer(
        f"SELECT DISTINCT {_text('a')} AS {a}, {_text('b')} AS {b} FROM {both} WHERE {differ} LIMIT {FAULTS}"
    )
    sides = [
        settle_stack(Stack.of([Table("", found.select(pl.col(c).alias(name)))], {}), options).frame[name] for c in "ab"
    ]
    wrong = found.filter(differing(sides[0], sides[1], options)[0]).rows()
    if not wrong:
        return
    pairs = " OR ".join(f"({_text('a')} = {sql_text(x)} AND {_text('b')} = {sql_text(y)})" for x, y in wrong)
    places, n = scores.places(f'SELECT {_text("item")} AS "item" FROM {both} WHERE {pairs}')
    conflict(places, n, name, columns[0], ledger)


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
