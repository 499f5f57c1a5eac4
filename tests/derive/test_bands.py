"""Two thresholds: every choice against all pairs, the guarantee against the binomial law and on fresh data."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import polars as pl
import pytest
from benchmarks.triage_guarantee import by_mapie
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.header import Header
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials
from hitmiss.derive.bands import (
    Bands,
    Point,
    at_bands,
    by_budget,
    by_cost,
    by_rates,
    enough,
    guaranteed,
    halves,
    judge,
    most_allowed,
    sweep,
)

rows = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 6)), min_size=2, max_size=25).map(
    lambda some: [(1, 4), (0, 2), *some]
)


def tally_of(some: list[tuple[int, int]]) -> Tally:
    return Tally.of([y for y, _ in some], [s / 8 for _, s in some])


def by_hand(some: list[tuple[int, int]], low: float, high: float) -> tuple[int, int, int]:
    """Slips, false flags and looks of a pair, counted row by row."""
    slips = sum(y == 1 and s / 8 < low for y, s in some)
    flags = sum(y == 0 and s / 8 >= high for y, s in some)
    return slips, flags, sum(low <= s / 8 < high for _, s in some)


def pairs(some: list[tuple[int, int]]) -> list[tuple[float, float]]:
    ends = [*sorted({s / 8 for _, s in some}), math.inf]
    return [(low, high) for low, high in product(ends, ends) if low <= high]


def counts(point: Point | None) -> tuple[float, float, float]:
    assert point is not None
    return point.slip.hits, point.false_flag.hits, point.review.hits


@given(rows, st.floats(0, 1), st.floats(0, 1))
def test_a_pair_is_judged_as_by_hand(some: list[tuple[int, int]], one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert counts(judge(tally_of(some), Bands(low, high))) == by_hand(some, low, high)


@given(rows, st.sampled_from([0.0, 1.0, 5.0]), st.sampled_from([0.5, 1.0, 20.0]), st.sampled_from([0.0, 0.1, 1.0]))
def test_no_pair_costs_less(some: list[tuple[int, int]], slip: float, flag: float, look: float) -> None:
    def cost(found: tuple[float, float, float]) -> float:
        return slip * found[0] + flag * found[1] + look * found[2]

    chosen = counts(by_cost(tally_of(some), slip, flag, look).point)
    assert cost(chosen) == pytest.approx(min(cost(by_hand(some, *pair)) for pair in pairs(some)))


@given(rows, st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0]))
def test_no_pair_within_the_budget_errs_less(some: list[tuple[int, int]], share: float) -> None:
    chosen = counts(by_budget(tally_of(some), share).point)
    allowed = [by_hand(some, *pair) for pair in pairs(some)]
    allowed = [found for found in allowed if found[2] <= share * len(some) * (1 + 1e-12)]
    assert chosen[2] <= share * len(some) * (1 + 1e-12)
    assert chosen[0] + chosen[1] == min(found[0] + found[1] for found in allowed)


@given(rows, st.sampled_from([0.0, 0.2, 0.5]), st.sampled_from([0.0, 0.2, 0.5]))
def test_no_pair_that_keeps_the_rates_needs_fewer_looks(some: list[tuple[int, int]], slip: float, flag: float) -> None:
    n1, n0 = sum(y for y, _ in some), sum(1 - y for y, _ in some)
    fits = [
        f for f in (by_hand(some, *p) for p in pairs(some)) if f[0] <= slip * n1 + 1e-9 and f[1] <= flag * n0 + 1e-9
    ]
    chosen = counts(by_rates(tally_of(some), slip, flag).point)
    assert chosen[0] <= slip * n1 + 1e-9 and chosen[1] <= flag * n0 + 1e-9
    assert chosen[2] == min(f[2] for f in fits)


def test_a_sweep_goes_from_strict_to_loose() -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 400)
    points = sweep(Tally.of(label, rng.normal(label, 1.0)))
    assert len(points) == 36
    assert float(points[0].slip) == 0.0 == float(points[0].false_flag)
    assert points[-1].review < points[0].review


@given(st.integers(1, 400), st.sampled_from([0.01, 0.05, 0.2]), st.sampled_from([0.01, 0.025, 0.1]))
def test_the_most_errors_that_can_be_allowed(n: int, rate: float, risk: float) -> None:
    k = most_allowed(n, rate, risk)
    assert k == -1 or binom.cdf(k, n, rate) <= risk
    assert binom.cdf(k + 1, n, rate) > risk
    assert (k >= 0) == (n >= enough(rate, risk))


def test_the_guarantee_holds_and_the_empirical_choice_does_not() -> None:
    """Fresh calibration sets of 300; scores are uniform given the class, so the true rates are known without sampling."""
    rng, broken = np.random.default_rng(3), {"guarantee": 0, "rates": 0}
    for _ in range(300):
        fake, real = rng.beta(2, 1, 150), rng.beta(1, 2, 150)
        tally = Tally.of_classes(fake, real)
        for name, choice in (("guarantee", guaranteed(tally, 0.1, 0.1, 0.9)), ("rates", by_rates(tally, 0.1, 0.1))):
            assert choice.point is not None
            bands = choice.point.bands
            slip, flag = (
                bands.low**2,
                (1 - min(bands.high, 1.0)) ** 2,
            )  # P(Beta(2,1) < x) = x², P(Beta(1,2) ≥ x) = (1−x)²
            broken[name] += slip > 0.1 or flag > 0.1
    assert broken["guarantee"] <= 300 * 0.1 + 3 * math.sqrt(300 * 0.1 * 0.9)
    assert broken["rates"] > 150


def test_too_few_rows_for_a_guarantee_are_said_to_be() -> None:
    choice = guaranteed(Tally.of([1] * 30 + [0] * 200, np.linspace(0, 1, 230)), 0.05, 0.05)
    assert choice.point is None
    assert choice.reason == "a slip of at most 0.05 needs 72 trials of its class and there are 30"


def test_separated_classes_need_no_review() -> None:
    tally = Tally.of([1] * 100 + [0] * 100, np.arange(200)[::-1])
    found = guaranteed(tally, 0.05, 0.05).point
    assert found is not None
    assert (float(found.slip), float(found.review)) == (0.0, 0.0)
    assert float(found.false_flag) <= 0.05


@pytest.mark.extras
def test_mapie_agrees_that_the_pair_is_safe() -> None:
    rng = np.random.default_rng(1)
    label = rng.integers(0, 2, 800)
    tally = Tally.of(label, 1 / (1 + np.exp(-rng.normal(4 * (label - 0.5), 1.5))))
    ours, theirs = guaranteed(tally, 0.05, 0.05).point, by_mapie(tally, 0.05, 0.05).point
    assert ours is not None and theirs is not None
    assert theirs.slip <= 0.05 and theirs.false_flag <= 0.05
    assert ours.review <= theirs.review  # exact and without a grid to pay for
    few = Tally.of(label[:40], np.linspace(0, 1, 40))
    assert by_mapie(few, 0.05, 0.05).point is None and guaranteed(few, 0.05, 0.05).point is None


def test_verdicts_from_a_score() -> None:
    trials = Trials.of([1, 0, 1, 0], [0.8, 0.2, 0.79, 0.19], header=Header(positive="fake", negative="real"))
    decided = at_bands(trials, Bands(0.2, 0.8))
    assert decided.column("decision").to_list() == [1, -1, -1, 0]
    assert decided.header.choices == ("thresholds=0.2,0.8 (given)",)
    one = at_bands(trials, Bands(0.5, 0.5))
    assert one.column("decision").to_list() == [1, 0, 1, 0]
    doubtful = at_bands(trials, Bands(0.2, 0.8, "least cost on this data"))
    assert any("optimistic" in note for note in doubtful.header.notes)


def test_halves_keep_items_together() -> None:
    items = [f"i{k % 50}" for k in range(200)]
    trials = Trials.of([k % 50 % 2 for k in range(200)], np.arange(200.0), item=items, trial=np.arange(200) // 50,
                       header=Header(runs=("trial",)))  # fmt: skip
    one, other = halves(trials, 1)
    assert len(one) + len(other) == 200 and min(len(one), len(other)) > 40
    assert not set(one.items) & set(other.items)
    assert halves(trials.keep(pl.lit(True)), 1)[0].items == one.items
    assert halves(trials, 2)[0].items != one.items


def test_senseless_questions_are_refused() -> None:
    tally = Tally.of([1, 0], [0.9, 0.1])
    for work, error in (
        (lambda: Bands(0.8, 0.2), UsageError),
        (lambda: Bands(math.nan, 0.2), UsageError),
        (lambda: by_cost(tally, -1, 1, 1), UsageError),
        (lambda: by_budget(tally, 1.5), UsageError),
        (lambda: guaranteed(tally, 0.0, 0.1), UsageError),
        (lambda: by_rates(Tally.of([1, 1], [0.1, 0.2]), 0.1, 0.1), DataError),
    ):
        with pytest.raises(error):
            work()
