"""Perturbations of images, behind the same interface: height × width or height × width × channel.

Integers run from 0 to 255, fractions from 0 to 1; the result has the type of the input.
"""

# ruff: noqa: ARG001  (every attack is given a generator; most of these draw nothing)

from __future__ import annotations

import io
from typing import Final

import numpy as np
from numpy.random import Generator

from hitmiss.attacks.arrays import Array
from hitmiss.attacks.family import attack
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.packages import need_package

SUITE: Final = (
    "jpeg(quality=50)", "jpeg(quality=20)", "blur(sigma=1)", "blur(sigma=2)", "pixel_noise(deviation=0.05)", "contrast(factor=0.5)",
)  # fmt: skip
"""The default manipulations of a drift table of pictures."""


@attack
def blur(x: Array, strength: float, rng: Generator, *, sigma: float = 2.0) -> Array:
    """Blur with a Gaussian; at strength 1 its deviation is `sigma` pixels."""
    from scipy.ndimage import gaussian_filter

    sigmas = (strength * sigma, strength * sigma, *([0.0] * (x.ndim - 2)))
    return _like(x, gaussian_filter(_unit(x), sigmas, mode="nearest"))


@attack
def pixel_noise(x: Array, strength: float, rng: Generator, *, deviation: float = 0.1) -> Array:
    """Add Gaussian noise per pixel and channel; at strength 1 its deviation is `deviation` of the range."""
    return _like(x, _unit(x) + strength * deviation * rng.standard_normal(x.shape))


@attack
def contrast(x: Array, strength: float, rng: Generator, *, factor: float = 0.4) -> Array:
    """Reduce the contrast about the mean of the image; at strength 1 it is multiplied by `factor`."""
    if factor < 0:
        raise UsageError.of("out-of-range/least", name="a factor of contrast", least=0, found=factor)
    values = _unit(x)
    middle = values.mean()
    return _like(
        x, middle + (values - middle) * factor**strength if factor else middle + (values - middle) * (1 - strength)
    )


@attack
def jpeg(x: Array, strength: float, rng: Generator, *, quality: int = 10) -> Array:
    """Save as JPEG and read again; strength moves the quality from 95 to `quality` (needs Pillow)."""
    if not 1 <= quality <= 95:
        raise UsageError.of("out-of-range", name="a JPEG quality", low=1, high=95, found=quality)
    need_package("PIL", "jpeg", "hitmiss[image]", "pillow")
    from PIL import Image

    pixels = np.round(_unit(x) * 255.0).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=round(95 - strength * (95 - quality)))
    with Image.open(buffer) as stored:
        return _like(x, np.asarray(stored).reshape(x.shape) / 255.0)


def _unit(x: Array) -> Array:
    """Return the image from 0 to 1, in float64."""
    if x.ndim not in (2, 3):
        raise DataError.of(
            "wrong-shape", name="a picture", form="height × width, with or without channels", shape=str(x.shape)
        )
    return x / 255.0 if x.dtype.kind in "iu" else x.astype(np.float64)


def _like(x: Array, values: Array) -> Array:
    """Convert values from 0 to 1 to the type of the input image."""
    kept = np.clip(values, 0.0, 1.0)
    return np.round(kept * 255.0) if x.dtype.kind in "iu" else kept
