"""Where a demonstration's detector is saved: plain numbers beside a few lines of Python."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from numpy.typing import ArrayLike

AS_PYTHON: Final = '''"""The detector that was trained on {data}, for `hitmiss {verb} --detector detector.py:detector`."""

from pathlib import Path

from {module} import {name}

detector = {name}.load(Path(__file__).with_name("detector.npz"))
'''


class SavedDetector(Protocol):
    """A model that can write itself."""

    def save(self, path: str | Path) -> None: ...


def save_detector(folder: Path, model: SavedDetector, *, data: str, verb: str) -> str:
    """Write a model that has `save` and `load`; return the text for `--detector`."""
    model.save(folder / "detector.npz")
    kind = type(model)
    text = AS_PYTHON.format(data=data, verb=verb, module=kind.__module__, name=kind.__name__)
    (folder / "detector.py").write_text(text, encoding="utf-8")
    return trained(folder)


def trained(folder: str | Path) -> str:
    """Return the text for `--detector` of what `save_detector` wrote into a folder."""
    return f"{Path(folder) / 'detector.py'}:detector"


def digest_of_arrays(*arrays: ArrayLike) -> str:
    """Return a short hash of the parameters of a detector."""
    return hashlib.sha256(b"".join(np.asarray(array).tobytes() for array in arrays)).hexdigest()[:16]
