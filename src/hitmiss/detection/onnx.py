"""ONNX models as detectors, through onnxruntime."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.detection.detector import Array, Base, Batch, need
from hitmiss.detection.outputs import FIELDS, Outputs, pick_output
from hitmiss.detection.pinning import external_data, file_digest
from hitmiss.detection.torch import CHANNELS_FIRST, pooled

if TYPE_CHECKING:
    from onnxruntime import InferenceSession


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
    ) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise UsageError(f"there is no model {path}")
        self.name = self.path.name
        self._runtime = need("onnxruntime", "onnx")
        self.layers = layers
        self._channels_first: set[str] = set()
        self._session = self._open(device, threads)
        self._input = self._session.get_inputs()[0]
        meta = self._session.get_modelmeta().custom_metadata_map
        self.sample_rate = sample_rate or (int(meta["sample_rate"]) if "sample_rate" in meta else None)
        self.labels = tuple(meta["labels"].split(",")) if meta.get("labels") else None
        first = self._input.shape[0] if self._input.shape else None
        self.max_batch = first if isinstance(first, int) else None
        self._outputs = [str(o.name) for o in self._session.get_outputs()]
        self._answer = self._pick()

    @property
    def identity(self) -> Mapping[str, object]:
        """The digests of the model file and of the files with its weights."""
        beside = external_data(self.path)
        weights = {"external": beside} if beside else {}
        return {"name": self.name, "onnx": file_digest(self.path), "layers": list(self.layers), **weights}

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
        answer, *inner = self._run(self.prepare(batch), [self._answer, *self.layers])
        rows = _rows(answer)
        named = zip(self.layers, inner, strict=True)
        return rows, {name: pooled(value, len(rows), name in self._channels_first) for name, value in named}

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
        options.intra_op_num_threads = threads or _limit() or _processors()
        is_cuda = device == "auto" or device.startswith("cuda")
        number = device.partition(":")[2] or "0"
        available = self._runtime.get_available_providers()
        providers: list[str | tuple[str, dict[str, str]]] = ["CPUExecutionProvider"]
        if is_cuda and "CUDAExecutionProvider" in available:
            providers.insert(0, ("CUDAExecutionProvider", {"device_id": number}))
        model = self._model()
        try:
            return self._runtime.InferenceSession(model, options, providers=providers)
        except Exception as error:  # onnxruntime raises its own error classes, one per status code
            raise DataError(
                f"{self.path.name} is not a model that onnxruntime can run: {str(error).splitlines()[0]}"
            ) from None

    def _model(self) -> str | bytes:
        """Return the path, or the model with the requested inner values added to its outputs."""
        if not self.layers:
            return str(self.path)
        onnx = need("onnx", "onnx")
        model = onnx.load(str(self.path))
        known = {o.name for o in model.graph.output}
        inner = [name for node in model.graph.node for name in node.output if name]
        self._channels_first = {
            n for node in model.graph.node if node.op_type.startswith(CHANNELS_FIRST) for n in node.output
        }
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
            raise UsageError(f"{self.name} has the outputs {', '.join(names)}; name the one with the scores 'logits'")
        return chosen[0]


def _limit() -> int:
    """Return the thread limit in OMP_NUM_THREADS; 0 if it is not set."""
    text = os.environ.get("OMP_NUM_THREADS", "")
    return int(text) if text.isdigit() else 0


def _rows(answer: object) -> Outputs:
    """Return an answer as an array; a list of mappings (class to probability, as in scikit-learn) as columns."""
    if isinstance(answer, list) and answer and isinstance(answer[0], dict):
        return np.array([[row[key] for key in sorted(row)] for row in answer], dtype=np.float64)
    return pick_output(answer)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
