"""Torch modules as detectors: inference mode, mixed precision and pinned memory on CUDA, layers by forward hooks.

Weights come from safetensors, or from a checkpoint that torch loads with `weights_only=True`: nothing is unpickled that
could run code.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.detect.detector import Batch, need
from hitmiss.detect.endings import Settled
from hitmiss.detect.extract import OUTPUT_KINDS, OutputKind, pick_output
from hitmiss.detect.pinning import file_digest
from hitmiss.detect.torch_device import Launched, Placed, Staged
from hitmiss.errors import DataError, UnknownName, UsageError

Array = NDArray[Any]
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
"""Parts whose outputs are clip × channel × time; others are taken for clip × time × dimension."""


class TorchDetector(Placed):
    """A torch module on clips of one length (clip × sample), or of whatever its user's `prepare` makes of them.

    What its outputs are is read from its last step (see `endings`), or declared: `module.outputs = "logit"`.
    """

    def __init__(
        self,
        module: Any,
        *,
        name: str = "",
        sample_rate: int | None = None,
        device: str = "auto",
        precision: str = "auto",
        layers: tuple[str, ...] = (),
        pinned: Mapping[str, Any] | None = None,
        compiled: bool = False,
    ) -> None:
        super().__init__(device, precision)
        self._own_digest = "" if pinned else parameters_digest(module)
        self.name = name or type(module).__name__
        self.sample_rate = sample_rate or getattr(module, "sample_rate", None)
        self.layers = tuple(find_layers(module, layers))
        self._pinned = dict(pinned or {})
        declared = str(getattr(module, "outputs", "auto"))
        self.output_kind: OutputKind = next((kind for kind in OUTPUT_KINDS if kind == declared), "auto")
        self.module = in_precision(self.torch, module.to(self.device).eval(), self.precision)
        self._settled = Settled(self.module, self.output_kind)
        self._compiled = self.torch.compile(self.module) if compiled and not self.layers else None

    @property
    def identity(self) -> Mapping[str, Any]:
        """Its name, what was loaded into it, and the precision, which changes scores."""
        pinned = self._pinned or {"parameters": self._own_digest}
        return {"name": self.name, "precision": self.precision, "layers": list(self.layers), **pinned}

    def prepare(self, batch: Batch) -> Batch:
        """The batch as a tensor on its way to the device."""
        has_arrays = isinstance(batch, np.ndarray) or (isinstance(batch, list) and isinstance(batch[0], np.ndarray))
        return self.stage(list(batch)) if has_arrays else batch

    def launch(self, batch: Batch) -> Launched:
        """Start the model on a batch; on CUDA this returns before it is done, and `collect` waits for it."""
        staged = self.prepare(batch)
        with self.arithmetic():
            ready = self.arrived(staged) if isinstance(staged, Staged) else staged
            return self.sent(self._run(ready), staged)

    def collect(self, launched: Launched) -> Array:
        """The outputs of a batch on the CPU, in float32."""
        return pick_output(self.landed(launched))

    def outputs(self, batch: Batch) -> Array:
        """The outputs on the CPU, in float32."""
        return self.collect(self.launch(batch))

    def with_layers(self, batch: Batch) -> tuple[Array, dict[str, Array]]:
        """The outputs, and each layer averaged over time."""
        if self._settled.kind == "auto":
            self.outputs(batch)  # so that the hooks see one pass alone
        return run_with_layers(self.module, self.layers, lambda: self.outputs(batch))

    def _run(self, batch: Any) -> Any:
        if self._compiled is not None:
            if self._settled.kind == "auto":
                self._settled.look(batch[:1])
                # A compiled module ends in its own sigmoid or softmax: what it gives is a probability then.
                self.output_kind = "probability" if self._settled.activation else self._settled.kind
            return self._compiled(batch)
        found = self._settled(batch)
        self.output_kind = self._settled.kind
        return found


def run_with_layers(module: Any, layers: Sequence[str], run: Callable[[], Array]) -> tuple[Array, dict[str, Array]]:
    """What a run of the module gives, and the outputs of some of its parts in that run, averaged over time."""
    kept: dict[str, Any] = {}
    found = dict(module.named_modules())
    hooks = [found[name].register_forward_hook(_keep(kept, name)) for name in layers]
    try:
        outputs = run()
    finally:
        for hook in hooks:
            hook.remove()
    first = {name: type(found[name]).__name__.startswith(CHANNELS_FIRST) for name in layers}
    return outputs, {name: pooled(kept[name], len(outputs), first[name]) for name in layers}


def in_precision(torch: Any, module: Any, precision: str) -> Any:
    """The module made ready for a precision: the last linear layer stays in float32 in all of them."""
    if precision == "int8":
        return quantised(torch, module)
    if precision in ("bfloat16", "float16"):
        _keep_head_in_float32(torch, module)
    return module


def quantised(torch: Any, module: Any) -> Any:
    """The module with products of 8-bit whole numbers, all but the last; scales of inputs are found batch by batch."""
    linear = [name for name, part in module.named_modules() if isinstance(part, torch.nn.Linear)]
    if len(linear) < 2:
        raise UsageError(
            f"{type(module).__name__} has {len(linear)} linear layers; int8 leaves the last in float32, so nothing would change",
            code="int8-nothing",
        )
    with warnings.catch_warnings(action="ignore"):  # that this tool will move to another package
        from torch.ao.quantization import default_dynamic_qconfig, quantize_dynamic

        convert: Callable[..., Any] = quantize_dynamic
        return convert(module, dict.fromkeys(linear[:-1], default_dynamic_qconfig))


def _keep_head_in_float32(torch: Any, module: Any) -> None:
    """Have the last linear layer work in float32 under mixed precision: else scores lie on a coarse grid."""
    heads = [part for part in module.modules() if isinstance(part, torch.nn.Linear)]
    if not heads:
        return
    head, before = heads[-1], heads[-1].forward
    kind = next(iter(module.parameters())).device.type

    def forward(x: Any) -> Any:
        with torch.autocast(kind, enabled=False):
            return before(x.float())

    head.forward = forward


def load_checkpoint(path: str | Path) -> Any:
    """What a checkpoint holds: tensors, numbers, texts, lists and mappings. Anything that would run code is refused."""
    path = Path(path)
    if not path.is_file():
        raise UsageError(f"there is no checkpoint {path}")
    if path.suffix == ".safetensors":
        return need("safetensors.torch", "torch").load_file(str(path))
    torch = need("torch", "torch")
    try:
        with warnings.catch_warnings(action="ignore"):  # about pickle protocols: what cannot be read raises
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        first = str(error).splitlines()[0]
        raise DataError(
            f"{path.name} holds more than weights, and loading it would run code: {first} "
            f"Save its state_dict as .safetensors where you trust it"
        ) from None
    except (RuntimeError, EOFError, ValueError) as error:
        raise DataError(f"{path.name} is no checkpoint: {str(error).splitlines()[0]}") from None


def load_weights(module: Any, path: str | Path) -> str:
    """Put the weights of a checkpoint into a module, every one of them; the digest of the file."""
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


def parameters_digest(module: Any) -> str:
    """Short hash of the weights of a module that came from no file."""
    import hashlib

    sha = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        sha.update(name.encode())
        sha.update(tensor.detach().cpu().contiguous().flatten().view(need("torch", "torch").uint8).numpy().tobytes())
    return sha.hexdigest()[:16]


def pooled(value: Any, n: int, channels_first: bool = False) -> Array:
    """A layer's output as clip × dimension: the average over time, and over both axes of an image.

    The axis of the clips is found by its size: the first where it fits, else the second (time × clip × dimension).
    """
    array = pick_output(value if not isinstance(value, tuple | list) else value[0])
    if array.ndim >= 3 and array.shape[0] != n and array.shape[1] == n:
        array = np.swapaxes(array, 0, 1)
    if array.shape[0] != n:
        raise DataError(f"a layer gave the shape {array.shape} for {n} clips; it has no axis of clips")
    if array.ndim == 4:  # clip × channel × height × width
        return np.asarray(array.mean(axis=(2, 3)))
    if array.ndim == 3:
        return np.asarray(array.mean(axis=2 if channels_first else 1))
    return array.reshape(n, -1)


def _keep(kept: dict[str, Any], name: str) -> Any:
    def hook(_module: Any, _inputs: Any, output: Any) -> None:
        kept[name] = output

    return hook


def find_layers(module: Any, names: tuple[str, ...]) -> list[str]:
    """The modules of these names; `encoder.layers.*` stands for all at that place."""
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
