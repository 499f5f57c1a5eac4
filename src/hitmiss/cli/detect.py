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
from hitmiss.cli.shared import JSON, ROOT, RULES, RUN_FOLDER, SUFFIX, WEIGHTS
from hitmiss.core.errors import UsageError
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.run_spec import RunSpec
from hitmiss.core.spec import READING, RUNNING, WRITING, opt

if TYPE_CHECKING:
    from hitmiss.detection.detector import Detector
    from hitmiss.detection.settings import Outcome

DETECTOR = (
    "model.onnx, module:name, file.py:name, beats:checkpoint.pt, hf-audio:FOLDER, hf-text:…, hf-image:…, program:'cmd'."
)
DATA = "Manifest: a table with the file, the label and further columns about each item; or a folder with a folder per class."
PICTURE = "How a network takes pictures: resize=256, crop=224, scale=imagenet|half|unit|raw, order=rgb|bgr (default: its own)."
MANIPULATE = "`suite`, `clad`, `asvspoof5`, or `noise(snr=15); codec(mp3:1) > gain(db=-6)`; may be repeated."
CLUSTER = "Score on a Ray cluster: auto (this machine's cores), HOST:PORT or ray://HOST:PORT."
SHOWN_FAILURES = 5


def detect(
    detector: Annotated[str, opt(DETECTOR, common=True)],
    data: Annotated[str, opt(DATA, metavar="FILE", common=True)],
    output: Annotated[Path, RUN_FOLDER],
    weights: Annotated[Path | None, WEIGHTS] = None,
    protocol: Annotated[str | None, RULES] = None,
    root: Annotated[Path | None, ROOT] = None,
    suffix: Annotated[str, SUFFIX] = "",
    file_column: Annotated[str | None, opt("Column with the paths, if it is not the id.", READING)] = None,
    *,
    reading: Annotated[ReadSpec, fields(without=("settings",))],
    running: Annotated[RunSpec, fields("limit", "resume", "retry", "join", "max_time", "fail_rate")],
    input_: Annotated[Literal["audio", "image", "text", "path"], opt("What an item is; text: of a column.")] = "audio",
    picture: Annotated[str | None, opt(PICTURE, metavar="SETTINGS")] = None,
    text_column: Annotated[str, opt("Column with the texts.", READING)] = "text",
    sample_rate: Annotated[int | None, opt("Sample rate that the detector needs (default: its own).")] = None,
    cut_length: Annotated[int | None, opt("Repeat or cut each clip to this number of samples.")] = None,
    length_rule: Annotated[
        Literal["tile", "mirror", "zero", "truncate"], opt("What is done with short clips.")
    ] = "tile",
    window: Annotated[float | None, opt("Score windows of this many seconds.")] = None,
    hop: Annotated[float | None, opt("Seconds between windows (default: half a window).")] = None,
    pooling: Annotated[Literal["mean", "median", "min", "max"], opt("One score from windows.")] = "mean",
    codecs: Annotated[
        list[str] | None, opt("Codec plan (TSV) or a list, `opus,mp3:1`; may be repeated.", common=True)
    ] = None,
    manipulate: Annotated[list[str] | None, opt(MANIPULATE, common=True)] = None,
    only: Annotated[str | None, opt("With --manipulate: change this class only, `fake`.")] = None,
    positive_index: Annotated[int | None, opt("Output column of the positive class.")] = None,
    outputs: Annotated[
        Literal["auto", "logit", "multilabel", "probability", "raw"],
        opt("What the model gives; multilabel: a sigmoid per label."),
    ] = "auto",
    higher: Annotated[str | None, opt("The class that a higher single output means.", READING)] = None,
    embed: Annotated[list[str] | None, opt("Keep this layer's embeddings; may be repeated.")] = None,
    batch_seconds: Annotated[float | None, opt("Seconds of sound in a batch.", RUNNING)] = None,
    batch_items: Annotated[int | None, opt("Most items in a batch.", RUNNING)] = None,
    pad: Annotated[bool, opt("Pad clips of different lengths into one batch.", RUNNING)] = False,
    workers: Annotated[int, opt("Number of processes that load items; 0: none.", RUNNING)] = 0,
    cluster: Annotated[str | None, opt(CLUSTER, READING, metavar="auto|ADDRESS")] = None,
    actors: Annotated[int | None, opt("With --cluster: processes that have the model.", RUNNING)] = None,
    device: Annotated[
        str, opt("auto, cpu, cuda, or several: cuda:0,cuda:1 (one process each).", RUNNING, common=True)
    ] = "auto",
    precision: Annotated[
        Literal["auto", "float32", "tf32", "bfloat16", "float16", "int8"],
        opt("Numbers of the network; auto is float32, int8 is for the CPU.", RUNNING),
    ] = "auto",
    compile_: Annotated[
        bool, opt("Compile a torch module; worth it for long runs of clips of one length.", RUNNING)
    ] = False,
    check: Annotated[int, opt("Number of clips scored again one by one, as a check.", RUNNING)] = 8,
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
        raise UsageError.of("option-unused/2")
    devices = [name.strip() for name in device.split(",") if name.strip()]
    if len(devices) > 1:
        _share(given, devices)
        return
    from hitmiss.detection.loop import run_detector
    from hitmiss.detection.opening import open_detector
    from hitmiss.evaluation.detecting import Batching, Job, find_manifest

    reading = reading.changed(where=printing.either(reading.where))
    manifest = find_manifest(
        data, protocol, reading, root=root, suffix=suffix, file_column=file_column, limit=running.limit
    )
    opening = partial(
        open_detector,
        detector,
        weights=weights,
        device=device,
        precision=precision,
        sample_rate=sample_rate,
        layers=embed or (),
        compiled=compile_,
    )
    with _opened(opening, device, cluster, actors, workers, len(manifest)) as model:
        job = Job.of(
            model,
            manifest,
            input=input_,
            codecs=",".join(codecs) if codecs else None,
            manipulate="; ".join(manipulate) if manipulate else None,
            only=only,
            picture=picture,
            text_column=text_column,
            sample_rate=sample_rate,
            cut_length=cut_length,
            length_rule=length_rule,
            window=window,
            hop=hop,
            pooling=pooling,
            positive_index=positive_index,
            outputs=outputs,
            higher=higher,
            batching=Batching(batch_seconds, batch_items, pad, workers, check),
        )
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
    if begun.exists() and not (running.resume or running.join):
        detect(**given | {"device": devices[0]})  # refuses the folder with its own message
        return
    context = multiprocessing.get_context("spawn")
    helpers = [
        context.Process(target=_beside, args=(given | {"device": name}, at == 0, len(devices)))
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
    detect(**given | {"device": devices[0], "running": finishing})


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
        detect(**given | {"running": replace(given["running"], join=True), "scores": None, "check": 0})
    except HitmissError:  # the process that finishes the run meets the same error and reports it
        sys.exit(1)


@contextmanager
def _opened(
    opening: Callable[[], Detector],
    device: str,
    cluster: str | None,
    actors: int | None,
    decoders: int,
    n_items: int,
) -> Iterator[Detector]:
    """Open the detector in this process, or in the processes of a cluster."""

    if cluster is None:
        if actors is not None:
            raise UsageError.of("goes")
        yield opening()
        return
    from hitmiss.cluster.ray import joined
    from hitmiss.detection.cluster import RayDetector

    with joined(cluster) as found:
        printing.note(f"cluster: {found}")
        with RayDetector(found, opening, actors=actors, decoders=decoders, device=device, most=n_items) as fleet:
            yield fleet
        printing.note(fleet.words())


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
