"""Torch modules as detectors: device, precision, transfer of batches, layers by forward hooks."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import DataError, EnvironmentFault, UnknownName, UsageError
from hitmiss.detection.detector import Array, Base, Batch, Detector, Settled, arrays_of, need
from hitmiss.detection.outputs import OUTPUT_KINDS, OutputKind, Outputs, pick_output
from hitmiss.detection.pinning import file_digest, pinned_precision

if TYPE_CHECKING:
    from torch import Tensor
    from torch.cuda import Event, Stream
    from torch.nn import Module

T = TypeVar("T")

# ----------------------------------------------------------------------
# What all torch detectors share: a device, a precision, and the transfer of batches and outputs.
#
# On CUDA a batch is copied from pinned memory on its own stream while the model works on the previous one, and outputs
# are returned through an event, so that several batches can be in progress and none waits for those after it.

PRECISIONS: Final = ("auto", "float32", "tf32", "bfloat16", "float16", "int8")
SHORT: Final = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
"""Common short names, and ours."""
WORDS: Final = {
    "float32": "float32 (TF32 off)",
    "tf32": "float32 with TF32 products (10 bits of mantissa)",
    "bfloat16": "mixed bfloat16, the last layer in float32",
    "float16": "mixed float16, the last layer in float32",
    "int8": "int8 products with a scale per row, the last layer in float32",
}
SMALLEST: Final = 1e-30
"""For a row of zeros, which has no scale."""
GPU_SECONDS: Final = 640.0
CPU_SECONDS: Final = 8.0
"""Seconds of sound in a batch: a CPU is fastest if a batch stays in its cache."""


class Staged(NamedTuple):
    """A batch being copied to the device; `sources` must stay alive until the copy is done."""

    batch: Tensor
    lengths: list[int]
    arrived: Event | None = None
    sources: Sequence[Tensor] = ()


class Launched(NamedTuple):
    """Outputs being copied to the CPU: the tensors there, and the event after which they hold the values."""

    outputs: object
    done: Event | None = None
    staged: Batch | None = None


class Placed(Base):
    """A torch model on a device, in a precision."""

    def __init__(self, device: str = "auto", precision: str = "auto") -> None:
        self.torch = need("torch", "torch")
        self.device = pick_device(device)
        self.precision = pick_precision(precision, self.device)
        self.is_async = self.device.startswith("cuda")
        self.batch_seconds = GPU_SECONDS if self.is_async else CPU_SECONDS
        self._copies: Stream | None = None

    def buffer(self, n_bytes: int) -> NDArray[np.uint8]:
        """Return memory for a clip: pinned on CUDA, so that it can be copied to the device directly."""
        if not self.is_async:
            return np.empty(n_bytes, dtype=np.uint8)
        return self.torch.empty(n_bytes, dtype=self.torch.uint8, pin_memory=True).numpy()  # type: ignore[no-any-return]

    def stage(self, clips: Sequence[Array]) -> Staged:
        """Copy clips as one tensor to the device, padded with zeros at the end if their lengths differ."""
        torch, first = self.torch, clips[0]
        lengths = [int(clip.shape[-1]) for clip in clips]
        shape = (len(clips), *first.shape[:-1], max(lengths))
        kind = torch.from_numpy(first[..., :0]).dtype
        make = torch.zeros if min(lengths) < max(lengths) else torch.empty
        if not self.is_async:
            batch = make(shape, dtype=kind)
            for row, clip in zip(batch.numpy(), clips, strict=True):
                row[..., : clip.shape[-1]] = clip
            return Staged(batch, lengths)
        if self._copies is None:
            self._copies = torch.cuda.Stream(self.device)
        sources = [torch.from_numpy(np.ascontiguousarray(clip)) for clip in clips]
        with torch.cuda.stream(self._copies):
            batch = make(shape, dtype=kind, device=self.device)
            for row, source in zip(batch, sources, strict=True):
                row[..., : source.shape[-1]].copy_(source, non_blocking=True)
            return Staged(batch, lengths, self._copies.record_event(), sources)

    def arrived(self, staged: Staged) -> Tensor:
        """Return the batch; the model's stream waits for it."""
        if staged.arrived is not None:
            stream = self.torch.cuda.current_stream(self.device)
            stream.wait_event(staged.arrived)
            staged.batch.record_stream(stream)
        return staged.batch

    def sent(self, outputs: object, staged: Batch | None = None) -> Launched:
        """Start copying outputs (a tensor, or several in a list, tuple or mapping) back."""
        if not self.is_async:
            return Launched(outputs)
        moved = self._moved(outputs)
        done = self.torch.cuda.Event()
        done.record(self.torch.cuda.current_stream(self.device))
        return Launched(moved, done, staged)

    def landed(self, launched: Launched) -> object:
        """Return the outputs once they have arrived."""
        if launched.done is not None:
            launched.done.synchronize()
        return launched.outputs

    @contextmanager
    def arithmetic(self) -> Iterator[None]:
        """Use no gradients, the chosen precision, and TF32 only if it was chosen."""
        torch = self.torch
        if not self.is_async:
            with torch.inference_mode(), self.autocast():
                yield
            return
        before, convolutions = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
        torch.set_float32_matmul_precision("high" if self.precision == "tf32" else "highest")
        torch.backends.cudnn.allow_tf32 = self.precision == "tf32"
        try:
            with torch.cuda.device(self.device), torch.no_grad(), self.autocast():
                yield
        finally:
            torch.set_float32_matmul_precision(before)
            torch.backends.cudnn.allow_tf32 = convolutions

    def autocast(self) -> AbstractContextManager[object]:
        """Return mixed precision if it was chosen."""
        kind = self.precision if self.precision in ("bfloat16", "float16") else None
        where = self.device.partition(":")[0]
        chosen: AbstractContextManager[object] = self.torch.autocast(
            where, dtype=getattr(self.torch, kind or "bfloat16"), enabled=kind is not None
        )
        return chosen

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Return whether the GPU or the machine ran out of memory; memory of the failed batch is freed."""
        is_cuda = isinstance(error, self.torch.cuda.OutOfMemoryError)
        if is_cuda:
            self.torch.cuda.empty_cache()
        return is_cuda or isinstance(error, MemoryError) or "not enough memory" in str(error)

    def _moved(self, outputs: object) -> object:
        if hasattr(outputs, "detach"):
            return outputs.detach().to("cpu", non_blocking=True)
        if isinstance(outputs, dict):
            return {name: self._moved(value) for name, value in outputs.items()}
        if isinstance(outputs, list | tuple):
            return tuple(self._moved(value) for value in outputs)
        fields = {name: getattr(outputs, name) for name in ("logits", "scores") if hasattr(outputs, name)}
        return self._moved(fields) if fields else outputs


def pick_device(device: str) -> str:
    """Return the device; `auto` is CUDA if there is one. CUDA requested but absent is an error."""
    torch = need("torch", "torch")
    has_cuda = torch.cuda.is_available()
    if device == "auto":
        return "cuda" if has_cuda else "cpu"
    if device.startswith("cuda") and not has_cuda:
        raise EnvironmentFault("there is no CUDA device here; say --device cpu, or leave it out", code="no-cuda")
    return device


def pick_precision(precision: str, device: str) -> str:
    """Return the precision; `auto` is float32 everywhere: more rounding would change the detector's own scores.

    >>> pick_precision("auto", "cuda"), pick_precision("bf16", "cpu")
    ('float32', 'bfloat16')
    """
    precision = SHORT.get(precision, precision)
    if precision not in PRECISIONS:
        raise UnknownName("precision", precision, PRECISIONS)
    if precision == "int8" and device != "cpu":
        raise UsageError("int8 runs on the processor; on a GPU say bfloat16", code="int8-on-cpu")
    if precision == "tf32" and not device.startswith("cuda"):
        raise UsageError("TF32 is a mode of NVIDIA GPUs; here say float32 or bfloat16", code="tf32-on-cuda")
    return "float32" if precision == "auto" else precision


# ----------------------------------------------------------------------
# Torch modules as detectors: inference mode, mixed precision and pinned memory on CUDA, layers by forward hooks.
#
# Weights come from safetensors, or from a checkpoint that torch loads with `weights_only=True`: nothing that could run
# code is unpickled.

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
        raise UsageError(
            f"layer {name!r} gives {' × '.join(map(str, shape))} for {n} clips, and the length of the clips does not show "
            f"which axis is time: say --embed {name}{AXIS}1 or --embed {name}{AXIS}2",
            code="which-axis",
        )
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
        raise UsageError(
            f"{type(module).__name__} has {len(linear)} linear layers; int8 leaves the last in float32, so nothing would change",
            code="int8-nothing",
        )
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
        raise UsageError(f"there is no checkpoint {path}")
    if path.suffix == ".safetensors":
        return need("safetensors.torch", "torch").load_file(str(path))
    torch = need("torch", "torch")
    try:
        with warnings.catch_warnings(action="ignore"):  # about pickle protocols: what cannot be read raises an error
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        first = str(error).splitlines()[0]
        raise DataError(
            f"{path.name} holds more than weights, and loading it would run code: {first} "
            f"Save its state_dict as .safetensors where you trust it"
        ) from None
    except (RuntimeError, EOFError, ValueError) as error:
        raise DataError(f"{path.name} is not a checkpoint: {str(error).splitlines()[0]}") from None


def load_weights(module: Module, path: str | Path) -> str:
    """Load the weights of a checkpoint into a module, every one of them; return the digest of the file."""
    state = load_checkpoint(path)
    for key in STATE_KEYS:
        if isinstance(state, dict) and isinstance(state.get(key), dict):
            state = state[key]
            break
    if not isinstance(state, dict):
        raise DataError(f"{Path(path).name} holds a {type(state).__name__}, no weights by name")
    wanted = set(module.state_dict())
    if not wanted & set(state) and all(key.startswith("module.") for key in state):
        state = {key.removeprefix("module."): value for key, value in state.items()}
    missing, extra = sorted(wanted - set(state)), sorted(set(state) - wanted)
    if missing or extra:
        raise DataError(
            f"{Path(path).name} does not fit {type(module).__name__}: {len(missing)} weights are missing ({', '.join(missing[:3])}), "
            f"{len(extra)} are unknown ({', '.join(extra[:3])})"
        )
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        raise DataError(f"{Path(path).name} does not fit: {' '.join(str(error).split())[:300]}") from None
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
        raise DataError(f"a layer gave the shape {array.shape} for {n} clips; it has no axis of clips")
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
