"""ONNX models as detectors, through onnxruntime."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.machine import cores
from hitmiss.detection.detector import Array, Base, Batch, Detector, need
from hitmiss.detection.layers import CHANNELS_FIRST, declared_axes, pooled, shape_of, time_axis
from hitmiss.detection.onnx_eight_bits import largest_weight, to_eight_bits
from hitmiss.detection.outputs import FIELDS, Outputs, pick_output
from hitmiss.detection.pinning import external_data, file_digest, pinned_precision

if TYPE_CHECKING:
    from onnx import ModelProto
    from onnxruntime import InferenceSession

PRECISIONS: Final = ("auto", "float32", "int8")


class OnnxDetector(Base):
    """A model with one input; the output called `logits`, or the only one with one row per clip, is used.

    `layers` are further outputs, or names of inner values (these need the package `onnx`).
    """

    def __init__(
        self,
        path: str | Path,
        *,
        device: str = "auto",
        sample_rate: int | None = None,
        layers: tuple[str, ...] = (),
        threads: int | None = None,
        precision: str = "auto",
    ) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise UsageError.of("missing-file", what="model", file=path)
        self.name = self.path.name
        self._runtime = need("onnxruntime", "onnx")
        self.layers, self._axes = declared_axes(layers, list)
        self._layers_as_said = list(layers)
        if precision not in PRECISIONS:
            raise UsageError.of("bad-precision/onnx", precision=precision)
        if precision == "int8" and device not in ("auto", "cpu"):
            raise UsageError.of("int8-on-cpu")
        self.precision = "float32" if precision == "auto" else precision
        self._known_axes: dict[str, int] = {}
        self._session = self._open(device, threads)
        self._input = self._session.get_inputs()[0]
        meta = self._session.get_modelmeta().custom_metadata_map
        self.sample_rate = sample_rate or (int(meta["sample_rate"]) if "sample_rate" in meta else None)
        self.labels = tuple(meta["labels"].split(",")) if meta.get("labels") else None
        self.leads = tuple(meta["leads"].split(",")) if meta.get("leads") else None
        first = self._input.shape[0] if self._input.shape else None
        self.max_batch = first if isinstance(first, int) else None
        self._outputs = [str(o.name) for o in self._session.get_outputs()]
        self._answer = self._pick()

    @property
    def identity(self) -> Mapping[str, object]:
        """The digests of the model file and of the files with its weights."""
        beside = external_data(self.path)
        weights = {"external": beside} if beside else {}
        rounded = pinned_precision(self.precision, largest_weight()) if self.precision != "float32" else {}
        return {"name": self.name, "onnx": file_digest(self.path), "layers": self._layers_as_said, **weights, **rounded}

    def in_float32(self) -> Detector | None:
        """Return the model as its file holds it."""
        if self.precision == "float32":
            return None
        return OnnxDetector(self.path, device="cpu", sample_rate=self.sample_rate, layers=tuple(self._layers_as_said))

    def prepare(self, batch: Batch) -> Array:
        """Return the batch in the model's type and axes; a model of batch size 1 gets one clip at a time."""
        array = np.asarray(batch)
        if array.dtype.kind not in "US":
            array = np.ascontiguousarray(array, dtype=np.float64 if "double" in self._input.type else np.float32)
        rank = len(self._input.shape)
        if array.ndim == 2 and rank == 3:
            array = array[:, None, :]
        return array

    def outputs(self, batch: Batch) -> Outputs:
        """Return the model's outputs, one row per clip."""
        return _rows(self._run(self.prepare(batch), [self._answer])[0])

    def with_layers(self, batch: Batch) -> tuple[Outputs, dict[str, Outputs]]:
        """Return the outputs, and each layer averaged over time."""
        given = self.prepare(batch)
        answer, *inner = self._run(given, [self._answer, *self.layers])
        rows = _rows(answer)
        if any(name not in self._axes for name in self.layers):
            self._find_axes(given, inner, len(rows))
        named = zip(self.layers, inner, strict=True)
        return rows, {name: pooled(value, len(rows), self._axes[name]) for name, value in named}

    def _find_axes(self, given: Array, inner: Sequence[object], n: int) -> None:
        """Find the axis of time of each layer: the one that grows with the clips, else the one of its operator."""
        longer: list[object] = [None] * len(inner)
        if given.dtype.kind == "f" and given.ndim < 4:  # sound; pictures have no length
            with suppress(Exception):  # a model may take one length only
                longer = self._run(np.concatenate([given, given], axis=-1), list(self.layers))
        for name, value, grown in zip(self.layers, inner, longer, strict=True):
            if name not in self._axes:
                known = self._known_axes.get(name)
                self._axes[name] = time_axis(name, shape_of(value), shape_of(grown), n, known)

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Return whether the runtime reports that it could not allocate memory."""
        return isinstance(error, MemoryError) or "allocate memory" in str(error) or "bad_alloc" in str(error)

    def _run(self, array: Array, names: Sequence[str]) -> list[object]:
        """Return the outputs of these names, bound to device memory so that only these are copied, and only once."""
        if array.dtype.kind in "US" or not self._are_tensors(names):
            return list(self._session.run(list(names), {self._input.name: array}))
        binding = self._session.io_binding()
        binding.bind_ortvalue_input(self._input.name, self._runtime.OrtValue.ortvalue_from_numpy(array, *self._place))
        for name in names:
            binding.bind_output(name, *self._place)
        self._session.run_with_iobinding(binding)
        return list(binding.copy_outputs_to_cpu())

    def _are_tensors(self, names: Sequence[str]) -> bool:
        """Return whether outputs are tensors: scikit-learn exports also have lists of mappings."""
        kinds = {o.name: str(o.type) for o in self._session.get_outputs()}
        return all(kinds[name].startswith("tensor(") and "string" not in kinds[name] for name in names)

    @property
    def _place(self) -> tuple[str, int]:
        """Return the device of the session, and its number."""
        first = self._session.get_providers()[0]
        options = self._session.get_provider_options().get(first, {})
        return ("cuda", int(options.get("device_id", 0))) if first == "CUDAExecutionProvider" else ("cpu", 0)

    def _open(self, device: str, threads: int | None) -> InferenceSession:
        options = self._runtime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = threads or _thread_limit() or cores()
        is_cuda = device == "auto" or device.startswith("cuda")
        number = device.partition(":")[2] or "0"
        available = self._runtime.get_available_providers()
        providers: list[str | tuple[str, dict[str, str]]] = ["CPUExecutionProvider"]
        if is_cuda and "CUDAExecutionProvider" in available and self.precision == "float32":
            providers.insert(0, ("CUDAExecutionProvider", {"device_id": number}))
        model = self._model()
        try:
            return self._runtime.InferenceSession(model, options, providers=providers)
        except Exception as error:  # onnxruntime raises its own error classes, one per status code
            raise DataError.of("not-a-model/onnx", path_name=self.path.name, error=str(error).splitlines()[0]) from None

    def _model(self) -> str | bytes:
        """Return the path, or the model with the requested inner values added to its outputs, in the precision."""
        if not self.layers and self.precision == "float32":
            return str(self.path)
        onnx = need("onnx", "onnx")
        model = onnx.load(str(self.path))
        if self.precision == "int8":
            to_eight_bits(onnx, model)
        known = {o.name for o in model.graph.output}
        inner = [name for node in model.graph.node for name in node.output if name]
        self._known_axes = known_axes(model)
        for name in self.layers:
            if name not in known and name not in inner:
                raise UnknownName("inner value of the model", name, inner)
            if name not in known:
                model.graph.output.append(onnx.helper.make_empty_tensor_value_info(name))
        return bytes(model.SerializeToString())

    def _pick(self) -> str:
        names = [n for n in self._outputs if n not in self.layers]
        for field in (*FIELDS, "output"):
            if field in names:
                return field
        floats = [str(o.name) for o in self._session.get_outputs() if o.name in names and "float" in o.type]
        chosen = floats if floats else names
        if len(chosen) != 1:
            raise UsageError.of("which-output/onnx", name=self.name, names=tuple(names))
        return chosen[0]


ALIKE: Final = (
    "Relu", "LeakyRelu", "PRelu", "Elu", "Selu", "Gelu", "Erf", "HardSwish", "HardSigmoid", "Sigmoid", "Softplus", "Tanh",
    "Clip", "Add", "Sub", "Mul", "Div", "Dropout", "Identity",
)  # fmt: skip
"""Operators whose results have the axes of what they take."""
TIME_FIRST: Final = ("MatMul", "LayerNormalization", "SkipLayerNormalization", "Gather", "Attention")


def known_axes(model: ModelProto) -> dict[str, int]:
    """Return the axis of time of the inner values whose operators show it."""
    found: dict[str, int] = {}
    for node in model.graph.node:
        axis = 2 if node.op_type.startswith(CHANNELS_FIRST) else 1 if node.op_type in TIME_FIRST else None
        if node.op_type in ALIKE:
            axis = next((found[name] for name in node.input if name in found), None)
        found |= {name: axis for name in node.output if axis is not None}
    return found


def _thread_limit() -> int:
    """Return the thread limit in OMP_NUM_THREADS; 0 if it is not set."""
    text = os.environ.get("OMP_NUM_THREADS", "")
    return int(text) if text.isdigit() else 0


def _rows(answer: object) -> Outputs:
    """Return an answer as an array; a list of mappings (class to probability, as in scikit-learn) as columns."""
    if isinstance(answer, list) and answer and isinstance(answer[0], dict):
        return np.array([[row[key] for key in sorted(row)] for row in answer], dtype=np.float64)
    return pick_output(answer)
