"""A small spectral detector that trains in seconds: statistics of the spectrum, and a linear model on them.

Per clip: the level is removed; for 40 bands evenly spaced up to half the sample rate, the features are the mean, the
spread and the mean frame-to-frame change of the log energies; a logistic regression uses these 120 numbers. It is a
baseline and a part for tests and demos, and needs numpy alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.core import artifacts
from hitmiss.core.errors import DataError
from hitmiss.detection.detector import Base, Batch, arrays_of
from hitmiss.simulate.saved_detectors import digest_of_arrays
from hitmiss.stats.logistic import fit_logistic

F32 = NDArray[np.float32]
FRAME: Final = 400
HOP: Final = 160
BANDS: Final = 40
FLOOR: Final = np.float32(1e-7)


def _f32(values: ArrayLike) -> F32:
    return np.asarray(values, dtype=np.float32)


@cache
def kernels() -> tuple[F32, F32]:
    """Return windowed cosines and sines (bin × sample): the DFT of a frame as two matrix products."""
    bins, t = np.arange(FRAME // 2 + 1)[:, None], np.arange(FRAME)[None]
    angle, window = 2 * np.pi * bins * t / FRAME, np.hanning(FRAME + 1)[:-1]
    return _f32(np.cos(angle) * window), _f32(np.sin(angle) * window)


@cache
def filterbank() -> F32:
    """Return triangles evenly spaced in frequency, band × bin, each with weight 1."""
    bins = FRAME // 2 + 1
    middle = np.linspace(0, bins - 1, BANDS + 2)[1:-1, None]
    width = (bins - 1) / (BANDS + 1)
    triangles = np.maximum(0.0, 1.0 - np.abs(np.arange(bins)[None] - middle) / width)
    return _f32(triangles / triangles.sum(axis=1, keepdims=True))


def features(clip: ArrayLike) -> F32:
    """Return the 120 features of one clip."""
    x = np.asarray(clip, dtype=np.float32)
    if len(x) < FRAME + HOP:
        raise DataError.of("short-clip/frames", n_x=len(x), FRAME=FRAME + HOP)
    x = x / np.sqrt(np.mean(x * x) + FLOOR)
    frames = np.lib.stride_tricks.sliding_window_view(x, FRAME)[::HOP]
    cosine, sine = kernels()
    power = (frames @ cosine.T) ** 2 + (frames @ sine.T) ** 2
    bands = np.log(power @ filterbank().T + FLOOR)
    mean = bands.mean(axis=0)
    spread = np.sqrt(np.mean((bands - mean) ** 2, axis=0))
    change = np.abs(np.diff(bands, axis=0)).mean(axis=0)
    return np.concatenate([mean, spread, change]).astype(np.float32)


@dataclass(eq=False)
class SpectralBaseline(Base):
    """The detector: two logits per clip, [fake, real], in the order of the BEATs evaluation document."""

    weight: F32
    bias: float
    name: str = "spectral-baseline"
    sample_rate: int | None = 16000
    ragged: bool = True
    labels: tuple[str, ...] | None = field(default=("fake", "real"))

    @classmethod
    def fit(cls, clips: Sequence[ArrayLike], is_real: ArrayLike, *, strength: float = 0.1) -> SpectralBaseline:
        """Train on clips; `strength` is the inverse of the ridge penalty (small: few fine distinctions)."""
        x, y = np.stack([features(clip) for clip in clips]), np.asarray(is_real, dtype=bool)
        if y.all() or not y.any():
            raise DataError.of("one-class", what="training")
        mean, scale = x.mean(axis=0), x.std(axis=0) + 1e-6
        model = fit_logistic((x - mean) / scale, y, strength=strength, balanced=True)
        weight = model.weight / scale
        return cls(_f32(weight), float(model.offset - weight @ mean))

    @property
    def identity(self) -> Mapping[str, object]:
        """Its name and its parameters."""
        return {"name": self.name, "numbers": digest_of_arrays(self.weight, np.float64(self.bias))}

    def outputs(self, batch: Batch) -> F32:
        """Return two logits per clip: [fake, real]."""
        z = np.array([features(clip) @ self.weight + self.bias for clip in arrays_of(batch)], dtype=np.float32).reshape(
            -1
        )
        return np.stack([-z / 2, z / 2], axis=1)

    def save(self, path: str | Path) -> None:
        """Write its parameters (.npz)."""
        with Path(path).open("wb") as file:
            np.savez(file, weight=self.weight, bias=self.bias)

    @classmethod
    def load(cls, path: str | Path) -> SpectralBaseline:
        """Read what `save` wrote; only numbers are accepted."""
        stored = artifacts.load_arrays(Path(path), "weights file", Path(path).name)
        if not {"weight", "bias"} <= set(stored) or stored["bias"].size != 1:
            raise DataError.of("unreadable-file", name=Path(path).name)
        return cls(_f32(stored["weight"]), float(stored["bias"].item()))
