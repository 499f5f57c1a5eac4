"""The loop: a manifest in, a run folder and trials out; crash-safe, with the same scores for any batch size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from hitmiss.core.errors import EnvironmentFault, UsageError
from hitmiss.core.run_spec import RunSpec
from hitmiss.core.trials import Trials
from hitmiss.detection.detector import as_detector
from hitmiss.detection.embeddings import EmbeddingWriter
from hitmiss.detection.finish import finish
from hitmiss.detection.length import windows
from hitmiss.detection.preparation import Fit, Load, Preparation, Transform
from hitmiss.detection.settings import Outcome, Settings
from hitmiss.detection.worker import BatchWorker
from hitmiss.io.manifest import Manifest
from hitmiss.io.reader import read
from hitmiss.runs.loop import open_run, run_loop
from hitmiss.runs.progress import Report


def detect(
    detector: object,
    manifest: Manifest,
    settings: Settings | None = None,
    *,
    output: str | Path,
    load: Load,
    transform: Transform | None = None,
    fit: Fit | None = None,
    report: Report = lambda progress: None,
    **changes: Any,
) -> Trials:
    """Run a detector over a manifest and return its trials (log-odds, with probability and seconds).

    `load(row)` returns a clip (an array, or a text), `transform(clip, row)` a changed one, `fit(clip)` one of the right
    length. Further keywords are fields of `settings` or of `RunSpec`. The run folder `output` holds everything;
    `hitmiss score` reads it.
    """
    running = {name: changes.pop(name) for name in ("resume", "join", "retry") if name in changes}
    chosen = replace(settings or Settings(), **changes)
    if not manifest.has_labels:
        raise UsageError.of("no-labels/manifest")
    outcome = run_detector(
        detector,
        manifest,
        chosen,
        RunSpec(**running),
        output=output,
        load=load,
        transform=transform,
        fit=fit,
        report=report,
    )
    if not outcome.is_complete:
        raise EnvironmentFault.of("run-busy/others", output=output)
    return read(str(output))


def run_detector(
    detector: object,
    manifest: Manifest,
    settings: Settings,
    spec: RunSpec | None = None,
    *,
    output: str | Path,
    load: Load,
    transform: Transform | None = None,
    fit: Fit | None = None,
    report: Report = lambda progress: None,
    tell: Callable[[str], None] | None = None,
) -> Outcome:
    """Make the run only: what `detect` does, for manifests with or without labels.

    `tell` gets the line that says what the detector is taken for, when its first outputs are there.
    """
    model, spec = as_detector(detector), spec or RunSpec()
    cutting = partial(windows, length=settings.window, hop=settings.hop) if settings.window else None
    preparation = Preparation(load, transform, fit, cutting)
    worker = getattr(model, "worker_class", BatchWorker)(model, manifest, preparation, settings)
    worker.tell = tell or worker.tell
    with open_run(worker, output, spec) as run:
        kept = EmbeddingWriter(run)
        try:
            end = run_loop(worker, kept, spec, report)
        finally:
            kept.close()
        end.require_hope(output)
        end.require_few_failures(output, int(run.has_error.sum()), spec.fail_rate)
        return finish(run, worker, end.progress)
