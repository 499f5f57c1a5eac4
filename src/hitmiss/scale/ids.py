"""The ids of a shard as hashes: for the check that none occurs twice, and the rows of those that might."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from hitmiss.core.question import ReadSpec
from hitmiss.io.diagnostics import Ledger, Place, Stop
from hitmiss.io.parse import Table
from hitmiss.scale.joining import AT, joined_pieces, open_joined
from hitmiss.scale.plan import Shard, ShardPlan
from hitmiss.scale.reading import Read
from hitmiss.scale.spilling import Parts, Writer
from hitmiss.stats.sketch import Keys

EMPTY: Final = np.uint64(pl.Series([""]).hash()[0])


def hashes(frame: pl.DataFrame, options: ReadSpec) -> Keys:
    """A hash of what must be there once: the id, with its target and run where there are any; or its row of the key."""
    if AT in frame.columns:
        return frame[AT].to_numpy()
    key = identity(frame, options)
    if key == ["item"]:
        return frame["item"].hash().to_numpy()
    return frame.select(pl.struct(key).hash().alias("id"))["id"].to_numpy()


def identity(frame: pl.DataFrame, options: ReadSpec) -> list[str]:
    """The columns that name a trial."""
    return [name for name in ("item", "target", *options.runs) if name in frame.columns]


def locate(shard: Shard, plan: ShardPlan, wanted: frozenset[int]) -> list[tuple[int, Place]]:
    """The rows of a shard whose ids have these hashes: (hash, place), in the order of the file."""
    found: list[tuple[int, Place]] = []
    among = np.array(sorted(wanted), dtype=np.uint64)
    for table, hashed in _hashed(shard, plan):
        for row in np.flatnonzero(np.isin(hashed, among)).tolist():
            found.append((int(hashed[row]), Place(table.name, table.line(row), item=table.frame["item"][row])))
    return found


def hashes_of(shard: Shard, plan: ShardPlan) -> Keys:
    """The hashes of a shard's ids."""
    return np.concatenate([np.zeros(0, dtype=np.uint64), *map(_with_empty_twice, _hashed(shard, plan))])


def spill_hashes(shard: Shard, plan: ShardPlan, parts: Parts) -> int:
    """Put the hashes of a shard's ids on disk; how many there were."""
    writer, n = Writer(parts), 0
    for piece in _hashed(shard, plan):
        writer.add(_with_empty_twice(piece))
        n += len(piece[1])
    writer.flush()
    return n


def _hashed(shard: Shard, plan: ShardPlan) -> Iterator[tuple[Table, Keys]]:
    """The ids of a shard, piece by piece, and their hashes."""
    ledger = Ledger()
    try:
        opened = open_joined(shard, plan, ledger)
        named = ("item", "target", *plan.options.runs)
        picks = {name: at for name, at in opened.match.picks.items() if name in named}
        for table in joined_pieces(opened, picks, Read(), ledger, plan.options):
            yield table, hashes(table.frame, plan.options)
    except Stop:
        raise ledger.error() from None


def _with_empty_twice(piece: tuple[Table, Keys]) -> Keys:
    """The hashes; an empty id counts as a repeated one, so that it is looked up."""
    return np.concatenate([piece[1], piece[1][piece[1] == EMPTY]])
