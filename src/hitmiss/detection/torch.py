"""Torch modules as detectors: inference mode, mixed precision and pinned memory on CUDA, layers by forward hooks."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, cast

import numpy as np

from hitmiss.detection.checkpoints import parameters_digest
from hitmiss.detection.detect_spec import OutputKind
from hitmiss.detection.detector import Batch, Detector, arrays_of
from hitmiss.detection.eight_bits import largest_weight, quantised
from hitmiss.detection.layers import AXIS, declared_axes, find_layers, run_with_layers
from hitmiss.detection.outputs import OUTPUT_KINDS, Outputs, pick_output
from hitmiss.detection.pinning import pinned_precision
from hitmiss.detection.tracing import Settled

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
from hitmiss.detection.on_device import Launched, Staged, TorchOnDevice


class TorchDetector(TorchOnDevice):
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


def in_precision(torch: ModuleType, module: Module, precision: str) -> Module:
    """Prepare the module for a precision: the last linear layer stays in float32 in all of them."""
    if precision == "int8":
        return quantised(torch, module)
    if precision in ("bfloat16", "float16"):
        _keep_head_in_float32(torch, module)
    return module


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
