"""Gradients of ONNX models: the graph is evaluated with torch operators, for the operators that small networks use.

A model with an operator that is not in the table has no gradients here. The success of an attack is judged by the
predictions of onnxruntime, never by these values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import UsageError
from hitmiss.detection.detector import need

if TYPE_CHECKING:
    from onnx import NodeProto
    from torch import Tensor
from hitmiss.attacks.keras import TensorFunction

Values = dict[str, "Tensor | None"]
Attributes = Mapping[str, Any]
Operator = Callable[[ModuleType, "list[Tensor]", Attributes], "Tensor | tuple[Tensor, ...]"]
OPSET: Final = "opset"
"""The version of the operators, passed beside the attributes of a node (none has this name)."""


def onnx_function(path: str | Path, answer: str, device: str = "cpu") -> TensorFunction | None:
    """Return a torch function that computes an output of an ONNX file; None without torch or onnx.

    An operator that is not supported is an error that names it.
    """
    if find_spec("torch") is None or find_spec("onnx") is None:
        return None
    onnx, torch = need("onnx", "onnx"), need("torch", "torch")
    model = onnx.load(str(path))
    graph = model.graph
    version = max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=1)
    unknown = sorted({n.op_type for n in graph.node} - {*OPERATORS, "Constant"})
    unknown += sorted({f"{n.op_type} with several outputs" for n in graph.node if _has_more_outputs(n)})
    constants = {t.name: torch.tensor(onnx.numpy_helper.to_array(t)).to(device) for t in graph.initializer}
    given = next(i.name for i in graph.input if i.name not in constants)

    def compute(x: Tensor) -> Tensor:
        if unknown:
            raise UsageError.of("no-gradients/operators", name=Path(path).name, unknown=tuple(unknown))
        values: Values = {**constants, given: x, "": None}
        for node in graph.node:
            _step(node, values, device, version)
        return cast("Tensor", values[answer])

    return compute


def _has_more_outputs(node: NodeProto) -> bool:
    """Return whether a node is asked for outputs that are not computed here: indices of a pool, masks of a dropout."""
    return node.op_type in OPERATORS and any(node.output[1:])


def _step(node: NodeProto, values: Values, device: str, version: int) -> None:
    """Compute one node and add its outputs to the values."""
    onnx, torch = need("onnx", "onnx"), need("torch", "torch")
    settings = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute} | {OPSET: version}
    if node.op_type == "Constant":
        value = next(v for name, v in settings.items() if name.startswith("value"))
        array = onnx.numpy_helper.to_array(value) if hasattr(value, "dims") else _constant(value)
        values[node.output[0]] = torch.tensor(array).to(device)
        return
    given = [cast("Tensor", values[name]) for name in node.input]  # None only for inputs that an operator may lack
    made = OPERATORS[node.op_type](torch, given, settings)
    for name, value in zip(node.output, made if isinstance(made, tuple) else (made,), strict=False):
        values[name] = value


def _constant(value: object) -> NDArray[np.generic]:
    """Return a constant that is written as a number or a list of them; its types are those of ONNX."""
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype.kind == "f" else array


def _conv(torch: ModuleType, v: list[Tensor], s: Attributes) -> Tensor:
    size = [int(n) for n in v[1].shape[2:]]
    slide = Slide.of(s, size, [int(n) for n in v[0].shape[2:]])
    x = torch.nn.functional.pad(v[0], _sides(slide.pads))
    bias = v[2] if len(v) > 2 else None
    return _convolution(torch, len(size))(x, v[1], bias, slide.strides, 0, slide.dilations, s.get("group", 1))


def _convolution(torch: ModuleType, axes: int) -> Callable[..., Tensor]:
    if not 1 <= axes <= 3:
        raise UsageError.of("no-gradients/convolution", axes=axes)
    found: Callable[..., Tensor] = getattr(torch.nn.functional, f"conv{axes}d")
    return found


def _sides(pads: Sequence[int]) -> list[int]:
    """Convert padding: ONNX lists all beginnings, then all ends; torch the last axis first, as pairs."""
    half = len(pads) // 2
    return [p for axis in reversed(range(half)) for p in (pads[axis], pads[axis + half])]


@dataclass(frozen=True)
class Slide:
    """How a window of a convolution or a pool moves along each axis, by the attributes of its ONNX node."""

    size: list[int]
    strides: list[int]
    dilations: list[int]
    pads: list[int]
    """What is added before each axis, then after each axis."""
    lengths: list[int]
    """The number of windows along each axis."""

    @classmethod
    def of(cls, s: Attributes, size: list[int], given: list[int]) -> Slide:
        """Read `auto_pad`, `pads`, `strides`, `dilations` and `ceil_mode` for an input of some lengths."""
        axes = len(size)
        strides, dilations = list(s.get("strides", [1] * axes)), list(s.get("dilations", [1] * axes))
        spans = [d * (k - 1) + 1 for d, k in zip(dilations, size, strict=True)]
        auto = s.get("auto_pad", b"NOTSET")
        auto = auto.decode() if isinstance(auto, bytes) else auto
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            lengths = [-(-n // step) for n, step in zip(given, strides, strict=True)]
            total = [
                max((out - 1) * step + span - n, 0)
                for out, step, span, n in zip(lengths, strides, spans, given, strict=True)
            ]
            less, more = [t // 2 for t in total], [t - t // 2 for t in total]
            pads = [*less, *more] if auto == "SAME_UPPER" else [*more, *less]
            return cls(size, strides, dilations, pads, lengths)
        pads = list(s.get("pads", [0] * 2 * axes)) if auto != "VALID" else [0] * 2 * axes
        room = [n + pads[i] + pads[i + axes] - spans[i] for i, n in enumerate(given)]
        lengths = [r // step + 1 for r, step in zip(room, strides, strict=True)]
        if s.get("ceil_mode", 0):
            # a last window that is cut off counts, unless it begins beyond the input and the padding before it
            lengths = [
                out + int(r % step > 0 and out * step < n + pads[i])
                for i, (out, r, step, n) in enumerate(zip(lengths, room, strides, given, strict=True))
            ]
        return cls(size, strides, dilations, pads, lengths)

    def beyond(self, given: Sequence[int]) -> list[int]:
        """Return how far the last window reaches beyond the padded input, along each axis; below 0: it ends before."""
        axes = len(self.size)
        return [
            (self.lengths[i] - 1) * self.strides[i] + self.dilations[i] * (self.size[i] - 1) + 1
            - (int(n) + self.pads[i] + self.pads[i + axes])
            for i, n in enumerate(given)
        ]  # fmt: skip


def _max_pool(torch: ModuleType, v: list[Tensor], s: Attributes) -> Tensor:
    slide = Slide.of(s, list(s["kernel_shape"]), [int(n) for n in v[0].shape[2:]])
    low = float("-inf")
    x = torch.nn.functional.pad(v[0], _sides(slide.pads), value=low)
    x = torch.nn.functional.pad(x, _sides([0] * len(slide.size) + slide.beyond(v[0].shape[2:])), value=low)
    pool = getattr(torch.nn.functional, f"max_pool{len(slide.size)}d")
    return pool(x, slide.size, slide.strides, 0, slide.dilations)


def _average_pool(torch: ModuleType, v: list[Tensor], s: Attributes) -> Tensor:
    """Divide the sum of each window by the number of values in it; padding counts if the node says so."""
    x, axes = v[0], len(s["kernel_shape"])
    slide = Slide.of(s, list(s["kernel_shape"]), [int(n) for n in x.shape[2:]])
    pad, convolve = torch.nn.functional.pad, _convolution(torch, axes)
    more = _sides([0] * axes + slide.beyond(x.shape[2:]))
    ones = torch.ones((1, 1, *slide.size), dtype=x.dtype, device=x.device)
    counted = pad(torch.ones_like(x[:1, :1]), _sides(slide.pads), value=float(s.get("count_include_pad", 0)))
    single = x.reshape(x.shape[0] * x.shape[1], 1, *x.shape[2:])
    total = convolve(pad(pad(single, _sides(slide.pads)), more), ones, None, slide.strides, 0, slide.dilations)
    number = convolve(pad(counted, more), ones, None, slide.strides, 0, slide.dilations)
    return (total / number).reshape(*x.shape[:2], *total.shape[2:])


def _batch_norm(torch: ModuleType, v: list[Tensor], s: Attributes) -> Tensor:
    x, scale, bias, mean, variance = v[:5]
    if s.get("training_mode", 0):
        raise UsageError.of("no-gradients/batchnorm")
    return torch.nn.functional.batch_norm(x, mean, variance, scale, bias, False, 0.0, s.get("epsilon", 1e-5))


def _gemm(_torch: ModuleType, v: list[Tensor], s: Attributes) -> Tensor:
    a = v[0].T if s.get("transA") else v[0]
    b = v[1].T if s.get("transB") else v[1]
    out = s.get("alpha", 1.0) * (a @ b)
    return out + s.get("beta", 1.0) * v[2] if len(v) > 2 and v[2] is not None else out


def _axes(v: list[Tensor], s: Attributes) -> tuple[int, ...]:
    """Return the axes of a reduction: an attribute in older models, an input in newer ones."""
    if "axes" in s:
        return tuple(s["axes"])
    named = tuple(int(a) for a in v[1]) if len(v) > 1 and v[1] is not None else ()
    return named or (() if s.get("noop_with_empty_axes") else tuple(range(v[0].ndim)))


def _reduce(name: str) -> Operator:
    def reduce(_torch: ModuleType, v: list[Tensor], s: Attributes) -> Tensor:
        axes = _axes(v, s)
        return getattr(v[0], name)(dim=axes, keepdim=bool(s.get("keepdims", 1))) if axes else v[0]

    return reduce


def _reshape(_torch: ModuleType, v: list[Tensor], s: Attributes) -> Tensor:
    sizes, keeps = [int(n) for n in v[1]], not s.get("allowzero", 0)
    return v[0].reshape([v[0].shape[i] if n == 0 and keeps else n for i, n in enumerate(sizes)])


def _flatten(_torch: ModuleType, v: list[Tensor], s: Attributes) -> Tensor:
    axis = s.get("axis", 1)
    head = 1
    for n in v[0].shape[:axis]:
        head *= n
    return v[0].reshape(head, -1)


def _squeeze(_torch: ModuleType, v: list[Tensor], s: Attributes) -> Tensor:
    x = v[0]
    for axis in sorted((a % x.ndim for a in _axes(v, s)), reverse=True):
        x = x.squeeze(axis)
    return x


def _unsqueeze(_torch: ModuleType, v: list[Tensor], s: Attributes) -> Tensor:
    x, axes = v[0], _axes(v, s)
    for axis in sorted(a % (v[0].ndim + len(axes)) for a in axes):
        x = x.unsqueeze(axis)
    return x


def _softmax(torch: ModuleType, v: list[Tensor], s: Attributes) -> Tensor:
    if s[OPSET] >= 13:
        return torch.softmax(v[0], s.get("axis", -1))
    axis = s.get("axis", 1) % v[0].ndim  # before opset 13 all axes from here on are one
    return torch.softmax(v[0].flatten(axis), axis).reshape(v[0].shape)


def _gelu(torch: ModuleType, v: list[Tensor], s: Attributes) -> Tensor:
    how = s.get("approximate", b"none")
    return torch.nn.functional.gelu(v[0], approximate=how.decode() if isinstance(how, bytes) else how)


OPERATORS: Final[Mapping[str, Operator]] = {
    "Conv": _conv,
    "Gemm": _gemm,
    "MatMul": lambda t, v, s: v[0] @ v[1],
    "Add": lambda t, v, s: v[0] + v[1],
    "Sub": lambda t, v, s: v[0] - v[1],
    "Mul": lambda t, v, s: v[0] * v[1],
    "Div": lambda t, v, s: v[0] / v[1],
    "Relu": lambda t, v, s: t.relu(v[0]),
    "LeakyRelu": lambda t, v, s: t.nn.functional.leaky_relu(v[0], s.get("alpha", 0.01)),
    "Elu": lambda t, v, s: t.nn.functional.elu(v[0], s.get("alpha", 1.0)),
    "Erf": lambda t, v, s: t.erf(v[0]),
    "Gelu": _gelu,
    "Sigmoid": lambda t, v, s: t.sigmoid(v[0]),
    "Tanh": lambda t, v, s: t.tanh(v[0]),
    "Sqrt": lambda t, v, s: v[0].sqrt(),
    "Log": lambda t, v, s: v[0].log(),
    "Abs": lambda t, v, s: v[0].abs(),
    "Softmax": _softmax,
    "BatchNormalization": _batch_norm,
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "GlobalAveragePool": lambda t, v, s: v[0].mean(dim=tuple(range(2, v[0].ndim)), keepdim=True),
    "GlobalMaxPool": lambda t, v, s: v[0].amax(dim=tuple(range(2, v[0].ndim)), keepdim=True),
    "ReduceMean": _reduce("mean"),
    "ReduceMax": _reduce("amax"),
    "ReduceSum": _reduce("sum"),
    "Transpose": lambda t, v, s: v[0].permute(*s.get("perm", reversed(range(v[0].ndim)))),
    "Concat": lambda t, v, s: t.cat(v, dim=s["axis"]),
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Identity": lambda t, v, s: v[0],
    "Dropout": lambda t, v, s: v[0],
}  # fmt: skip
