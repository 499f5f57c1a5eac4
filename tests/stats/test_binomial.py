"""Wilson intervals against statsmodels."""

from __future__ import annotations

import math

import pytest
from statsmodels.stats.proportion import proportion_confint

from hitmiss.stats.intervals import wilson


@pytest.mark.parametrize("of", [1, 2, 7, 100, 542_086])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_equals_statsmodels(of: int, level: float) -> None:
    for hits in sorted({0, 1, of // 3, of // 2, of - 1, of}):
        expected = proportion_confint(hits, of, alpha=1 - level, method="wilson")
        assert wilson(hits, of, level) == pytest.approx(expected, abs=1e-12), hits


@pytest.mark.parametrize("of", [1, 3, 10, 542_086])
def test_none_and_all_reach_the_ends_exactly(of: int) -> None:
    assert wilson(0, of)[0] == 0.0
    assert wilson(of, of)[1] == 1.0


@pytest.mark.parametrize(("hits", "of"), [(0, 1), (1, 3), (50, 100), (99, 100)])
def test_is_symmetric_and_holds_the_share(hits: int, of: int) -> None:
    low, high = wilson(hits, of)
    mirrored = wilson(of - hits, of)
    assert low <= hits / of <= high
    assert (1 - mirrored[1], 1 - mirrored[0]) == pytest.approx((low, high), abs=1e-15)


def test_of_nothing_is_undefined() -> None:
    assert all(math.isnan(x) for x in wilson(0, 0))
