"""Evaluate what is counted instead of read: files larger than memory, tables inside a database engine, counts by score."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Final, Literal

from hitmiss.core.errors import UsageError
from hitmiss.core.spec import READING, Spec, opt

if TYPE_CHECKING:
    from hitmiss.core.design import Design
    from hitmiss.core.read_spec import ReadSpec
    from hitmiss.core.results import Results
    from hitmiss.core.trials import Trials
    from hitmiss.io.addresses import TableAddress
    from hitmiss.outofcore.executors import Executor

__all__ = ["Counting", "evaluate_counted", "memory_size", "refuse_together"]

UNITS: Final = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
LEAST_MEMORY: Final = 10**7


@dataclass(frozen=True)
class Counting(Spec):
    """How files larger than memory are counted: whether they hold counts, where the work runs, with how much memory."""

    stream: Annotated[bool, opt("Count the files piece by piece: they need not fit into memory.", READING)] = False
    counts: Annotated[bool, opt("The files hold counts by score, as the SQL of `hitmiss sql` makes them.", READING)] = (
        False
    )
    memory: Annotated[str, opt("Memory that --stream may use, such as 500MB or 2GB.", READING)] = "1GB"
    scratch: Annotated[str | None, opt("Folder for temporary files of --stream.", READING, metavar="FOLDER")] = None
    engine: Annotated[
        Literal["polars", "duckdb", "spark", "ray"] | None,
        opt("Engine that counts files larger than memory (implies --stream); the numbers are the same.", READING),
    ] = None
    cluster: Annotated[
        str | None,
        opt(
            "Count the files on a Ray cluster: auto (this machine's cores), HOST:PORT or ray://HOST:PORT.",
            READING,
            metavar="auto|ADDRESS",
        ),
    ] = None

    def is_asked(self, files: Sequence[str]) -> bool:
        """Say whether files are counted: on request, or because they are a table inside a database engine."""
        return bool(self.stream or self.counts or self.cluster or self.engine) or _table(files) is not None

    @property
    def flag(self) -> str:
        """The option that asked for counting."""
        return "--counts" if self.counts else "--cluster" if self.cluster else "--stream"


def evaluate_counted(
    files: Sequence[str],
    key: str | None,
    reading: ReadSpec,
    design: Design,
    counting: Counting,
    tell: Callable[[str], None] = lambda text: None,
) -> tuple[Results, Trials]:
    """Measure shards or counts; return the numbers and the object that takes the place of their trials."""
    if counting.engine == "ray":  # a cluster on the cores of this machine; its tasks count with polars
        counting = replace(counting, engine=None, cluster=counting.cluster or "auto")
    memory = memory_size(counting.memory)
    table = _table(files, counting.engine)
    if table is not None:
        from hitmiss.outofcore.warehouse import evaluate_table

        refuse_together(files[0], {"--counts": counting.counts, "--cluster": counting.cluster})
        if counting.engine is not None and counting.engine != table.engine:
            raise UsageError.of("other-engine", files=files[0], engine=table.engine, engine_2=counting.engine)
        of_key = None if key is None else _table_of_key(key, counting.engine)
        counted = evaluate_table(table, key=of_key, reading=reading, design=design, memory=memory)
        return counted.results, counted.trials
    if counting.counts:
        if key is not None:  # labels can no longer be joined
            raise UsageError.of("key-of-counts")
        refuse_together("--counts", {"--cluster": counting.cluster})
        if counting.engine is not None:
            raise UsageError.of("counted-already")
    from hitmiss.outofcore.stream import evaluate_streamed

    with _executor(counting.cluster, tell) as run:
        found = evaluate_streamed(
            list(files),
            run=run,
            engine=counting.engine or "polars",
            memory=memory,
            scratch=counting.scratch,
            key=key,
            are_counts=counting.counts,
            reading=reading,
            design=design,
        )
    return found.results, found.trials


def refuse_together(flag: str, others: Mapping[str, object]) -> None:
    """Refuse an option that needs all trials at once."""
    given = [name for name, value in others.items() if value]
    if given:
        raise UsageError.of("needs-every-trial/stream", given=given[0], flag=flag)


def memory_size(text: str) -> int:
    """Convert a text such as `2GB` to a number of bytes.

    >>> memory_size("2GB"), memory_size("500 MB"), memory_size("1e9")
    (2000000000, 500000000, 1000000000)
    """
    found = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([kmg]?)b?\s*", text.lower())
    try:
        n = int(float(found[1]) * UNITS[found[2]]) if found else 0
    except ValueError:
        n = 0
    if n < LEAST_MEMORY:
        raise UsageError.of("bad-memory", size=text)
    return n


def _table(files: Sequence[str], engine: str | None = None) -> TableAddress | None:
    """Return the engine's table that was given instead of files; Spark also takes Parquet files as a table."""
    from hitmiss.io.addresses import TableAddress, table_of

    found = [address for address in map(table_of, files) if address is not None]
    if engine == "spark" and not found:
        found = [TableAddress("spark", "", file) for file in files]
    if found and len(files) > 1:
        raise UsageError.of("several-tables")
    return found[0] if found else None


def _table_of_key(key: str, engine: str | None) -> TableAddress:
    """Return the table that is the key of a table."""
    found = _table([key], engine)
    if found is None:
        raise UsageError.of("key-not-a-table/same", key=key)
    return found


@contextmanager
def _executor(cluster: str | None, tell: Callable[[str], None]) -> Iterator[Executor]:
    """Return what runs the tasks: this process, or a cluster."""
    from hitmiss.outofcore.executors import sequential

    if cluster is None:
        yield sequential
        return
    from hitmiss.cluster.ray import joined
    from hitmiss.cluster.tasks import RayTasks

    with joined(cluster) as found:
        tell(f"cluster: {found}")
        yield RayTasks(found)
