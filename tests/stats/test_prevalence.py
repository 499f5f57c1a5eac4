"""Prevalence corrected for a detector's errors: laws, exact cases, and coverage over simulated data sets."""

from __future__ import annotations

import numpy as np
import pytest

from hitmiss.core.errors import DataError
from hitmiss.stats.prevalence import corrected_prevalence, labelled_prevalence


@pytest.mark.parametrize("truth", [0.1, 0.3, 0.7])
@pytest.mark.parametrize(("sensitivity", "specificity"), [(0.9, 0.8), (0.7, 0.6), (1.0, 0.95)])
def test_the_correction_undoes_what_the_detector_does(truth: float, sensitivity: float, specificity: float) -> None:
    """A population flagged at exactly its expected rate has the prevalence that it was made with."""
    n = 1_000_000
    flagged = round(n * (truth * sensitivity + (1 - truth) * (1 - specificity)))
    rates = {"sensitivity": sensitivity, "positives": 500, "specificity": specificity, "negatives": 500}
    found = corrected_prevalence(flagged, n, **rates)
    assert found.value == pytest.approx(truth, abs=1e-5)
    assert found.low < truth < found.high


def test_a_detector_known_to_be_perfect_leaves_the_uncertainty_of_the_sample_alone() -> None:
    """Without errors of the detector the ends are those of Agresti and Coull for the share that was flagged."""
    found = corrected_prevalence(30, 400, sensitivity=1.0, positives=1e12, specificity=1.0, negatives=1e12)
    z = 1.959963984540054
    centre = (30 + z * z / 2) / (400 + z * z)
    half = z * np.sqrt(centre * (1 - centre) / (400 + z * z))
    assert (found.value, found.low, found.high) == pytest.approx((0.075, centre - half, centre + half), abs=1e-9)


def test_fewer_tested_items_widen_the_interval() -> None:
    """The uncertainty about the detector itself is carried."""
    wide, narrow = (
        corrected_prevalence(100, 10_000, sensitivity=0.9, positives=m, specificity=0.995, negatives=m)
        for m in (100, 100_000)
    )
    assert wide.value == narrow.value
    assert wide.high - wide.low > 3 * (narrow.high - narrow.low)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("truth", "sensitivity", "specificity", "n", "m"),
    [(0.1, 0.8, 0.9, 1000, 100), (0.3, 0.95, 0.95, 500, 50), (0.02, 0.99, 0.995, 5000, 1000)],
)
def test_corrected_intervals_hold_the_truth(
    truth: float, sensitivity: float, specificity: float, n: int, m: int
) -> None:
    """At least 93 of 100 intervals hold the truth, where the share that was flagged alone would almost never."""
    rng = np.random.default_rng(7)
    held = []
    for _ in range(600):
        hits, passes = rng.binomial(m, sensitivity), rng.binomial(m, specificity)
        flagged = int(rng.binomial(n, truth * sensitivity + (1 - truth) * (1 - specificity)))
        found = corrected_prevalence(flagged, n, sensitivity=hits / m, positives=m, specificity=passes / m, negatives=m)
        held.append(found.low <= truth <= found.high)
    assert 0.93 <= np.mean(held) <= 0.985


@pytest.mark.nightly
@pytest.mark.parametrize(("truth", "sensitivity", "n", "m"), [(0.05, 0.8, 10_000, 300), (0.3, 0.6, 2000, 100)])
def test_labelled_intervals_hold_the_truth_and_gain_from_the_detector(
    truth: float, sensitivity: float, n: int, m: int
) -> None:
    """Labels of a random part and verdicts of all give 95 %, in less width than the labels alone."""
    rng = np.random.default_rng(11)
    rate = truth * sensitivity + (1 - truth) * 0.05
    held, widths, own = [], [], []
    for _ in range(600):
        flagged = int(rng.binomial(n, rate))
        labelled = int(rng.binomial(m, flagged / n))
        among = int(rng.binomial(labelled, truth * sensitivity / rate))
        missed = int(rng.binomial(m - labelled, truth * (1 - sensitivity) / (1 - rate)))
        found = labelled_prevalence(
            flagged,
            n,
            flagged_positive=among,
            flagged_labelled=labelled,
            passed_positive=missed,
            passed_labelled=m - labelled,
        )
        held.append(found.low <= truth <= found.high)
        widths.append(found.high - found.low)
        alone = (among + missed) / m
        own.append(2 * 1.96 * np.sqrt(alone * (1 - alone) / m))
    assert 0.93 <= np.mean(held) <= 0.985
    assert np.mean(widths) < 0.95 * np.mean(own)


def test_everything_labelled_is_the_plain_share() -> None:
    """With every item labelled the estimate is the share of positives."""
    found = labelled_prevalence(
        40, 100, flagged_positive=30, flagged_labelled=40, passed_positive=5, passed_labelled=60
    )
    assert found.value == pytest.approx(0.35)


def test_a_detector_that_tells_nothing_gives_no_value() -> None:
    """Sensitivity + specificity of at most 1 leaves every prevalence possible."""
    found = corrected_prevalence(50, 100, sensitivity=0.5, positives=100, specificity=0.5, negatives=100)
    assert (found.value, found.low, found.high) == (None, 0.0, 1.0)


@pytest.mark.parametrize(
    ("flagged", "n", "code"), [(5, 0, "impossible-counts"), (7, 5, "impossible-counts"), (-1, 5, "impossible-counts")]
)
def test_counts_that_cannot_be_are_refused(flagged: int, n: int, code: str) -> None:
    """Impossible counts are refused with a code."""
    with pytest.raises(DataError) as error:
        corrected_prevalence(flagged, n, sensitivity=0.9, positives=10, specificity=0.9, negatives=10)
    assert error.value.code == code


def test_a_group_without_labels_is_refused() -> None:
    """Where no passed item is labelled, what the detector misses is unknown."""
    with pytest.raises(DataError, match="no passed item is labelled"):
        labelled_prevalence(5, 50, flagged_positive=3, flagged_labelled=5, passed_positive=0, passed_labelled=0)
