"""Pooling adjacent violators against scipy's regression and by its laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from hitmiss.core.isotonic import pooled, rising_share

GROUPS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(any), min_size=1, max_size=60)


@given(GROUPS)
def test_shares_are_those_of_scipy(groups: list[tuple[int, int]]) -> None:
    """The share of each group equals scipy's weighted isotonic regression."""
    p, q = np.array(groups).T
    expected = isotonic_regression(p / (p + q), weights=p + q).x
    assert rising_share(p, q) == pytest.approx(expected, abs=1e-12)


@given(GROUPS)
def test_blocks_rise_strictly(groups: list[tuple[int, int]]) -> None:
    """Blocks of equal share are one block, in whole numbers."""
    p, q = np.array(groups).T
    starts = pooled(p, q)
    a, b = np.add.reduceat(p, starts), np.add.reduceat(q, starts)
    assert all(a[i] * b[i + 1] < a[i + 1] * b[i] for i in range(len(a) - 1))


@given(GROUPS, st.integers(0, 60))
def test_pooling_parts_first_changes_nothing(groups: list[tuple[int, int]], cut: int) -> None:
    """The blocks of two parts, pooled again, are the blocks of the whole."""
    p, q = np.array(groups).T
    parts = [(p[:cut], q[:cut]), (p[cut:], q[cut:])]
    blocks = [np.add.reduceat(c, pooled(*part)) for part in parts if len(part[0]) for c in part]
    a, b = np.concatenate(blocks[::2]), np.concatenate(blocks[1::2])
    again, whole = pooled(a, b), pooled(p, q)
    assert np.add.reduceat(a, again).tolist() == np.add.reduceat(p, whole).tolist()
    assert np.add.reduceat(b, again).tolist() == np.add.reduceat(q, whole).tolist()


def test_an_order_that_pools_slowly() -> None:
    """A rising order with one low group at its end pools a single pair per round: the stack takes over."""
    n = 3000
    p, q = np.append(np.arange(1, n + 1), 0), np.append(np.full(n, n), 40 * n)
    expected = isotonic_regression(p / (p + q), weights=(p + q).astype(float)).x
    assert rising_share(p, q) == pytest.approx(expected, abs=1e-12)


def test_counts_too_large_for_whole_products() -> None:
    """Billions per group are compared as doubles."""
    p, q = np.array([3_000_000_000, 1_000_000_000]), np.array([1_000_000_000, 3_000_000_000])
    assert rising_share(p, q).tolist() == [0.5, 0.5]


def test_weights_that_are_no_whole_numbers() -> None:
    """Fractional weights are pooled too."""
    assert rising_share(np.array([0.5, 0.25]), np.array([0.5, 0.75])).tolist() == [0.375, 0.375]
