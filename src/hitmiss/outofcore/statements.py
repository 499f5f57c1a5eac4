"""The counting question as SQL, for tables in a warehouse, which do not have to leave it.

Statements are made once, in DuckDB's dialect; sqlglot, a SQL dialect compiler, translates them. Names are quoted in
every dialect, so a column may have any name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.core.packages import need_package
from hitmiss.outofcore.engines import COUNT, sql_name, sql_text

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
        raise UsageError.of("inexact-step", step=step)
    slices = tuple(dict.fromkeys(by))
    taken = [name for name in slices if name in ("label", SCORE, COUNT)]
    if taken:
        raise UsageError.of("taken-name", taken=taken[0])
    columns = {"label": label, SCORE: score, **{n: n for n in slices}}
    source = source_of(table, dialect)
    if key is not None:
        pair = Pair(source, source_of(key, dialect), {"item": (item, item)})
        source = pair.joined({score: (SCORES, score), **{name: (KEY, name) for name in (label, *slices)}})
    return compiled(counts_of(columns, ("label", *slices), source, step), dialect, pretty=True)


def repeats_statement(table: str, columns: Mapping[str, str], *, dialect: str = PLAIN) -> str:
    """Return SQL for the ids that are repeated or empty; unless there are none, the counts cannot be used.

    `columns` maps what identifies a trial (`item`, and target and runs if there are any) to the table's columns.

    >>> print(repeats_statement("trials", {"item": "utt"}))
    SELECT "utt" AS "item", COUNT(*) AS "n" FROM "trials" GROUP BY "utt" HAVING COUNT(*) > 1 OR COALESCE(CAST("utt" AS VARCHAR), '') = ''
    """
    shown = [f"{sql_name(theirs)} AS {sql_name(ours)}" for ours, theirs in columns.items()]
    return compiled(
        f"SELECT {', '.join(shown)}, COUNT(*) AS {sql_name(COUNT)} FROM {source_of(table, dialect)} "
        f"GROUP BY {', '.join(map(sql_name, columns.values()))} HAVING COUNT(*) > 1 OR {text_of(columns['item'])} = ''",
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
            f'SELECT {text_of(own, side)} AS "item" FROM {here} AS {side} LEFT JOIN {there} AS {other} ON {self._same} '
            f"WHERE {other}.{sql_name(theirs)} IS NULL"
        )

    @property
    def _same(self) -> str:
        return " AND ".join(f"{text_of(ours, SCORES)} = {text_of(theirs, KEY)}" for ours, theirs in self.on.values())


def key_statements(table: str, key: str, item: str = "item", *, dialect: str = PLAIN) -> dict[str, str]:
    """Return SQL for ids that the key repeats, and for those that only one of the tables has; none may give a row."""
    pair = Pair(source_of(table, dialect), source_of(key, dialect), {"item": (item, item)})
    return {
        "key_repeats": repeats_statement(key, {"item": item}, dialect=dialect),
        "only_in_key": compiled(pair.alone(KEY), dialect),
        "only_in_scores": compiled(pair.alone(SCORES), dialect),
    }


def counts_of(columns: Mapping[str, str], cells: Sequence[str], source: str, step: int | None = None) -> str:
    """Return SQL that counts the trials of each cell by score; `columns` maps our names to those of the table."""
    taken = [f"{text_of(columns[name])} AS {sql_name(name)}" for name in cells]
    taken.append(f"{score_of(columns[SCORE], step)} AS {sql_name(SCORE)}")
    groups = ", ".join(map(sql_name, (*cells, SCORE)))
    return (
        f"WITH {TRIALS} AS (SELECT {', '.join(taken)} FROM {source})\n"
        f"SELECT {groups}, COUNT(*) AS {sql_name(COUNT)}\nFROM {TRIALS}\nGROUP BY {groups}"
    )


def score_of(column: str, step: int | None = None) -> str:
    """Return a score as SQL, rounded down to multiples of 1/step."""
    score = f"CAST({sql_name(column)} AS DOUBLE)"
    if step is None:
        return score
    # A bare literal would be a decimal number. From 2⁵³ steps on, every double lies on the grid already (and Spark's
    # FLOOR, which returns 64 bits, would overflow).
    many, grid, whole = (f"CAST('{value!r}' AS DOUBLE)" for value in (2.0**53, 1 / step, float(step)))
    scaled = f"({score} * {whole})"
    return f"CASE WHEN ABS{scaled} < {many} THEN CAST(FLOOR({scaled}) AS DOUBLE) * {grid} ELSE {score} END"


def text_of(column: str, side: str = "") -> str:
    return f"COALESCE(CAST({side and f'{side}.'}{sql_name(column)} AS VARCHAR), '')"


def compiled(plain: str, dialect: str, *, pretty: bool = False) -> str:
    """Translate a DuckDB statement into another dialect."""
    if dialect == PLAIN:
        return plain
    sqlglot = need_package("sqlglot", f"SQL of other dialects than {PLAIN}", "hitmiss[sql]")
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
        raise UsageError.of("table-name", table=table, dialect=dialect)
    return f"{sql_name('parquet')}.{sql_name(table)}"
