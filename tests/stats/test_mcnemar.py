"""McNemar's test against exact rational arithmetic and statsmodels."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar as reference

from hitmiss.core.errors import UsageError
from hitmiss.stats.mcnemar import EXACT_UP_TO, exact, mid_p

PUBLISHED = [((238, 9), 7.48e-59), ((18, 101), 3.37e-15), ((87, 21), 9.9e-11), ((36, 51), 0.133), ((26, 29), 0.788)]
counts = st.integers(0, 120)


def rational(only_a: int, only_b: int) -> tuple[Fraction, Fraction]:
    """The exact p and the mid-p as fractions, term by term."""
    n, least = only_a + only_b, min(only_a, only_b)
    ways, total = 1, 1  # in whole numbers, each from the one before: a fraction per term would be reduced each time
    for k in range(1, least + 1):
        ways = ways * (n - k + 1) // k
        total += ways
    return min(Fraction(1), Fraction(2 * total, 2**n)), min(Fraction(1), Fraction(2 * total - ways, 2**n))


@pytest.mark.parametrize(("pair", "published"), PUBLISHED)
def test_published_counts(pair: tuple[int, int], published: float) -> None:
    p, middle = rational(*pair)
    assert exact(*pair) == float(p)
    assert mid_p(*pair) == pytest.approx(float(middle), rel=1e-14)
    digits = f"{published:.2e}" if published == 9.9e-11 else f"{published:.3g}"
    assert float(f"{exact(*pair):.1e}" if published == 9.9e-11 else f"{exact(*pair):.3g}") == float(digits)


@given(counts, counts)
def test_equals_fractions_and_statsmodels(only_a: int, only_b: int) -> None:
    p, middle = rational(only_a, only_b)
    assert exact(only_a, only_b) == pytest.approx(float(p), rel=1e-14)
    assert mid_p(only_a, only_b) == pytest.approx(float(middle), rel=1e-14)
    theirs = float(reference([[5, only_a], [only_b, 7]], exact=True).pvalue)
    assert exact(only_a, only_b) == pytest.approx(theirs, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("pair", [(1_100, 1_000), (900, 1_500), (4_000, 4_001), (2_000, 3_000)])
def test_many_discordant_pairs(pair: tuple[int, int]) -> None:
    assert sum(pair) > EXACT_UP_TO
    p, middle = rational(*pair)
    assert exact(*pair) == pytest.approx(float(p), rel=1e-11)
    assert mid_p(*pair) == pytest.approx(float(middle), rel=1e-10)


@given(counts, counts)
def test_laws(only_a: int, only_b: int) -> None:
    assert exact(only_a, only_b) == exact(only_b, only_a)
    assert 0.0 < mid_p(only_a, only_b) <= exact(only_a, only_b) <= 1.0
    assert exact(only_a, only_b + 1 + only_a) <= 1.0


def test_no_discordant_pair_says_nothing() -> None:
    assert exact(0, 0) == 1.0 and mid_p(0, 0) == 1.0


def test_negative_counts_are_refused() -> None:
    with pytest.raises(UsageError, match="cannot be negative"):
        exact(-1, 3)
