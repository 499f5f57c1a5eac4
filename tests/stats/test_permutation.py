"""Permutation tests against enumeration, McNemar's test and scipy."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import permutation_test

from hitmiss.stats.mcnemar import exact
from hitmiss.stats.permutation import sign_flip, swap
from hitmiss.stats.random import Random, generator

steps = st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=1, max_size=40).filter(lambda d: sum(map(abs, d)) <= 16)
numbers = st.lists(st.integers(-9, 9), min_size=1, max_size=9)


def rng() -> Random:
    return generator(5)


@given(steps)
def test_of_hits_and_misses_it_is_the_exact_mcnemar_test(differences: list[float]) -> None:
    d = np.array(differences)
    assert sign_flip(d, 0, rng()) == pytest.approx(exact(int((d < 0).sum()), int((d > 0).sum())), rel=1e-12)


@given(numbers)
def test_equals_the_count_of_all_ways(differences: list[int]) -> None:
    observed = abs(sum(differences))
    ways = [
        sum(s * d for s, d in zip(signs, differences, strict=True))
        for signs in product((1, -1), repeat=len(differences))
    ]
    truth = sum(abs(w) >= observed for w in ways) / len(ways)
    assert sign_flip(np.array(differences, dtype=float), 0, rng()) == pytest.approx(truth, rel=1e-12)
    gained = np.array(differences, dtype=float)
    assert swap(lambda m: float(np.where(m, -gained, gained).sum()), len(gained), 0, rng()) == pytest.approx(truth)


def test_equals_scipy_on_paired_samples() -> None:
    a, b = rng().normal(size=(2, 11))
    theirs = permutation_test((a, b + 0.5), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=np.inf)
    assert sign_flip(b + 0.5 - a, 0, rng()) == pytest.approx(theirs.pvalue, rel=1e-12)


def test_drawn_ways_come_near_all_ways() -> None:
    d = np.concatenate([np.ones(30), -np.ones(15)])
    drawn = sign_flip(d, 20_000, rng())
    assert drawn == pytest.approx(exact(15, 30), abs=0.004)
    assert drawn == sign_flip(d, 20_000, rng())
    again = swap(lambda m: float(np.where(m, -d, d).sum()), len(d), 20_000, rng())
    assert again == pytest.approx(exact(15, 30), abs=0.004)


def test_a_drawn_p_is_never_zero() -> None:
    assert sign_flip(np.ones(60), 99, rng()) == 0.01
    assert swap(lambda m: float((~m).sum() - m.sum()), 60, 99, rng()) == 0.01


def test_nothing_to_exchange() -> None:
    assert sign_flip(np.zeros(4), 0, rng()) == 1.0
    assert sign_flip(np.zeros(0), 0, rng()) == 1.0


def test_an_undefined_figure_has_no_p() -> None:
    assert np.isnan(swap(lambda m: float("nan"), 3, 0, rng()))
