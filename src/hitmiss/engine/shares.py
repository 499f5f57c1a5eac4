"""Metrics that are shares of decisions: which outcomes they count, among which, and in which units."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.rates import Rate
from hitmiss.core.sorting import Floats
from hitmiss.engine.columns import Sample
from hitmiss.metrics.counts import OUTCOMES, Counts
from hitmiss.stats.forms.base import Functional
from hitmiss.stats.forms.trials import OfCounts, OfTerms


@lru_cache(maxsize=256)
def share_of(form: Functional) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Return which outcomes a share counts, and among which; None for numbers that are not a plain share of decisions.

    >>> from hitmiss.metrics.counts import accuracy, f1
    >>> share_of(OfCounts(accuracy.of))[0][:4], share_of(OfCounts(f1.of))
    ((1.0, 0.0, 0.0, 1.0), None)
    """
    if not isinstance(form, OfCounts):
        return None
    single = [form.function(Counts(*row)) for row in np.eye(OUTCOMES, dtype=int).tolist()]
    if not all(isinstance(rate, Rate) for rate in single):
        return None
    hits, of = (tuple(float(getattr(rate, name)) for rate in single) for name in ("hits", "of"))
    counts = [2**k for k in range(OUTCOMES)]  # sums of these are all different, so a share can be recognised
    whole = form.function(Counts(*counts))
    if not isinstance(whole, Rate):
        return None
    adds_up = (whole.hits, whole.of) == (float(np.dot(hits, counts)), float(np.dot(of, counts)))
    return (hits, of) if adds_up and {*hits, *of} <= {0.0, 1.0} else None


def units_behind(form: Functional, sample: Sample, unit: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the hits of a share in each unit, and the trials in its denominator, which may be a part of the trials."""
    if isinstance(form, OfTerms):
        terms = form.terms(**sample.arrays(form.columns))
        terms = terms if sample.weight is None else (terms[0] * sample.weight, terms[1] * sample.weight)
        found = [np.asarray(np.bincount(unit[sample.rows], weights=own), dtype=np.float64) for own in terms]
        return found[0], found[1]
    share = share_of(form)
    if share is None:
        return np.zeros(1), np.zeros(1)
    held = sample.unit_outcomes(unit, int(unit.max(initial=-1)) + 1)
    return held @ np.array(share[0]), held @ np.array(share[1])
