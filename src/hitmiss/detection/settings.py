"""The settings and the result of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hitmiss.detection.clock import Clock
from hitmiss.detection.contract import Origin
from hitmiss.detection.detect_spec import Pooling
from hitmiss.detection.outputs import Extraction
from hitmiss.detection.score_checks import SAMPLE
from hitmiss.runs.progress import Progress


@dataclass(frozen=True)
class Settings:
    """The caller's settings. Those in `pinned` are part of the run's configuration; the others change no score."""

    extraction: Extraction = field(default_factory=Extraction)
    window: int | None = None
    hop: int | None = None
    pooling: Pooling = "mean"
    pad: bool = False
    pinned: Mapping[str, object] = field(default_factory=dict)
    rate_from: Origin = "the model"
    """How the sample rate is known."""
    are_pictures: bool = False
    number_bytes: int = 1
    """Bytes per value of a picture, in the type that the model takes."""
    batch_seconds: float | None = None
    batch_items: int | None = None
    workers: int = 0
    check: int = SAMPLE


@dataclass(frozen=True)
class Outcome:
    """The result of a run."""

    folder: Path
    n_scored: int
    n_failed: int
    is_complete: bool
    progress: Progress
    clock: Clock
    alarms: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    failures: tuple[tuple[str, str], ...] = ()
