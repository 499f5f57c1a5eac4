"""Count all shards, each id once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hitmiss.io.diagnostics import Diagnostics
from hitmiss.outofcore.counting import tallies
from hitmiss.outofcore.coverage import KeyCoverage, check_coverage
from hitmiss.outofcore.disk import Disk
from hitmiss.outofcore.executors import Executor
from hitmiss.outofcore.plan import Shard, ShardPlan
from hitmiss.outofcore.repeated_ids import every_id, hash_parts, refuse_hashes
from hitmiss.outofcore.shard_tally import ShardTally, merge_tallies
from hitmiss.outofcore.units import UnitRuns


def count_all(
    shards: Sequence[Shard], plan: ShardPlan, run: Executor, memory: int, disk: Disk | None, units: UnitRuns | None
) -> tuple[ShardTally, KeyCoverage | None]:
    """Count all shards, each id once; return also how much of the key they cover, if there is one."""
    found = tallies(shards, plan, run)
    tally = merge_tallies(found if units is None else units.without_units(found), disk)
    if tally.findings:
        ledger = Diagnostics()
        ledger.take(Diagnostics(list(tally.findings)))  # one finding per kind, over all shards
        raise ledger.error()
    covering = None
    if plan.key is not None and tally.ids is not None:
        covering = check_coverage(tally, shards, plan, run, memory)
    else:
        for part in hash_parts(every_id(tally, shards, plan, run, disk), memory):
            refuse_hashes(part.bins[part.each > 1], shards, plan, run)
    return replace(tally, ids=None), covering
