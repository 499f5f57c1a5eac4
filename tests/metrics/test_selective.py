"""Selective classification: every order of the ties in exact fractions, the closed form of AUGRC, published limits."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from hitmiss import metrics as m
from hitmiss.core.errors import UsageError
from hitmiss.metrics.confidence import Judged, judged
from hitmiss.metrics.selective import accuracy_at_coverage_of, aurc_of, coverage_at_accuracy_of, e_aurc_of

small = st.lists(st.tuples(st.sampled_from([0.5, 0.7, 0.9]), st.booleans()), min_size=1, max_size=6)
larger = st.lists(st.tuples(st.sampled_from([0.5, 0.6, 0.7, 0.9, 1.0]), st.booleans()), min_size=2, max_size=40)
Rows = list[tuple[float, bool]]


def columns(some: Rows) -> tuple[list[int], list[int], list[float]]:
    return [1] * len(some), [int(r) for _, r in some], [c for c, _ in some]


def orders(some: Rows) -> list[list[bool]]:
    """Every order of the rows by falling confidence, ties in every order."""
    return [[r for _, r in order] for order in permutations(some) if all(a[0] >= b[0] for a, b in pairwise(order))]


def mean_risk(order: list[bool]) -> Fraction:
    risks = [Fraction(sum(not r for r in order[:k]), k) for k in range(1, len(order) + 1)]
    return sum(risks, Fraction(0)) / len(order)


@settings(max_examples=60)
@given(small)
def test_aurc_is_the_mean_over_all_orders_of_ties(some: Rows) -> None:
    tried = orders(some)
    expected = sum(map(mean_risk, tried), Fraction(0)) / len(tried)
    assert m.aurc(*columns(some)) == pytest.approx(float(expected), abs=1e-12)
    best = mean_risk(sorted((r for _, r in some), reverse=True))
    assert m.e_aurc(*columns(some)) == pytest.approx(float(expected - best), abs=1e-12)


@settings(max_examples=60)
@given(small, st.integers(1, 6))
def test_accuracy_at_coverage_is_the_mean_over_all_orders_of_ties(some: Rows, k: int) -> None:
    k = min(k, len(some))
    tried = orders(some)
    right = sum((Fraction(sum(order[:k]), k) for order in tried), Fraction(0)) / len(tried)
    found = m.accuracy_at_coverage(*columns(some), coverage=k / len(some))
    assert found == pytest.approx(float(right), abs=1e-12)


@given(larger)
def test_augrc_has_its_closed_form(some: Rows) -> None:
    right = [r for _, r in some]
    accuracy = sum(right) / len(right)
    ranked = roc_auc_score(right, [c for c, _ in some]) if 0 < accuracy < 1 else 0.5
    expected = (1 - ranked) * accuracy * (1 - accuracy) + (1 - accuracy) ** 2 / 2
    assert m.augrc(*columns(some)) == pytest.approx(expected, abs=1e-12)


@given(larger, st.sampled_from([0.3, 0.5, 0.75, 0.9, 1.0]))
def test_coverage_at_accuracy_tries_every_threshold(some: Rows, accuracy: float) -> None:
    shares = [0.0]
    for t in {c for c, _ in some}:
        kept = [r for c, r in some if c >= t]
        if Fraction(sum(kept), len(kept)) >= Fraction(accuracy).limit_denominator(100):
            shares.append(len(kept) / len(some))
    assert m.coverage_at_accuracy(*columns(some), accuracy=accuracy) == pytest.approx(max(shares), abs=1e-12)


def test_an_all_wrong_file_has_the_worst_area() -> None:
    rows = [(0.9, False)] * 5 + [(0.5, False)] * 5
    assert m.aurc(*columns(rows)) == pytest.approx(1.0, abs=1e-12)
    assert m.e_aurc(*columns(rows)) == pytest.approx(0.0, abs=1e-12)
    assert m.augrc(*columns(rows)) == 0.5


def test_confidence_that_says_nothing_gives_the_error_rate() -> None:
    rows = [(0.8, True)] * 30 + [(0.8, False)] * 10
    assert m.aurc(*columns(rows)) == pytest.approx(0.25, abs=1e-12)


def test_coverage_is_of_all_trials() -> None:
    label, decision, confidence = [1] * 4, [1, 1, -1, -2], [0.9, 0.8, 0.99, 0.99]
    assert m.accuracy_at_coverage(label, decision, confidence, coverage=0.5) == 1.0
    assert math.isnan(m.accuracy_at_coverage(label, decision, confidence, coverage=0.6))
    assert m.coverage_at_accuracy(label, decision, confidence, accuracy=0.9) == 0.5
    assert m.coverage_at_accuracy(label, [0, 0, -1, -1], confidence, accuracy=0.9) == 0.0
    assert math.isnan(m.coverage_at_accuracy([], [], []))
    for call in (m.accuracy_at_coverage, m.coverage_at_accuracy):
        with pytest.raises(UsageError):
            call(label, decision, confidence, **{call.__name__.partition("_at_")[2]: 0.0})


def test_the_curve_ends_at_the_error_rate() -> None:
    curve = m.risk_coverage([1] * 4, [1, 0, 1, 1], [0.9, 0.9, 0.5, 0.2])
    assert curve.coverage.tolist() == [0.5, 0.75, 1.0]
    assert curve.risk[-1] == 0.25 == curve.generalized_risk[-1]
    assert curve.threshold.tolist() == [0.9, 0.5, 0.2]


@given(larger)
def test_many_replicates_at_once_are_each_alone(some: Rows) -> None:
    """Counts with empty groups among them, as a bootstrap draws them, give what the rows give."""
    rng = np.random.default_rng(len(some))
    label, decision, confidence = columns(some)
    tally = judged(label, decision, confidence)
    weights = [np.bincount(rng.integers(0, len(some), len(some)), minlength=len(some)) for _ in range(3)]
    place = np.searchsorted(tally.score, confidence)
    right, wrong = (
        np.array(
            [np.bincount(place, weights=w * (np.array(decision) == d), minlength=len(tally.score)) for w in weights]
        )
        for d in (1, 0)
    )
    together = Judged(tally.score, right, wrong, np.full(3, float(len(some))))
    for of, metric, setting in (
        (aurc_of, m.aurc, {}),
        (e_aurc_of, m.e_aurc, {}),
        (accuracy_at_coverage_of, m.accuracy_at_coverage, {"coverage": 0.6}),
        (coverage_at_accuracy_of, m.coverage_at_accuracy, {"accuracy": 0.7}),
    ):
        alone = [float(metric(label, decision, confidence, w, **setting)) for w in weights]
        assert of(together, **setting).tolist() == pytest.approx(alone, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("weight", [0.1, 1.0, 0.3])
def test_an_accuracy_that_is_just_reached_counts_and_half_an_answer_more_does_not(weight: float) -> None:
    """Each share of right answers among up to 120, whose weights are sums that no float holds exactly."""
    for n in (3, 7, 10, 49, 120):
        for right in range(1, n):
            label, decision, confidence = columns([(0.5, k < right) for k in range(n)])
            asked = (label, decision, confidence, [weight] * n)
            assert m.coverage_at_accuracy(*asked, accuracy=right / n) == pytest.approx(1.0)
            assert m.coverage_at_accuracy(*asked, accuracy=(right + 0.5) / n) == 0.0
