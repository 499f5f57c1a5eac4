"""The counting question as one SQL statement, for tables that live in a warehouse and need not leave it.

The statement is made once (`statements`, in the dialect of DuckDB); sqlglot, a compiler of SQL dialects, writes it for
the others. Names are quoted in all of them, so any name of a column does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from hitmiss.core.errors import EnvironmentFault, UnknownName, UsageError
from hitmiss.scale.plan import Question, Window
from hitmiss.scale.statements import COUNT, SCORE, counts, number, quoted, repeats, text

if TYPE_CHECKING:
    from types import ModuleType

PLAIN: Final = "duckdb"
DIALECTS: Final = (PLAIN, "bigquery", "databricks", "postgres", "snowflake", "spark", "trino")
FILES: Final = ("databricks", "spark")
"""Dialects beside DuckDB's in which a statement can read files by their path."""


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
        more distinct scores than one wants to carry away.

    Returns
    -------
    str
        The statement. Its columns are `label`, the slices, `score` and `n`.

    Raises
    ------
    UsageError
        For an unknown dialect, a step that is no power of two, files where the dialect reads tables alone.

    Examples
    --------
    >>> print(statement("lake.trials", ["codec"], score="llr"))
    WITH hitmiss_trials AS (SELECT COALESCE(CAST("label" AS VARCHAR), '') AS "label", COALESCE(CAST("codec" AS VARCHAR), '') AS "codec", CAST("llr" AS DOUBLE) AS "score" FROM "lake"."trials")
    SELECT "label", "codec", "score", COUNT(*) AS "n"
    FROM hitmiss_trials
    GROUP BY "label", "codec", "score"
    """
    _refuse_unknown(dialect)
    if step is not None and (step < 1 or step & (step - 1)):
        raise UsageError(f"--step must be a power of two, so that rounding is exact; found {step}", code="inexact-step")
    slices = tuple(dict.fromkeys(by))
    taken = [name for name in slices if name in ("label", SCORE, COUNT)]
    if taken:
        raise UsageError(
            f"a slice cannot be called {taken[0]!r}: the counts have a column of that name", code="taken-name"
        )
    question = Question({"label": label, SCORE: score, **{n: n for n in slices}}, ("label", *slices))
    return compiled(counts(question, source_of(table, dialect), Window()), dialect, step, pretty=True)


def repeats_statement(table: str, item: str, *, dialect: str = PLAIN) -> str:
    """The ids that a table has more than once, or that are empty: none, or the counts are of no use.

    >>> print(repeats_statement("trials", "utt"))
    SELECT "utt" AS "item", COUNT(*) AS "n" FROM "trials" GROUP BY "utt" HAVING COUNT(*) > 1 OR COALESCE(CAST("utt" AS VARCHAR), '') = ''
    """
    _refuse_unknown(dialect)
    return compiled(repeats(Question({"item": item}, identity=("item",)), source_of(table, dialect)), dialect)


def compiled(plain: str, dialect: str, step: int | None = None, *, pretty: bool = False) -> str:
    """A statement of DuckDB's in another dialect, and about rounded scores where there is a step."""
    if dialect == PLAIN and step is None:
        return plain
    sqlglot = _sqlglot()
    tree = sqlglot.parse_one(plain, read=PLAIN)
    if step is not None:
        _round(sqlglot, tree, step)
    return str(tree.sql(dialect=dialect, identify=True, pretty=pretty))


def source_of(table: str, dialect: str = PLAIN) -> str:
    """A table by its name (`schema.table` too), or files by their path, in DuckDB's SQL."""
    is_path = "/" in table or table.endswith(".parquet")
    if not is_path:
        return ".".join(quoted(part) for part in table.split("."))
    if dialect == PLAIN:
        return text(table)
    if dialect not in FILES:
        raise UsageError(f"{table}: {dialect} counts tables, not files; give the name of one", code="table-name")
    return f"{quoted('parquet')}.{quoted(table)}"


def _round(sqlglot: ModuleType, tree: Any, step: int) -> None:
    """Put the scores of a statement on a grid. From 2⁵³ steps on a double lies on it by itself (and Spark's FLOOR, which
    gives a 64-bit number, would not)."""
    [score] = [one for one in tree.find_all(sqlglot.exp.Alias) if one.alias == SCORE]
    value = score.this.sql(dialect=PLAIN)
    scaled = f"({value} * {number(float(step))})"
    rounded = f"CAST(FLOOR({scaled}) AS DOUBLE) * {number(1 / step)}"
    case = f"CASE WHEN ABS{scaled} < {number(2.0**53)} THEN {rounded} ELSE {value} END"
    score.set("this", sqlglot.parse_one(case, read=PLAIN))


def _refuse_unknown(dialect: str) -> None:
    if dialect not in DIALECTS:
        raise UnknownName("SQL dialect", dialect, DIALECTS)


def _sqlglot() -> ModuleType:
    try:
        import sqlglot
    except ImportError as error:
        raise EnvironmentFault(
            f"SQL of other dialects than {PLAIN}, and --step, need the package 'sqlglot' ({error}): "
            f"pip install 'hitmiss[sql]'"
        ) from None
    return sqlglot  # type: ignore[no-any-return]
