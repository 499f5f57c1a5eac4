"""What a detector is.

A detector takes a batch and returns outputs; `extract` turns them into scores. Any object with `name`, `sample_rate`
and `outputs` is a detector. `Base` has defaults for everything else that the loop may use:

    ragged        whether clips of different lengths may share a batch without affecting each other's outputs
    labels        the classes of its columns, if the model names them
    max_batch     the maximum number of clips per batch
    is_async      whether `launch` returns before the model is done and `collect` waits, so that batches overlap
    identity      what pins it in the configuration of a run: a run cannot be resumed with another detector
    prepare       moves a batch to where the model needs it; runs in another thread, in parallel with the model
    with_layers   outputs and pooled hidden layers, for `hitmiss probe`
    worker_class  the worker of its runs, if not that of one process (see `RayDetector`)
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import UsageError
from hitmiss.core.packages import need_package
from hitmiss.detection.detect_spec import OutputKind
from hitmiss.detection.outputs import Outputs
from hitmiss.detection.pinning import source_digest

if TYPE_CHECKING:
    from torch.nn import Module

    from hitmiss.detection.contract import Origin
    from hitmiss.detection.on_device import Staged


Array = NDArray[np.generic]
Item = Array | str
"""A clip, a picture or a text."""
Batch: TypeAlias = "Array | Sequence[Item] | Staged"
"""Clips of one shape as an array (clip × sample), or a list: clips of several lengths, or texts."""


def arrays_of(batch: Batch) -> list[Array]:
    """Return the clips or pictures of a batch."""
    found = [item for item in batch if isinstance(item, np.ndarray)]
    if len(found) < len(batch):
        raise UsageError.of("not-arrays")
    return found


@runtime_checkable
class Detector(Protocol):
    """Takes a batch and returns outputs: one row per clip, one column per class (or a single column)."""

    name: str
    sample_rate: int | None

    def outputs(self, batch: Batch) -> Outputs:
        """Return the raw outputs of the model, one row per clip."""
        ...


class Base:
    """The defaults of the detector interface."""

    name: str = "detector"
    sample_rate: int | None = None
    ragged: bool = False
    labels: tuple[str, ...] | None = None
    sides: tuple[str, ...] | None = None
    """The two classes of a single output, the one that a higher output means last."""
    output_kind: OutputKind = "auto"
    kind_from: Origin = "the model"
    """How `output_kind` is known."""
    activation: str | None = None
    """The sigmoid or softmax that was taken off the model's last step; `outputs` are then logits."""
    max_batch: int | None = None
    is_async: bool = False
    layers: tuple[str, ...] = ()

    @property
    def identity(self) -> Mapping[str, object]:
        """What pins the detector; it must include everything that could change a score."""
        return {"name": self.name}

    def prepare(self, batch: Batch) -> Batch:
        """Return a batch in the form that `outputs` prefers."""
        return batch

    def outputs(self, batch: Batch) -> Outputs:
        """Return the raw outputs of the model, one row per clip."""
        raise NotImplementedError(f"{type(self).__name__} must give outputs for {len(batch)} clips")

    def launch(self, batch: Batch) -> object:
        """Start the model on a batch."""
        return self.outputs(batch)

    def collect(self, launched: Any) -> Outputs:
        """Return the raw outputs of a batch that was launched."""
        return np.asarray(launched)

    def with_layers(self, batch: Batch) -> tuple[Outputs, dict[str, Outputs]]:
        """Return the outputs, and each requested layer as clip × dimension."""
        del batch
        raise UsageError.of("no-layers", name=self.name)

    def in_float32(self) -> Detector | None:
        """Return the same detector in float32, if it uses a lower precision; used to measure the effect of rounding."""
        return None

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Return whether an error means that the batch was too large."""
        return isinstance(error, MemoryError)

    def close(self) -> None:
        """Release the detector's resources."""


class CallableDetector(Base):
    """Wraps any function from a batch to outputs.

    >>> detector = CallableDetector(lambda batch: batch.mean(axis=1))
    >>> detector.outputs(np.array([[1.0, 3.0], [0.0, 0.0]])).tolist()
    [2.0, 0.0]
    """

    def __init__(
        self, function: Callable[..., object], name: str = "", sample_rate: int | None = None, ragged: bool = False
    ) -> None:
        self.function = function
        self.name = name or getattr(function, "__qualname__", type(function).__name__)
        self.sample_rate = sample_rate or getattr(function, "sample_rate", None)
        self.ragged = ragged or bool(getattr(function, "ragged", False))

    @property
    def identity(self) -> Mapping[str, object]:
        """The function's name and the hash of the file that defines it."""
        return {"name": self.name, "source": source_digest(self.function)}

    def outputs(self, batch: Batch) -> Outputs:
        """Return the result of the function."""
        return np.asarray(self.function(batch))


class EstimatorDetector(Base):
    """A fitted scikit-learn estimator: its log-probabilities, decision function or probabilities, in this order."""

    METHODS: Final = ("predict_log_proba", "decision_function", "predict_proba")

    def __init__(self, estimator: object, name: str = "", sample_rate: int | None = None) -> None:
        self.estimator = estimator
        self.source: str | None = None
        self.name = name or type(estimator).__name__
        self.sample_rate = sample_rate
        self.method = next((m for m in self.METHODS if hasattr(estimator, m)), None)
        if self.method is None:
            raise UsageError.of("no-score-method", name=self.name, METHODS=tuple(self.METHODS))
        classes = getattr(estimator, "classes_", None)
        has_columns = self.method != "decision_function" or (classes is not None and len(classes) > 2)
        # Numbers are names too: which of 0 and 1 is the positive class is not known by itself.
        self.labels = tuple(map(str, classes)) if has_columns and classes is not None else None
        self.sides = tuple(map(str, classes)) if not has_columns and classes is not None else None
        self.output_kind = "probability" if self.method == "predict_proba" else "logit"

    @property
    def identity(self) -> Mapping[str, object]:
        """Its class and settings; its fitted parameters are pinned by the code that built it."""
        built = {"source": self.source} if self.source is not None else {}
        return {"name": self.name, "estimator": repr(self.estimator), "method": self.method, **built}

    def outputs(self, batch: Batch) -> Outputs:
        """Return the estimator's output for each row of the batch."""
        return np.asarray(getattr(self.estimator, str(self.method))(np.asarray(batch)))


def as_detector(thing: object, *, name: str = "", sample_rate: int | None = None) -> Detector:
    """Return a detector made from a detector, a torch module, an estimator, or a function.

    >>> as_detector(len).name
    'len'
    """
    if isinstance(thing, Detector) and not isinstance(thing, type):
        return thing
    if is_torch_module(thing):
        from hitmiss.detection.torch import TorchDetector

        return TorchDetector(thing, name=name, sample_rate=sample_rate)
    if hasattr(thing, "fit") and any(hasattr(thing, m) for m in EstimatorDetector.METHODS):
        return EstimatorDetector(thing, name, sample_rate)
    if callable(thing):
        return CallableDetector(thing, name, sample_rate)
    raise UsageError.of("not-a-detector", name=type(thing).__name__)


def need(package: str, extra: str) -> ModuleType:
    """Import a package of an extra, or raise an error that says how to install it. Heavy packages load only on use.

    >>> need("json", "torch").__name__
    'json'
    """
    return need_package(package, "this detector", f"hitmiss[{extra}]")


def is_torch_module(thing: object) -> TypeGuard[Module]:
    """Return whether an object is a torch module; torch is not imported for the question."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(thing, torch.nn.Module)
