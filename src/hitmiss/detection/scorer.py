"""A process of a cluster opens the detector once, and then scores one part of the run after the other.

It writes no file. Results go back to the process that owns the run, which alone writes the run store. The machines
therefore only need access to the items and the model.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, cast

import numpy as np
import polars as pl

from hitmiss.cluster.sending import Refusal, Sent, attempted
from hitmiss.core.errors import EnvironmentFault
from hitmiss.detection.clock import Clock
from hitmiss.detection.crew import Crew
from hitmiss.detection.detector import Base, Batch, Detector, as_detector
from hitmiss.detection.embeddings import Layers, Record
from hitmiss.detection.outputs import OutputKind, Outputs
from hitmiss.detection.preparation import Failed, Prepare, Prepared, Row
from hitmiss.detection.settings import Settings
from hitmiss.detection.worker import Loop
from hitmiss.io.manifest import Manifest
from hitmiss.runs.store import Run

LAYERS: Final = "layers"
FLOAT32: Final = "float32"


@dataclass(frozen=True)
class About:
    """What the owner of the run must know about a detector that is open in another process."""

    name: str
    sample_rate: int | None
    ragged: bool
    labels: tuple[str, ...] | None
    output_kind: OutputKind
    max_batch: int | None
    layers: tuple[str, ...]
    precision: str
    identity: Mapping[str, object]
    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)

    @classmethod
    def of(cls, detector: Detector) -> About:
        """Ask the detector."""
        return cls(
            detector.name,
            detector.sample_rate,
            bool(getattr(detector, "ragged", False)),
            getattr(detector, "labels", None),
            getattr(detector, "output_kind", "auto"),
            getattr(detector, "max_batch", None),
            tuple(getattr(detector, "layers", ())),
            str(getattr(detector, "precision", FLOAT32)),
            dict(getattr(detector, "identity", {"name": detector.name})),
        )


@dataclass(frozen=True)
class Work:
    """What is the same for every part of a run."""

    preparation: Prepare
    settings: Settings
    sample_rate: int | None
    positive: str
    negative: str


@dataclass(frozen=True)
class Scored:
    """The result of a part: a record for each of its rows, in order, the timings and the duration."""

    records: list[Record]
    clock: Clock
    seconds: float


class Sheet:
    """Replaces the run for a loop over one part: it keeps the records instead of writing them."""

    is_done = False
    n_done = 0

    def __init__(self, items: list[str]) -> None:
        self.items = items
        self.has_error = np.zeros(len(items), dtype=bool)
        self.records: dict[int, Record] = {}

    def todo(self, retry: bool = False) -> Iterator[int]:
        """Yield all positions."""
        del retry
        yield from range(len(self.items))

    def add(self, at: int, record: Record) -> None:
        """Keep the result of an item."""
        self.records[at] = record


class Carrier:
    """Sends rows of layers together with the record."""

    def add(self, layers: Layers) -> Record:
        """Return the rows themselves, as float32."""
        return {LAYERS: {name: np.asarray(values, dtype=np.float32) for name, values in layers.items()}}

    def close(self) -> None:
        """Do nothing: no file is open."""


class Scorer:
    """A process that scores. Errors that hitmiss raises on purpose are returned, not raised."""

    def __init__(self) -> None:
        self._detector: Detector | None = None
        self._exact: Detector | None = None
        self._loop: Loop | None = None

    def open(self, opening: Sent[Callable[[], object]]) -> About | Refusal:
        """Load the detector."""

        def load() -> About:
            self._detector = as_detector(opening.open()())
            return About.of(self._detector)

        found = attempted(load)
        if isinstance(found, Refusal):
            return replace(found, message=f"on {socket.gethostname()}: {found.message}")
        return found

    def score(self, work: Sent[Work], rows: pl.DataFrame) -> Scored | Refusal:
        """Score the rows of a part."""
        return attempted(lambda: self._score(work, rows))

    def prepare(self, work: Sent[Work], row: Row) -> Prepared | Failed | Refusal:
        """Prepare one item, for inspection."""
        return attempted(lambda: self._begun(work).preparation(0, row))

    def outputs(self, work: Sent[Work], batch: Batch) -> Outputs | Refusal:
        """Return the raw outputs of a batch."""

        return attempted(lambda: _outputs(self._begun(work).detector, batch))

    def outputs_in_float32(self, work: Sent[Work], batch: Batch) -> Outputs | Refusal:
        """Return the raw outputs of a batch in float32, if the detector uses a lower precision."""

        def answer() -> Outputs:
            detector = self._begun(work).detector
            if self._exact is None:
                self._exact = cast(Base, detector).in_float32()
            return _outputs(self._exact or detector, batch)

        return attempted(answer)

    def _score(self, work: Sent[Work], rows: pl.DataFrame) -> Scored:
        loop, began = self._begun(work), time.monotonic()
        sheet = Sheet(rows["item"].to_list())
        loop.run = cast(Run, sheet)
        loop.manifest = replace(loop.manifest, frame=rows)
        loop.clock = Clock(n_total=len(rows))
        try:
            loop.score_all()
        except BaseException:  # workers may still hold tasks of this part
            self._loop = None
            if loop.crew is not None:
                loop.crew.close()
            raise
        records = [sheet.records[at] for at in range(len(rows))]
        return Scored(records, loop.clock, time.monotonic() - began)

    def _begun(self, sent: Sent[Work]) -> Loop:
        """Return the loop, which is kept from part to part: it remembers the batch size that fits."""
        if self._loop is None:
            if self._detector is None:
                raise EnvironmentFault("a process was given work before its detector was open")
            work = sent.open()
            self._detector.sample_rate = work.sample_rate
            nothing = Manifest(pl.DataFrame({"item": []}), work.positive, work.negative)
            given = (cast(Run, Sheet([])), self._detector, nothing, work.preparation, work.settings)
            self._loop = Loop(*given, lambda clock: None, keeper=Carrier(), gives_up=False)
            if work.settings.workers:
                from ray import cloudpickle  # functions of the caller's own script have no module here

                buffer = getattr(self._detector, "buffer", None)
                self._loop.crew = Crew(work.preparation, work.settings.workers, buffer, cloudpickle.dumps)
        return self._loop


def _outputs(detector: Detector, batch: Batch) -> Outputs:
    prepare = getattr(detector, "prepare", None)
    return np.asarray(detector.outputs(prepare(batch) if prepare is not None else batch))
