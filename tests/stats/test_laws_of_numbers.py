"""Laws of single functions of `stats`, each against a formula written anew or all small cases."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hitmiss.core.errors import DataError
from hitmiss.core.registry import find_metric
from hitmiss.core.tally import Tally
from hitmiss.metrics import cllr
from hitmiss.stats.enough_units import unit_sizes
from hitmiss.stats.forms.three_classes import class_codes
from hitmiss.stats.group_spread import ratio_interval, spread_interval
from hitmiss.stats.intervals import wilson
from hitmiss.stats.jackknife import LeftOut
from hitmiss.stats.planning import Error, needed, quantiles
from hitmiss.stats.prevalence import Prevalence, effective_size, labelled_prevalence
from hitmiss.stats.simultaneous import _sidak

VALUE, LOW, HIGH = np.array([0.9, 0.6, 0.75]), np.array([0.85, 0.5, 0.6]), np.array([0.93, 0.72, 0.85])
PAIRS = [(i, j) for i in range(3) for j in range(3) if i != j]


def test_the_spread_of_groups_has_the_ends_of_its_differences() -> None:
    """Zou and Donner's interval of each difference; the greatest end of each kind."""
    least, most = [], []
    for i, j in PAIRS:
        delta = VALUE[i] - VALUE[j]
        least.append(delta - math.sqrt((VALUE[i] - LOW[i]) ** 2 + (HIGH[j] - VALUE[j]) ** 2))
        most.append(delta + math.sqrt((HIGH[i] - VALUE[i]) ** 2 + (VALUE[j] - LOW[j]) ** 2))
    assert spread_interval(VALUE, LOW, HIGH) == pytest.approx((max(least), max(most)), abs=1e-12)


def test_the_ratio_of_groups_has_the_ends_of_its_ratios() -> None:
    """Donner and Zou's interval of each ratio; the least end of each kind."""
    least, most = [], []
    for i, j in PAIRS:
        a, b = VALUE[i], VALUE[j]
        down, up = HIGH[j] * (2 * b - HIGH[j]), LOW[j] * (2 * b - LOW[j])
        least.append((a * b - math.sqrt((a * b) ** 2 - LOW[i] * (2 * a - LOW[i]) * down)) / down)
        most.append((a * b + math.sqrt((a * b) ** 2 - HIGH[i] * (2 * a - HIGH[i]) * up)) / up)
    assert ratio_interval(VALUE, LOW, HIGH) == pytest.approx((min(least), min(most)), abs=1e-9)


def labelled(flagged: int, n: int, *known: int) -> Prevalence:
    """The prevalence from positives and labelled items among the flagged, then among the passed."""
    a, of_a, b, of_b = known
    return labelled_prevalence(
        flagged, n, flagged_positive=a, flagged_labelled=of_a, passed_positive=b, passed_labelled=of_b
    )


@pytest.mark.parametrize("counts", [(80, 150, 2, 140), (3, 20, 19, 20), (0, 30, 30, 30)])
def test_flagged_and_passed_are_two_names(counts: tuple[int, int, int, int]) -> None:
    """Which of the two groups is called flagged changes neither the prevalence nor its interval."""
    a, of_a, b, of_b = counts
    one = labelled(900, 2_000, a, of_a, b, of_b)
    other = labelled(1_100, 2_000, b, of_b, a, of_a)
    assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high), abs=1e-12)


def test_no_more_items_are_labelled_than_a_group_has() -> None:
    with pytest.raises(DataError):
        labelled(900, 1_000, 10, 50, 10, 101)
    assert labelled(900, 1_000, 10, 50, 10, 100).value > 0


@pytest.mark.parametrize("n", [1.3, 1.9, 7.0, 64.0])
def test_an_effective_size_has_the_width_of_its_interval(n: float) -> None:
    low, high = wilson(0.5 * n, n)
    assert effective_size(0.5, 500, low, high) == pytest.approx(n, rel=1e-6)


@pytest.mark.parametrize("by_units", [False, True])
def test_a_plan_is_the_least_count_that_reaches_its_target(by_units: bool) -> None:
    """Against a search through all counts, for targets that each count from 2 to 60 just reaches."""
    error, floor = Error(0.3, 10, by_units), 6 if by_units else 2

    def reached(n: int) -> float:
        return quantiles(n, by_units, 0.95, None) * error.at(n)

    for count in range(2, 61):
        target = reached(count) * (1 + 1e-9)
        assert needed(error, target).count == next(n for n in range(floor, 61) if reached(n) <= target)


def test_two_units_have_one_degree_of_freedom() -> None:
    assert quantiles(2, True, 0.95, None) == pytest.approx(stats.t.ppf(0.975, 1), rel=1e-9)
    assert quantiles(9, True, 0.9, 0.8) == pytest.approx(stats.t.ppf(0.95, 8) + stats.t.ppf(0.8, 8), rel=1e-9)


@pytest.mark.parametrize("z", [0.1, 1.0, 2.5, 12.0])
@pytest.mark.parametrize("tests", [1.0, 3.5, 40.0])
def test_sidaks_correction_of_a_two_sided_test(z: float, tests: float) -> None:
    assert _sidak(z, tests) == pytest.approx(-np.expm1(tests * np.log1p(-2 * stats.norm.sf(z))), rel=1e-9)


def test_every_unit_has_a_size() -> None:
    positive, negative = unit_sizes(np.array([0, 2, 2, 1]), np.array([True, False, True, True]))
    assert (positive.tolist(), negative.tolist()) == ([1, 1, 1], [0, 0, 1])


def test_a_class_of_no_tandem_is_refused() -> None:
    assert class_codes(np.array(["target", "nontarget", "spoof"], dtype=object)).min() == 0
    with pytest.raises(DataError) as caught:
        class_codes(np.array(["target", "bogus"], dtype=object))
    assert "bogus" in str(caught.value)


def test_the_mean_of_one_number_is_that_number() -> None:
    own = LeftOut((np.array([0.1, 0.4]), np.array([0.2])), (2.0, 1.0), apart=False)
    mean = LeftOut.mean([own])
    assert [g.tolist() for g in mean.groups] == [[0.1, 0.4], [0.2]] and mean.apart is False


def test_a_number_of_stretches_may_be_asked_twice() -> None:
    """What is read of a sum in passing is the same each time, and that of memory."""
    make = find_metric("cllr").form
    assert make is not None
    form: Any = make()
    label, score = [0, 1, 0, 1], [-1.5, 0.25, 2.0, 3.0]
    passing = form.passing(2, 2)
    passing.add(Tally.of(label, score))
    assert passing.value() == passing.value() == pytest.approx(cllr(label, score), rel=1e-12)
