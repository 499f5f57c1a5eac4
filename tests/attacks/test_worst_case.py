"""Restarts, APGD, the Square attack, and the worst case per record over a fixed ensemble; PGD beside foolbox's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hitmiss.attacks.config import PerturbationConfig
from hitmiss.attacks.gradient import Problem, solve
from hitmiss.attacks.methods import find_method
from hitmiss.attacks.model import Classifier, as_classifier
from hitmiss.attacks.perform import Records, perform
from hitmiss.attacks.queries import random_search

N, T, LEADS = 24, 60, 3
extras = pytest.mark.extras


def signals() -> np.ndarray:
    return np.random.default_rng(0).normal(0, 0.3, (N, T, LEADS))


def softmax_network(seed: int = 0) -> Any:
    torch = pytest.importorskip("torch")
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    return torch.nn.Sequential(
        torch.nn.Conv1d(LEADS, 8, 7, stride=2), torch.nn.Tanh(), torch.nn.Flatten(), torch.nn.Linear(216, 3)
    ).eval()


def classifier(module: Any) -> Classifier:
    return as_classifier(module, layout="lead_sample", outputs="logit", single_label=True)


def attacked(model: Any, x: np.ndarray, family: str, strength: float = 1.0, **extra: Any) -> tuple[np.ndarray, Any]:
    """Which records flip, and what was done."""
    records = Records(x, np.eye(3)[model.proba(x).argmax(axis=1)], 100.0, model, ("a", "b", "c"))
    config = PerturbationConfig(family, strength, 0.0, extra=extra)
    rngs = [np.random.default_rng([7, i]) for i in range(len(x))]
    done = perform(records, range(len(x)), [config] * len(x), rngs)
    assert np.abs(done.x - x).max() <= strength * extra["eps_max"] + 1e-9
    return (records.bits(model.proba(done.x)) != records.clean_bits).any(axis=1), done


def cross_entropy(model: Any, x: np.ndarray, answer: np.ndarray) -> np.ndarray:
    return -np.log(model.proba(x)[np.arange(len(x)), answer])


@extras
def test_pgd_is_foolboxs_pgd() -> None:
    torch, foolbox = pytest.importorskip("torch"), pytest.importorskip("foolbox")
    module, x = softmax_network(), signals()
    model = classifier(module)
    answer = model.proba(x).argmax(axis=1)
    wrapped = foolbox.PyTorchModel(module, bounds=(-100.0, 100.0), device="cpu")
    given = torch.as_tensor(x.transpose(0, 2, 1).astype(np.float32))
    aims, none, ones = np.eye(3)[answer], np.full(N, -1), np.ones((N, T))
    for kind, name, eps in (("Linf", "pgd", 0.05), ("L2", "pgd_l2", 0.5)):
        theirs = getattr(foolbox.attacks, f"{kind}ProjectedGradientDescentAttack")(
            rel_stepsize=0.25, steps=10, random_start=False
        )
        criterion = foolbox.criteria.Misclassification(torch.as_tensor(answer))
        _, expected, _ = theirs(wrapped, given, criterion, epsilons=eps)
        problem = Problem(x, aims, none, np.zeros(N), np.full(N, eps), ones, single_label=True)
        ours = solve(model, problem, find_method(name, eps_max=eps, steps=10, step=0.25), name, batch=N).delta
        change = expected.numpy().transpose(0, 2, 1) - x.astype(np.float32)
        assert (np.abs(ours - change) < 1e-4 * eps + 2e-6).mean() > 0.999


@extras
def test_restarts_find_what_a_start_without_gradient_cannot() -> None:
    torch = pytest.importorskip("torch")

    class Flat(torch.nn.Module):  # type: ignore[misc,name-defined]
        """Even in the change of the record, so that its gradient is 0 at the record itself."""

        def __init__(self, x: np.ndarray) -> None:
            super().__init__()
            self.x = torch.as_tensor(x.transpose(0, 2, 1).astype(np.float32))

        def forward(self, x: Any) -> Any:
            away = (x[:, None] - self.x[None]).square().sum(dim=(2, 3)).amin(dim=1)
            return torch.stack([1.0 - away / 0.1, torch.zeros_like(away), torch.full_like(away, -9.0)], dim=1)

    x = signals()
    model = classifier(Flat(x))
    once, done = attacked(model, x, "pgd", eps_max=0.05)
    assert not once.any() and done.zero_gradient.all()
    again, _ = attacked(model, x, "pgd", eps_max=0.05, restarts=2)
    assert again.all()


@extras
def test_apgd_gets_as_far_as_arts_and_further_than_pgd() -> None:
    torch = pytest.importorskip("torch")
    estimators = pytest.importorskip("art.estimators.classification")
    evasion = pytest.importorskip("art.attacks.evasion")
    module, x = softmax_network(3), signals()
    model = classifier(module)
    answer = model.proba(x).argmax(axis=1)
    wrapped = estimators.PyTorchClassifier(
        module, torch.nn.CrossEntropyLoss(), input_shape=(LEADS, T), nb_classes=3, clip_values=(-100.0, 100.0)
    )
    eps = 0.02
    theirs = evasion.AutoProjectedGradientDescent(
        wrapped, norm=np.inf, eps=eps, eps_step=2 * eps, max_iter=50, nb_random_init=1, loss_type="cross_entropy",
        batch_size=N, verbose=False,
    ).generate(x.transpose(0, 2, 1).astype(np.float32), answer).transpose(0, 2, 1)  # fmt: skip
    _, ours = attacked(model, x, "apgd", eps_max=eps)
    _, plain = attacked(model, x, "pgd", eps_max=eps, steps=50)
    reached = cross_entropy(model, ours.x, answer)
    assert reached.mean() >= 0.999 * cross_entropy(model, theirs, answer).mean()
    assert reached.mean() >= 0.999 * cross_entropy(model, plain.x, answer).mean()


def test_the_square_attack_finds_the_corner_of_a_linear_model() -> None:
    """The largest change of a linear function within a box is known: plus or minus the budget by the sign of its weights."""
    x = np.zeros((4, 40, LEADS))
    signs = np.repeat([[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]], 20, axis=0)
    budget = np.array([0.1, 0.2, 0.3, 0.4])
    most = (np.abs(signs).sum() * budget).tolist()
    rngs = [np.random.default_rng(i) for i in range(4)]

    def margin(at: Any, tried: np.ndarray) -> np.ndarray:
        return np.array([0.95 * most[i] for i in at]) - (tried * signs).sum(axis=(1, 2))

    delta, n = random_search(x, margin, budget, np.ones((4, 40, 1)), rngs, queries=3000, share=0.8)
    assert (margin(np.arange(4), delta) <= 0).all() and n < 4 * 3000
    assert np.allclose(np.abs(delta).max(axis=(1, 2)), budget)


@extras
def test_the_worst_case_flips_what_any_member_flips() -> None:
    x, model = signals(), classifier(softmax_network(1))
    few = {"eps_max": 0.03, "steps": 10}
    flipped, done = attacked(model, x, "worst_case", **few, restarts=2, queries=50)
    for family in ("pgd", "apgd"):
        own, _ = attacked(model, x, family, **few)
        assert not (own & ~flipped).any()
    assert 0 < flipped.sum() < N
    named = [note for notes in done.notes for note in notes]
    assert len(named) == N and sum("no member" in note for note in named) == (~flipped).sum()


def test_without_gradients_the_worst_case_is_the_square_attack() -> None:
    def probabilities(x: np.ndarray) -> np.ndarray:
        odds = 1.0 + x.mean(axis=(1, 2)) * 40.0
        return np.stack([1 / (1 + np.exp(-odds)), 0.5 + 0 * odds, 0 * odds], axis=1) / 2

    model = as_classifier(probabilities, single_label=True)
    flipped, done = attacked(model, np.zeros((3, T, LEADS)), "worst_case", eps_max=0.1, queries=200)
    assert flipped.all() and all(notes == ("worst_case: flipped by square",) for notes in done.notes)
