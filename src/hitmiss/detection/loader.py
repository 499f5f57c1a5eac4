"""Loaders for the rows of a manifest: sound, a picture, a text, or only the path. All can be sent to worker processes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hitmiss.core.errors import UnknownName
from hitmiss.detection.detector import Array
from hitmiss.detection.pinning import file_digest
from hitmiss.detection.preparation import Load, Loaded, Row
from hitmiss.io.manifest import Manifest, inside

INPUTS: Final = ("audio", "image", "text", "path")


def file_pin(path: Path) -> str:
    """Identify a file by content: a short SHA-256, its size and its modification time."""
    status = path.stat()
    return f"{file_digest(path)}:{status.st_size}:{status.st_mtime_ns}"


def is_pinned(path: Path, pin: str) -> bool:
    """Return whether a file still matches a pin; it is read only if its size or modification time has changed."""
    digest, _, status = pin.partition(":")
    try:
        now = path.stat()
        return f"{now.st_size}:{now.st_mtime_ns}" == status or file_digest(path) == digest
    except OSError:
        return False


class ReadsFiles:
    """A loader of the files that a manifest names, relative to its root."""

    root: Path | None

    def path(self, row: Row) -> Path:
        """Return the file of a row."""
        return inside(self.root, row["file"])

    def pin(self, row: Row) -> str:
        """Return the pin of the content of a row's file."""
        return file_pin(self.path(row))


@dataclass(frozen=True)
class AudioLoader(ReadsFiles):
    """Loads the sound of a row's file: mono float32 at the detector's rate; at most `first` samples of a long file."""

    root: Path | None
    sample_rate: int
    first: int | None = None

    def __call__(self, row: Row) -> Array | Loaded:
        from hitmiss.media.audio import length_of, load_audio

        path = self.path(row)
        if self.first is None:
            return load_audio(path, self.sample_rate)
        clip = load_audio(path, self.sample_rate, first_seconds=self.first / self.sample_rate)
        return Loaded(clip[: self.first], length_of(path, self.sample_rate) or len(clip))


@dataclass(frozen=True)
class ImageLoader(ReadsFiles):
    """Loads the picture of a row's file: height × width × red, green, blue, from 0 to 255."""

    root: Path | None

    def __call__(self, row: Row) -> Array:
        from hitmiss.media.image import load_image

        return load_image(self.path(row))


@dataclass(frozen=True)
class PathLoader(ReadsFiles):
    """Returns the path of a row's file, for programs that read it themselves."""

    root: Path | None

    def __call__(self, row: Row) -> str:
        return str(self.path(row))


@dataclass(frozen=True)
class ColumnLoader:
    """Returns the text in a column of the manifest.

    >>> ColumnLoader("text")({"item": "1", "text": "hello"})
    'hello'
    """

    column: str

    def __call__(self, row: Row) -> str:
        return str(row[self.column])


def make_loader(
    kind: str, manifest: Manifest, sample_rate: int | None, column: str = "text", first: int | None = None
) -> Load:
    """Return the loader for a kind of input; for sound, only the `first` samples if no more are used."""
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
