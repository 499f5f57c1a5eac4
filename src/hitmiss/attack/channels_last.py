"""One-dimensional convolutions as two-dimensional ones with the channels last, which is how a CPU computes them quickest.

torch brings the input of `conv1d` into the order record × channel × sample and oneDNN turns it round again, there and back, in every
layer. Inside `channels_last()` signals stay record × sample × channel in memory from the first layer to the last: the same
convolutions, 15 to 25 % quicker forwards and backwards, equal to the rounding of float32. The module is left as it is; only
the calls it makes are answered differently, so weights that change later are seen.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any

from hitmiss.detect.detector import need

FEWEST = 4
"""With fewer records the detour through Python costs more than it saves."""


def channels_last(device: str, records: int) -> AbstractContextManager[Any]:
    """The context in which convolutions run with the channels last; nothing where that gains nothing."""
    torch = need("torch", "torch")
    if device != "cpu" or records < FEWEST or not torch.backends.mkldnn.is_available():
        return nullcontext()
    found: AbstractContextManager[Any] = _mode()()
    return found


@lru_cache(maxsize=1)
def _mode() -> Any:
    torch = need("torch", "torch")
    mode: Any = need("torch.overrides", "torch").TorchFunctionMode
    answers: dict[Any, Any] = {torch.conv1d: _convolved, torch.nn.functional.batch_norm: _normed}

    class ChannelsLast(mode):  # type: ignore[misc]
        """Answers two functions of torch in our way and all others in torch's."""

        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            own = answers.get(function)
            found = NotImplemented if own is None else own(torch, *args, **(kwargs or {}))
            return function(*args, **(kwargs or {})) if found is NotImplemented else found

    return ChannelsLast


def _convolved(
    torch: Any,
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """A convolution along the samples: that of an image one pixel high."""
    if input.ndim != 3 or input.dtype != torch.float32:
        return NotImplemented
    last = torch.channels_last
    flat = torch.conv2d(
        input.unsqueeze(2).contiguous(memory_format=last), weight.detach().unsqueeze(2).contiguous(memory_format=last),
        None if bias is None else bias.detach(), (1, _one(stride)), padding if isinstance(padding, str) else (0, _one(padding)),
        (1, _one(dilation)), groups,
    )  # fmt: skip
    return flat.squeeze(2)


def _one(value: Any) -> Any:
    return value if isinstance(value, int) else value[0]


def _normed(
    torch: Any,
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,  # noqa: ARG001  (as torch calls it)
    eps: float = 1e-5,
) -> Any:
    """A batch normalisation in use: one multiplication and one addition a channel."""
    if training or input.ndim != 3 or running_mean is None:
        return NotImplemented
    scale = torch.rsqrt(running_var + eps) * (1.0 if weight is None else weight.detach())
    shift = (0.0 if bias is None else bias.detach()) - running_mean * scale
    return torch.addcmul(shift[:, None], input, scale[:, None])
