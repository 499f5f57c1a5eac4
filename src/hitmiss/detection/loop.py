"""The loop: a manifest in, a run folder and trials out; crash-safe, with the same scores for any batch size."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from hitmiss.core.errors import EnvironmentFault, IncompleteRun, UsageError
from hitmiss.core.trials import Trials
from hitmiss.detection.detector import Detector, as_detector
from hitmiss.detection.finish import finish
from hitmiss.detection.length import windows
from hitmiss.detection.loader import ReadsFiles, is_pinned
from hitmiss.detection.preparation import Fit, Load, Preparation, Transform
from hitmiss.detection.settings import Outcome, Report, Settings
from hitmiss.detection.table import SHOWN
from hitmiss.detection.worker import Loop
from hitmiss.io.manifest import Manifest
from hitmiss.io.reader import read
from hitmiss.runs.store import Run, start


def detect(
    detector: object,
    manifest: Manifest,
    settings: Settings | None = None,
    *,
    output: str | Path,
    load: Load,
    transform: Transform | None = None,
    fit: Fit | None = None,
    report: Report | None = None,
    **changes: Any,
) -> Trials:
    """Run a detector over a manifest and return its trials (log-odds, with probability and seconds).

    `load(row)` returns a clip (an array, or a text), `transform(clip, row)` a changed one, `fit(clip)` one of the right
    length. Further keywords are fields of `settings`. The run folder `output` holds everything; `hitmiss score` reads
    it.
    """
    chosen = replace(settings or Settings(), **changes)
    if not manifest.has_labels:
        raise UsageError("the manifest has no labels, so there are no trials; use run_detector, and score with a key")
    outcome = run_detector(
        detector, manifest, chosen, output=output, load=load, transform=transform, fit=fit, report=report
    )
    if not outcome.is_complete:
        raise EnvironmentFault(f"other processes still work on {output}; read it when they are done")
    return read(str(output))


def run_detector(
    detector: object,
    manifest: Manifest,
    settings: Settings,
    *,
    output: str | Path,
    load: Load,
    transform: Transform | None = None,
    fit: Fit | None = None,
    report: Report | None = None,
    tell: Callable[[str], None] | None = None,
) -> Outcome:
    """Make the run only: what `detect` does, for manifests with or without labels.

    `tell` gets the line that says what the detector is taken for, when its first outputs are there.
    """
    model = as_detector(detector)
    cutting = partial(windows, length=settings.window, hop=settings.hop) if settings.window else None
    preparation = Preparation(load, transform, fit, cutting)
    config = configuration(model, manifest, settings)
    with (
        stop_on_terminate(),
        start(
            output, kind="detect", config=config, items=manifest.items, resume=settings.resume, join=settings.join
        ) as run,
    ):
        if settings.resume or settings.join:
            _refuse_other_files(run, manifest, load)
        loop = getattr(model, "loop_class", Loop)(
            run, model, manifest, preparation, settings, report or (lambda clock: None)
        )
        loop.tell = tell or loop.tell
        loop.score_all()
        return finish(loop)


def _refuse_other_files(run: Run, manifest: Manifest, load: object) -> None:
    """Refuse to continue if a scored file has changed: the run would mix two sets of items."""
    if not isinstance(load, ReadsFiles):
        return
    pins = ((at, record["file"]) for at, record in run.records() if "file" in record)
    other = [at for at, pin in pins if not is_pinned(load.path(manifest.row(at)), str(pin))]
    if not other:
        return
    names = ", ".join(manifest.row(at)["file"] for at in other[:SHOWN])
    more = f" and {len(other) - SHOWN:,} more" if len(other) > SHOWN else ""
    raise IncompleteRun(
        f"{len(other):,} files are missing or have changed since they were scored: {names}{more}; restore them, or "
        f"begin a new run with another --output",
        code="changed-files",
    )


def configuration(detector: Detector, manifest: Manifest, settings: Settings) -> dict[str, object]:
    """Return everything that could change a score: what a resumed run must agree on."""
    return {
        "detector": dict(getattr(detector, "identity", {"name": detector.name})),
        "manifest": manifest.digest,
        "window": settings.window,
        "hop": settings.hop,
        "pad": settings.pad,
        **dict(settings.pinned),
    }


@contextmanager
def stop_on_terminate() -> Iterator[None]:
    """Let SIGTERM end the run like Ctrl-C: everything is written, the state is noted.

    The signal is passed to the current handler of Ctrl-C: an event loop then cancels its tasks. An exception raised
    inside a task would be taken for that task's own failure.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_: int, frame: FrameType | None) -> None:
        taker = signal.getsignal(signal.SIGINT)
        if callable(taker):
            taker(signal.SIGINT, frame)
        else:  # Ctrl-C is ignored, as in the background of a shell; SIGTERM must still end the run
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
