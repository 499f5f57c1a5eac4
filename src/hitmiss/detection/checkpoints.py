"""Weights from files: safetensors, or what torch loads with `weights_only=True`. Nothing that could run code is unpickled."""

from __future__ import annotations

import hashlib
import pickle
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hitmiss.core.errors import DataError, UsageError
from hitmiss.detection.detector import need
from hitmiss.detection.pinning import file_digest

if TYPE_CHECKING:
    from torch.nn import Module

STATE_KEYS: Final = ("state_dict", "model_state_dict", "model", "net")


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
    sha = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        sha.update(name.encode())
        sha.update(tensor.detach().cpu().contiguous().flatten().view(need("torch", "torch").uint8).numpy().tobytes())
    return sha.hexdigest()[:16]
