"""Metrics of time: median and 95th percentile of seconds. A trial without a time (NaN) does not count."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from hitmiss.core.errors import DataError
from hitmiss.core.rates import Quantile
from hitmiss.core.registry import metric
from hitmiss.core.sorting import Array, Floats
from hitmiss.core.tally import check_weight
from hitmiss.stats.forms.trials import OfWeights


@dataclass(frozen=True, eq=False)
class _OfQuantile(OfWeights):
    """A quantile of one column for many replicates at once: the values are sorted once for all of them."""

    share: float = 0.5

    def of_weights(self, arrays: Mapping[str, Array], weights: Floats) -> Floats:
        """Return the quantile of every replicate; NaN for one without a value."""
        given = np.asarray(arrays[self.columns[0]], dtype=np.float64)
        order = np.argsort(given, kind="stable")[: np.count_nonzero(~np.isnan(given))]  # NaN comes last
        if not len(order):
            return np.full(len(weights), np.nan)
        ordered, upto = given[order], np.cumsum(weights[:, order], axis=1)
        place = self.share * (upto[:, -1] - 1.0)
        whole = np.floor(place)
        # The last position bounds both neighbours: values after it were not drawn. Without any draw the index is bounded.
        low, high = (
            ordered[np.minimum(np.count_nonzero(upto <= at[:, None], axis=1), len(ordered) - 1)]
            for at in (np.minimum(whole + step, upto[:, -1] - 1.0) for step in (0.0, 1.0))
        )
        return np.where(upto[:, -1] > 0, low + (high - low) * (place - whole), np.nan)


def _of_share(share: float) -> _OfQuantile:
    return _OfQuantile(partial(_quantile, share=share), ("seconds",), share=share)


@metric(best="low", range=(0.0, math.inf), form=lambda: _of_share(0.5), one_by_one=True)
def median_seconds(seconds: ArrayLike, weight: ArrayLike | None = None) -> float:
    """The median time.

    Half of the times are not above it; between two middle values it is their mean. Best: low. Range: 0... Undefined
    (NaN) without a time. Reference: equals `numpy.median`.

    >>> float(median_seconds([3.0, 1.0, 10.0]))
    3.0
    """
    return _quantile(seconds, weight, share=0.5)


@metric(best="low", range=(0.0, math.inf), form=lambda: _of_share(0.95), one_by_one=True)
def p95_seconds(seconds: ArrayLike, weight: ArrayLike | None = None) -> float:
    """The 95th percentile of the times: one in twenty takes longer.

    x₍ₖ₎ at k = 0.95 (n − 1), interpolated linearly between neighbours. Best: low. Range: 0... Undefined (NaN) without a
    time. Reference: equals `numpy.quantile(seconds, 0.95)`.

    >>> float(p95_seconds(list(range(101))))
    95.0
    """
    return _quantile(seconds, weight, share=0.95)


def _quantile(seconds: ArrayLike, weight: ArrayLike | None = None, *, share: float) -> Quantile:
    """Return the quantile of times; an integer weight is a number of repetitions."""
    given = np.asarray(seconds, dtype=np.float64)
    if given.ndim != 1 or (given < 0).any():
        raise DataError.of("bad-seconds")
    weights = check_weight(weight, len(given))
    used = ~np.isnan(given) & (True if weights is None else weights > 0)
    ordered = np.sort(given[used])
    if weights is not None:
        order = np.argsort(given[used], kind="stable")  # fast if they are already sorted
        ordered, upto = given[used][order], np.cumsum(weights[used][order])
        return Quantile(_at(ordered, upto, share), share, ordered)
    return Quantile(_at(ordered, np.arange(1, len(ordered) + 1), share), share, ordered)


def _at(ordered: Floats, upto: Array, share: float) -> float:
    """Return the value at position share · (n − 1), from 0; `upto` says how many lie at or below each value."""
    if not len(ordered):
        return math.nan
    place = share * (float(upto[-1]) - 1.0)
    whole = math.floor(place)
    low, high = (
        ordered[min(int(np.searchsorted(upto, k, side="right")), len(ordered) - 1)] for k in (whole, whole + 1)
    )
    return float(low + (high - low) * (place - whole))
