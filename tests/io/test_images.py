"""Pictures: 16 bits are scaled and not clipped, and the camera's orientation is applied."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hitmiss.core.errors import DataError
from hitmiss.media.image import load_image

Image = pytest.importorskip("PIL.Image", reason="the extra image is not installed")


def test_sixteen_bits_keep_their_values(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 65536, (40, 30)).astype(np.uint16)
    for ending in ("png", "tif"):
        Image.fromarray(values).save(tmp_path / f"a.{ending}")
        found = load_image(tmp_path / f"a.{ending}")
        assert found.shape == (40, 30, 3) and found.dtype == np.uint8
        assert np.abs(found[..., 0].astype(float) - values / 257.0).max() <= 0.5


def test_parts_of_one_are_scaled_and_other_numbers_refused(tmp_path: Path) -> None:
    share = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)
    Image.fromarray(share).save(tmp_path / "a.tif")
    assert np.abs(load_image(tmp_path / "a.tif")[..., 1] - share * 255).max() <= 0.5
    Image.fromarray(share - 2).save(tmp_path / "b.tif")
    with pytest.raises(DataError) as refused:
        load_image(tmp_path / "b.tif")
    assert refused.value.code == "bad-picture"


def test_the_cameras_orientation_is_applied(tmp_path: Path) -> None:
    pixels = np.zeros((20, 30, 3), dtype=np.uint8)
    pixels[:, :15] = (200, 40, 40)
    about = Image.Exif()
    about[0x0112] = 6  # turned a quarter: what is left in the file is above
    Image.fromarray(pixels).save(tmp_path / "a.png", exif=about)
    found = load_image(tmp_path / "a.png")
    assert found.shape == (30, 20, 3) and (found[:15] == (200, 40, 40)).all() and (found[15:] == 0).all()
