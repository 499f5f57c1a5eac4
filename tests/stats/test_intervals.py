"""From replicates to intervals: against scipy and against formulas written anew."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from hitmiss.core.tally import Tally
from hitmiss.engine.interval import area_interval
from hitmiss.metrics.calibration import brier_form
from hitmiss.metrics.detection import cllr_form, eer_form
from hitmiss.stats.cells import cut
from hitmiss.stats.delong import RocSteps
from hitmiss.stats.enough_units import effective, error_units
from hitmiss.stats.intervals import (
    bca,
    of_least_cost,
    on_both_scales,
    on_scale,
    percentile,
    student,
    tail_of_worst,
)
from hitmiss.stats.jackknife import LeftOut, acceleration_of_trials, acceleration_of_units
from hitmiss.stats.optimism import OPTIMISM
from hitmiss.stats.students_t import MANY, t_quantile

Floats = NDArray[np.float64]


def cllr_of(s1: Floats, s0: Floats, axis: int = -1) -> Floats:
    """Cllr from its definition, for scipy to resample."""
    return (np.log2(1 + np.exp(-s1)).mean(axis=axis) + np.log2(1 + np.exp(s0)).mean(axis=axis)) / 2


def at_our_places(replicates: Floats, ends: Iterable[float]) -> tuple[float, ...]:
    """scipy's ends moved from share · (B − 1) + 1 to share · (B + 1) of the same ordered replicates."""
    ordered = np.sort(replicates)
    shares = np.interp(list(ends), ordered, np.arange(len(ordered))) / (len(ordered) - 1)
    return tuple(stats.mstats.mquantiles(ordered, shares, alphap=0.0, betap=0.0))


def test_percentile_is_the_middle_of_the_replicates() -> None:
    values = np.random.default_rng(0).gamma(2.0, size=1001)
    for level in (0.5, 0.9, 0.95):
        expected = stats.mstats.mquantiles(values, [0.5 - level / 2, 0.5 + level / 2], alphap=0.0, betap=0.0)
        assert percentile(values, level) == pytest.approx(tuple(expected), abs=1e-12)


def test_percentiles_of_few_replicates_hold_a_further_one_as_often_as_they_say() -> None:
    """Between the least and the greatest of 39 values, those at 2.5 and 97.5 % hold the next one in 90 % of cases only."""
    drawn, n = np.random.default_rng(11).normal(size=(4000, 40)), 4000
    held = sum(low <= row[0] <= high for row in drawn for low, high in [percentile(row[1:])])
    assert stats.binomtest(held, n, 0.95).pvalue > 0.01


@pytest.mark.nightly
def test_the_interval_of_the_worst_slice_holds_its_true_figure_as_often_as_it_says() -> None:
    """One clear worst slice, alike ones, a ladder, and very different errors: never below 93 %, nor above 97.5 %."""
    rng, n = np.random.default_rng(12), 1500
    for true, error in (
        ([0.0, -12.0, -12.0, -12.0], [1.0] * 4),
        ([0.0] * 3, [1.0] * 3),
        ([0.0] * 12, [1.0] * 12),
        ([0.0, -1.0, -2.0], [1.0] * 3),
        ([0.0, -2.0, -2.0], [0.3, 1.0, 1.0]),
    ):
        figures, held = np.array(true) + np.array(error) * rng.normal(size=(n, len(true))), 0
        half = stats.norm.ppf(0.975) * np.array(error)
        for row in figures:
            tail, several = tail_of_worst(row, row - half, row + half, 0.95, MANY)
            worst = int(np.argmax(row))
            assert several == 1 or true[1] > -12.0
            held += row[worst] + stats.norm.ppf(tail) * error[worst] <= true[worst] <= row[worst] + half[worst]
        assert stats.binomtest(held, n, 0.93, alternative="less").pvalue > 0.01
        assert stats.binomtest(held, n, 0.975, alternative="greater").pvalue > 0.01


def test_percentile_leaves_undefined_replicates_out() -> None:
    values = np.random.default_rng(1).normal(size=500)
    with_gaps = np.insert(values, [0, 17, 400], np.nan)
    assert percentile(with_gaps) == percentile(values)


def test_percentile_of_nothing_is_undefined() -> None:
    assert all(math.isnan(x) for x in percentile(np.full(5, np.nan)))
    assert all(math.isnan(x) for x in bca(np.full(5, np.nan), 0.0, 0.0))


def test_infinite_replicates_give_an_infinite_end_and_no_nan() -> None:
    values = np.append(np.arange(900.0), np.full(100, np.inf))
    low, high = percentile(values)
    assert 20 < low < 30
    assert high == math.inf
    low, high = bca(values, 450.0, 0.01)
    assert 5 < low < 30  # 450 of 1,000 lie below the estimate: both ends move down
    assert high == math.inf


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_bca_equals_scipy_on_its_own_replicates(level: float) -> None:
    """Two classes, Cllr: scipy resamples, computes and corrects; we correct the same replicates."""
    rng = np.random.default_rng(5)
    s1, s0 = rng.normal(1.5, 1.5, size=40), rng.normal(-1.5, 1.5, size=60)
    theirs = stats.bootstrap(
        (s1, s0), cllr_of, method="BCa", confidence_level=level, n_resamples=2000, paired=False, rng=rng
    )
    tally, form = Tally.of_classes(s1, s0), cllr_form()
    acceleration = acceleration_of_trials(form, cut(tally, [form]))
    ours = bca(theirs.bootstrap_distribution, form.value(tally), acceleration, level)
    assert abs(acceleration) > 0.005, "a correction that vanishes would prove nothing"
    assert ours == pytest.approx(at_our_places(theirs.bootstrap_distribution, theirs.confidence_interval), abs=1e-9)


def test_bca_formula_written_anew() -> None:
    values = np.random.default_rng(2).gamma(3.0, size=3000)
    estimate, a, level = 2.5, 0.07, 0.9
    z0 = stats.norm.ppf((np.sum(values < estimate) + np.sum(values <= estimate)) / (2 * len(values)))
    z = stats.norm.ppf([0.05, 0.95])
    shares = stats.norm.cdf(z0 + (z0 + z) / (1 - a * (z0 + z)))
    assert bca(values, estimate, a, level) == pytest.approx(
        tuple(np.quantile(values, shares, method="weibull")), abs=1e-9
    )


def test_bca_without_bias_and_acceleration_is_the_percentile_interval() -> None:
    values = np.random.default_rng(3).normal(size=2001)
    assert bca(values, float(np.median(values)), 0.0) == pytest.approx(percentile(values), abs=1e-12)


def test_bca_where_every_replicate_lies_on_one_side_is_the_percentile_interval() -> None:
    values = np.random.default_rng(4).random(500)
    assert bca(values, 2.0, 0.1) == percentile(values)
    assert bca(np.zeros(50), 0.0, 0.0) == (0.0, 0.0)


def test_acceleration_of_trials_is_the_stratified_jackknife() -> None:
    """Brier score on few trials, each left out in turn with plain arrays."""
    rng = np.random.default_rng(6)
    y = np.repeat([1.0, 0.0], [15, 25])
    p = rng.beta(2, 1 + 3 * (1 - y))
    cubes = squares = 0.0
    for c in (1.0, 0.0):
        n = int((y == c).sum())
        without = [np.delete((p - y) ** 2, i).mean() for i in np.flatnonzero(y == c)]
        influence = (n - 1) * (np.mean((p - y) ** 2) - np.array(without))
        cubes, squares = cubes + np.sum(influence**3) / n**3, squares + np.sum(influence**2) / n**2
    form = brier_form()
    assert acceleration_of_trials(form, cut(Tally.of(y, p), [form])) == pytest.approx(
        cubes / 6 / squares**1.5, abs=1e-9
    )


def test_acceleration_of_units_is_the_jackknife_of_scipy() -> None:
    """The mean of one sample: scipy's own BCa interval from the same replicates."""
    rng = np.random.default_rng(7)
    x = rng.exponential(size=30)
    theirs = stats.bootstrap((x,), np.mean, method="BCa", n_resamples=999, rng=rng)
    a = acceleration_of_units(np.array([np.delete(x, u).mean() for u in range(len(x))]))
    assert a > 0.01
    ours = bca(theirs.bootstrap_distribution, float(x.mean()), a)
    assert ours == pytest.approx(at_our_places(theirs.bootstrap_distribution, theirs.confidence_interval), abs=1e-9)


def test_acceleration_of_units_skips_units_without_which_nothing_is_defined() -> None:
    values = [1.0, math.nan, 2.0, 4.0]
    assert acceleration_of_units(np.array(values)) == acceleration_of_units(np.array([1.0, 2.0, 4.0]))
    assert acceleration_of_units(np.full(3, math.nan)) == 0.0


def test_constant_scores_have_no_acceleration() -> None:
    form = eer_form("grouped")
    tally = Tally.of([1, 1, 0, 0], [5, 5, 5, 5])
    assert acceleration_of_trials(form, cut(tally, [form])) == 0.0


def test_optimism_of_a_minimum_over_a_parabola_and_noise() -> None:
    """The constant from its definition: how deep random walks plus a parabola go, with the noise once and twice."""
    rng = np.random.default_rng(1)
    t = np.linspace(-4, 4, 4001)
    steps = rng.normal(0, math.sqrt(t[1] - t[0]), size=(2, 1500, len(t)))
    walk = np.cumsum(steps, axis=2)
    walk -= walk[:, :, [len(t) // 2]]  # two-sided, 0 at the middle
    sample, replicate = t**2 + walk[0], t**2 + walk[0] + walk[1]
    in_sample, seen = -sample.min(axis=1).mean(), (sample.min(axis=1) - replicate.min(axis=1)).mean()
    assert in_sample / seen == pytest.approx(OPTIMISM, rel=0.1)


def test_a_least_cost_is_moved_up_by_its_optimism_and_holds_the_estimate() -> None:
    rng = np.random.default_rng(0)
    fixed = rng.normal(0.2, 0.01, 4000)
    low, high = of_least_cost(fixed - 0.01, fixed, 0.2, 0.0)
    plain = bca(fixed, 0.2, 0.0)
    growth = 1 + OPTIMISM * (0.2 - (fixed - 0.01).mean()) / 0.2
    assert (low, high) == pytest.approx((min(plain[0] * growth, 0.2), plain[1] * growth))
    assert of_least_cost(np.zeros(9), np.zeros(9), 0.0, 0.0) == (0.0, 0.0)


SHARES = (1e-100, 1e-20, 1e-6, 0.001, 0.025, 0.1, 0.24, 0.26, 0.4, 0.49, 0.51, 0.6, 0.75, 0.9, 0.975, 0.995, 1 - 1e-10)
DEGREES = (
    0.3,
    0.9,
    1.0,
    1.1,
    1.5,
    2.0,
    2.9,
    3.0,
    5.0,
    9.3,
    19.0,
    39.9,
    40.1,
    100.5,
    333.0,
    967.0,
    3e3,
    12345.6,
    1e6,
    1e9,
)


def test_student_s_quantile_agrees_with_scipy_and_with_closed_forms() -> None:
    for p in SHARES[1:]:
        for degrees in DEGREES[1:]:
            assert t_quantile(p, degrees) == pytest.approx(stats.t.ppf(p, degrees), rel=1e-12), (p, degrees)
        assert t_quantile(p, 2.0) == pytest.approx((2.0 * p - 1.0) / math.sqrt(2.0 * p * (1.0 - p)), rel=1e-13)
    for share in (0.05, 0.2, 0.45):
        assert t_quantile(0.5 + share, 1.0) == pytest.approx(math.tan(math.pi * share), rel=1e-14)
        assert t_quantile(0.5 - share, 1.0) == pytest.approx(-math.tan(math.pi * share), rel=1e-14)


def test_student_s_quantile_at_its_edges() -> None:
    assert t_quantile(0.5, 3.0) == 0.0
    assert t_quantile(1e-100, 0.1) == -math.inf  # about -1e990
    assert t_quantile(0.975, math.inf) == pytest.approx(stats.norm.ppf(0.975), rel=1e-15)
    assert all(math.isnan(t_quantile(p, d)) for p, d in ((0.0, 5.0), (1.0, 5.0), (0.9, 0.0), (0.9, math.nan)))


@pytest.mark.extras
def test_student_s_quantile_is_exact_to_fourteen_digits() -> None:
    """Its own tail, by forty digits of the incomplete beta function: a relative error of t is that of p over the slope."""
    import mpmath as mp

    with mp.workdps(40):
        for p in SHARES[1:]:
            for degrees in DEGREES[:-2]:
                v, t = mp.mpf(degrees), abs(mp.mpf(t_quantile(p, degrees)))
                tail = mp.betainc(v / 2, mp.mpf(1) / 2, 0, v / (v + t * t), regularized=True) / 2
                density = (1 + t * t / v) ** (-(v + 1) / 2) / mp.sqrt(v) / mp.beta(v / 2, mp.mpf(1) / 2)
                error = (tail - min(mp.mpf(p), 1 - mp.mpf(p))) / (density * t)
                assert abs(error) < 3e-14, (p, degrees)


# ----------------------------------------------------------------------
# Coverage by simulation, where an earlier interval was too narrow.


@pytest.mark.nightly
@pytest.mark.parametrize(("n1", "n0", "gap"), [(30, 70, 3.0), (15, 85, 2.5), (60, 140, 3.6)])
def test_the_interval_of_a_high_area_holds_the_truth(n1: int, n0: int, gap: float) -> None:
    """By DeLong's variance on the plain scale 80 to 83 % of these intervals did."""
    rng, truth = np.random.default_rng(1), stats.norm.cdf(gap / math.sqrt(2.0))
    held = 0
    for _ in range(800):
        low, high = area_interval(RocSteps.of_classes(np.sort(rng.normal(gap, size=n1)), np.sort(rng.normal(size=n0))))
        held += low <= truth <= high
    assert stats.binomtest(held, 800, 0.93, alternative="less").pvalue > 0.05
    assert stats.binomtest(held, 800, 0.985, alternative="greater").pvalue > 0.05  # nor is it needlessly wide


def test_on_its_scale_an_interval_follows_the_delta_method() -> None:
    for value, error in ((0.5, 0.1), (0.02, 0.01), (0.97, 0.02)):
        centre, spread = math.log(value / (1 - value)), error / (value * (1 - value))
        expected = [1 / (1 + math.exp(-(centre + z * spread))) for z in stats.norm.ppf([0.025, 0.975])]
        assert on_scale(value, error, (0.0, 1.0)) == pytest.approx(tuple(expected), rel=1e-8)
    assert on_scale(2.0, 0.1, (-math.inf, math.inf), 0.9) == pytest.approx(stats.norm.interval(0.9, 2.0, 0.1))
    assert np.isnan(on_scale(1.0, 0.1, (0.0, 1.0))).all()


def test_a_difference_is_skewed_as_both_of_its_sides_are() -> None:
    """Errors grow with figures: without regard to that, nearly all misses are on one side."""
    rng, n, truth = np.random.default_rng(13), 2000, np.log([0.04, 0.16])
    missed = np.zeros((2, 2))
    for _ in range(n):
        shared = rng.normal(0.0, 0.25, 301)
        # the first column is the sample, the others are replicates of it
        a, b = (np.exp(centre + own[0] + np.append(0.0, own[1:])) for centre, own in zip(truth, (
            shared, 0.5 * shared + rng.normal(0.0, 0.25, 301)), strict=True))  # fmt: skip
        half = stats.norm.ppf(0.975) * np.std(b[1:] - a[1:])
        plain = (b[0] - a[0] - half, b[0] - a[0] + half)
        for k, (low, high) in enumerate((plain, on_both_scales(plain, (a[0], a[1:]), (b[0], b[1:]), (0.0, math.inf)))):
            missed[k] += low > 0.12, high < 0.12
    assert missed[0, 1] > 0.05 * n and missed[0, 0] < 0.005 * n
    assert stats.binomtest(int(missed[1].sum()), n, 0.07, alternative="greater").pvalue > 0.05
    assert missed[1].min() > 0.01 * n


@pytest.mark.nightly
def test_intervals_of_pooled_figures_hold_the_truth_for_units_of_unequal_sizes() -> None:
    """What all pooled figures rest on: the spread of scores over 20 units, of which a quarter are their levels.

    With as many degrees of freedom as effective units, and without the bias, the intervals are too narrow.
    """
    rng, held, n = np.random.default_rng(2), {effective: 0, error_units: 0}, 1200

    def spread(weights: Floats, level: Floats) -> Floats:
        share = weights / weights.sum(axis=-1, keepdims=True)
        return np.asarray(0.75 + 0.25 * (share @ level**2 - (share @ level) ** 2))

    for _ in range(n):
        sizes, level = rng.lognormal(size=20), rng.normal(size=20)
        replicates = spread(rng.multinomial(20, np.full(20, 0.05), size=200) * sizes, level)
        left = LeftOut((spread((1.0 - np.eye(20)) * sizes, level),), (effective(sizes),))
        for count in held:
            own = LeftOut(left.groups, (count(sizes),))
            low, high = student(replicates, float(spread(sizes, level)), 1.0, (0.0, math.inf), without=own)
            held[count] += low <= 1.0 <= high
    assert held[effective] < 0.92 * n
    assert stats.binomtest(held[error_units], n, 0.93, alternative="less").pvalue > 0.05


def test_an_end_is_moved_out_by_the_bias_of_the_replicates_and_none_is_moved_in() -> None:
    drawn = np.random.default_rng(3).normal(0.0, 0.1, 4000)
    below, even = (student(1.0 / (1.0 + np.exp(-(drawn + shift))), 0.5, 9.0, (0.0, 1.0)) for shift in (-0.1, 0.0))
    assert below[0] == pytest.approx(even[0], abs=1e-3)
    logit = [math.log(end / (1.0 - end)) for end in (below[1], even[1])]
    assert logit[0] - logit[1] == pytest.approx(0.1, abs=0.01)
    # In a difference, which has no bounds, the bias of both sides cancels.
    assert student(drawn - 0.1, 0.0, 9.0) == pytest.approx(student(drawn, 0.0, 9.0))
