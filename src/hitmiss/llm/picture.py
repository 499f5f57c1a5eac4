"""Pictures from bytes, with limits: three formats, a maximum number of pixels, one sentence if a file is broken."""

from __future__ import annotations

import io
from types import ModuleType
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import DataError
from hitmiss.core.packages import need_package

if TYPE_CHECKING:
    from PIL.Image import Image


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
        raise DataError.of("picture-too-large/unopened", MOST_PIXELS=MOST_PIXELS) from None
    except Exception as error:  # decoders raise any kind of error on broken files
        is_unknown = type(error).__name__ == "UnidentifiedImageError"  # its own message contains a memory address
        why = "it is not a PNG, JPEG or WebP file, or it is broken" if is_unknown else _first_line(error)
        raise DataError.of("undecodable", what="the picture", why=why) from None
    if image.width * image.height > MOST_PIXELS:
        raise DataError.of("picture-too-large", width=image.width, height=image.height, MOST_PIXELS=MOST_PIXELS)
    return image


def decode(data: bytes) -> NDArray[np.uint8]:
    """Return height × width × red, green, blue; transparency is dropped, and only the first frame is used."""
    image = open_picture(data)
    try:
        return np.asarray(image.convert("RGB"))
    except Exception as error:
        raise DataError.of("undecodable", what="the picture", why=_first_line(error)) from None


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
    return need_package("PIL.Image", "a picture", "hitmiss[image]", "pillow")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
