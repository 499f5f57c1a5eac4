"""Intervals that are there where errors are few, and no wider than they need be where units are small or of one class."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from hitmiss.core.header import Header
from hitmiss.core.trials import Trials
from hitmiss.derive.decisions import at_threshold
from hitmiss.engine.compare import compare
from hitmiss.engine.measure import measure

FEW = ("min_dcf", "act_dcf", "f1", "mcc", "balanced_accuracy")
Array = np.ndarray
EQUAL = "p_target=0.5,c_miss=1,c_fa=1"
"""Costs for which a cost is the sum of the two error rates, and the best threshold is 0."""


def with_errors(missed: int, accepted: int, n1: int = 100, n0: int = 300) -> Trials:
    """Log-likelihood ratios far from 0, of which so many are on the wrong side."""
    label = np.r_[np.ones(n1, dtype=int), np.zeros(n0, dtype=int)]
    score = np.where(label == 1, 5.0, -5.0) + np.random.default_rng(0).normal(0.0, 0.5, n1 + n0)
    score[:missed] *= -1.0
    score[n1 : n1 + accepted] *= -1.0
    return at_threshold(Trials.of(label, score, header=Header(score_kind="llr")), 0.0)


@pytest.mark.parametrize("metric", FEW)
@pytest.mark.parametrize(("missed", "accepted"), [(0, 0), (0, 1), (1, 0), (0, 5), (2, 2), (5, 0)])
def test_few_errors_have_an_interval(metric: str, missed: int, accepted: int) -> None:
    row = measure(with_errors(missed, accepted), [metric], bootstrap=100).one(metric)
    assert row.low is not None and row.high is not None and row.value is not None
    assert row.low <= row.value <= row.high and row.low < row.high


@pytest.mark.parametrize(("missed", "accepted"), [(0, 3), (0, 0)])
def test_few_errors_leave_open_what_counting_says(missed: int, accepted: int) -> None:
    """The ends are those of two rates, each as uncertain as Jeffreys says: drawn here, computed there."""
    row = measure(with_errors(missed, accepted), [f"act_dcf({EQUAL})"], bootstrap=100).estimates[0]
    rng = np.random.default_rng(1)
    miss = rng.beta(missed + 0.5, 100 - missed + 0.5, 200_000)
    alarm = rng.beta(accepted + 0.5, 300 - accepted + 0.5, 200_000)
    expected = np.quantile(miss + alarm, [0.025, 0.975])
    assert row.method == "jeffreys" and row.value == pytest.approx(missed / 100 + accepted / 300)
    assert (row.low, row.high) == pytest.approx((min(expected[0], row.value), expected[1]), rel=0.03)


@pytest.mark.parametrize("metric", ["f1", "mcc", "average_precision", "roc_auc"])
def test_units_of_one_row_are_as_wide_as_trials(metric: str) -> None:
    rng = np.random.default_rng(3)
    label = rng.random(1000) < 0.3
    score = rng.normal(size=1000) + 2.4 * label
    trials = at_threshold(Trials.of(label, score, row=np.char.add("r", np.arange(1000).astype(str))), 1.5)
    widths = []
    for unit in (None, "row"):
        row = measure(trials, [metric], bootstrap=600, unit=unit).one(metric)
        assert row.low is not None and row.high is not None
        widths.append(row.high - row.low)
    assert widths[1] == pytest.approx(widths[0], rel=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_costs_and_differences_over_units_of_one_row_are_as_wide_as_over_trials(seed: int) -> None:
    """400 units are left out in blocks, whose jackknife is too uncertain to widen an interval."""
    rng = np.random.default_rng(seed)
    label, row = rng.random(400) < 0.3, np.char.add("r", np.arange(400).astype(str))
    noise = rng.normal(size=(2, 400))
    runs = [
        Trials.of(
            label, d * (noise[0] + noise[1] * k + d * label) - d * d / 2, header=Header(score_kind="llr"), row=row
        )
        for k, d in ((0.0, 2.4), (0.5, 2.1))
    ]
    ratios = []
    for metric in ("cllr", "act_dcf"):
        alone, over = (measure(runs[0], [metric], bootstrap=500, unit=unit).one(metric) for unit in (None, "row"))
        one, two = (compare(*runs, [metric], bootstrap=500, unit=unit, force=True)[0] for unit in (None, "row"))
        for first, second in ((alone, over), (one, two)):
            assert None not in (first.low, first.high, second.low, second.high)
            ratios.append((second.high - second.low) / (first.high - first.low))
    assert ratios == pytest.approx([1.0] * 4, abs=0.15) and np.mean(ratios) == pytest.approx(1.0, abs=0.08)


def area(positive: Array, negative: Array, w1: Array, w0: Array) -> float:
    """The weighted share of pairs in the right order."""
    return float(w1 @ (positive[:, None] > negative[None, :]) @ w0 / (w1.sum() * w0.sum()))


def test_attacks_are_drawn_and_bona_fide_trials_alone() -> None:
    """Bona fide trials have no attack: brute force draws attacks whole and bona fide trials one by one."""
    rng = np.random.default_rng(5)
    attack = np.repeat(np.arange(16), 20)
    good, bad = rng.normal(2.0, 1.0, 150), rng.normal(size=320) + 0.6 * rng.normal(size=16)[attack]
    trials = Trials.of(
        np.r_[np.ones(150), np.zeros(320)],
        np.r_[good, bad],
        attack=np.r_[np.full(150, "-"), np.char.add("A", attack.astype(str))],
    )
    row = measure(trials, ["roc_auc"], bootstrap=1000, unit="attack").one("roc_auc")
    assert row.low is not None and row.high is not None and row.value is not None and row.units == 16
    drawn = [
        area(
            good,
            bad,
            np.bincount(rng.integers(0, 150, 150), minlength=150).astype(float),
            np.bincount(rng.integers(0, 16, 16), minlength=16).astype(float)[attack],
        )
        for _ in range(1000)
    ]
    logit = np.log(np.array(drawn) / (1.0 - np.array(drawn)))
    half = stats.t.ppf(0.975, 15) * np.std(logit) * math.sqrt(16 / 15)
    middle = math.log(row.value / (1.0 - row.value))
    ends = [math.log(e / (1.0 - e)) for e in (row.low, row.high)]
    assert (ends[1] - ends[0]) / 2.0 == pytest.approx(half, rel=0.2) and ends[0] < middle < ends[1]


def test_too_few_attacks_are_refused() -> None:
    label = np.r_[np.ones(50), np.zeros(60)]
    score = np.random.default_rng(1).normal(size=110) + label
    attack = np.r_[np.full(50, "-"), np.repeat(["A1", "A2", "A3"], 20)]
    row = measure(Trials.of(label, score, attack=attack), ["eer"], bootstrap=50, unit="attack").one("eer")
    assert row.low is None and row.note == "no interval: only 3 of attack to draw from"


def test_pairs_with_few_errors_are_tested_by_the_trials_on_which_they_differ() -> None:
    """(b + ¼) / (n + ½) of each kind and class, by hand."""
    one, other = with_errors(0, 0), with_errors(4, 0)
    (row,) = compare(one, other, ["act_dcf(p_target=0.5,c_miss=1,c_fa=10)"], bootstrap=200)  # miss + 10 · false alarm
    assert row.test == "wald" and row.low is not None and row.high is not None and row.p_value is not None
    p, q, r = 4.25 / 100.5, 0.25 / 100.5, 0.25 / 300.5
    error = math.sqrt((p + q - (p - q) ** 2) / 100.5 + 10**2 * 2 * r / 300.5)
    assert row.p_value == pytest.approx(2 * stats.norm.sf((p - q) / error))
    assert (row.low, row.high) == pytest.approx((p - q - 1.959964 * error, p - q + 1.959964 * error), rel=1e-5)


def twice(trials: Trials, times: int) -> Trials:
    """Every trial so many times, each under the name of its unit."""
    rows = np.repeat(np.arange(len(trials)), times)
    own = Trials.of(trials.label[rows], trials.score[rows], header=trials.header, row=rows.astype(str))
    return at_threshold(own, 0.0)


@pytest.mark.parametrize("metric", ["act_dcf", "min_dcf"])
@pytest.mark.parametrize("missed", [0, 1])
def test_a_pair_with_few_errors_has_a_test_over_units_that_copies_do_not_change(metric: str, missed: int) -> None:
    first, second, asked = with_errors(missed, 0), with_errors(4, 0), f"{metric}(p_target=0.5,c_miss=1,c_fa=10)"
    found = [
        compare(twice(first, times), twice(second, times), [asked], unit=unit, bootstrap=100, force=True)[0]
        for times, unit in ((1, None), (1, "row"), (3, "row"))
    ]
    if metric == "act_dcf":  # one more false alarm among three times as many trials changes this cost by little
        found.pop()
    widths = []
    for row in found:
        assert row.test == "wald" and row.p_value is not None and row.low is not None and row.high is not None
        widths.append(row.high - row.low)
    # a unit of one row is a trial: Student's quantile of 99 degrees and G / (G - 1) make a hundredth each
    assert widths[1] == pytest.approx(widths[0], rel=0.04) and widths[1] > widths[0]
    # three copies of a trial in one unit say as much as one
    assert widths[-1] == pytest.approx(widths[1]) and found[-1].p_value == pytest.approx(found[1].p_value)
