"""Pictures from files: height × width × red, green, blue, whole numbers from 0 to 255."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hitmiss.errors import DataError, EnvironmentFault


def load_image(path: str | Path) -> NDArray[np.uint8]:
    """A picture of any format that Pillow reads; transparency is dropped, of an animation the first frame is taken."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise EnvironmentFault(f"pictures need Pillow ({error}): pip install 'hitmiss[image]'") from None
    try:
        with Image.open(path) as picture:
            return np.asarray(picture.convert("RGB"))
    except FileNotFoundError:
        raise DataError(f"there is no file {Path(path).name}") from None
    except UnidentifiedImageError:
        raise DataError(f"{Path(path).name} is no picture, or it is broken") from None
    except (OSError, Image.DecompressionBombError) as error:
        raise DataError(f"{Path(path).name} cannot be decoded: {error}") from None
