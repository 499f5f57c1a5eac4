"""The content of an item: a picture, a sound, a text or an ECG. The type is recognised by the first bytes of a file.

Only these are ever sent to a browser: PNG, JPEG, WebP; WAV, FLAC, Ogg, MP3, M4A. SVG and HTML are refused, whatever
their names are. Texts and ECGs go into the page itself, as text and as lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.packages import need_package
from hitmiss.io.manifest import inside

if TYPE_CHECKING:
    from hitmiss.attacks.recordings import Recordings
    from hitmiss.review.ecg_paper import Ecg


IMAGE, AUDIO, TEXT, ECG = "image", "audio", "text", "ecg"
MOST_BYTES: Final = {IMAGE: 64 * 2**20, AUDIO: 512 * 2**20, TEXT: 2**20, ECG: 256 * 2**20}
MOST_PIXELS: Final = 100_000_000
HEAD: Final = 16
NUMPY: Final = b"\x93NUMPY"


@dataclass(frozen=True)
class File:
    """A file that may be sent to a browser, and its media type."""

    path: Path
    kind: str
    mime: str


def media_type(head: bytes) -> tuple[str, str] | None:
    """Recognise a file by its first 16 bytes: return kind and media type; None for everything not on the list.

    >>> media_type(b"\\x89PNG\\r\\n\\x1a\\n0000"), media_type(b"RIFF....WAVEfmt "), media_type(b"<svg xmlns=...")
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
    """Where the media are: a folder that no path may leave, and recordings in one file."""

    root: Path | None = None
    recordings: Recordings | None = None
    fs: float | None = None

    def kind_of(self, source: str) -> str:
        """Return the kind of a file, after all checks that need no decoding."""
        path = self._path(source)
        head = _head(path)
        found = media_type(head)
        kind = found[0] if found else ECG if head.startswith(NUMPY) else TEXT if path.suffix.lower() == ".txt" else None
        if kind is None:
            raise DataError.of("unknown-media", path_name=path.name)
        if path.stat().st_size > MOST_BYTES[kind]:
            raise DataError.of("media-too-large", path_name=path.name, MOST_BYTES=MOST_BYTES[kind] >> 20)
        if kind == IMAGE:
            _check_picture(path)
        elif kind == ECG:
            self.ecg(source)
        elif kind == TEXT:
            self.text(source)
        return kind

    def file(self, source: str) -> File:
        """Return a picture or a sound, checked again because it may have changed since the review began."""
        path = self._path(source)
        found = media_type(_head(path))
        if found is None or path.stat().st_size > MOST_BYTES[found[0]]:
            raise DataError.of("media-changed", path_name=path.name)
        return File(path, *found)

    def text(self, source: str) -> str:
        """Return the text of a `.txt` file."""
        path = self._path(source)
        try:
            return path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise DataError.of("not-utf8", file=path.name) from None

    def ecg(self, source: str) -> Ecg:
        """Return an ECG from a `.npy` file, or a record of the recordings."""
        from hitmiss.review.ecg_paper import Ecg

        if self.recordings is not None:
            if source not in self.recordings.ids:
                raise DataError.of("no-such-record/media", source=source)
            return Ecg.of(self.recordings.x[self.recordings.ids.index(source)], self.recordings.fs)
        if self.fs is None:
            raise UsageError.of("no-sample-rate", name="a .npy file")
        path = self._path(source)
        try:
            array = np.load(path, allow_pickle=False)
        except Exception as error:  # numpy parses the header as Python code: errors of any kind
            raise DataError.of("not-plain-array", path_name=path.name, error=error) from None
        if array.dtype.kind not in "iuf":
            raise DataError.of("not-numeric", name=path.name, found=array.dtype)
        return Ecg.of(array, self.fs)

    def _path(self, source: str) -> Path:
        if self.root is None:
            raise UsageError.of("no-folder/media")
        if "\0" in source or "://" in source or source.lower().startswith("file:"):
            raise DataError.of("path-outside/media", source=source)
        path = inside(self.root, source)
        if not path.is_file():
            raise DataError.of("missing-file", what="file", file=source)
        return path


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD)


def _check_picture(path: Path) -> None:
    """Check that the header can be read and that there are not too many pixels; nothing is decoded."""
    image = need_package("PIL.Image", "a picture", "hitmiss[review]", "pillow")
    try:
        with image.open(path, formats=("PNG", "JPEG", "WEBP")) as picture:
            width, height = picture.size
    except (image.DecompressionBombError, image.UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        raise DataError.of("not-a-picture/shown", path_name=path.name, error=" ".join(str(error).split())) from None
    if width * height > MOST_PIXELS:
        raise DataError.of(
            "picture-too-large/shown", path_name=path.name, width=width, height=height, MOST_PIXELS=MOST_PIXELS
        )
