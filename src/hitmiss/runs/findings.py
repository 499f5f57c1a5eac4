"""What `runs` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "no-file-locks": Entry(
        ERROR,
        "runs are written with file locks, which this system lacks (detect, attack and llm need Linux or macOS)",
        fix="score, compare, gate and report need none",
    ),
    "other-configuration": Entry(
        ERROR,
        "{folder} was begun with another configuration: {differing}",
        fix="give what it was begun with, or another folder",
    ),
    "malformed-run-facts": Entry(ERROR, "the run names rows ({rows}) that are not among its files"),
    "malformed-run-facts/names": Entry(ERROR, "the run names rows and not how to read them"),
    "run-busy": Entry(
        ERROR,
        "process {standing} on {standing_2} works on this run",
        fix="wait for it, or work beside it with {--join}",
    ),
    "run-unfinished/begun": Entry(ERROR, "{folder} holds a run that is not finished ({state}); go on with {--resume}"),
    "folder-taken": Entry(ERROR, "{folder} exists and holds no run", fix="give an empty or a new folder"),
    "damaged-run/record": Entry(
        ERROR, "{path_name} holds a record of {name!r}, which is not among the items of the run"
    ),
    "run-schema": Entry(
        ERROR, "{folder}: the run has schema {schema!r}; this version of hitmiss reads schema {SCHEMA}"
    ),
    "damaged-run/seal": Entry(ERROR, "{path} does not match its own seal: the run was edited or damaged"),
    "run-unfinished/items": Entry(
        ERROR,
        "{folder}: the run is not finished ({state}, {done:,} of {n_items:,} items); go on with the same command and {--resume}",
    ),
    "changed-run": Entry(ERROR, "{folder}: the run was changed after it was finished: {wrong}"),
    "not-a-run": Entry(ERROR, "{folder} is not a run: it has no {MANIFEST}"),
    "damaged-run/json": Entry(ERROR, "{path} is not JSON: the run was edited or damaged"),
    "changed-files": Entry(
        ERROR,
        "{n_changed:,} files are missing or have changed since they were scored: {names}{more}; restore them, or begin a new run with another {--output?}",
    ),
    "option-unused/retry": Entry(ERROR, "{--retry?} goes with {--resume}"),
    "over-budget": Entry(ERROR, "{folder}: stopped at {limit}: {progress}; go on with {--resume} and a new limit"),
    "service-failed": Entry(
        ERROR,
        "{folder}: stopped, because what came back last were failures that no item can cause: {why}",
        fix="fix that and go on with {--resume} {--retry}",
    ),
    "all-failed/stopped": Entry(ERROR, "{many} failed ({why})", fix="fix that and run again with {--resume} {--retry}"),
    "answers-unread": Entry(
        ERROR,
        "{folder}: stopped, as the last answers say nothing of use: {said!r}",
        fix="change the question in a new run, or go on with {--resume} and {--patience 0}",
    ),
    "too-many-failures": Entry(
        ERROR,
        "{folder}: {n_failed:,} of {n_total:,} failed ({share:.1%}), more than {--fail-rate <most>}; the first: {first_failure}",
        fix="go on with {--resume} {--retry}",
    ),
    "damaged-run/line": Entry(ERROR, "the run is damaged: {fault}", fix="the lines after it are whole"),
}
