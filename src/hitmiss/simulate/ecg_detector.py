"""A small ECG classifier that trains in seconds without torch: pieces of training records as filters, and a linear
readout.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.core.sorting import Array
from hitmiss.detection.detect_spec import OutputKind
from hitmiss.detection.detector import Base, Batch, need
from hitmiss.simulate.ecg import CLASSES, FS
from hitmiss.simulate.saved_detectors import digest_of_arrays, save_detector
from hitmiss.stats.logistic import fit_logistic
from hitmiss.stats.random import noise_generator

F32 = NDArray[np.float32]
SIZE: Final = 20
STRIDE: Final = 4
FILTERS: Final = 32


@dataclass(eq=False)
class ConvBaseline(Base):
    """Filters (filter × lead × sample), their offsets, and a weight per feature and class."""

    filters: F32
    offset: F32
    weight: F32
    bias: F32
    name: str = "conv-baseline"
    sample_rate: int | None = int(FS)
    labels: tuple[str, ...] | None = CLASSES
    output_kind: OutputKind = field(default="multilabel", repr=False)

    @classmethod
    def fit(cls, x: ArrayLike, y: ArrayLike, *, classes: tuple[str, ...] = CLASSES, seed: int = 0) -> ConvBaseline:
        """Train on records (record × sample × lead) and their bits."""
        signals, bits = np.asarray(x, dtype=np.float32), np.asarray(y)
        filters = _pieces(signals, seed)
        half = cls(filters, np.zeros(len(filters), np.float32), np.zeros((0, 0), np.float32), np.zeros(0, np.float32))
        offset = -np.quantile(half._answers(signals[:64]), 0.7, axis=(0, 1)).astype(np.float32)
        half.offset = offset
        features = half.features(signals)
        mean, scale = features.mean(axis=0), features.std(axis=0) + 1e-6
        models = [fit_logistic((features - mean) / scale, b, strength=0.1) for b in bits.T]
        weight = np.stack([m.weight / scale for m in models], axis=1)
        bias = np.array([m.offset for m in models]) - mean @ weight
        return cls(filters, offset, weight.astype(np.float32), bias.astype(np.float32), labels=classes)

    def _answers(self, x: F32) -> F32:
        """Return the response of each filter along time: record × position × filter."""
        flat, leads = np.ascontiguousarray(x).reshape(len(x), -1), x.shape[2]
        frames = np.lib.stride_tricks.sliding_window_view(flat, SIZE * leads, axis=1)[:, :: STRIDE * leads]
        weights = self.filters.transpose(0, 2, 1).reshape(len(self.filters), -1)  # a frame is stored sample by sample
        rows = np.ascontiguousarray(frames).reshape(
            -1, SIZE * leads
        )  # one large product: many small ones are far slower
        return np.asarray((rows @ weights.T + self.offset).reshape(len(x), -1, len(weights)))

    def features(self, x: ArrayLike) -> F32:
        """Return the mean and the maximum rectified response of each filter."""
        signals = np.asarray(x, dtype=np.float32)
        found = []
        for i in range(0, len(signals), 64):
            answers = np.maximum(self._answers(signals[i : i + 64]), 0.0)
            found.append(np.concatenate([answers.mean(axis=1), answers.max(axis=1)], axis=1))
        return np.concatenate(found)

    def outputs(self, batch: Batch) -> Array:
        """Return one logit per record and class."""
        return np.asarray(self.features(np.asarray(batch)) @ self.weight + self.bias)

    def predict(self, x: ArrayLike) -> Array:
        """Return one probability per record and class, like the models of the ECG attack evaluation document."""
        return np.asarray(1.0 / (1.0 + np.exp(-self.outputs(np.asarray(x)).astype(np.float64))))

    @property
    def identity(self) -> Mapping[str, object]:
        """Its name and its parameters."""
        return {"name": self.name, "numbers": digest_of_arrays(self.filters, self.offset, self.weight, self.bias)}

    @cached_property
    def differentiable(self) -> object:
        """The same as a torch function (record × lead × sample to logits); None without torch."""
        if find_spec("torch") is None:
            return None
        torch = need("torch", "torch")
        filters, offset, weight, bias = (
            torch.from_numpy(a) for a in (self.filters, self.offset, self.weight, self.bias)
        )

        def logits(x: object) -> object:
            answers = torch.relu(torch.nn.functional.conv1d(x, filters, offset, stride=STRIDE))
            return torch.cat([answers.mean(dim=2), answers.amax(dim=2)], dim=1) @ weight + bias

        return logits

    def save(self, path: str | Path) -> None:
        """Write its parameters (.npz)."""
        with Path(path).open("wb") as file:
            np.savez(
                file,
                filters=self.filters,
                offset=self.offset,
                weight=self.weight,
                bias=self.bias,
                classes=np.array(self.labels),
            )

    @classmethod
    def load(cls, path: str | Path) -> ConvBaseline:
        """Read what `save` wrote; only numbers and names are accepted."""
        with np.load(path, allow_pickle=False) as stored:
            numbers = {name: stored[name] for name in ("filters", "offset", "weight", "bias")}
            return cls(**numbers, labels=tuple(map(str, stored["classes"])))


def _pieces(x: F32, seed: int) -> F32:
    """Return pieces of records, without their mean and with norm 1: filter × lead × sample."""
    rng = noise_generator(seed, "filters")
    rows, starts = rng.integers(len(x), size=FILTERS), rng.integers(x.shape[1] - SIZE, size=FILTERS)
    cut = np.stack([x[r, s : s + SIZE].T for r, s in zip(rows.tolist(), starts.tolist(), strict=True)])
    cut = cut - cut.mean(axis=2, keepdims=True)
    return np.ascontiguousarray(cut / (np.linalg.norm(cut, axis=(1, 2), keepdims=True) + 1e-6), dtype=np.float32)


def train(folder: str | Path) -> str:
    """Train on `train.npz` of a folder and return the text for `--detector`."""
    folder = Path(folder)
    with np.load(folder / "train.npz") as stored:
        model = ConvBaseline.fit(stored["x"], stored["y"])
    return save_detector(folder, model, data="train.npz", verb="attack")
