"""Figures and curves against scikit-learn: with ties, weights, and scores one unit in the last place apart."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import given
from hypothesis import strategies as st

from hitmiss import metrics as m

EXACT = {"abs": 1e-12, "rel": 1e-12}

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray | None]

near_one = st.integers(-3, 3).map(lambda k: 1.0 + k * 2.0**-52)
ratings = st.integers(-3, 3).map(float)
anything = st.floats(-1e6, 1e6, allow_subnormal=False)
tiny = st.sampled_from([0.0, 5e-324, 1e-323, -5e-324])
probabilities = st.one_of(st.floats(0.001, 0.999), st.sampled_from([0.25, 0.5]))
whole = st.integers(1, 5)
fractional = st.floats(0.01, 10.0)


@st.composite
def cases(draw: st.DrawFn, values: st.SearchStrategy[float], weights: st.SearchStrategy[float] | None = None) -> Arrays:
    """Trials of both classes in any order, with or without weights."""
    n = draw(st.integers(0, 30))
    label = np.array(draw(st.permutations([1, 0, *draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))])))
    score = np.array(draw(st.lists(values, min_size=n + 2, max_size=n + 2)))
    if weights is None or draw(st.booleans()):
        return label, score, None
    return label, score, np.array(draw(st.lists(weights, min_size=n + 2, max_size=n + 2)))


scores = st.sampled_from([near_one, ratings, anything, tiny])
any_weight = scores.flatmap(lambda values: cases(values, st.one_of(whole, fractional)))
whole_weight = scores.flatmap(lambda values: cases(values, whole))


@given(any_weight)
def test_roc_auc(case: Arrays) -> None:
    label, score, weight = case
    assert m.roc_auc(label, score, weight) == pytest.approx(
        sk.roc_auc_score(label, score, sample_weight=weight), **EXACT
    )


@given(any_weight)
def test_average_precision(case: Arrays) -> None:
    label, score, weight = case
    want = sk.average_precision_score(label, score, sample_weight=weight)
    assert m.average_precision(label, score, weight) == pytest.approx(want, **EXACT)


@given(any_weight)
def test_roc_curve(case: Arrays) -> None:
    label, score, weight = case
    curve = m.roc_curve(label, score, weight)
    fpr, tpr, thresholds = sk.roc_curve(label, score, sample_weight=weight, drop_intermediate=False)
    np.testing.assert_array_equal(curve.thresholds, thresholds[::-1])
    np.testing.assert_allclose(curve.fpr, fpr[::-1], atol=1e-12)
    np.testing.assert_allclose(curve.tpr, tpr[::-1], atol=1e-12)
    assert curve.area == pytest.approx(m.roc_auc(label, score, weight), **EXACT)


@given(whole_weight)
def test_det_curve(case: Arrays) -> None:
    """scikit-learn leaves out what lies beyond zero misses and zero false alarms; the rest is the same."""
    label, score, weight = case
    curve = m.det_curve(label, score, weight)
    far, frr, thresholds = sk.det_curve(label, score, sample_weight=weight, drop_intermediate=False)
    start = int(np.flatnonzero(curve.thresholds == thresholds[0])[0])
    part = slice(start, start + len(thresholds))
    np.testing.assert_array_equal(curve.thresholds[part], thresholds)
    np.testing.assert_allclose(curve.far[part], far, atol=1e-12)
    np.testing.assert_allclose(curve.frr[part], frr, atol=1e-12)
    assert (curve.frr[:start] == 0).all()
    assert (curve.far[part.stop :] == 0).all()
    assert (curve.far[0], curve.frr[0], curve.far[-1], curve.frr[-1]) == (1, 0, 0, 1)


@given(any_weight)
def test_pr_curve(case: Arrays) -> None:
    label, score, weight = case
    curve = m.pr_curve(label, score, weight)
    precision, recall, thresholds = sk.precision_recall_curve(label, score, sample_weight=weight)
    np.testing.assert_array_equal(curve.thresholds, [*thresholds, math.inf])
    np.testing.assert_allclose(curve.precision, precision, atol=1e-12)
    np.testing.assert_allclose(curve.recall, recall, atol=1e-12)


@given(whole_weight, st.one_of(st.sampled_from([0.0, 0.01, 0.1, 0.25, 1 / 3, 0.5, 2 / 3, 0.9, 1.0]), st.floats(0, 1)))
def test_points_of_the_roc_curve(case: Arrays, share: float) -> None:
    label, score, weight = case
    fpr, tpr, _ = sk.roc_curve(label, score, sample_weight=weight, drop_intermediate=False)
    assert m.tpr_at_fpr(label, score, weight, fpr=share) == pytest.approx(tpr[fpr <= share].max(), **EXACT)
    assert m.fpr_at_tpr(label, score, weight, tpr=share) == pytest.approx(fpr[tpr >= share].min(), **EXACT)


@given(whole_weight)
def test_grouped_and_interpolated_eer_are_points_of_the_roc_curve(case: Arrays) -> None:
    label, score, weight = case
    fpr, tpr, _ = sk.roc_curve(label, score, sample_weight=weight, drop_intermediate=False)
    gap = np.abs((1 - tpr) - fpr)
    nearest = ((1 - tpr) + fpr)[gap <= gap.min() + 1e-12] / 2
    assert np.abs(nearest - m.eer(label, score, weight)).min() < 1e-12
    assert m.eer(label, score, weight, ties="interpolated") == pytest.approx(straight_crossing(fpr, 1 - tpr), **EXACT)


def straight_crossing(fpr: np.ndarray, fnr: np.ndarray) -> float:
    """Where the straight line through the points of the curve meets fnr = fpr."""
    ahead = fnr - fpr  # from 1 down to -1
    k = int(np.argmax(ahead <= 0))
    share = ahead[k - 1] / (ahead[k - 1] - ahead[k])
    return float(fpr[k - 1] + share * (fpr[k] - fpr[k - 1]))


decided = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.floats(0.01, 10.0)), min_size=1, max_size=40)


@given(decided, st.booleans())
def test_decisions(rows: list[tuple[int, int, float]], is_weighted: bool) -> None:
    label, decision, weights = (np.array(column) for column in zip(*rows, strict=True))
    weight = weights if is_weighted else None
    given_weight = {"sample_weight": weight, "zero_division": math.nan}

    def check(found: float, want: float) -> None:
        assert found == pytest.approx(want, nan_ok=True, **EXACT)

    check(m.accuracy(label, decision, weight), sk.accuracy_score(label, decision, sample_weight=weight))
    check(m.precision(label, decision, weight), sk.precision_score(label, decision, **given_weight))
    check(m.recall(label, decision, weight), sk.recall_score(label, decision, **given_weight))
    check(m.specificity(label, decision, weight), sk.recall_score(label, decision, pos_label=0, **given_weight))
    check(m.f1(label, decision, weight), sk.f1_score(label, decision, **given_weight))
    check(m.fnr(label, decision, weight), 1 - sk.recall_score(label, decision, **given_weight))
    check(m.fpr(label, decision, weight), 1 - sk.recall_score(label, decision, pos_label=0, **given_weight))
    if len(set(label)) == 2:
        want = sk.balanced_accuracy_score(label, decision, sample_weight=weight)
        check(m.balanced_accuracy(label, decision, weight), want)
    if len(set(label)) == len(set(decision)) == 2:
        check(m.mcc(label, decision, weight), sk.matthews_corrcoef(label, decision, sample_weight=weight))
    else:
        assert math.isnan(m.mcc(label, decision, weight))


@given(cases(probabilities, st.one_of(whole, fractional)))
def test_probabilities(case: Arrays) -> None:
    label, score, weight = case
    assert m.brier(label, score, weight) == pytest.approx(
        sk.brier_score_loss(label, score, sample_weight=weight), **EXACT
    )
    assert m.log_loss(label, score, weight) == pytest.approx(sk.log_loss(label, score, sample_weight=weight), **EXACT)


def test_more_trials_than_one_chunk() -> None:
    """Sums, least costs and areas are taken in parts of 32,768 distinct scores."""
    rng = np.random.default_rng(5)
    label = rng.random(100_000) < 0.3
    score = rng.normal(label * 1.5, 1.0)
    assert len(np.unique(score)) > 3 * 2**15
    assert m.roc_auc(label, score) == pytest.approx(sk.roc_auc_score(label, score), **EXACT)
    assert m.average_precision(label, score) == pytest.approx(sk.average_precision_score(label, score), **EXACT)
    fpr, tpr, _ = sk.roc_curve(label, score, drop_intermediate=False)
    for p_target in (0.02, 0.5, 0.999):  # the best threshold lies in another part each time
        least = (p_target * (1 - tpr) + (1 - p_target) * fpr).min() / min(p_target, 1 - p_target)
        assert m.min_dcf(label, score, p_target=p_target, c_miss=1, c_fa=1) == pytest.approx(least, **EXACT)
    odds = np.exp(-score)
    expected = (np.log2(1 + odds[label]).mean() + np.log2(1 + 1 / odds[~label]).mean()) / 2
    assert m.cllr(label, score) == pytest.approx(expected, **EXACT)
    probability = 1 / (1 + odds)
    assert m.log_loss(label, probability) == pytest.approx(sk.log_loss(label, probability), **EXACT)


@pytest.mark.extras
def test_torchmetrics_eer() -> None:
    torch = pytest.importorskip("torch")
    functional = pytest.importorskip("torchmetrics.functional.classification")
    rng = np.random.default_rng(7)
    for n in (2, 7, 60, 500):
        label = np.concatenate([[1, 0], rng.integers(0, 2, n)])
        score = np.round(rng.random(n + 2), 2).astype(np.float32)
        want = functional.binary_eer(torch.from_numpy(score), torch.from_numpy(label)).item()
        assert min(abs(m.eer(label, score) - want), abs(m.eer(1 - label, -score) - want)) < 1e-6
