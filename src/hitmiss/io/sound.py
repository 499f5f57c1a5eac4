"""The quick way for prediction files in which nothing is odd: their numbers are parsed as numbers at once.

A blank, a word, a score beyond 0..1, an id that stands there twice, two thresholds: whatever would be worth a word, and the
file is read as text instead, cell by cell, by the way that says what is wrong. So nothing is ever reported from here, and
what is read here is what that way would have read, to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from hitmiss.io.plain import read_typed
from hitmiss.io.shapes import Shape

if TYPE_CHECKING:
    from hitmiss.io.predictions import PredictionRules

KINDS: Final[Mapping[str, Any]] = {
    "label": pl.Int8,
    "score": pl.Float64,
    "decision": pl.Int8,
    "threshold": pl.Float64,
}


def read_sound(shape: Shape, picks: Mapping[str, int], rules: PredictionRules) -> pl.DataFrame | None:
    """The columns `picks` (our name -> position) of separated text, or None where anything is odd."""
    content = shape.content
    if content is None or shape.frame is not None or "item" not in picks or rules.decimal != "." or rules.identities:
        return None
    if b'"' in content.data:
        return None
    kinds = {position: KINDS[ours] for ours, position in picks.items() if ours in KINDS}
    frame = read_typed(shape, content.data, picks, kinds)
    return frame if frame is not None and _is_sound(frame, rules) else None


def _is_sound(frame: pl.DataFrame, rules: PredictionRules) -> bool:
    has = frame.columns
    if not frame.height or any(frame[c].null_count() for c in has):
        return False
    if not all(_lies_between(frame[c], 0, 1) for c in ("label", "decision") if c in has):
        return False
    score = frame["score"]
    if not (
        score.is_finite().all() if rules.any_scores else _lies_between(score, 0.0, 1.0) and score.is_not_nan().all()
    ):
        return False
    if "threshold" in has and not _is_one_probability(frame["threshold"]):
        return False
    if not frame["item"].str.len_bytes().min() or ("group" in has and (frame["group"].str.strip_chars() == "").any()):
        return False
    return _is_unique(frame)


def _lies_between(values: pl.Series, low: float, high: float) -> bool:
    ends: tuple[Any, Any] = values.min(), values.max()
    return bool(low <= ends[0] and ends[1] <= high)


def _is_one_probability(values: pl.Series) -> bool:
    return values.min() == values.max() and _lies_between(values, 0.0, 1.0) and not values.is_nan().any()


def _ascend(items: pl.Series) -> bool:
    """Whether each id is longer than the one before it, or as long and greater, as row numbers are: none is there twice.

    Chunk by chunk: where the neighbours of all rows are looked at together, polars copies the column first.

    >>> _ascend(pl.Series(["8", "9", "10", "11"])), _ascend(pl.Series(["8", "9", "9"]))
    (True, False)
    """
    before = (0, "")
    for ids in items.get_chunks():
        n, lengths = len(ids) - 1, ids.str.len_bytes()
        short, long = lengths.head(n), lengths.tail(n)
        if (
            before >= (lengths[0], ids[0])
            or not ((long > short) | ((long == short) & (ids.tail(n) > ids.head(n)))).all()
        ):
            return False
        before = (lengths[n], ids[n])
    return True


def _is_unique(frame: pl.DataFrame) -> bool:
    """Whether no row stands for the same text as another. As many hashes as rows prove as many ids; fewer prove nothing."""
    items = frame["item"]
    if _ascend(items) or items.hash().n_unique() == len(items):
        return True
    return "group" in frame.columns and not frame.select(pl.struct("group", "item").is_duplicated().any()).item()
