"""The end of a run: make the table, check the scores, and pin everything in the manifest."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import cast

import numpy as np
import polars as pl

from hitmiss.core.errors import DataError, EnvironmentFault
from hitmiss.core.frames import parquet
from hitmiss.detection import score_checks
from hitmiss.detection.batches import Piece, collate
from hitmiss.detection.detect_spec import OutputKind
from hitmiss.detection.detector import Detector
from hitmiss.detection.embeddings import Record, gather
from hitmiss.detection.outputs import OUTPUT_KINDS, Extraction, pick_output
from hitmiss.detection.preparation import Failed
from hitmiss.detection.settings import Outcome
from hitmiss.detection.table import FAILURES, NUMBERS, WINDOWS, Answers, failures_text, make_table, window_table
from hitmiss.detection.worker import BatchWorker
from hitmiss.io.manifest import has_files
from hitmiss.runs.manifest import FILES, MEDIA, as_manifest
from hitmiss.runs.progress import Progress
from hitmiss.runs.segments import replace_file
from hitmiss.runs.store import Run


def finish(run: Run, worker: BatchWorker, progress: Progress) -> Outcome:
    """Make the table and close the run, unless other processes still work on it."""
    clock = worker.clock
    if not run.is_done:
        return Outcome(run.folder, progress.n_done - progress.n_failed, progress.n_failed, False, progress, clock)
    answers = Answers.of(cast("Iterator[tuple[int, Record]]", run.records()))
    failures = tuple((run.items[at], why) for at, why in sorted(answers.failed.items()))
    if not answers.at:
        raise DataError.of(
            "all-failed/items", n_failures=len(failures), failures=failures[0][0], failures_2=failures[0][1]
        )
    rule = _rule(run, worker, len(answers.outputs[0]))
    table = make_table(worker.manifest, answers, rule, worker.settings.pooling)
    worker.announce(np.asarray(answers.outputs, dtype=np.float64), rule)
    found = _alarms(worker, table, len(failures))
    if worker.probe is not None and worker.probe.is_random:
        found.append(worker.probe.random_words(worker.detector.name))
    invariance = _invariance(worker, answers, rule) if progress.n_done else None
    if invariance is not None and not invariance.holds:
        found.append(str(invariance))
    rounding = _rounding(worker, answers, rule) if progress.n_done else None
    if progress.n_done or run.manifest["state"] != "complete":
        _save(run, worker, table, answers, rule, found, invariance, rounding)
    notes: tuple[str, ...] = (str(invariance),) if invariance is not None and invariance.holds else ()
    notes += (rounding,) if rounding is not None else ()
    notes += (*getattr(worker.detector, "notes", ()), *([clock.waited()] if progress.n_done else ()))
    return Outcome(run.folder, table.height, len(failures), True, progress, clock, tuple(found), notes, failures)


def _rule(run: Run, worker: BatchWorker, width: int) -> Extraction:
    """Return the rule for scores; a run that was finished before has already decided the kind of outputs."""
    rule = worker.extraction(width)
    told = as_manifest(run.manifest).facts.get("extraction")
    if rule.kind == "auto" and isinstance(told, dict) and told.get("kind") in OUTPUT_KINDS:
        return replace(rule, kind=told["kind"])
    return rule


def _alarms(worker: BatchWorker, table: pl.DataFrame, n_failed: int) -> list[str]:
    about = worker.manifest
    label = (table["label"] == about.positive).to_numpy() if about.has_labels else None
    return score_checks.alarms(table["score"].to_numpy(), label, about.positive, about.negative, n_failed)


def _invariance(worker: BatchWorker, answers: Answers, rule: Extraction) -> score_checks.Invariance | None:
    """Score a sample of the clips again, one by one."""
    items, scores = [worker.items[at] for at in answers.at], answers.scores(rule, worker.settings.pooling)
    with suppress(EnvironmentFault):
        found = score_checks.rescored(
            items, scores, partial(_alone, worker, answers, rule, worker.detector), worker.settings.check
        )
        is_random = worker.probe is not None and worker.probe.is_random
        return replace(found, is_random=is_random) if found is not None else None
    return None


def _alone(worker: BatchWorker, answers: Answers, rule: Extraction, detector: Detector, i: int) -> float:
    """Return the score of one clip alone, by the rule that `auto` has chosen for the run."""
    settled = Extraction(rule.positive_index, _kind(answers, rule), rule.is_reversed)
    at = answers.at[i]
    item = worker.preparation(at, worker.manifest.row(at))
    if isinstance(item, Failed):
        return float("nan")
    prepare = getattr(detector, "prepare", lambda batch: batch)
    batches = [prepare(collate([Piece(at, k, len(item.parts), clip)], False)) for k, clip in enumerate(item.parts)]
    outputs = [pick_output(detector.outputs(b)).reshape(1, -1)[0].tolist() for b in batches]
    return float(Answers([at], outputs, [len(outputs)]).scores(settled, worker.settings.pooling)[0])


def _rounding(worker: BatchWorker, answers: Answers, rule: Extraction) -> str | None:
    """Describe the effect of a precision below float32 on a sample of clips; None if there is nothing to compare."""
    make = getattr(worker.detector, "in_float32", None)
    exact = make() if make is not None and worker.settings.check else None
    if exact is None:
        return None
    scores = answers.scores(rule, worker.settings.pooling)
    places = np.unique(np.linspace(0, len(scores) - 1, min(worker.settings.check, len(scores))).astype(int))
    change = np.array([])
    with suppress(EnvironmentFault):
        change = np.array([abs(_alone(worker, answers, rule, exact, int(i)) - scores[i]) for i in places])
    change = change[np.isfinite(change)]
    precision = getattr(worker.detector, "precision", "less than float32")
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
    run: Run,
    worker: BatchWorker,
    table: pl.DataFrame,
    answers: Answers,
    rule: Extraction,
    found: list[str],
    invariance: score_checks.Invariance | None,
    rounding: str | None,
) -> None:
    about, clock = worker.manifest, worker.clock
    run.finish(
        table,
        _save_files(run, worker, table, answers, rule),
        positive=about.positive,
        negative=about.negative,
        has_labels=about.has_labels,
        score_kind="raw" if rule.kind == "raw" else "logit",
        numbers=[name for name in NUMBERS if name in table.columns],
        n_scored=table.height,
        n_failed=len(answers.failed),
        extraction={"positive_index": rule.positive_index, "kind": _kind(answers, rule), "reversed": rule.is_reversed},
        pooling=worker.settings.pooling,
        contract=worker.contract.stored if worker.contract is not None else None,
        notes=found,
        invariance=str(invariance) if invariance else None,
        rounding=rounding,
        seconds={name: round(getattr(clock, name), 3) for name in ("decode", "augment", "model", "write", "wait")},
        **_media(run, worker),
    )


def _media(run: Run, worker: BatchWorker) -> dict[str, str]:
    """Return the path of the files relative to the run, so that a report can show some of them."""
    root = worker.manifest.root
    return {MEDIA: os.path.relpath(root, run.folder)} if root is not None and has_files(worker.manifest) else {}


def _save_files(run: Run, worker: BatchWorker, table: pl.DataFrame, answers: Answers, rule: Extraction) -> list[str]:
    """Write the files beside the table (window scores, failures, embeddings) and return their names."""
    folder, files = run.folder, []
    per_window = window_table(worker.manifest, answers, rule)
    if per_window is not None:
        replace_file(folder / WINDOWS, parquet(per_window))
        files.append(WINDOWS)
    if answers.failed:
        replace_file(folder / FAILURES, failures_text(worker.manifest, answers.failed).encode())
        files.append(FAILURES)
    if has_files(worker.manifest):
        replace_file(folder / FILES, parquet(worker.manifest.frame.select("item", "file")))
        files.append(FILES)
    if answers.rows:
        about = {c: table[c].to_list() for c in ("item", "label", *worker.manifest.slices) if c in table.columns}
        files.append(gather(folder, answers.rows, about))
    return files
