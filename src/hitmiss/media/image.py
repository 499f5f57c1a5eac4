"""Read pictures from files: height × width × red, green, blue, integers from 0 to 255, in EXIF orientation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.metric_spec import parse
from hitmiss.core.packages import need_package

SCALES: Final[dict[str, tuple[tuple[float, ...], tuple[float, ...]]]] = {
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "half": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
    "unit": ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
    "raw": ((0.0, 0.0, 0.0), (1 / 255, 1 / 255, 1 / 255)),
}
"""Mean and deviation of red, green and blue used for scaling, for values from 0 to 1; `raw` keeps 0 to 255."""
ORDERS: Final = ("rgb", "bgr")
METHODS: Final = ("nearest", "bilinear", "bicubic", "lanczos")


@dataclass(frozen=True)
class PictureInput:
    """The input of a network: the shorter side resized to `resize`, the centre `crop` × `crop`, values scaled.

    The result is channel × y × x.

    >>> PictureInput.of("resize=256, crop=224, order=bgr").resize
    256
    """

    crop: int = 224
    resize: int | None = None
    """The shorter side before the crop; None: that of the crop."""
    mean: tuple[float, ...] = SCALES["imagenet"][0]
    deviation: tuple[float, ...] = SCALES["imagenet"][1]
    order: str = "rgb"
    method: str = "bilinear"

    def __post_init__(self) -> None:
        if self.crop < 1 or (self.resize or self.crop) < self.crop:
            raise UsageError.of("picture-crop", crop=self.crop, resize=self.resize)
        for what, value, known in (("order", self.order, ORDERS), ("method", self.method, METHODS)):
            if value not in known:
                raise UnknownName(what, value, known)

    @classmethod
    def of(cls, text: str) -> PictureInput:
        """Make it from a text: `resize=256, crop=224, scale=imagenet, order=rgb, method=bicubic`."""
        settings = dict(parse(f"picture({text})").settings)
        scale = str(settings.pop("scale", "imagenet"))
        known = ("crop", "resize", "order", "method", "scale")
        for key in settings:
            if key not in known:
                raise UnknownName("setting of --picture", key, known)
        if scale not in SCALES:
            raise UnknownName("scale", scale, SCALES)
        whole = {key: value for key, value in settings.items() if key in ("crop", "resize")}
        if any(isinstance(v, bool) or not isinstance(v, int) for v in whole.values()):
            raise UsageError.of("picture-size", text=text)
        mean, deviation = SCALES[scale]
        return cls(**{**settings, "mean": mean, "deviation": deviation})  # type: ignore[arg-type]

    @classmethod
    def of_model(cls, module: object) -> PictureInput | None:
        """Return what a timm model declares (`pretrained_cfg`); None if a model declares nothing."""
        found = getattr(module, "pretrained_cfg", None) or getattr(module, "default_cfg", None)
        if not isinstance(found, Mapping) or "input_size" not in found:
            return None
        crop = int(found["input_size"][-1])
        resize = int(crop / float(found.get("crop_pct") or 1.0))
        mean, deviation = (
            tuple(map(float, found.get(k, SCALES["imagenet"][i]))) for i, k in enumerate(("mean", "std"))
        )
        return cls(crop, resize, mean, deviation, "rgb", str(found.get("interpolation") or "bilinear"))

    def __call__(self, picture: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Convert a picture (y × x × red, green, blue) to the input of the network."""
        from PIL import Image

        height, width = picture.shape[:2]
        side = self.resize or self.crop
        size = (side, int(side * height / width)) if width <= height else (int(side * width / height), side)
        method = getattr(Image.Resampling, self.method.upper())
        small = Image.fromarray(picture)
        small = small if small.size == size else small.resize(size, method)
        left, top = (round((length - self.crop) / 2) for length in small.size)
        cut = np.asarray(small.crop((left, top, left + self.crop, top + self.crop)), dtype=np.float32)
        mean, deviation = (np.asarray(values, dtype=np.float32) for values in (self.mean, self.deviation))
        scaled = (cut / np.float32(255) - mean) / deviation
        ordered = scaled[..., ::-1] if self.order == "bgr" else scaled
        return np.ascontiguousarray(ordered.transpose(2, 0, 1))


def load_image(path: str | Path) -> NDArray[np.uint8]:
    """Read a picture of any format that Pillow reads; transparency is dropped, and only the first frame is used.

    16-bit values are divided by 257, so that 65535 becomes 255; the orientation in the EXIF data is applied.
    """
    need_package("PIL", "a picture", "hitmiss[image]", "pillow")
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with Image.open(path) as picture:
            upright = ImageOps.exif_transpose(picture)
            if upright.mode.startswith(("I", "F")):
                return _from_deep(np.asarray(upright), Path(path).name)
            return np.asarray(upright.convert("RGB"))
    except FileNotFoundError:
        raise DataError.of("missing-file", what="file", file=Path(path).name) from None
    except UnidentifiedImageError:
        raise DataError.of("not-a-picture", name=Path(path).name) from None
    except (OSError, Image.DecompressionBombError) as error:
        raise DataError.of("undecodable", what=Path(path).name, why=error) from None


def _from_deep(values: NDArray[np.generic], name: str) -> NDArray[np.uint8]:
    """Convert a picture of one channel with more than 8 bits: integers up to 65535, or fractions of 1."""
    numbers = np.asarray(values, dtype=np.float64)
    if not np.isfinite(numbers).all() or numbers.min() < 0 or numbers.max() > 65535:
        raise DataError.of("bad-picture", name=name, numbers=numbers.min(), numbers_2=numbers.max())
    is_share = np.asarray(values).dtype.kind == "f" and numbers.max() <= 1.0
    scaled = np.rint(numbers * 255.0 if is_share else numbers / 257.0).astype(np.uint8)
    return np.repeat(scaled[..., None], 3, axis=2)
