"""What worker processes import: loaders and functions that kill the process that runs them, as a crash would."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from detect_parts import clip, kill_once, two_logits
from numpy.typing import NDArray

from hitmiss.core.errors import DataError, Fault
from hitmiss.detection.detector import Base, CallableDetector


@dataclass(frozen=True)
class Killed:
    """A function whose first call for an argument with this text in it kills the process."""

    function: Callable[..., Any]
    word: str
    marker: str

    def __call__(self, *given: Any) -> Any:
        if self.word in str(given[0]):
            kill_once(self.marker)
        return self.function(*given)


@dataclass(frozen=True)
class Noted:
    """A function that leaves a file with the session of its process when it begins, and takes its time."""

    function: Callable[..., Any]
    folder: str
    seconds: float

    def __call__(self, *given: Any) -> Any:
        note = Path(self.folder) / f"{os.getsid(0)}.{time.monotonic_ns()}"
        note.touch()
        time.sleep(self.seconds)
        return self.function(*given)


class Coarse(Base):
    """The level of a clip as two logits, to a tenth."""

    name, sample_rate, precision = "coarse", 16000, "bfloat16"

    def outputs(self, batch: Any) -> NDArray[Any]:
        return np.round(two_logits(batch), 1)

    def in_float32(self) -> CallableDetector:
        return CallableDetector(two_logits, "level", 16000)


class Levels(Base):
    """The level of a clip as two logits, and as an embedding."""

    name, sample_rate, ragged, layers = "levels", 16000, True, ("level",)

    def outputs(self, batch: Any) -> NDArray[Any]:
        return np.concatenate([two_logits(one[None]) for one in batch])

    def with_layers(self, batch: Any) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
        found = self.outputs(batch)
        return found, {"level": np.repeat(found[:, 1:], 3, axis=1) * np.array([1.0, 2.0, 3.0])}


class HostDetector(Base):
    """A detector that is another one in every process; each leaves a file with its process number when it opens."""

    name = "host"

    def __init__(self, folder: Path) -> None:
        (folder / f"{os.getpid()}.opened").touch()

    def outputs(self, batch: Any) -> NDArray[Any]:
        return two_logits(batch)

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"name": self.name, "pid": os.getpid()}


@dataclass(frozen=True)
class AfterTwo:
    """A loader that waits until two detectors have been opened: neither can score everything before the other is there."""

    folder: Path

    def __call__(self, row: Mapping[str, Any]) -> Any:
        end = time.monotonic() + 120
        while len(list(self.folder.glob("*.opened"))) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.05)  # the second one's answer travels to the owner while the first one works
        return clip(row)


def half(x: int) -> int:
    """Half of an even number; of an odd one, an error with its place."""
    if x % 2:
        raise DataError(f"{x} is odd", [Fault("odd", "the number is odd", row=x)])
    return x // 2


def where(_: Any) -> tuple[int, str]:
    """The process and the folder of a worker."""
    return os.getpid(), str(Path.cwd())


def suicide(x: Any) -> None:
    """Kills whoever runs it, every time."""
    del x
    os.kill(os.getpid(), signal.SIGKILL)
