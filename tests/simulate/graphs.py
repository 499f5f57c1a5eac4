"""The demonstration's detectors as ONNX graphs, written with operators beside their numpy: a model that both open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hitmiss.simulate.ecg_detector import STRIDE, ConvBaseline
from hitmiss.simulate.spectral_baseline import FLOOR, HOP, SpectralBaseline, filterbank, kernels

GraphStep = tuple[str, list[str], str, Mapping[str, list[int] | int]]
"""A step of a graph: the operator, what it takes, what it makes, and its settings."""
Place = tuple[str, Sequence[str | int]]
"""An input or an output of a graph: its name and its shape."""

SPECTRAL: Sequence[GraphStep] = (
    ("Mul", ["audio", "audio"], "squared", {}),
    ("ReduceMean", ["squared"], "power0", {"axes": [1], "keepdims": 1}),
    ("Add", ["power0", "floor"], "power1", {}),
    ("Sqrt", ["power1"], "level", {}),
    ("Div", ["audio", "level"], "even", {}),
    ("Unsqueeze", ["even", "one"], "channel", {}),
    ("Conv", ["channel", "cosine"], "re", {"strides": [HOP]}),
    ("Conv", ["channel", "sine"], "im", {"strides": [HOP]}),
    ("Mul", ["re", "re"], "re2", {}),
    ("Mul", ["im", "im"], "im2", {}),
    ("Add", ["re2", "im2"], "power", {}),
    ("MatMul", ["bank", "power"], "banded", {}),
    ("Add", ["banded", "floor"], "floored", {}),
    ("Log", ["floored"], "bands", {}),
    ("ReduceMean", ["bands"], "mean", {"axes": [2], "keepdims": 1}),
    ("Sub", ["bands", "mean"], "centred", {}),
    ("Mul", ["centred", "centred"], "centred2", {}),
    ("ReduceMean", ["centred2"], "variance", {"axes": [2], "keepdims": 1}),
    ("Sqrt", ["variance"], "spread", {}),
    ("Slice", ["bands", "one", "far", "two"], "later", {}),
    ("Slice", ["bands", "zero", "minus_one", "two"], "earlier", {}),
    ("Sub", ["later", "earlier"], "step", {}),
    ("Abs", ["step"], "moved", {}),
    ("ReduceMean", ["moved"], "change", {"axes": [2], "keepdims": 1}),
    ("Concat", ["mean", "spread", "change"], "column", {"axis": 1}),
    ("Squeeze", ["column", "two"], "features", {}),
    ("Gemm", ["features", "weight", "bias"], "logits", {}),
)  # fmt: skip
"""The same arithmetic as `spectral_baseline.features`, with ONNX operators."""


def spectral_graph(model: SpectralBaseline, path: str | Path) -> None:
    """Write `audio` (clip × sample) to `logits` (clip × [fake, real])."""
    cosine, sine = kernels()
    constants: dict[str, np.ndarray[Any, Any]] = {
        "cosine": cosine[:, None], "sine": sine[:, None], "bank": filterbank(), "floor": np.array(FLOOR),
        "one": np.array([1]), "two": np.array([2]), "zero": np.array([0]), "minus_one": np.array([-1]),
        "far": np.array([2**31]), "weight": np.stack([-model.weight, model.weight], axis=1) / 2,
        "bias": np.array([-model.bias / 2, model.bias / 2], dtype=np.float32),
    }  # fmt: skip
    _write(path, model.name, ("audio", ["clip", "sample"]), ("logits", ["clip", 2]), SPECTRAL, constants)


def ecg_graph(model: ConvBaseline, path: str | Path) -> None:
    """Write `ecg` (record × sample × lead) to `logits` (record × class)."""
    steps: list[GraphStep] = [
        ("Transpose", ["ecg"], "turned", {"perm": [0, 2, 1]}),
        ("Conv", ["turned", "filters", "offset"], "raw", {"strides": [STRIDE]}),
        ("Relu", ["raw"], "answers", {}),
        ("ReduceMean", ["answers"], "mean", {"axes": [2], "keepdims": 0}),
        ("ReduceMax", ["answers"], "highest", {"axes": [2], "keepdims": 0}),
        ("Concat", ["mean", "highest"], "features", {"axis": 1}),
        ("Gemm", ["features", "weight", "bias"], "logits", {}),
    ]
    constants = {"filters": model.filters, "offset": model.offset, "weight": model.weight, "bias": model.bias}
    ecg: Place = ("ecg", ["record", "sample", model.filters.shape[1]])
    _write(path, model.name, ecg, ("logits", ["record", len(model.bias)]), steps, constants, model.labels or ())


def _write(
    path: str | Path,
    name: str,
    given: Place,
    answer: Place,
    steps: Sequence[GraphStep],
    constants: Mapping[str, np.ndarray[Any, Any]],
    labels: Sequence[str] = (),
) -> None:
    import onnx

    nodes = [onnx.helper.make_node(kind, taken, [made], **settings) for kind, taken, made, settings in steps]
    ends = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, shape) for n, shape in (given, answer)]
    stored = [onnx.numpy_helper.from_array(np.ascontiguousarray(array), n) for n, array in constants.items()]
    graph = onnx.helper.make_graph(nodes, name, ends[:1], ends[1:], stored)
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    if labels:
        onnx.helper.set_model_props(made, {"labels": ",".join(labels)})
    onnx.checker.check_model(made)
    onnx.save(made, str(path))
