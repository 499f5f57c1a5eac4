"""Models whose classes exclude each other, models that end in a function, and what `extra` may hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hitmiss.attacks.config import PerturbationConfig
from hitmiss.attacks.model import as_classifier
from hitmiss.attacks.model import as_classifier as classifier
from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.protocols.ecg_attacks import compute_global_metrics, run_attack_on_sample

FS = 100.0


def network(ending: str, classes: int = 4) -> Any:
    """A small network that ends as asked; its logits for every record lie in 0..1."""
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.head = torch.nn.Linear(2, 16), torch.nn.Linear(16, classes)

        def forward(self, x: Any) -> Any:
            logits = self.head(torch.tanh(self.inner(x)).mean(dim=1))
            steps = {"linear": lambda v: v, "sigmoid": torch.sigmoid, "softmax": lambda v: torch.softmax(v, dim=1)}
            return steps[ending](logits)

    torch.manual_seed(3)
    return Net()


def record(seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0, 0.3, (100, 2))


@pytest.mark.extras
def test_a_functional_sigmoid_is_taken_off_and_gives_the_same_attack_as_its_logits() -> None:
    y = np.array([1.0, 0, 0, 1])
    config = PerturbationConfig("pgd", 0.5, 0.5, extra={"steps": 5})
    found = [run_attack_on_sample(network(kind), record(), y, config, fs=FS) for kind in ("sigmoid", "linear")]
    assert found[0][0].y_proba_adv == pytest.approx(found[1][0].y_proba_adv, abs=1e-6)
    assert np.array_equal(found[0][1], found[1][1])


@pytest.mark.extras
def test_a_saturated_sigmoid_is_attacked_through_its_logits() -> None:
    torch = pytest.importorskip("torch")
    nets = [network(kind) for kind in ("sigmoid", "linear")]
    with torch.no_grad():
        for net in nets:
            net.head.bias.fill_(40.0)
        assert (nets[0](torch.zeros(1, 100, 2)) == 1.0).all()  # no gradient comes through the sigmoid
    config = PerturbationConfig("pgd", 0.5, 0.5, extra={"steps": 5})
    found = [run_attack_on_sample(net, record(), np.array([1.0, 0, 0, 1]), config, fs=FS) for net in nets]
    assert not found[0][0].zero_gradient and np.array_equal(found[0][1], found[1][1])
    assert np.abs(found[0][1] - record()).max() > 0


@pytest.mark.extras
def test_no_record_of_a_logit_network_is_refused_for_its_values() -> None:
    torch = pytest.importorskip("torch")
    net = network("linear", classes=2)
    with torch.no_grad():
        net.head.weight.mul_(0.01)
        net.head.bias.fill_(0.5)  # every logit lies in 0..1
    config = PerturbationConfig("band_noise", 0.5, 0.5)
    result, _ = run_attack_on_sample(net, record(), np.array([1.0, 0.0]), config, fs=FS)
    assert result.y_proba_clean == pytest.approx(1 / (1 + np.exp(-0.5)), abs=0.01)


@pytest.mark.extras
@pytest.mark.parametrize("loss", ["cross_entropy", "margin"])
def test_classes_that_exclude_each_other_are_attacked_as_such(loss: str) -> None:
    torch = pytest.importorskip("torch")
    net = network("softmax")
    x = record(1)
    with torch.no_grad():
        before = net(torch.from_numpy(x[None].astype(np.float32)))[0].numpy()
    y = np.eye(4)[before.argmax()]
    model = classifier(net)
    settings = {"steps": 40, "loss": loss, "eps_max": 2.0}
    result, changed = run_attack_on_sample(model, x, y, PerturbationConfig("pgd", 1.0, 0.5, extra=settings), fs=FS)
    assert model.single_label and result.y_proba_clean == pytest.approx(before, abs=1e-5)
    assert result.y_hat_clean.sum() == result.y_hat_adv.sum() == 1
    with torch.no_grad():
        after = net(torch.from_numpy(changed[None].astype(np.float32)))[0].numpy()
    assert after[before.argmax()] < before[before.argmax()] and result.y_proba_adv == pytest.approx(after, abs=1e-5)
    aim = int(before.argmin())
    config = PerturbationConfig("pgd", 1.0, 0.5, None, str(aim), "force", settings)
    forced, _ = run_attack_on_sample(model, x, y, config, fs=FS)
    assert forced.y_proba_adv[aim] > before[aim]


@pytest.mark.extras
def test_the_gradient_of_the_cross_entropy_is_torchs_own() -> None:
    torch = pytest.importorskip("torch")
    net, x = network("linear"), record(2)
    model = as_classifier(net, single_label=True)
    y = np.eye(4)[1]
    config = PerturbationConfig("fgsm", 1.0, 0.5, extra={"eps_max": 0.05})
    _, changed = run_attack_on_sample(model, x, y, config, fs=FS)
    signal = torch.from_numpy(x[None].astype(np.float32)).requires_grad_(True)
    torch.nn.functional.cross_entropy(net(signal), torch.tensor([1])).backward()
    assert changed - x == pytest.approx(0.05 * np.sign(signal.grad[0].numpy()), abs=1e-7)


def test_extra_keeps_free_keys_and_knows_the_documents_names() -> None:
    free = PerturbationConfig("band_noise", 0.5, 0.5, extra={"trial": 3, "band": (5.0, 20.0)})
    assert free.settings == {"low": 5.0, "high": 20.0} and free.free == ["trial"]
    assert PerturbationConfig("baseline_wander", 0.5, 0.5, extra={"f_range": [0.1, 0.3]}).settings["high"] == 0.3
    result, _ = run_attack_on_sample(lambda v: v.mean(axis=1) * 0 + 0.5, record(), np.zeros(2), free, fs=FS)
    assert result.config_extra == {"trial": 3, "band": (5.0, 20.0)}
    with pytest.raises(UnknownName):
        PerturbationConfig("band_noise", 0.5, 0.5, extra={"betta": 1.0})
    with pytest.raises(UsageError) as wrong:
        PerturbationConfig("band_noise", 0.5, 0.5, extra={"band": 5.0})
    assert wrong.value.code == "bad-pair"


def test_a_class_that_is_never_predicted_is_named() -> None:
    found = compute_global_metrics([[1, 1], [0, 0]], [[0.9, 0.2], [0.1, 0.3]], classes=("MI", "CD"))
    assert "CD precision" in found.undefined and found["macro"]["precision"] == 1.0
