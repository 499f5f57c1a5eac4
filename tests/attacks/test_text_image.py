"""Families of texts and images behind the same interface."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hitmiss.attacks.family import find_attack, perturbation
from hitmiss.attacks.text import LOOKALIKES, decode, encode, perturb_text
from hitmiss.core.errors import DataError, UsageError

TEXT = "You will never see a Zebra cross the old road, will you? 🙂\nNo."
IMAGE = (np.random.default_rng(0).random((32, 24, 3)) * 255).astype(np.uint8)
SMOOTH = np.tile(np.linspace(0, 1, 32), (32, 1))


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


@pytest.mark.parametrize("name", ["typos", "homoglyphs"])
def test_texts(name: str) -> None:
    entry = find_attack(name)
    assert decode(entry.apply(encode(TEXT), 0.0, rng())) == TEXT
    changed = perturb_text(TEXT, f"{name}(rate=0.5)", rng())
    assert changed != TEXT and changed == perturb_text(TEXT, f"{name}(rate=0.5)", rng())
    assert changed.count("\n") == 1 and "🙂" in changed and "?" in changed


def test_lookalikes_are_other_letters_in_the_same_places() -> None:
    changed = perturb_text(TEXT, "homoglyphs(rate=1)", rng())
    assert len(changed) == len(TEXT)
    back = {v: k for k, v in LOOKALIKES.items()}
    assert "".join(back.get(c, c) for c in changed) == TEXT
    assert not set(changed) & set(LOOKALIKES)


def test_more_strength_more_typos() -> None:
    long = TEXT * 40
    counts = [
        sum(a != b for a, b in zip(long, perturb_text(long, f"homoglyphs(strength={s}, rate=1)", rng()), strict=True))
        for s in (0.1, 0.5, 1.0)
    ]
    assert counts[0] < counts[1] < counts[2]


@pytest.mark.parametrize("name", ["blur", "pixel_noise", "contrast", "jpeg"])
@pytest.mark.parametrize("image", [IMAGE, IMAGE[..., 0], IMAGE / 255.0], ids=["colour", "grey", "float"])
def test_images(name: str, image: np.ndarray) -> None:
    if name == "jpeg":
        pytest.importorskip("PIL")
    entry = find_attack(name)
    assert np.array_equal(entry.apply(image, 0.0, rng()), image)
    sizes = [np.abs(entry.apply(image, s, rng()).astype(float) - image).sum() for s in (0.2, 1.0)]
    assert 0 < sizes[0] < sizes[1]
    out = entry.apply(image, 1.0, rng())
    assert out.dtype == image.dtype and out.shape == image.shape and out.min() >= 0


def test_blur_keeps_the_mean_and_what_is_flat() -> None:
    flat = np.full((16, 16), 0.25)
    np.testing.assert_allclose(find_attack("blur").apply(flat, 1.0, rng()), flat, atol=1e-12)
    assert np.abs(np.diff(perturbation("contrast(factor=0)")(SMOOTH, rng()))).max() < 1e-12


def test_strange_images_are_refused() -> None:
    with pytest.raises(DataError, match="height"):
        find_attack("blur").apply(np.zeros(5), 0.5, rng())
    with pytest.raises(UsageError, match="between 1 and 95"):
        find_attack("jpeg").apply(IMAGE, 0.5, rng(), quality=0)


def test_callables_on_texts_and_pictures() -> None:
    from hitmiss.attacks.manipulation import transform
    from hitmiss.core.errors import UnknownName

    assert transform(str.upper, "text")("abc", 0, rng()) == "ABC"
    drawn = transform(lambda text, r: text + str(r.integers(1000)), "text")
    assert drawn("a", 0, rng()) == drawn("a", 0, rng())
    assert np.array_equal(transform(lambda x: x[::-1], "image")(IMAGE, 0, rng()), IMAGE[::-1])
    assert str(transform("typos(rate=0.2)", "text")) == "typos(rate=0.2)"
    with pytest.raises(DataError, match="a text is needed"):
        transform(len, "text")("abc", 0, rng())
    with pytest.raises(DataError, match="height × width"):
        transform("blur", "image")(np.zeros(5), 0, rng())
    with pytest.raises(UsageError, match="callable"):
        transform(3, "text")  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="audio"):
        transform("typos", "video")


def test_pictures_from_files(tmp_path: Path) -> None:
    from hitmiss.media.image import load_image

    image = pytest.importorskip("PIL.Image")
    image.fromarray(IMAGE).save(tmp_path / "one.png")
    assert np.array_equal(load_image(tmp_path / "one.png"), IMAGE)
    image.fromarray(IMAGE[..., 0]).save(tmp_path / "grey.png")
    assert load_image(tmp_path / "grey.png").shape == IMAGE.shape
    (tmp_path / "no.png").write_bytes(b"no picture")
    cut = (tmp_path / "one.png").read_bytes()[:200]
    (tmp_path / "cut.png").write_bytes(cut)
    for name, word in (("no.png", "not a picture"), ("cut.png", "cannot be decoded"), ("none.png", "no file")):
        with pytest.raises(DataError, match=word):
            load_image(tmp_path / name)
