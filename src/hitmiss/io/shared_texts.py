"""Texts that stand in more than one group: counted twice in the averages, and often a sign of a wrong file."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from hitmiss.io.findings import quoted
from hitmiss.io.names import plain
from hitmiss.io.texts import TEXTS


def find_text(names: Sequence[str], taken: Sequence[int]) -> int | None:
    """The position of the column with the texts, where there is one.

    >>> find_text(["id", "y_true", "comment_text"], [0, 1])
    2
    """
    return next((at for at, name in enumerate(names) if plain(name) in TEXTS and at not in taken), None)


def hashed(texts: pl.Series) -> pl.Series:
    """A number for each text, null for a blank one: all that is kept of texts that nobody asked for."""
    trimmed = texts.str.strip_chars()
    return pl.select(pl.when(trimmed != "").then(trimmed.hash())).to_series().alias("text")


def note_shared(rows: pl.DataFrame) -> str | None:
    """What to say about texts that several groups have; `rows` has item, group and text (hashed).

    >>> note_shared(pl.DataFrame({"item": ["1", "2", "7"], "group": ["en", "en", "es"], "text": [5, 6, 5]}))
    "1 text stands in more than one group, the first as id '1' of en and id '7' of es; each counts in every one of them"
    """
    known = rows.filter(pl.col("text").is_not_null())
    several = pl.col("group").n_unique().over("text") > 1
    twice = known.filter(several) if known["text"].is_duplicated().any() else known.clear()
    if not twice.height:
        return None
    first = twice.filter(pl.col("text") == twice["text"][0]).unique("group", keep="first", maintain_order=True)
    places = " and ".join(f"id {quoted(item)} of {group}" for item, group in first.select("item", "group").iter_rows())
    n = twice["text"].n_unique()
    stand = "text stands" if n == 1 else "texts stand"
    return f"{n:,} {stand} in more than one group, the first as {places}; each counts in every one of them"
