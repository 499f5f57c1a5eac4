"""Which trials of a key have a score, over all shards: ids of one side alone, and ids that are scored twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from hitmiss.core.trials import Source
from hitmiss.engine.counted import TalliedTrials
from hitmiss.io.checks import no_common_id, note_missing, refuse_missing
from hitmiss.io.diagnostics import Ledger, Place, Stop
from hitmiss.scale.keyfile import AT, UNLISTED, Joined, Key, door_pieces, key_of
from hitmiss.scale.plan import Shard, ShardPlan
from hitmiss.scale.repeats import refuse_hashes, repeated
from hitmiss.scale.running import Executor
from hitmiss.scale.sheets import open_sheet
from hitmiss.scale.tallies import ShardTally, ordered

MOST: Final = 1000
"""Ids of one side alone that are listed, of a shard and of the key; beyond that they are counted."""


@dataclass(frozen=True)
class Covering:
    """How much of a key is scored."""

    scored: int
    listed: int
    unlisted: int


def settle_coverage(tally: ShardTally, shards: Sequence[Shard], plan: ShardPlan, run: Executor) -> Covering:
    """Refuse ids that are scored twice and, unless the caller allows it, those of one side alone."""
    assert plan.key is not None and tally.ids is not None
    key, ledger = key_of(plan.key, plan.options), Ledger()
    ids = ordered(tally.ids)
    listed = ids[: int(np.searchsorted(ids, np.uint64(UNLISTED)))]
    seen = np.zeros(key.height, dtype=bool)
    seen[listed.astype(np.int64) % key.height] = True
    # The scores of several systems stand in the same rows: what one lacks, all lack.
    systems = max(len(plan.options.score_columns), 1)
    unlisted, absent = (len(ids) - len(listed)) // systems, np.flatnonzero(~seen)
    if not len(listed):
        raise _nothing_common(key, shards, plan, run, ledger)
    refuse_hashes(repeated(listed), shards, plan, run)
    if not plan.options.allow_missing and (unlisted or len(absent)):
        extra, column = _places_of_unlisted(shards, plan, run) if unlisted else ([], "item")
        places = key.stack.at(pl.Series(absent[:MOST]))
        refuse_missing(extra, places, column, ledger, (unlisted, len(absent)))
        raise ledger.error()
    return Covering(key.height - len(absent), key.height, unlisted)


def _nothing_common(key: Key, shards: Sequence[Shard], plan: ShardPlan, run: Executor, ledger: Ledger) -> Exception:
    extra, _ = _places_of_unlisted(shards, plan, run)
    try:
        scored = [place.item or "" for place in extra]
        raise no_common_id(scored, key.stack.frame["item"].to_list(), [extra[0], key.stack.place(0)], ledger)
    except Stop:
        return ledger.error()


def _places_of_unlisted(shards: Sequence[Shard], plan: ShardPlan, run: Executor) -> tuple[list[Place], str]:
    """Where ids stand that the key lacks, the first of each shard; and what the files call their ids."""
    found = list(run(unlisted_of, [(shard, plan) for shard in shards if shard.system == shards[0].system]))
    return [place for places, _ in found for place in places], found[0][1]


def unlisted_of(shard: Shard, plan: ShardPlan) -> tuple[list[Place], str]:
    """The first rows of a shard whose ids the key lacks."""
    ledger, places = Ledger(), list[Place]()
    assert plan.key is not None
    opened = open_sheet(shard, plan, ledger, ["item"]).opened
    assert isinstance(opened, Joined)
    for piece in door_pieces(opened, ["item"], key_of(plan.key, plan.options), plan.options, ledger):
        rows = piece.frame[AT].is_null().arg_true().to_list()
        places += [
            Place(piece.name, piece.line(row), item=piece.frame["item"][row]) for row in rows[: MOST - len(places)]
        ]
        if len(places) >= MOST:
            break
    return places, opened.match.theirs["item"]


def with_key(trials: TalliedTrials, plan: ShardPlan, covering: Covering) -> TalliedTrials:
    """Counted trials whose header tells of the key: its files, and what the scores cover of it."""
    assert plan.key is not None
    ledger, head = Ledger(), trials.header
    absent = covering.listed - covering.scored
    note_missing(covering.unlisted, absent, covering.listed, ledger)
    named = [(Path(path).name, sha) for path, sha in zip(plan.key.paths, plan.key.sha256, strict=True)]
    provenance: dict[str, Any] = dict(head.provenance)
    provenance["files"] = [*provenance["files"], *({"name": name, "sha256": sha, "role": "key"} for name, sha in named)]
    header = replace(
        head,
        sources=(*head.sources, *(Source(name, sha) for name, sha in named)),
        notes=(*ledger.notes, *head.notes),
        choices=(*ledger.choices, *head.choices),
        coverage=(covering.scored, covering.listed) if absent else None,
        provenance=provenance,
    )
    return replace(trials, header=header)
