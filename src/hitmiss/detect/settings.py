"""What a caller may choose about a run, and what comes of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hitmiss.detect.checks import SAMPLE
from hitmiss.detect.clock import Clock
from hitmiss.detect.extract import Extraction
from hitmiss.detect.length import Pooling

Report = Callable[[Clock], None]


@dataclass(frozen=True)
class Settings:
    """What the caller may choose. Those of `pinned` stand in the run's configuration; the others change no score."""

    extraction: Extraction = field(default_factory=Extraction)
    window: int | None = None
    hop: int | None = None
    pooling: Pooling = "mean"
    pad: bool = False
    pinned: Mapping[str, Any] = field(default_factory=dict)
    are_pictures: bool = False
    batch_seconds: float | None = None
    batch_items: int | None = None
    workers: int = 0
    resume: bool = False
    join: bool = False
    retry: bool = False
    check: int = SAMPLE


@dataclass(frozen=True)
class Outcome:
    """What came of a run."""

    folder: Path
    n_scored: int
    n_failed: int
    is_complete: bool
    clock: Clock
    alarms: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    failures: tuple[tuple[str, str], ...] = ()
