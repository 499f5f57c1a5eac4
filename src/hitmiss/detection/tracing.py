"""The kind of a torch module's outputs, derived from the operations that made them.

One clip is sent through the module while every torch function call is recorded. From the output the calls are traced
back: through changes of shape, to a sigmoid or softmax (its input, the logits, is used instead because it does not
saturate), or to a product or convolution (the output is logits). Values are not used: five logits that happen to lie
in 0..1 are still logits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Final

from hitmiss.core.errors import DataError
from hitmiss.detection.detect_spec import OutputKind
from hitmiss.detection.outputs import pick_raw

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

from hitmiss.detection.detector import need

SIGMOIDS: Final = ("sigmoid", "sigmoid_", "expit")
SOFTMAXES: Final = ("softmax", "_softmax", "softmax_")
LINEAR: Final = (
    "linear", "matmul", "__matmul__", "__rmatmul__", "mm", "bmm", "addmm", "baddbmm", "conv1d", "conv2d", "conv3d", "bilinear",
    "einsum", "log_softmax", "batch_norm", "layer_norm", "group_norm", "cosine_similarity",
)  # fmt: skip
PRODUCTS: Final = ("matmul", "__matmul__", "__rmatmul__", "mm", "bmm", "baddbmm", "einsum")
"""Products that are logits only if one factor is constant: a mixture of probabilities is a product too."""
SHAPES: Final = (
    "squeeze", "unsqueeze", "view", "reshape", "flatten", "unflatten", "contiguous", "float", "double", "to", "detach",
    "clone", "permute", "transpose", "type",
)  # fmt: skip
"""Steps that keep every value unchanged: what is done after a sigmoid can also be done to its input."""
SUMS: Final = (
    "add", "__add__", "__radd__", "__iadd__", "add_", "sub", "__sub__", "__rsub__", "rsub", "subtract", "neg", "__neg__",
    "cat", "concat", "stack", "__getitem__", "select", "index_select", "gather", "narrow", "mean", "sum", "max", "amax",
    "maximum", "min", "amin", "minimum", "logsumexp", "dropout", "max_pool1d", "max_pool2d", "avg_pool1d", "avg_pool2d",
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_max_pool1d", "adaptive_max_pool2d",
)  # fmt: skip
"""Steps whose results are as unbounded as what they take."""
SCALES: Final = (
    "mul",
    "__mul__",
    "__rmul__",
    "mul_",
    "multiply",
    "div",
    "__truediv__",
    "true_divide",
    "divide",
    "div_",
)
"""Steps that keep logits what they are if the other operand is constant, as a temperature is."""
SAME: Final = 1e-3
"""How far a removed sigmoid or softmax, applied again, may be from the model's own output."""
DEEPEST: Final = 40


@dataclass
class Step:
    """A call: its name, the function, its arguments, and which argument tensors came from which call."""

    name: str
    function: Callable[..., object]
    arguments: tuple[object, ...]
    keywords: dict[str, object]
    made: object


@dataclass
class Trace:
    """The calls of one forward pass, by their results."""

    steps: dict[int, Step] = field(default_factory=dict)

    def note(
        self, function: Callable[..., object], arguments: tuple[object, ...], keywords: dict[str, object], made: object
    ) -> None:
        """Keep a call; the tensors are held, so that no other object gets their identity."""
        if hasattr(made, "detach"):
            name = getattr(function, "__name__", "")
            self.steps[id(made)] = Step(name, function, arguments, keywords, made)

    def kind(self, output: object) -> OutputKind:
        """Return the kind of the output; `auto` if the calls do not show it."""
        found = self._ends(output, 0)
        if found == {"logit"}:
            return "logit"
        return "probability" if self.activation(output) is not None else "auto"

    def logits(self, output: object) -> object | None:
        """Return the input of the sigmoid or softmax behind the output, in the output's shape, if there is one."""
        step = self.steps.get(id(output))
        if step is None or (not step.arguments and "input" not in step.keywords):
            return None
        source = step.arguments[0] if step.arguments else step.keywords["input"]
        if step.name in SIGMOIDS + SOFTMAXES:
            return source
        if step.name not in SHAPES:
            return None
        inner = self.logits(source)
        return None if inner is None else step.function(inner, *step.arguments[1:], **step.keywords)

    def activation(self, output: object) -> str | None:
        """Return `sigmoid` or `softmax` if one of them made the output."""
        step = self.steps.get(id(output))
        if step is None:
            return None
        if step.name in SIGMOIDS:
            return "sigmoid"
        if step.name in SOFTMAXES:
            return "softmax"
        source = step.arguments[0] if step.arguments else step.keywords.get("input")
        return self.activation(source) if step.name in (*SHAPES, "__getitem__", "select") else None

    def _ends(self, value: object, depth: int) -> set[str]:
        """Return the origins of a value: `logit` for products, another word for activations and for steps that may bound
        or reshape their values, nothing for constants.
        """
        step = self.steps.get(id(value))
        if step is None or depth > DEEPEST:
            return {"unknown"} if depth > DEEPEST or depth == 0 else set()
        if step.name in SIGMOIDS + SOFTMAXES:
            return {"activation"}
        if step.name in LINEAR and step.name not in PRODUCTS:
            return {"logit"}
        given = [v for v in (*step.arguments, *step.keywords.values()) if hasattr(v, "detach")]
        given += [v for a in step.arguments if isinstance(a, list | tuple) for v in a if hasattr(v, "detach")]
        ends = [found for v in given if (found := self._ends(v, depth + 1))]
        if step.name in PRODUCTS:
            return {"logit"} if len(ends) < 2 else {"unknown"}
        if step.name in SCALES:
            return ends[0] if len(ends) == 1 else {"unknown"} if ends else set()
        if step.name in SHAPES + SUMS or not ends:
            return set().union(*ends)
        return {"unknown"}


def traced(call: Callable[[], object]) -> tuple[object, Trace]:
    """Return the result of a call, and the torch functions that it called."""
    torch = need("torch", "torch")
    trace = Trace()

    class Noting(torch.overrides.TorchFunctionMode):  # type: ignore[misc,name-defined]
        def __torch_function__(
            self,
            function: Callable[..., object],
            types: object,
            args: Sequence[object] = (),
            kwargs: Mapping[str, object] | None = None,
        ) -> object:
            made = function(*args, **(kwargs or {}))
            trace.note(function, tuple(args), dict(kwargs or {}), made)
            return made

    with Noting():
        return call(), trace


class Settled:
    """A torch module that returns logits if its last step allows it; `kind` is set by the first batch.

    `activation` is the sigmoid or softmax that was removed, or None.
    """

    def __init__(self, module: Module, kind: OutputKind = "auto") -> None:
        self.module, self.kind = module, kind
        self.activation: str | None = None
        self._has_looked = kind != "auto"
        self._takes_logits = False

    def __call__(self, batch: Tensor) -> object:
        """Return the module's output for a batch: logits if its last step is a sigmoid or softmax."""
        if not self._has_looked:
            self.look(batch[:1])
        if not self._takes_logits:
            return self.module(batch)
        raw, trace = traced(lambda: self.module(batch))
        logits = trace.logits(pick_raw(raw))
        if logits is None:
            raise DataError.of("two-endings")
        return logits

    def look(self, one: Tensor) -> None:
        """Decide the kind of outputs from one item."""
        torch = need("torch", "torch")
        with torch.no_grad():
            raw, trace = traced(lambda: self.module(one))
        output = pick_raw(raw)
        self.kind, self._has_looked = trace.kind(output), True
        logits, activation = trace.logits(output), trace.activation(output)
        if logits is not None and _is_result(torch, activation, logits, output):
            # The input of the last sigmoid or softmax does not saturate; the scores are the same function of it.
            self._takes_logits, self.activation = True, activation
            has_sigmoids = self.activation == "sigmoid" and output.ndim > 1 and output.shape[1] > 1
            self.kind = "multilabel" if has_sigmoids else "logit"
        elif logits is not None:
            self.kind = "auto"  # a softmax along another axis: its values are looked at


def _is_result(torch: ModuleType, activation: str | None, logits: object, output: Tensor) -> bool:
    """Return whether a sigmoid, or a softmax over the columns, of the logits of one item is what the model gave."""
    flat = torch.as_tensor(logits).detach().flatten().double()
    if activation == "softmax" and len(flat) < 2:
        return False
    again = torch.sigmoid(flat) if activation == "sigmoid" else torch.softmax(flat, 0)
    return bool((again - output.detach().flatten().double()).abs().max() <= SAME)
