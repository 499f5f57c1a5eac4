"""Thinning: every point that was dropped lies within half a pixel of the line that is drawn."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import ndtri

from hitmiss.core.sorting import Floats
from hitmiss.core.tally import Tally
from hitmiss.metrics.curves import det_curve
from hitmiss.reports.displays.det import PER_DEVIATE, DetDisplay
from hitmiss.reports.displays.precision_recall import PrDisplay
from hitmiss.reports.displays.roc import RocDisplay
from hitmiss.reports.thinning import HALF_PIXEL, PIXELS, distance_to_segment, thin


def farthest(x: Floats, y: Floats, kept: Floats) -> float:
    """The greatest distance of any point from the segment that replaces its stretch of the curve."""
    worst = 0.0
    for first, last in itertools.pairwise(kept):
        ends = (x[first], y[first]), (x[last], y[last])
        worst = max(worst, float(distance_to_segment(x[first : last + 1], y[first : last + 1], *ends).max()))
    return worst


@given(st.lists(st.tuples(st.floats(-900, 900), st.floats(-900, 900)), min_size=1, max_size=120), st.floats(0.05, 20))
def test_any_line_keeps_within_the_tolerance(points: list[tuple[float, float]], tolerance: float) -> None:
    x, y = np.array(points).T
    kept = thin(x, y, tolerance)
    assert {0, len(x) - 1} <= set(kept.tolist()) and (np.diff(kept) > 0).all()
    assert farthest(x, y, kept) <= tolerance + 1e-9


@example(seed=1350, n=252, shift=-0.5, ties=True, stops=40)  # stops put in after thinning moved the line
@given(st.integers(0, 2**32 - 1), st.integers(2, 400), st.floats(-1, 4), st.booleans(), st.integers(0, 60))
def test_curves_of_detectors_keep_within_half_a_pixel(seed: int, n: int, shift: float, ties: bool, stops: int) -> None:
    rng = np.random.default_rng(seed)
    label = np.arange(n) % 2 == 0
    score = rng.normal(size=n) + shift * label
    curve = det_curve(label, np.round(score, 1) if ties else score)
    drawn = (curve.far > 0) & (curve.far < 1) & (curve.frr > 0) & (curve.frr < 1)
    x, y = PER_DEVIATE * ndtri(curve.far[drawn]), PER_DEVIATE * ndtri(curve.frr[drawn])
    if len(x):
        assert farthest(x, y, thin(x, y, stops=stops)) <= HALF_PIXEL + 1e-9


def test_a_million_trials_become_a_few_hundred_points_that_are_all_real() -> None:
    rng = np.random.default_rng(5)
    label = rng.random(1_000_000) < 0.2
    tally = Tally.of(label, rng.normal(size=len(label)) + 2.5 * label)
    det, roc, pr = DetDisplay.from_tally(tally), RocDisplay.from_tally(tally), PrDisplay.from_tally(tally)
    assert len(det.far) < 600 and len(roc.fpr) < 300 and len(pr.recall) < 400
    for i in range(0, len(det.far), 50):  # each kept point is what its threshold gives
        point = tally.point_at(det.threshold[i])
        assert det.frr[i] == tally.positives[point] / tally.n_positive
        assert det.far[i] == (tally.n_negative - tally.negatives[point]) / tally.n_negative
    x, y = PIXELS * roc.fpr, PIXELS * roc.tpr
    area = float(np.sum((roc.fpr[:-1] - roc.fpr[1:]) * (roc.tpr[:-1] + roc.tpr[1:])) / 2)
    assert roc.area == pytest.approx(area, abs=1e-3) and len(x) == len(y)


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        thin(np.array([0.0, np.inf]), np.array([0.0, 1.0]))


def test_a_wrong_thinning_would_be_noticed() -> None:
    x = np.linspace(0, 600, 1000)
    y = 50 * np.sin(x / 40)
    assert farthest(x, y, np.array([0, 999])) > 40 and farthest(x, y, thin(x, y)) <= HALF_PIXEL
