"""The two passes over a shard, as plain functions: whoever runs them, wherever, gets the same tallies.

first_pass    every trial counted, by score or by bin of scores
second_pass   the trials of some bins again, each with its whole score
spill_pass    the keys of all scores put on disk, in parts by their range
hashes_of     the hashes of ids, where the tallies do not carry them
spill_hashes  the same put on disk, in parts
locate        where ids stand, given their hashes: for telling what is repeated
"""

from __future__ import annotations

from hitmiss.scale.counters import ToDisk
from hitmiss.scale.counting import count
from hitmiss.scale.ids import hashes_of, locate, spill_hashes
from hitmiss.scale.plan import KeyRanges, Shard, ShardPlan
from hitmiss.scale.spilling import Parts
from hitmiss.scale.tallies import Cell, ShardTally

__all__ = ["first_pass", "hashes_of", "locate", "second_pass", "spill_hashes", "spill_pass"]


def first_pass(shard: Shard, plan: ShardPlan) -> ShardTally:
    """Count every trial of a shard: cell by cell, how many have which key (or bin). Faults are in the tally's findings."""
    return count(shard, plan, None)


def second_pass(shard: Shard, plan: ShardPlan, window: KeyRanges) -> ShardTally:
    """The trials of a shard that lie in a window, counted by their whole keys: what `first_pass` keeps of exact plans."""
    return count(shard, plan, window)


def spill_pass(shard: Shard, plan: ShardPlan, parts: Parts, cells: tuple[Cell, ...]) -> int:
    """Put the keys of all trials of a shard on disk, each with the place of its cell among `cells`; how many there were."""
    return count(shard, plan, None, ToDisk(parts, cells)).shards[0].rows
