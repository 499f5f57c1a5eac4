"""What is loaded for a row of a manifest: sound, a picture, a text, or the path alone. All can be sent to worker processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hitmiss.detect.feeding import Loaded
from hitmiss.errors import UnknownName
from hitmiss.io.manifest import Manifest, inside

INPUTS: Final = ("audio", "image", "text", "path")


@dataclass(frozen=True)
class AudioLoader:
    """The sound of a row's file: mono float32 at the detector's rate; of a long file no more than `first` samples."""

    root: Path | None
    sample_rate: int
    first: int | None = None

    def __call__(self, row: Mapping[str, Any]) -> Any:
        from hitmiss.io.media import length_of, load_audio

        path = inside(self.root, row["file"])
        if self.first is None:
            return load_audio(path, self.sample_rate)
        clip = load_audio(path, self.sample_rate, first_seconds=self.first / self.sample_rate)
        return Loaded(clip[: self.first], length_of(path, self.sample_rate) or len(clip))


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


def make_loader(
    kind: str, manifest: Manifest, sample_rate: int | None, column: str = "text", first: int | None = None
) -> Any:
    """The loader of that kind of input; of sound the `first` samples alone, where no more is used."""
    if kind not in INPUTS:
        raise UnknownName("input", kind, INPUTS)
    if kind == "audio":
        return AudioLoader(manifest.root, sample_rate or 16000, first)
    if kind == "image":
        return ImageLoader(manifest.root)
    if kind == "path":
        return PathLoader(manifest.root)
    if column not in manifest.frame.columns:
        raise UnknownName("column of the manifest", column, manifest.frame.columns)
    return ColumnLoader(column)
