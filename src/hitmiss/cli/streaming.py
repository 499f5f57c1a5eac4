"""`hitmiss score --stream`, `--cluster` and `--counts`: files beyond memory, and counts that another program made."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hitmiss.cli import printing

if TYPE_CHECKING:
    from hitmiss.design import Design
    from hitmiss.readspec import ReadSpec
    from hitmiss.results import Results
    from hitmiss.scale.running import Executor
    from hitmiss.trials import Trials

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


@dataclass(frozen=True)
class How:
    """How files beyond memory are counted: whether they hold counts, where, and with how much memory."""

    key: str | None = None
    counts: bool = False
    cluster: str | None = None
    memory: str = "1GB"
    scratch: str | None = None


def flag(counts: bool, cluster: str | None) -> str:
    """The option that asked for it."""
    return "--counts" if counts else "--cluster" if cluster else "--stream"


def evaluated(files: list[str], reading: ReadSpec, asked: Design, how: How) -> tuple[Results, Trials]:
    """The figures of shards, counts or tallies, and what stands for their trials."""
    are_tallies = all(name.endswith(".tally") for name in files)
    if how.counts or are_tallies:
        refuse_key("a file of counts" if how.counts else "a tally", how.key)
    if how.counts:
        refuse_together("--counts", {"--cluster": how.cluster})
    if are_tallies:
        return measured_tallies(files, reading, asked)
    if how.counts:
        from hitmiss.scale.counted import evaluate_counts

        found = evaluate_counts(files, reading=reading, design=asked)
        return found.results, found.trials
    from hitmiss.scale.streaming import evaluate_streamed

    with _executor(how.cluster) as run:
        found = evaluate_streamed(
            files,
            run=run,
            memory=size(how.memory),
            scratch=how.scratch,
            key=how.key,
            reading=reading,
            design=asked,
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


def measured_tallies(files: list[str], reading: ReadSpec, asked: Design) -> tuple[Results, Trials]:
    """The figures of tallies that the processes of a cluster made while they scored."""
    from hitmiss.errors import UsageError
    from hitmiss.readspec import OPTION
    from hitmiss.scale.at_once import evaluate_tallies

    names = [*reading.said, *(["threshold"] if asked.threshold is not None else [])]
    given = [f"--{OPTION.get(name, name)}" for name in names]
    if given:
        raise UsageError(f"{given[0]} was settled when the tallies were made; leave it out", code="settled-option")
    found = evaluate_tallies(files, design=asked)
    return found.results, found.trials


def refuse_key(what: str, key: str | None) -> None:
    """One sentence where labels can no longer be joined."""
    from hitmiss.errors import UsageError

    if key is not None:
        raise UsageError(
            f"{what} has no ids to join a --key with: its labels are those that it was counted by; leave --key out",
            code="key-of-counts",
        )


def refuse_together(flag: str, others: Mapping[str, object]) -> None:
    """One sentence where an option needs every trial at once."""
    from hitmiss.errors import UsageError

    given = [name for name, value in others.items() if value]
    if given:
        raise UsageError(f"{given[0]} needs every trial at once; leave it or {flag} out", code="needs-every-trial")


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
        raise UsageError(f"--memory {text!r}: write a size of at least 10MB, as 500MB or 2GB", code="bad-memory")
    return n
