"""Gradient attacks on torch models: budgets, aims, windows, early stop, finite differences, and ART's own PGD."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hitmiss.attacks.config import PerturbationConfig
from hitmiss.attacks.gradient import Problem, solve, within_budget
from hitmiss.attacks.leads import consistent, violation
from hitmiss.attacks.methods import METHODS, find_method, sap_kernel
from hitmiss.attacks.model import as_classifier
from hitmiss.attacks.windows import hann_window
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.protocols.ecg_attacks import PerturbationConfig as Documented
from hitmiss.protocols.ecg_attacks import run_attack_on_sample, run_attacks_on_samples
from hitmiss.simulate.ecg import simulate

N, T, C = 10, 200, 5


def gradient_of(model: Any, x: Any, reference: Any) -> Any:
    """The gradient of the mean binary cross-entropy to `reference` at each signal: record × sample × lead."""
    import torch

    variable = torch.tensor(np.asarray(x, dtype=np.float32).transpose(0, 2, 1)).requires_grad_(True)
    aim = torch.tensor(np.asarray(reference, dtype=np.float32))
    out = model.need_gradient("a gradient")(variable)
    losses = torch.nn.functional.binary_cross_entropy_with_logits(out, aim, reduction="none")
    (gradient,) = torch.autograd.grad(losses.mean(dim=1).sum(), variable)
    return gradient.double().numpy().transpose(0, 2, 1)


def test_settings_by_the_documents_names() -> None:
    method = find_method("smooth_adv", eps_global_max=0.8, lr=0.02, lambda_smooth=1.0)
    assert (method.eps_max, method.adam, method.lambda_smooth, method.steps) == (0.8, 0.02, 1.0, 200)
    assert METHODS["smooth_adv"].eps_max == 0.5 and METHODS["smooth_adv"].lambda_energy == 0.5
    with pytest.raises(UnknownName, match="steps"):
        find_method("pgd", stps=5)
    assert Documented is PerturbationConfig


def test_the_sap_kernel_is_the_mean_of_the_twenty_five() -> None:
    kernel, at = np.zeros(19), np.arange(-9, 10)
    for size in (5, 7, 11, 15, 19):
        for sigma in (1, 3, 5, 7, 10):
            bell = np.exp(-0.5 * (at / sigma) ** 2) * (np.abs(at) <= size // 2)
            kernel += bell / bell.sum() / 25
    np.testing.assert_allclose(sap_kernel(300.0), kernel, atol=1e-15)


def test_projection_in_float64() -> None:
    delta = np.random.default_rng(0).normal(size=(5, 20, 3))
    budget = np.array([0.1, 1.0, 5.0, 1e-3, 0.0])
    for norm, size in (
        ("linf", lambda d: np.abs(d).max(axis=(1, 2))),
        ("l2", lambda d: np.linalg.norm(d.reshape(5, -1), axis=1)),
    ):
        out = within_budget(delta, budget, norm)
        assert (size(out) <= budget + 1e-12).all()
        assert np.array_equal(out[2], delta[2]) or norm == "l2"


extras = pytest.mark.extras


def network(seed: int = 0, lead_sample: bool = True) -> Any:
    torch = pytest.importorskip("torch")
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    layers = [
        torch.nn.Conv1d(12, 8, 7, stride=2), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Conv1d(8, 8, 5, stride=2), torch.nn.Tanh(),
        torch.nn.AdaptiveAvgPool1d(4), torch.nn.Flatten(), torch.nn.Linear(32, C),
    ]  # fmt: skip

    class Turned(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Sequential(*layers)

        def forward(self, x: Any) -> Any:
            return self.inner(x if lead_sample else x.transpose(1, 2))

    module = Turned().eval()
    for p in module.parameters():
        p.data *= 3.0
    return module


@pytest.fixture
def model() -> Any:
    return as_classifier(network(), layout="lead_sample", outputs="logit")


@pytest.fixture(scope="module")
def x() -> np.ndarray:
    return simulate(N).x[:, :T]


def truth(model: Any, x: np.ndarray) -> np.ndarray:
    return (model.proba(x) >= 0.5).astype(float)


def problem(model: Any, x: np.ndarray, eps: float, **changes: Any) -> Problem:
    base = Problem(
        x, truth(model, x), np.full(len(x), -1), np.zeros(len(x)), np.full(len(x), eps), np.ones((len(x), T))
    )
    return replace(base, **changes)


@extras
@pytest.mark.parametrize("family", sorted(METHODS))
@pytest.mark.parametrize("is_consistent", [False, True])
@pytest.mark.parametrize("windowed", [False, True])
def test_every_family_keeps_its_budget(
    model: Any, x: np.ndarray, family: str, is_consistent: bool, windowed: bool
) -> None:
    method = find_method(family, steps=min(METHODS[family].steps, 12))
    budget = np.linspace(0.001, 1.0, N) * method.eps_max
    window = np.stack([hann_window(T, 100.0, 1.0, 0.8 if windowed else None)] * N)
    out = solve(
        model,
        problem(model, x, 0.0, budget=budget, window=window, lead_consistent=is_consistent),
        method,
        family,
        batch=4,
    )
    flat = np.abs(out.delta).reshape(N, -1)
    size = flat.max(axis=1) if method.norm == "linf" else np.linalg.norm(flat, axis=1)
    assert (size <= budget + 1e-9).all() and (size > 0).all()
    if is_consistent:
        assert violation(out.delta) < 1e-6
    if windowed:
        assert np.abs(out.delta[:, window[0] == 0]).max() == 0
    assert out.n_forward == N * (method.steps + method.adaptive)  # APGD asks at the place where it begins, too


@extras
def test_the_gradient_is_that_of_finite_differences(x: np.ndarray) -> None:
    torch = pytest.importorskip("torch")
    module = network().double()
    signals, bits = x[:2], np.array([[1, 0, 1, 0, 1], [0, 0, 1, 1, 0]], dtype=np.float64)

    def loss(values: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            logits = module(torch.from_numpy(values.transpose(0, 2, 1).copy()))
            each = torch.nn.functional.binary_cross_entropy_with_logits(
                logits, torch.from_numpy(bits), reduction="none"
            )
        return np.asarray(each.mean(dim=1).numpy())

    rng, step, numeric, places = np.random.default_rng(0), 1e-5, [], []
    for _ in range(25):
        r, t, lead = int(rng.integers(2)), int(rng.integers(T)), int(rng.integers(12))
        up, down = signals.copy(), signals.copy()
        up[r, t, lead] += step
        down[r, t, lead] -= step
        numeric.append((loss(up) - loss(down))[r] / (2 * step))
        places.append((r, t, lead))
    found = gradient_of(as_classifier(network(), layout="lead_sample", outputs="logit"), signals, bits)
    np.testing.assert_allclose([found[p] for p in places], numeric, rtol=2e-3, atol=1e-6)


@extras
def test_pgd_is_arts_pgd(x: np.ndarray) -> None:
    """The same steps, budget and loss; ART needs a loss module of its own to take several labels at all."""
    torch = pytest.importorskip("torch")
    estimators = pytest.importorskip("art.estimators.classification")
    evasion = pytest.importorskip("art.attacks.evasion")

    class Loss(torch.nn.Module):  # type: ignore[misc,name-defined]
        reduction = "mean"

        def forward(self, logits: Any, aim: Any) -> Any:
            return torch.nn.functional.binary_cross_entropy_with_logits(logits, aim.float())

    module = network()
    model = as_classifier(module, layout="lead_sample", outputs="logit")
    bits = truth(model, x)
    wrapped = estimators.PyTorchClassifier(module, Loss(), input_shape=(12, T), nb_classes=C, clip_values=None)
    for norm, name, eps in ((np.inf, "pgd", 0.05), (2, "pgd_l2", 0.5)):
        theirs = evasion.ProjectedGradientDescentPyTorch(
            wrapped, norm=norm, eps=eps, eps_step=eps / 4, max_iter=10, num_random_init=0, batch_size=N, verbose=False
        )
        expected = theirs.generate(x.transpose(0, 2, 1).astype(np.float32), bits).transpose(0, 2, 1) - x
        method = find_method(name, eps_max=eps, steps=10, step=0.25)
        ours = solve(model, problem(model, x, eps, reference=bits), method, name, batch=N).delta
        agree = np.abs(ours - expected) < 1e-4 * eps + 2e-6
        assert agree.mean() > 0.999, f"{name}: {agree.mean():.4%} agree"


@extras
def test_early_stop_flips_no_fewer_with_fewer_passes(model: Any, x: np.ndarray) -> None:
    before = truth(model, x)
    whole = PerturbationConfig("pgd", 1.0, 0.0, extra={"attack_from": "prediction", "eps_max": 0.2})
    quick = replace(whole, extra={**whole.extra, "early_stop": True})
    long, _ = run_attacks_on_samples(model, x, before, whole, fs=100)
    forward = model.n_forward
    short, _ = run_attacks_on_samples(model, x, before, quick, fs=100)
    used = model.n_forward - forward
    assert sum(r.untargeted_success for r in short) >= sum(r.untargeted_success for r in long) > 0
    assert used < 20 * N
    assert all(a.delta_norm_l2 <= b.delta_norm_l2 * 1.5 + 1e-9 for a, b in zip(short, long, strict=True))


@extras
def test_each_record_has_its_own_strength_window_and_aim(model: Any, x: np.ndarray) -> None:
    bits = truth(model, x)
    names = ("CD", "HYP", "MI", "NORM", "STTC")
    configs = [
        PerturbationConfig("pgd", 0.1 * (i + 1), 1.0, None if i % 2 else 0.6, names[i % 5], "suppress" if bits[i, i % 5] else "force", {"eps_max": 0.3})
        for i in range(N)
    ]  # fmt: skip
    together, changed = run_attacks_on_samples(model, x, bits, configs, fs=100)
    for i, (one, config) in enumerate(zip(together, configs, strict=True)):
        assert one.delta_norm_linf <= config.strength * 0.3 + 1e-9
        assert one.is_eligible and one.target_mode == config.mode
        alone, x_adv = run_attack_on_sample(model, x[i], bits[i], config, fs=100)
        assert np.array_equal(alone.y_hat_adv, one.y_hat_adv)
        assert np.mean(np.abs(x_adv - changed[i]) < 1e-6) > 0.97  # signs of gradients that are nearly 0 are rounding
        before, after = (p[i % 5] for p in (one.y_proba_clean, one.y_proba_adv))
        assert (after < before) if config.mode == "suppress" else (after > before)


@extras
def test_the_documents_targeted_loss_is_an_option(model: Any, x: np.ndarray) -> None:
    bits = truth(model, x)
    made = [
        PerturbationConfig(
            "smooth_adv", 1.0, 0.0, None, "MI", "force", {"target_loss": how, "steps": 30, "eps_global_max": 2.0}
        )
        for how in ("bit", "vector")
    ]
    single, vector = (run_attacks_on_samples(model, x, bits, config, fs=100)[0] for config in made)
    raised = [np.mean([r.y_proba_adv[2] - r.y_proba_clean[2] for r in results]) for results in (single, vector)]
    assert raised[0] >= raised[1] > 0


@extras
def test_sap_is_smoother_than_pgd(model: Any, x: np.ndarray) -> None:
    bits = truth(model, x)
    smooth, rough = (
        run_attacks_on_samples(model, x, bits, PerturbationConfig(name, 1.0, 0.0), fs=100)[0] for name in ("sap", "pgd")
    )
    assert np.mean([r.delta_smoothness for r in smooth]) < 0.3 * np.mean([r.delta_smoothness for r in rough])


@extras
def test_gradient_is_nothing_for_a_saturated_model(x: np.ndarray) -> None:
    torch = pytest.importorskip("torch")

    class Dead(torch.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, z: Any) -> Any:
            return torch.relu(z.mean(dim=2)[:, :C] - 1e3) - 1.0

    results, _ = run_attacks_on_samples(
        as_classifier(Dead(), layout="lead_sample"), x, np.zeros((N, C)), PerturbationConfig("pgd", 1.0, 0.0), fs=100
    )
    assert all(r.zero_gradient for r in results) and not any(r.untargeted_success for r in results)


@extras
def test_layouts_and_kinds_of_torch_models(x: np.ndarray) -> None:
    torch = pytest.importorskip("torch")
    one = as_classifier(network(), layout="lead_sample", outputs="logit")
    other = as_classifier(network(lead_sample=False), outputs="logit")
    np.testing.assert_allclose(one.proba(x), other.proba(x), rtol=1e-4, atol=1e-6)
    squashed = as_classifier(torch.nn.Sequential(network(), torch.nn.Sigmoid()), layout="lead_sample")
    np.testing.assert_allclose(squashed.proba(x), one.proba(x), rtol=1e-4, atol=1e-6)
    bits = truth(one, x)
    a, b = (run_attacks_on_samples(m, x, bits, PerturbationConfig("fgsm", 1.0, 0.0), fs=100)[1] for m in (one, other))
    assert np.mean(np.abs(a - b) < 1e-6) > 0.999

    class Unsaid(torch.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, z: Any) -> Any:
            return torch.sigmoid(z.mean(dim=2)[:, :C]) * 0.5 + 0.25

    with pytest.raises(DataError, match="say which"):  # its last step is neither a product nor a sigmoid
        as_classifier(Unsaid(), layout="lead_sample").proba(x)


@extras
@pytest.mark.filterwarnings("ignore")
def test_onnx_models_have_the_gradients_of_their_torch_twins(x: np.ndarray, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    pytest.importorskip("onnxruntime")
    from hitmiss.detection.opening import open_detector

    module = torch.nn.Sequential(
        torch.nn.Conv1d(12, 8, 7, stride=2, padding=3), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.MaxPool1d(2),
        torch.nn.Conv1d(8, 8, 5, padding=2, bias=False), torch.nn.GELU(), torch.nn.AdaptiveAvgPool1d(1), torch.nn.Flatten(), torch.nn.Linear(8, C),
    ).eval()  # fmt: skip
    path = str(tmp_path / "model.onnx")
    torch.onnx.export(
        module,
        (torch.zeros(2, 12, T),),
        path,
        input_names=["ecg"],
        output_names=["logits"],
        dynamic_shapes=({0: "n"},),
        dynamo=True,
        verbose=False,
    )
    onnx = as_classifier(open_detector(path, device="cpu"), layout="lead_sample")
    twin = as_classifier(module, layout="lead_sample", outputs="logit")
    np.testing.assert_allclose(onnx.log_odds(x), twin.log_odds(x), atol=1e-4)
    bits = truth(twin, x)
    np.testing.assert_allclose(gradient_of(onnx, x, bits), gradient_of(twin, x, bits), atol=1e-6)


@extras
def test_hop_skip_jump_through_the_powerset(x: np.ndarray) -> None:
    pytest.importorskip("art.attacks.evasion")
    pytest.importorskip("torch")
    model = as_classifier(network(), layout="lead_sample", outputs="logit")
    bits = truth(model, x)
    config = PerturbationConfig("hop_skip_jump", 1.0, 0.0, extra={"iterations": 2, "evaluations": 10, "eps_max": 100.0})
    results, _ = run_attacks_on_samples(model, x[:2], bits[:2], config, fs=100)
    assert all(r.untargeted_success and r.delta_norm_l2 <= 100.0 for r in results)
    with pytest.raises(UsageError, match="cannot aim"):
        run_attacks_on_samples(model, x[:1], bits[:1], replace(config, target_class="MI"), fs=100)


def hopping(eps: float, **extra: Any) -> PerturbationConfig:
    return PerturbationConfig(
        "hop_skip_jump", 1.0, 5.0, extra={"iterations": 3, "evaluations": 20, "eps_max": eps, **extra}
    )


@extras
def test_hop_skip_jump_counts_what_fits_its_budget(x: np.ndarray) -> None:
    """A success is a flip within the budget: applied again, alone and together, the stored change flips the record."""
    pytest.importorskip("art.attacks.evasion")
    pytest.importorskip("torch")
    model = as_classifier(network(), layout="lead_sample", outputs="logit")
    bits, clean = truth(model, x), (model.proba(x[:4]) >= 0.5)
    free, _ = run_attacks_on_samples(model, x[:4], bits[:4], hopping(1e6), fs=100)
    sizes = sorted(r.delta_norm_l2 for r in free)
    assert all(r.untargeted_success and not r.notes for r in free)
    budget = (sizes[1] + sizes[2]) / 2  # two of the flips that were found fit, two do not
    results, changed = run_attacks_on_samples(model, x[:4], bits[:4], hopping(budget), fs=100)
    stored = changed.astype(np.float32)
    for i, result in enumerate(results):
        assert result.delta_norm_l2 <= budget + 1e-9
        alone = (model.proba(stored[i : i + 1]) >= 0.5)[0]
        assert result.untargeted_success == bool((alone != clean[i]).any())
        assert result.untargeted_success or "over the budget" in result.notes[0]
    together = ((model.proba(stored) >= 0.5) != clean).any(axis=1)
    assert together.tolist() == [r.untargeted_success for r in results] and 0 < together.sum() < 4
    _, same = run_attacks_on_samples(model, x[:4], bits[:4], hopping(budget), fs=100)
    assert np.array_equal(same, changed)  # every draw comes from the record's own generator


@extras
def test_hop_skip_jump_stops_once_a_flip_fits(x: np.ndarray) -> None:
    pytest.importorskip("art.attacks.evasion")
    pytest.importorskip("torch")
    model = as_classifier(network(), layout="lead_sample", outputs="logit")
    bits, asked = truth(model, x), []
    for early_stop in (True, False):
        before = model.n_forward
        config = hopping(1e6, early_stop=early_stop)
        results, _ = run_attacks_on_samples(model, x[:2], bits[:2], config, fs=100)
        asked.append(model.n_forward - before)
        assert all(r.untargeted_success for r in results)
    assert asked[0] < asked[1]


@extras
def test_hop_skip_jump_keeps_to_its_window_and_to_the_lead_equations(x: np.ndarray) -> None:
    pytest.importorskip("art.attacks.evasion")
    pytest.importorskip("torch")
    model = as_classifier(network(), layout="lead_sample", outputs="logit")
    clean = consistent(x)[:2]
    config = replace(hopping(1e6, lead_consistent=True), window_seconds=2.0, center_time=clean.shape[1] / 200)
    _, changed = run_attacks_on_samples(model, clean, truth(model, clean), config, fs=100)
    window = hann_window(clean.shape[1], 100.0, clean.shape[1] / 200, 2.0)
    assert np.abs(changed - clean)[:, window == 0].max() == 0.0 and violation(changed) < 1e-9


@extras
def test_derived_leads_follow_also_for_signals(model: Any, x: np.ndarray) -> None:
    config = PerturbationConfig("pgd", 1.0, 0.0, extra={"lead_consistent": True})
    clean = consistent(x)
    _, changed = run_attacks_on_samples(model, clean, truth(model, clean), config, fs=100)
    assert violation(changed) < 1e-6
