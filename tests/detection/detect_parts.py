"""What the tests of detection share: a corpus in memory and functions that worker processes can import."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core.read_spec import ReadSpec
from hitmiss.io.manifest import Manifest, read_manifest

Clip = NDArray[np.float32]


def corpus(n: int = 120, **columns: list[str]) -> Manifest:
    """A manifest of n made-up clips, every second one real."""
    words = ["real" if i % 2 else "fake" for i in range(n)]
    frame = pl.DataFrame({"file": [f"c{i:04d}" for i in range(n)], "label": words, **columns})
    return read_manifest(frame, options=ReadSpec(positive="real"))


def clip(row: Mapping[str, Any]) -> Clip:
    """The clip of a row: 0.25 to 1 s of noise, a little louder where it is real."""
    rng = np.random.default_rng(int(row["file"][1:]))
    level = 0.12 if row["label"] == "real" else 0.1
    return (level * rng.standard_normal(int(rng.integers(4000, 16000)))).astype(np.float32)


def broken_clip(row: Mapping[str, Any]) -> Clip:
    """Like `clip`, but every tenth file cannot be read."""
    if row["file"].endswith("7"):
        raise ValueError(f"{row['file']} is cut off")
    return clip(row)


def deadly_clip(row: Mapping[str, Any]) -> Clip:
    """Like `clip`, but one file kills the process that reads it."""
    if row["file"] == "c0005":
        os._exit(11)
    return clip(row)


def kill_once(marker: str) -> None:
    """SIGKILL for this process, the first time that anybody comes here."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class KillsOnce:
    """A loader that kills its process the first time that it meets an item."""

    item: str
    marker: str

    def __call__(self, row: Mapping[str, Any]) -> Any:
        if row["file"] == self.item:
            kill_once(self.marker)
        return clip(row)


def slow_clip(row: Mapping[str, Any]) -> Clip:
    """Like `clip`, in ten milliseconds."""
    time.sleep(0.01)
    return clip(row)


def held_clip(row: Mapping[str, Any]) -> Clip:
    """Like `clip`, but the second half of the corpus comes only when the process is stopped: it never ends by itself."""
    while int(row["file"][1:]) >= 75:
        time.sleep(0.01)
    return clip(row)


def louder(one: Clip, row: Mapping[str, Any]) -> Clip:
    """A transform that depends on the row."""
    return one * np.float32(2.0 if row.get("codec") == "loud" else 1.0)


def two_logits(batch: Any) -> NDArray[Any]:
    """Logits of fake and real from the level of each clip."""
    level = np.log(np.sqrt((np.asarray(batch, dtype=np.float64) ** 2).mean(axis=-1)) / 0.11)
    return np.stack([-3 * level, 5 * level], axis=1)


def expected(manifest: Manifest, load: Any = clip) -> NDArray[np.float64]:
    """The log-odds that `two_logits` gives, clip by clip."""
    rows = [manifest.row(i) for i in range(len(manifest))]
    outputs = np.concatenate([two_logits(load(row)[None]) for row in rows])
    return np.asarray(outputs[:, 1] - outputs[:, 0])


def ones(row: Mapping[str, Any]) -> Clip:
    """As many ones as the row says."""
    return np.ones(row["n"], dtype=np.float32)
