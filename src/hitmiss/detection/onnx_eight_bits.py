"""Products of 8-bit numbers: weights have a scale per output, inputs one per row, so that no score depends on its batch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from hitmiss.core.errors import UsageError
from hitmiss.detection.detector import Array

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto


def to_eight_bits(onnx: ModuleType, model: ModelProto) -> None:
    """Replace the model's products with constant weights by 8-bit ones, except the last."""
    graph, version = model.graph, max(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    weights = {w.name: onnx.numpy_helper.to_array(w) for w in graph.initializer if len(w.dims) == 2}
    found = [i for i, node in enumerate(graph.node) if _is_product(node, weights)][:-1]
    if not found or version < 13:
        raise UsageError.of("int8-nothing")
    # Inputs are moved to 1..255: the runtime has fast products of numbers without a sign by numbers with one only.
    constants: dict[str, Array] = {
        "most": np.array(127, np.float32), "least": np.array(1e-30, np.float32), "axis": np.array([-1]),
        "middle": np.array(128, np.float32), "zero": np.array(128, np.uint8),
    }  # fmt: skip
    made = [onnx.numpy_helper.from_array(value, f"int8_{name}") for name, value in constants.items()]
    nodes: list[NodeProto] = []
    for i, node in enumerate(graph.node):
        if i not in found:
            nodes.append(node)
            continue
        is_turned = any(a.name == "transB" and a.i for a in node.attribute)
        matrix = weights[node.input[1]].T if is_turned else weights[node.input[1]]
        scale = np.maximum(np.abs(matrix).max(axis=0), 1e-30) / largest_weight()
        small = {"weight": np.round(matrix / scale).astype(np.int8), "scale": scale.astype(np.float32)}
        made += [onnx.numpy_helper.from_array(value, f"int8_{i}_{name}") for name, value in small.items()]
        nodes += _product_nodes(onnx, node, f"int8_{i}", version)
    del graph.node[:]
    graph.node.extend(nodes)
    used = {name for node in nodes for name in node.input}
    kept = [w for w in (*graph.initializer, *made) if w.name in used]
    del graph.initializer[:]
    graph.initializer.extend(kept)


def _is_product(node: NodeProto, weights: Mapping[str, Array]) -> bool:
    """Return whether a node multiplies rows by a constant matrix, and does nothing else but add a bias."""
    if node.op_type not in ("MatMul", "Gemm") or node.input[1] not in weights:
        return False
    factors = {a.name: a.f for a in node.attribute if a.name in ("alpha", "beta")}
    is_turned = any(a.name == "transA" and a.i for a in node.attribute)
    return weights[node.input[1]].dtype == np.float32 and set(factors.values()) <= {1.0} and not is_turned


def _product_nodes(onnx: ModuleType, node: NodeProto, name: str, version: int) -> list[NodeProto]:
    """Return the steps of an 8-bit product: a scale for each row, whole numbers, their product, and back."""
    make, kinds = onnx.helper.make_node, onnx.TensorProto
    axis = (["int8_axis"], {}) if version >= 18 else ([], {"axes": [-1]})
    steps = [
        make("Abs", [node.input[0]], [f"{name}_abs"]),
        make("ReduceMax", [f"{name}_abs", *axis[0]], [f"{name}_max"], keepdims=1, **axis[1]),
        make("Max", [f"{name}_max", "int8_least"], [f"{name}_top"]),
        make("Div", [f"{name}_top", "int8_most"], [f"{name}_size"]),
        make("Div", [node.input[0], f"{name}_size"], [f"{name}_steps"]),
        make("Round", [f"{name}_steps"], [f"{name}_round"]),
        make("Add", [f"{name}_round", "int8_middle"], [f"{name}_moved"]),
        make("Cast", [f"{name}_moved"], [f"{name}_small"], to=kinds.UINT8),
        make("MatMulInteger", [f"{name}_small", f"{name}_weight", "int8_zero"], [f"{name}_whole"]),
        make("Cast", [f"{name}_whole"], [f"{name}_float"], to=kinds.FLOAT),
        make("Mul", [f"{name}_float", f"{name}_size"], [f"{name}_sized"]),
    ]
    has_bias = len(node.input) > 2 and bool(node.input[2])
    steps.append(make("Mul", [f"{name}_sized", f"{name}_scale"], [f"{name}_back" if has_bias else node.output[0]]))
    return [*steps, make("Add", [f"{name}_back", node.input[2]], [node.output[0]])] if has_bias else steps


def largest_weight() -> int:
    """Return the largest 8-bit weight that is safe: a processor without VNNI adds two products in 16 bits."""
    about = Path("/proc/cpuinfo")
    has = about.is_file() and "vnni" in about.read_text(encoding="utf-8", errors="replace")
    return 127 if has else 63
