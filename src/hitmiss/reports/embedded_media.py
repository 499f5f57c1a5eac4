"""Sounds and images small enough to be embedded in a report: decoded, reduced, and encoded again.

Nothing is copied as it is: an image is read as PNG, JPEG or WebP only, shrunk and written as JPEG; a sound is decoded
and written as MP3; a signal becomes a line. So other content of a file never reaches the report.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import ArrayLike

from hitmiss.core.errors import DataError, EnvironmentFault
from hitmiss.core.sorting import Array
from hitmiss.media.image import load_image

if TYPE_CHECKING:
    from PIL.Image import Image


Changed = Callable[[Array], Array | None]
"""The change made to a clip before a detector received it; None if it cannot be repeated."""
SECONDS: Final = 6.0
"""Number of seconds of a sound that are kept."""
RATE: Final = 16000
LONGEST_SECONDS: Final = 600.0
"""A sound longer than this many seconds is not opened at all."""
SIDE: Final = 224
"""Pixels of the longer side of a thumbnail."""
MOST_PIXELS: Final = 50_000_000
MOST_BYTES: Final = 64_000_000
IMAGES: Final = ("PNG", "JPEG", "WEBP")
SPECTROGRAM: Final = (240, 72)
"""Size of a spectrogram in pixels."""


@dataclass(frozen=True)
class Media:
    """A sound or an image as a data URL, or a signal as paths of an SVG; `about` describes it."""

    kind: str
    address: str = ""
    about: str = ""
    size: tuple[int, int] = (0, 0)
    traces: tuple[tuple[str, str], ...] = ()
    ticks: tuple[float, ...] = ()
    change: tuple[str, str] | None = None
    """The change of the first lead, on its own scale: in words, and as a path."""

    is_changed: bool = False
    """Whether a sound or an image is what the detector received, where the file holds something else."""

    before: str = ""
    """An image as its file holds it, where a run changed it."""

    spectrogram: str = ""
    """A sound as a picture of time and frequency."""

    over: tuple[str, ...] = ()
    """The traces again, after an attack."""

    paper: str = ""
    """The lines of the paper behind the traces."""

    @property
    def n_bytes(self) -> int:
        """Number of bytes that it adds to the page."""
        return (
            len(self.address)
            + len(self.before)
            + len(self.spectrogram)
            + len(self.about)
            + len(self.paper)
            + sum(map(len, self.over))
            + sum(len(name) + len(path) + 60 for name, path in (*self.traces, *((self.change,) if self.change else ())))
        )


@dataclass(frozen=True)
class Refusal:
    """The reason why a file is not shown."""

    name: str
    reason: str


def open_media(
    path: Path, changed: Changed | None = None, rate: int = RATE, *, lossless: bool = False
) -> Media | Refusal:
    """Recognise a file by its first bytes and make it small, or say why not. `lossless`: sounds as FLAC, not MP3.

    `changed` repeats the change of a sound or an image; if it returns None, the item is shown as it is in the file.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            return Refusal(path.name, f"it is larger than {MOST_BYTES // 1_000_000} MB")
        with path.open("rb") as file:
            kind = kind_of(file.read(16))
        if kind == "image":
            return image_of(path, changed)
        if kind == "sound":
            return sound_of(path, changed, rate, lossless=lossless)
    except (DataError, EnvironmentFault, OSError) as error:
        return Refusal(path.name, getattr(error, "strerror", None) or _without_name(str(error), path.name))
    return Refusal(path.name, "it is neither a PNG, JPEG or WebP image nor a known kind of sound")


def _without_name(text: str, name: str) -> str:
    return text.replace(f"{name}: ", "").replace(f" in {name}", "")


def kind_of(start: bytes) -> str:
    """Return `image`, `sound` or an empty text, by how a file begins; its name is ignored.

    >>> kind_of(b"<svg xmlns='ht"), kind_of(b"\\x89PNG\\r\\n\\x1a\\n"), kind_of(b"RIFF....WAVEfmt ")
    ('', 'image', 'sound')
    """
    if start.startswith((b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")) or (start[:4] == b"RIFF" and start[8:12] == b"WEBP"):
        return "image"
    sounds = (b"fLaC", b"OggS", b"ID3", b"#!AMR", b"FORM", b".snd", b"\x1aE\xdf\xa3")
    if start.startswith(sounds) or (start[:4] == b"RIFF" and start[8:12] == b"WAVE") or start[4:8] == b"ftyp":
        return "sound"
    return "sound" if len(start) > 1 and start[0] == 0xFF and start[1] & 0xE0 == 0xE0 else ""


def image_of(path: Path, changed: Changed | None = None) -> Media | Refusal:
    """Return a thumbnail; of a picture that a run changed, one before and one after the change."""
    from PIL import Image, ImageOps

    try:
        with Image.open(path, formats=IMAGES) as opened:
            width, height = opened.size
            if width * height > MOST_PIXELS:
                return Refusal(path.name, f"it has {width} × {height} pixels")
            if changed is None:
                opened.draft("RGB", (2 * SIDE, 2 * SIDE))
            upright = ImageOps.exif_transpose(opened)
            shown = upright.convert("RGBA")
        flat = Image.new("RGB", shown.size, (255, 255, 255))
        flat.paste(shown, mask=shown.getchannel("A"))
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError, Image.DecompressionBombWarning):
        return Refusal(path.name, "it is a broken image")
    before, size = _thumbnail(flat)
    shown_at = f"shown at {size[0]} × {size[1]} and coded anew as JPEG, so fine artefacts differ"
    about = f"{width} × {height} pixels, {shown_at}"
    after = changed(load_image(path)) if changed is not None else None
    if after is None:
        return Media("image", before, about, size)
    received, size = _thumbnail(Image.fromarray(np.clip(np.asarray(after), 0, 255).astype(np.uint8)).convert("RGB"))
    return Media("image", received, about, size, is_changed=True, before=before)


def _thumbnail(picture: Image) -> tuple[str, tuple[int, int]]:
    """Return a picture made small, as a data URL, and its size."""
    picture.thumbnail((SIDE, SIDE))
    packed = io.BytesIO()
    picture.save(packed, "JPEG", quality=74, optimize=True)
    return _address("image/jpeg", packed.getvalue()), picture.size


def sound_of(
    path: Path, changed: Changed | None = None, rate: int = RATE, *, lossless: bool = False
) -> Media | Refusal:
    """Return the first seconds of a sound with its spectrogram; `is_changed` says whether a change was repeated."""
    from hitmiss.media.audio import load_audio, need

    clip = load_audio(path, rate, max_seconds=LONGEST_SECONDS)
    after = changed(clip) if changed is not None else None
    seconds = len(clip) / rate
    kept = (clip if after is None else np.asarray(after))[: int(SECONDS * rate)]
    peak = float(np.abs(kept).max(initial=0.0))
    packed = io.BytesIO()
    form: dict[str, object] = {"format": "MP3", "subtype": "MPEG_LAYER_III", "compression_level": 0.6}
    if lossless:
        form = {"format": "FLAC", "subtype": "PCM_16"}
    try:
        need("soundfile").write(packed, kept / max(peak, 1.0), rate, **form)
    except (TypeError, ValueError, RuntimeError):
        return Refusal(path.name, f"this soundfile cannot write {form['format']}")
    about = f"first {SECONDS:g} of {seconds:.1f} s" if seconds > SECONDS else f"{seconds:.1f} s"
    kind, how = (
        ("audio/flac", "lossless") if lossless else ("audio/mpeg", "coded anew as MP3, so fine artefacts differ")
    )
    return Media(
        "sound",
        _address(kind, packed.getvalue()),
        f"{about} at {rate / 1000:g} kHz, {how}",
        is_changed=after is not None,
        spectrogram=spectrogram_of(kept, rate),
    )


def spectrogram_of(clip: ArrayLike, rate: int) -> str:
    """Draw the magnitudes of a clip over time and frequency as a small grey picture: dark is loud, over 70 dB.

    >>> spectrogram_of(np.sin(np.arange(16000) / 3), 16000)[:22]
    'data:image/jpeg;base64'
    """
    from PIL import Image

    window = 512 if rate >= 8000 else 256
    signal = np.asarray(clip, dtype=np.float64)
    signal = np.pad(signal, (0, max(0, 2 * window - len(signal))))
    hop = max(len(signal) // SPECTROGRAM[0], 1)
    starts = np.arange(0, len(signal) - window, hop)[: SPECTROGRAM[0]]
    frames = signal[starts[:, None] + np.arange(window)] * np.hanning(window)
    power = 20 * np.log10(np.abs(np.fft.rfft(frames, axis=1)) + 1e-9).T[::-1]
    level = np.clip((power - power.max()) / 70.0 + 1.0, 0.0, 1.0)
    picture = Image.fromarray((255 - 235 * level).astype(np.uint8)).resize(SPECTROGRAM, Image.Resampling.BILINEAR)
    packed = io.BytesIO()
    picture.save(packed, "JPEG", quality=55, optimize=True)
    return _address("image/jpeg", packed.getvalue())


def _address(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
