"""Read pictures and sounds from bytes, with limits."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import DataError, EnvironmentFault
from hitmiss.media.audio import need

if TYPE_CHECKING:
    from PIL.Image import Image

# ----------------------------------------------------------------------
# Pictures from bytes, with limits: three formats, a maximum number of pixels, one sentence if a file is broken.

Floats = NDArray[np.float64]
FORMATS: Final = ("PNG", "JPEG", "WEBP")
MOST_PIXELS: Final = 60_000_000
LUMA: Final = (0.299, 0.587, 0.114)
"""Weights of red, green and blue in the brightness (ITU-R BT.601)."""


def open_picture(data: bytes) -> Image:
    """Open a picture with Pillow, without decoding; a broken, unknown or huge file raises `DataError`."""
    image_module = _pillow()
    try:
        image: Image = image_module.open(io.BytesIO(data), formats=FORMATS)
    except (image_module.DecompressionBombError, image_module.DecompressionBombWarning):
        raise DataError(f"the picture has more than {MOST_PIXELS:,} pixels") from None
    except Exception as error:  # decoders raise any kind of error on broken files
        is_unknown = type(error).__name__ == "UnidentifiedImageError"  # its own message contains a memory address
        why = "it is not a PNG, JPEG or WebP file, or it is broken" if is_unknown else _first_line(error)
        raise DataError(f"the picture cannot be opened: {why}") from None
    if image.width * image.height > MOST_PIXELS:
        raise DataError(f"the picture has {image.width:,} × {image.height:,} pixels; at most {MOST_PIXELS:,} are taken")
    return image


def decode(data: bytes) -> NDArray[np.uint8]:
    """Return height × width × red, green, blue; transparency is dropped, and only the first frame is used."""
    image = open_picture(data)
    try:
        return np.asarray(image.convert("RGB"))
    except Exception as error:
        raise DataError(f"the picture cannot be decoded: {_first_line(error)}") from None


def resized(pixels: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Return the picture at side × side pixels (bilinear, aspect ratio not kept)."""
    image_module = _pillow()
    return np.asarray(image_module.fromarray(pixels).resize((side, side), image_module.Resampling.BILINEAR))


def luminance(pixels: NDArray[np.uint8]) -> Floats:
    """Return the brightness from 0 to 255.

    >>> luminance(np.array([[[255, 0, 0], [10, 10, 10]]], dtype=np.uint8)).round(3).tolist()
    [[76.245, 10.0]]
    """
    return np.asarray(pixels.astype(np.float64) @ np.array(LUMA))


def blocks(values: Floats, n: int) -> list[list[Floats]]:
    """Cut the picture into n × n blocks (fewer if it is smaller), as equal as whole pixels allow."""
    rows = np.array_split(values, min(n, values.shape[0]), axis=0)
    return [np.array_split(row, min(n, values.shape[1]), axis=1) for row in rows]


def rounded(value: float) -> float:
    """Round to six significant digits: precise enough, and the same text on every machine.

    >>> rounded(1 / 3), rounded(123456789.0)
    (0.333333, 123457000.0)
    """
    return float(f"{value:.6g}")


def _pillow() -> ModuleType:
    try:
        return import_module("PIL.Image")
    except ImportError as error:
        raise EnvironmentFault(f"pictures need Pillow ({error}): pip install 'hitmiss[image]'") from None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


# ----------------------------------------------------------------------
# Sounds from bytes, with limits; and their conversion for language models, which accept only WAV and MP3.

AS_THEY_ARE: Final = {"audio/wav": "wav", "audio/mp3": "mp3"}
"""What is sent unchanged, and its name in the protocol."""
MOST_BYTES: Final = 32 * 1024 * 1024
WIDER: Final = ("PCM_24", "PCM_32", "FLOAT", "DOUBLE")


@dataclass(frozen=True, eq=False)
class Sound:
    """Samples (one row per sample time, one column per channel), the sample rate, and how they were stored."""

    samples: Floats
    rate: int
    form: str
    coding: str

    @property
    def mono(self) -> Floats:
        """The mean of the channels."""
        return np.asarray(self.samples.mean(axis=1))


def read_sound(data: bytes, most: int) -> Sound:
    """Read the first `most` samples of all channels together, plus one sample time if there are more.

    A broken or an empty sound raises `DataError`.
    """
    soundfile = need("soundfile")
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            samples = file.read(most // file.channels + 1, dtype="float64", always_2d=True)
            found = Sound(samples, int(file.samplerate), str(file.format), str(file.subtype))
    except (soundfile.LibsndfileError, ValueError) as error:
        why = str(getattr(error, "error_string", error)).rstrip(".")
        raise DataError(f"the sound cannot be decoded: {why}") from None
    if not len(found.samples):
        raise DataError("the sound holds no samples")
    if not np.isfinite(found.samples).all():
        raise DataError("the sound holds samples that are NaN or infinite")
    return found


def to_send(data: bytes, media_type: str) -> tuple[bytes, str, dict[str, object] | None]:
    """Return the bytes to send, the protocol's word for their type, and what was done to them (None: nothing)."""
    if media_type in AS_THEY_ARE:
        return data, AS_THEY_ARE[media_type], None
    wav, told = as_wav(data)
    return wav, "wav", {"from": media_type, "to": "audio/wav", **told}


def as_wav(data: bytes) -> tuple[bytes, dict[str, object]]:
    """Return a sound as WAV: its own sample rate and channels, 24 bits if the source has more than 16, else 16."""
    sound = read_sound(data, MOST_BYTES // 2)
    width = 3 if sound.coding in WIDER else 2
    if sound.samples.size * width > MOST_BYTES:
        raise DataError(f"the sound takes more than {MOST_BYTES >> 20} MiB as WAV; cut it")
    packed = io.BytesIO()
    need("soundfile").write(packed, sound.samples, sound.rate, subtype=f"PCM_{8 * width}", format="WAV")
    sent = packed.getvalue()
    form = {"sample_rate": sound.rate, "channels": int(sound.samples.shape[1]), "bits": 8 * width}
    return sent, {**form, "sha256": hashlib.sha256(sent).hexdigest()}
