"""Open a database, and ask it: DuckDB by its file, Spark by its session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import polars as pl

from hitmiss.core.errors import DataError, EnvironmentFault
from hitmiss.core.packages import need_package
from hitmiss.core.text import quoted
from hitmiss.outofcore.engines import answer_of

Query = Callable[[str], pl.DataFrame]
"""Returns the answer to a statement in the engine's dialect."""


@contextmanager
def open_duckdb(place: str) -> Iterator[Query]:
    """Open a database file."""
    duckdb = need_package("duckdb", "duckdb:", "hitmiss[duckdb]")
    if not Path(place).is_file():
        raise DataError.of("missing-file", what="file", file=place)
    try:
        with duckdb.connect(place, read_only=True) as connection:
            yield lambda statement: answer_of(connection.sql(statement))
    except duckdb.Error as error:
        if is_locked(place):
            raise EnvironmentFault.of("locked-database", place=place) from None
        raise _refusal("DuckDB", error) from None


def is_locked(place: str) -> bool:
    """Say whether another process has a file for itself, as who writes to a DuckDB file does."""
    try:
        import fcntl  # Windows has none
    except ImportError:
        return False
    with Path(place).open("rb") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


@contextmanager
def open_spark(_: str) -> Iterator[Query]:
    """Use the running session, or start one with Spark's settings on this machine; that one is stopped afterwards."""
    need_package("pyarrow", "spark:", "hitmiss[spark]", "pyspark")  # answers are transferred as Arrow
    SparkSession = need_package("pyspark.sql", "spark:", "hitmiss[spark]", "pyspark").SparkSession
    session = there = SparkSession.getActiveSession()
    quiet = {"spark.ui.showConsoleProgress": "false", "spark.log.level": "FATAL", "spark.ui.enabled": "false"}
    try:
        session = there or SparkSession.builder.appName("hitmiss").config(map=quiet).getOrCreate()
    except Exception as error:
        raise EnvironmentFault.of("no-spark", error=_first_line(error)) from None
    try:
        yield lambda statement: pl.DataFrame(session.sql(statement).toArrow())
    except Exception as error:  # errors from its Java side have no class of their own
        is_of_spark = type(error).__module__.partition(".")[0] in ("py4j", "pyspark", "grpc")
        if not (is_of_spark or isinstance(error, OSError)):
            raise
        if not _answers(lambda: session.sql("SELECT 1").collect()):
            raise EnvironmentFault.of("lost-engine", engine="Spark", error=_first_line(error)) from None
        if not is_of_spark:
            raise
        raise _refusal("Spark", error) from None
    finally:
        if there is None:
            with suppress(Exception):  # one that is gone need not be stopped
                session.stop()


def _answers(ask: Callable[[], object]) -> bool:
    """Say whether a session of Spark still answers anything."""
    try:
        return bool(ask())
    except Exception:  # it is gone, whatever its libraries say about that
        return False


def _refusal(engine: str, error: BaseException) -> DataError:
    return DataError.of("engine-refused", engine=engine, quoted=quoted(_first_line(error)))


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
