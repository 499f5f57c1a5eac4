"""Recalibration: statsmodels, scikit-learn and the conditions of the optimum; what the header says afterwards."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

from hitmiss import metrics as m
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.header import Header
from hitmiss.core.trials import Trials
from hitmiss.derive.recalibration import fit_isotonic, fit_platt, fit_temperature, recalibrate

RNG = np.random.default_rng(4)
SCORE = RNG.normal(0, 2, 400)
LABEL = (RNG.random(400) < expit(0.7 * SCORE - 0.3)).astype(int)


def test_platt_is_a_logistic_regression_on_his_targets() -> None:
    n1, n0 = LABEL.sum(), (1 - LABEL).sum()
    target = np.where(LABEL == 1, (n1 + 1) / (n1 + 2), 1 / (n0 + 2))
    want = sm.GLM(target, sm.add_constant(SCORE), family=sm.families.Binomial()).fit(tol=1e-14).params
    fitted = fit_platt(LABEL, SCORE)
    assert [fitted.offset, fitted.slope] == pytest.approx(want, abs=1e-9)


def test_platt_stays_finite_where_a_threshold_separates_the_classes() -> None:
    fitted = fit_platt([0] * 20 + [1] * 20, np.arange(40.0))
    assert 0 < fitted.slope < 1
    assert fitted.apply([0.0, 19.5, 39.0]) == pytest.approx([0.003, 0.5, 0.997], abs=1e-3)
    flat = fit_platt([0, 1, 1], [0.5, 0.5, 0.5]).apply([0.5, 9.0])
    assert flat[0] == flat[1]


def test_temperature_is_where_the_slope_of_the_loss_is_zero() -> None:
    p = expit(3 * SCORE)
    found = fit_temperature(LABEL, p).temperature
    z = logit(np.clip(p, 1e-6, 1 - 1e-6))
    slope = np.sum((expit(z / found) - LABEL) * z)
    assert slope / np.sum(np.abs(z)) == pytest.approx(0.0, abs=1e-7)
    assert found > 1  # it was overconfident


def test_isotonic_is_that_of_scikit_learn() -> None:
    rounded = np.round(SCORE, 1)
    want = IsotonicRegression(out_of_bounds="clip").fit(rounded, LABEL)
    at = np.linspace(-9, 9, 301)
    assert fit_isotonic(LABEL, rounded).apply(at) == pytest.approx(want.predict(at), abs=1e-9)


@pytest.mark.parametrize("fit", [fit_platt, fit_temperature, fit_isotonic])
def test_a_whole_weight_is_a_repetition(fit: object) -> None:
    p, weight = expit(SCORE[:60]), np.tile([1, 2, 3], 20)
    at = np.linspace(0.05, 0.95, 9)
    weighted = fit(LABEL[:60], p, weight).apply(at)  # type: ignore[operator]
    repeated = fit(np.repeat(LABEL[:60], weight), np.repeat(p, weight)).apply(at)  # type: ignore[operator]
    assert weighted == pytest.approx(repeated, abs=1e-6)


def overconfident(seed: int, prefix: str) -> Trials:
    rng = np.random.default_rng(seed)
    n = 2000
    label, stated = rng.integers(0, 2, n), rng.choice([0.7, 0.8, 0.9, 0.99], n)
    right = rng.random(n) < stated - 0.2
    decision = np.where(rng.random(n) < 0.1, -1, np.where(right, label, 1 - label))
    return Trials.of(label, decision=decision, confidence=stated, item=[f"{prefix}{i}" for i in range(n)],
                     header=Header(positive="fake", negative="real"))  # fmt: skip


@pytest.mark.parametrize("method", ["platt", "temperature", "isotonic"])
def test_fitted_on_one_split_it_helps_on_another(method: str) -> None:
    dev, test = overconfident(0, "d"), overconfident(1, "t")
    after = recalibrate(dev, test, method)

    def error(trials: Trials) -> float:
        return float(m.ece(*(trials.column(c).to_numpy() for c in ("label", "decision", "confidence"))))

    assert error(test) > 0.18
    assert error(after) < (0.08 if method == "temperature" else 0.04)
    assert after.header.choices[-1].startswith(f"recalibration={method}(confidence) fitted on")
    assert after.header.provenance["recalibration"]["fit_n"] == int((dev.frame["decision"] >= 0).sum())
    assert not after.header.notes
    assert after.column("decision").to_list() == test.column("decision").to_list()


def test_fitting_on_the_rows_that_are_shown_is_called_optimistic() -> None:
    trials = overconfident(0, "d")
    assert "optimistic, 2000 of 2000" in recalibrate(trials, trials).header.notes[-1]


def test_scores_become_probabilities() -> None:
    header = Header(positive="fake")
    dev = Trials.of(LABEL, SCORE, item=[f"d{i}" for i in range(400)], header=header)
    test = Trials.of([1, 0, 1], [2.0, -2.0, 0.0], header=header)
    after = recalibrate(dev, test, "platt", "score")
    assert after.header.score_kind == "probability"
    assert after.score == pytest.approx(fit_platt(LABEL, SCORE).apply([2.0, -2.0, 0.0]))


def test_what_has_no_confidence_stays_without() -> None:
    trials = overconfident(0, "d")
    holed = trials.put(confidence=pl.when(pl.int_range(pl.len()) < 5).then(None).otherwise(pl.col("confidence")))
    assert recalibrate(trials, holed).column("confidence").null_count() == 5


def test_senseless_questions_are_refused() -> None:
    trials = overconfident(0, "d")
    with pytest.raises(UnknownName, match="recalibration"):
        recalibrate(trials, trials, "magic")
    with pytest.raises(UnknownName, match="column to recalibrate"):
        recalibrate(trials, trials, "platt", "label")
    with pytest.raises(UsageError, match="temperature"):
        recalibrate(Trials.of([1, 0], [1.0, 2.0]), Trials.of([1, 0], [1.0, 2.0]), "temperature", "score")
    for bad in (([1, 1], [0.5, 0.6]), ([1, 0], [0.5, np.inf])):
        with pytest.raises(DataError):
            fit_platt(*bad)
    with pytest.raises(DataError, match="temperature"):
        fit_temperature([1, 0], [1.5, 0.2])
