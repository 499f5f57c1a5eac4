"""The tally as one SQL statement: for tables that live in a warehouse, and need not leave it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hitmiss.core.errors import UnknownName, UsageError

DIALECTS: Final = ("duckdb", "spark")
QUOTES: Final = {"duckdb": '"', "spark": "`"}
TEXT: Final = {"duckdb": "VARCHAR", "spark": "STRING"}
COUNT: Final = "n"


def statement(
    table: str,
    by: Sequence[str] = (),
    *,
    dialect: str = "duckdb",
    score: str = "score",
    label: str = "label",
    step: int | None = None,
) -> str:
    """Count the trials of a table by slice, label and score.

    `table` is a name, or a Parquet path or pattern. `step` counts scores rounded down to multiples of 1/step (a power of
    two, so that rounding is exact), for tables with more distinct scores than one wants to carry away.

    >>> print(statement("trials", ["codec"]))
    SELECT CAST("codec" AS VARCHAR) AS "codec", CAST("label" AS VARCHAR) AS "label", CAST("score" AS DOUBLE) AS "score", COUNT(*) AS "n"
    FROM "trials"
    GROUP BY 1, 2, 3
    """
    if dialect not in DIALECTS:
        raise UnknownName("SQL dialect", dialect, DIALECTS)
    if step is not None and (step < 1 or step & (step - 1)):
        raise UsageError(f"--step must be a power of two, so that rounding is exact; found {step}")
    texts = [(name, name) for name in dict.fromkeys(by)] + [(label, "label")]
    columns = [f"CAST({_name(theirs, dialect)} AS {TEXT[dialect]}) AS {_name(ours, dialect)}" for theirs, ours in texts]
    value = f"CAST({_name(score, dialect)} AS DOUBLE)"
    value = value if step is None else f"FLOOR({value} * {step}) / {step}"
    columns += [f"{value} AS {_name('score', dialect)}", f"COUNT(*) AS {_name(COUNT, dialect)}"]
    places = ", ".join(str(i + 1) for i in range(len(texts) + 1))
    return f"SELECT {', '.join(columns)}\nFROM {_source(table, dialect)}\nGROUP BY {places}"


def repeats_statement(table: str, item: str, *, dialect: str = "duckdb") -> str:
    """The ids that stand in a table more than once: none, or the counts are of no use.

    >>> print(repeats_statement("trials", "utt", dialect="spark"))
    SELECT `utt`, COUNT(*) AS `n` FROM `trials` GROUP BY `utt` HAVING COUNT(*) > 1
    """
    name = _name(item, dialect)
    return f"SELECT {name}, COUNT(*) AS {_name(COUNT, dialect)} FROM {_source(table, dialect)} GROUP BY {name} HAVING COUNT(*) > 1"


def _name(name: str, dialect: str) -> str:
    quote = QUOTES[dialect]
    return quote + name.replace(quote, quote * 2) + quote


def _source(table: str, dialect: str) -> str:
    """A table by its name (`schema.table` too), or files by their path."""
    if "/" in table or table.endswith(".parquet"):
        return f"parquet.{_name(table, 'spark')}" if dialect == "spark" else "'" + table.replace("'", "''") + "'"
    return ".".join(_name(part, dialect) for part in table.split("."))
