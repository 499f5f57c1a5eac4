"""`hitmiss detect`: run a detector over the files of a manifest and write a run folder that `hitmiss score` reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from hitmiss.cli import printing, progress_bar
from hitmiss.cli.options import fields
from hitmiss.cli.shared import JSON, RULES, RUN_FOLDER
from hitmiss.core.errors import UsageError
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.run_spec import RunSpec
from hitmiss.core.spec import READING, RUNNING, WRITING, opt
from hitmiss.detection.detect_spec import DetectSpec

if TYPE_CHECKING:
    from hitmiss.detection.detector import Detector
    from hitmiss.detection.settings import Outcome

DETECTOR = (
    "model.onnx, module:name, file.py:name, beats:checkpoint.pt, hf-audio:FOLDER, hf-text:…, hf-image:…, program:'cmd'."
)
DATA = "Manifest: a table with the file, the label and further columns about each item; or a folder with a folder per class."
CLUSTER = "Score on a Ray cluster: auto (this machine's cores), HOST:PORT or ray://HOST:PORT."
SHOWN_FAILURES = 5


def detect(
    detector: Annotated[str, opt(DETECTOR, common=True)],
    data: Annotated[str, opt(DATA, metavar="FILE", common=True)],
    output: Annotated[Path, RUN_FOLDER],
    protocol: Annotated[str | None, RULES] = None,
    *,
    spec: DetectSpec,
    reading: Annotated[ReadSpec, fields(without=("settings",))],
    running: Annotated[RunSpec, fields("limit", "resume", "retry", "join", "max_time", "fail_rate")],
    cluster: Annotated[str | None, opt(CLUSTER, READING, metavar="auto|ADDRESS")] = None,
    actors: Annotated[int | None, opt("With --cluster: processes that have the model.", RUNNING)] = None,
    scores: Annotated[Path | None, opt("Write a score file here too.", WRITING)] = None,
    score_form: Annotated[
        Literal["table", "official", "unpaired"], opt("Form of --scores; unpaired: `- - real 0.85`.", WRITING)
    ] = "table",
    json: Annotated[bool, JSON] = False,
) -> None:
    """Run a detector over files. Runs can be resumed; the batch size and the number of workers do not change scores.

    $ hitmiss detect --detector model.onnx --data eval.tsv --output run
    """
    given = dict(locals())
    if scores is None and score_form != "table":
        raise UsageError.of("option-unused/score-form")
    devices = [name.strip() for name in spec.device.split(",") if name.strip()]
    if len(devices) > 1:
        _share(given, devices)
        return
    from hitmiss.detection.loop import run_detector
    from hitmiss.evaluation.detecting import Job, find_manifest, opened

    reading = reading.changed(where=printing.either(reading.where))
    manifest = find_manifest(data, protocol, reading, spec, running.limit)
    with _opened(partial(opened, detector, spec), spec, cluster, actors, len(manifest)) as model:
        job = Job.of(model, manifest, spec, reading.higher)
        for line in job.notes:
            printing.note(line)
        outcome = run_detector(
            model,
            job.manifest,
            job.settings,
            running,
            output=output,
            load=job.load,
            transform=job.transform,
            fit=job.fit,
            report=progress_bar.Progress(),
            tell=printing.note,
        )
    if scores is not None and outcome.is_complete:
        _export(output, scores, score_form)
    _emit(outcome, json)


def _share(given: dict[str, Any], devices: list[str]) -> None:
    """Start one process per device on the run; then finish it here, including what a process that died left undone."""
    import multiprocessing
    import time

    from hitmiss.runs.manifest import MANIFEST

    if given["cluster"] is not None:
        raise UsageError.of("devices-cluster")
    begun = Path(str(given["output"])) / MANIFEST
    running: RunSpec = given["running"]
    spec: DetectSpec = given["spec"]
    if begun.exists() and not (running.resume or running.join):
        detect(**given | {"spec": replace(spec, device=devices[0])})  # refuses the folder with its own message
        return
    context = multiprocessing.get_context("spawn")
    helpers = [
        context.Process(target=_beside, args=(given | {"spec": replace(spec, device=name)}, at == 0, len(devices)))
        for at, name in enumerate(devices)
    ]
    try:
        helpers[0].start()
        while not begun.exists() and helpers[0].is_alive():
            time.sleep(0.05)
        for helper in helpers[1:]:
            helper.start()
        for helper in helpers:
            helper.join()
    finally:
        for helper in helpers:
            if helper.is_alive():
                helper.terminate()
                helper.join()
    finishing = replace(running, resume=begun.exists() or running.resume)
    detect(**given | {"spec": replace(spec, device=devices[0]), "running": finishing})


def _beside(given: dict[str, Any], is_first: bool, n: int) -> None:
    """Run as one of several processes; only the first shows the progress."""
    import os
    import sys

    from hitmiss.core.errors import HitmissError

    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // n)))
    quiet = Path(os.devnull).open("w")  # noqa: SIM115
    sys.stdout = quiet
    sys.stderr = sys.stderr if is_first else quiet
    try:
        spec, running = replace(given["spec"], check=0), replace(given["running"], join=True)
        detect(**given | {"spec": spec, "running": running, "scores": None})
    except HitmissError:  # the process that finishes the run meets the same error and reports it
        sys.exit(1)


@contextmanager
def _opened(
    opening: Callable[[], Detector], spec: DetectSpec, cluster: str | None, actors: int | None, n_items: int
) -> Iterator[Detector]:
    """Open the detector in this process, or in the processes of a cluster."""
    if cluster is None:
        if actors is not None:
            raise UsageError.of("option-unused/actors")
        yield opening()
        return
    from hitmiss.cluster.ray import joined
    from hitmiss.detection.cluster import RayDetector

    with joined(cluster) as found:
        printing.note(f"cluster: {found}")
        with RayDetector(
            found, opening, actors=actors, decoders=spec.workers, device=spec.device, most=n_items
        ) as detector:
            yield detector
        printing.note(detector.words())


def _export(folder: Path, path: Path, form: str) -> None:
    from hitmiss.io import read
    from hitmiss.io.write import write_scores

    write_scores(read(str(folder)), path, form)  # type: ignore[arg-type]
    printing.note(f"wrote {path}" + ("; it has no ids, so it cannot be paired" if form == "unpaired" else ""))


def _emit(outcome: Outcome, json: bool) -> None:
    progress = outcome.progress
    for item, why in outcome.failures[:SHOWN_FAILURES]:
        printing.note(f"failed: {item}: {why}")
    for alarm in outcome.alarms:
        printing.note(f"! {alarm}")
    if json:
        shown = {"complete": outcome.is_complete, "scored": outcome.n_scored, "failed": outcome.n_failed}
        about = {
            "alarms": outcome.alarms,
            "notes": outcome.notes,
            "shares": outcome.clock.shares(),
            "rate": progress.rate,
        }
        printing.out_json({"schema": 1, "run": str(outcome.folder), **shown, **printing.plain_object(about)})
        return
    printing.out(f"{outcome.n_scored:,} scored, {outcome.n_failed:,} failed: {outcome.folder}")
    if progress.n_done:
        printing.out(progress.line())
    for note in outcome.notes:
        printing.out(note)
    if outcome.is_complete:
        printing.out(f"score them: hitmiss score {outcome.folder} -m eer -m roc_auc")
    else:
        printing.out("other processes are still working on it; the last one finishes the run")
