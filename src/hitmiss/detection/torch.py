"""Torch modules as detectors: inference mode, mixed precision and pinned memory on CUDA, layers by forward hooks.

Weights come from safetensors, or from a checkpoint that torch loads with `weights_only=True`: nothing that could run
code is unpickled.
"""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import numpy as np

from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.detection.detect_spec import OutputKind
from hitmiss.detection.detector import Batch, Detector, arrays_of, need
from hitmiss.detection.outputs import OUTPUT_KINDS, Outputs, pick_output
from hitmiss.detection.pinning import file_digest, pinned_precision
from hitmiss.detection.tracing import Settled

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
from hitmiss.detection.placed import SMALLEST, Launched, Placed, Staged

T = TypeVar("T")
STATE_KEYS: Final = ("state_dict", "model_state_dict", "model", "net")
CHANNELS_FIRST: Final = (
    "Conv",
    "BatchNorm",
    "GroupNorm",
    "InstanceNorm",
    "MaxPool",
    "AvgPool",
    "AveragePool",
    "Adaptive",
)
"""Parts whose outputs are clip × channel × time, where their length does not show it."""
TIME_FIRST: Final = ("Linear", "LayerNorm", "Transformer", "MultiheadAttention", "LSTM", "GRU", "RNN", "Embedding")
"""Parts whose outputs are clip × time × dimension, where their length does not show it."""
AXIS: Final = "@"
"""Between the name of a layer and the axis that is its time, where the caller declares it: `block@2`."""


class TorchDetector(Placed):
    """A torch module on clips of one length (clip × sample), or on whatever the user's `prepare` makes of them.

    The kind of its outputs is read from its last step (see `Trace`), or declared: `module.outputs = "logit"`.
    """

    def __init__(
        self,
        module: Module,
        *,
        name: str = "",
        sample_rate: int | None = None,
        device: str = "auto",
        precision: str = "auto",
        layers: tuple[str, ...] = (),
        pinned: Mapping[str, object] | None = None,
        compiled: bool = False,
    ) -> None:
        super().__init__(device, precision)
        self._own_digest = "" if pinned else parameters_digest(module)
        self.name = name or type(module).__name__
        self.sample_rate = sample_rate or getattr(module, "sample_rate", None)
        self.layers, self._axes = declared_axes(layers, lambda names: find_layers(module, names))
        self._declared_axes = dict(self._axes)
        self._pinned = dict(pinned or {})
        declared = str(getattr(module, "outputs", "auto"))
        self.output_kind: OutputKind = next((kind for kind in OUTPUT_KINDS if kind == declared), "auto")
        self.kind_from = "its last step" if self.output_kind == "auto" else "the model"
        self._given = module.to(self.device).eval()
        self.module = in_precision(self.torch, self._given, self.precision)
        self._settled = Settled(self.module, self.output_kind)
        # On CUDA a compiled module is recorded as a CUDA graph for each shape: there are few if clips have one length.
        how = {"mode": "reduce-overhead"} if self.is_async else {}
        self._compiled = self.torch.compile(self.module, **how) if compiled and not self.layers else None

    @property
    def activation(self) -> str | None:  # type: ignore[override]
        """The sigmoid or softmax that was taken off."""
        return self._settled.activation if self._compiled is None else None

    @property
    def identity(self) -> Mapping[str, object]:
        """Its name, what was loaded into it, and the precision, which changes scores."""
        pinned = self._pinned or {"parameters": self._own_digest}
        precision = pinned_precision(self.precision, largest_weight())
        layers = [f"{name}{AXIS}{at}" if (at := self._declared_axes.get(name)) else name for name in self.layers]
        return {"name": self.name, **precision, "layers": layers, **pinned}

    def in_float32(self) -> Detector | None:
        """Return the module as it was given."""
        if self.precision == "float32":
            return None
        return TorchDetector(
            self._given, name=self.name, sample_rate=self.sample_rate, device=self.device, pinned=self._pinned
        )

    def prepare(self, batch: Batch) -> Batch:
        """Return the batch as a tensor being copied to the device."""
        has_arrays = isinstance(batch, np.ndarray) or (isinstance(batch, list) and isinstance(batch[0], np.ndarray))
        return self.stage(arrays_of(batch)) if has_arrays else batch

    def launch(self, batch: Batch) -> Launched:
        """Start the model on a batch; on CUDA this returns before it is done, and `collect` waits for it."""
        staged = self.prepare(batch)
        with self.arithmetic():
            # What is not staged was made by the caller's own `prepare`.
            ready = self.arrived(staged) if isinstance(staged, Staged) else cast("Tensor", staged)
            return self.sent(self._run(ready), staged)

    def collect(self, launched: Launched) -> Outputs:
        """Return the outputs of a batch on the CPU, in float32."""
        return pick_output(self.landed(launched))

    def outputs(self, batch: Batch) -> Outputs:
        """Return the outputs on the CPU, in float32."""
        return self.collect(self.launch(batch))

    def with_layers(self, batch: Batch) -> tuple[Outputs, dict[str, Outputs]]:
        """Return the outputs, and each layer averaged over time."""
        if self._settled.kind == "auto":
            self.outputs(batch)  # so that the hooks see only one pass
        return run_with_layers(
            self.module, self.layers, lambda: self.outputs(batch), self._axes, lambda: self._run_longer(batch)
        )

    def _run_longer(self, batch: Batch) -> None:
        """Run the module on clips of twice the length, to see which axis of a layer is its time."""
        staged = self.prepare(batch)
        with self.arithmetic():
            ready = self.arrived(staged) if isinstance(staged, Staged) else cast("Tensor", staged)
            if ready.ndim == 2:  # sound; pictures have no length
                self.module(self.torch.cat([ready, ready], dim=-1))

    def _run(self, batch: Tensor) -> object:
        if self._compiled is not None:
            if self._settled.kind == "auto":
                self._settled.look(batch[:1])
                # A compiled module includes its own sigmoid or softmax: its output is then a probability.
                self.output_kind = "probability" if self._settled.activation else self._settled.kind
            if self.is_async:  # the previous output of the graph is already being copied to the CPU
                self.torch.compiler.cudagraph_mark_step_begin()
            return self._compiled(batch)
        found = self._settled(batch)
        self.output_kind = self._settled.kind
        return found


def run_with_layers(
    module: Module,
    layers: Sequence[str],
    run: Callable[[], Outputs],
    axes: dict[str, int],
    longer: Callable[[], object],
    usual: int | None = None,
) -> tuple[Outputs, dict[str, Outputs]]:
    """Return the result of a run of the module, and the outputs of some of its parts, averaged over time.

    `axes` holds the axis of time of each part; those that are not there yet are found by `longer`, which runs the module
    on longer items. `usual` is the axis where that does not show it; None: known parts have theirs, others are refused.
    """
    kept: dict[str, object] = {}
    outputs = _kept_in(kept, module, layers, run)
    new = [name for name in layers if name not in axes]
    if new:
        grown: dict[str, object] = {}
        with suppress(Exception):  # a module may take one length only; its first parts may have shown their axes
            _kept_in(grown, module, new, longer)
        parts = dict(module.named_modules())
        for name in new:
            known = usual or _axis_of_part(type(parts[name]).__name__)
            axes[name] = time_axis(name, shape_of(kept[name]), shape_of(grown.get(name)), len(outputs), known)
    return outputs, {name: pooled(kept[name], len(outputs), axes[name]) for name in layers}


def _kept_in(kept: dict[str, object], module: Module, layers: Sequence[str], run: Callable[[], T]) -> T:
    """Return the result of a run; keep what some parts of the module gave in it."""
    found = dict(module.named_modules())
    hooks = [found[name].register_forward_hook(_keep(kept, name)) for name in layers]
    try:
        return run()
    finally:
        for hook in hooks:
            hook.remove()


def _axis_of_part(kind: str) -> int | None:
    """Return the axis of time of a part, if its kind is known."""
    return 2 if kind.startswith(CHANNELS_FIRST) else 1 if kind.startswith(TIME_FIRST) else None


def shape_of(value: Any) -> tuple[int, ...] | None:
    """Return the shape of what a layer gave; None if it gave nothing."""
    if value is None:
        return None
    return tuple(int(n) for n in np.shape(value[0] if isinstance(value, tuple | list) else value))


def time_axis(
    name: str, shape: tuple[int, ...] | None, longer: tuple[int, ...] | None, n: int, known: int | None
) -> int:
    """Return the axis of a layer that is its time: the one that grows with the clips, else the one that is known.

    `shape` and `longer` are the layer's shapes for n clips and for n longer ones.

    >>> time_axis("block", (4, 24, 100), (4, 24, 200), 4, None), time_axis("block", (4, 24, 100), None, 4, 1)
    (2, 1)
    """
    shape = shape or ()
    is_turned = len(shape) >= 3 and shape[0] != n and shape[1] == n  # time × clip × dimension
    if len(shape) < 3:
        return 1
    if is_turned:
        return 1
    grown = [i for i, pair in enumerate(zip(shape, longer or shape, strict=False)) if pair[0] != pair[1]]
    if len(grown) == 1 and longer is not None and len(longer) == len(shape) and grown[0] > 0:
        return grown[0]
    if len(shape) == 4 and known is None:
        return 3  # a picture: clip × channel × height × width
    if known is None:
        raise UsageError.of("which-axis", name=name, shape=" × ".join(map(str, shape)), n=n, AXIS=AXIS)
    return known


def declared_axes(
    layers: Sequence[str], find: Callable[[tuple[str, ...]], Sequence[str]]
) -> tuple[tuple[str, ...], dict[str, int]]:
    """Split `block@2` into the layers of a name and the axis that is their time."""
    found: list[str] = []
    axes: dict[str, int] = {}
    for text in layers:
        name, _, axis = text.rpartition(AXIS) if text.rpartition(AXIS)[2].isdigit() else (text, "", "")
        own = find((name or text,))
        found += own
        axes |= {one: int(axis) for one in own if axis}
    return tuple(dict.fromkeys(found)), axes


def in_precision(torch: ModuleType, module: Module, precision: str) -> Module:
    """Prepare the module for a precision: the last linear layer stays in float32 in all of them."""
    if precision == "int8":
        return quantised(torch, module)
    if precision in ("bfloat16", "float16"):
        _keep_head_in_float32(torch, module)
    return module


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


def _keep_head_in_float32(torch: ModuleType, module: Module) -> None:
    """Keep the last linear layer in float32 under mixed precision: otherwise scores lie on a coarse grid."""
    heads = [part for part in module.modules() if isinstance(part, torch.nn.Linear)]
    if not heads:
        return
    head, before = heads[-1], heads[-1].forward
    kind = next(iter(module.parameters())).device.type

    def forward(x: Tensor) -> Tensor:
        with torch.autocast(kind, enabled=False):
            return before(x.float())

    head.forward = forward


def load_checkpoint(path: str | Path) -> object:
    """Read a checkpoint: tensors, numbers, texts, lists and mappings. Anything that would run code is refused."""
    path = Path(path)
    if not path.is_file():
        raise UsageError.of("missing-file", what="checkpoint", file=path)
    if path.suffix == ".safetensors":
        return need("safetensors.torch", "torch").load_file(str(path))
    torch = need("torch", "torch")
    try:
        with warnings.catch_warnings(action="ignore"):  # about pickle protocols: what cannot be read raises an error
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        first = str(error).splitlines()[0]
        raise DataError.of("unsafe-checkpoint", path_name=path.name, first=first) from None
    except (RuntimeError, EOFError, ValueError) as error:
        raise DataError.of("not-a-file", file=path.name, what="checkpoint", error=str(error).splitlines()[0]) from None


def load_weights(module: Module, path: str | Path) -> str:
    """Load the weights of a checkpoint into a module, every one of them; return the digest of the file."""
    state = load_checkpoint(path)
    for key in STATE_KEYS:
        if isinstance(state, dict) and isinstance(state.get(key), dict):
            state = state[key]
            break
    if not isinstance(state, dict):
        raise DataError.of("no-weights", file=Path(path).name, found=type(state).__name__)
    wanted = set(module.state_dict())
    if not wanted & set(state) and all(key.startswith("module.") for key in state):
        state = {key.removeprefix("module."): value for key, value in state.items()}
    missing, extra = sorted(wanted - set(state)), sorted(set(state) - wanted)
    if missing or extra:
        raise DataError.of(
            "weights-unfit",
            name=Path(path).name,
            name_2=type(module).__name__,
            n_missing=len(missing),
            missing=tuple(missing[:3]),
            n_extra=len(extra),
            extra=tuple(extra[:3]),
        )
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        raise DataError.of(
            "weights-unfit/error", name=Path(path).name, error=" ".join(str(error).split())[:300]
        ) from None
    return file_digest(path)


def parameters_digest(module: Module) -> str:
    """Return a short hash of the weights of a module that does not come from a file."""
    import hashlib

    sha = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        sha.update(name.encode())
        sha.update(tensor.detach().cpu().contiguous().flatten().view(need("torch", "torch").uint8).numpy().tobytes())
    return sha.hexdigest()[:16]


def pooled(value: object, n: int, time: int = 1) -> Outputs:
    """Return a layer's output as clip × dimension: the average over time, and over both axes of an image.

    The axis of the clips is found by its size: the first if it fits, else the second (time × clip × dimension).
    """
    array = pick_output(value if not isinstance(value, tuple | list) else value[0])
    if array.ndim >= 3 and array.shape[0] != n and array.shape[1] == n:
        array = np.swapaxes(array, 0, 1)
    if array.shape[0] != n:
        raise DataError.of("output-shape", name="a layer", shape=str(array.shape), n=n, what="clips")
    if array.ndim == 4 and time != 1:  # clip × channel × height × width
        return np.asarray(array.mean(axis=(2, 3)))
    if array.ndim >= 3:
        return np.asarray(array.mean(axis=min(time, array.ndim - 1))).reshape(n, -1)
    return array.reshape(n, -1)


def _keep(kept: dict[str, object], name: str) -> Callable[[Module, object, object], None]:
    def hook(_module: Module, _inputs: object, output: object) -> None:
        kept[name] = output

    return hook


def find_layers(module: Module, names: tuple[str, ...]) -> list[str]:
    """Return the modules of these names; `encoder.layers.*` matches all at that place."""
    known = [name for name, _ in module.named_modules() if name]
    found: list[str] = []
    for name in names:
        head, star, _ = name.partition("*")
        hits = (
            [k for k in known if k.startswith(head) and "." not in k[len(head) :]]
            if star
            else [k for k in known if k == name]
        )
        if not hits:
            raise UnknownName("layer", name, known)
        found += hits
    return list(dict.fromkeys(found))
