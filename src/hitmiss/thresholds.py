"""The best threshold of a tally: exact over the observed scores, or over the grid that baselines use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from hitmiss.errors import DataError, UnknownName, UsageError
from hitmiss.metrics.counts import Counts
from hitmiss.registry import resolve
from hitmiss.spec import Spec
from hitmiss.stats.forms import OfCounts
from hitmiss.tally import Array, Floats, Tally

SEARCHES: Final = ("exact", "grid")
GRID: Final = tuple(k / 100 for k in range(10, 91))
"""0.10, 0.11, … 0.90: 81 points."""


@dataclass(frozen=True)
class Choice:
    """A threshold, the figure that it reaches on the data that it was chosen on, and how it was searched for."""

    threshold: float
    value: float
    metric: str
    search: str


def best_threshold(tally: Tally, maximize: str | Spec = "f1", search: str = "exact") -> Choice:
    """The threshold (accept if score >= t) with the best figure of decisions; the lowest among equals.

    `exact` tries every observed score, so no other threshold that accepts anything is better; `grid` tries 0.10 … 0.90.
    A figure whose best is low (`fpr`) is minimised. Undefined figures are never the best.

    >>> t = Tally.of([1, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.1])
    >>> best_threshold(t)
    Choice(threshold=0.6, value=0.8571428571428571, metric='f1', search='exact')
    >>> best_threshold(t, search="grid").threshold
    0.11
    """
    if search not in SEARCHES:
        raise UnknownName("search", search, SEARCHES)
    if not len(tally.score):
        raise DataError("there are no trials to choose a threshold on")
    candidates = tally.score if search == "exact" else np.array(GRID)
    values = figures_at(tally, candidates, maximize)
    _, entry, _ = resolve(maximize)
    gain = np.where(np.isnan(values), -np.inf, values if entry.best == "high" else -values)
    if not np.isfinite(gain).any():
        raise DataError(f"{maximize} is undefined at every threshold: both classes are needed to choose one")
    place = int(np.argmax(gain))
    return Choice(float(candidates[place]), float(values[place]), str(maximize), search)


def figures_at(tally: Tally, thresholds: ArrayLike, metric: str | Spec = "f1") -> Floats:
    """A figure of decisions at each threshold; NaN where it is undefined.

    >>> figures_at(Tally.of([1, 1, 0], [0.9, 0.4, 0.6]), [0.5, 0.4], "recall")
    array([0.5, 1. ])
    """
    spec, entry, settings = resolve(metric)
    form = entry.form(**settings) if entry.form is not None else None
    if not isinstance(form, OfCounts):
        raise UsageError(f"{spec} is no figure of decisions; a threshold can be chosen by f1, accuracy, mcc …")
    return form.of_counts(counts_at(tally, thresholds))


def counts_at(tally: Tally, thresholds: ArrayLike) -> Counts:
    """The decisions at each threshold, counted."""
    points = np.searchsorted(tally.score, np.asarray(thresholds, dtype=np.float64), side="left")
    missed, passed = _wide(tally.positives[points]), _wide(tally.negatives[points])
    return Counts(tp=tally.n_positive - missed, fp=tally.n_negative - passed, fn=missed, tn=passed)


def _wide(counts: Array) -> Array:
    return counts.astype(np.int64) if counts.dtype.kind == "i" else counts
