"""Ids that stand in the shards more than once: found by their hashes, told with file and row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import TypeVar

import numpy as np

from hitmiss.core import progress
from hitmiss.io.diagnostics import Ledger, Place
from hitmiss.scale.counting import hashes_of, locate
from hitmiss.scale.plan import Shard, ShardPlan
from hitmiss.scale.running import Executor
from hitmiss.scale.tallies import ShardTally, ordered
from hitmiss.stats.sketch import Keys

T = TypeVar("T")
HASH_BYTES = 32
"""What a hash costs while it is looked at: itself, and copies of it while hashes are sorted."""
MOST = 1000
"""Repeated ids that are looked up; more would say nothing new."""


def refuse_repeats(tally: ShardTally, shards: Sequence[Shard], plan: ShardPlan, run: Executor, memory: int) -> None:
    """Refuse where an id occurs twice in all shards. Equal hashes prove nothing: the ids themselves are compared.

    Hashes that were not carried along are collected now, as many at a time as fit, by their range.
    """
    if are_ascending(tally):
        return
    if tally.ids is not None:
        refuse_hashes(repeated(ordered(tally.ids)), shards, plan, run)
        return
    if not all(shard.facts.get("has_ids") for shard in tally.shards):
        return
    rows = sum(shard.rows for shard in tally.shards)
    for hashed in _collected(shards, plan, run, rows, memory):
        refuse_hashes(repeated(ordered(hashed)), shards, plan, run)


def _collected(shards: Sequence[Shard], plan: ShardPlan, run: Executor, rows: int, memory: int) -> Iterator[Keys]:
    """The hashes of all ids, as many at a time as fit; equal ones come together."""
    n = max(-(-rows * HASH_BYTES // memory), 1)
    ranges = [(part * 2**64 // n, (part + 1) * 2**64 // n - 1) for part in range(n)]
    calls = [(shard, plan, *ends) for ends in ranges for shard in shards]
    found = _told(run(hashes_of, calls), len(calls))
    for _ in ranges:
        yield np.concatenate(list(islice(found, len(shards))))


def _told(found: Iterator[T], total: int) -> Iterator[T]:
    for done, one in enumerate(found, 1):
        progress.tell("looking for repeated ids", done, total)
        yield one


def are_ascending(tally: ShardTally) -> bool:
    """Whether the ids of every shard stand in strictly ascending order, and the shards' stretches apart: none repeats."""
    ranges = sorted(tuple(shard.facts["ids"]) for shard in tally.shards if shard.facts.get("ids"))
    if len(ranges) != len(tally.shards):
        return False
    return all(a[1] < b[0] for a, b in pairwise(ranges))


def repeated(hashes: Keys) -> Keys:
    """The hashes that occur more than once, of hashes in ascending order.

    >>> repeated(np.array([1, 4, 4, 4, 9], dtype=np.uint64)).tolist()
    [4]
    """
    return np.unique(hashes[1:][hashes[1:] == hashes[:-1]])


def refuse_hashes(twice: Keys, shards: Sequence[Shard], plan: ShardPlan, run: Executor) -> None:
    """Look repeated hashes up in the shards, and refuse the ids that really are repeated."""
    if not len(twice):
        return
    wanted = frozenset(twice[:MOST].tolist())
    groups: dict[tuple[int, str], list[Place]] = {}
    for found in run(locate, [(shard, plan, wanted) for shard in shards]):
        for hashed, place in found:
            groups.setdefault((hashed, place.item or ""), []).append(place)
    empty = [Place(p.file, p.row) for (_, item), group in groups.items() if not item for p in group]
    places = [place for (_, item), group in groups.items() if item and len(group) > 1 for place in group]
    if empty or places:
        ledger = Ledger()
        ledger.add("empty-id", "{n} row{s} without an id", "give every row its id", empty, "item", "the id is empty")
        ledger.add(
            "duplicate-id",
            "{n} row{s} of repeated ids",
            "each trial must be there once: take the others out, or merge identical rows without --stream and with --dedupe",
            places,
            "item",
            "the id stands there more than once",
        )
        raise ledger.error()
