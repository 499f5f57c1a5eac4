"""The seal on the tallies of one run: each knows how many they are, so that none can be left out unnoticed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from hitmiss.core.errors import DataError, IncompleteRun
from hitmiss.scale.tallies import ShardTally

RUN: Final = "run"
PARTS: Final = "parts"


def sealed(tallies: Sequence[ShardTally]) -> list[ShardTally]:
    """The tallies of one finished run, each with the run's digest and how many shards it has."""
    shards = sorted(shard.sha256 for tally in tallies for shard in tally.shards)
    seal = {RUN: _digest(shards), PARTS: len(shards)}
    return [
        replace(tally, shards=tuple(replace(shard, facts={**shard.facts, **seal}) for shard in tally.shards))
        for tally in tallies
    ]


def refuse_missing(merged: ShardTally) -> None:
    """Refuse what lacks a part of a run, and what was never sealed since its run has not ended."""
    for shard in merged.shards:
        if RUN not in shard.facts:
            raise IncompleteRun(
                f"the tally {shard.name} is of a run that has not ended, so others may be missing; end it first, with "
                "`hitmiss detect … --resume` or, from Python, with `hitmiss.scale.at_once.settle`"
            )
    runs: dict[tuple[str, int], list[str]] = {}
    for shard in merged.shards:
        runs.setdefault((str(shard.facts[RUN]), shard.facts.get(PARTS, 0)), []).append(shard.sha256)
    for (run, parts), shards in runs.items():
        if len(shards) != parts:
            raise DataError(
                f"{parts - len(shards)} of the {parts} tallies of run {run[:12]} are missing; "
                "give all that are in its folder `tallies`",
                code="missing-tally",
            )
        if _digest(shards) != run:
            raise DataError(
                f"the tallies of run {run[:12]} are not those that it was sealed with: one was edited or exchanged; "
                "count the run again",
                code="edited-artifact",
            )


def _digest(shards: Sequence[str]) -> str:
    """SHA-256 over the digests of all shards of a run, in whatever order."""
    return hashlib.sha256("".join(sorted(shards)).encode()).hexdigest()
