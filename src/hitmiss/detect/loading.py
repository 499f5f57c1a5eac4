"""What is loaded for a row of a manifest: sound, a picture, a text, or the path alone. All can be sent to worker processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hitmiss.errors import UnknownName
from hitmiss.io.manifest import Manifest, inside

INPUTS: Final = ("audio", "image", "text", "path")


@dataclass(frozen=True)
class AudioLoader:
    """The sound of a row's file: mono float32 at the detector's rate."""

    root: Path | None
    sample_rate: int

    def __call__(self, row: Mapping[str, Any]) -> Any:
        from hitmiss.io.media import load_audio

        return load_audio(inside(self.root, row["file"]), self.sample_rate)


@dataclass(frozen=True)
class ImageLoader:
    """The picture of a row's file: height × width × red, green, blue, from 0 to 255."""

    root: Path | None

    def __call__(self, row: Mapping[str, Any]) -> Any:
        from hitmiss.io.images import load_image

        return load_image(inside(self.root, row["file"]))


@dataclass(frozen=True)
class PathLoader:
    """The path of a row's file, for programs that read it themselves."""

    root: Path | None

    def __call__(self, row: Mapping[str, Any]) -> str:
        return str(inside(self.root, row["file"]))


@dataclass(frozen=True)
class ColumnLoader:
    """The text that stands in a column of the manifest.

    >>> ColumnLoader("text")({"item": "1", "text": "hello"})
    'hello'
    """

    column: str

    def __call__(self, row: Mapping[str, Any]) -> str:
        return str(row[self.column])


def make_loader(kind: str, manifest: Manifest, sample_rate: int | None, column: str = "text") -> Any:
    """The loader of that kind of input."""
    if kind not in INPUTS:
        raise UnknownName("input", kind, INPUTS)
    if kind == "audio":
        return AudioLoader(manifest.root, sample_rate or 16000)
    if kind == "image":
        return ImageLoader(manifest.root)
    if kind == "path":
        return PathLoader(manifest.root)
    if column not in manifest.frame.columns:
        raise UnknownName("column of the manifest", column, manifest.frame.columns)
    return ColumnLoader(column)
