"""Send batches through the model and into the run, despite failures of single clips; measure where the time goes."""

from __future__ import annotations

import io
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Protocol, TypedDict

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.errors import DataError, EnvironmentFault, UsageError
from hitmiss.core.results import REVERSED, Remark
from hitmiss.core.results import SATURATED as SATURATED_SCORES
from hitmiss.core.tally import Tally
from hitmiss.detection.contract import Contract, Origin, Probe, detector_contract, probe
from hitmiss.detection.detector import Base, Batch, Detector
from hitmiss.detection.loader import Ahead, Budget, Crew, Failed, Piece, Pool, Pooling, Prepare, collate, feed, reason
from hitmiss.detection.outputs import Extraction, OutputKind, Outputs, pick_output, settled_kind
from hitmiss.engine.interval import area_interval
from hitmiss.io.manifest import Manifest
from hitmiss.io.runs import Run, replace_file, write_whole
from hitmiss.stats.forms.sums import PairShare

# ----------------------------------------------------------------------
# Where the time of a run goes: decode, augment, model, write, and waiting for data.


@dataclass
class Clock:
    """Seconds per activity, and the progress of the run.

    `decode` and `augment` are spent in the workers, in parallel; `model`, `write` and `wait` one after the other.

    >>> clock = Clock(n_total=4)
    >>> clock.count(done=2, sound=6.0)
    >>> clock.n_done, clock.shares()["model"]
    (2, 0.0)
    """

    n_total: int = 0
    n_done: int = 0
    n_failed: int = 0
    n_before: int = 0
    sound: float = 0.0
    decode: float = 0.0
    augment: float = 0.0
    model: float = 0.0
    write: float = 0.0
    wait: float = 0.0
    began: float = field(default_factory=time.monotonic)

    @contextmanager
    def time(self, activity: str) -> Iterator[None]:
        """Add the time of the block to an activity."""
        start = time.perf_counter()
        try:
            yield
        finally:
            setattr(self, activity, getattr(self, activity) + time.perf_counter() - start)

    def count(self, done: int = 1, sound: float = 0.0, failed: int = 0) -> None:
        """Count items done."""
        self.n_done += done
        self.n_failed += failed
        self.sound += sound

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.began

    @property
    def rate(self) -> float:
        """Items per second in this process."""
        return self.n_done / self.elapsed if self.elapsed else 0.0

    @property
    def left(self) -> float | None:
        """Seconds to the end at this rate; None before there is a rate."""
        remaining = self.n_total - self.n_before - self.n_done
        return remaining / self.rate if self.rate else None

    def shares(self) -> dict[str, float]:
        """Return each activity as a share of all the work in all processes; `wait` as a share of the wall time."""
        work = {name: getattr(self, name) for name in ("decode", "augment", "model", "write")}
        total = sum(work.values())
        shares = {name: seconds / total if total else 0.0 for name, seconds in work.items()}
        return {**shares, "wait": self.wait / self.elapsed if self.elapsed else 0.0}

    def waited(self) -> str:
        """Say what the run waited for, in order, and what would help.

        >>> clock = Clock(n_total=2, wait=9.0, model=1.0)
        >>> clock.waited().split(":")[0]
        'waited for'
        """
        parts = {"data": self.wait, "the model": self.model, "the disk": self.write}
        total = sum(parts.values()) or 1.0
        said = ", ".join(f"{name} {seconds / total:.0%}" for name, seconds in parts.items())
        most = max(parts, key=lambda name: parts[name])
        return f"waited for: {said}" + (
            "; more --workers may help" if most == "data" and parts[most] > total / 2 else ""
        )

    def line(self) -> str:
        """Return one line for people: progress, remaining time, speed, and where the time goes."""
        left = f", {_span(self.left)} left" if self.left else ""
        shares = ", ".join(f"{name} {share:.0%}" for name, share in self.shares().items())
        failed = f", {self.n_failed:,} failed" if self.n_failed else ""
        done = self.n_before + self.n_done
        return f"{done:,} of {self.n_total:,}{left}{failed}, {self.rate:,.1f}/s ({shares})"


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


# ----------------------------------------------------------------------
# Checks after a run: scores that depend on the batch, or are constant, saturated, missing or reversed.

Floats = NDArray[np.float64]
TOLERANCE: Final = 1e-3
"""A change of log-odds with the batch that causes a warning; rounding alone gives about a hundredth of it."""
SATURATED: Final = 0.01
SAMPLE: Final = 8


@dataclass(frozen=True)
class Invariance:
    """How much scores change when a clip is scored alone."""

    n: int
    largest: float
    item: str
    is_random: bool = False
    """Whether the model answers one item differently each time, so that the batch is not the cause."""

    @property
    def holds(self) -> bool:
        """Whether the change is only rounding."""
        return self.largest <= TOLERANCE

    def __str__(self) -> str:
        why = "because the model is randomised" if self.is_random else "so a score depends on what else is in the batch"
        end = "" if self.holds else f", {why} (most for {self.item!r})"
        return f"{self.n} clips scored again one by one: log-odds change by at most {self.largest:.2g}{end}"


def rescored(
    items: Sequence[str], scores: Floats, score_alone: Callable[[int], float], n: int = SAMPLE
) -> Invariance | None:
    """Score `n` of the items again, one by one, spread over the whole list.

    >>> print(rescored(["a", "b"], np.array([1.0, 2.0]), lambda i: [1.0, 2.5][i]))
    2 clips scored again one by one: log-odds change by at most 0.5, so a score depends on what else is in the batch (most for 'b')
    """
    if not len(items) or n <= 0:
        return None
    places = np.unique(np.linspace(0, len(items) - 1, min(n, len(items))).astype(int)).tolist()
    changes = [(_change(float(scores[i]), score_alone(i)), items[i]) for i in places]
    largest, item = max(changes)
    return Invariance(len(changes), largest, item)


def _change(before: float, alone: float) -> float:
    return 0.0 if before == alone else abs(before - alone)


def alarms(
    scores: Floats, label: NDArray[np.integer] | None, positive: str, negative: str, n_failed: int = 0
) -> list[str]:
    """Return warnings about the scores of a run; empty if there are none. `label` (1, 0) may be None.

    >>> alarms(np.zeros(5), None, "real", "fake")
    ['all 5 scores are 0: the scores carry no information']
    """
    found = [f"{n_failed:,} item{'s' * (n_failed > 1)} without a score; failures.tsv says why"] if n_failed else []
    if not len(scores):
        return [*found, "no item has a score"]
    if len(scores) > 1 and (scores == scores[0]).all():
        return [*found, f"all {len(scores):,} scores are {scores[0]:g}: the scores carry no information"]
    found += _decisions(scores) or _saturated(scores)
    if label is not None:
        found += _reversed(scores, np.asarray(label) == 1, positive, negative)
    return found


def _decisions(scores: Floats) -> list[str]:
    """Describe outputs that are decisions: two values, or the two ends of the scale."""
    values = np.unique(scores)
    if len(values) != 2 or len(scores) < 3:
        return []
    low, high = ("0 and 1" if np.isinf(values).all() else f"{values[0]:g} and {values[1]:g}").split(" and ")
    return [
        f"the outputs are hard decisions: only {low} and {high} occur. Rates at the one threshold between them are sound; "
        f"EER, AUC and curves have a single point, and there is no calibration; have the model give probabilities or logits"
    ]


def _saturated(scores: Floats) -> list[str]:
    at_ends = (scores == scores.max()) | (scores == scores.min())
    ends, between = float(at_ends.mean()), scores[~at_ends]
    # a detector with few distinct scores has ties everywhere
    is_continuous = len(np.unique(between)) > len(between) / 2
    if ends <= max(SATURATED, 2.5 / len(scores)) or not is_continuous:
        return []
    return [
        Remark(
            f"{ends:.1%} of the scores are tied at the ends ({scores.min():g} and {scores.max():g}): the outputs "
            "saturate, so their order is lost; have the model give logits",
            SATURATED_SCORES,
        )
    ]


def _reversed(scores: Floats, is_positive: NDArray[np.bool_], positive: str, negative: str) -> list[str]:
    if not 1 < is_positive.sum() < len(scores) - 1:
        return []
    tally = Tally.of(is_positive, scores)
    low, high = area_interval(tally)
    if not high < 0.5:
        return []
    return [
        Remark(
            f"the scores look REVERSED: ROC AUC is {PairShare().value(tally):.4f} [{low:.4f}, {high:.4f}], so higher scores go "
            f"with {negative}; nothing was flipped. Say which output means {positive} (--positive-index, or --higher {negative})",
            REVERSED,
        )
    ]


# ----------------------------------------------------------------------
# The settings and the result of a run.

Report = Callable[[Clock], None]


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
    resume: bool = False
    join: bool = False
    retry: bool = False
    check: int = SAMPLE


@dataclass(frozen=True)
class Outcome:
    """The result of a run."""

    folder: Path
    n_scored: int
    n_failed: int
    is_complete: bool
    clock: Clock
    alarms: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    failures: tuple[tuple[str, str], ...] = ()


# ----------------------------------------------------------------------
# Embeddings of a run: rows of each layer are appended to files beside the segments, and combined into one file at the
# end.

Layers = Mapping[str, Outputs]
FOLDER: Final = "embeddings"
GATHERED: Final = "embeddings.npz"


class Record(TypedDict, total=False):
    """What the run store holds about an item: why it failed, or its outputs (one row per window) and where its rows are."""

    error: str
    outputs: list[list[float]]
    seconds: float
    file: str
    """The pin of its file."""
    row: int
    """Its row of each layer, in files of the segment `rows_in` with the dimensions `widths`."""
    rows_in: str
    widths: dict[str, int]
    layers: Layers
    """The rows themselves, on their way from a process of a cluster."""


class Keeping(Protocol):
    """Takes rows of layers."""

    def add(self, layers: Layers) -> Record:
        """Take one item's row of each layer; return what its record must hold to find them again."""

    def close(self) -> None:
        """Finish: no more rows will come."""


class Keeper:
    """Appends the rows of each layer, as float32.

    A row is written before the record that refers to it, so that no record refers to a missing row.
    """

    def __init__(self, run: Run) -> None:
        self._folder = run.folder / FOLDER
        self._segment = run.segment
        self._files: dict[str, int] = {}
        self._rows = 0
        self._widths: dict[str, int] = {}

    def add(self, layers: Layers) -> Record:
        """Write one item's row of each layer; return what its record must hold to find them again."""
        for name, values in layers.items():
            row = np.ascontiguousarray(values, dtype=np.float32).reshape(-1)
            if self._widths.setdefault(name, len(row)) != len(row):
                raise DataError(f"layer {name!r} had {self._widths[name]} dimensions and now has {len(row)}")
            write_whole(self._file(name), row.tobytes(), self._rows * row.nbytes)
        self._rows += 1
        return {"row": self._rows - 1, "rows_in": self._segment, "widths": dict(self._widths)}

    def close(self) -> None:
        """Sync and close."""
        for fd in self._files.values():
            os.fsync(fd)
            os.close(fd)
        self._files = {}

    def _file(self, layer: str) -> int:
        if layer not in self._files:
            self._folder.mkdir(exist_ok=True)
            path = self._folder / f"{self._segment}.{len(self._files):03d}.f32"
            self._files[layer] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
        return self._files[layer]


def gather(folder: Path, found: Mapping[int, Record], columns: Mapping[str, list[str]]) -> str:
    """Write one `.npz` with each layer as item × dimension, in order of position, and text columns about the items.

    `found` maps positions to what `Keeper.add` returned; `hitmiss probe` reads the file.
    """
    order = sorted(found)
    layers = list(found[order[0]]["widths"].items())
    arrays: dict[str, NDArray[np.generic]] = {
        name: np.array([v or "" for v in values]) for name, values in columns.items()
    }
    for number, (name, width) in enumerate(layers):
        out = np.empty((len(order), width), dtype=np.float32)
        for segment in sorted({found[at]["rows_in"] for at in order}):
            stored = np.fromfile(folder / FOLDER / f"{segment}.{number:03d}.f32", dtype=np.float32)
            mine = [(i, found[at]["row"]) for i, at in enumerate(order) if found[at]["rows_in"] == segment]
            to, source = map(list, zip(*mine, strict=True))
            out[to] = stored[: len(stored) // width * width].reshape(-1, width)[source]
        arrays[name] = out
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    replace_file(folder / GATHERED, buffer.getvalue())
    return GATHERED


# ----------------------------------------------------------------------
# Send batches through the model and into the run, despite failures of single clips.

HOPELESS: Final = 20
"""The run stops after this many failures before the first success: single files are not the cause."""
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
        self.crew: Crew | None = None
        """Workers that outlive `score_all`; without it, each call has its own."""
        self._waiting: dict[int, list[tuple[Outputs, Layers] | None]] = {}
        self._lengths: dict[int, int] = {}
        self._pins: dict[int, str] = {}
        self._first_failure: str | None = None
        self._is_first_try = gives_up and bool(run.has_error.sum() == run.n_done)
        self._has_checked_width = False
        self._kind: OutputKind = "auto"
        self.probe: Probe | None = None
        """How the model answered the first item again, and in a batch."""
        self.contract: Contract | None = None
        """What the model is taken for; None before the first outputs."""
        self.tell: Callable[[str], None] = lambda line: None
        self._n_unclear = 0
        self._n_loaded = 0
        self._n_unloadable = 0

    def score_all(self) -> None:
        """Score every item that is not scored yet."""
        if not self.run.is_done or self.settings.retry:
            source = self._events()
            ahead = Ahead(source, AHEAD) if self.settings.workers > 0 else None
            try:
                self._consume(iter(ahead if ahead is not None else source))
            finally:
                if ahead is not None:
                    ahead.close()
                if self.keeper is not None:
                    self.keeper.close()
        self.report(self.clock)

    def _consume(self, events: Iterator[Failed | tuple[list[Piece], Batch]]) -> None:
        under_way: deque[tuple[list[Piece], object]] = deque()
        is_async = bool(getattr(self.detector, "is_async", False)) and self.keeper is None
        while True:
            with self.clock.time("wait"):
                event = next(events, None)
            if event is None:
                break
            if not isinstance(event, Failed) and self.probe is None and self.settings.check:
                self._look_first(event[0])
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

    def _look_first(self, pieces: list[Piece]) -> None:
        """Score the first item twice, and in a batch; a model whose answers depend on the batch is refused.

        Padding is checked at the end of the run, where its effect on many items is measured.
        """

        def score(chosen: Sequence[int]) -> Outputs:
            outputs = pick_output(self.detector.outputs(self.ready([pieces[at] for at in chosen])[1]))
            return outputs.reshape(len(chosen), -1) if outputs.size % len(chosen) == 0 else outputs

        most = 1 if self.settings.pad else self.budget.items
        names = [self.run.items[piece.at] for piece in pieces]
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
        try:
            with self.clock.time("model"):
                return pieces, self.detector.launch(batch)  # type: ignore[attr-defined]
        except (EnvironmentFault, UsageError, UnclearOutputs):
            raise
        except Exception as error:
            self._divide(pieces, error)
            return None

    def _land(self, pieces: list[Piece], launched: object) -> None:
        """Wait for a batch; if it fails only now, as happens on an asynchronous device, score it in parts."""
        try:
            with self.clock.time("model"):
                outputs = self._checked(self.detector.collect(launched), len(pieces))  # type: ignore[attr-defined]
        except (EnvironmentFault, UsageError, UnclearOutputs):
            raise
        except Exception as error:
            self._divide(pieces, error)
            return
        self._write(pieces, outputs, {})

    def _events(self) -> Iterator[Failed | tuple[list[Piece], Batch]]:
        """Yield failures, and batches ready for the model."""
        pool = Pool(self.budget, may_mix=self.settings.pad or bool(getattr(self.detector, "ragged", False)))
        tasks = ((at, self.manifest.row(at)) for at in self.run.todo(self.settings.retry))
        buffer = getattr(self.detector, "buffer", None)
        source = self.crew.work(tasks) if self.crew else feed(self.preparation, tasks, self.settings.workers, buffer)
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
        """Compute the outputs of a batch; split one that is too large or fails, down to the clip that causes it."""
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
        """Score the halves of a failed batch. A clip that fails alone is recorded as failed."""
        if len(pieces) == 1:
            self.fail(pieces[0].at, reason(error))
            return
        if _is_memory(self.detector, error):
            self.budget.shrink(len(pieces), max(p.size for p in pieces))
        half = len(pieces) // 2
        for part in (pieces[:half], pieces[half:]):
            self._score(*self.ready(part))

    def _write(self, pieces: list[Piece], outputs: Outputs, layers: Layers) -> None:
        with self.clock.time("write"):
            for i, piece in enumerate(pieces):
                self._collect(piece, outputs[i], {name: values[i] for name, values in layers.items()})

    def _outputs(self, batch: Batch, n: int) -> tuple[Outputs, Layers]:
        if self.keeper is None:
            return self._checked(self.detector.outputs(batch), n), {}
        raw, layers = self.detector.with_layers(batch)  # type: ignore[attr-defined]
        return self._checked(raw, n), layers

    def _checked(self, raw: object, n: int) -> Outputs:
        """Return outputs as clip × column; the number of columns is checked once."""
        outputs = pick_output(raw)
        if outputs.shape[:1] != (n,):
            raise DataError(f"{self.detector.name} gave outputs of shape {outputs.shape} for {n} clips")
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
                raise UnclearOutputs(str(error), code=error.code) from None
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
        """Keep a piece's output until its clip is complete, then write the record."""
        parts = self._waiting.setdefault(piece.at, [None] * piece.n_parts)
        parts[piece.part] = (output, layers)
        whole = [part for part in parts if part is not None]
        if len(whole) < piece.n_parts:
            return
        del self._waiting[piece.at]
        found = np.asarray([p[0] for p in whole], dtype=np.float64)
        if not np.isfinite(found).all():
            self.fail(piece.at, f"the detector's output is not finite: {found.ravel()[~np.isfinite(found.ravel())][0]}")
            return
        length, rate = self._lengths.pop(piece.at), self.detector.sample_rate
        record: Record = {"outputs": found.tolist()}
        if rate:
            record["seconds"] = length / rate
        names = whole[0][1]
        self.keep(piece.at, record, {n: np.mean([p[1][n] for p in whole], axis=0) for n in names})

    def keep(self, at: int, record: Record, layers: Layers) -> None:
        """Write the result of an item, its row of each layer first."""
        if self.keeper is not None:
            record.update(self.keeper.add(layers))
        if at in self._pins:
            record["file"] = self._pins.pop(at)
        self.run.add(at, record)
        self.clock.count(sound=record.get("seconds", 0.0))

    def _fail_to_load(self, item: Failed) -> None:
        self._n_unloadable += 1
        self.fail(item.at, item.reason)

    def fail(self, at: int, why: str) -> None:
        """Record that an item failed; stop the run after many failures without a success."""
        self._waiting.pop(at, None)
        self._lengths.pop(at, None)
        self._pins.pop(at, None)
        self._first_failure = self._first_failure or f"{self.run.items[at]}: {why}"
        self.run.add(at, {"error": why})
        self.clock.count(failed=1)
        if not self._is_first_try or self.clock.n_done != self.clock.n_failed:
            return
        # Good clips may be waiting while broken ones are reported: loading has failed only if nothing was loaded at
        # all.
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
            return Budget(PICTURE_UNITS / self.settings.number_bytes, items)
        return Budget(seconds * (self.detector.sample_rate or 16000), items)

    def extraction(self, width: int) -> Extraction:
        """Return the rule for scores, completed with the model's own information if the caller gives none."""
        rule = self.settings.extraction.settled(self.detector, self.manifest.positive, width)
        if self.settings.extraction.kind == "auto" and self._kind != "auto":  # its values have decided
            rule = replace(rule, kind=self._kind)
        if rule.positive_index is None and width > 2:
            raise UsageError(
                f"the model has {width} output columns; say which is {self.manifest.positive} (--positive-index)"
            )
        return rule


def _is_memory(detector: Detector, error: BaseException) -> bool:
    ask = getattr(detector, "is_out_of_memory", Base().is_out_of_memory)
    return bool(ask(error))
