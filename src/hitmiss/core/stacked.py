"""Rows of several labels of the same texts below each other, as wide files are read: recognised by looking along the rows."""

from __future__ import annotations

import polars as pl


def stacked(frame: pl.DataFrame) -> int | None:
    """Return how many items there are if the rows are one block per target, each with the same items in the same order.

    None if they are not. Looking along the rows is far cheaper than hashing the items of every label.

    >>> stacked(pl.DataFrame({"item": ["a", "b", "a", "b"], "target": ["x", "x", "y", "y"]}))
    2
    >>> stacked(pl.DataFrame({"item": ["a", "b", "b", "a"], "target": ["x", "x", "y", "y"]})) is None
    True
    """
    if "target" not in frame.columns or frame.height < 2:
        return None
    items, target = frame["item"], frame["target"]
    other = target != target[0]
    n = int(other.arg_max() or 0)
    if not n or frame.height % n:
        return None
    first, seen = items.head(n), set()
    for start in range(0, frame.height, n):
        own = target.slice(start, n)
        if own[0] in seen or (own != own[0]).any() or not (start == 0 or (items.slice(start, n) == first).all()):
            return None
        seen.add(own[0])
    return n
