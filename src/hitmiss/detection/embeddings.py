"""Embeddings of a run: rows of each layer are appended to files beside the segments, and combined into one file."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import DataError
from hitmiss.detection.outputs import Outputs
from hitmiss.runs.segments import replace_file, write_whole
from hitmiss.runs.store import Run

Layers = Mapping[str, Outputs]
FOLDER: Final = "embeddings"
GATHERED: Final = "embeddings.npz"


class Record(TypedDict, total=False):
    """What the run store holds about an item: why it failed, or its outputs (one row per window) and where its rows are."""

    error: str
    outputs: list[list[float]]
    seconds: float
    file: str
    """The pin of its file."""
    row: int
    """Its row of each layer, in files of the segment `rows_in` with the dimensions `widths`."""
    rows_in: str
    widths: dict[str, int]
    layers: Layers
    """The rows themselves, on their way from the worker to the files."""


class EmbeddingWriter:
    """A run whose records have rows of layers: it appends the rows to files, as float32.

    A row is written before the record that refers to it, so that no record refers to a missing row.
    """

    def __init__(self, run: Run) -> None:
        self.run, self.items, self.has_error = run, run.items, run.has_error
        self._folder = run.folder / FOLDER
        self._segment = run.segment
        self._files: dict[str, int] = {}
        self._rows = 0
        self._widths: dict[str, int] = {}

    @property
    def n_done(self) -> int:
        """How many items are done."""
        return self.run.n_done

    @property
    def is_done(self) -> bool:
        """Whether every item is done."""
        return self.run.is_done

    def todo(self, retry: bool = False) -> Iterator[int]:
        """Yield the positions of items that are not done."""
        return self.run.todo(retry)

    def add(self, at: int, record: Mapping[str, object]) -> None:
        """Keep the result of an item: its row of each layer first."""
        kept = dict(record)
        layers = cast("Layers", kept.pop("layers", {}))
        self.run.add(at, kept | self._write(layers) if layers else kept)

    def _write(self, layers: Layers) -> Record:
        """Write one item's row of each layer; return what its record must hold to find them again."""
        for name, values in layers.items():
            row = np.ascontiguousarray(values, dtype=np.float32).reshape(-1)
            if self._widths.setdefault(name, len(row)) != len(row):
                raise DataError.of("layer-changed", name=name, widths=self._widths[name], n_row=len(row))
            write_whole(self._file(name), row.tobytes(), self._rows * row.nbytes)
        self._rows += 1
        return {"row": self._rows - 1, "rows_in": self._segment, "widths": dict(self._widths)}

    def close(self) -> None:
        """Sync and close."""
        for fd in self._files.values():
            os.fsync(fd)
            os.close(fd)
        self._files = {}

    def _file(self, layer: str) -> int:
        if layer not in self._files:
            self._folder.mkdir(exist_ok=True)
            path = self._folder / f"{self._segment}.{len(self._files):03d}.f32"
            self._files[layer] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
        return self._files[layer]


def gather(folder: Path, found: Mapping[int, Record], columns: Mapping[str, list[str]]) -> str:
    """Write one `.npz` with each layer as item × dimension, in order of position, and text columns about the items.

    `found` maps positions to what `EmbeddingWriter` added to their records; `hitmiss probe` reads the file.
    """
    order = sorted(found)
    layers = list(found[order[0]]["widths"].items())
    arrays: dict[str, NDArray[np.generic]] = {
        name: np.array([v or "" for v in values]) for name, values in columns.items()
    }
    for number, (name, width) in enumerate(layers):
        out = np.empty((len(order), width), dtype=np.float32)
        for segment in sorted({found[at]["rows_in"] for at in order}):
            stored = np.fromfile(folder / FOLDER / f"{segment}.{number:03d}.f32", dtype=np.float32)
            mine = [(i, found[at]["row"]) for i, at in enumerate(order) if found[at]["rows_in"] == segment]
            to, source = map(list, zip(*mine, strict=True))
            out[to] = stored[: len(stored) // width * width].reshape(-1, width)[source]
        arrays[name] = out
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    replace_file(folder / GATHERED, buffer.getvalue())
    return GATHERED
