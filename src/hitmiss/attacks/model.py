"""The model under attack: torch, Keras, ONNX or a function."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, TypeGuard, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.core.errors import DataError, EnvironmentFault, HitmissError, UnknownName, UsageError
from hitmiss.detection.contract import Origin
from hitmiss.detection.detector import CallableDetector, Detector, EstimatorDetector, Settled, is_torch_module, need
from hitmiss.detection.onnx import OnnxDetector
from hitmiss.detection.outputs import (
    OutputKind,
    are_distributions,
    pick_output,
    pick_raw,
    settled_kind,
    to_log_odds,
    to_probability,
)
from hitmiss.detection.torch import TorchDetector, parameters_digest, pick_device

if TYPE_CHECKING:
    from onnx import NodeProto
    from onnxruntime import InferenceSession
    from torch import Tensor
    from torch.nn import Module

Signals = NDArray[np.float32]
TensorFunction: TypeAlias = "Callable[[Tensor], Tensor]"
"""A torch function from signals to logits, with gradients."""

# ----------------------------------------------------------------------
# One-dimensional convolutions as two-dimensional ones with the channels last, the fastest form on a CPU.
#
# torch brings the input of `conv1d` into the order record × channel × sample and oneDNN reorders it again, in every
# layer and in both directions. Inside `channels_last()` signals stay record × sample × channel in memory from the first
# layer to the last: the same convolutions, 15 to 25 % faster forwards and backwards, equal up to float32 rounding. The
# module is not changed; only its calls are redirected, so later changes of its weights take effect.

Size = int | tuple[int, ...]
FEWEST = 4
"""With fewer records the detour through Python costs more than it saves."""


def channels_last(device: str, records: int) -> AbstractContextManager[object]:
    """Return the context in which convolutions run with the channels last; an empty one if that gains nothing."""
    torch = need("torch", "torch")
    if device != "cpu" or records < FEWEST or not torch.backends.mkldnn.is_available():
        return nullcontext()
    found: AbstractContextManager[object] = _mode()()
    return found


@lru_cache(maxsize=1)
def _mode() -> type[AbstractContextManager[object]]:
    torch = need("torch", "torch")
    mode: Any = need("torch.overrides", "torch").TorchFunctionMode
    answers: dict[object, Callable[..., object]] = {torch.conv1d: _convolved, torch.nn.functional.batch_norm: _normed}

    class ChannelsLast(mode):  # type: ignore[misc]
        """Replaces two functions of torch and passes all others on."""

        def __torch_function__(
            self,
            function: Callable[..., object],
            types: object,
            args: tuple[object, ...] = (),
            kwargs: dict[str, object] | None = None,
        ) -> object:
            own = answers.get(function)
            found = NotImplemented if own is None else own(torch, *args, **(kwargs or {}))
            return function(*args, **(kwargs or {})) if found is NotImplemented else found

    return ChannelsLast


def _convolved(
    torch: ModuleType,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """Convolve along the samples, as an image one pixel high."""
    if input.ndim != 3 or input.dtype != torch.float32:
        return NotImplemented
    last = torch.channels_last
    flat = torch.conv2d(
        input.unsqueeze(2).contiguous(memory_format=last), weight.detach().unsqueeze(2).contiguous(memory_format=last),
        None if bias is None else bias.detach(), (1, _one(stride)), padding if isinstance(padding, str) else (0, _one(padding)),
        (1, _one(dilation)), groups,
    )  # fmt: skip
    return flat.squeeze(2)


def _one(value: Size) -> int:
    return value if isinstance(value, int) else value[0]


def _normed(
    torch: ModuleType,
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,  # noqa: ARG001  (as torch calls it)
    eps: float = 1e-5,
) -> Tensor:
    """Apply batch normalisation in inference mode: one multiplication and one addition per channel."""
    if training or input.ndim != 3 or running_mean is None:
        return NotImplemented
    scale = torch.rsqrt(running_var + eps) * (1.0 if weight is None else weight.detach())
    shift = (0.0 if bias is None else bias.detach()) - running_mean * scale
    return torch.addcmul(shift[:, None], input, scale[:, None])


# ----------------------------------------------------------------------
# Keras models on TensorFlow as torch functions: values and gradients by a GradientTape, so that every attack works on
# them.
#
# A model that ends in a sigmoid or softmax is called without it: the last layer's activation is temporarily removed.

ACTIVATIONS = ("sigmoid", "softmax")


class KerasLayer(Protocol):
    """A layer of a Keras model, as far as it is used here."""

    activation: Callable[..., object]


class KerasModel(Protocol):
    """A Keras model, as far as it is used here."""

    @property
    def layers(self) -> Sequence[KerasLayer]: ...

    def __call__(self, x: object, training: bool) -> object: ...


def is_keras(model: object) -> TypeGuard[KerasModel]:
    """Return whether a model is a Keras model that runs on TensorFlow."""
    keras = sys.modules.get("keras")
    if keras is None or "tensorflow" not in sys.modules or not isinstance(model, keras.Model):
        return False
    return str(keras.backend.backend()) == "tensorflow"


def last_activation(model: KerasModel) -> str | None:
    """Return `sigmoid` or `softmax` if the last layer has one; else None."""
    name = getattr(getattr(model.layers[-1], "activation", None), "__name__", None) if model.layers else None
    return name if name in ACTIVATIONS else None


@contextmanager
def without_activation(model: KerasModel) -> Iterator[None]:
    """Remove the sigmoid or softmax of the model's last layer for the block."""
    if last_activation(model) is None:
        yield
        return
    layer = model.layers[-1]
    before = layer.activation
    layer.activation = sys.modules["keras"].activations.linear
    try:
        yield
    finally:
        layer.activation = before


def logits_of(model: KerasModel, x: ArrayLike) -> NDArray[np.floating]:
    """Return the logits of signals (record × sample × lead) as numpy."""
    with without_activation(model):
        return np.asarray(model(np.asarray(x, dtype=np.float32), training=False))


def torch_function(model: KerasModel) -> TensorFunction:
    """Return a torch function from record × sample × lead to logits, with gradients."""
    torch, tensorflow = need("torch", "torch"), sys.modules["tensorflow"]

    class Asked(torch.autograd.Function):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(context: Any, x: Tensor) -> Tensor:
            given = tensorflow.convert_to_tensor(x.detach().cpu().numpy())
            with tensorflow.GradientTape() as tape, without_activation(model):
                tape.watch(given)
                found = model(given, training=False)
            context.kept = (tape, given, found)
            return torch.from_numpy(np.array(found)).to(x.device)

        @staticmethod
        def backward(context: Any, upstream: Tensor) -> Tensor:
            tape, given, found = context.kept
            weights = tensorflow.convert_to_tensor(upstream.cpu().numpy())
            slope = tape.gradient(found, given, output_gradients=weights)
            return torch.from_numpy(np.array(slope)).to(upstream.device)

    function: TensorFunction = Asked.apply
    return function


# ----------------------------------------------------------------------
# Gradients of ONNX models: the graph is evaluated with torch operators, for the operators that small networks use.
#
# A model with an operator that is not in the table has no gradients here. The success of an attack is judged by the
# predictions of onnxruntime, never by these values.

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
            raise UsageError(
                f"{Path(path).name} has no gradients here: its operators {', '.join(unknown)} are not known; attack the torch module"
            )
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
        raise UsageError(f"a convolution over {axes} axes has no gradients here; attack the torch module")
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
        raise UsageError("a BatchNormalization in training mode has no gradients here; export the model for inference")
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


# ----------------------------------------------------------------------
# The model under attack: signals (record × sample × lead) in, one log-odds per class out.
#
# | given                              | what it must return             | gradients |
# |------------------------------------|---------------------------------|-----------|
# | torch module                       | logits, or probabilities        | yes       |
# | ONNX file, ONNX session            | logits, or probabilities        | with torch and onnx, if its operators are
# known |
# | Keras model on TensorFlow          | logits, or probabilities        | if torch is installed, by a GradientTape |
# | scikit-learn estimator             | probabilities or decision function of flattened records | no |
# | anything with `.predict`, callable | probabilities                   | no        |
#
# Whether outputs are logits or probabilities is declared (`outputs=`), or derived from the last layer, the name of the
# output or values outside 0..1; if none of these decides, the caller must declare it. Predictions are made in parts of
# a fixed size.

Floats = NDArray[np.float64]
Layout = Literal["sample_lead", "lead_sample"]
LAYOUTS: Final = ("sample_lead", "lead_sample")
PART: Final = 64
"""Records in one call of the model."""
SMALLEST: Final = 1e-7
"""Probabilities are kept this far from 0 and 1 where a gradient needs their logarithm."""


@dataclass(eq=False)
class Classifier:
    """A model as the attacks see it.

    `differentiable` is a torch function from signals (record × lead × sample) to logits.
    """

    function: Callable[[Signals], object]
    name: str = "model"
    outputs: OutputKind = "auto"
    layout: Layout = "sample_lead"
    classes: tuple[str, ...] | None = None
    differentiable: TensorFunction | None = None
    device: str = "cpu"
    identity: dict[str, object] = field(default_factory=dict)
    part: int = PART
    single_label: bool = False
    """Whether exactly one class is true (softmax): the largest output is the answer, without a threshold."""
    fixed: int | None = None
    """The exact number of records that the model takes at a time; None if it takes any number."""
    takes_views: bool = False
    """Whether signals may be passed as transposed views, which saves a copy."""
    n_forward: int = 0
    """Records that went through the model so far."""
    kind_from: Origin = "its values"
    """How the kind of outputs is known."""
    says_single: bool | None = None
    """Whether the caller declared that exactly one class is true, or that each is by itself; None: neither."""
    ending: str | None = None
    """The last step of the model, sigmoid or softmax, where it is known."""
    leads: tuple[str, ...] | None = None
    """The leads that the model takes, in its order, if it says so."""
    order: tuple[int, ...] | None = None
    """Where the leads of the model are among those of the signals; None: they are the same."""
    sample_rate: float | None = None
    """Samples per second that the model was made for, if it says so."""

    def log_odds(self, x: ArrayLike) -> Floats:
        """Return one log-odds per record and class."""
        signals = np.asarray(x)
        return self.from_raw(self.raw(signals)) if len(signals) else np.zeros((0, len(self.classes or ())))

    def raw(self, x: ArrayLike) -> Floats:
        """Return the outputs of the model as they are, one row per record."""
        signals, size = np.asarray(x), self.fixed or self.part
        return np.concatenate([self._part(signals[i : i + size]) for i in range(0, len(signals), size)])

    def proba(self, x: ArrayLike) -> Floats:
        """Return one probability per record and class."""
        return to_probability(self.log_odds(x))

    def _part(self, x: NDArray[np.floating]) -> Floats:
        # padded with the first record, whose extra answers are removed
        if self.fixed is not None and len(x) < self.fixed:
            return self._part(np.concatenate([x, np.repeat(x[:1], self.fixed - len(x), axis=0)]))[: len(x)]
        self.n_forward += len(x)
        given = np.ascontiguousarray(x if self.order is None else x[..., list(self.order)], dtype=np.float32)
        if self.layout == "lead_sample":
            given = given.transpose(0, 2, 1) if self.takes_views else np.ascontiguousarray(given.transpose(0, 2, 1))
        raw = self._answer(given)
        found = np.asarray(pick_output(raw), dtype=np.float64)
        if found.ndim == 1 and len(found) == len(x):
            found = found[:, None]
        if found.ndim != 2 or len(found) != len(x):
            raise DataError(
                f"{self.name} gave the shape {found.shape} for {len(x)} records; one row per record is needed"
            )
        if not np.isfinite(found).all():
            raise DataError(f"{self.name} gave values that are not finite")
        return found

    def _answer(self, given: Signals) -> object:
        """Return the model's answer; its own errors become one sentence."""
        try:
            return self.function(given)
        except HitmissError:
            raise
        except Exception as error:  # a user's model may raise anything
            axes = "record × lead × sample" if self.layout == "lead_sample" else "record × sample × lead"
            shape = " × ".join(map(str, given.shape))
            raise DataError(
                f"{self.name} did not take signals of {shape} ({axes}): {type(error).__name__}: {str(error).strip()[:300]}"
            ) from error

    def bits(self, proba: ArrayLike, threshold: ArrayLike = 0.5) -> NDArray[np.int8]:
        """Return the model's bits: 1 where `proba >= threshold`; for exclusive classes only the largest."""
        values = np.asarray(proba, dtype=np.float64)
        if not self.single_label:
            return binarize(values, threshold)
        return np.asarray(values.argmax(axis=-1)[..., None] == np.arange(values.shape[-1]), dtype=np.int8)

    def settle(self, outputs: Floats) -> None:
        """Decide once, by the values of some outputs, whether they are logits or probabilities."""
        if self.outputs == "auto":
            self.outputs, self.kind_from = self._told(outputs), "its values"
        elif self.kind_from == "its last step" and self.ending is None:
            self.outputs = settled_kind(outputs, self.outputs)
            self.kind_from = "its last step" if self.outputs == "logit" else "its values"

    def from_raw(self, outputs: Floats) -> Floats:
        """Return one log-odds per record and class from the outputs of the model."""
        self.settle(outputs)
        if self.single_label:
            return self._of_one(outputs)
        if self.outputs in ("logit", "multilabel"):  # independent bits in both cases
            return outputs
        self._check_probabilities(outputs)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(outputs) - np.log1p(-outputs))

    def _of_one(self, outputs: Floats) -> Floats:
        """Return log-odds of each class against all others; the probabilities are the softmax."""
        if outputs.shape[1] < 2:
            raise UsageError(f"{self.name} has one output; classes that exclude each other need two", code="one-output")
        if self.outputs == "probability":
            self._check_probabilities(outputs)
            with np.errstate(divide="ignore"):
                outputs = np.log(outputs)
        return np.stack([to_log_odds(outputs, positive_index=k, kind="logit") for k in range(outputs.shape[1])], axis=1)

    def _check_probabilities(self, outputs: Floats) -> None:
        if ((outputs < 0) | (outputs > 1)).any():
            raise DataError(f"{self.name} is to give probabilities and gave {outputs.min():g} to {outputs.max():g}")

    def _told(self, outputs: Floats) -> OutputKind:
        if ((outputs < 0) | (outputs > 1)).any():
            return "logit"
        if are_distributions(outputs):
            return "probability"
        raise DataError(
            f"all outputs of {self.name} lie in 0..1: they may be probabilities or logits; say which: "
            f"--outputs probability or --outputs logit",
            code="outputs-unknown",
        )

    def need_gradient(self, family: str) -> TensorFunction:
        """Return the torch function, or raise an error that says why there is none."""
        if self.differentiable is None:
            raise UsageError(
                f"{family} needs gradients and {self.name} gives none: hand over a torch module (or an ONNX model, with torch "
                f"and onnx installed), or use a family that needs none, as random_search"
            )
        return self.differentiable


def as_classifier(
    model: object,
    *,
    outputs: OutputKind = "auto",
    layout: Layout = "sample_lead",
    classes: Sequence[str] | None = None,
    device: str = "cpu",
    single_label: bool | None = None,
) -> Classifier:
    """Return a classifier from what the caller has (see the table above).

    `single_label`: whether exactly one class is true. None: if the last step is a softmax.

    >>> as_classifier(lambda x: x.mean(axis=1)).proba(np.full((1, 10, 2), 0.25)).tolist()
    [[0.25, 0.25]]
    """
    if isinstance(model, Classifier):
        return model
    if layout not in LAYOUTS:
        raise UnknownName("layout", layout, LAYOUTS)
    if outputs == "raw":
        raise UsageError("an attack needs decisions: --outputs logit or --outputs probability", code="raw-outputs")
    made = _made(model, outputs, layout, device)
    made.classes = tuple(classes) if classes is not None else made.classes
    made.single_label = made.single_label if single_label is None else single_label
    made.says_single = single_label
    made.kind_from = "declared" if outputs != "auto" else made.kind_from
    leads, rate = _own(model, "leads"), _own(model, "sample_rate")
    made.leads = tuple(map(str, leads)) if isinstance(leads, tuple | list) else made.leads
    made.sample_rate = float(rate) if isinstance(rate, int | float) and rate else made.sample_rate
    return made


def _own(model: object, name: str) -> object:
    """Return what a model says about itself, or the object of the user inside a detector."""
    inner = [getattr(model, part, None) for part in ("module", "function", "estimator")]
    return next((found for one in (model, *inner) if (found := getattr(one, name, None)) is not None), None)


def _made(model: object, outputs: OutputKind, layout: Layout, device: str) -> Classifier:
    if isinstance(model, EstimatorDetector):
        return _made(model.estimator, outputs, layout, device)
    if isinstance(model, CallableDetector):
        return _made(model.function, outputs, layout, device)
    if isinstance(model, TorchDetector):
        return _of_torch(model.module, outputs, layout, model.device)
    if is_torch_module(model):
        return _of_torch(model, outputs, layout, device)
    if is_keras(model):
        return _of_keras(model, outputs, layout)
    if hasattr(model, "get_inputs") and hasattr(model, "run"):
        return _of_session(model, outputs, layout)
    if isinstance(model, OnnxDetector):
        return _of_onnx(model, outputs, layout, device)
    if isinstance(model, Detector) and not isinstance(model, type):
        return _of_detector(model, outputs, layout)
    if hasattr(model, "fit") and (hasattr(model, "predict_proba") or hasattr(model, "decision_function")):
        return _of_estimator(model, layout)
    kind: OutputKind = "probability" if outputs == "auto" else outputs
    if hasattr(model, "predict"):
        return Classifier(_predict(model), type(model).__name__, kind, layout, kind_from="assumed")
    if callable(model):
        name, own = getattr(model, "__name__", type(model).__name__), getattr(model, "differentiable", None)
        return Classifier(model, name, kind, layout, differentiable=own, kind_from="assumed")
    raise UsageError(
        f"a {type(model).__name__} is not a model; give something with .predict, a callable or a torch module"
    )


def _of_keras(model: KerasModel, outputs: OutputKind, layout: Layout) -> Classifier:
    """Wrap a Keras model on TensorFlow: documented probabilities, or the logits before its last sigmoid or softmax."""
    ending = last_activation(model)
    kind: OutputKind = ("logit" if ending else "probability") if outputs == "auto" else outputs
    is_logits = ending is not None and outputs == "auto"
    made = Classifier(
        (lambda x: logits_of(model, x)) if is_logits else _predict(model), type(model).__name__, kind, layout
    )
    made.single_label, made.ending = ending == "softmax", ending
    made.kind_from = "its last step" if ending else "assumed"
    try:
        made.differentiable = _oriented(torch_function(model), made, lambda: "logit" if ending else made.outputs)
    except EnvironmentFault:  # without torch, only the families that need no gradient are available
        made.differentiable = None
    return made


def _of_detector(model: Detector, outputs: OutputKind, layout: Layout) -> Classifier:
    """Wrap an object with `outputs`; it may declare `output_kind` and bring a torch function (`differentiable`)."""
    kind: OutputKind = getattr(model, "output_kind", "auto") if outputs == "auto" else outputs
    made = Classifier(model.outputs, model.name, kind, layout, getattr(model, "labels", None))
    made.kind_from = "its values" if kind == "auto" else "the model"
    made.differentiable = _reordered(getattr(model, "differentiable", None), made)
    made.identity = dict(getattr(model, "identity", {}))
    return made


def _reordered(function: TensorFunction | None, made: Classifier) -> TensorFunction | None:
    """Return a model's own torch function of its leads as one of the leads of the signals."""
    if function is None:
        return None
    return lambda x: function(x if made.order is None else x[:, list(made.order)])


def _predict(model: Any) -> Callable[[Signals], object]:
    """Return `.predict` as a function, with progress output turned off if possible."""
    try:
        is_quiet = "verbose" in inspect.signature(model.predict).parameters
    except (TypeError, ValueError):
        is_quiet = False
    return (lambda x: model.predict(x, verbose=0)) if is_quiet else model.predict


def _of_estimator(model: Any, layout: Layout) -> Classifier:
    """Wrap an estimator on flattened records; a list of probabilities per class (multi-output) becomes columns."""

    def positive(x: Signals) -> object:
        found = model.predict_proba(x.reshape(len(x), -1))
        if not isinstance(found, list):
            return np.asarray(found)
        narrow = [at for at, p in enumerate(found) if p.shape[1] != 2]
        if narrow:
            raise DataError(
                f"class {narrow[0] + 1} of {name} was learned from {found[narrow[0]].shape[1]} values; 0 and 1 are needed"
            )
        return np.stack([p[:, 1] for p in found], axis=1)

    def decide(x: Signals) -> object:
        return np.asarray(model.decision_function(x.reshape(len(x), -1)))

    name, classes = type(model).__name__, getattr(model, "classes_", None)
    words = tuple(classes) if isinstance(classes, np.ndarray) and classes.dtype.kind in "US" else None
    named = tuple(map(str, words)) if words is not None and len(words) > 1 else None
    if hasattr(model, "predict_proba"):
        return Classifier(positive, name, "probability", layout, named, kind_from="the model")
    return Classifier(decide, name, "logit", layout, named if named and len(named) > 2 else None, kind_from="the model")


def _of_session(session: InferenceSession, outputs: OutputKind, layout: Layout) -> Classifier:
    """Wrap an onnxruntime session: its first input, its first output."""
    given, answer = session.get_inputs()[0].name, session.get_outputs()[0].name
    kind = _kind_of_name(answer) if outputs == "auto" else outputs
    return Classifier(
        lambda x: session.run([answer], {given: x})[0], "onnx session", kind, layout, fixed=_fixed_batch(session)
    )


def _fixed_batch(session: InferenceSession) -> int | None:
    """Return the batch size that a graph was exported for; None if it is free (its first dimension has a name)."""
    shape = session.get_inputs()[0].shape
    return int(shape[0]) if shape and isinstance(shape[0], int) and shape[0] > 0 else None


def _of_onnx(detector: OnnxDetector, outputs: OutputKind, layout: Layout, device: str) -> Classifier:
    """Wrap an ONNX detector, with gradients if torch, onnx and its operators allow it."""

    kind = _kind_of_name(detector._answer) if outputs == "auto" else outputs
    made = Classifier(detector.outputs, detector.name, kind, layout, detector.labels, identity=dict(detector.identity))
    made.kind_from = "its values" if kind == "auto" else "the model"
    made.differentiable = _oriented(onnx_function(detector.path, detector._answer, device), made, lambda: made.outputs)
    made.leads, made.sample_rate = detector.leads, detector.sample_rate
    made.device, made.fixed = device, detector.max_batch
    return made


def _kind_of_name(name: str) -> OutputKind:
    """Return whether an output is named logits or probabilities; `auto` for any other name."""
    lower = name.lower()
    return "logit" if "logit" in lower else "probability" if lower.startswith("prob") else "auto"


def _of_torch(module: Module, outputs: OutputKind, layout: Layout, device: str) -> Classifier:
    """Wrap a torch module in evaluation mode."""
    torch = need("torch", "torch")
    place = pick_device(device)
    module = module.to(place).eval()
    # The last step is known after the first batch: logits are taken from before a sigmoid or softmax.
    settled = Settled(module, outputs)

    def forward(x: Signals) -> object:
        with torch.inference_mode(), channels_last(place, len(x)):
            found = settled(torch.from_numpy(x).to(place))
        if made.outputs == "auto":
            made.outputs, made.kind_from, made.ending = settled.kind, "its last step", settled.activation
            made.single_label = made.single_label or settled.activation == "softmax"
        return found

    name = type(module).__name__
    identity: dict[str, object] = {"name": name, "parameters": parameters_digest(module)}
    made = Classifier(forward, name, outputs, layout, device=place, identity=identity, takes_views=True)
    made.differentiable = _oriented(settled, made, lambda: settled.kind if made.outputs == "auto" else made.outputs)
    return made


def _oriented(
    function: Callable[[Tensor], object] | None, made: Classifier, kind: Callable[[], OutputKind]
) -> TensorFunction | None:
    """Return a torch function from record × lead × sample to logits, for a model of either layout and kind.

    Probabilities of exclusive classes become their logarithms: the softmax of those are the probabilities again.
    """
    if function is None:
        return None

    def logits(x: Tensor) -> Tensor:
        given = x if made.order is None else x[:, list(made.order)]
        raw = pick_raw(function(given if made.layout == "lead_sample" else given.transpose(1, 2)))
        if kind() != "probability":
            return raw
        return raw.clamp(SMALLEST, 1).log() if made.single_label else raw.clamp(SMALLEST, 1 - SMALLEST).logit()

    return logits


def ahead(log_odds: Floats) -> Floats:
    """Return how far each class's log-probability is ahead of the best other.

    >>> ahead(np.array([[1.0, -1.0]])).round(3).tolist()
    [[1.0, -1.0]]
    """
    logs = -np.logaddexp(0.0, -log_odds)
    others = np.stack([np.delete(logs, k, axis=1).max(axis=1) for k in range(logs.shape[1])], axis=1)
    return np.asarray(logs - others)


def binarize(proba: ArrayLike, threshold: ArrayLike = 0.5) -> NDArray[np.int8]:
    """Return 1 where `proba >= threshold`; there may be one threshold per class.

    >>> binarize([0.2, 0.5, 0.9]).tolist(), binarize([[0.2, 0.5]], [0.1, 0.6]).tolist()
    ([0, 1, 1], [[1, 0]])
    """
    values, cut = np.asarray(proba, dtype=np.float64), np.asarray(threshold, dtype=np.float64)
    if np.isnan(values).any():
        raise DataError(
            f"{int(np.isnan(values).sum())} probabilities are NaN, which is neither above nor below a threshold"
        )
    if cut.ndim and (cut.ndim > 1 or not values.ndim or len(cut) != values.shape[-1]):
        classes = values.shape[-1] if values.ndim else 1
        raise UsageError(f"a threshold is one number, or one for each of the {classes} classes; found {cut.size}")
    if not ((cut >= 0.0) & (cut <= 1.0)).all():
        raise UsageError(f"thresholds are probabilities, 0 to 1; found {cut}")
    return np.asarray(values >= cut, dtype=np.int8)
