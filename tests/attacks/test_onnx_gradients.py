"""Gradients of small ONNX graphs with every attribute of padding and pooling, against onnxruntime itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hitmiss.attacks.model import as_classifier
from hitmiss.core.errors import UsageError
from hitmiss.detection.opening import open_detector

pytestmark = pytest.mark.extras
RECORDS, LEADS, SAMPLES, CLASSES, STEP = 2, 2, 23, 3, 0.01

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "conv, pads": ("Conv", {"kernel_shape": [4], "pads": [2, 1], "strides": [3]}),
    "conv, valid": ("Conv", {"kernel_shape": [4], "auto_pad": "VALID", "strides": [2]}),
    "conv, same upper": ("Conv", {"kernel_shape": [4], "auto_pad": "SAME_UPPER"}),
    "conv, same upper, stride": ("Conv", {"kernel_shape": [5], "auto_pad": "SAME_UPPER", "strides": [4]}),
    "conv, same lower": ("Conv", {"kernel_shape": [4], "auto_pad": "SAME_LOWER"}),
    "conv, same lower, stride": ("Conv", {"kernel_shape": [4], "auto_pad": "SAME_LOWER", "strides": [3]}),
    "conv, same, stride above the kernel": ("Conv", {"kernel_shape": [2], "auto_pad": "SAME_UPPER", "strides": [5]}),
    "conv, dilations": ("Conv", {"kernel_shape": [3], "dilations": [3], "pads": [3, 2]}),
    "conv, two axes": ("Conv", {"kernel_shape": [2, 4], "auto_pad": "SAME_LOWER", "strides": [1, 3]}),
    "max, pads": ("MaxPool", {"kernel_shape": [4], "pads": [1, 2], "strides": [3]}),
    "max, same upper": ("MaxPool", {"kernel_shape": [4], "auto_pad": "SAME_UPPER", "strides": [3]}),
    "max, same lower": ("MaxPool", {"kernel_shape": [4], "auto_pad": "SAME_LOWER", "strides": [3]}),
    "max, ceil": ("MaxPool", {"kernel_shape": [3], "ceil_mode": 1, "strides": [4]}),
    "max, ceil, pads": ("MaxPool", {"kernel_shape": [5], "ceil_mode": 1, "strides": [3], "pads": [1, 1]}),
    "max, dilations": ("MaxPool", {"kernel_shape": [3], "dilations": [2], "strides": [2]}),
    "max, two axes": ("MaxPool", {"kernel_shape": [2, 3], "pads": [0, 1, 1, 1], "strides": [1, 2]}),
    "average, pads": ("AveragePool", {"kernel_shape": [4], "pads": [2, 1], "strides": [3]}),
    "average, pads that count": (
        "AveragePool",
        {"kernel_shape": [4], "pads": [2, 1], "strides": [3], "count_include_pad": 1},
    ),
    "average, same upper": ("AveragePool", {"kernel_shape": [4], "auto_pad": "SAME_UPPER", "strides": [3]}),
    "average, same lower": ("AveragePool", {"kernel_shape": [4], "auto_pad": "SAME_LOWER", "strides": [3]}),
    "average, ceil": ("AveragePool", {"kernel_shape": [3], "ceil_mode": 1, "strides": [4]}),
    "average, ceil, pads": (
        "AveragePool",
        {"kernel_shape": [4], "ceil_mode": 1, "strides": [3], "pads": [1, 1]},
    ),
    "average, dilations": ("AveragePool", {"kernel_shape": [3], "dilations": [2], "strides": [2]}),
    "average, two axes": ("AveragePool", {"kernel_shape": [2, 3], "auto_pad": "SAME_UPPER", "strides": [1, 2]}),
}


def write_graph(path: Path, kind: str, attributes: dict[str, Any], outputs: int = 1) -> None:
    """Write a graph: one convolution or pool over the samples (or leads and samples), then one product to the classes."""
    onnx = pytest.importorskip("onnx")
    rng = np.random.default_rng(3)
    axes = len(attributes["kernel_shape"])
    channels = LEADS if axes == 1 else 1
    steps, constants = [], {}
    inside = "signal"
    if axes == 2:
        constants["at"] = np.array([1])
        steps.append(onnx.helper.make_node("Unsqueeze", ["signal", "at"], ["picture"]))
        inside = "picture"
    given = [inside]
    if kind == "Conv":
        constants["kernel"] = rng.normal(size=(3, channels, *attributes["kernel_shape"])).astype(np.float32)
        given.append("kernel")
    made = ["inner", "indices"][:outputs]
    steps.append(onnx.helper.make_node(kind, given, made, **attributes))
    steps.append(onnx.helper.make_node("Flatten", ["inner"], ["flat"], axis=1))
    width = flat_width(onnx, path, steps, constants)
    constants["weights"] = rng.normal(size=(width, CLASSES)).astype(np.float32)
    steps.append(onnx.helper.make_node("MatMul", ["flat", "weights"], ["logits"]))
    save(onnx, path, steps, constants, "logits", CLASSES)


def flat_width(onnx: Any, path: Path, steps: list[Any], constants: dict[str, Any]) -> int:
    """Return how many values onnxruntime finds after the convolution or pool."""
    runtime = pytest.importorskip("onnxruntime")
    save(onnx, path, steps, constants, "flat", "n")
    session = runtime.InferenceSession(str(path))
    return int(session.run(None, {"signal": np.zeros((1, LEADS, SAMPLES), np.float32)})[0].shape[1])


def save(onnx: Any, path: Path, steps: list[Any], constants: dict[str, Any], answer: str, width: int | str) -> None:
    value, kind = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        steps,
        "small",
        [value("signal", kind, ["records", LEADS, SAMPLES])],
        [value(answer, kind, ["records", width])],
        [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 19)], ir_version=9)
    onnx.save(model, str(path))


def signals() -> np.ndarray:
    """Signals without ties: neighbouring values are far apart compared with the step of the differences."""
    count = RECORDS * LEADS * SAMPLES
    return (np.random.default_rng(5).permutation(count) / 10.0).reshape(RECORDS, LEADS, SAMPLES).astype(np.float32)


def differences(path: Path, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the central differences of a weighted sum of what onnxruntime answers."""
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(str(path))
    found = np.zeros(x.shape)
    for at in np.ndindex(*x.shape[1:]):
        step = np.zeros_like(x)
        step[(slice(None), *at)] = STEP
        high, low = (session.run(None, {"signal": x + sign * step})[0].astype(np.float64) for sign in (1, -1))
        found[(slice(None), *at)] = (high - low) @ weights / (2 * STEP)
    return found


@pytest.mark.parametrize("case", CASES)
def test_gradients_equal_finite_differences_of_onnxruntime(case: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "small.onnx"
    write_graph(path, *CASES[case])
    model = as_classifier(open_detector(str(path), device="cpu"), layout="lead_sample")
    x, weights = signals(), np.array([1.0, -0.5, 0.25])
    given = torch.from_numpy(x).requires_grad_(True)
    logits = model.need_gradient("pgd")(given)
    (logits @ torch.tensor(weights, dtype=torch.float32)).sum().backward()
    assert logits.detach().numpy() == pytest.approx(model.log_odds(x.transpose(0, 2, 1)), abs=1e-4)
    assert given.grad.numpy() == pytest.approx(differences(path, x, weights), abs=5e-3)


def test_a_pool_whose_indices_are_asked_for_is_refused(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "small.onnx"
    write_graph(path, "MaxPool", {"kernel_shape": [3]}, outputs=2)
    model = as_classifier(open_detector(str(path), device="cpu"), layout="lead_sample")
    with pytest.raises(UsageError, match="MaxPool with several outputs"):
        model.need_gradient("pgd")(torch.from_numpy(signals()))
