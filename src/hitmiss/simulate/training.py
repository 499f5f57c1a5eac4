"""A small detector for the simulated voices: trained in seconds, as ONNX where that can be had, else as plain numbers."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final

import polars as pl

from hitmiss.detect.baseline import SpectralBaseline
from hitmiss.io.media import load_audio

AS_PYTHON: Final = '''"""The detector that was trained on train.tsv, for `hitmiss detect --detector detector.py:detector`."""

from pathlib import Path

from hitmiss.detect.baseline import SpectralBaseline

detector = SpectralBaseline.load(Path(__file__).with_name("detector.npz"))
'''


def train(folder: str | Path, *, as_onnx: bool | None = None) -> str:
    """Train on `train.tsv` of the corpus and give the text for `--detector`.

    `as_onnx`: None for a graph where onnx and onnxruntime are installed.
    """
    folder = Path(folder)
    rows = pl.read_csv(folder / "train.tsv", separator="\t", infer_schema_length=0)
    clips = [load_audio(folder / file) for file in rows["file"]]
    model = SpectralBaseline.fit(clips, (rows["label"] == "real").to_numpy())
    if as_onnx is None:
        as_onnx = all(find_spec(name) is not None for name in ("onnx", "onnxruntime"))
    if as_onnx:
        model.save_onnx(folder / "detector.onnx")
        return str(folder / "detector.onnx")
    model.save(folder / "detector.npz")
    (folder / "detector.py").write_text(AS_PYTHON, encoding="utf-8")
    return f"{folder / 'detector.py'}:detector"


def trained(folder: str | Path) -> str:
    """The text for `--detector` of what `train` left in a folder."""
    onnx = Path(folder) / "detector.onnx"
    return str(onnx) if onnx.is_file() else f"{Path(folder) / 'detector.py'}:detector"
