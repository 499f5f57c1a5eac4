"""Adjusted p values against statsmodels, letters against their definition, replicates against their intervals."""

from __future__ import annotations

import gc
from itertools import combinations
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from hitmiss.core.errors import UnknownName
from hitmiss.stats.corrections import adjusted, benjamini_hochberg, holm
from hitmiss.stats.intervals import percentile
from hitmiss.stats.letters import groups, letters
from hitmiss.stats.p_value import detectable, p_of_replicates

p_values = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30)


@given(p_values)
def test_equals_statsmodels(p: list[float]) -> None:
    gc.freeze()  # multipletests collects garbage at each call, which takes long among the objects of a whole test run
    try:
        assert holm(p) == pytest.approx(multipletests(p, method="holm")[1], abs=1e-12)
        assert benjamini_hochberg(p) == pytest.approx(multipletests(p, method="fdr_bh")[1], abs=1e-12)
    finally:
        gc.unfreeze()


@given(p_values)
def test_laws(p: list[float]) -> None:
    for adjust in (holm, benjamini_hochberg):
        found = adjust(p)
        assert all(x <= y <= 1.0 for x, y in zip(p, found, strict=True))
        order = np.argsort(p, kind="stable")
        assert (np.diff(np.array(found)[order]) >= 0).all()
        assert adjust(p[::-1]) == pytest.approx(found[::-1])


def test_undefined_p_values_do_not_count() -> None:
    assert adjusted([None, 0.02, None, 0.03], "holm") == [None, 0.04, None, 0.04]
    assert adjusted([0.02, 0.03], "none") == [0.02, 0.03]
    assert adjusted([], "holm") == []
    with pytest.raises(UnknownName, match="did you mean 'holm'"):
        adjusted([0.1], "holms")


@given(st.integers(2, 7).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.booleans(), min_size=21, max_size=21))))
def test_runs_share_a_letter_exactly_where_they_do_not_differ(case: tuple[int, list[bool]]) -> None:
    names = [f"run{i}" for i in range(case[0])]
    different = [pair for pair, differs in zip(combinations(names, 2), case[1], strict=False) if differs]
    found = letters(names, different)
    for pair in combinations(names, 2):
        assert bool({*found[pair[0]]} & {*found[pair[1]]}) == (pair not in different)
    sets = [set(g) for g in groups(names, different)]
    assert not any(one < other for one in sets for other in sets)


@given(st.integers(0, 2**32 - 1), st.floats(-2.0, 2.0))
def test_p_of_replicates_turns_the_percentile_interval_round(seed: int, centre: float) -> None:
    deltas = np.random.default_rng(seed).normal(centre, 1.0, 999)
    p = p_of_replicates(deltas)
    if p > 0.01:
        low, high = percentile(deltas, 1.0 - p + 6e-3)
        assert low <= 0.0 <= high
    if p < 0.99:
        low, high = percentile(deltas, 1.0 - p - 6e-3)
        assert not low <= 0.0 <= high
    assert p_of_replicates(-deltas) == p


def test_replicates_that_never_differ() -> None:
    assert p_of_replicates(np.zeros(50)) == 1.0
    assert np.isnan(p_of_replicates(np.full(3, np.nan)))
    assert p_of_replicates(np.array([1.0, np.nan, 1.0])) == pytest.approx(2 / 3)


def test_a_detectable_difference_is_found_four_times_in_five() -> None:
    error = 0.013
    normal = NormalDist()
    true = detectable(error)
    assert true is not None
    z = normal.inv_cdf(0.975)
    power = 1 - normal.cdf(z - true / error) + normal.cdf(-z - true / error)
    assert power == pytest.approx(0.8, abs=1e-4)
    assert detectable(float("nan")) is None and detectable(0.0) is None


def test_a_difference_is_studentised_where_its_replicates_lie_nearer_to_nothing() -> None:
    """Replicates of least costs shrink towards 0: the difference itself is judged by their spread."""
    deltas = np.random.default_rng(2).normal(0.5, 1.0, 4000)
    assert p_of_replicates(deltas, delta=1.5) == pytest.approx(
        2.0 * NormalDist().cdf(-1.5 / deltas.std(ddof=1)), rel=0.01
    )
    assert p_of_replicates(deltas, delta=1.5, factor=0.5) == pytest.approx(
        2.0 * NormalDist().cdf(-3.0 / deltas.std(ddof=1)), rel=0.02
    )
    assert p_of_replicates(np.zeros(50), delta=0.0) == 1.0
