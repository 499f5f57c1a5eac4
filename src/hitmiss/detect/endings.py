"""What a torch module's outputs are, read from the steps that made them: logits, or what a sigmoid or softmax made of logits.

One clip is sent through the module while every torch function that it calls is noted. From the output the steps are followed
back: through changes of shape, to a sigmoid or softmax (its input is the logits, and is used instead: it does not saturate),
or to a product or convolution (the output is logits). Values play no part: five logits in 0..1 are still logits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from hitmiss.detect.detector import need
from hitmiss.detect.extract import OutputKind, pick_raw
from hitmiss.errors import DataError

SIGMOIDS: Final = ("sigmoid", "sigmoid_", "expit")
SOFTMAXES: Final = ("softmax", "_softmax", "softmax_")
LINEAR: Final = (
    "linear", "matmul", "__matmul__", "__rmatmul__", "mm", "bmm", "addmm", "baddbmm", "conv1d", "conv2d", "conv3d", "bilinear",
    "einsum", "log_softmax", "batch_norm", "layer_norm", "group_norm", "cosine_similarity", "logsigmoid",
)  # fmt: skip
SHAPES: Final = (
    "squeeze", "unsqueeze", "view", "reshape", "flatten", "unflatten", "contiguous", "float", "double", "to", "detach",
    "clone", "permute", "transpose", "type",
)  # fmt: skip
"""Steps that leave every number as it is: what is done after a sigmoid can be done to its input."""
DEEPEST: Final = 40


@dataclass
class Step:
    """A call: its name, the function, what it was given, and which of the tensors given came from which call."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    made: Any


@dataclass
class Trace:
    """The calls of one forward pass, by what they made."""

    steps: dict[int, Step] = field(default_factory=dict)

    def note(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any], made: Any
    ) -> None:
        """Keep a call; the tensors are held, so that no other gets their identity."""
        if hasattr(made, "detach"):
            name = getattr(function, "__name__", "")
            self.steps[id(made)] = Step(name, function, arguments, keywords, made)

    def kind(self, output: Any) -> OutputKind:
        """What the output is; `auto` where the steps do not tell."""
        found = self._ends(output, 0)
        if found == {"logit"}:
            return "logit"
        return "probability" if self._activation(output) is not None else "auto"

    def logits(self, output: Any) -> Any | None:
        """The input of the sigmoid or softmax that the output came from, in the output's shape; None where there is none."""
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

    def activation(self, output: Any) -> str | None:
        """`sigmoid` or `softmax`, where that is what made the output."""
        return self._activation(output)

    def _activation(self, output: Any) -> str | None:
        step = self.steps.get(id(output))
        if step is None:
            return None
        if step.name in SIGMOIDS:
            return "sigmoid"
        if step.name in SOFTMAXES:
            return "softmax"
        source = step.arguments[0] if step.arguments else step.keywords.get("input")
        return self._activation(source) if step.name in (*SHAPES, "__getitem__", "select") else None

    def _ends(self, value: Any, depth: int) -> set[str]:
        """Where the steps that made a value begin: `logit` at products, another word at activations, nothing at constants."""
        step = self.steps.get(id(value))
        if step is None or depth > DEEPEST:
            return {"unknown"} if depth > DEEPEST or depth == 0 else set()
        if step.name in LINEAR:
            return {"logit"}
        if step.name in SIGMOIDS + SOFTMAXES:
            return {"activation"}
        given = [v for v in (*step.arguments, *step.keywords.values()) if hasattr(v, "detach")]
        given += [v for a in step.arguments if isinstance(a, list | tuple) for v in a if hasattr(v, "detach")]
        return set().union(*(self._ends(v, depth + 1) for v in given))


def traced(call: Callable[[], Any]) -> tuple[Any, Trace]:
    """What a call gives, and the torch functions that it called."""
    torch = need("torch", "torch")
    trace = Trace()

    class Noting(torch.overrides.TorchFunctionMode):  # type: ignore[misc,name-defined]
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            made = function(*args, **(kwargs or {}))
            trace.note(function, tuple(args), dict(kwargs or {}), made)
            return made

    with Noting():
        return call(), trace


class Settled:
    """A torch module that gives logits wherever its last step lets it; `kind` says what it gives, after its first batch.

    `activation` is the sigmoid or softmax that was taken off, or None.
    """

    def __init__(self, module: Any, kind: OutputKind = "auto") -> None:
        self.module, self.kind = module, kind
        self.activation: str | None = None
        self._has_looked = kind != "auto"
        self._takes_logits = False

    def __call__(self, batch: Any) -> Any:
        """What the module gives for a batch: logits where its last step is a sigmoid or softmax."""
        if not self._has_looked:
            self.look(batch[:1])
        if not self._takes_logits:
            return self.module(batch)
        raw, trace = traced(lambda: self.module(batch))
        logits = trace.logits(pick_raw(raw))
        if logits is None:
            raise DataError(
                "the model ended otherwise for this batch than for the first: say outputs=…", code="two-endings"
            )
        return logits

    def look(self, one: Any) -> None:
        """Settle what the outputs are, by one item."""
        torch = need("torch", "torch")
        with torch.no_grad():
            raw, trace = traced(lambda: self.module(one))
        output = pick_raw(raw)
        self.kind, self._has_looked = trace.kind(output), True
        if trace.logits(output) is not None:
            # The input of the last sigmoid or softmax does not saturate; the scores are the same function of it.
            self._takes_logits, self.activation = True, trace.activation(output)
            has_sigmoids = self.activation == "sigmoid" and output.ndim > 1 and output.shape[1] > 1
            self.kind = "multilabel" if has_sigmoids else "logit"
