"""A process of a cluster opens the detector once, and then scores one part of the run after the other.

It writes no file. Results go back to the process that owns the run, which alone writes the run store. The machines
therefore only need access to the items and the model.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, cast

import numpy as np
import polars as pl

from hitmiss.cluster.sending import Refusal, Sent, attempted
from hitmiss.core.errors import EnvironmentFault
from hitmiss.core.finding import Finding, Value
from hitmiss.detection.clock import Clock
from hitmiss.detection.detect_spec import OutputKind
from hitmiss.detection.detector import Base, Batch, Detector, as_detector
from hitmiss.detection.embeddings import Record
from hitmiss.detection.loader_processes import LoaderProcesses
from hitmiss.detection.outputs import Outputs
from hitmiss.detection.preparation import Failed, Prepare, Prepared, Row
from hitmiss.detection.settings import Settings
from hitmiss.detection.worker import BatchWorker
from hitmiss.io.manifest import Manifest

FLOAT32: Final = "float32"


@dataclass(frozen=True)
class DetectorFacts:
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
    def of(cls, detector: Detector) -> DetectorFacts:
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


class Scorer:
    """A process that scores. Errors that hitmiss raises on purpose are returned, not raised."""

    def __init__(self) -> None:
        self._detector: Detector | None = None
        self._exact: Detector | None = None
        self._worker: BatchWorker | None = None

    def open(self, opening: Sent[Callable[[], object]]) -> DetectorFacts | Refusal:
        """Load the detector."""

        def load() -> DetectorFacts:
            self._detector = as_detector(opening.open()())
            return DetectorFacts.of(self._detector)

        found = attempted(load)
        if isinstance(found, Refusal):
            place: dict[str, Value] = {"machine": socket.gethostname(), "found": found.found}
            return replace(found, found=Finding("on-machine", values=place))
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
        worker, began = self._begun(work), time.monotonic()
        worker.manifest = replace(worker.manifest, frame=rows)
        worker.clock = Clock()
        try:
            found = {result.at: result.record for result in worker.work(iter(range(len(rows))))}
        except BaseException:  # processes may still hold tasks of this part
            self._worker = None
            if worker.loaders is not None:
                worker.loaders.close()
            raise
        records = cast("list[Record]", [found[at] for at in range(len(rows))])
        return Scored(records, worker.clock, time.monotonic() - began)

    def _begun(self, sent: Sent[Work]) -> BatchWorker:
        """Return the worker, which is kept from part to part: it remembers the batch size that fits."""
        if self._worker is None:
            if self._detector is None:
                raise EnvironmentFault.of("worker-not-open")
            work = sent.open()
            self._detector.sample_rate = work.sample_rate
            nothing = Manifest(pl.DataFrame({"item": []}), work.positive, work.negative)
            self._worker = BatchWorker(self._detector, nothing, work.preparation, work.settings)
            if work.settings.workers:
                from ray import cloudpickle  # functions of the caller's own script have no module here

                buffer = getattr(self._detector, "buffer", None)
                self._worker.loaders = LoaderProcesses(
                    work.preparation, work.settings.workers, buffer, cloudpickle.dumps
                )
        return self._worker


def _outputs(detector: Detector, batch: Batch) -> Outputs:
    prepare = getattr(detector, "prepare", None)
    return np.asarray(detector.outputs(prepare(batch) if prepare is not None else batch))
