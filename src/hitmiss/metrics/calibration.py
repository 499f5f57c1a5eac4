"""Metrics of probabilities: Brier score and log loss. `score` is the probability of the positive class."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from hitmiss.core.errors import DataError
from hitmiss.core.metric import Chance
from hitmiss.core.registry import metric
from hitmiss.core.sorting import Floats, Number
from hitmiss.core.tally import Tally
from hitmiss.stats.forms.base import Form
from hitmiss.stats.forms.sums import ClassSums


def _mean_of_all(sum1: Number, n1: Number, sum0: Number, n0: Number) -> Number:
    return (sum1 + sum0) / (n1 + n0)


def brier_form() -> Form:
    """Return the form of the Brier score."""
    return ClassSums(lambda p: (1.0 - p) ** 2, lambda p: p**2, _mean_of_all, needs_both=False)


@metric(
    best="low",
    form=brier_form,
    kinds=("probability",),
    also=("brier_score", "brier_score_loss"),
    of="all",
    chance=Chance(lambda share, _: share * (1 - share), "always stating the share of positives"),
)
def brier(label: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Brier score: mean squared difference between the probability of the positive class and the outcome.

    mean of (p − y)². Best: low. Range: 0..1; a constant 0.5 gets 0.25. Undefined (NaN) without trials.
    Reference: Brier 1950; equals `sklearn.metrics.brier_score_loss`.

    >>> brier([1, 0], [0.5, 0.5])
    0.25
    """
    return brier_form().value(_probabilities(label, score, weight))


def log_loss_form() -> Form:
    """Return the form of the log loss."""
    return ClassSums(_minus_log, _minus_log_of_rest, _mean_of_all, needs_both=False)


def _minus_log(p: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return -np.log(p)


def _minus_log_of_rest(p: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return -np.log1p(-p)


@metric(best="low", range=(0.0, math.inf), form=log_loss_form, kinds=("probability",), also=("cross_entropy", "nll"))
def log_loss(label: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Log loss: mean of −ln of the probability that was given to the true outcome, in nats.

    mean of −[y ln p + (1 − y) ln(1 − p)]. Best: low. Range: 0..; a constant 0.5 gets ln 2. Undefined (NaN) without
    trials; infinite if a true outcome was given probability 0 (nothing is clipped).
    Reference: equals `sklearn.metrics.log_loss` for probabilities strictly between 0 and 1.

    >>> round(log_loss([1, 0], [0.5, 0.5]), 6)
    0.693147
    """
    return log_loss_form().value(_probabilities(label, score, weight))


def _probabilities(label: ArrayLike, score: ArrayLike, weight: ArrayLike | None) -> Tally:
    tally = Tally.of(label, score, weight)
    if len(tally.score) and not (tally.score[0] >= 0.0 and tally.score[-1] <= 1.0):
        raise DataError.of("not-probabilities", name="scores", low=tally.score[0], high=tally.score[-1])
    return tally
