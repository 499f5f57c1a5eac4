"""Engines that answer counting questions: what trials of a shard have which score, or lie in which bin of scores.

Each takes a sheet and a window and gives the same rows (see `cells_of_counts`), whoever it is: only the time differs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

import numpy as np
import polars as pl

from hitmiss.core.errors import EnvironmentFault, UnknownName
from hitmiss.io.tables import is_plain_number
from hitmiss.scale.plan import Question, Window
from hitmiss.scale.sheets import Sheet, id_columns
from hitmiss.scale.statements import counts, quoted, text, trials
from hitmiss.stats.sketch import EXACT


class Engine(Protocol):
    """Counts the trials of a sheet."""

    def __call__(self, sheet: Sheet, window: Window, /) -> pl.DataFrame:
        """The rows: the cells, then `score`, or `place` (and `part` where there are cuts), and `n` where trials are grouped.

        A score that is null or NaN is counted as such, in or out of the window. Of probabilities in bins, `low` and
        `high` are the ends of the scores of each row.
        """


def by_polars(sheet: Sheet, window: Window) -> pl.DataFrame:
    """In this process, on all cores, a piece of the file at a time.

    Whole scores come as they are, one row per trial: sorting them takes less memory than grouping them. Bins are grouped.
    """
    plan, cells, score = sheet.plan, sheet.plan.cells, pl.col("score")
    texts = [pl.col(name).cast(pl.Categorical) for name in cells]
    if window.bits == EXACT and window.ranges is None and sheet.carry:
        return sheet.rows.select(*texts, score, *id_columns(sheet)).collect(engine="streaming")
    trials = sheet.trials
    if window.ranges is not None:
        lost = score.fill_null(float("nan")).is_nan()
        trials = trials.filter(pl.any_horizontal(lost, *(score.is_between(a, b) for a, b in window.ranges)))
    if window.bits == EXACT:
        return trials.select(*texts, score).collect(engine="streaming")
    place = score.map_batches(places_of(window.bits), return_dtype=pl.Int64, is_elementwise=True)
    groups = [*(pl.col(name) for name in cells), place.alias("place")]
    if window.cuts:
        groups.append(pl.sum_horizontal(score >= cut for cut in sorted(window.cuts)).alias("part"))
    ends = [score.min().alias("low"), score.max().alias("high")] if plan.options.score_kind == "probability" else []
    return trials.group_by(groups).agg(pl.len().cast(pl.Int64).alias("n"), *ends).collect(engine="streaming")


def by_duckdb(sheet: Sheet, window: Window) -> pl.DataFrame:
    """In DuckDB, which puts on disk by itself what a grouping does not hold in memory."""
    connection = _duckdb().connect()
    try:
        connection.execute(f"SET memory_limit = '{LIMIT}'")
        asked = _direct(sheet)
        source = f"read_parquet({text(sheet.opened.shard.path)})"
        if asked is None:  # what DuckDB would read otherwise than we do comes as we read it
            asked, source = Question({n: n for n in (*sheet.plan.cells, "score")}, sheet.plan.cells), '"sheet"'
            _fill(connection, sheet)
        answer = pl.DataFrame(connection.sql(counts(asked, source, window)).to_arrow_table())
        whole = [name for name in ("place", "part", "n") if name in answer.columns]
        answer = answer.with_columns(pl.col(whole).cast(pl.Int64))
        if window.bits == EXACT or sheet.plan.options.score_kind != "probability":
            return answer
        ends = connection.execute(f'SELECT min("score"), max("score") FROM ({trials(asked, source)})').fetchone()
        return answer.with_columns(low=pl.lit(ends[0], dtype=pl.Float64), high=pl.lit(ends[1], dtype=pl.Float64))
    finally:
        connection.close()


def _direct(sheet: Sheet) -> Question | None:
    """The question about a Parquet file as it is; None where its columns are not plainly texts and numbers, or a key is joined."""
    opened, plan = sheet.opened, sheet.plan
    names = opened.shape.names
    if not opened.is_parquet or plan.key is not None or names is None or "score" not in opened.match.picks:
        return None
    schema = pl.read_parquet_schema(opened.shard.path)
    columns = {n: names[at] for n, at in opened.match.picks.items() if n in (*plan.cells, "score") and at >= 0}
    texts = [schema[theirs] for ours, theirs in columns.items() if ours != "score"]
    if not is_plain_number(schema[columns["score"]]) or any(kind != pl.String for kind in texts):
        return None
    constants = {n: str(opened.shard.system) for n, at in opened.match.picks.items() if at < 0 and n in plan.cells}
    return Question(
        columns,
        plan.cells,
        constants=constants,
        rename=plan.options.rename,
        turn=plan.turn,
        threshold=plan.threshold,
    )


def _fill(connection: Any, sheet: Sheet) -> None:
    """A table of the trials as we read them."""
    columns = [*sheet.plan.cells, "score"]
    kinds = ", ".join(f"{quoted(name)} {'DOUBLE' if name == 'score' else 'VARCHAR'}" for name in columns)
    connection.execute(f'CREATE TEMP TABLE "sheet" ({kinds})')
    for piece in sheet.trials.select(columns).collect_batches(engine="streaming"):
        connection.register("piece", piece)
        connection.execute('INSERT INTO "sheet" SELECT * FROM piece')
        connection.unregister("piece")


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise EnvironmentFault(f"--engine duckdb needs a package ({error}): pip install 'hitmiss[duckdb]'") from None
    return duckdb


ENGINES: Final[dict[str, Engine]] = {"polars": by_polars, "duckdb": by_duckdb}
LIMIT: Final = "500MB"
"""What DuckDB may hold; the rest of a grouping goes to its own files for a while."""


def find_engine(name: str) -> Engine:
    """The engine of a name."""
    if name not in ENGINES:
        raise UnknownName("engine", name, ENGINES)
    return ENGINES[name]


def places_of(bits: int) -> Callable[[pl.Series], pl.Series]:
    """The highest bits of scores as they are: a bin by another name (see `bins_from_places`)."""

    def places(score: pl.Series) -> pl.Series:
        values = score.to_numpy() + 0.0  # −0.0 + 0.0 is 0.0; null becomes NaN here and null again below
        with np.errstate(invalid="ignore", over="ignore"):
            is_odd = np.isnan(np.add.reduce(values))  # where a score is NaN, or where both infinities are
        if is_odd:
            values[np.isnan(values)] = np.nan  # NaN has many spellings, some with nothing in the highest bits
        found = pl.Series(score.name, values.view(np.int64) >> np.int64(EXACT - bits) & np.int64((1 << bits) - 1))
        return found.set(score.is_null(), None) if score.null_count() else found

    return places
