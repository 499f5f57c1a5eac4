"""Logistic regression with a ridge penalty, by Newton's method: small enough that no package is needed for it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.core.sorting import Floats

STEPS = 100
CLOSE = 1e-12
"""Newton's steps end when none changes the objective by more than this share."""


class LogisticFit(NamedTuple):
    """The weight of each feature, and the offset, which is not penalised."""

    weight: Floats
    offset: float

    def log_odds(self, x: ArrayLike) -> Floats:
        """Return the log-odds of the positive class."""
        return np.asarray(np.asarray(x, dtype=np.float64) @ self.weight + self.offset)


def fit_logistic(x: ArrayLike, y: ArrayLike, *, strength: float = 1.0, balanced: bool = False) -> LogisticFit:
    """Minimise ½ |w|² + strength · Σ cᵢ log(1 + exp(−sᵢ (w · xᵢ + b))), s = ±1; `balanced`: cᵢ = n / (2 · size of class).

    The same objective as that of `sklearn.linear_model.LogisticRegression(C=strength)`, whose solver stops earlier.

    >>> fit = fit_logistic([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> round(float(fit.weight[0]), 4), round(-fit.offset / float(fit.weight[0]), 4)
    (0.9583, 1.5)
    """
    features, positive = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=bool)
    table = np.column_stack([features, np.ones(len(features))])
    share = np.full(len(table), strength)
    if balanced:
        share *= np.where(positive, len(table) / (2.0 * positive.sum()), len(table) / (2.0 * (~positive).sum()))
    penalty = np.append(np.ones(features.shape[1]), 0.0)
    solution = np.zeros(table.shape[1])
    cost = _cost(table, positive, share, penalty, solution)
    for _ in range(STEPS):
        chance = np.asarray(0.5 * (1.0 + np.tanh(0.5 * (table @ solution))))
        gradient = penalty * solution + table.T @ (share * (chance - positive))
        curvature = (table * (share * chance * (1.0 - chance))[:, None]).T @ table + np.diag(penalty)
        step = np.linalg.lstsq(curvature, gradient, rcond=None)[0]
        size, better = 1.0, np.inf
        while size > 1e-6:  # the objective is convex: a shorter step always lowers it
            better = _cost(table, positive, share, penalty, solution - size * step)
            if better <= cost:
                break
            size /= 2.0
        if not better < cost:
            break
        solution, before, cost = solution - size * step, cost, better
        if before - cost <= CLOSE * abs(before):
            break
    return LogisticFit(solution[:-1], float(solution[-1]))


def _cost(table: Floats, positive: NDArray[np.bool_], share: Floats, penalty: Floats, solution: Floats) -> float:
    odds = table @ solution
    return float(
        0.5 * np.sum(penalty * solution**2) + np.sum(share * np.logaddexp(0.0, np.where(positive, -odds, odds)))
    )
