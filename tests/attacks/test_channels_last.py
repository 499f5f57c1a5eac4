"""Convolutions with the channels last: the same numbers as torch's own, forwards and backwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hitmiss.attacks.channels_last import channels_last

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.extras
nn: Any = torch.nn

NETS = {
    "plain": lambda: nn.Conv1d(12, 8, 7),
    "strided": lambda: nn.Conv1d(12, 8, 7, stride=3, padding=2, dilation=2, bias=False),
    "grouped": lambda: nn.Conv1d(12, 8, 5, groups=4, padding="same"),
    "circular": lambda: nn.Conv1d(12, 8, 5, padding=2, padding_mode="circular"),
    "normed": lambda: nn.Sequential(nn.Conv1d(12, 8, 3), nn.BatchNorm1d(8), nn.ReLU(), nn.Conv1d(8, 4, 3)),
    "without weights": lambda: nn.Sequential(nn.Conv1d(12, 8, 3), nn.BatchNorm1d(8, affine=False)),
    "pooled": lambda: nn.Sequential(nn.Conv1d(12, 8, 3), nn.MaxPool1d(3), nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(32, 3)),
    "recurrent": lambda: nn.Sequential(nn.Conv1d(12, 8, 3), nn.Flatten(1), nn.LazyLinear(3)),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(NETS))
@pytest.mark.parametrize("n", [1, 5])
def test_outputs_and_gradients_are_torchs(name: str, n: int) -> None:
    torch.manual_seed(0)
    net = NETS[name]()
    for layer in net.modules():
        if isinstance(layer, nn.BatchNorm1d):  # one that has seen data
            layer.running_mean.uniform_(-1, 1)
            layer.running_var.uniform_(0.5, 2)
    net.eval()
    found = []
    for context in (None, channels_last("cpu", 9)):
        x = torch.randn(n, 12, 60, generator=torch.Generator().manual_seed(1)).requires_grad_(True)
        if context is None:
            out = net(x)
        else:
            with context:
                out = net(x)
        (gradient,) = torch.autograd.grad(out.square().sum(), x)
        found.append((out.detach().numpy(), gradient.numpy()))
    for plain, ours in zip(*found, strict=True):
        np.testing.assert_allclose(ours, plain, rtol=2e-4, atol=2e-5)


def test_weights_that_change_are_seen() -> None:
    net = nn.Conv1d(12, 1, 3).eval()
    x = torch.randn(4, 12, 20)
    with torch.no_grad(), channels_last("cpu", 4):
        before = net(x)
        net.weight.mul_(2.0)
        net.bias.mul_(2.0)
        np.testing.assert_allclose(net(x).numpy(), 2 * before.numpy(), rtol=1e-5, atol=1e-6)


def test_what_is_not_meant_is_left_alone() -> None:
    wide, single, training = torch.randn(3, 12, 20).double(), torch.randn(12, 20), nn.BatchNorm1d(12)
    net = nn.Conv1d(12, 2, 3)
    with torch.no_grad():
        plain = net(single), torch.conv1d(wide, net.weight.double())
        with channels_last("cpu", 4):
            ours = net(single), torch.conv1d(wide, net.weight.double())
            assert training(wide.float()).mean().abs() < 1e-6
    for a, b in zip(plain, ours, strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(training.running_mean, torch.zeros(12))  # training went on as torch has it
