"""Weights of rows: what a declared weight does to a table, and what is said about it.

A frequency weight says that a row stands for so many rows, so the row is repeated: every number, interval and test is
that of the longer table. A sampling weight is one over the chance that the row was sampled: the row stays one row, its
weight is kept beside it, numbers are weighted, and intervals resample rows with their weights.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core.columns import user_name
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.read_spec import WeightKind

if TYPE_CHECKING:
    from hitmiss.core.header import Header
    from hitmiss.core.trials import Trials

MOST_ROWS: Final = 50_000_000
"""The most rows that frequency weights may stand for; each is a row of the table."""
COPY: Final = "#"
"""Between an id and the number of its copy, as in `a#2`."""
Floats = NDArray[np.float64]


def not_allowed(weights: pl.Series, kind: WeightKind) -> tuple[pl.Series, str]:
    """Return which weights are not allowed, and what is allowed; null and NaN are not.

    >>> not_allowed(pl.Series([1.0, 0.5, -1.0, None]), "frequency")[0].to_list()
    [False, True, True, True]
    """
    fits = weights.is_finite() & (weights >= 0)
    if kind == "frequency":
        fits &= weights == weights.round(0)
    allowed = "a whole number from 0" if kind == "frequency" else "a finite number from 0"
    return ~fits.fill_null(False), allowed


def weigh(frame: pl.DataFrame, header: Header, column: str, kind: WeightKind) -> tuple[pl.DataFrame, Header]:
    """Return the table and its header with the weights of a column: rows repeated, or weights kept beside the rows.

    Rows of weight 0 are left out. The weights must be allowed (see `not_allowed`).
    """
    weights, title = frame[column].cast(pl.Float64), user_name(column)
    total, none = float(weights.sum()), int((weights == 0).sum())
    if not total:
        raise DataError.of("bad-weight", title_2=title)
    frame, weights = (frame.filter(weights > 0), weights.filter(weights > 0)) if none else (frame, weights)
    choice = f"weight:{title}({kind},{frame.height} rows,sum {total:.12g})"
    said = f"the weights in {title!r} are {kind} weights: {frame.height:,} rows "
    if kind == "frequency":
        said += f"stand for {total:,.0f}"
        frame, header = _repeated(frame, weights, title), replace(header, repeated_by=column)
    else:
        said += f"with weights that sum to {total:,.6g} say as much as {kish(weights.to_numpy()):,.1f} of equal weight"
        header = replace(header, weight=column)
    said += f"; {none:,} more of weight 0 are left out" if none else ""
    return frame, replace(header, notes=(*header.notes, said), choices=(*header.choices, choice))


def kish(weights: Floats) -> float:
    """Return Kish's effective size: how many rows of equal weight say as much.

    >>> kish(np.array([1.0, 1.0, 2.0]))
    2.6666666666666665
    """
    return float(weights.sum() ** 2 / (weights * weights).sum())


def effective_weights(trials: Trials) -> Floats | None:
    """Return sampling weights that add up to Kish's effective size, so that sums of them are numbers of such rows.

    None without sampling weights. Metrics that draw intervals around shares count rows by them.
    """
    weights = trials.weights
    return None if weights is None else weights * (kish(weights) / weights.sum())


def _repeated(frame: pl.DataFrame, weights: pl.Series, title: str) -> pl.DataFrame:
    """Repeat each row as often as its weight says; copies get ids of their own."""
    times = weights.to_numpy().astype(np.int64)
    total = int(times.sum())
    if total > MOST_ROWS:
        raise UsageError.of("too-many-rows", title_2=title, total=total, MOST_ROWS=MOST_ROWS)
    if total == frame.height:
        return frame
    number = np.arange(total) - np.repeat(np.cumsum(times) - times, times)
    longer = frame[np.repeat(np.arange(frame.height), times)]
    copy = pl.Series(number + 1)
    named = pl.when(copy > 1).then(pl.concat_str(pl.col("item"), pl.lit(COPY), copy)).otherwise(pl.col("item"))
    longer = longer.with_columns(item=named)
    taken = longer["item"].filter(copy > 1)
    taken = taken.filter(taken.is_in(frame["item"].unique().implode()))
    if len(taken):
        raise DataError.of("duplicate-id/copy", taken=taken[0], title_2=title)
    return longer


def refuse_sampling(trials: Trials, what: str) -> None:
    """Refuse trials with sampling weights where they cannot be used, so that nothing is unweighted in silence."""
    if trials.header.weight is not None:
        raise not_by_sampling(trials.header.weight, what)


def not_by_sampling(column: str, what: str) -> UsageError:
    """Return the error that something cannot use sampling weights."""
    return UsageError.of("sampling-weights", what=what, column=user_name(column))
