"""Pictures from files: height × width × red, green, blue, whole numbers from 0 to 255, the way up that the camera noted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import DataError, EnvironmentFault


def load_image(path: str | Path) -> NDArray[np.uint8]:
    """A picture of any format that Pillow reads; transparency is dropped, of an animation the first frame is taken.

    16-bit values are divided by 257, so that 65535 is 255; the orientation of the EXIF data is applied.
    """
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ImportError as error:
        raise EnvironmentFault(f"pictures need Pillow ({error}): pip install 'hitmiss[image]'") from None
    try:
        with Image.open(path) as picture:
            upright = ImageOps.exif_transpose(picture)
            if upright.mode.startswith(("I", "F")):
                return _from_deep(np.asarray(upright), Path(path).name)
            return np.asarray(upright.convert("RGB"))
    except FileNotFoundError:
        raise DataError(f"there is no file {Path(path).name}") from None
    except UnidentifiedImageError:
        raise DataError(f"{Path(path).name} is no picture, or it is broken") from None
    except (OSError, Image.DecompressionBombError) as error:
        raise DataError(f"{Path(path).name} cannot be decoded: {error}") from None


def _from_deep(values: NDArray[np.generic], name: str) -> NDArray[np.uint8]:
    """A picture of one channel with more than 8 bits: whole numbers up to 65535, or parts of 1."""
    numbers = np.asarray(values, dtype=np.float64)
    if not np.isfinite(numbers).all() or numbers.min() < 0 or numbers.max() > 65535:
        raise DataError(
            f"{name} holds values from {numbers.min():g} to {numbers.max():g}; 0 to 65535, or 0 to 1, are understood",
            code="bad-picture",
        )
    is_share = np.asarray(values).dtype.kind == "f" and numbers.max() <= 1.0
    scaled = np.rint(numbers * 255.0 if is_share else numbers / 257.0).astype(np.uint8)
    return np.repeat(scaled[..., None], 3, axis=2)
