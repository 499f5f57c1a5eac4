"""`hitmiss sql`: the tally as one SQL statement, for tables in a data warehouse."""

from __future__ import annotations

from typing import Annotated

from hitmiss.cli import printing
from hitmiss.cli.options import arg
from hitmiss.cli.shared import JSON, field_option
from hitmiss.core.design import Design
from hitmiss.core.spec import READING, opt


def sql(
    table: Annotated[str, arg("Table (`schema.table`), or the path or pattern of Parquet files.")],
    by: Annotated[list[str] | None, field_option(Design, "by")] = None,
    dialect: Annotated[str, opt("duckdb, bigquery, databricks, postgres, snowflake, spark or trino.")] = "duckdb",
    score: Annotated[str, opt("The table's column with the score.")] = "score",
    label: Annotated[str, opt("The table's column with the label.")] = "label",
    item: Annotated[str | None, opt("The table's column with the id: adds a check for repeats.")] = None,
    key: Annotated[
        str | None, opt("Table with labels and slices, joined by --item (`item` if not given).", READING)
    ] = None,
    step: Annotated[int | None, opt("Count scores rounded down to multiples of 1/STEP (a power of two).")] = None,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Print the SQL that counts trials by slice, label and score; `hitmiss score --counts` reads its answer.

    $ hitmiss sql trials --by codec
    """
    from hitmiss.outofcore.statements import key_statements, repeats_statement, statement

    columns = [name.strip() for given in by or [] for name in given.split(",")]
    same = item or "item"
    counting = statement(table, columns, dialect=dialect, score=score, label=label, step=step, key=key, item=same)
    repeats = repeats_statement(table, {"item": same}, dialect=dialect) if item or key else None
    checks = {} if key is None else key_statements(table, key, same, dialect=dialect)
    if json:
        printing.out_json({"dialect": dialect, "counts": counting, "repeats": repeats, **checks})
        return
    for check in filter(None, (repeats, *checks.values())):
        printing.out(f"-- must give no row: {check};")
    printing.out(counting)
