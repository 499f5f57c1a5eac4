"""Which trials of a key have a score, over all shards: ids on one side only, and ids that are scored twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from hitmiss.core.score_keys import Keys
from hitmiss.io.diagnostics import Diagnostics
from hitmiss.io.join import SHOWN_IDS, no_common_id, refuse_missing
from hitmiss.outofcore.engines import MOST_LISTED
from hitmiss.outofcore.executors import Executor
from hitmiss.outofcore.keys import UNLISTED, key_of
from hitmiss.outofcore.plan import Shard, ShardPlan
from hitmiss.outofcore.repeated_ids import hash_parts, refuse_hashes
from hitmiss.outofcore.shard_tally import ShardTally


class KeyCoverage(NamedTuple):
    """How many ids of a key have a score, how many it lists, and how many scored ids it lacks; the first of both."""

    scored: int
    listed: int
    unlisted: int
    first: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())


def check_coverage(
    tally: ShardTally, shards: Sequence[Shard], plan: ShardPlan, run: Executor, memory: int
) -> KeyCoverage:
    """Refuse ids that are scored twice and, unless the caller allows it, ids on one side only."""
    assert plan.key is not None
    key, ledger = key_of(plan.key, plan.options), Diagnostics()
    seen, twice, unlisted = np.zeros(key.height, dtype=bool), list[Keys](), 0
    for part in hash_parts(tally.ids, memory):
        is_listed = part.bins != np.uint64(UNLISTED)
        seen[part.bins[is_listed].astype(np.int64)] = True
        twice.append(part.bins[is_listed & (part.each > 1)])
        unlisted += int(part.each[~is_listed].sum())
    extra, absent = list(tally.unlisted), np.flatnonzero(~seen)
    if not seen.any():
        scored = [place.item or "" for place in extra]
        no_common_id(scored, key.stack.frame["item"].to_list(), [extra[0], key.stack.place(0)], ledger)
        raise ledger.error()
    refuse_hashes(np.concatenate(twice), shards, plan, run)
    if not plan.options.allow_missing and (unlisted or len(absent)):
        column = tally.shards[0].facts["columns"]["item"]
        places = key.stack.at(pl.Series(absent[:MOST_LISTED]))
        refuse_missing(extra, places, column, ledger, (unlisted, len(absent)))
        raise ledger.error()
    unscored = key.stack.frame["item"].gather(absent[:SHOWN_IDS]).to_list()
    first = tuple(place.item or "" for place in extra[:SHOWN_IDS]), tuple(unscored)
    return KeyCoverage(key.height - len(absent), key.height, unlisted, first)
