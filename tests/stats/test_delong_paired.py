"""Paired DeLong against the pair kernel by brute force and the stored figures of another implementation."""

from __future__ import annotations

import csv
import gzip
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitmiss.core.tally import Tally
from hitmiss.engine.interval import area_interval
from hitmiss.stats.delong import AucDifference, RocSteps, difference_of_placements, placements
from hitmiss.stats.intervals import normal

seeds = st.integers(0, 2**32 - 1)


def kernel(positive: np.ndarray, score: np.ndarray) -> np.ndarray:
    """Every (positive, negative) pair: 1 if rightly ordered, ½ if equal."""
    x, y = score[positive][:, None], score[~positive][None, :]
    return (x > y) + 0.5 * (x == y)


def by_kernel(positive: np.ndarray, a: np.ndarray, b: np.ndarray) -> tuple[float, float, float]:
    """AUC of both and the variance of their difference from the covariance matrix of rows and columns (DeLong 1988)."""
    kernels = [kernel(positive, s) for s in (a, b)]
    rows, columns = np.cov([k.mean(axis=1) for k in kernels]), np.cov([k.mean(axis=0) for k in kernels])
    matrix = rows / kernels[0].shape[0] + columns / kernels[0].shape[1]
    contrast = np.array([-1.0, 1.0])
    return kernels[0].mean(), kernels[1].mean(), float(contrast @ matrix @ contrast)


def auc_difference(positive: np.ndarray, a: np.ndarray, b: np.ndarray) -> AucDifference:
    return difference_of_placements(positive, placements(positive, a), placements(positive, b))


def draw(seed: int, ties: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    positive = rng.permutation(np.arange(int(rng.integers(6, 60))) < rng.integers(2, 5))
    base = rng.normal(size=len(positive)) + positive
    a, b = base + rng.normal(size=len(positive)), base + rng.normal(size=len(positive))
    return positive, *((np.round(s) if ties else s) for s in (a, b))


@given(seeds, st.booleans())
def test_equals_the_pair_kernel(seed: int, ties: bool) -> None:
    positive, a, b = draw(seed, ties)
    area_a, area_b, variance = by_kernel(positive, a, b)
    found = auc_difference(positive, a, b)
    assert found.a == pytest.approx(area_a, abs=1e-12) and found.b == pytest.approx(area_b, abs=1e-12)
    assert found.error**2 == pytest.approx(variance, abs=1e-14)


@given(seeds)
def test_against_a_constant_it_is_the_single_variance(seed: int) -> None:
    positive, a, _ = draw(seed, False)
    tally = Tally.of(positive, a)
    assert auc_difference(positive, np.zeros(len(a)), a).error ** 2 == pytest.approx(
        RocSteps.of_tally(tally).variance, abs=1e-14
    )
    assert auc_difference(positive, a, a).p_value == 1.0
    assert area_interval(tally)[0] <= auc_difference(positive, a, a).a


@given(seeds)
def test_swapping_the_runs_changes_the_sign_alone(seed: int) -> None:
    positive, a, b = draw(seed, True)
    one, other = auc_difference(positive, a, b), auc_difference(positive, b, a)
    assert one.delta == -other.delta and one.error == other.error
    low, high = normal(other.delta, other.error, (-1.0, 1.0))
    assert normal(one.delta, one.error, (-1.0, 1.0)) == (-high, -low)


def test_equals_mlstatkit_on_the_realistic_set(reference: Path) -> None:
    text = gzip.decompress((reference / "19_realistic_4k.csv.gz").read_bytes()).decode()
    rows = list(csv.DictReader(text.splitlines()))
    positive = np.array([r["KEY"] == "bonafide" for r in rows])
    a, b = (np.array([float(r[c]) for r in rows]) for c in ("score", "score_b"))
    expected = json.loads((reference / "expected.json").read_text())["sets"]["19_realistic_4k"]["delong_mlstatkit"]
    found = auc_difference(positive, a, b)
    assert abs(found.delta / found.error) == pytest.approx(abs(expected["z"]), rel=1e-9)
    assert found.p_value == pytest.approx(expected["p"], rel=1e-9)


def test_too_few_trials_give_no_error() -> None:
    found = auc_difference(np.array([True, False, False]), np.array([2.0, 1.0, 3.0]), np.array([4.0, 1.0, 3.0]))
    assert (found.a, found.b) == (0.5, 1.0)
    assert (
        math.isnan(found.error)
        and math.isnan(found.p_value)
        and math.isnan(normal(found.delta, found.error, (-1.0, 1.0))[0])
    )


def test_a_difference_without_variance_is_not_judged() -> None:
    positive = np.array([True, True, False, False])
    found = auc_difference(positive, np.zeros(4), np.array([3.0, 4.0, 1.0, 2.0]))
    assert found.delta == 0.5 and found.error == 0.0 and math.isnan(found.p_value)


def test_one_class_is_undefined() -> None:
    found = auc_difference(np.array([True, True]), np.array([1.0, 2.0]), np.array([2.0, 1.0]))
    assert math.isnan(found.delta)
    assert np.isnan(placements(np.array([False, False]), np.array([1.0, 2.0]))).all()
