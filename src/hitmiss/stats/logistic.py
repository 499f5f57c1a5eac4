"""Logistic regression by Newton's method: small enough that no package is needed for it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from hitmiss.core.sorting import Floats

STEPS = 200
CLOSE = 1e-14
"""Newton's steps end when one promises less than this share of the weights: the next removes the rest."""


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
    solution, _ = minimise_log_loss(table, positive, share, penalty=penalty)
    return LogisticFit(solution[:-1], float(solution[-1]))


def minimise_log_loss(
    design: Floats,
    target: Floats | NDArray[np.bool_],
    share: Floats,
    *,
    offset: float = 0.0,
    penalty: Floats | float = 0.0,
) -> tuple[Floats, bool]:
    """Return the θ with the least Σ share (ln(1 + exp z) − target z) + ½ Σ penalty θ², z = design θ + offset.

    Newton's method with steps that never increase it; and whether the steps came to an end.
    """

    def loss(theta: Floats) -> float:
        z = design @ theta + offset
        return float(share @ (np.logaddexp(0.0, z) - target * z) + 0.5 * np.sum(penalty * theta**2))

    theta = np.zeros(design.shape[1])
    for _ in range(STEPS):
        p = expit(design @ theta + offset)
        gradient = design.T @ (share * (p - target)) + penalty * theta
        curvature = design.T @ (design * (share * p * (1.0 - p))[:, None]) + np.diag(penalty * np.ones(len(theta)))
        step = np.linalg.solve(curvature, gradient)
        gain = float(gradient @ step)
        if gain < CLOSE * share.sum():
            return np.asarray(theta - step), True
        here, length = loss(theta), 1.0
        while loss(theta - length * step) > here - 1e-4 * length * gain and length > 1e-10:
            length /= 2.0
        theta = theta - length * step
    return theta, False
