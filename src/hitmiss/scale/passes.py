"""The passes over a shard, as plain functions: whoever runs them, wherever, gets the same tallies.

first_pass    every trial counted, by score or by bin of scores
second_pass   the trials of some scores again, each with its whole score or by finer bins
put_pass      every score put on disk, in parts by their range
hashes_of     the hashes of ids, where the tallies do not carry them
locate        where ids are, given their hashes: for telling what is repeated
"""

from __future__ import annotations

from hitmiss.scale.counting import count, hashes_of, locate
from hitmiss.scale.counting import put as put_pass
from hitmiss.scale.plan import Shard, ShardPlan, Window
from hitmiss.scale.tallies import ShardTally

__all__ = ["first_pass", "hashes_of", "locate", "put_pass", "second_pass"]


def first_pass(shard: Shard, plan: ShardPlan) -> ShardTally:
    """Count every trial of a shard: cell by cell, how many have which key (or bin). Faults are in the tally's findings."""
    return count(shard, plan)


def second_pass(shard: Shard, plan: ShardPlan, window: Window) -> ShardTally:
    """The trials of a shard that lie in a window, counted as it says."""
    return count(shard, plan, window)
