"""Stretches: a column of texts as runs of equal values, which most slice columns are when files come one after the other."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl
from numpy.typing import NDArray

PROBE = 4096
LONG_ENOUGH = 64
"""Rows in a stretch, on average over the first ones, from which on stretches are worth looking for."""


def stretches(values: pl.Series) -> tuple[list[str], NDArray[np.int64]] | None:
    """The value of each stretch and how many rows it has; None where values change too often for that to be of use.

    >>> texts, lengths = stretches(pl.Series(["en"] * 100 + ["es"] * 200))
    >>> texts, lengths.tolist()
    (['en', 'es'], [100, 200])
    """
    head = values.head(PROBE)
    if values.null_count() or len(head.rle()) * LONG_ENOUGH > max(len(head), LONG_ENOUGH * 4):
        return None
    runs = values.rle().struct.unnest()
    return runs["value"].to_list(), runs["len"].to_numpy().astype(np.int64)


def text_codes(values: pl.Series) -> tuple[NDArray[np.int64], list[str]]:
    """A text column as numbers, and the sorted values that they stand for.

    >>> codes, texts = text_codes(pl.Series(["b", "a", "b"]))
    >>> codes.tolist(), texts
    ([1, 0, 1], ['a', 'b'])
    """
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
    """One number per row for the combination of its codes in several columns, and a bound that all numbers are below.

    Numbers are ordered as the combinations are, column by column. Where the possible combinations pass what an integer
    holds, those that occur are numbered anew: there are never more of them than rows.

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


def blocks(code: NDArray[np.integer], most: int) -> list[tuple[int, slice]] | None:
    """Where each code stands, in the order of the codes, if all rows of a code are together; None if they are not.

    >>> blocks(np.array([2, 2, 0]), 3)
    [(0, slice(2, 3, None)), (2, slice(0, 2, None))]
    """
    if not len(code):
        return None
    starts = np.append(0, np.flatnonzero(code[1:] != code[:-1]) + 1)
    held = code[starts].tolist()
    if len(held) > most or len(set(held)) < len(held):
        return None
    ends = [*starts[1:].tolist(), len(code)]
    return sorted((c, slice(a, b)) for c, a, b in zip(held, starts.tolist(), ends, strict=True))
