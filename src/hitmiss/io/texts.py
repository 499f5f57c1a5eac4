"""The texts beside predictions: by id, and which of them stand in several groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from hitmiss.core.finding import Place
from hitmiss.core.text import quoted
from hitmiss.io.aliases import PREDICTED, plain
from hitmiss.io.diagnostics import Diagnostics
from hitmiss.io.text_rows import TextRows, read_rows

TEXTS: Final = ("text", "comment_text", "comment")


def hashed(texts: pl.Series) -> pl.Series:
    """Return a hash of each text, null for a blank one; only hashes are kept of texts that were not requested."""
    trimmed = texts.str.strip_chars()
    return pl.select(pl.when(trimmed != "").then(trimmed.hash())).to_series().alias("text")


def note_shared(rows: pl.DataFrame) -> str | None:
    """Return the note about texts that occur in several groups, if any; `rows` has item, group and text (hashed).

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


def read_texts(paths: Sequence[str]) -> pl.DataFrame:
    """Read texts by id, for prediction files without texts: item, text and group (empty without a language column)."""
    return pl.concat([_texts_of(read_rows(path)) for path in paths])


def _texts_of(rows: TextRows) -> pl.DataFrame:
    found: dict[str, pl.Series] = {"group": pl.Series("group", [""], pl.String).new_from_index(0, rows.frame.height)}
    for ours, aliases in (("item", PREDICTED["item"]), ("text", TEXTS), ("group", PREDICTED["group"])):
        theirs = next((name for name in rows.frame.columns if plain(name) in aliases), None)
        if theirs is None and ours != "group":
            ledger = Diagnostics()
            told = {"aliases": aliases, "names": map(quoted, rows.frame.columns)}
            ledger.add("missing-column/texts", [Place(rows.name, 1)], **told)
            raise ledger.error()
        if theirs is not None:
            found[ours] = rows.frame[theirs].alias(ours)
    return pl.DataFrame([found[name] for name in ("item", "text", "group")])
