"""Pictures from bytes, with limits: three formats, a cap on pixels, one sentence where a file is broken."""

from __future__ import annotations

import io
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.errors import DataError, EnvironmentFault

Floats = NDArray[np.float64]
FORMATS: Final = ("PNG", "JPEG", "WEBP")
MOST_PIXELS: Final = 60_000_000
LUMA: Final = (0.299, 0.587, 0.114)
"""Weights of red, green and blue in the brightness (ITU-R BT.601)."""


def open_picture(data: bytes) -> Any:
    """The picture as Pillow opens it, nothing decoded yet; a broken, a foreign or a huge file raises `DataError`."""
    image_module = _pillow()
    try:
        image = image_module.open(io.BytesIO(data), formats=FORMATS)
    except (image_module.DecompressionBombError, image_module.DecompressionBombWarning):
        raise DataError(f"the picture has more than {MOST_PIXELS:,} pixels") from None
    except Exception as error:  # decoders raise whatever they like on broken files
        is_unknown = type(error).__name__ == "UnidentifiedImageError"  # its own words name an address in memory
        why = "it is no PNG, JPEG or WebP, or it is broken" if is_unknown else _first_line(error)
        raise DataError(f"the picture cannot be opened: {why}") from None
    if image.width * image.height > MOST_PIXELS:
        raise DataError(f"the picture has {image.width:,} × {image.height:,} pixels; at most {MOST_PIXELS:,} are taken")
    return image


def decode(data: bytes) -> NDArray[np.uint8]:
    """Height × width × red, green, blue; transparency is dropped, of an animation the first frame is taken."""
    image = open_picture(data)
    try:
        return np.asarray(image.convert("RGB"))
    except Exception as error:
        raise DataError(f"the picture cannot be decoded: {_first_line(error)}") from None


def resized(pixels: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """The picture at side × side pixels (bilinear, shape not kept)."""
    image_module = _pillow()
    return np.asarray(image_module.fromarray(pixels).resize((side, side), image_module.Resampling.BILINEAR))


def luminance(pixels: NDArray[np.uint8]) -> Floats:
    """Brightness from 0 to 255.

    >>> luminance(np.array([[[255, 0, 0], [10, 10, 10]]], dtype=np.uint8)).round(3).tolist()
    [[76.245, 10.0]]
    """
    return np.asarray(pixels.astype(np.float64) @ np.array(LUMA))


def blocks(values: Floats, n: int) -> list[list[Floats]]:
    """The picture cut into n × n blocks (fewer where it is smaller), sizes as equal as whole pixels allow."""
    rows = np.array_split(values, min(n, values.shape[0]), axis=0)
    return [np.array_split(row, min(n, values.shape[1]), axis=1) for row in rows]


def rounded(value: float) -> float:
    """Six significant digits: enough to judge by, and the same text on every machine.

    >>> rounded(1 / 3), rounded(123456789.0)
    (0.333333, 123457000.0)
    """
    return float(f"{value:.6g}")


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise EnvironmentFault(f"pictures need Pillow ({error}): pip install 'hitmiss[image]'") from None
    return Image


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
