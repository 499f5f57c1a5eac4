"""Replicates over units: equal to brute force on the same weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from hitmiss.core.errors import DataError
from hitmiss.core.tally import Tally
from hitmiss.metrics.calibration import brier_form
from hitmiss.metrics.detection import cllr_form, dcf_at_form, eer_form, hull_eer, min_cllr_of_tally, min_dcf_form
from hitmiss.metrics.ranking import average_precision_of_tally, fpr_at_tpr_form, tpr_at_fpr_form
from hitmiss.stats.forms.base import Form
from hitmiss.stats.forms.sums import PairShare
from hitmiss.stats.forms.whole import Whole
from hitmiss.stats.units import UnitSample, draw_units, refuse_mixed_strata, unit_replicates, unit_sides

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


def exact_forms() -> list[Form]:
    """Those that equal brute force to the last digits."""
    return [
        eer_form("grouped"),
        eer_form("official"),
        eer_form("interpolated"),
        min_dcf_form(0.95, 1.0, 10.0, True),
        min_dcf_form(0.5, 1.0, 1.0, False),
        min_dcf_form(0.01, 10.0, 1.0, True),
        tpr_at_fpr_form(0.1),
        tpr_at_fpr_form(0.0),
        tpr_at_fpr_form(1.0),
        fpr_at_tpr_form(0.9),
        fpr_at_tpr_form(0.0),
        fpr_at_tpr_form(1.0),
        dcf_at_form(0.95, 1.0, 10.0, True, 0.5),
        cllr_form(),
        brier_form(),
    ]


def by_brute_force(positive: Mask, score: Floats, unit: Ints, form: Form, weights: Floats) -> Floats:
    """Count every trial as often as its unit was drawn; undefined where a class is missing."""
    values = []
    for row in weights:
        tally = Tally.of(positive, score, row[unit].astype(np.int64))
        values.append(form.value(tally) if tally.has_both_classes else np.nan)
    return np.array(values)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Mask, Floats, Ints, int, int]:
    n = draw(st.integers(2, 60))
    seed = draw(st.integers(0, 2**32 - 1))
    n_units = draw(st.integers(1, 12))
    step = draw(st.sampled_from([0.0, 0.5, 1.0, 3.0]))
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < draw(st.sampled_from([0.1, 0.5, 0.8]))
    score = rng.normal(size=n) + 1.5 * positive
    score = np.round(score / step) * step if step else score
    return positive, score, rng.integers(0, n_units, size=n), n_units, seed


@given(cases())
def test_equal_to_brute_force_on_the_same_weights(case: tuple[Mask, Floats, Ints, int, int]) -> None:
    positive, score, unit, n_units, seed = case
    assume(positive.any() and not positive.all())
    weights = draw_units(unit, positive, n_units, 8, np.random.default_rng(seed))
    forms = exact_forms()
    fast = unit_replicates(UnitSample.of(positive, score, unit, n_units), forms, weights)
    for form, values in zip(forms, fast, strict=True):
        expected = by_brute_force(positive, score, unit, form, weights)
        assert values == pytest.approx(expected, abs=1e-12, nan_ok=True), form


@pytest.mark.parametrize(
    ("step", "n_units"),
    [(0.02, 80), *(pytest.param(*case, marks=pytest.mark.nightly) for case in [(0.0, 80), (0.5, 80), (0.0, 4000)])],
)
def test_equal_to_brute_force_where_most_trials_are_never_looked_at(step: float, n_units: int) -> None:
    """Enough trials for closed cells: EER and costs must still be those of all trials."""
    rng = np.random.default_rng(1)
    n = 30_000
    unit = rng.integers(0, n_units, size=n)
    positive = rng.random(n) < 0.3
    score = rng.normal(size=n) + 2.0 * positive + 0.3 * rng.normal(size=n_units)[unit]
    score = np.round(score / step) * step if step else score
    weights = draw_units(unit, positive, n_units, 25, rng)
    forms = exact_forms()
    fast = unit_replicates(UnitSample.of(positive, score, unit, n_units), forms, weights)
    for form, values in zip(forms, fast, strict=True):
        assert values == pytest.approx(by_brute_force(positive, score, unit, form, weights), abs=1e-12)


def test_replicates_without_a_class_are_undefined() -> None:
    positive, score, unit = np.array([True, True, False]), np.array([0.9, 0.4, 0.1]), np.array([0, 1, 1])
    weights = np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 2.0]])  # the first has no negatives
    for values in unit_replicates(UnitSample.of(positive, score, unit, 2), [*exact_forms(), PairShare()], weights):
        assert np.isnan(values).tolist() == [True, False, False]


def test_infinite_scores_count_only_when_drawn() -> None:
    positive, score = np.array([True, True, False, False]), np.array([-np.inf, 2.0, -1.0, 0.5])
    weights = np.array([[0.0, 2.0], [1.0, 1.0]])
    drawn = unit_replicates(UnitSample.of(positive, score, np.array([0, 1, 0, 1]), 2), [cllr_form()], weights)[0]
    alone = np.log2(1 + np.exp(-2.0)) / 2 + np.log2(1 + np.exp(0.5)) / 2
    assert drawn[0] == pytest.approx(alone, abs=1e-12)
    assert drawn[1] == np.inf


@pytest.mark.parametrize("name", ["average precision", "min_cllr", "hull"])
def test_figures_of_the_whole_curve_are_exact_up_to_a_thousand_scores(name: str) -> None:
    form = Whole(
        {"average precision": average_precision_of_tally, "min_cllr": min_cllr_of_tally, "hull": hull_eer}[name]
    )
    rng = np.random.default_rng(2)
    positive, unit = rng.random(1000) < 0.4, rng.integers(0, 30, size=1000)
    score = rng.normal(size=1000) + positive
    weights = draw_units(unit, positive, 30, 20, rng)
    fast = unit_replicates(UnitSample.of(positive, score, unit, 30), [form], weights)[0]
    assert fast == pytest.approx(by_brute_force(positive, score, unit, form, weights), abs=1e-12)


@pytest.mark.parametrize(("n", "n_units"), [(2000, 50), pytest.param(40_000, 300, marks=pytest.mark.nightly)])
def test_auc_is_off_by_no_more_than_the_pairs_inside_cells(n: int, n_units: int) -> None:
    """Pairs in different cells are counted; those inside one cell have the sample's share. The error is a small part of
    the spread of the replicates, whose spread must not change."""
    rng = np.random.default_rng(3)
    unit, positive = rng.integers(0, n_units, size=n), rng.random(n) < 0.4
    score = rng.normal(size=n) + 1.5 * positive + 0.5 * rng.normal(size=n_units)[unit]
    weights = draw_units(unit, positive, n_units, 300, rng)
    fast = unit_replicates(UnitSample.of(positive, score, unit, n_units), [PairShare()], weights)[0]
    exact = by_brute_force(positive, score, unit, PairShare(), weights)
    assert np.abs(fast - exact).max() < 0.1 * exact.std()
    assert fast.std() == pytest.approx(exact.std(), rel=0.01)


def test_units_with_both_classes_are_drawn_from_all() -> None:
    unit, positive = np.array([0, 0, 1, 2, 2, 3]), np.array([True, False, True, False, True, False])
    weights = draw_units(unit, positive, 4, 20_000, np.random.default_rng(4))
    assert (weights.sum(axis=1) == 4).all()
    law = stats.binom(4, 0.25).pmf(np.arange(5)) * 20_000
    for k in range(4):
        assert stats.chisquare(np.bincount(weights[:, k].astype(int), minlength=5), law).pvalue > 1e-4
    assert (weights[:, [1]].sum(axis=1) == 0).any(), "a class may be missing from a replicate"


def test_units_of_one_class_each_are_drawn_within_their_class() -> None:
    unit, positive = np.array([0, 0, 1, 2, 2, 3, 4]), np.array([True, True, True, False, False, False, False])
    weights = draw_units(unit, positive, 5, 5000, np.random.default_rng(5))
    assert (weights[:, :2].sum(axis=1) == 2).all()
    assert (weights[:, 2:].sum(axis=1) == 3).all()
    assert np.corrcoef(weights[:, 2], weights[:, 3])[0, 1] == pytest.approx(-0.5, abs=0.05)


def test_units_without_trials_are_never_drawn() -> None:
    weights = draw_units(np.array([0, 2]), np.array([True, False]), 4, 50, np.random.default_rng(6))
    assert not weights[:, [1, 3]].any()
    assert (weights[:, [0, 2]] == 1).all()


def test_sides_of_units() -> None:
    sides = unit_sides(np.array([0, 1, 2, 2]), np.array([True, False, True, False]), 4)
    assert sides.tolist() == [1, 2, 3, 0]


def test_stratifying_mixed_units_is_refused_with_the_numbers() -> None:
    unit, positive = np.array([0, 0, 1, 2]), np.array([True, False, True, False])
    with pytest.raises(DataError, match=r"'speaker': 1 of 3 hold both classes; leave out .* or choose another unit"):
        refuse_mixed_strata(unit, positive, 3, "speaker")
    refuse_mixed_strata(np.array([0, 1, 1, 2]), np.array([True, False, False, True]), 3, "speaker")
