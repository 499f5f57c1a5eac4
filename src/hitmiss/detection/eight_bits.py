"""Torch products of 8-bit numbers: weights have a scale per output, inputs one per row."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

from hitmiss.core.errors import UsageError
from hitmiss.detection.on_device import SMALLEST

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module


def quantised(torch: ModuleType, module: Module) -> Module:
    """Return a copy of the module with 8-bit products in all linear layers but the last."""
    copied = copy.deepcopy(module)
    linear = [part for part in copied.modules() if isinstance(part, torch.nn.Linear)]
    if len(linear) < 2:
        raise UsageError.of("int8-nothing/linear", name=type(module).__name__, n_linear=len(linear))
    for part in linear[:-1]:
        part.forward = eight_bit_product(part.weight.detach(), None if part.bias is None else part.bias.detach())
    return copied


def eight_bit_product(weight: Tensor, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    """Return a linear function with 8-bit products: weights have a scale per output, inputs one per row.

    The scale of a row depends on nothing else in the batch, so neither does a score.
    """
    import torch

    scale = weight.abs().amax(dim=1).clamp_min(SMALLEST) / largest_weight()
    matrix = (weight / scale[:, None]).round().to(torch.int8).t().contiguous()

    def multiply(x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1]).float()
        size = rows.abs().amax(dim=1, keepdim=True).clamp_min(SMALLEST) / 127
        found = torch._int_mm((rows / size).round_().to(torch.int8), matrix).float().mul_(size)
        found = found.mul_(scale) if bias is None else torch.addcmul(bias, found, scale)
        return found.view(*x.shape[:-1], -1)

    return multiply


def largest_weight() -> int:
    """Return the largest 8-bit weight that is safe: a processor without VNNI adds two products in 16 bits."""
    import torch

    return 127 if getattr(torch.cpu, "_is_vnni_supported", lambda: False)() else 63
