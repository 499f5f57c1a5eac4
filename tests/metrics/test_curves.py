"""Curves as numbers: their ends, their order, and one class only. Parity with scikit-learn is tested apart."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitmiss import metrics as m
from hitmiss.core.errors import DataError

scores = st.sampled_from([-math.inf, -1.0, 0.0, 0.5, 0.5000000000000001, 2.0, math.inf])
trials = st.lists(st.tuples(st.integers(0, 1), scores), max_size=20).map(lambda some: [*some, (1, 0.5), (0, 0.5)])


@given(trials)
def test_ends_and_order(some: list[tuple[int, float]]) -> None:
    label, score = zip(*some, strict=True)
    roc, det, pr = m.roc_curve(label, score), m.det_curve(label, score), m.pr_curve(label, score)
    assert (roc.fpr[0], roc.tpr[0], roc.fpr[-1], roc.tpr[-1]) == (1, 1, 0, 0)
    assert (det.far[0], det.frr[0], det.far[-1], det.frr[-1]) == (1, 0, 0, 1)
    assert (pr.recall[0], pr.recall[-1], pr.precision[-1]) == (1, 0, 1)
    for falling in (roc.fpr, roc.tpr, det.far, -det.frr, pr.recall):
        assert (np.diff(falling) <= 0).all()
    for curve in (roc, det, pr):
        assert curve.thresholds.tolist() == [*sorted(set(score)), math.inf]
    np.testing.assert_array_equal(roc.fpr, det.far)
    np.testing.assert_allclose(roc.tpr, 1 - det.frr, atol=1e-15)
    assert roc.area == pytest.approx(m.roc_auc(label, score))


@given(trials)
def test_each_point_is_the_decision_at_its_threshold(some: list[tuple[int, float]]) -> None:
    label, score = (np.array(column) for column in zip(*some, strict=True))
    roc, pr = m.roc_curve(label, score), m.pr_curve(label, score)
    for k, threshold in enumerate(roc.thresholds[:-1]):
        said = (score >= threshold).astype(int)
        assert roc.tpr[k] == m.recall(label, said)
        assert roc.fpr[k] == m.fpr(label, said)
        assert pr.precision[k] == m.precision(label, said)


@pytest.mark.parametrize("only", [0, 1])
def test_one_class(only: int) -> None:
    label, score = [only, only], [0.2, 0.7]
    absent, present = ("fpr", "tpr") if only else ("tpr", "fpr")
    roc = m.roc_curve(label, score)
    assert np.isnan(getattr(roc, absent)).all()
    assert getattr(roc, present).tolist() == [1.0, 0.5, 0.0]
    assert math.isnan(roc.area)
    assert np.isnan(m.pr_curve(label, score).recall).all() == (only == 0)


def test_no_trials() -> None:
    det = m.det_curve([], [])
    assert det.thresholds.tolist() == [math.inf]
    assert math.isnan(det.far[0])


def test_normal_deviates_stay_finite() -> None:
    far, frr = m.det_curve([1, 1, 0, 0], [0.9, 0.4, 0.6, 0.1]).probit()
    assert np.isfinite(far).all()
    assert np.isfinite(frr).all()
    assert far[1] == pytest.approx(0.0)  # half of the negatives are accepted there
    assert frr[0] == pytest.approx(-4.753424308822899)  # the normal deviate of one in a million
    narrower, _ = m.det_curve([1, 0], [1, 0]).probit(floor=0.025)
    assert narrower[0] == pytest.approx(1.959963984540054)


def test_nan_scores_are_refused() -> None:
    for curve in (m.roc_curve, m.det_curve, m.pr_curve):
        with pytest.raises(DataError, match="NaN"):
            curve([1, 0], [math.nan, 1.0])
