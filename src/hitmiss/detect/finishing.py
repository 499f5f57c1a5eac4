"""The end of a run: records to a table, what to worry about, everything pinned in the manifest."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from hitmiss.detect import checks
from hitmiss.detect.batching import Piece
from hitmiss.detect.extract import OUTPUT_KINDS, Extraction, pick_output
from hitmiss.detect.feeding import Failed
from hitmiss.detect.keeping import gather
from hitmiss.detect.scoring import Loop
from hitmiss.detect.settings import Outcome
from hitmiss.detect.table import FAILURES, NUMBERS, WINDOWS, Answers, failures_text, make_table, window_table
from hitmiss.errors import DataError, EnvironmentFault
from hitmiss.io.manifest import has_files
from hitmiss.io.outfiles import parquet
from hitmiss.io.runs import FILES, MEDIA
from hitmiss.io.segments import replace_file


def finish(loop: Loop) -> Outcome:
    """Make the table and close the run, unless others still work on it."""
    run, clock = loop.run, loop.clock
    if not run.is_done:
        return Outcome(run.folder, clock.n_done - clock.n_failed, clock.n_failed, False, clock)
    answers = Answers.of(run.records())
    failures = tuple((run.items[at], why) for at, why in sorted(answers.failed.items()))
    if not answers.at:
        raise DataError(f"all {len(failures):,} items failed; the first is {failures[0][0]!r}: {failures[0][1]}")
    rule = _rule(loop, len(answers.outputs[0]))
    table = make_table(loop.manifest, answers, rule, loop.settings.pooling)
    found = _alarms(loop, table, len(failures))
    invariance = _invariance(loop, answers, rule) if clock.n_done else None
    if invariance is not None and not invariance.holds:
        found.append(str(invariance))
    if clock.n_done or run.manifest["state"] != "complete":
        _save(loop, table, answers, rule, found, invariance)
    notes = (str(invariance),) if invariance is not None and invariance.holds else ()
    notes += (*getattr(loop.detector, "notes", ()), *([clock.waited()] if clock.n_done else ()))
    return Outcome(run.folder, table.height, len(failures), True, clock, tuple(found), notes, failures)


def _rule(loop: Loop, width: int) -> Extraction:
    """The rule for scores; a run that was finished before has settled what the outputs are."""
    rule = loop.extraction(width)
    before = loop.run.manifest.get("facts", {}).get("extraction", {}).get("kind", "auto")
    return replace(rule, kind=before) if rule.kind == "auto" and before in OUTPUT_KINDS else rule


def _alarms(loop: Loop, table: pl.DataFrame, n_failed: int) -> list[str]:
    about = loop.manifest
    label = (table["label"] == about.positive).to_numpy() if about.has_labels else None
    return checks.alarms(table["score"].to_numpy(), label, about.positive, about.negative, n_failed)


def _invariance(loop: Loop, answers: Answers, rule: Extraction) -> checks.Invariance | None:
    """A sample of the clips scored again one by one; the rule that `auto` settled on holds for each of them."""
    pooling = loop.settings.pooling
    settled = Extraction(rule.positive_index, _kind(answers, rule), rule.is_reversed)

    def alone(i: int) -> float:
        at = answers.at[i]
        item = loop.preparation(at, loop.manifest.row(at))
        if isinstance(item, Failed):
            return float("nan")
        batches = [loop.ready([Piece(at, k, len(item.parts), clip)])[1] for k, clip in enumerate(item.parts)]
        outputs = [pick_output(loop.detector.outputs(b)).reshape(1, -1)[0].tolist() for b in batches]
        return float(Answers([at], outputs, [len(outputs)]).scores(settled, pooling)[0])

    items, scores = [loop.run.items[at] for at in answers.at], answers.scores(rule, pooling)
    with suppress(EnvironmentFault):
        return checks.rescored(items, scores, alone, loop.settings.check)
    return None


def _kind(answers: Answers, rule: Extraction) -> Any:
    """What `auto` settled on for the whole run; a single clip could not tell."""
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
    invariance: checks.Invariance | None,
) -> None:
    about, clock = loop.manifest, loop.clock
    loop.run.finish(
        table,
        _save_files(loop, table, answers, rule),
        positive=about.positive,
        negative=about.negative,
        has_labels=about.has_labels,
        score_kind="logit",
        numbers=[name for name in NUMBERS if name in table.columns],
        n_scored=table.height,
        n_failed=len(answers.failed),
        extraction={"positive_index": rule.positive_index, "kind": _kind(answers, rule), "reversed": rule.is_reversed},
        pooling=loop.settings.pooling,
        notes=found,
        invariance=str(invariance) if invariance else None,
        seconds={name: round(getattr(clock, name), 3) for name in ("decode", "augment", "model", "write", "wait")},
        **_media(loop),
    )


def _media(loop: Loop) -> dict[str, str]:
    """Where the files lay, seen from the run, so that a report can show some of them."""
    root = loop.manifest.root
    return {MEDIA: os.path.relpath(root, loop.run.folder)} if root is not None and has_files(loop.manifest) else {}


def _save_files(loop: Loop, table: pl.DataFrame, answers: Answers, rule: Extraction) -> list[str]:
    """What stands beside the table: scores of windows, failures, embeddings. Their names."""
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
