"""Send batches through the model, despite failures of single clips."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar, cast

import numpy as np

from hitmiss.core.errors import DataError, EnvironmentFault, UsageError, message_of
from hitmiss.detection.batches import Budget, Piece, Pool, collate
from hitmiss.detection.clock import Clock
from hitmiss.detection.contract import Contract, Origin, Probe, detector_contract, probe
from hitmiss.detection.detect_spec import OutputKind
from hitmiss.detection.detector import Base, Batch, Detector
from hitmiss.detection.embeddings import Layers, Record
from hitmiss.detection.loader import ReadsFiles, is_pinned
from hitmiss.detection.loader_processes import LoaderProcesses, feed
from hitmiss.detection.outputs import Extraction, Outputs, pick_output, settled_kind
from hitmiss.detection.prefetch import Prefetch
from hitmiss.detection.preparation import Failed, Prepare, reason
from hitmiss.detection.settings import Settings
from hitmiss.io.manifest import Manifest
from hitmiss.runs.worker import Result, Results

T = TypeVar("T")
UNCLEAR: Final = 32
"""The run stops and asks after this many outputs in 0..1 from a model that does not declare their kind."""
AHEAD: Final = 4
"""Batches that are prepared before the model needs them."""
UNDER_WAY: Final = 3
"""Batches that an asynchronous detector has at once."""
CPU_SECONDS: Final = 8.0
PICTURE_UNITS: Final = 48e6
"""Bytes in a batch of pictures: sixteen million pixels, which is one large photo or about three hundred small ones."""
BATCH_ITEMS: Final = 256


class UnclearOutputs(DataError):
    """The kind of outputs must be declared; no single clip is the cause of this error."""


class BatchWorker:
    """The work of a detector in this process: items are loaded, batched, sent through the model, and yielded."""

    kind = "detect"
    grows: Collection[str] = ()

    def __init__(self, detector: Detector, manifest: Manifest, preparation: Prepare, settings: Settings) -> None:
        self.detector, self.manifest = detector, manifest
        self.preparation, self.settings = preparation, settings
        self._load = getattr(preparation, "load", None)
        self.clock = Clock()
        self.budget = self._budget()
        self.loaders: LoaderProcesses | None = None
        """Processes that load items and outlive `work`; without it, each call has its own."""
        self._has_layers = bool(getattr(detector, "layers", ()))
        self._ready: deque[Result] = deque()
        self._waiting: dict[int, list[tuple[Outputs, Layers] | None]] = {}
        self._lengths: dict[int, int] = {}
        self._pins: dict[int, str] = {}
        self._has_checked_width = False
        self._kind: OutputKind = "auto"
        self.probe: Probe | None = None
        """How the model answered the first item again, and in a batch."""
        self.contract: Contract | None = None
        """What the model is taken for; None before the first outputs."""
        self.tell: Callable[[str], None] = lambda line: None
        self._n_unclear = 0
        self._n_loaded = 0

    @property
    def items(self) -> Sequence[str]:
        """The names of the items."""
        return self.manifest.items

    @property
    def config(self) -> dict[str, object]:
        """Everything that could change a score: what a resumed run must agree on."""
        return {
            "detector": dict(getattr(self.detector, "identity", {"name": self.detector.name})),
            "manifest": self.manifest.digest,
            "window": self.settings.window,
            "hop": self.settings.hop,
            "pad": self.settings.pad,
            **dict(self.settings.pinned),
        }

    def changed_inputs(self, records: Iterator[tuple[int, dict[str, object]]]) -> list[str]:
        """Return the files that are not what they were when they were scored."""
        load = self._load
        if not isinstance(load, ReadsFiles):
            return []
        rows = ((self.manifest.row(at), record["file"]) for at, record in records if "file" in record)
        return [row["file"] for row, pin in rows if not is_pinned(load.path(row), str(pin))]

    def details(self) -> str:
        """Return where the time goes."""
        return f" ({', '.join(f'{name} {share:.0%}' for name, share in self.clock.shares().items())})"

    def work(self, todo: Iterator[int]) -> Results:
        """Score items; a batch that fails is divided, down to the clip that causes it."""
        source = self._events(todo)
        prefetched = Prefetch(source, AHEAD) if self.settings.workers > 0 else None
        try:
            for _ in self._scored(iter(prefetched if prefetched is not None else source)):
                while self._ready:
                    result = self._ready.popleft()
                    with self.clock.time("write"):  # the loop writes it before it asks for the next
                        yield result
        finally:
            if prefetched is not None:
                prefetched.close()

    def leftovers(self) -> list[Result]:
        """Return the results of the last batch that were not yielded yet."""
        left = list(self._ready)
        self._ready.clear()
        return left

    def _scored(self, events: Iterator[Failed | tuple[list[Piece], Batch]]) -> Iterator[None]:
        """Take events one by one; what is ready after each is in `_ready`."""
        under_way: deque[tuple[list[Piece], object]] = deque()
        is_async = bool(getattr(self.detector, "is_async", False)) and not self._has_layers
        while True:
            with self.clock.time("wait"):
                event = next(events, None)
            if event is None:
                break
            if not isinstance(event, Failed) and self.probe is None and self.settings.check:
                self._look_first(event[0])
            if isinstance(event, Failed):
                # good clips may be waiting while broken ones are reported: loading has failed only if nothing loads
                self._fail(event.at, event.reason, is_decisive=not self._n_loaded)
            elif is_async:
                launched = self._launch(*event)
                under_way.extend([launched] if launched is not None else [])
                if len(under_way) >= UNDER_WAY:
                    self._land(*under_way.popleft())
            else:
                self._score(*event)
            yield
        for launched in under_way:
            self._land(*launched)
        yield

    def _look_first(self, pieces: list[Piece]) -> None:
        """Score the first item twice, and in a batch; a model whose answers depend on the batch is refused.

        Padding is checked at the end of the run, where its effect on many items is measured.
        """

        def score(chosen: Sequence[int]) -> Outputs:
            outputs = pick_output(self.detector.outputs(self.ready([pieces[at] for at in chosen])[1]))
            return outputs.reshape(len(chosen), -1) if outputs.size % len(chosen) == 0 else outputs

        most = 1 if self.settings.pad else self.budget.items
        names = [self.items[piece.at] for piece in pieces]
        try:
            with self.clock.time("model"):
                precision = str(getattr(self.detector, "precision", "float32"))
                self.probe = probe(score, names, batch=most, precision=precision)
        except (EnvironmentFault, UsageError, UnclearOutputs):
            raise
        except Exception:  # the same happens to the batch itself, and is recorded there
            return
        self.probe.refuse_batch(self.detector.name, "score one item at a time (--batch-items 1)")

    def _launch(self, pieces: list[Piece], batch: Batch) -> tuple[list[Piece], object] | None:
        """Start a batch while the previous one is still running; one that cannot be started is scored in parts."""
        launched = self._tried(pieces, lambda: (self.detector.launch(batch),))  # type: ignore[attr-defined]
        return None if launched is None else (pieces, launched[0])

    def _land(self, pieces: list[Piece], launched: object) -> None:
        """Wait for a batch; it may fail only now, as happens on an asynchronous device."""
        self._write(
            pieces,
            lambda: (self._checked(self.detector.collect(launched), len(pieces)), {}),  # type: ignore[attr-defined]
        )

    def _tried(self, pieces: list[Piece], call: Callable[[], T]) -> T | None:
        """Return what the model answers; a batch that fails is scored in parts, down to the clip that causes it."""
        try:
            with self.clock.time("model"):
                return call()
        except (EnvironmentFault, UsageError, UnclearOutputs):
            raise
        except Exception as error:
            self._divide(pieces, error)
            return None

    def _events(self, todo: Iterator[int]) -> Iterator[Failed | tuple[list[Piece], Batch]]:
        """Yield failures, and batches ready for the model."""
        pool = Pool(self.budget, may_mix=self.settings.pad or bool(getattr(self.detector, "ragged", False)))
        tasks = ((at, self.manifest.row(at)) for at in todo)
        buffer = getattr(self.detector, "buffer", None)
        source = (
            self.loaders.work(tasks) if self.loaders else feed(self.preparation, tasks, self.settings.workers, buffer)
        )
        for item in source:
            if isinstance(item, Failed):
                yield item
                continue
            self._n_loaded += 1
            self.clock.decode += item.decode
            self.clock.augment += item.augment
            self._lengths[item.at] = item.length
            if item.pin:
                self._pins[item.at] = item.pin
            for part, clip in enumerate(item.parts):
                yield from map(self.ready, pool.add(Piece(item.at, part, len(item.parts), clip)))
        while batch := pool.take():
            yield self.ready(batch)

    def ready(self, pieces: list[Piece]) -> tuple[list[Piece], Batch]:
        """Return pieces with their batch, moved to where the model needs it."""
        is_ragged = bool(getattr(self.detector, "ragged", False))
        stages = hasattr(self.detector, "stage") and bool(getattr(self.detector, "is_async", False))
        is_one = is_ragged or self.settings.pad or len({piece.shape for piece in pieces}) == 1
        batch = [p.clip for p in pieces] if stages and is_one else collate(pieces, is_ragged)
        prepare = getattr(self.detector, "prepare", None)
        return pieces, prepare(batch) if prepare is not None else batch

    def _score(self, pieces: list[Piece], batch: Batch) -> None:
        """Compute the outputs of a batch."""
        self._write(pieces, lambda: self._outputs(batch, len(pieces)))

    def _divide(self, pieces: list[Piece], error: Exception) -> None:
        """Score the halves of a failed batch. A clip that fails alone is recorded as failed."""
        if len(pieces) == 1:
            self._fail(pieces[0].at, reason(error))
            return
        if _is_memory(self.detector, error):
            self.budget.shrink(len(pieces), max(p.size for p in pieces))
        half = len(pieces) // 2
        for part in (pieces[:half], pieces[half:]):
            self._score(*self.ready(part))

    def _write(self, pieces: list[Piece], answer: Callable[[], tuple[Outputs, Layers]]) -> None:
        """Collect the outputs of a batch, clip by clip."""
        found = self._tried(pieces, answer)
        if found is not None:
            for i, piece in enumerate(pieces):
                self._collect(piece, found[0][i], {name: values[i] for name, values in found[1].items()})

    def _outputs(self, batch: Batch, n: int) -> tuple[Outputs, Layers]:
        if not self._has_layers:
            return self._checked(self.detector.outputs(batch), n), {}
        raw, layers = self.detector.with_layers(batch)  # type: ignore[attr-defined]
        return self._checked(raw, n), layers

    def _checked(self, raw: object, n: int) -> Outputs:
        """Return outputs as clip × column; the number of columns is checked once."""
        outputs = pick_output(raw)
        if outputs.shape[:1] != (n,):
            raise DataError.of("output-shape", name=self.detector.name, shape=str(outputs.shape), n=n, what="clips")
        outputs = outputs.reshape(n, -1)
        if not self._has_checked_width:
            self._settle(outputs)
        return outputs

    def _settle(self, outputs: Outputs) -> None:
        """Decide the column and the kind of outputs from the first batches, so that ambiguity is reported early."""
        rule = self.extraction(outputs.shape[1])
        is_traced = rule.kind == "logit" and self._kind_from() == "its last step"
        if (rule.kind == "auto" or is_traced) and np.isfinite(outputs).all():
            self._n_unclear += len(outputs)
            try:
                self._kind = settled_kind(outputs, rule.kind)
            except DataError as error:
                if self._n_unclear < UNCLEAR:  # a few numbers in 0..1 may be chance; the next batch may decide
                    return
                raise UnclearOutputs(message_of(error), code=error.code) from None
        self._has_checked_width = True
        self.announce(outputs)

    def _kind_from(self) -> Origin:
        """Return how the kind of outputs is known."""
        if self.settings.extraction.kind != "auto":
            return "declared"
        own = getattr(self.detector, "output_kind", "auto")
        origin: Origin = getattr(self.detector, "kind_from", "the model")
        is_own = own != "auto" and self._kind in ("auto", own)
        return origin if is_own else "its values"

    def announce(self, outputs: Outputs, rule: Extraction | None = None) -> None:
        """Say once what the model is taken for, by some of its outputs."""
        if self.contract is not None:
            return
        given, labels = self.settings.extraction, getattr(self.detector, "labels", None)
        has_sides = getattr(self.detector, "sides", None) is not None
        rate = (self.detector.sample_rate, self.settings.rate_from) if self.settings.rate_from else (None, "")
        self.contract = detector_contract(
            rule or self.extraction(outputs.shape[1]),
            self._kind_from(),
            np.asarray(outputs, dtype=np.float64),
            (self.manifest.positive, self.manifest.negative),
            labels,
            (given.positive_index is not None, given.says_higher or has_sides),
            rate,  # type: ignore[arg-type]
            self.probe,
        )
        self.tell(str(self.contract))

    def _collect(self, piece: Piece, output: Outputs, layers: Layers) -> None:
        """Keep a piece's output until its clip is complete; then its result is ready."""
        parts = self._waiting.setdefault(piece.at, [None] * piece.n_parts)
        parts[piece.part] = (output, layers)
        whole = [part for part in parts if part is not None]
        if len(whole) < piece.n_parts:
            return
        del self._waiting[piece.at]
        found = np.asarray([p[0] for p in whole], dtype=np.float64)
        if not np.isfinite(found).all():
            self._fail(
                piece.at, f"the detector's output is not finite: {found.ravel()[~np.isfinite(found.ravel())][0]}"
            )
            return
        length, rate = self._lengths.pop(piece.at), self.detector.sample_rate
        record: Record = {"outputs": found.tolist()}
        if rate:
            record["seconds"] = length / rate
        if piece.at in self._pins:
            record["file"] = self._pins.pop(piece.at)
        if whole[0][1]:
            rows = {name: np.mean([part[1][name] for part in whole], axis=0) for name in whole[0][1]}
            record["layers"] = {name: np.asarray(values, dtype=np.float32) for name, values in rows.items()}
        self._ready.append(Result(piece.at, cast("Mapping[str, object]", record)))

    def _fail(self, at: int, why: str, *, is_decisive: bool = True) -> None:
        """Note that an item failed."""
        self._waiting.pop(at, None)
        self._lengths.pop(at, None)
        self._pins.pop(at, None)
        self._ready.append(Result(at, {"error": why}, is_decisive=is_decisive))

    def _budget(self) -> Budget:
        seconds = self.settings.batch_seconds or float(getattr(self.detector, "batch_seconds", CPU_SECONDS))
        most = getattr(self.detector, "max_batch", None) or BATCH_ITEMS
        items = min(self.settings.batch_items or BATCH_ITEMS, most)
        if self.settings.are_pictures:
            return Budget(PICTURE_UNITS / self.settings.number_bytes, items)
        return Budget(seconds * (self.detector.sample_rate or 16000), items)

    def extraction(self, width: int) -> Extraction:
        """Return the rule for scores, completed with the model's own information if the caller gives none."""
        rule = self.settings.extraction.settled(self.detector, self.manifest.positive, width)
        if self.settings.extraction.kind == "auto" and self._kind != "auto":  # its values have decided
            rule = replace(rule, kind=self._kind)
        if rule.positive_index is None and width > 2:
            raise UsageError.of("which-column", n=width, positive=self.manifest.positive)
        return rule


def _is_memory(detector: Detector, error: BaseException) -> bool:
    ask = getattr(detector, "is_out_of_memory", Base().is_out_of_memory)
    return bool(ask(error))
