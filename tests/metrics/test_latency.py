"""Quantiles of times: numpy's, with weights as repetitions; intervals that cover what they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from hitmiss import metrics as m
from hitmiss.core.errors import DataError
from hitmiss.core.registry import find_metric
from hitmiss.stats.intervals import quantile_interval

times = st.lists(st.floats(0, 1e4), min_size=1, max_size=30)


@given(times)
def test_numpy_agrees(seconds: list[float]) -> None:
    assert m.median_seconds(seconds) == pytest.approx(np.median(seconds), rel=1e-12)
    assert m.p95_seconds(seconds) == pytest.approx(np.quantile(seconds, 0.95), rel=1e-12)


@given(times, st.data())
def test_a_whole_weight_is_a_repetition(seconds: list[float], data: st.DataObject) -> None:
    weight = data.draw(st.lists(st.integers(0, 3), min_size=len(seconds), max_size=len(seconds)))
    repeated = np.repeat(seconds, weight)
    for metric in (m.median_seconds, m.p95_seconds):
        assert metric(seconds, weight) == pytest.approx(metric(repeated), rel=1e-12, nan_ok=True)


def test_missing_times_do_not_count() -> None:
    assert m.median_seconds([1.0, math.nan, 3.0]) == 2.0
    assert math.isnan(m.median_seconds([math.nan]))
    with pytest.raises(DataError, match="not negative"):
        m.median_seconds([-1.0])


@pytest.mark.parametrize("share", [0.5, 0.95])
@pytest.mark.parametrize("n", [6, 30, 100, 500])
def test_order_statistics_cover(share: float, n: int) -> None:
    """The ranks that are chosen cover with at least the level, by the binomial law itself; one rank fewer does not."""
    low, high = quantile_interval(range(1, n + 1), share)
    if math.isnan(low):
        assert n < 80
        return
    covered = binom.cdf(high - 1, n, share) - binom.cdf(low - 1, n, share)
    assert covered >= 0.95
    assert binom.cdf(low - 1, n, share) <= 0.025 < binom.cdf(low, n, share)


def test_too_few_times_have_no_interval() -> None:
    assert all(map(math.isnan, quantile_interval([], 0.5)))
    assert all(map(math.isnan, quantile_interval([1.0, 2.0, 3.0], 0.5)))


@pytest.mark.parametrize("name", ["median_seconds", "p95_seconds"])
@given(data=st.data())
def test_replicates_at_once_are_those_of_the_figure(name: str, data: st.DataObject) -> None:
    times = data.draw(st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.2, 3.3, math.nan]), min_size=1, max_size=12))
    row = st.lists(st.integers(0, 3), min_size=len(times), max_size=len(times))
    weights = np.array(data.draw(st.lists(row, min_size=1, max_size=4)), dtype=np.float64)
    entry = find_metric(name)
    at_once = entry.form().of_weights({"seconds": np.array(times)}, weights)
    one_by_one = [float(entry.function(times, w)) for w in weights]
    np.testing.assert_array_equal(at_once, one_by_one)
    used = [np.repeat(times, w.astype(int)) for w in weights]
    share = 0.5 if name == "median_seconds" else 0.95
    known = [u[~np.isnan(u)] for u in used]
    np.testing.assert_allclose(at_once, [np.quantile(u, share) if len(u) else math.nan for u in known], atol=1e-12)
