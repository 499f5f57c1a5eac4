"""Score models: stored and applied later, cross-validated by unit, and equal to independent fits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

import hitmiss as hm
from hitmiss.core import artifacts
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.trials import Trials
from hitmiss.derive.cross_validation import cross_validate, folds_of
from hitmiss.derive.score_model import cost_prior, fit_calibration, fit_fused, read_model


def world(n: int = 400, seed: int = 3, *, kind: str = "raw") -> dict[str, Trials]:
    """Two systems whose scores overlap, with forty speakers."""
    rng = np.random.default_rng(seed)
    label = (rng.random(n) < 0.4).astype(int)
    item = [f"i{k}" for k in range(n)]
    speaker = [f"s{k % 40}" for k in range(n)]
    made = {}
    for name, shift in (("a", 1.5), ("b", 1.0)):
        score = 2 * (shift * label + rng.normal(size=n)) - 1
        values = 1 / (1 + np.exp(-score)) if kind == "probability" else score
        made[name] = Trials.of(label, values, item=item, speaker=speaker).retitle(score_kind=kind)
    return made


def independent(label: np.ndarray, scores: np.ndarray, prior: float) -> np.ndarray:
    """Slopes and offset by a general minimiser of the same objective, written anew."""
    positive = label == 1

    def loss(theta: np.ndarray) -> float:
        z = scores @ theta[:-1] + theta[-1] + np.log(prior / (1 - prior))
        return float(
            prior * np.mean(np.logaddexp(0, -z[positive])) + (1 - prior) * np.mean(np.logaddexp(0, z[~positive]))
        )

    def slope(theta: np.ndarray) -> np.ndarray:
        z = scores @ theta[:-1] + theta[-1] + np.log(prior / (1 - prior))
        p = 1 / (1 + np.exp(-z))
        weight = np.where(positive, prior / positive.sum(), (1 - prior) / (~positive).sum())
        g = weight * (p - positive)
        return np.append(scores.T @ g, g.sum())

    def bend(theta: np.ndarray) -> np.ndarray:
        z = scores @ theta[:-1] + theta[-1] + np.log(prior / (1 - prior))
        p = 1 / (1 + np.exp(-z))
        weight = np.where(positive, prior / positive.sum(), (1 - prior) / (~positive).sum())
        wide = np.column_stack([scores, np.ones(len(scores))])
        return np.asarray(wide.T @ (wide * (weight * p * (1 - p))[:, None]))

    start = np.zeros(scores.shape[1] + 1)
    return minimize(loss, start, jac=slope, hess=bend, method="trust-exact", options={"gtol": 1e-14}).x


@pytest.mark.parametrize("prior", [0.5, 0.655, 0.05])
def test_fusion_equals_an_independent_fit(prior: float) -> None:
    """Slopes and offset to 1e-8."""
    systems = world()
    model = fit_fused(systems, prior=prior)
    scores = np.column_stack([t.score for t in systems.values()])
    own = independent(systems["a"].label, scores, prior)
    found = np.append(model.mapping.parameters["slopes"], model.mapping.parameters["offset"])
    np.testing.assert_allclose(found, own, rtol=0, atol=1e-8)


@pytest.mark.parametrize("kind", ["raw", "probability"])
def test_calibration_equals_an_independent_fit(kind: str) -> None:
    """An affine model of probabilities is one of their log-odds."""
    trials = world(kind=kind)["a"]
    model = fit_calibration(trials)
    scores = np.log(trials.score / (1 - trials.score)) if kind == "probability" else trials.score
    slope, offset = independent(trials.label, scores[:, None], 0.5)
    assert model.mapping.parameters == pytest.approx({"slope": slope, "offset": offset}, abs=1e-8)
    np.testing.assert_allclose(model.apply(trials).score, slope * scores + offset, atol=1e-7)


@pytest.mark.parametrize("method", ["affine", "pav", "fusion"])
@pytest.mark.parametrize("kind", ["raw", "probability"])
def test_a_stored_model_gives_the_same_scores(tmp_path: Path, method: str, kind: str) -> None:
    """What is read back maps other trials to the same bits, and says what it was fitted on."""
    dev, test = world(kind=kind), world(seed=9, kind=kind)
    model = fit_fused(dev) if method == "fusion" else fit_calibration(dev["a"], method)
    model.write(tmp_path / "model.json")
    again = read_model(tmp_path / "model.json")
    given = test if method == "fusion" else test["a"]
    assert again == model
    assert again.apply(given).score.tolist() == model.apply(given).score.tolist()
    assert again.apply(given).header.choices == model.apply(given).header.choices


def test_an_edited_model_is_refused(tmp_path: Path) -> None:
    """One digit, one unknown field, a missing seal: none is used."""
    path = tmp_path / "model.json"
    fit_calibration(world()["a"]).write(path)
    sound = json.loads(path.read_text())
    edited = {**sound, "mapping": {**sound["mapping"], "slope": 1.0}}
    unknown = artifacts.sealed({**sound, "more": 1})
    bare = {k: v for k, v in sound.items() if k != "digest"}
    other = artifacts.sealed({**sound, "method": "magic"})
    for data, code in (
        (edited, "edited-artifact"),
        (unknown, "malformed-score-model"),
        (bare, "unsealed-artifact"),
        (other, "malformed-score-model"),
    ):
        path.write_text(json.dumps(data))
        with pytest.raises(DataError) as error:
            read_model(path)
        assert error.value.code == code


def test_a_model_refuses_what_it_was_not_fitted_for() -> None:
    """Another positive class, another kind of score, other systems."""
    dev = world()
    model = fit_calibration(dev["a"])
    with pytest.raises(UsageError, match="probability"):
        model.apply(world(kind="probability")["a"])
    with pytest.raises(UsageError, match="only one has"):
        fit_fused(dev).apply({"a": dev["a"], "c": dev["b"]})


def test_the_fit_set_is_recognised_by_its_hash() -> None:
    """A model applied to the trials that it was fitted on says that the numbers are optimistic."""
    trials = world()["a"]
    model = fit_calibration(trials)
    assert any("optimistic" in note for note in model.apply(trials).header.notes)
    assert not any("optimistic" in note for note in model.apply(world(seed=8)["a"]).header.notes)


def test_no_unit_is_in_two_folds() -> None:
    """Whole speakers are held out, in folds of about equal size, whatever the order of the rows."""
    trials = world()["a"]
    fold = folds_of(trials, ("speaker",), 5, 0)
    speakers = trials.frame["speaker"].to_list()
    homes: dict[str, set[int]] = {}
    for name, own in zip(speakers, fold.tolist(), strict=True):
        homes.setdefault(name, set()).add(own)
    assert all(len(own) == 1 for own in homes.values())
    assert sorted(np.bincount([next(iter(own)) for own in homes.values()])) == [8] * 5
    turned = Trials.of(trials.label[::-1], trials.score[::-1], item=trials.items[::-1], speaker=speakers[::-1])
    assert folds_of(turned, ("speaker",), 5, 0).tolist() == fold.tolist()[::-1]


def test_held_out_scores_come_from_models_without_the_trial() -> None:
    """Each fold's scores are those of a model fitted by hand on the other folds."""
    trials = world()["a"]
    fold = folds_of(trials, ("speaker",), 4, 1)
    found = cross_validate({"a": trials}, lambda s: fit_calibration(s["a"]), unit="speaker", folds=4, seed=1)
    for one in range(4):
        slope, offset = independent(trials.label[fold != one], trials.score[fold != one, None], 0.5)
        np.testing.assert_allclose(found.score[fold == one], slope * trials.score[fold == one] + offset, atol=1e-7)
    assert not any("optimistic" in note for note in found.header.notes)


def test_cross_validation_is_not_optimistic() -> None:
    """With few trials, the fit on all of them looks better on itself than held-out scores do."""
    gains = []
    for seed in range(20):
        systems = world(n=60, seed=seed)
        same = fit_fused(systems).apply(systems)
        held = cross_validate(systems, lambda s: fit_fused(s), unit="speaker", folds=5)
        gains.append(hm.metrics.cllr(held.label, held.score) - hm.metrics.cllr(same.label, same.score))
    assert np.mean(gains) > 0.01


def test_the_prior_of_costs() -> None:
    """The operating point of ASVspoof 5, and equal costs."""
    assert cost_prior(0.95, 1.0, 10.0) == pytest.approx(0.95 / (0.95 + 0.5))
    assert cost_prior(0.3) == pytest.approx(0.3)
    with pytest.raises(UsageError):
        cost_prior(0.0)
