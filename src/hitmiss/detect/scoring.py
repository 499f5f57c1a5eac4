"""Batches through the model and into the run, whatever goes wrong with single clips."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.detect.batching import Budget, Piece, Pool, collate
from hitmiss.detect.clock import Clock
from hitmiss.detect.detector import Base, Detector
from hitmiss.detect.extract import Extraction, OutputKind, pick_output, settled_kind
from hitmiss.detect.feeding import Ahead, Failed, Prepare, feed, reason
from hitmiss.detect.keeping import Keeper, Keeping
from hitmiss.detect.settings import Report, Settings
from hitmiss.errors import DataError, EnvironmentFault, UsageError
from hitmiss.io.manifest import Manifest
from hitmiss.io.runs import Run

HOPELESS: Final = 20
"""So many failures before the first success, and the run stops: it is not the files."""
UNCLEAR: Final = 32
"""So many outputs in 0..1 of a model that does not say what they are, and the run stops to ask."""
AHEAD: Final = 4
"""Batches that are made ready before the model asks for them."""
UNDER_WAY: Final = 3
"""Batches that a detector which works beside us has at once."""
CPU_SECONDS: Final = 8.0
PICTURE_UNITS: Final = 48e6
"""Numbers in a batch of pictures: sixteen million pixels, which is one large photo or some three hundred small ones."""
BATCH_ITEMS: Final = 256


class UnclearOutputs(DataError):
    """What the outputs are must be said; it is nobody's clip that is to blame."""


class Loop:
    """One process's work on a run."""

    def __init__(
        self,
        run: Run,
        detector: Detector,
        manifest: Manifest,
        preparation: Prepare,
        settings: Settings,
        report: Report,
        *,
        keeper: Keeping | None = None,
        gives_up: bool = True,
    ) -> None:
        self.run, self.detector, self.manifest = run, detector, manifest
        self.preparation, self.settings, self.report = preparation, settings, report
        self.clock = Clock(n_total=len(manifest), n_before=run.n_done)
        self.keeper: Keeping | None = (keeper or Keeper(run)) if getattr(detector, "layers", ()) else None
        self.budget = self._budget()
        self._waiting: dict[int, list[Any]] = {}
        self._lengths: dict[int, int] = {}
        self._first_failure: str | None = None
        self._is_first_try = gives_up and bool(run.has_error.sum() == run.n_done)
        self._has_checked_width = False
        self._kind: OutputKind = "auto"
        self._n_unclear = 0
        self._n_loaded = 0
        self._n_unloadable = 0

    def score_all(self) -> None:
        """Score every item that nobody has scored."""
        if not self.run.is_done or self.settings.retry:
            source: Any = self._events()
            ahead = Ahead(source, AHEAD) if self.settings.workers > 0 else None
            try:
                self._consume(iter(ahead if ahead is not None else source))
            finally:
                if ahead is not None:
                    ahead.close()
                if self.keeper is not None:
                    self.keeper.close()
        self.report(self.clock)

    def _consume(self, events: Iterator[Failed | tuple[list[Piece], Any]]) -> None:
        under_way: deque[tuple[list[Piece], Any]] = deque()
        is_async = bool(getattr(self.detector, "is_async", False)) and self.keeper is None
        while True:
            with self.clock.time("wait"):
                event = next(events, None)
            if event is None:
                break
            if isinstance(event, Failed):
                self._fail_to_load(event)
            elif is_async:
                launched = self._launch(*event)
                under_way.extend([launched] if launched is not None else [])
                if len(under_way) >= UNDER_WAY:
                    self._land(*under_way.popleft())
            else:
                self._score(*event)
            self.report(self.clock)
        for launched in under_way:
            self._land(*launched)

    def _launch(self, pieces: list[Piece], batch: Any) -> tuple[list[Piece], Any] | None:
        """Start a batch while the one before is still under way; one that cannot be started is scored in parts."""
        try:
            with self.clock.time("model"):
                return pieces, self.detector.launch(batch)  # type: ignore[attr-defined]
        except (EnvironmentFault, UsageError, UnclearOutputs):
            raise
        except Exception as error:
            self._divide(pieces, error)
            return None

    def _land(self, pieces: list[Piece], launched: Any) -> None:
        """Wait for a batch; what fails only now, as it does where the device works on its own, is scored in parts."""
        try:
            with self.clock.time("model"):
                outputs = self._checked(self.detector.collect(launched), len(pieces))  # type: ignore[attr-defined]
        except (EnvironmentFault, UsageError, UnclearOutputs):
            raise
        except Exception as error:
            self._divide(pieces, error)
            return
        self._write(pieces, outputs, {})

    def _events(self) -> Iterator[Failed | tuple[list[Piece], Any]]:
        """Failures, and batches ready for the model."""
        pool = Pool(self.budget, may_mix=self.settings.pad or bool(getattr(self.detector, "ragged", False)))
        tasks = ((at, self.manifest.row(at)) for at in self.run.todo(self.settings.retry))
        buffer = getattr(self.detector, "buffer", None)
        for item in feed(self.preparation, tasks, self.settings.workers, buffer):
            if isinstance(item, Failed):
                yield item
                continue
            self._n_loaded += 1
            self.clock.decode += item.decode
            self.clock.augment += item.augment
            self._lengths[item.at] = item.length
            for part, clip in enumerate(item.parts):
                yield from map(self.ready, pool.add(Piece(item.at, part, len(item.parts), clip)))
        while batch := pool.take():
            yield self.ready(batch)

    def ready(self, pieces: list[Piece]) -> tuple[list[Piece], Any]:
        """Pieces with the batch that they make, where the model wants it."""
        is_ragged = bool(getattr(self.detector, "ragged", False))
        stages = hasattr(self.detector, "stage") and bool(getattr(self.detector, "is_async", False))
        is_one = is_ragged or self.settings.pad or len({piece.shape for piece in pieces}) == 1
        batch = [p.clip for p in pieces] if stages and is_one else collate(pieces, is_ragged)
        prepare = getattr(self.detector, "prepare", None)
        return pieces, prepare(batch) if prepare is not None else batch

    def _score(self, pieces: list[Piece], batch: Any) -> None:
        """The outputs of a batch; one that is too large or fails is cut in two, down to the clip that is to blame."""
        try:
            with self.clock.time("model"):
                outputs, layers = self._outputs(batch, len(pieces))
        except (EnvironmentFault, UsageError, UnclearOutputs):
            raise
        except Exception as error:
            self._divide(pieces, error)
            return
        self._write(pieces, outputs, layers)

    def _divide(self, pieces: list[Piece], error: Exception) -> None:
        """A batch failed: score its halves. A clip that fails alone is to blame."""
        if len(pieces) == 1:
            self.fail(pieces[0].at, reason(error))
            return
        if _is_memory(self.detector, error):
            self.budget.shrink(len(pieces), max(p.size for p in pieces))
        half = len(pieces) // 2
        for part in (pieces[:half], pieces[half:]):
            self._score(*self.ready(part))

    def _write(self, pieces: list[Piece], outputs: NDArray[Any], layers: dict[str, NDArray[Any]]) -> None:
        with self.clock.time("write"):
            for i, piece in enumerate(pieces):
                self._collect(piece, outputs[i], {name: values[i] for name, values in layers.items()})

    def _outputs(self, batch: Any, n: int) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
        if self.keeper is None:
            return self._checked(self.detector.outputs(batch), n), {}
        raw, layers = self.detector.with_layers(batch)  # type: ignore[attr-defined]
        return self._checked(raw, n), layers

    def _checked(self, raw: Any, n: int) -> NDArray[Any]:
        """Outputs as clip × column; their number of columns is looked at once."""
        outputs = pick_output(raw)
        if outputs.shape[:1] != (n,):
            raise DataError(f"{self.detector.name} gave outputs of shape {outputs.shape} for {n} clips")
        outputs = outputs.reshape(n, -1)
        if not self._has_checked_width:
            self._settle(outputs)
        return outputs

    def _settle(self, outputs: NDArray[Any]) -> None:
        """Which column and what kind, by the first batches: what is unclear is asked before hours are spent."""
        rule = self.extraction(outputs.shape[1])
        if rule.kind == "auto" and np.isfinite(outputs).all():
            self._n_unclear += len(outputs)
            try:
                self._kind = settled_kind(outputs)
            except DataError as error:
                if self._n_unclear < UNCLEAR:  # a few numbers in 0..1 may be chance; the next batch may tell
                    return
                raise UnclearOutputs(str(error), code=error.code) from None
        self._has_checked_width = True

    def _collect(self, piece: Piece, output: NDArray[Any], layers: dict[str, NDArray[Any]]) -> None:
        """Keep a piece's output until its clip is whole, then write the record."""
        parts = self._waiting.setdefault(piece.at, [None] * piece.n_parts)
        parts[piece.part] = (output, layers)
        if any(part is None for part in parts):
            return
        del self._waiting[piece.at]
        found = np.asarray([p[0] for p in parts], dtype=np.float64)
        if not np.isfinite(found).all():
            self.fail(piece.at, f"the detector's output is not finite: {found.ravel()[~np.isfinite(found.ravel())][0]}")
            return
        length, rate = self._lengths.pop(piece.at), self.detector.sample_rate
        record: dict[str, Any] = {"outputs": found.tolist()}
        if rate:
            record["seconds"] = length / rate
        names = parts[0][1]
        self.keep(piece.at, record, {n: np.mean([p[1][n] for p in parts], axis=0) for n in names})

    def keep(self, at: int, record: dict[str, Any], layers: dict[str, NDArray[Any]]) -> None:
        """Write down what an item got, its row of each layer first."""
        if self.keeper is not None:
            record |= self.keeper.add(layers)
        self.run.add(at, record)
        self.clock.count(sound=record.get("seconds", 0.0))

    def _fail_to_load(self, item: Failed) -> None:
        self._n_unloadable += 1
        self.fail(item.at, item.reason)

    def fail(self, at: int, why: str) -> None:
        """Write down that an item failed; many failures and no success stop the run."""
        self._waiting.pop(at, None)
        self._lengths.pop(at, None)
        self._first_failure = self._first_failure or f"{self.run.items[at]}: {why}"
        self.run.add(at, {"error": why})
        self.clock.count(failed=1)
        if not self._is_first_try or self.clock.n_done != self.clock.n_failed:
            return
        # Good clips may wait while broken ones are reported: loading is hopeless only where nothing was loaded.
        most = min(HOPELESS, self.clock.n_total)
        n_by_model = self.clock.n_failed - self._n_unloadable
        if n_by_model >= most or (self._n_unloadable >= most and not self._n_loaded):
            raise DataError(
                f"the first {self.clock.n_failed} items all failed ({self._first_failure}); fix that and run again with "
                f"--resume --retry",
                code="all-failed",
            )

    def _budget(self) -> Budget:
        seconds = self.settings.batch_seconds or float(getattr(self.detector, "batch_seconds", CPU_SECONDS))
        most = getattr(self.detector, "max_batch", None) or BATCH_ITEMS
        items = min(self.settings.batch_items or BATCH_ITEMS, most)
        if self.settings.are_pictures:
            return Budget(PICTURE_UNITS, items)
        return Budget(seconds * (self.detector.sample_rate or 16000), items)

    def extraction(self, width: int) -> Extraction:
        """The rule for scores, with what the model says of itself where the caller says nothing."""
        rule = self.settings.extraction.settled(self.detector, self.manifest.positive, width)
        rule = replace(rule, kind=self._kind) if rule.kind == "auto" else rule
        if rule.positive_index is None and width > 2:
            raise UsageError(
                f"the model has {width} output columns; say which is {self.manifest.positive} (--positive-index)"
            )
        return rule


def _is_memory(detector: Detector, error: BaseException) -> bool:
    ask = getattr(detector, "is_out_of_memory", Base().is_out_of_memory)
    return bool(ask(error))
