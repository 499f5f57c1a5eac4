"""Where a demonstration's detector is saved: as ONNX if possible, else as plain numbers with a few lines of Python."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final, Protocol

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
