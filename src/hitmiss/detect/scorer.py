"""What a process of a cluster does: it opens the detector once, and then scores one part of the run after the other.

It writes no file. What an item came to goes back to the process that owns the run, which alone writes the run store: so
the machines need to share the items and the model, and nothing else.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.detect.clock import Clock
from hitmiss.detect.detector import Detector, as_detector
from hitmiss.detect.extract import Extraction, OutputKind
from hitmiss.detect.feeding import Failed, Prepare, Prepared
from hitmiss.detect.scoring import Loop
from hitmiss.detect.settings import Settings
from hitmiss.errors import EnvironmentFault
from hitmiss.io.manifest import Manifest
from hitmiss.ray_cluster.carrying import Refusal, Sent, accepted, attempted

Array = NDArray[Any]
Ready = Sequence[Prepared | Failed]
Tallying = Callable[[pl.DataFrame, Sequence[Mapping[str, Any]], Extraction], bytes]
"""What makes a tally of the rows of a part, their records and the rule for scores (see `hitmiss.scale.at_once`)."""
LAYERS = "layers"


@dataclass(frozen=True)
class About:
    """What the owner of the run must know of a detector that is open elsewhere."""

    name: str
    sample_rate: int | None
    ragged: bool
    labels: tuple[str, ...] | None
    output_kind: OutputKind
    max_batch: int | None
    layers: tuple[str, ...]
    identity: Mapping[str, Any]
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
    tallying: Tallying | None = None


@dataclass(frozen=True)
class Scored:
    """What came of a part: a record for each of its rows, in their order, where the time went, and its tally."""

    records: list[dict[str, Any]]
    clock: Clock
    tally: bytes = b""


class Sheet:
    """Takes the place of a run where a loop has one part before it: it keeps the records instead of writing them."""

    is_done = False
    n_done = 0

    def __init__(self, items: list[str]) -> None:
        self.items = items
        self.has_error = np.zeros(len(items), dtype=bool)
        self.records: dict[int, dict[str, Any]] = {}

    def todo(self, retry: bool = False) -> Iterator[int]:
        """All of them."""
        del retry
        yield from range(len(self.items))

    def add(self, at: int, record: Mapping[str, Any]) -> None:
        """Keep what came of an item."""
        self.records[at] = dict(record)


class Carrier:
    """Sends rows of layers along with the record."""

    def add(self, layers: Mapping[str, Array]) -> dict[str, Any]:
        """The rows themselves, as float32."""
        return {LAYERS: {name: np.asarray(values, dtype=np.float32) for name, values in layers.items()}}

    def close(self) -> None:
        """Nothing is open."""


class Scorer:
    """The life of a process that scores. Errors that hitmiss raises on purpose are given back, not raised."""

    def __init__(self) -> None:
        self._detector: Detector | None = None
        self._loop: Loop | None = None
        self._tallying: Tallying | None = None

    def open(self, opening: Sent[Callable[[], Any]]) -> About | Refusal:
        """Load the detector."""

        def load() -> About:
            self._detector = as_detector(opening.open()())
            return About.of(self._detector)

        found = attempted(load)
        if isinstance(found, Refusal):
            return replace(found, message=f"on {socket.gethostname()}: {found.message}")
        return found

    def score(self, work: Sent[Work], rows: pl.DataFrame, ready: Ready | Refusal | None = None) -> Scored | Refusal:
        """Score the rows of a part; `ready` are its items, where another process has prepared them."""
        return attempted(lambda: self._score(work, rows, None if ready is None else accepted(ready)))

    def prepare(self, work: Sent[Work], row: Mapping[str, Any]) -> Prepared | Failed | Refusal:
        """One item made ready, for a look at it."""
        return attempted(lambda: self._begun(work).preparation(0, row))

    def outputs(self, work: Sent[Work], batch: Any) -> Array | Refusal:
        """The raw outputs of a batch."""

        def answer() -> Array:
            detector = self._begun(work).detector
            prepare = getattr(detector, "prepare", None)
            return np.asarray(detector.outputs(prepare(batch) if prepare is not None else batch))

        return attempted(answer)

    def _score(self, work: Sent[Work], rows: pl.DataFrame, ready: Ready | None) -> Scored:
        loop, own = self._begun(work), self._begun(work).preparation
        sheet = Sheet(rows["item"].to_list())
        loop.run = cast(Any, sheet)
        loop.manifest = replace(loop.manifest, frame=rows)
        loop.clock = Clock(n_total=len(rows))
        if ready is not None:
            loop.preparation = lambda at, row: _own(ready[at])
        try:
            loop.score_all()
        finally:
            loop.preparation = own
        records = [sheet.records[at] for at in range(len(rows))]
        return Scored(records, loop.clock, self._tally(loop, rows, records))

    def _tally(self, loop: Loop, rows: pl.DataFrame, records: Sequence[Mapping[str, Any]]) -> bytes:
        width = next((len(record["outputs"][0]) for record in records if "outputs" in record), 0)
        return self._tallying(rows, records, loop.extraction(width)) if self._tallying is not None and width else b""

    def _begun(self, sent: Sent[Work]) -> Loop:
        """The loop, which is kept from part to part: it remembers how large a batch may be."""
        if self._loop is None:
            if self._detector is None:
                raise EnvironmentFault("a process was given work before its detector was open")
            work = sent.open()
            self._tallying = work.tallying
            self._detector.sample_rate = work.sample_rate
            nothing = Manifest(pl.DataFrame({"item": []}), work.positive, work.negative)
            given = (cast(Any, Sheet([])), self._detector, nothing, work.preparation, work.settings)
            self._loop = Loop(*given, lambda clock: None, keeper=Carrier(), gives_up=False)
        return self._loop


def make_ready(work: Sent[Work], rows: pl.DataFrame) -> list[Prepared | Failed] | Refusal:
    """The items of a part made ready, by a process that has no model."""

    def prepare() -> list[Prepared | Failed]:
        preparation = work.open().preparation
        return [preparation(at, row) for at, row in enumerate(rows.iter_rows(named=True))]

    return attempted(prepare)


def _own(item: Prepared | Failed) -> Prepared | Failed:
    """Clips that came through shared memory cannot be written to; a detector may want to."""
    if isinstance(item, Failed):
        return item
    return replace(item, parts=[np.array(p) if isinstance(p, np.ndarray) else p for p in item.parts])
