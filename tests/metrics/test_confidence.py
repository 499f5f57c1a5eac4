"""Metrics of confidence: exact arithmetic, scikit-learn, netcal, direct integration; edges of bins; what never counts."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from sklearn.metrics import brier_score_loss

from hitmiss import metrics as m
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.metrics.confidence import binned, calibrated_ece, judged

tenths = st.lists(st.tuples(st.integers(0, 100), st.booleans()), min_size=1, max_size=40)


def columns(right: list[bool]) -> tuple[list[int], list[int]]:
    """Labels and decisions with these verdicts right."""
    return [1] * len(right), [int(r) for r in right]


def exact_ece(percents: list[int], right: list[bool], bins: int, closed: str) -> tuple[Fraction, Fraction]:
    """ECE and MCE in fractions: percents are exact, and so are the edges k/bins."""
    groups: dict[int, list[tuple[Fraction, bool]]] = {}
    for p, r in zip(percents, right, strict=True):
        c = Fraction(p, 100)
        k = min(math.floor(c * bins), bins - 1) if closed == "left" else max(math.ceil(c * bins) - 1, 0)
        groups.setdefault(k, []).append((c, r))
    gaps = [
        (len(g), abs(Fraction(sum(r for _, r in g), len(g)) - sum(c for c, _ in g) / len(g))) for g in groups.values()
    ]
    return sum(n * gap for n, gap in gaps) / len(percents), max(gap for _, gap in gaps)


@given(tenths, st.sampled_from([5, 10, 20, 25]), st.sampled_from(["left", "right"]))
def test_binned_errors_are_exact(some: list[tuple[int, bool]], bins: int, closed: str) -> None:
    percents, right = [p for p, _ in some], [r for _, r in some]
    label, decision = columns(right)
    confidence = [p / 100 for p in percents]
    mean, worst = exact_ece(percents, right, bins, closed)
    rule = {"bins": bins, "closed": closed}
    assert m.ece(label, decision, confidence, **rule) == pytest.approx(float(mean), abs=1e-12)
    assert m.max_calibration_error(label, decision, confidence, **rule) == pytest.approx(float(worst), abs=1e-12)


def test_edges_are_tenths_and_not_their_neighbours() -> None:
    """0.3, 0.6 and 0.7 lie below the edges of numpy.linspace(0, 1, 11); here they begin their bins."""
    held = binned(judged([1] * 11, [1] * 11, [k / 10 for k in range(11)])).n
    assert held.tolist() == [1] * 9 + [2]
    right_closed = binned(judged([1] * 11, [1] * 11, [k / 10 for k in range(11)]), closed="right").n
    assert right_closed.tolist() == [2] + [1] * 9


@pytest.mark.extras
@given(tenths)
def test_netcal_agrees(some: list[tuple[int, bool]]) -> None:
    with warnings.catch_warnings(action="ignore"):  # its source, compiled for the first time, warns of old escapes
        from netcal.metrics import ECE, MCE

    label, decision = columns([r for _, r in some])
    inner = np.array([min(max(p, 1), 99) / 100 + 0.001 for p, _ in some])  # netcal's own rule at the very edges differs
    want = ECE(10).measure(inner, np.array(decision)), MCE(10).measure(inner, np.array(decision))
    assert m.ece(label, decision, inner) == pytest.approx(want[0], abs=1e-9)
    assert m.max_calibration_error(label, decision, inner) == pytest.approx(want[1], abs=1e-9)


@given(tenths)
def test_brier_of_confidence_is_that_of_scikit_learn(some: list[tuple[int, bool]]) -> None:
    label, decision = columns([r for _, r in some])
    confidence = [p / 100 for p, _ in some]
    found = m.brier_confidence(label, decision, confidence)
    assert found == pytest.approx(brier_score_loss(decision, confidence, pos_label=1, labels=[0, 1]), abs=1e-12)


def test_on_answered_rows_it_is_the_brier_score_of_the_probability_of_fake() -> None:
    rng = np.random.default_rng(0)
    label, decision, confidence = rng.integers(0, 2, 200), rng.integers(0, 2, 200), rng.random(200)
    p_fake = np.where(decision == 1, confidence, 1 - confidence)
    assert m.brier_confidence(label, decision, confidence) == pytest.approx(m.brier(label, p_fake), abs=1e-12)


def direct_smooth_ece(confidence: list[float], right: list[bool]) -> float:
    """The definition by quadrature: kernels reflected at both ends, the bandwidth that equals its own error."""

    images = np.array([[c + 2 * k, 2 * k - c] for c in confidence for k in range(-4, 5)])
    weight = np.array([r - c for c, r in zip(confidence, right, strict=True) for _ in range(9)])

    def residual(t: float, s: float) -> float:
        kernels = np.exp(-0.5 * ((t - images) / s) ** 2) / (s * np.sqrt(2 * np.pi))
        return float(weight @ kernels.sum(axis=1)) / len(right)

    def smoothed(s: float) -> float:
        grid = np.linspace(0, 1, 201)
        values = [residual(t, s) for t in grid]
        zeros = [
            brentq(residual, a, b, args=(s,), xtol=1e-14)
            for (a, b), (u, v) in zip(pairwise(grid), pairwise(values), strict=True)
            if u * v < 0
        ]
        return sum(abs(quad(residual, a, b, args=(s,), epsabs=1e-12)[0]) for a, b in pairwise([0.0, *zeros, 1.0]))

    return float(brentq(lambda s: smoothed(s) - s, 0.02, 1.0, xtol=1e-11))


@pytest.mark.parametrize("seed", [0, 1])
def test_smooth_error_is_its_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    confidence, right = np.round(rng.random(5), 2).tolist(), (rng.random(5) < 0.5).tolist()
    label, decision = columns(right)
    assert m.smooth_ece(label, decision, confidence) == pytest.approx(direct_smooth_ece(confidence, right), abs=1e-9)


def test_smooth_error_of_one_sided_residuals_is_their_mean() -> None:
    """Where every confidence is too high the smoothed residual never changes sign: no kernel can hide anything."""
    label, decision = columns([False] * 50 + [True] * 50)
    assert m.smooth_ece(label, decision, [0.9] * 100) == pytest.approx(0.4, abs=1e-12)


def test_smooth_error_on_a_grid_is_nearly_that_of_all_values() -> None:
    from hitmiss.metrics import confidence as module

    rng = np.random.default_rng(5)
    stated = rng.uniform(0.5, 1.0, 1500)
    decision = (rng.random(1500) < stated - 0.05).astype(int)
    gridded = m.smooth_ece(np.ones(1500, int), decision, stated)
    module.FINEST, kept = 10**6, module.FINEST
    try:
        assert gridded == pytest.approx(m.smooth_ece(np.ones(1500, int), decision, stated), abs=1e-4)
    finally:
        module.FINEST = kept


def test_no_edge_decides_about_the_smooth_error() -> None:
    """Confidences just below and just above an edge: ECE jumps, the smooth error does not."""
    label, decision = columns([True, False] * 50)
    below, above = [0.4999, 0.5001] * 50, [0.5001, 0.5003] * 50
    assert abs(m.ece(label, decision, below) - m.ece(label, decision, above)) > 0.4
    assert m.smooth_ece(label, decision, below) == pytest.approx(m.smooth_ece(label, decision, above), abs=1e-3)


@pytest.mark.parametrize("name", ["ece", "max_calibration_error", "smooth_ece", "brier_confidence", "aurc"])
def test_only_answers_with_a_confidence_count(name: str) -> None:
    metric = getattr(m, name)
    plain = metric([1, 0, 1], [1, 1, 0], [0.9, 0.8, 0.6])
    more = metric([1, 0, 1, 1, 0, 0], [1, 1, 0, -1, -2, 0], [0.9, 0.8, 0.6, 7.0, -3.0, math.nan])
    assert float(more) == float(plain)
    assert (plain.of, more.of) == (3, 3)
    assert math.isnan(metric([1, 0], [-1, -1], [0.5, 0.5]))
    assert math.isnan(metric([], [], []))


def test_bad_input_is_refused() -> None:
    with pytest.raises(DataError, match=r"0\.\.1; found 1.5 at position 1"):
        m.ece([1, 1], [1, 1], [0.5, 1.5])
    with pytest.raises(DataError, match="equally long"):
        m.ece([1, 1], [1, 1], [0.5])
    with pytest.raises(UnknownName, match="closed side"):
        m.ece([1], [1], [0.5], closed="both")
    with pytest.raises(UsageError, match="bins must be 1 or more"):
        m.ece([1], [1], [0.5], bins=0)


def test_what_chance_shows_is_what_calibrated_detectors_show() -> None:
    rng = np.random.default_rng(8)
    stated = rng.choice([0.55, 0.75, 0.95], 300)
    mean, most = calibrated_ece(judged([1] * 300, [1] * 300, stated), draws=4000)
    seen = [float(m.ece([1] * 300, (rng.random(300) < stated).astype(int), stated)) for _ in range(1500)]
    assert np.mean(seen) == pytest.approx(mean, rel=0.05)
    assert np.mean(np.array(seen) > most) == pytest.approx(0.05, abs=0.02)
    assert all(map(math.isnan, calibrated_ece(judged([], [], []))))
