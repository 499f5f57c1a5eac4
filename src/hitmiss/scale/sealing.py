"""The seal on the tallies of one run: each knows how many they are, so that none can be left out unnoticed."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from hitmiss.errors import DataError, IncompleteRun
from hitmiss.scale.tallies import ShardTally

RUN: Final = "run"
PARTS: Final = "parts"


def sealed(tallies: Sequence[ShardTally]) -> list[ShardTally]:
    """The tallies of one finished run, each with the run's digest and how many shards it has."""
    shards = sorted(shard.sha256 for tally in tallies for shard in tally.shards)
    seal = {RUN: hashlib.sha256("".join(shards).encode()).hexdigest()[:12], PARTS: len(shards)}
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
    for (run, parts), n in Counter((shard.facts[RUN], shard.facts[PARTS]) for shard in merged.shards).items():
        if n != parts:
            raise DataError(
                f"{parts - n} of the {parts} tallies of run {run} are missing; give all that are in its folder `tallies`"
            )
