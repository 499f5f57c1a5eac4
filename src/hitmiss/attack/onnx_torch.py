"""Gradients of ONNX models: the graph walked with torch operators, for the operators that small networks are made of.

A model with an operator that is not in the table has no gradients here; what a model computes this way is compared with
onnxruntime by the caller's own predictions (the attack judges success by them, never by this).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from hitmiss.detect.detector import need
from hitmiss.errors import UsageError

Values = dict[str, Any]
Operator = Callable[[Any, list[Any], Mapping[str, Any]], Any]


def onnx_function(path: str | Path, answer: str, device: str = "cpu") -> Any:
    """A torch function that computes an output of an ONNX file; None without torch or onnx. It asks for what it cannot do."""
    if find_spec("torch") is None or find_spec("onnx") is None:
        return None
    onnx, torch = need("onnx", "onnx"), need("torch", "torch")
    graph = onnx.load(str(path)).graph
    unknown = sorted({n.op_type for n in graph.node} - {*OPERATORS, "Constant"})
    constants = {t.name: torch.tensor(onnx.numpy_helper.to_array(t)).to(device) for t in graph.initializer}
    given = next(i.name for i in graph.input if i.name not in constants)

    def compute(x: Any) -> Any:
        if unknown:
            raise UsageError(
                f"{Path(path).name} has no gradients here: its operators {', '.join(unknown)} are not known; attack the torch module"
            )
        values: Values = {**constants, given: x, "": None}
        for node in graph.node:
            _step(node, values, device)
        return values[answer]

    return compute


def _step(node: Any, values: Values, device: str) -> None:
    """Compute one node and put its outputs among the values."""
    onnx, torch = need("onnx", "onnx"), need("torch", "torch")
    settings = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    if node.op_type == "Constant":
        values[node.output[0]] = torch.tensor(onnx.numpy_helper.to_array(settings["value"])).to(device)
        return
    made = OPERATORS[node.op_type](torch, [values[name] for name in node.input], settings)
    for name, value in zip(node.output, made if isinstance(made, tuple) else (made,), strict=False):
        values[name] = value


def _conv(torch: Any, v: list[Any], s: Mapping[str, Any]) -> Any:
    size = list(v[1].shape[2:])
    pads = s.get("pads", [0] * 2 * len(size))
    if s.get("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID", "NOTSET", "VALID"):
        total = [d * (k - 1) for d, k in zip(s.get("dilations", [1] * len(size)), size, strict=True)]
        pads = [t // 2 for t in total] + [t - t // 2 for t in total]
    x = torch.nn.functional.pad(v[0], _sides(pads))
    bias = v[2] if len(v) > 2 else None
    function = {1: torch.nn.functional.conv1d, 2: torch.nn.functional.conv2d}[len(size)]
    return function(x, v[1], bias, s.get("strides", 1), 0, s.get("dilations", 1), s.get("group", 1))


def _sides(pads: Any) -> list[int]:
    """ONNX lists all beginnings, then all ends; torch the last axis first, as pairs."""
    half = len(pads) // 2
    return [p for axis in reversed(range(half)) for p in (pads[axis], pads[axis + half])]


def _pool(name: str, low: float) -> Operator:
    def pool(torch: Any, v: list[Any], s: Mapping[str, Any]) -> Any:
        size = s["kernel_shape"]
        x = torch.nn.functional.pad(v[0], _sides(s.get("pads", [0] * 2 * len(size))), value=low)
        return getattr(torch.nn.functional, f"{name}{len(size)}d")(x, size, s.get("strides", [1] * len(size)))

    return pool


def _batch_norm(torch: Any, v: list[Any], s: Mapping[str, Any]) -> Any:
    x, scale, bias, mean, variance = v[:5]
    return torch.nn.functional.batch_norm(x, mean, variance, scale, bias, False, 0.0, s.get("epsilon", 1e-5))


def _gemm(_torch: Any, v: list[Any], s: Mapping[str, Any]) -> Any:
    a = v[0].T if s.get("transA") else v[0]
    b = v[1].T if s.get("transB") else v[1]
    out = s.get("alpha", 1.0) * (a @ b)
    return out + s.get("beta", 1.0) * v[2] if len(v) > 2 and v[2] is not None else out


def _axes(v: list[Any], s: Mapping[str, Any]) -> Any:
    """The axes of a reduction: a setting in older models, an input in newer ones."""
    if "axes" in s:
        return tuple(s["axes"])
    return tuple(int(a) for a in v[1]) if len(v) > 1 and v[1] is not None else tuple(range(v[0].ndim))


def _reduce(name: str) -> Operator:
    def reduce(_torch: Any, v: list[Any], s: Mapping[str, Any]) -> Any:
        return getattr(v[0], name)(dim=_axes(v, s), keepdim=bool(s.get("keepdims", 1)))

    return reduce


def _reshape(_torch: Any, v: list[Any], _s: Mapping[str, Any]) -> Any:
    sizes = [int(n) for n in v[1]]
    return v[0].reshape([v[0].shape[i] if n == 0 else n for i, n in enumerate(sizes)])


def _flatten(_torch: Any, v: list[Any], s: Mapping[str, Any]) -> Any:
    axis = s.get("axis", 1)
    head = 1
    for n in v[0].shape[:axis]:
        head *= n
    return v[0].reshape(head, -1)


def _squeeze(_torch: Any, v: list[Any], s: Mapping[str, Any]) -> Any:
    x = v[0]
    for axis in sorted((a % x.ndim for a in _axes(v, s)), reverse=True):
        x = x.squeeze(axis)
    return x


def _unsqueeze(_torch: Any, v: list[Any], s: Mapping[str, Any]) -> Any:
    x = v[0]
    for axis in sorted(_axes(v, s)):
        x = x.unsqueeze(axis)
    return x


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
    "Gelu": lambda t, v, s: t.nn.functional.gelu(v[0]),
    "Sigmoid": lambda t, v, s: t.sigmoid(v[0]),
    "Tanh": lambda t, v, s: t.tanh(v[0]),
    "Sqrt": lambda t, v, s: v[0].sqrt(),
    "Log": lambda t, v, s: v[0].log(),
    "Abs": lambda t, v, s: v[0].abs(),
    "Softmax": lambda t, v, s: t.softmax(v[0], s.get("axis", -1)),
    "BatchNormalization": _batch_norm,
    "MaxPool": _pool("max_pool", float("-inf")),
    "AveragePool": _pool("avg_pool", 0.0),
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
