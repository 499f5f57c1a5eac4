"""Max-T with step-down: against a plain implementation, the error it keeps, and what lies beyond the replicates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import exponnorm, norm

from hitmiss.core.sorting import Floats
from hitmiss.stats.simultaneous import Unseen, max_t, ranks, spread_out


def plain_step_down(estimates: Floats, draws: Floats) -> list[float]:
    """Romano and Wolf's step-down p values by the book: the family of each step is what was not rejected before it."""
    errors = draws.std(axis=1, ddof=1)
    t, null = np.abs(estimates) / errors, np.abs(draws - estimates[:, None]) / errors[:, None]
    left, p_before, found = list(range(len(t))), 0.0, {}
    while left:
        first = max(left, key=lambda i: t[i])
        p_before = max(p_before, (1 + (null[left].max(axis=0) >= t[first]).sum()) / (draws.shape[1] + 1))
        found[first] = p_before
        left.remove(first)
    return [found[i] for i in range(len(t))]


@pytest.mark.parametrize("seed", range(4))
def test_step_down_is_that_of_the_book(seed: int) -> None:
    rng = np.random.default_rng(seed)
    estimates = rng.normal(size=7) * 1.5
    draws = estimates[:, None] + rng.normal(size=(7, 400)) * rng.uniform(0.5, 2.0, size=(7, 1))
    wanted = plain_step_down(estimates, draws)
    found = max_t(estimates, lambda i: draws[i], 400, np.full(7, np.inf))
    floor = 1 / 401
    for ours, theirs in zip(found.adjusted, wanted, strict=True):
        assert ours == pytest.approx(theirs) if theirs > floor else ours <= floor
    shown = found.adjusted < 0.05
    assert (shown[~np.isnan(found.low)] >= ((found.low > 0) | (found.high < 0))).all()  # step-down shows no less


def test_p_goes_on_beyond_the_replicates() -> None:
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(3, 1000)) + np.array([[0.0], [20.0], [8.0]])
    found = max_t(np.array([0.0, 20.0, 8.0]), lambda i: draws[i], 1000, np.full(3, np.inf))
    assert found.p_values[1] == pytest.approx(2 * norm.sf(20.0 / draws[1].std(ddof=1)), rel=1e-9)
    assert found.adjusted[1] < 1e-60 and found.p_values[2] < found.adjusted[2] < 1e-10


@pytest.mark.nightly
def test_many_true_zeros_with_correlated_figures_keep_the_level() -> None:
    """Thirty systems (435 pairs), 200 replicates: p without a floor that grows, error at most 5 % within its noise."""
    rng, called, repeats = np.random.default_rng(1), 0, 300
    pairs = [(i, j) for i in range(30) for j in range(i)]
    for _ in range(repeats):
        figures = rng.normal(size=30) + rng.normal()
        draws = figures[:, None] + rng.normal(size=(30, 200)) + rng.normal(size=200)
        estimates = np.array([figures[i] - figures[j] for i, j in pairs])
        deltas = np.array([draws[i] - draws[j] for i, j in pairs])
        found = max_t(estimates, deltas.__getitem__, 200, np.full(435, np.inf))
        called += bool((found.adjusted < 0.05).any())
    assert called <= 0.05 * repeats + 3 * np.sqrt(0.05 * 0.95 * repeats)


def test_few_units_widen_and_a_difference_without_noise_is_judged_by_signs() -> None:
    rng = np.random.default_rng(2)
    draws = 2.5 + rng.normal(size=(1, 2000))
    wide, narrow = (max_t(np.array([2.5]), lambda i: draws[i], 2000, np.array([d])) for d in (5.0, np.inf))
    assert wide.adjusted[0] > 0.05 > narrow.adjusted[0] and wide.high[0] - wide.low[0] > narrow.high[0] - narrow.low[0]
    same = max_t(np.array([1.0, 0.0]), lambda i: np.full(50, 1.0 - i), 50, np.array([5.0, 5.0]))
    assert same.p_values[0] == pytest.approx(2.0**-5) and np.isnan(same.p_values[1]) and np.isnan(same.low[0])


def test_ranks_count_what_was_shown() -> None:
    assert ranks(["a", "b", "c", "x"], [("a", "b"), ("a", "c")], ["a", "b", "c"]) == {
        "a": (1, 1),
        "b": (2, 3),
        "c": (2, 3),
    }


def test_trials_are_dealt_out_evenly_within_their_class() -> None:
    positive = np.arange(1000) % 4 == 0
    place = np.random.default_rng(0).permutation(1000)
    unit = spread_out(positive, place, 40, True)
    assert {*unit[positive]}.isdisjoint({*unit[~positive]})
    assert np.ptp(np.bincount(unit)[:40]) <= 1 and np.ptp(np.bincount(unit)[40:]) <= 1
    assert len({*spread_out(positive, place, 1000, True)}) == 1000
    mixed = spread_out(positive, place, 40, False)
    assert set(np.bincount(mixed)) == {25} and np.mean([positive[mixed == u].any() for u in range(40)]) > 0


def test_an_error_that_was_not_seen_is_tested_exactly_and_added_to_the_others() -> None:
    """Alone it is the test of no error among n trials; with a normal error it is their sum; two kinds add up."""
    one = Unseen.of([2.0], [100.0])
    for distance in (0.02, 0.06, 0.2):
        exact = (1.0 - distance / 2.0) ** 100
        assert exact <= one.tail(distance, 1e-12, np.inf) <= 1.5 * exact
        long = Unseen.of([200.0], [10_000.0])
        exact = exponnorm.sf(distance, K=0.02 / 0.01, scale=0.01)
        assert 0.99 * exact <= long.tail(distance, 0.01, np.inf) <= 1.4 * exact
    rng = np.random.default_rng(5)
    shares = [1.0 - rng.random(200_000) ** (1.0 / n) for n in (50, 400)]
    total = 0.02 * rng.standard_t(12, 200_000) + 1.9 * shares[0] + shares[1]
    both = Unseen.of([1.9, 1.0], [50.0, 400.0])
    for distance in (0.05, 0.1, 0.15):
        drawn = float((total > distance).mean())
        assert 0.95 * drawn <= both.tail(distance, 0.02, 12.0) <= 1.3 * drawn
    assert both.tail(both.reach(0.01, 0.02, 12.0, 0.06), 0.02, 12.0) == pytest.approx(0.01, rel=1e-6)
    assert Unseen.of([0.0], [50.0]).reach(norm.sf(2.5), 0.02, np.inf, 0.05) == pytest.approx(0.05, rel=1e-9)


def test_what_was_not_seen_makes_a_difference_harder_to_show_on_its_side_only() -> None:
    draws = np.random.default_rng(6).normal(0.03, 0.01, size=(1, 2000))
    nothing, much = Unseen.of([0.0, 0.0], [100.0, 100.0]), Unseen.of([1.0, 0.0], [100.0, 100.0])
    plain, lower, higher = (
        max_t(np.array([0.03]), lambda i: draws[i], 2000, np.full(1, np.inf), unseen=u)
        for u in (None, {0: (much, nothing)}, {0: (nothing, much)})
    )
    assert lower.adjusted[0] > plain.adjusted[0] and lower.low[0] < plain.low[0] - 0.01
    assert lower.high[0] == pytest.approx(plain.high[0], abs=1e-6)
    assert higher.p_values[0] == pytest.approx(plain.p_values[0]) and higher.high[0] > plain.high[0] + 0.01
