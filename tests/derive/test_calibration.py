"""Calibration against independent fits, against min Cllr of other tools, and against what it must refuse."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit

from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.header import Header, Source, Threshold
from hitmiss.core.trials import Trials
from hitmiss.derive.calibration import ASVSPOOF5_PRIOR, AffineCalibrator, PavCalibrator, fit_affine, fit_pav
from hitmiss.derive.score_model import calibrate

REFERENCE = Path(__file__).resolve().parents[1] / "official_reference"
needs_reference = pytest.mark.skipif(not REFERENCE.is_dir(), reason="the official reference figures are not here")

Pair = tuple[np.ndarray, np.ndarray]


def overlapping(seed: int, scale: float = 1.0, shift: float = 0.0) -> Pair:
    rng = np.random.default_rng(seed)
    score = np.concatenate([rng.normal(1.5, 1.0, 150), rng.normal(0.0, 1.4, 450)])
    return np.repeat([1, 0], [150, 450]), score * scale + shift


def reference_set(name: str) -> Pair:
    with (REFERENCE / f"{name}.csv").open() as file:
        rows = list(csv.DictReader(file))
    label = np.array([row["label"] == "bonafide" for row in rows]).astype(int)
    return label, np.array([float(row["score"]) for row in rows])


def cllr_bits(label: np.ndarray, llr: np.ndarray) -> float:
    positive = np.logaddexp(0, -llr[label == 1]).mean()
    negative = np.logaddexp(0, llr[label == 0]).mean()
    return float((positive + negative) / 2 / math.log(2))


# --- affine -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [0.5, ASVSPOOF5_PRIOR, 0.05])
@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (1e-3, 40.0), (250.0, -1e4)])
def test_affine_agrees_with_a_general_optimiser_on_the_same_objective(prior: float, scale: float, shift: float) -> None:
    label, score = overlapping(1, scale=scale, shift=shift)
    x = (score - score.mean()) / score.std()
    log_odds = math.log(prior / (1 - prior))

    def objective(theta: np.ndarray) -> float:
        z = theta[0] * x + theta[1] + log_odds
        positive, negative = np.logaddexp(0, -z[label == 1]).mean(), np.logaddexp(0, z[label == 0]).mean()
        return float(prior * positive + (1 - prior) * negative)

    precise = {"xatol": 1e-11, "fatol": 1e-16, "maxiter": 5000}
    best = minimize(objective, np.zeros(2), method="Nelder-Mead", options=precise)
    expected = best.x[0] * x + best.x[1]
    np.testing.assert_allclose(fit_affine(label, score, prior=prior).apply(score), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("prior", [0.5, ASVSPOOF5_PRIOR])
def test_affine_agrees_with_sklearn(prior: float) -> None:
    from sklearn.linear_model import LogisticRegression

    label, score = overlapping(2)
    share = np.where(label == 1, prior / label.sum(), (1 - prior) / (1 - label).sum()) * len(label)
    model = LogisticRegression(C=math.inf, tol=1e-12, solver="newton-cholesky", max_iter=500)
    model.fit(score[:, None], label, sample_weight=share)
    found = fit_affine(label, score, prior=prior)
    assert found.slope == pytest.approx(model.coef_[0, 0], abs=1e-6)
    assert found.offset == pytest.approx(model.intercept_[0] - math.log(prior / (1 - prior)), abs=1e-6)


def test_affine_undoes_a_known_distortion_of_true_likelihood_ratios() -> None:
    rng = np.random.default_rng(3)
    n, gap = 40_000, 2.0  # unit-variance Gaussians a distance of 2 apart: llr = 2 x, exactly
    x = np.concatenate([rng.normal(gap / 2, 1, n), rng.normal(-gap / 2, 1, n)])
    found = fit_affine(np.repeat([1, 0], n), 5 * (gap * x) - 7)
    assert found.slope == pytest.approx(1 / 5, rel=0.03)
    assert found.apply([-7.0])[0] == pytest.approx(0.0, abs=0.03)


@needs_reference
def test_affine_cannot_worsen_cllr_of_calibrated_scores_and_stays_above_min_cllr() -> None:
    label, score = reference_set("09_llr_calibrated")
    expected = json.loads((REFERENCE / "expected.json").read_text())["sets"]["09_llr_calibrated"]
    after = cllr_bits(label, fit_affine(label, score).apply(score))
    assert expected["pybosaris"]["min_cllr_bits"] <= after <= expected["official_asvspoof5"]["cllr_bits"]
    assert fit_affine(label, score).slope == pytest.approx(1.0, abs=0.1)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(-4, 4), st.integers(1, 3)), min_size=2, max_size=12))
def test_a_whole_weight_is_a_repetition(trials: list[tuple[int, int, int]]) -> None:
    label, score, weight = ([t[k] for t in trials] for k in range(3))
    repeated = [np.repeat(v, weight) for v in (label, score)]
    for fit in (fit_affine, fit_pav):
        try:
            expected = fit(*repeated).apply(score)
        except DataError:
            with pytest.raises(DataError):
                fit(label, score, weight)
        else:
            np.testing.assert_allclose(fit(label, score, weight).apply(score), expected, atol=1e-7)


@settings(max_examples=50)
@given(st.integers(1, 400), st.floats(0.01, 0.99))
def test_affine_settles_where_the_classes_hardly_overlap(n: int, prior: float) -> None:
    label = np.repeat([1, 0, 1, 0], [n, n, 1, 1])
    score = np.concatenate([np.linspace(10, 11, n), np.linspace(-11, -10, n), [-10.5], [10.5]])
    found = fit_affine(label, score, prior=prior)
    z = found.apply(score) + math.log(prior / (1 - prior))
    share = np.where(label == 1, prior, 1 - prior) / (n + 1)
    residual = share * (expit(z) - label)
    assert abs(residual.sum()) < 1e-8
    assert abs(residual @ score) < 1e-7


@pytest.mark.parametrize(
    ("label", "score", "sentence"),
    [
        ([1, 1, 0, 0], [3, 2, 1, 0], "no finite slope"),
        ([1, 1, 0, 0], [3, 1, 1, 0], "no finite slope"),
        ([1, 1, 0, 0], [0, 1, 2, 3], "no finite slope"),
        ([1, 1], [0, 1], "2 positives of 2"),
        ([1, 0], [5, 5], "all scores of the fit set are 5"),
        ([1, 0, 1], [1, math.inf, 2], "1 are infinite"),
        ([1, 0, 1], [1, math.nan, 2], "1 of 3 scores are NaN"),
    ],
)
def test_affine_refuses_what_has_no_fit(label: list[int], score: list[float], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        fit_affine(label, score)


@pytest.mark.parametrize("prior", [0.0, 1.0, math.nan])
def test_a_prior_is_a_probability(prior: float) -> None:
    with pytest.raises(UsageError, match="prior"):
        fit_affine([1, 0, 1, 0], [0, 0, 1, 1], prior=prior)


# --- pav --------------------------------------------------------------------------------------------------------


@needs_reference
@pytest.mark.parametrize("name", ["02_overlapping", "03_heavy_ties", "09_llr_calibrated"])
def test_pav_reaches_min_cllr_as_the_ends_are_let_go(name: str) -> None:
    label, score = reference_set(name)
    expected = json.loads((REFERENCE / "expected.json").read_text())["sets"][name]["pybosaris"]["min_cllr_bits"]
    found = cllr_bits(label, fit_pav(label, score, misleading=1e-12).apply(score))
    assert found == pytest.approx(expected, abs=1e-9)


def test_pav_agrees_with_sklearn() -> None:
    from sklearn.isotonic import IsotonicRegression

    label, score = overlapping(4)
    wide = np.concatenate([[1], label, [0]]), np.concatenate([[score.min() - 1], score, [score.max() + 1]])
    p = IsotonicRegression().fit(wide[1], wide[0]).predict(score)
    expected = np.log(p / (1 - p)) - math.log((label.sum() + 1) / ((1 - label).sum() + 1))
    np.testing.assert_allclose(fit_pav(label, score).apply(score), expected, atol=1e-9)


@given(st.lists(st.tuples(st.booleans(), st.integers(-5, 5)), min_size=2, max_size=15))
def test_pav_rises_and_keeps_its_bounds(trials: list[tuple[bool, int]]) -> None:
    label, score = np.array([t[0] for t in trials]), np.array([t[1] for t in trials])
    n, m = label.sum(), (~label).sum()
    if n == 0 or m == 0:
        with pytest.raises(DataError, match="both classes"):
            fit_pav(label, score)
        return
    ratio = np.exp(fit_pav(label, score).apply(np.linspace(-7, 7, 57)))
    assert (np.diff(ratio) >= -1e-12).all()
    assert ratio.min() >= (m + 1) / (n + 1) / m - 1e-12
    assert ratio.max() <= (m + 1) / (n + 1) * n + 1e-12


def test_pav_takes_separated_classes_and_infinite_new_scores() -> None:
    found = fit_pav([1, 1, 0, 0], [3, 2, 1, 0]).apply([-math.inf, math.inf])
    np.testing.assert_allclose(np.exp(found), [0.5, 2.0])


def test_pav_needs_something_to_hold_its_ends() -> None:
    with pytest.raises(UsageError, match="misleading must be above 0"):
        fit_pav([1, 0], [1, 0], misleading=0)


# --- trials -----------------------------------------------------------------------------------------------------


def trials(pair: Pair, prefix: str, **header: object) -> Trials:
    head = Header(positive="bonafide", negative="spoof", **header)  # type: ignore[arg-type]
    return Trials.of(*pair, item=[f"{prefix}{i}" for i in range(len(pair[0]))], header=head)


def test_the_header_says_what_was_done() -> None:
    dev = trials(overlapping(5), "d", sources=(Source("dev.tsv", "0" * 64),))
    test = trials(overlapping(6), "e", threshold=Threshold(0.5, "given"))
    done = calibrate(dev, test, prior=ASVSPOOF5_PRIOR)
    fit = fit_affine(dev.label, dev.score, prior=ASVSPOOF5_PRIOR)
    np.testing.assert_array_equal(done.score, fit.apply(test.score))
    assert done.items == test.items
    assert (done.header.score_kind, done.header.threshold) == ("llr", None)
    record = done.header.provenance["calibration"]
    assert (record["method"], record["slope"], record["prior"]) == ("affine", fit.slope, ASVSPOOF5_PRIOR)
    assert (record["fit_n"], record["fit_sources"], record["fit_digest"]) == (600, ["dev.tsv"], dev.digest)
    assert dev.digest in done.header.choices[-1]
    assert done.header.notes == ("calibration: the threshold of the old scores was dropped",)
    json.dumps(record)


def test_calibration_improves_cllr_on_other_data_and_keeps_the_order() -> None:
    dev, test = trials(overlapping(7, scale=9, shift=30), "d"), trials(overlapping(8, scale=9, shift=30), "e")
    for method in ("affine", "pav"):
        done = calibrate(dev, test, method)
        # A score that says nothing has Cllr 1.
        assert cllr_bits(done.label, done.score) < 1.0 < cllr_bits(test.label, test.score)
        assert (np.diff(done.score[np.argsort(test.score)]) >= 0).all()


def test_fitting_on_the_same_trials_is_called_optimistic() -> None:
    dev = trials(overlapping(9), "d")
    assert calibrate(dev, dev).header.notes == ("calibration: optimistic, 600 of 600 trials were also fitted on",)
    part = dev.put(item=pl.when(pl.int_range(pl.len()) < 10).then("item").otherwise(pl.lit("new") + pl.col("item")))
    assert "10 of 600 trials" in calibrate(dev, part).header.notes[0]
    assert calibrate(dev, trials(overlapping(10), "d")).header.notes == ()  # the same ids, other scores


@pytest.mark.parametrize("method", ["affine", "pav"])
def test_reversed_scores_are_noted(method: str) -> None:
    label, score = overlapping(11)
    done = calibrate(trials((label, -score), "d"), trials((label, -score), "e"), method)  # type: ignore[arg-type]
    assert "are the scores reversed?" in done.header.notes[0]


def test_trials_without_a_score_stay_without() -> None:
    label, score = overlapping(12)
    dev = trials((label, score), "d")
    failed = pl.int_range(pl.len()) % 7 == 0
    holes = dev.put(
        score=pl.when(~failed).then(pl.col("score")),
        error=pl.when(failed).then(pl.lit("timeout")).otherwise(pl.lit("")),
    )
    done = calibrate(holes, holes.put(item=pl.lit("e") + pl.col("item")))
    assert done.column("score").null_count() == holes.column("score").null_count() == 86
    assert done.header.notes == ("calibration: 86 trials without a score were left out of the fit",)
    kept = np.arange(600) % 7 != 0
    assert done.header.provenance["calibration"]["slope"] == fit_affine(label[kept], score[kept]).slope


def test_sets_that_do_not_fit_together_are_refused() -> None:
    dev = trials(overlapping(13), "d")
    with pytest.raises(UsageError, match="positive class"):
        calibrate(dev, dev.retitle(positive="fake"))
    with pytest.raises(UsageError, match="raw scores, applied to logit"):
        calibrate(dev, dev.retitle(score_kind="logit"))
    with pytest.raises(UnknownName, match="affine"):
        calibrate(dev, dev, "afine")  # type: ignore[arg-type]
    two = Trials.of(*overlapping(13), header=Header(runs=("model",)), model=["a", "b"] * 300)
    with pytest.raises(UsageError, match="mixes 2 values of 'model'"):
        calibrate(two, two)
    with pytest.raises(UnknownName, match="score"):
        calibrate(Trials.of([1, 0]), dev)


def test_calibrators_are_plain_values() -> None:
    assert AffineCalibrator(1.0, 0.0) == AffineCalibrator(1.0, 0.0)
    assert hash(PavCalibrator((0.0,), (1.0,))) == hash(PavCalibrator((0.0,), (1.0,)))
