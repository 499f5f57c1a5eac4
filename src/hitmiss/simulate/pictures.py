"""Simulated pictures: scenes with the noise of a sensor, and scenes enlarged from fewer pixels, as generators make them.

All are JPEG files of one size and one quality under neutral names, so that only the pixels distinguish them. Every
picture has a strength: weak ones look alike. No real camera or generator is used.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hitmiss._version import __version__

SIDE: Final = 96
QUALITY: Final = 92
ITEMS: Final = 120
LEAST: Final = 24
SOURCES: Final = {"sensor": ("real", 2.2), "phone": ("real", 1.4), "enlarged": ("fake", 4), "grid": ("fake", 2)}
"""The source of a picture: its label, and the deviation of its noise or the factor of its enlargement."""


def picture(source: str, rng: Generator, side: int = SIDE) -> NDArray[np.uint8]:
    """Return one picture: height × width × 3."""
    label, amount = SOURCES[source]
    strength = rng.uniform(0.25, 1.0)
    plain = scene(rng, side)
    if label == "real":
        noisy = plain + rng.normal(scale=amount * strength, size=plain.shape)
        return _bytes(noisy)
    small = scene(rng, -(-side // int(amount))) if strength > 0.5 else plain[:: int(amount), :: int(amount)]
    large = np.repeat(np.repeat(small, int(amount), axis=0), int(amount), axis=1)[:side, :side]
    mixed = strength * _smoothed(large) + (1 - strength) * plain
    return _bytes(mixed + rng.normal(scale=1.2 * (1 - strength), size=plain.shape))


def scene(rng: Generator, side: int) -> NDArray[np.float64]:
    """Return a smooth scene with a few edges: colours between 20 and 235."""
    y, x = np.mgrid[0:side, 0:side] / side
    channels = []
    for _ in range(3):
        a, b, c = rng.uniform(-1, 1, size=3)
        channels.append(a * x + b * y + c * np.sin(2 * np.pi * rng.uniform(0.5, 2.0) * (x + rng.uniform() * y)))
    found = np.stack(channels, axis=2)
    for _ in range(4):
        cx, cy, radius = rng.uniform(0.1, 0.9), rng.uniform(0.1, 0.9), rng.uniform(0.08, 0.25)
        found[(x - cx) ** 2 + (y - cy) ** 2 < radius**2] += rng.uniform(-0.8, 0.8, size=3)
    low, high = found.min(), found.max()
    return np.asarray(20 + 215 * (found - low) / (high - low))


def encode(pixels: NDArray[np.uint8]) -> bytes:
    """Return the picture as a JPEG file."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=QUALITY)
    return buffer.getvalue()


def items(n: int, seed: int = 0, side: int = SIDE) -> Iterator[tuple[dict[str, object], bytes]]:
    """Yield dataset rows and the files that they name, every source in turn."""
    names = list(SOURCES)
    for i, rng in enumerate(np.random.default_rng(seed).spawn(n)):
        source = names[i % len(names)]
        data = encode(picture(source, rng, side))
        name = hashlib.sha256(data).hexdigest()[:12]
        row = {"id": f"picture-{i + 1:04d}", "image": f"images/{name}.jpg", "label": SOURCES[source][0]}
        yield {**row, "meta": {"source": source}}, data


def write(folder: str | Path, *, share: float = 1.0, seed: int = 7, side: int = SIDE) -> Path:
    """Write pictures and `dataset.jsonl` into a folder, unless it already holds exactly this data."""
    folder, text = Path(folder), about(share, seed, side)
    readme = folder / "README.txt"
    if readme.is_file() and readme.read_text(encoding="utf-8") == text and (folder / "dataset.jsonl").is_file():
        return folder
    readme.unlink(missing_ok=True)  # it is written last: if it is there, the data is complete
    (folder / "images").mkdir(parents=True, exist_ok=True)
    lines = []
    for row, data in items(max(LEAST, round(ITEMS * share)), seed, side):
        (folder / str(row["image"])).write_bytes(data)
        lines.append(json.dumps(row) + "\n")
    (folder / "dataset.jsonl").write_text("".join(lines), encoding="utf-8")
    readme.write_text(text, encoding="utf-8")
    return folder


def about(share: float, seed: int, side: int) -> str:
    """Return the text of README.txt: what this data is, and what it is not."""
    return f"""This data is SIMULATED.

hitmiss {__version__} made it with its own code (hitmiss.simulate.pictures, seed {seed}, share {share:g}, {side} pixels per side).
No camera took these pictures and no generator made them: "real" ones are computed scenes with computed sensor noise, "fake"
ones are enlarged from fewer pixels. Numbers computed from them say nothing about any real system.

images/         JPEG files under names that say nothing
dataset.jsonl   id, image, label, meta.source
"""


def _smoothed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of each pixel and its right, lower and lower-right neighbours."""
    padded = np.pad(values, ((0, 1), (0, 1), (0, 0)), mode="edge")
    return np.asarray((padded[:-1, :-1] + padded[1:, :-1] + padded[:-1, 1:] + padded[1:, 1:]) / 4)


def _bytes(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    return np.clip(np.round(values), 0, 255).astype(np.uint8)
