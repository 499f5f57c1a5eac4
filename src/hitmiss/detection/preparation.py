"""From items to clips: load, transform, fit to length and cut into windows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import EnvironmentFault
from hitmiss.detection.detector import Item

Row = Mapping[str, str]
T = TypeVar("T")
Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True)
class Prepared:
    """An item ready for the model: its clip or its windows, and how long the preparation took."""

    at: int
    parts: list[Item]
    length: int
    decode: float
    augment: float
    pin: str = ""
    """The content of the source file (see `file_pin`); empty if there is no file."""


class Loaded(NamedTuple):
    """A clip of which only the first part was loaded, and its full length."""

    clip: Item
    length: int


Load = Callable[[Row], Item | Loaded]
Transform = Callable[..., Item]
Fit = Callable[..., Item]
Buffer = Callable[[int], NDArray[np.uint8]]
Form = tuple[tuple[int, ...], str]
"""The shape and the type of an array."""


@dataclass(frozen=True)
class Failed:
    """An item that could not be prepared, and why."""

    at: int
    reason: str


Prepare = Callable[[int, Row], Prepared | Failed]
"""Prepares an item: a `Preparation`, or an object that has it done elsewhere."""


@dataclass(frozen=True)
class Preparation:
    """What is done to an item before it goes to the model. Worker processes need importable functions.

    `load(row)` returns the clip; `transform(clip, row)` a changed one; `fit(clip)` one of the right length;
    `windows(clip)` several. A loader that reads files has a method `pin(row)` that identifies the content (see
    `file_pin`).
    """

    load: Load
    transform: Transform | None = None
    fit: Fit | None = None
    windows: Callable[..., Iterable[Item]] | None = None

    def __call__(self, at: int, row: Row) -> Prepared | Failed:
        """Prepare one item; faults of the item are recorded, faults of the machine are raised."""
        start = time.perf_counter()
        try:
            found = self.load(row)
            pin = self.load.pin(row) if hasattr(self.load, "pin") else ""
            loaded = time.perf_counter()
            whole = found.length if isinstance(found, Loaded) else None
            clip = found.clip if isinstance(found, Loaded) else found
            length = whole or (int(clip.shape[-1]) if isinstance(clip, np.ndarray) and clip.ndim else len(clip))
            clip = clip if self.transform is None else self.transform(clip, row)
            clip = clip if self.fit is None else self.fit(clip)
            parts = [clip] if self.windows is None else list(self.windows(clip))
        except EnvironmentFault:
            raise
        except Exception as error:
            return Failed(at, reason(error))
        return Prepared(at, parts, length, loaded - start, time.perf_counter() - loaded, pin)


def reason(error: BaseException) -> str:
    """Return an error as one line for a record."""
    text = " ".join(str(error).split()) or type(error).__name__
    known = isinstance(error, ValueError | OSError)
    return (text if known else f"{type(error).__name__}: {text}")[:500]
