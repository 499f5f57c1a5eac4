"""The loop: a manifest in, a run folder and trials out; crash-safe, with the same scores for any batch size."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hitmiss.core.errors import DataError, EnvironmentFault, IncompleteRun, UsageError
from hitmiss.core.trials import Trials
from hitmiss.detection import scoring
from hitmiss.detection.detector import Detector, as_detector
from hitmiss.detection.loader import (
    Failed,
    Fit,
    Load,
    Piece,
    Pooling,
    Preparation,
    ReadsFiles,
    Transform,
    collate,
    is_pinned,
    pool,
    windows,
)
from hitmiss.detection.outputs import OUTPUT_KINDS, Extraction, OutputKind, pick_output, to_probability
from hitmiss.detection.scoring import Loop, Outcome, Record, Report, Settings, gather
from hitmiss.io.manifest import Manifest, has_files
from hitmiss.io.reader import read
from hitmiss.io.runs import FILES, MEDIA, Run, as_manifest, replace_file, start
from hitmiss.io.write import parquet

# ----------------------------------------------------------------------
# From the records of a run to its table: scores are made from raw outputs, all at once and by one rule.

Floats = NDArray[np.float64]
WINDOWS: Final = "windows.parquet"
FAILURES: Final = "failures.tsv"
NUMBERS: Final = ("probability", "seconds")
SHOWN: Final = 5
"""Files that are named if many have changed."""


@dataclass
class Answers:
    """The records of a run: outputs of the successful items, and the reasons of those that failed."""

    at: list[int] = field(default_factory=list)
    outputs: list[list[float]] = field(default_factory=list)
    parts: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    failed: dict[int, str] = field(default_factory=dict)
    rows: dict[int, Record] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Iterable[tuple[int, Record]]) -> Answers:
        """Read all records, one per item."""
        answers = cls()
        for at, record in records:
            if "error" in record:
                answers.failed[at] = str(record["error"])
                continue
            answers.at.append(at)
            answers.outputs.extend(record["outputs"])
            answers.parts.append(len(record["outputs"]))
            answers.seconds.append(record.get("seconds", float("nan")))
            if "row" in record:
                answers.rows[at] = record
        return answers

    def window_scores(self, extraction: Extraction) -> Floats:
        """Return the log-odds of every window (of every clip if there are no windows)."""
        widths = {len(row) for row in self.outputs}
        if len(widths) > 1:
            raise DataError(f"the detector gave outputs of different widths: {sorted(widths)}")
        return extraction.log_odds(np.asarray(self.outputs, dtype=np.float64))

    def scores(self, extraction: Extraction, pooling: Pooling) -> Floats:
        """Return one log-odds per item, with its windows pooled."""
        found = self.window_scores(extraction)
        if all(n == 1 for n in self.parts):
            return found
        ends = np.cumsum(self.parts)
        return np.array([pool(found[e - n : e], pooling) for e, n in zip(ends, self.parts, strict=True)])


def make_table(manifest: Manifest, answers: Answers, extraction: Extraction, pooling: Pooling) -> pl.DataFrame:
    """Return the scored trials in the order of the manifest: its columns, then score, probability and seconds.

    Raw scores have no probability.
    """
    score = answers.scores(extraction, pooling)
    probability = {} if extraction.kind == "raw" else {"probability": to_probability(score)}
    found = pl.DataFrame(
        {
            "_at": pl.Series(answers.at, dtype=pl.Int64),
            "score": score,
            **probability,
            "seconds": pl.Series(answers.seconds, dtype=pl.Float64),
        }
    ).sort("_at")
    known = found.drop(["_at"] if found["seconds"].is_not_nan().any() else ["_at", "seconds"])
    return pl.concat([manifest.frame[found["_at"]].drop("file"), known], how="horizontal")


def window_table(manifest: Manifest, answers: Answers, extraction: Extraction) -> pl.DataFrame | None:
    """Return item, number and log-odds of each window, in manifest order; None if no clip has more than one."""
    if all(n == 1 for n in answers.parts):
        return None
    found = pl.DataFrame(
        {
            "_at": [at for at, n in zip(answers.at, answers.parts, strict=True) for _ in range(n)],
            "window": [i for n in answers.parts for i in range(n)],
            "score": answers.window_scores(extraction),
        }
    ).sort("_at", "window")
    return found.select(manifest.frame["item"][found["_at"]], "window", "score")


def failures_text(manifest: Manifest, failed: Mapping[int, str]) -> str:
    """Return the failed items with their reasons, as a TSV for people."""
    rows = [manifest.row(at) for at in sorted(failed)]
    lines = [
        "\t".join(" ".join(text.split()) for text in (row["item"], row["file"], failed[at]))
        for at, row in zip(sorted(failed), rows, strict=True)
    ]
    return "\n".join(["item\tfile\treason", *lines]) + "\n"


# ----------------------------------------------------------------------
# The end of a run: make the table, check the scores, and pin everything in the manifest.


def finish(loop: Loop) -> Outcome:
    """Make the table and close the run, unless other processes still work on it."""
    run, clock = loop.run, loop.clock
    if not run.is_done:
        return Outcome(run.folder, clock.n_done - clock.n_failed, clock.n_failed, False, clock)
    answers = Answers.of(cast("Iterator[tuple[int, Record]]", run.records()))
    failures = tuple((run.items[at], why) for at, why in sorted(answers.failed.items()))
    if not answers.at:
        raise DataError(f"all {len(failures):,} items failed; the first is {failures[0][0]!r}: {failures[0][1]}")
    rule = _rule(loop, len(answers.outputs[0]))
    table = make_table(loop.manifest, answers, rule, loop.settings.pooling)
    loop.announce(np.asarray(answers.outputs, dtype=np.float64), rule)
    found = _alarms(loop, table, len(failures))
    if loop.probe is not None and loop.probe.is_random:
        found.append(loop.probe.random_words(loop.detector.name))
    invariance = _invariance(loop, answers, rule) if clock.n_done else None
    if invariance is not None and not invariance.holds:
        found.append(str(invariance))
    rounding = _rounding(loop, answers, rule) if clock.n_done else None
    if clock.n_done or run.manifest["state"] != "complete":
        _save(loop, table, answers, rule, found, invariance, rounding)
    notes: tuple[str, ...] = (str(invariance),) if invariance is not None and invariance.holds else ()
    notes += (rounding,) if rounding is not None else ()
    notes += (*getattr(loop.detector, "notes", ()), *([clock.waited()] if clock.n_done else ()))
    return Outcome(run.folder, table.height, len(failures), True, clock, tuple(found), notes, failures)


def _rule(loop: Loop, width: int) -> Extraction:
    """Return the rule for scores; a run that was finished before has already decided the kind of outputs."""
    rule = loop.extraction(width)
    told = as_manifest(loop.run.manifest).facts.get("extraction")
    if rule.kind == "auto" and isinstance(told, dict) and told.get("kind") in OUTPUT_KINDS:
        return replace(rule, kind=told["kind"])
    return rule


def _alarms(loop: Loop, table: pl.DataFrame, n_failed: int) -> list[str]:
    about = loop.manifest
    label = (table["label"] == about.positive).to_numpy() if about.has_labels else None
    return scoring.alarms(table["score"].to_numpy(), label, about.positive, about.negative, n_failed)


def _invariance(loop: Loop, answers: Answers, rule: Extraction) -> scoring.Invariance | None:
    """Score a sample of the clips again, one by one."""
    items, scores = [loop.run.items[at] for at in answers.at], answers.scores(rule, loop.settings.pooling)
    with suppress(EnvironmentFault):
        found = scoring.rescored(
            items, scores, partial(_alone, loop, answers, rule, loop.detector), loop.settings.check
        )
        is_random = loop.probe is not None and loop.probe.is_random
        return replace(found, is_random=is_random) if found is not None else None
    return None


def _alone(loop: Loop, answers: Answers, rule: Extraction, detector: Detector, i: int) -> float:
    """Return the score of one clip alone, by the rule that `auto` has chosen for the run."""
    settled = Extraction(rule.positive_index, _kind(answers, rule), rule.is_reversed)
    at = answers.at[i]
    item = loop.preparation(at, loop.manifest.row(at))
    if isinstance(item, Failed):
        return float("nan")
    prepare = getattr(detector, "prepare", lambda batch: batch)
    batches = [prepare(collate([Piece(at, k, len(item.parts), clip)], False)) for k, clip in enumerate(item.parts)]
    outputs = [pick_output(detector.outputs(b)).reshape(1, -1)[0].tolist() for b in batches]
    return float(Answers([at], outputs, [len(outputs)]).scores(settled, loop.settings.pooling)[0])


def _rounding(loop: Loop, answers: Answers, rule: Extraction) -> str | None:
    """Describe the effect of a precision below float32 on a sample of clips; None if there is nothing to compare."""
    make = getattr(loop.detector, "in_float32", None)
    exact = make() if make is not None and loop.settings.check else None
    if exact is None:
        return None
    scores = answers.scores(rule, loop.settings.pooling)
    places = np.unique(np.linspace(0, len(scores) - 1, min(loop.settings.check, len(scores))).astype(int))
    change = np.array([])
    with suppress(EnvironmentFault):
        change = np.array([abs(_alone(loop, answers, rule, exact, int(i)) - scores[i]) for i in places])
    change = change[np.isfinite(change)]
    precision = getattr(loop.detector, "precision", "less than float32")
    if not len(change):
        return None
    return (
        f"{precision}: log-odds of {len(change)} clips differ from those in float32 by {change.mean():.2g} in the mean and "
        f"{change.max():.2g} at most"
    )


def _kind(answers: Answers, rule: Extraction) -> OutputKind:
    """Return the kind that `auto` has chosen for the whole run; a single clip would not be enough."""
    if rule.kind != "auto":
        return rule.kind
    whole = answers.window_scores(rule)
    as_logits = answers.window_scores(Extraction(rule.positive_index, "logit", rule.is_reversed))
    return "logit" if np.array_equal(whole, as_logits) else "probability"


def _save(
    loop: Loop,
    table: pl.DataFrame,
    answers: Answers,
    rule: Extraction,
    found: list[str],
    invariance: scoring.Invariance | None,
    rounding: str | None,
) -> None:
    about, clock = loop.manifest, loop.clock
    loop.run.finish(
        table,
        _save_files(loop, table, answers, rule),
        positive=about.positive,
        negative=about.negative,
        has_labels=about.has_labels,
        score_kind="raw" if rule.kind == "raw" else "logit",
        numbers=[name for name in NUMBERS if name in table.columns],
        n_scored=table.height,
        n_failed=len(answers.failed),
        extraction={"positive_index": rule.positive_index, "kind": _kind(answers, rule), "reversed": rule.is_reversed},
        pooling=loop.settings.pooling,
        contract=loop.contract.stored if loop.contract is not None else None,
        notes=found,
        invariance=str(invariance) if invariance else None,
        rounding=rounding,
        seconds={name: round(getattr(clock, name), 3) for name in ("decode", "augment", "model", "write", "wait")},
        **_media(loop),
    )


def _media(loop: Loop) -> dict[str, str]:
    """Return the path of the files relative to the run, so that a report can show some of them."""
    root = loop.manifest.root
    return {MEDIA: os.path.relpath(root, loop.run.folder)} if root is not None and has_files(loop.manifest) else {}


def _save_files(loop: Loop, table: pl.DataFrame, answers: Answers, rule: Extraction) -> list[str]:
    """Write the files beside the table (window scores, failures, embeddings) and return their names."""
    folder, files = loop.run.folder, []
    per_window = window_table(loop.manifest, answers, rule)
    if per_window is not None:
        replace_file(folder / WINDOWS, parquet(per_window))
        files.append(WINDOWS)
    if answers.failed:
        replace_file(folder / FAILURES, failures_text(loop.manifest, answers.failed).encode())
        files.append(FAILURES)
    if has_files(loop.manifest):
        replace_file(folder / FILES, parquet(loop.manifest.frame.select("item", "file")))
        files.append(FILES)
    if answers.rows:
        about = {c: table[c].to_list() for c in ("item", "label", *loop.manifest.slices) if c in table.columns}
        files.append(gather(folder, answers.rows, about))
    return files


# ----------------------------------------------------------------------
# The loop: a manifest in, a run folder and trials out; crash-safe, with the same scores for any batch, worker or order.


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
