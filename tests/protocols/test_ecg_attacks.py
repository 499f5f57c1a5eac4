"""The ECG document: its code runs as written, its names mean what it says, and where it is silent nothing is guessed."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import hitmiss.protocols.ecg_attacks as documented
from hitmiss.attacks.peaks import detect_all
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.registry import all_metrics
from hitmiss.metrics import robustness
from hitmiss.protocols.ecg_attacks import (
    AttackResult,
    PerturbationConfig,
    apply_perturbation,
    binarize_predictions,
    compute_global_metrics,
    compute_smoothness,
    compute_targeted_success,
    compute_untargeted_asr,
    plot_asr_vs_strength,
    plot_classwise_metric_bars,
    plot_norm_distributions,
    predict_proba_batch,
    predict_proba_single,
    results_to_dataframe,
    run_attack_on_sample,
    run_attacks_on_samples,
    summarize_norms,
    summarize_smoothness,
    summarize_success,
)
from hitmiss.simulate.ecg import simulate
from hitmiss.simulate.ecg_detector import ConvBaseline

NAMES = (
    "AttackResult", "PerturbationConfig", "apply_perturbation", "predict_proba_single", "predict_proba_batch", "binarize_predictions",
    "compute_smoothness", "run_attack_on_sample", "compute_untargeted_asr", "compute_targeted_success", "compute_global_metrics",
    "results_to_dataframe", "summarize_norms", "summarize_smoothness", "plot_asr_vs_strength", "plot_norm_distributions",
    "plot_classwise_metric_bars",
)  # fmt: skip

FIELDS = (
    "record_id", "ptype", "strength", "center_time", "window_seconds", "target_class", "target_mode", "config_extra", "y_true",
    "y_hat_clean", "y_hat_adv", "y_proba_clean", "y_proba_adv", "delta_norm_l2", "delta_norm_linf", "delta_smoothness",
    "untargeted_success", "targeted_success",
)  # fmt: skip

EXAMPLE = """
result, x_adv = run_attack_on_sample(
    model,
    X_test[idx],
    y_test_enc[idx],
    config,
    fs=sampling_rate,
    rng=np.random.default_rng(123),
    r_peaks=r_peaks_cache[idx],   # required for morph_* configs
)
"""

WORKFLOW = """
results = []
for idx in sample_indices:
    res, _ = run_attack_on_sample(model, X_test[idx], y_test_enc[idx], config, fs=100, r_peaks=r_peaks_cache[idx])
    results.append(res)
"""

METRICS = """
asr = compute_untargeted_asr(results)
success_force, n_force = compute_targeted_success(results, 'MI', 'force')
"""

SUMMARIES = """
norm_summary = summarize_norms(results)
fig, ax = plot_asr_vs_strength(results)
"""

NOTEBOOK = """
norm_summary = summarize_norms(noise_results)
display(norm_summary)
"""


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """What the document's code speaks of."""
    train, test = simulate(200, 0, "train"), simulate(12, 0, "test")
    model = ConvBaseline.fit(train.x, train.y)
    peaks = detect_all(test.x, 100.0)
    shown: list[Any] = []
    return {
        "model": model, "X_test": test.x, "y_test_enc": test.y, "r_peaks_cache": peaks, "sampling_rate": 100, "idx": 3,
        "sample_indices": range(12), "display": shown.append, "np": np, **{name: getattr(documented, name) for name in NAMES},
    }  # fmt: skip


def test_every_documented_name_is_there() -> None:
    assert set(NAMES) <= set(documented.__all__)
    assert tuple(f.name for f in dataclasses.fields(AttackResult))[:18] == FIELDS


@pytest.mark.parametrize("ptype", ["baseline_wander", "band_noise", "morph_amp", "morph_time"])
def test_the_document_as_written(names: dict[str, Any], ptype: str) -> None:
    pytest.importorskip("pandas")
    config = PerturbationConfig(
        ptype=ptype, strength=0.5, center_time=5.0, window_seconds=4.0, target_class="MI", target_mode="force"
    )
    space = {**names, "config": config}
    for code in (EXAMPLE, WORKFLOW, METRICS, SUMMARIES):
        exec(code, space)
    exec(NOTEBOOK, {**space, "noise_results": space["results"]})
    assert space["x_adv"].shape == (1000, 12) and len(space["results"]) == 12
    assert space["n_force"] == 12 and 0 <= space["asr"] <= 1
    assert space["norm_summary"]["count"].tolist() == [12]
    assert space["ax"].get_xlabel() == "strength"


def test_steps_of_the_runner(names: dict[str, Any]) -> None:
    model, x, y = names["model"], names["X_test"][0], names["y_test_enc"][0]
    config = PerturbationConfig("band_noise", 1.0, 5.0, extra={"beta": 2.0, "record_id": "r7"})
    rng = np.random.default_rng
    result, x_adv = run_attack_on_sample(model, x, y, config, fs=100, rng=rng(1))
    assert np.array_equal(x_adv, apply_perturbation(x, config, fs=100, rng=rng(1)))
    np.testing.assert_allclose(result.y_proba_clean, predict_proba_single(model, x), rtol=1e-6)
    np.testing.assert_allclose(result.y_proba_adv, model.predict(x_adv[None])[0], rtol=1e-5)
    assert np.array_equal(result.y_hat_adv, binarize_predictions(result.y_proba_adv))
    delta = x_adv - x
    assert (
        result.delta_norm_l2 == pytest.approx(np.sqrt((delta**2).sum()))
        and result.delta_norm_linf == np.abs(delta).max()
    )
    assert result.delta_smoothness == pytest.approx((np.diff(delta, axis=0) ** 2).mean()) == compute_smoothness(delta)
    assert (
        result.record_id == "r7" and result.config_extra == {"beta": 2.0, "record_id": "r7"} and result.threshold == 0.5
    )
    assert (
        result.untargeted_success == bool((result.y_hat_clean != result.y_hat_adv).any())
        and result.targeted_success is None
    )
    plain, _ = run_attack_on_sample(model, x, y, config, fs=100, compute_delta_smoothness=False)
    assert plain.delta_smoothness is None


@pytest.mark.parametrize(
    "ptype", ["baseline_wander", "band_noise", "morph_amp", "morph_time", "random_search", "muscle"]
)
def test_strength_nought_is_the_record(names: dict[str, Any], ptype: str) -> None:
    x = names["X_test"][0]
    result, same = run_attack_on_sample(
        names["model"], x, names["y_test_enc"][0], PerturbationConfig(ptype, 0.0, 5.0), fs=100
    )
    assert np.array_equal(same, x) and same is not x
    assert result.delta_norm_l2 == 0 and not result.untargeted_success and result.snr_db == np.inf


def test_peaks_that_were_found_are_mentioned(names: dict[str, Any]) -> None:
    config = PerturbationConfig("morph_amp", 0.5, 5.0)
    given = {"fs": 100, "rng": np.random.default_rng(0)}
    result, _ = run_attack_on_sample(names["model"], names["X_test"][0], names["y_test_enc"][0], config, **given)
    assert result.notes == ("R peaks detected by hitmiss",)
    result, _ = run_attack_on_sample(
        names["model"], names["X_test"][0], names["y_test_enc"][0], config, r_peaks=names["r_peaks_cache"][0], **given
    )
    assert result.notes == ()


def test_many_at_once_are_the_same_as_one_by_one(names: dict[str, Any]) -> None:
    x, y = names["X_test"], names["y_test_enc"]
    configs = [
        PerturbationConfig("band_noise", 0.1 * (i % 5), 5.0, None if i % 2 else 3.0, extra={"beta": 1.0})
        for i in range(12)
    ]
    together, changed = run_attacks_on_samples(names["model"], x, y, configs, fs=100)
    for i in (0, 1, 7):
        alone, one = run_attacks_on_samples(names["model"], x[[i]], y[[i]], [configs[i]], fs=100, record_ids=[i])
        assert np.array_equal(one[0], changed[i]) and alone[0].delta_norm_l2 == together[i].delta_norm_l2
        np.testing.assert_allclose(alone[0].y_proba_adv, together[i].y_proba_adv, rtol=1e-5)


def test_other_layouts_on_request(names: dict[str, Any]) -> None:
    x, config = names["X_test"][0], PerturbationConfig("band_noise", 0.5, 5.0)
    turned = apply_perturbation(x.T, config, fs=100, layout="lead_sample")
    assert np.array_equal(turned.T, apply_perturbation(x, config, fs=100))


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"ptype": "band_nose"}, "did you mean 'band_noise'"),
        ({"strength": 1.5}, "between 0 and 1"),
        ({"target_mode": "force"}, "needs a target_class"),
        ({"target_class": "MI", "target_mode": "force", "extra": {"target_mode": "suppress"}}, "give only one of them"),
        ({"target_class": "MI", "target_mode": "forse"}, "did you mean 'force'"),
        ({"extra": {"bta": 1.0}}, "did you mean 'beta'"),
        ({"extra": {"attack_from": "truth"}}, "y_true"),
    ],
)
def test_wrong_configurations_are_refused(settings: dict[str, Any], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        PerturbationConfig(**{"ptype": "band_noise", "strength": 0.5, "center_time": 5.0, **settings})


def test_what_was_used_is_stored() -> None:
    assert PerturbationConfig("Band_Noise", 0.5, 5.0, target_class="MI").mode == "force"
    assert (
        PerturbationConfig("band_noise", 0.5, 5.0, target_class="MI", extra={"target_mode": "suppress"}).mode
        == "suppress"
    )


def test_gradient_families_say_what_they_need(names: dict[str, Any]) -> None:
    blind = lambda X: np.full((len(X), 5), 0.5)  # noqa: E731
    for family in ("smooth_adv", "pgd", "sap", "fgsm"):
        with pytest.raises(UsageError, match="needs gradients"):
            run_attack_on_sample(
                blind, names["X_test"][0], names["y_test_enc"][0], PerturbationConfig(family, 0.5, 5.0), fs=100
            )
    with pytest.raises(UsageError, match="needs a model"):
        apply_perturbation(
            names["X_test"][0], PerturbationConfig("pgd", 0.5, 5.0), fs=100, y_true=names["y_test_enc"][0]
        )


class Keras:
    """Something with `.predict` that talks unless told not to."""

    def __init__(self) -> None:
        self.verbose: list[Any] = []

    def fit(self) -> None: ...

    def predict(self, x: Any, verbose: Any = "auto") -> Any:
        self.verbose.append(verbose)
        return np.clip(x.mean(axis=(1, 2)), 0, 1)[:, None] * np.ones(5)


class Estimator:
    """A fitted estimator on flat records."""

    def fit(self) -> None: ...

    def predict_proba(self, x: Any) -> Any:
        assert x.ndim == 2
        return [np.stack([1 - x[:, 0], x[:, 0]], axis=1)] * 5


def test_kinds_of_models() -> None:
    x = np.full((3, 20, 2), 0.25)
    keras = Keras()
    assert predict_proba_batch(keras, x).shape == (3, 5) and set(keras.verbose) == {0}
    np.testing.assert_allclose(predict_proba_batch(Estimator(), x), 0.25)
    np.testing.assert_allclose(predict_proba_batch(lambda X: X.mean(axis=1), x), 0.25)
    with pytest.raises(DataError, match="must be probabilities"):
        predict_proba_batch(lambda X: X.sum(axis=1) - 9, x)
    with pytest.raises(DataError, match="one row for each"):
        predict_proba_batch(lambda X: X[:1].mean(axis=1), x)
    with pytest.raises(UsageError, match="not a model"):
        predict_proba_batch(7, x)
    with pytest.raises(DataError, match="sample × lead"):
        predict_proba_single(keras, x)


def result(
    clean: Any,
    adv: Any,
    truth: Any = None,
    *,
    target: str | None = None,
    mode: str | None = None,
    ptype: str = "pgd",
    strength: float = 0.5,
) -> AttackResult:
    before, after = np.asarray(clean), np.asarray(adv)
    at = None if target is None else ("CD", "MI").index(target)
    hit = None if at is None else bool(after[at] == 1) if mode == "force" else bool(before[at] == 1 and after[at] == 0)
    return AttackResult(
        None, ptype, strength, 5.0, None, target, mode, {"beta": 1, "strength": 9}, np.asarray(clean if truth is None else truth), before, after,
        before * 0.8, after * 0.8, 0.3, 0.01, 1e-5, bool((before != after).any()), hit, classes=("CD", "MI"),
    )  # fmt: skip


def test_rates_of_nothing_are_no_rates() -> None:
    assert np.isnan(compute_untargeted_asr([]))
    rate, count = compute_targeted_success([], "MI", "force")
    assert np.isnan(rate) and count == 0
    with pytest.raises(UnknownName, match="force"):
        compute_targeted_success([], "MI", "froce")


def test_targeted_success_as_documented_and_among_the_eligible() -> None:
    force = [result([0, b], [0, a], target="MI", mode="force") for b, a in ((1, 1), (0, 1), (0, 0), (0, 0))]
    assert compute_targeted_success(force, class_name="MI", mode="force") == (0.5, 4)
    assert compute_targeted_success(force, "MI", "force", eligible_only=True) == (pytest.approx(1 / 3), 3)
    suppress = [result([0, b], [0, a], target="MI", mode="suppress") for b, a in ((1, 0), (0, 0), (0, 1), (1, 1))]
    assert compute_targeted_success(suppress, "MI", "suppress") == (0.25, 4)
    assert compute_targeted_success(suppress, "MI", "suppress", eligible_only=True) == (0.5, 2)
    assert compute_targeted_success(force + suppress, "CD", "force")[1] == 0
    pytest.importorskip("pandas")
    table = summarize_success(force).to_dict("records")[0]
    assert (table["targeted"], table["n_eligible"], table["base_rate"]) == (0.5, 3, 0.25)


def test_data_frames() -> None:
    pytest.importorskip("pandas")
    results = [result([0, 1], [1, 1]), result([0, 1], [0, 1], strength=0.7)]
    frame = results_to_dataframe(results)
    assert frame["strength"].tolist() == [0.5, 0.7] and frame["extra_strength"].tolist() == [9, 9]
    assert not any(c.startswith("y_") for c in frame.columns)
    wide = results_to_dataframe(results, include_probabilities=True, include_vectors=True)
    assert {"y_true", "y_hat_clean", "y_hat_adv", "y_proba_clean", "y_proba_adv"} <= set(wide.columns)
    norms = summarize_norms(results)
    assert norms["count"].tolist() == [1, 1] and norms["delta_norm_l2_std"].isna().all()
    assert summarize_smoothness(results + results)["delta_smoothness_std"].tolist() == [0.0, 0.0]
    assert len(results_to_dataframe([])) == 0


def test_global_metrics_against_scikit_learn() -> None:
    from sklearn.metrics import f1_score, precision_score, recall_score, roc_auc_score

    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, (60, 5))
    proba = np.clip(0.3 * truth + 0.7 * rng.random((60, 5)), 0, 1)
    truth[:, 2] = 1
    found = compute_global_metrics(truth, proba, [0.5, 0.4, 0.5, 0.6, 0.5])
    assert found.undefined == {"MI": "only positives"} and np.isnan(found["MI"]["auc"])
    for k, name in enumerate(documented.CLASSES):
        bits = proba[:, k] >= [0.5, 0.4, 0.5, 0.6, 0.5][k]
        if name != "MI":
            assert found[name]["auc"] == pytest.approx(roc_auc_score(truth[:, k], proba[:, k]))
        for metric, function in (("precision", precision_score), ("recall", recall_score), ("f1", f1_score)):
            assert found[name][metric] == pytest.approx(function(truth[:, k], bits))
    with pytest.raises(DataError, match="one shape"):
        compute_global_metrics(truth, proba[:, :2])


bits = hnp.arrays(np.int8, st.tuples(st.integers(1, 12), st.just(3)), elements=st.integers(0, 1))


@given(st.data())
def test_laws_of_success(data: st.DataObject) -> None:
    clean = data.draw(bits)
    adv = data.draw(hnp.arrays(np.int8, clean.shape, elements=st.integers(0, 1)))
    truth = data.draw(hnp.arrays(np.int8, clean.shape, elements=st.integers(0, 1)))
    n = len(clean)
    moved = (clean != adv).any(axis=1)
    was_right, is_right = ((truth == given).all(axis=1) for given in (clean, adv))
    assert robustness.changed(np.zeros(n)) == 0
    assert robustness.changed(moved) == np.mean(moved)
    assert robustness.exact_match(is_right) == np.mean(is_right)
    robust = robustness.robust_accuracy(was_right, is_right)
    assert robust.hits == np.sum(was_right & ~moved) <= np.sum(is_right)
    correct = robustness.changed_correct(moved, was_right)
    assert robust.hits == correct.of - correct.hits
    for k in range(3):
        reached, is_open = adv[:, k] == 1, clean[:, k] == 0
        force, base, eligible = (
            robustness.target_success(reached),
            robustness.target_base(is_open),
            robustness.target_eligible(reached, is_open),
        )
        assert base.hits + eligible.of == n and force.hits <= base.hits + eligible.hits
        lost, induced, flipped = (
            f(adv[:, k], clean[:, k]) for f in (robustness.lost, robustness.induced, robustness.flipped)
        )
        assert lost.hits + induced.hits == flipped.hits and lost.of + induced.of == flipped.of == n
    order = data.draw(st.permutations(range(n)))
    assert robustness.changed(moved[order]) == robustness.changed(moved)
    twice = data.draw(hnp.arrays(np.int64, n, elements=st.integers(1, 3)))
    repeated = robustness.changed_correct(np.repeat(moved, twice), np.repeat(was_right, twice))
    weighted = robustness.changed_correct(moved, was_right, weight=twice)
    assert (repeated.hits, repeated.of) == (weighted.hits, weighted.of)


@given(st.integers(0, 2**32 - 1))
def test_mean_areas_under_weights_are_those_of_repeated_records(seed: int) -> None:
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(seed)
    label, score = rng.permuted([[1, 1, 1, 0, 0, 0]] * 2, axis=1).T, rng.integers(0, 4, (6, 2)) / 4
    weights = rng.integers(0, 3, 6)
    y, s = np.repeat(label, weights, axis=0), np.repeat(score, weights, axis=0)
    both = [k for k in range(2) if len(y) and 0 < y[:, k].sum() < len(y)]
    expected = np.mean([roc_auc_score(y[:, k], s[:, k]) for k in both]) if both else np.nan
    np.testing.assert_allclose(robustness.macro_auc(label, score, weights), expected)
    form = all_metrics()["macro_auc"].form()
    replicate = form.of_weights({"class_labels": label, "class_scores": score}, weights[None].astype(float))
    whole = sorted(both) == [0, 1]  # a class that lost one side in a replicate leaves the mean undefined there
    np.testing.assert_allclose(replicate, [expected if whole else np.nan])


def test_figures_show_what_the_results_say() -> None:
    results = [result([0, 1], [1, 1], strength=s, ptype=p) for p in ("pgd", "band_noise") for s in (0.1, 0.5)]
    _, axes = plot_asr_vs_strength(results)
    assert len(axes.get_legend_handles_labels()[1]) == 2
    _, both = plot_norm_distributions(results)
    assert len(both) == 2
    metrics = {
        name: compute_global_metrics([[1, 0], [0, 0]], [[0.9, 0.1], [0.1, 0.2]], classes=("MI", "CD"))
        for name in ("clean", "pgd")
    }
    _, axes = plot_classwise_metric_bars(metrics)
    assert [t.get_text() for t in axes.get_xticklabels()] == ["MI", "CD", "macro"]
    with pytest.raises(DataError, match="no results"):
        plot_asr_vs_strength([])
    with pytest.raises(UnknownName, match="auc"):
        plot_classwise_metric_bars(metrics, "acu")


def test_the_public_star() -> None:
    space: dict[str, Any] = {}
    exec("from hitmiss.protocols.ecg_attacks import *", space)
    assert set(NAMES) <= set(space)


def test_without_a_generator_every_record_has_noise_of_its_own() -> None:
    x = np.random.default_rng(0).normal(size=(2, 200, 12))
    config = PerturbationConfig("band_noise", 1.0, 0.0)
    one, again, other = (apply_perturbation(r, config, fs=100) - r for r in (x[0], x[0], x[1]))
    assert np.array_equal(one, again)
    assert abs(np.corrcoef(one[:, 0], other[:, 0])[0, 1]) < 0.5
