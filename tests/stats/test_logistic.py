"""Logistic regression against scikit-learn and against the conditions of its optimum."""

from __future__ import annotations

import numpy as np
import pytest

from hitmiss.stats.logistic import fit_logistic


def data(seed: int, n: int = 200, features: int = 5, shift: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.3
    return rng.normal(size=(n, features)) + shift * y[:, None], y


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("strength", [0.01, 1.0, 50.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_fit_is_that_of_scikit_learn(seed: int, strength: float, balanced: bool) -> None:
    from sklearn.linear_model import LogisticRegression

    x, y = data(seed)
    theirs = LogisticRegression(C=strength, class_weight="balanced" if balanced else None, tol=1e-12, max_iter=10_000)
    theirs.fit(x, y)
    ours = fit_logistic(x, y, strength=strength, balanced=balanced)
    assert ours.weight == pytest.approx(theirs.coef_[0], abs=1e-5)
    assert ours.offset == pytest.approx(theirs.intercept_[0], abs=1e-5)


@pytest.mark.parametrize("shift", [0.0, 2.0, 30.0])
def test_no_other_weights_are_better(shift: float) -> None:
    """The gradient vanishes, also where the classes are separated, and with more features than trials."""
    for n, features in ((60, 3), (20, 40)):
        x, y = data(1, n, features, shift)
        fit = fit_logistic(x, y, strength=0.5)
        wrong = 1.0 / (1.0 + np.exp(-fit.log_odds(x))) - y
        assert fit.weight + 0.5 * x.T @ wrong == pytest.approx(np.zeros(features), abs=1e-5)
        assert wrong.sum() == pytest.approx(0.0, abs=1e-5)
