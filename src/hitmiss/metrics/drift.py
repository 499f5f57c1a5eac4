"""The effect of a manipulation on a detector at a fixed threshold: each trial next to its clean version.

`decision_clean` and `score_clean` are the detector's answers for the same clip without manipulation;
`robustness.manipulation.beside_clean` adds them to the trials. A number is a mean over one class, so it has slices,
intervals, gaps and comparisons like any other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from hitmiss.core.registry import metric
from hitmiss.core.sorting import Array, Floats
from hitmiss.core.tally import check_label, check_trials, check_weight
from hitmiss.stats.forms.trials import OfTerms

Terms = tuple[Floats, Floats]


def _moved(label: ArrayLike, decision: ArrayLike, decision_clean: ArrayLike, of: bool) -> Terms:
    """Return the change of acceptance of each trial of a class (−1, 0, 1), and whether the trial is of that class."""
    own = check_label(label) == of
    now, before = (np.asarray(d, dtype=np.float64) == 1.0 for d in (decision, decision_clean))
    return (now.astype(np.float64) - before) * own, own.astype(np.float64)


def _shift(label: ArrayLike, score: ArrayLike, score_clean: ArrayLike, of: bool) -> Terms:
    """Return how much higher each trial of a class scores than when clean; equal infinities count as no shift."""
    (positive, now, _), (_, before, _) = (check_trials(label, s) for s in (score, score_clean))
    own = positive == of
    with np.errstate(invalid="ignore"):
        moved = np.where(now == before, 0.0, now - before)
    return np.where(own, moved, 0.0), own.astype(np.float64)


def _far_terms(label: ArrayLike, decision: ArrayLike, decision_clean: ArrayLike) -> Terms:
    return _moved(label, decision, decision_clean, False)


def _frr_terms(label: ArrayLike, decision: ArrayLike, decision_clean: ArrayLike) -> Terms:
    moved, own = _moved(label, decision, decision_clean, True)
    return -moved, own


def _fake_terms(label: ArrayLike, score: ArrayLike, score_clean: ArrayLike) -> Terms:
    return _shift(label, score, score_clean, False)


def _real_terms(label: ArrayLike, score: ArrayLike, score_clean: ArrayLike) -> Terms:
    return _shift(label, score, score_clean, True)


def _mean(terms: Terms, weight: ArrayLike | None) -> float:
    weights: Array | float = (
        1.0 if weight is None else np.asarray(check_weight(weight, len(terms[0])), dtype=np.float64)
    )
    of = float(np.sum(terms[1] * weights))
    return _exact_sum(terms[0] * weights) / of if of else math.nan


def _exact_sum(values: Floats) -> float:
    """Return the sum, which does not depend on the order of the trials."""
    return math.fsum(values.tolist()) if np.isfinite(values).all() else float(np.sum(values))


def _form(terms: Callable[..., Terms], columns: tuple[str, ...]) -> Callable[[], OfTerms]:
    """Return the form of a mean of terms."""

    def figure(*, weight: ArrayLike | None = None, **arrays: ArrayLike) -> float:
        return _mean(terms(**arrays), weight)

    return lambda: OfTerms(figure, columns, terms=terms)


DECIDED = ("label", "decision", "decision_clean")
SCORED = ("label", "score", "score_clean")


@metric(best="low", range=(-1.0, 1.0), form=_form(_far_terms, DECIDED), prevalence=False)
def far_drift(
    label: ArrayLike, decision: ArrayLike, decision_clean: ArrayLike, weight: ArrayLike | None = None
) -> float:
    """Drift of false acceptance: the share of negatives accepted, minus that of the same clips when clean.

    Mean over negatives of [accepted] − [accepted when clean]. Best: low. Range: −1..1. Undefined (NaN) without
    negatives. Reference: the difference of two `fpr`s on the same trials.

    >>> far_drift([1, 0, 0], [1, 1, 0], [1, 0, 0])
    0.5
    """
    return _mean(_far_terms(label, decision, decision_clean), weight)


@metric(best="low", range=(-1.0, 1.0), form=_form(_frr_terms, DECIDED), prevalence=False)
def frr_drift(
    label: ArrayLike, decision: ArrayLike, decision_clean: ArrayLike, weight: ArrayLike | None = None
) -> float:
    """Drift of false rejection: the share of positives rejected, minus that of the same clips when clean.

    Mean over positives of [rejected] − [rejected when clean]. Best: low. Range: −1..1. Undefined (NaN) without
    positives. Reference: the difference of two `fnr`s on the same trials.

    >>> frr_drift([1, 1, 0], [1, 0, 0], [1, 1, 0])
    0.5
    """
    return _mean(_frr_terms(label, decision, decision_clean), weight)


@metric(best="low", range=(-math.inf, math.inf), form=_form(_fake_terms, SCORED), prevalence=False, two_sided=True)
def shift_fake(label: ArrayLike, score: ArrayLike, score_clean: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Shift of the negatives' scores: how much higher they are than those of the same clips when clean.

    Mean over negatives of score − clean score. Best: low. Undefined (NaN) without negatives. Reference: a paired mean.

    >>> shift_fake([1, 0, 0], [2.0, 1.0, 0.0], [1.0, 0.0, 0.0])
    0.5
    """
    return _mean(_fake_terms(label, score, score_clean), weight)


@metric(best="high", range=(-math.inf, math.inf), form=_form(_real_terms, SCORED), prevalence=False, two_sided=True)
def shift_real(label: ArrayLike, score: ArrayLike, score_clean: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Shift of the positives' scores: how much higher they are than those of the same clips when clean.

    Mean over positives of score − clean score. Best: high. Undefined (NaN) without positives. Reference: a paired mean.

    >>> shift_real([1, 1, 0], [2.0, 1.0, 0.0], [1.0, 1.0, 0.0])
    0.5
    """
    return _mean(_real_terms(label, score, score_clean), weight)


RATES: Final = {
    far_drift.__name__: ("far", "the false-acceptance rate"),
    frr_drift.__name__: ("frr", "the false-rejection rate"),
}
"""The error rate that a drift is of, and its name."""
DRIFT_TABLE: Final = {
    "fpr": ("far", False),
    "fnr": ("frr", True),
    "far_drift": ("far_drift", False),
    "frr_drift": ("frr_drift", True),
    "shift_fake": ("shift_fake", False),
    "shift_real": ("shift_real", True),
    "eer": ("eer", None),
}
"""Metrics of a drift table: the name of each there, and the class that it is about."""
DRIFT_METRICS: Final = tuple(DRIFT_TABLE)
PAIRED_RATES: Final = ("far", "frr")
"""The two error rates at one threshold, which are read together."""
DRIFTS: Final = ("far_drift", "frr_drift", "shift_fake", "shift_real")
