"""Torch modules as detectors: inference mode, mixed precision and pinned memory on CUDA, layers by forward hooks.

Weights come from safetensors, or from a checkpoint that torch loads with `weights_only=True`: nothing is unpickled that
could run code.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.detect.detector import Base, Batch, file_digest, need
from hitmiss.detect.extract import pick_output
from hitmiss.errors import DataError, EnvironmentFault, UnknownName, UsageError

Array = NDArray[Any]
PRECISIONS: Final = ("auto", "float32", "bfloat16", "float16")
STATE_KEYS: Final = ("state_dict", "model_state_dict", "model", "net")
GPU_SECONDS: Final = 640.0
CPU_SECONDS: Final = 8.0
"""Seconds of sound in a batch: a processor is fastest where a batch stays in its cache."""
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


class TorchDetector(Base):
    """A torch module on clips of one length (clip × sample), or of whatever its user's `prepare` makes of them."""

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
    ) -> None:
        self.torch = need("torch", "torch")
        self.device = pick_device(device)
        self.precision = pick_precision(precision, self.device)
        self.module = module.to(self.device).eval()
        self.name = name or type(module).__name__
        self.sample_rate = sample_rate or getattr(module, "sample_rate", None)
        self.batch_seconds = GPU_SECONDS if self.device.startswith("cuda") else CPU_SECONDS
        self.is_async = self.device.startswith("cuda")
        self.layers = tuple(_find_layers(module, layers))
        self._pinned = dict(pinned or {})

    @property
    def identity(self) -> Mapping[str, Any]:
        """Its name, what was loaded into it, and the precision, which changes scores."""
        pinned = self._pinned or {"parameters": parameters_digest(self.module)}
        return {"name": self.name, "precision": self.precision, "layers": list(self.layers), **pinned}

    def prepare(self, batch: Batch) -> Batch:
        """The batch as a tensor on its way to the device; pinned, so that the copy runs beside the model."""
        if not isinstance(batch, np.ndarray):
            return batch
        tensor = self.torch.from_numpy(np.ascontiguousarray(batch))
        if not self.is_async:
            return tensor
        return tensor.pin_memory().to(self.device, non_blocking=True)

    def launch(self, batch: Batch) -> Any:
        """Start the model on a batch; on CUDA this returns before it is done, and `collect` waits for it."""
        ready = self.prepare(batch)
        with self.torch.inference_mode(), self.autocast():
            return self.module(ready)

    def collect(self, launched: Any) -> Array:
        """The outputs of a batch on the CPU, in float32."""
        return pick_output(launched)

    def outputs(self, batch: Batch) -> Array:
        """The outputs on the CPU, in float32."""
        return self.collect(self.launch(batch))

    def with_layers(self, batch: Batch) -> tuple[Array, dict[str, Array]]:
        """The outputs, and each layer averaged over time."""
        kept: dict[str, Any] = {}
        found = dict(self.module.named_modules())
        hooks = [found[name].register_forward_hook(_keep(kept, name)) for name in self.layers]
        try:
            outputs = self.outputs(batch)
        finally:
            for hook in hooks:
                hook.remove()
        first = {name: type(found[name]).__name__.startswith(CHANNELS_FIRST) for name in self.layers}
        return outputs, {name: pooled(kept[name], len(outputs), first[name]) for name in self.layers}

    def autocast(self) -> AbstractContextManager[Any]:
        """Mixed precision where it was chosen."""
        if self.precision == "float32":
            return nullcontext()
        kind = getattr(self.torch, self.precision)
        return self.torch.autocast(self.device.partition(":")[0], dtype=kind)  # type: ignore[no-any-return]

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Whether the GPU or the machine had too little memory; what the failed batch held is freed."""
        is_cuda = isinstance(error, self.torch.cuda.OutOfMemoryError)
        if is_cuda:
            self.torch.cuda.empty_cache()
        return is_cuda or isinstance(error, MemoryError) or "not enough memory" in str(error)


def pick_device(device: str) -> str:
    """`auto` is CUDA where there is one; CUDA asked for and absent is an error."""
    torch = need("torch", "torch")
    has_cuda = torch.cuda.is_available()
    if device == "auto":
        return "cuda" if has_cuda else "cpu"
    if device.startswith("cuda") and not has_cuda:
        raise EnvironmentFault("there is no CUDA device here; say --device cpu, or leave it out")
    return device


def pick_precision(precision: str, device: str) -> str:
    """`auto` is mixed bfloat16 on CUDA and float32 elsewhere."""
    if precision not in PRECISIONS:
        raise UnknownName("precision", precision, PRECISIONS)
    if precision == "auto":
        return "bfloat16" if device.startswith("cuda") else "float32"
    return precision


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


def _find_layers(module: Any, names: tuple[str, ...]) -> list[str]:
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
