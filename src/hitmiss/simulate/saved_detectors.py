"""Where a demonstration's detector is saved: as ONNX if possible, else as plain numbers with a few lines of Python."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.detection.detector import need

OPSET: Final = 17
GraphStep = tuple[str, list[str], str, Mapping[str, list[int] | int]]
"""A step of an ONNX graph: the operator, what it takes, what it makes, and its settings."""
Place = tuple[str, Sequence[str | int]]
"""An input or an output of a graph: its name and its shape."""

AS_PYTHON: Final = '''"""The detector that was trained on {data}, for `hitmiss {verb} --detector detector.py:detector`."""

from pathlib import Path

from {module} import {name}

detector = {name}.load(Path(__file__).with_name("detector.npz"))
'''


class SavedDetector(Protocol):
    """A model that can write itself."""

    def save(self, path: str | Path) -> None: ...
    def save_onnx(self, path: str | Path) -> None: ...


def save_detector(folder: Path, model: SavedDetector, *, data: str, verb: str, as_onnx: bool | None = None) -> str:
    """Write a model that has `save`, `load` and `save_onnx`; return the text for `--detector`.

    `as_onnx`: None for a graph if onnx and onnxruntime are installed.
    """
    if as_onnx is None:
        as_onnx = all(find_spec(name) is not None for name in ("onnx", "onnxruntime"))
    if as_onnx:
        model.save_onnx(folder / "detector.onnx")
        return str(folder / "detector.onnx")
    model.save(folder / "detector.npz")
    kind = type(model)
    text = AS_PYTHON.format(data=data, verb=verb, module=kind.__module__, name=kind.__name__)
    (folder / "detector.py").write_text(text, encoding="utf-8")
    return f"{folder / 'detector.py'}:detector"


def trained(folder: str | Path) -> str:
    """Return the text for `--detector` of what `save_detector` wrote into a folder."""
    onnx = Path(folder) / "detector.onnx"
    return str(onnx) if onnx.is_file() else f"{Path(folder) / 'detector.py'}:detector"


def digest_of_arrays(*arrays: ArrayLike) -> str:
    """Return a short hash of the parameters of a detector."""
    return hashlib.sha256(b"".join(np.asarray(array).tobytes() for array in arrays)).hexdigest()[:16]


def write_graph(
    path: str | Path,
    name: str,
    given: Place,
    answer: Place,
    steps: Sequence[GraphStep],
    constants: Mapping[str, NDArray[np.generic]],
    labels: Sequence[str] = (),
) -> None:
    """Write a detector as one ONNX graph of float32 numbers."""
    onnx = need("onnx", "onnx")
    nodes = [onnx.helper.make_node(kind, taken, [made], **settings) for kind, taken, made, settings in steps]
    ends = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, shape) for n, shape in (given, answer)]
    stored = [onnx.numpy_helper.from_array(np.ascontiguousarray(array), n) for n, array in constants.items()]
    graph = onnx.helper.make_graph(nodes, name, ends[:1], ends[1:], stored)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=8)
    if labels:
        onnx.helper.set_model_props(model, {"labels": ",".join(labels)})
    onnx.checker.check_model(model)
    onnx.save(model, str(path))
