"""Ids that occur in the shards more than once: found by their hashes, reported with file and row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import polars as pl

from hitmiss.core.finding import Place
from hitmiss.core.score_keys import Keys
from hitmiss.io.diagnostics import Diagnostics
from hitmiss.outofcore.binned import Binned, KeptKeys, stretches
from hitmiss.outofcore.counting import RANGE, tallies
from hitmiss.outofcore.disk import Disk
from hitmiss.outofcore.engines import ShardReader
from hitmiss.outofcore.executors import Executor
from hitmiss.outofcore.plan import Shard, ShardPlan
from hitmiss.outofcore.shard_tally import ShardTally, merge_tallies

HASH_BYTES = 32
"""The memory per hash while hashes are examined: the hash, and copies of it while hashes are sorted."""
MOST_LOOKED_UP = 1000
"""The number of repeated ids that are looked up; more would add no information."""


def hashes_of(shard: Shard, plan: ShardPlan) -> Iterator[ShardTally]:
    """Yield tallies of nothing but the ids of a shard."""
    for _, ids in ShardReader(shard, plan, Diagnostics()).hashes():
        yield ShardTally((), {}, Binned(ids.to_numpy(), is_sorted=False))


def every_id(
    tally: ShardTally, shards: Sequence[Shard], plan: ShardPlan, run: Executor, disk: Disk | None
) -> KeptKeys | None:
    """Return the hashes of all ids; None if there are none, or if ids ascend from shard to shard and none can repeat."""
    if tally.ids is not None or not (plan.ids and any(shard.facts.get("has_ids") for shard in tally.shards)):
        return tally.ids
    ranges = sorted(tuple(shard.facts[RANGE]) for shard in tally.shards if RANGE in shard.facts)
    if len(ranges) == len(tally.shards) and all(a[1] < b[0] for a, b in pairwise(ranges)):
        return None
    return merge_tallies(tallies(shards, plan, run, hashes_of, "ids compared"), disk).ids


def locate(shard: Shard, plan: ShardPlan, wanted: frozenset[int]) -> list[tuple[int, Place]]:
    """Return the rows of a shard whose ids have these hashes: (hash, place), in the order of the file."""
    found, among = list[tuple[int, Place]](), pl.Series(sorted(wanted), dtype=pl.UInt64).implode()
    for stack, hashed in ShardReader(shard, plan, Diagnostics()).hashes():
        rows = hashed.is_in(among).arg_true()
        found += zip(hashed[rows].to_list(), stack.at(rows), strict=True) if len(rows) else []
    return found


def hash_parts(ids: KeptKeys | None, memory: int) -> Iterator[Binned]:
    """Yield the hashes of all ids, as many at a time as fit; equal hashes are in the same part."""
    if ids is not None:
        yield from (ids.between(*ends) for ends in stretches([ids.coarse(())], memory // HASH_BYTES))


def refuse_hashes(twice: Keys, shards: Sequence[Shard], plan: ShardPlan, run: Executor) -> None:
    """Refuse ids that occur twice in all shards. Equal hashes prove nothing: the ids themselves are compared."""
    if not len(twice):
        return
    wanted = frozenset(twice[:MOST_LOOKED_UP].tolist())
    groups: dict[tuple[int, str], list[Place]] = {}
    for found in run(locate, [(shard, plan, wanted) for shard in shards]):
        for hashed, place in found:
            groups.setdefault((hashed, place.item or ""), []).append(place)
    ledger = Diagnostics()
    places = [place for group in groups.values() if len(group) > 1 for place in group]
    ledger.add("duplicate-id/shards", places, "item")
    if ledger.findings:
        raise ledger.error()
