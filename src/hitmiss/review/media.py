"""What an item shows: a picture, a sound, a text or an ECG. A file is told by its first bytes, never by its name.

Only these are ever given to a browser: PNG, JPEG, WebP; WAV, FLAC, Ogg, MP3, M4A. SVG and HTML are refused, whatever
they are called. Texts and ECGs go into the page itself, as text and as lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hitmiss.errors import DataError, EnvironmentFault, UsageError
from hitmiss.io.manifest import inside

if TYPE_CHECKING:
    from hitmiss.attack.data import Recordings
    from hitmiss.review.ecg import Ecg

IMAGE, AUDIO, TEXT, ECG = "image", "audio", "text", "ecg"
MOST_BYTES: Final = {IMAGE: 64 * 2**20, AUDIO: 512 * 2**20, TEXT: 2**20, ECG: 256 * 2**20}
MOST_PIXELS: Final = 100_000_000
HEAD: Final = 16
NUMPY: Final = b"\x93NUMPY"


@dataclass(frozen=True)
class File:
    """A file that may be given to a browser, and as what."""

    path: Path
    kind: str
    mime: str


def told(head: bytes) -> tuple[str, str] | None:
    """What a file is, by its first 16 bytes: the kind and the media type; None for all that is not on the list.

    >>> told(b"\\x89PNG\\r\\n\\x1a\\n0000"), told(b"RIFF....WAVEfmt "), told(b"<svg xmlns=...")
    (('image', 'image/png'), ('audio', 'audio/wav'), None)
    """
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return IMAGE, "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return IMAGE, "image/jpeg"
    if head[:4] == b"RIFF":
        return {b"WEBP": (IMAGE, "image/webp"), b"WAVE": (AUDIO, "audio/wav")}.get(head[8:12])
    if head.startswith(b"fLaC"):
        return AUDIO, "audio/flac"
    if head.startswith(b"OggS"):
        return AUDIO, "audio/ogg"
    if head[:3] == b"ID3" or (head[:1] == b"\xff" and len(head) > 1 and head[1] & 0xE6 == 0xE2):
        return AUDIO, "audio/mpeg"
    if head[4:12] in (b"ftypM4A ", b"ftypmp42", b"ftypisom"):
        return AUDIO, "audio/mp4"
    return None


@dataclass(frozen=True, eq=False)
class Library:
    """Where the media lie: a folder that nothing leads out of, and recordings in one file."""

    root: Path | None = None
    recordings: Recordings | None = None
    fs: float | None = None

    def kind_of(self, source: str) -> str:
        """The kind of a file, after everything that can be checked without decoding it was."""
        path = self._path(source)
        head = _head(path)
        found = told(head)
        kind = found[0] if found else ECG if head.startswith(NUMPY) else TEXT if path.suffix.lower() == ".txt" else None
        if kind is None:
            raise DataError(f"{path.name} is none of PNG, JPEG, WebP, WAV, FLAC, Ogg, MP3, M4A, NumPy .npy or .txt")
        if path.stat().st_size > MOST_BYTES[kind]:
            raise DataError(
                f"{path.name} is larger than the {MOST_BYTES[kind] >> 20} MiB that a file of its kind may have"
            )
        if kind == IMAGE:
            _check_picture(path)
        elif kind == ECG:
            self.ecg(source)
        elif kind == TEXT:
            self.text(source)
        return kind

    def file(self, source: str) -> File:
        """A picture or a sound, looked at again: it may have been changed since the review began."""
        path = self._path(source)
        found = told(_head(path))
        if found is None or path.stat().st_size > MOST_BYTES[found[0]]:
            raise DataError(f"{path.name} is no picture and no sound any more")
        return File(path, *found)

    def text(self, source: str) -> str:
        """The text of a `.txt` file."""
        path = self._path(source)
        try:
            return path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise DataError(f"{path.name} is no UTF-8 text") from None

    def ecg(self, source: str) -> Ecg:
        """An ECG of a `.npy` file, or a record of the recordings."""
        from hitmiss.review.ecg import Ecg

        if self.recordings is not None:
            if source not in self.recordings.ids:
                raise DataError(f"the recordings have no record {source!r}")
            return Ecg.of(self.recordings.x[self.recordings.ids.index(source)], self.recordings.fs)
        if self.fs is None:
            raise UsageError("a .npy file does not say its sample rate; say --fs")
        path = self._path(source)
        try:
            array = np.load(path, allow_pickle=False)
        except (ValueError, OSError, EOFError) as error:
            raise DataError(f"{path.name} is no plain array: {error}") from None
        if array.dtype.kind not in "iuf":
            raise DataError(f"{path.name} holds {array.dtype}, not numbers")
        return Ecg.of(array, self.fs)

    def _path(self, source: str) -> Path:
        if self.root is None:
            raise UsageError("there is no folder to look for media in; say --root")
        if "\0" in source or "://" in source or source.lower().startswith("file:"):
            raise DataError(f"{source!r} is no path of a file below the folder of the media")
        path = inside(self.root, source)
        if not path.is_file():
            raise DataError(f"there is no file {source}")
        return path


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD)


def _check_picture(path: Path) -> None:
    """Its header can be read and it has not too many pixels; nothing is decoded."""
    image: Any = _need_pillow()
    try:
        with image.open(path, formats=("PNG", "JPEG", "WEBP")) as picture:
            width, height = picture.size
    except (image.DecompressionBombError, image.UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        raise DataError(f"{path.name} is no picture that can be shown: {' '.join(str(error).split())}") from None
    if width * height > MOST_PIXELS:
        raise DataError(f"{path.name} has {width} × {height} pixels; at most {MOST_PIXELS:,} are shown")


def _need_pillow() -> Any:
    try:
        return import_module("PIL.Image")
    except ImportError:
        raise EnvironmentFault("pictures need the package 'pillow': pip install 'hitmiss[review]'") from None
