"""A text column as sequences of equal values; most slice columns look so, because files are read in turn."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl
from numpy.typing import NDArray

PROBE = 4096
LONG_ENOUGH = 64
"""Minimum average length of the first stretches; with shorter ones, looking for stretches does not pay."""


def stretches(values: pl.Series) -> tuple[list[str], NDArray[np.int64]] | None:
    """Return the value and the number of rows of each stretch of equal values; None if values change too often.

    >>> texts, lengths = stretches(pl.Series(["en"] * 100 + ["es"] * 200))
    >>> texts, lengths.tolist()
    (['en', 'es'], [100, 200])
    """
    head = values.head(PROBE)
    if values.null_count() or len(head.rle()) * LONG_ENOUGH > max(len(head), LONG_ENOUGH * 4):
        return None
    runs = values.rle().struct.unnest()
    return runs["value"].to_list(), runs["len"].to_numpy().astype(np.int64)


def is_text(kind: pl.DataType) -> bool:
    """Return whether a column of this type holds texts, or codes of texts."""
    return kind in (pl.String, pl.Categorical)


def text_codes(values: pl.Series) -> tuple[NDArray[np.int64], list[str]]:
    """Encode a text column as integers, and return them with the sorted values that they encode.

    >>> codes, texts = text_codes(pl.Series(["b", "a", "b"]))
    >>> codes.tolist(), texts
    ([1, 0, 1], ['a', 'b'])
    """
    if values.dtype == pl.Categorical:
        numbers = values.to_physical().to_numpy()
        row = np.full(int(numbers.max(initial=0)) + 1, -1)
        row[numbers] = np.arange(len(numbers))  # a row of each number: faster than hashing all of them
        held = np.flatnonzero(row >= 0)
        texts = values.gather(row[held]).to_list()
        distinct = sorted(texts)
        place = {text: at for at, text in enumerate(distinct)}
        row[held] = [place[text] for text in texts]
        return row[numbers], distinct
    found = stretches(values)
    if found is None:
        distinct = sorted(values.unique().to_list())
        return values.cast(pl.Enum(distinct)).to_physical().to_numpy().astype(np.int64), distinct
    texts, lengths = found
    distinct = sorted(set(texts))
    place = {text: at for at, text in enumerate(distinct)}
    return np.repeat(np.array([place[t] for t in texts], dtype=np.int64), lengths), distinct


MOST_CODES = 2**62


def combined(columns: Iterable[tuple[NDArray[np.integer], int]]) -> tuple[NDArray[np.int64], int]:
    """Return one integer per row for the combination of its codes in several columns, and an upper bound of them.

    The integers are in the order of the combinations, column by column. If the possible combinations are more than an
    integer can count, the combinations that occur are numbered anew: there are never more of them than rows.

    >>> combined([(np.array([0, 1, 1]), 2), (np.array([2, 0, 2]), 3)])
    (array([2, 3, 5]), 6)
    """
    code: NDArray[np.int64] | None = None
    size = 1
    for numbers, n in columns:
        if code is not None and size > MOST_CODES // max(n, 1):
            held, code = np.unique(code, return_inverse=True)
            size = len(held)
        wide = numbers.astype(np.int64, copy=False)
        code = wide if code is None else code * n + wide
        size *= max(n, 1)
    return (np.zeros(0, dtype=np.int64) if code is None else code), size


FIRST_ROWS = 1 << 16


def blocks(code: NDArray[np.integer], most: int) -> list[tuple[int, slice]] | None:
    """Return the rows of each code, in the order of the codes, if all rows of a code are adjacent; None if not.

    >>> blocks(np.array([2, 2, 0]), 3)
    [(0, slice(2, 3, None)), (2, slice(0, 2, None))]
    """
    first = code[:FIRST_ROWS]
    if not len(code) or np.count_nonzero(first[1:] != first[:-1]) >= most:
        return None  # unordered rows are recognised from the first ones, without looking at all
    starts = np.append(0, np.flatnonzero(code[1:] != code[:-1]) + 1)
    held = code[starts].tolist()
    if len(held) > most or len(set(held)) < len(held):
        return None
    ends = [*starts[1:].tolist(), len(code)]
    return sorted((c, slice(a, b)) for c, a, b in zip(held, starts.tolist(), ends, strict=True))
