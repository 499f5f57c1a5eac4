"""The mean of a column of numbers over the trials that have one; and the mean grade of answers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from hitmiss.core.rates import PartialEstimate
from hitmiss.core.registry import metric
from hitmiss.core.sorting import Floats
from hitmiss.core.tally import check_weight
from hitmiss.stats.forms.trials import OfTerms


def mean_of_known(values: ArrayLike, weight: ArrayLike | None, factor: float = 1.0) -> float:
    """Return the mean of the finite values, with their number."""
    given = np.asarray(values, dtype=np.float64)
    weights = check_weight(weight, len(given))
    counted = np.isfinite(given) * (1.0 if weights is None else np.asarray(weights, dtype=np.float64))
    of = float(counted.sum())
    return (
        PartialEstimate(factor * math.fsum((np.where(counted > 0, given, 0.0) * counted).tolist()) / of, of)
        if of
        else math.nan
    )


def form_of_mean(column: str, factor: float = 1.0) -> Callable[[], OfTerms]:
    """Return the form of a mean of a column of numbers."""

    def terms(**arrays: ArrayLike) -> tuple[Floats, Floats]:
        given = np.asarray(arrays[column], dtype=np.float64)
        known = np.isfinite(given)
        return factor * np.where(known, given, 0.0), known.astype(np.float64)

    def figure(*, weight: ArrayLike | None = None, **arrays: ArrayLike) -> float:
        return mean_of_known(arrays[column], weight, factor)

    return lambda: OfTerms(figure, (column,), terms=terms)


@metric(best="high", range=(-math.inf, math.inf), form=form_of_mean("grade"))
def mean_grade(grade: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Mean grade: the mean of what a scorer gave to each answer, from the log of another tool.

    Σ grade / n, over the answers that were graded. Best: high. Undefined (NaN) without a graded answer.
    Reference: the mean that inspect_ai, lm-eval and promptfoo report themselves.

    >>> float(mean_grade([1.0, 0.5, 0.0, float("nan")]))
    0.5
    """
    return mean_of_known(grade, weight)
