"""Scores to decisions."""

from __future__ import annotations

import polars as pl

from hitmiss.errors import UsageError
from hitmiss.trials import Threshold, Trials


def at_threshold(trials: Trials, threshold: float, origin: str = "given") -> Trials:
    """Decide positive where score >= threshold; the threshold and its origin go into the header.

    >>> at_threshold(Trials.of([1, 0], [0.7, 0.2]), 0.5).column("decision").to_list()
    [1, 0]
    """
    if threshold != threshold:
        raise UsageError("a threshold must be a number; found NaN")
    decided = (trials.column("score") >= threshold).cast(pl.Int8)
    notes = trials.header.notes
    if origin == "this data":
        notes = (*notes, f"the threshold {threshold:g} was chosen on this very data: figures at it are optimistic")
    return trials.put(decision=decided).retitle(threshold=Threshold(threshold, origin), notes=notes)
