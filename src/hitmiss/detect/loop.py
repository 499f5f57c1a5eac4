"""The loop: a manifest in, a run folder and trials out; crash-safe, and the same scores for any batch, worker or order."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from hitmiss.detect.detector import Detector, as_detector
from hitmiss.detect.feeding import Preparation
from hitmiss.detect.finishing import finish
from hitmiss.detect.length import windows
from hitmiss.detect.scoring import Loop
from hitmiss.detect.settings import Outcome, Report, Settings
from hitmiss.errors import EnvironmentFault, UsageError
from hitmiss.io.door import read
from hitmiss.io.manifest import Manifest
from hitmiss.io.runs import start
from hitmiss.trials import Trials

Load = Callable[[Mapping[str, Any]], Any]
Transform = Callable[[Any, Mapping[str, Any]], Any]


def detect(
    detector: Any,
    manifest: Manifest,
    *,
    output: str | Path,
    load: Load,
    transform: Transform | None = None,
    fit: Callable[[Any], Any] | None = None,
    report: Report | None = None,
    **settings: Any,
) -> Trials:
    """Run a detector over a manifest and give its trials (log-odds; probability and seconds beside them).

    `load(row)` gives a clip (an array, or a text), `transform(clip, row)` a changed one, `fit(clip)` one of the right
    length. Further keywords are fields of `Settings`. The run folder `output` holds everything; `hitmiss score` reads it.
    """
    chosen = Settings(**settings)
    if not manifest.has_labels:
        raise UsageError("the manifest has no labels, so there are no trials; use run_detector, and score with a key")
    outcome = run_detector(
        detector, manifest, chosen, output=output, load=load, transform=transform, fit=fit, report=report
    )
    if not outcome.is_complete:
        raise EnvironmentFault(f"other processes still work on {output}; read it when they are done")
    return read(str(output))


def run_detector(
    detector: Any,
    manifest: Manifest,
    settings: Settings,
    *,
    output: str | Path,
    load: Load,
    transform: Transform | None = None,
    fit: Callable[[Any], Any] | None = None,
    report: Report | None = None,
) -> Outcome:
    """The run alone: what `detect` does, for manifests with or without labels."""
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
        loop = getattr(model, "loop_class", Loop)(
            run, model, manifest, preparation, settings, report or (lambda clock: None)
        )
        loop.score_all()
        return finish(loop)


def configuration(detector: Detector, manifest: Manifest, settings: Settings) -> dict[str, Any]:
    """Everything that could change a score: what a resumed run must agree on."""
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
    """SIGTERM ends the run as Ctrl-C does: everything written, the state noted.

    It goes to whoever takes Ctrl-C at that moment: an event loop cancels its tasks, where an exception thrown into the midst
    of one would be taken for that task's own failure.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_: int, frame: FrameType | None) -> None:
        taker = signal.getsignal(signal.SIGINT)
        if callable(taker):
            taker(signal.SIGINT, frame)
        else:  # Ctrl-C is ignored, as in the background of a shell; to terminate is still asked for
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
