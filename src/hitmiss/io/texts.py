"""Texts by id, for files that have none."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from hitmiss.io import tables
from hitmiss.io.findings import Ledger, Place, Stop, quoted
from hitmiss.io.names import plain
from hitmiss.readspec import ReadSpec

IDS = ("id", "item", "comment_id")
TEXTS = ("text", "comment_text", "comment")
GROUPS = ("language", "lang")


def read_texts(paths: Sequence[str]) -> pl.DataFrame:
    """Columns item, text and group (empty where a file has no language column), all text, nothing taken for missing."""
    ledger = Ledger()
    try:
        return pl.concat([_read(path, ledger) for path in paths])
    except Stop:
        raise ledger.error() from None


def _read(path: str, ledger: Ledger) -> pl.DataFrame:
    shape = tables.look(path, ReadSpec(), ledger)
    names = shape.names or shape.first[0]
    picks = {}
    for ours, aliases in (("item", IDS), ("text", TEXTS), ("group", GROUPS)):
        at = next((i for i, name in enumerate(names) if plain(name) in aliases), None)
        if at is None and ours != "group":
            what = f"there is no column {' or '.join(aliases)} among {', '.join(map(quoted, names))}"
            raise ledger.stop("missing-column", what, "give a file with ids and texts", [Place(shape.name, 1)])
        if at is not None:
            picks[ours] = at
    frame = tables.load(shape, True, picks, frozenset(), ledger).frame
    group = pl.col("group") if "group" in picks else pl.lit("")
    return frame.select("item", "text", group=group)
