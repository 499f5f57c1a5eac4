"""Detection metrics: settings that make no sense, extremes, and what the docstrings promise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from hitmiss import metrics as m
from hitmiss.core.errors import DataError, UnknownName, UsageError

LABEL, SCORE = [1, 1, 0, 0], [0.9, 0.4, 0.6, 0.1]


@pytest.mark.parametrize("p_target", [0.0, 1.0, -0.1, 1.5, math.nan])
@pytest.mark.parametrize("metric", [m.min_dcf, m.act_dcf, m.dcf_at])
def test_priors_outside_the_open_interval_are_refused(metric: Any, p_target: float) -> None:
    with pytest.raises(UsageError, match="p_target must lie between 0 and 1"):
        metric(LABEL, SCORE, p_target=p_target)


@pytest.mark.parametrize("cost", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("metric", [m.min_dcf, m.act_dcf, m.dcf_at])
def test_costs_that_are_no_costs_are_refused(metric: Any, cost: float) -> None:
    with pytest.raises(UsageError, match="costs must be positive and finite"):
        metric(LABEL, SCORE, c_miss=cost)
    with pytest.raises(UsageError, match="costs must be positive and finite"):
        metric(LABEL, SCORE, c_fa=cost)


def test_a_bayes_threshold_needs_a_prior_that_can_be_told_from_certainty() -> None:
    for p_target in (1e-17, 1 - 2**-53):
        with pytest.raises(UsageError, match="too near 0 or 1"):
            m.bayes_threshold(p_target, 1.0, 1.0)
    assert m.bayes_threshold(0.5, 1.0, 1.0) == 0.0
    assert m.bayes_threshold(0.5, 1.0, math.e) == pytest.approx(1.0)
    assert m.bayes_threshold(0.05, 1.0, 1.0) == pytest.approx(math.log(19))


def test_a_threshold_that_is_nan_is_refused_and_infinite_ones_are_trivial_systems() -> None:
    with pytest.raises(UsageError, match="NaN"):
        m.dcf_at(LABEL, SCORE, threshold=math.nan)
    costs = {"p_target": 0.5, "c_miss": 1, "c_fa": 3, "normalize": False}
    assert m.dcf_at(LABEL, SCORE, threshold=-math.inf, **costs) == 1.5
    assert m.dcf_at(LABEL, SCORE, threshold=math.inf, **costs) == 0.5


@pytest.mark.parametrize("metric", [m.eer, m.eer_threshold])
def test_unknown_tie_rules_are_refused(metric: Any) -> None:
    with pytest.raises(UnknownName, match="did you mean 'grouped'"):
        metric(LABEL, SCORE, ties="groupd")


@pytest.mark.parametrize("metric", [m.eer, m.eer_threshold])
def test_the_official_walk_takes_whole_trials_only(metric: Any) -> None:
    with pytest.raises(DataError, match="whole numbers"):
        metric(LABEL, SCORE, [0.5, 1.0, 1.0, 1.0], ties="official")
    assert metric(LABEL, SCORE, [1.0, 1.0, 2.0, 1.0], ties="official") == metric(
        [*LABEL, 0], [*SCORE, 0.6], ties="official"
    )


def test_cllr_of_extreme_evidence() -> None:
    assert m.cllr([1, 0], [1e308, -1e308]) == 0.0
    assert m.cllr([1, 0], [-1000.0, 1000.0]) == pytest.approx(1000 / math.log(2))
    assert m.cllr([1, 1, 0], [math.inf, 0.0, -math.inf]) == pytest.approx(0.25)
    assert m.cllr([1, 0], [-math.inf, 0.0]) == math.inf


def test_min_cllr_and_hull_of_a_perfect_and_a_reversed_order() -> None:
    assert m.min_cllr([1, 0], [1.0, 0.0]) == 0.0
    assert m.min_cllr([1, 0], [0.0, 1.0]) == 1.0
    assert m.eer([1, 0], [0.0, 1.0], ties="hull") == pytest.approx(0.5)
    assert m.eer([1, 0], [0.0, 1.0]) == 1.0


def test_eer_threshold_is_where_eer_is_read() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        label = np.concatenate([[1, 0], rng.integers(0, 2, 20)])
        score = np.round(rng.normal(label, 1), 1)
        t = m.eer_threshold(label, score)
        said = (score >= t).astype(int)
        assert m.eer(label, score) == pytest.approx((m.fnr(label, said) + m.fpr(label, said)) / 2, abs=1e-12)


@pytest.mark.parametrize("share", [-0.1, 1.1, math.nan])
def test_shares_outside_0_to_1_are_refused(share: float) -> None:
    with pytest.raises(UsageError, match="between 0 and 1"):
        m.tpr_at_fpr(LABEL, SCORE, fpr=share)
    with pytest.raises(UsageError, match="between 0 and 1"):
        m.fpr_at_tpr(LABEL, SCORE, tpr=share)


@pytest.mark.parametrize("metric", [m.brier, m.log_loss])
def test_probabilities_outside_0_to_1_are_refused(metric: Any) -> None:
    for score in ([1.2, 0.5], [-0.1, 0.5], [math.inf, 0.5]):
        with pytest.raises(DataError, match=r"scores must be probabilities, 0 to 1"):
            metric([1, 0], score)
    assert math.isnan(metric([], []))


def test_log_loss_does_not_clip() -> None:
    assert m.log_loss([1, 0], [0.0, 0.5]) == math.inf
    assert m.log_loss([1, 0], [1.0, 0.0]) == 0.0
