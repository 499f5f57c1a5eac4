"""What all torch detectors share: a device, a precision, and the transfer of batches and outputs.

On CUDA a batch is copied from pinned memory on its own stream while the model works on the previous one, and outputs
are returned through an event, so that several batches can be in progress and none waits for those after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import EnvironmentFault, UnknownName, UsageError
from hitmiss.detection.detector import Array, Base, Batch, need

if TYPE_CHECKING:
    from torch import Tensor
    from torch.cuda import Event, Stream


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


class TorchOnDevice(Base):
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
        raise EnvironmentFault.of("no-cuda")
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
        raise UsageError.of("int8-on-cpu/runs")
    if precision == "tf32" and not device.startswith("cuda"):
        raise UsageError.of("tf32-on-cuda")
    return "float32" if precision == "auto" else precision
