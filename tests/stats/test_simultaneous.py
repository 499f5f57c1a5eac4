"""Max-T with step-down: against a plain implementation, the error it keeps, and what lies beyond the replicates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from hitmiss.core.tally import Floats
from hitmiss.stats.tests import max_t, ranks, spread_out


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
