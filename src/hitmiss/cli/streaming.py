"""`hitmiss score --stream`, `--cluster` and `--counts`: files beyond memory, and counts that another program made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hitmiss.cli import printing

if TYPE_CHECKING:
    from hitmiss.protocol import Protocol
    from hitmiss.readspec import ReadSpec
    from hitmiss.results import Results
    from hitmiss.scale.running import Executor
    from hitmiss.trials import Trials

OPTION = {"columns": "column", "key_columns": "key_column", "score_columns": "score_column"}
"""Fields of a spec whose option is called otherwise."""
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


def evaluated(
    files: list[str],
    protocol: Protocol | None,
    reading: ReadSpec,
    options: dict[str, Any],
    needing: dict[str, Any],
    *,
    key: str | None,
    counts: bool,
    cluster: str | None,
    memory: str,
    scratch: str | None,
    threshold: float | None,
) -> tuple[Results, Trials]:
    """The figures of shards, counts or tallies; `needing` are options that need every trial at once."""
    are_tallies = all(name.endswith(".tally") for name in files)
    if counts or are_tallies:
        what = "a file of counts" if counts else "a tally"
        refuse_key(what, key)
    needing |= {"--cluster": cluster} if counts else {}
    refuse_together("--counts" if counts else "--cluster" if cluster else "--stream", needing)
    if are_tallies:
        return measured_tallies(files, protocol, reading, options, threshold=threshold)
    if counts:
        return measured_counts(files, protocol, reading, options, threshold=threshold)
    return measured(
        files, protocol, reading, options, key=key, threshold=threshold, memory=memory, scratch=scratch, cluster=cluster
    )


def measured(
    scores: list[str],
    protocol: Protocol | None,
    reading: ReadSpec,
    options: dict[str, Any],
    *,
    key: str | None,
    threshold: float | None,
    memory: str,
    scratch: str | None,
    cluster: str | None = None,
) -> tuple[Results, Trials]:
    """The figures of shards, counted one by one here or many at a time on a cluster; and what stands for their trials."""
    from hitmiss.scale.streaming import evaluate_streamed

    with _executor(cluster) as run:
        found = evaluate_streamed(
            scores,
            protocol,
            run=run,
            memory=size(memory),
            scratch=scratch,
            threshold=threshold,
            key=key,
            reading=reading,
            **options,
        )
    return found.results, found.trials


@contextmanager
def _executor(cluster: str | None) -> Iterator[Executor]:
    from hitmiss.scale.running import sequential

    if cluster is None:
        yield sequential
        return
    from hitmiss.ray_cluster.connection import joined
    from hitmiss.ray_cluster.tasks import RayTasks

    with joined(cluster) as found:
        printing.note(f"cluster: {found}")
        yield RayTasks(found)


def measured_counts(
    files: list[str],
    protocol: Protocol | None,
    reading: ReadSpec,
    options: dict[str, Any],
    *,
    threshold: float | None,
) -> tuple[Results, Trials]:
    """The figures of counts by score, as `hitmiss sql` has a warehouse make them."""
    from hitmiss.scale.counted import evaluate_counts

    found = evaluate_counts(files, protocol, threshold=threshold, reading=reading, **options)
    return found.results, found.trials


def measured_tallies(
    files: list[str],
    protocol: Protocol | None,
    reading: ReadSpec,
    options: dict[str, Any],
    *,
    threshold: float | None,
) -> tuple[Results, Trials]:
    """The figures of tallies that the processes of a cluster made while they scored."""
    from hitmiss.errors import UsageError
    from hitmiss.scale.at_once import evaluate_tallies

    names = [*reading.said, *(["threshold"] if threshold is not None else [])]
    given = [f"--{OPTION.get(name, name).replace('_', '-')}" for name in names]
    if given:
        raise UsageError(f"{given[0]} was settled when the tallies were made; leave it out")
    found = evaluate_tallies(files, protocol, **options)
    return found.results, found.trials


def refuse_key(what: str, key: str | None) -> None:
    """One sentence where labels can no longer be joined."""
    from hitmiss.errors import UsageError

    if key is not None:
        raise UsageError(
            f"{what} has no ids to join a --key with: its labels are those that it was counted by; leave --key out"
        )


def refuse_together(flag: str, others: dict[str, Any]) -> None:
    """One sentence where an option needs every trial at once."""
    from hitmiss.errors import UsageError

    given = [name for name, value in others.items() if value]
    if given:
        raise UsageError(f"{given[0]} needs every trial at once; leave it or {flag} out")


def size(text: str) -> int:
    """A size in bytes from its text.

    >>> size("2GB"), size("500 MB"), size("1e9")
    (2000000000, 500000000, 1000000000)
    """
    from hitmiss.errors import UsageError

    found = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([kmg]?)b?\s*", text.lower())
    try:
        n = int(float(found[1]) * UNITS[found[2]]) if found else 0
    except ValueError:
        n = 0
    if n < 10**7:
        raise UsageError(f"--memory {text!r}: write a size of at least 10MB, as 500MB or 2GB")
    return n
