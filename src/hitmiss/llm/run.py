"""The run: every question asked once, every answer safe, then the rows, the canaries and the trials."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

import polars as pl

from hitmiss.detect.loop import stop_on_terminate
from hitmiss.errors import IncompleteRun, UsageError
from hitmiss.io.outfiles import parquet
from hitmiss.io.runs import FILES, MANIFEST, MEDIA, Run, load_manifest, start
from hitmiss.io.segments import replace_file
from hitmiss.io.triage import LAYOUT, read_results
from hitmiss.llm.cache import ToolCache, default_folder
from hitmiss.llm.callables import Model, ask_models
from hitmiss.llm.canaries import Obedience, obedience
from hitmiss.llm.clearing import KIND, LOGS, nothing_for_nothing
from hitmiss.llm.plan import Plan
from hitmiss.llm.prices import Prices
from hitmiss.llm.recorder import Recorder
from hitmiss.llm.rows import as_lines, make_rows
from hitmiss.llm.secrets import Secrets
from hitmiss.trials import Trials

RESULTS: Final = "results.jsonl"
CANARIES: Final = "canaries.jsonl"
Report = Callable[[Recorder], None]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of a run: its rows as trials, those of the canaries, and how many followed them."""

    folder: Path
    output: Path
    trials: Trials
    rows: list[dict[str, Any]]
    obedience: list[Obedience]


def run_llm(
    plan: Plan,
    *,
    output: str | Path,
    folder: str | Path | None = None,
    models: Mapping[str, Model] | None = None,
    key: str | None = None,
    prices: Prices | None = None,
    tool_cache: str | Path | None = None,
    resume: bool = False,
    retry: bool = False,
    report: Report | None = None,
) -> Outcome:
    """Ask, and write the rows to `output`. The run folder (`results.run` beside `results.jsonl`) holds everything.

    `key` is handed to the provider and stored nowhere. With `resume` a run goes on where it stopped; one that was begun
    with another dataset, prompt, model or setting is refused with the difference. `retry` asks failed calls again. A run
    without a single answer raises and leaves nothing behind.
    """
    target = Path(output)
    place = Path(folder) if folder is not None else target.with_suffix(".run")
    if not target.parent.is_dir():
        raise UsageError(f"there is no folder {target.parent} to write {target.name} into")
    if target.exists() and not (place / MANIFEST).exists():
        raise UsageError(f"{target} exists and no run in {place} wrote it; give another --output")
    if not resume and (place / MANIFEST).is_file() and load_manifest(place)["state"] == "complete":
        raise UsageError(f"{place} holds a finished run; give another --output, or write its rows again with --resume")
    keys = [call.key for call in plan.calls]
    secrets = Secrets.of_environment(key)
    about: dict[str, Any] = {"kind": KIND, "config": plan.config, "items": keys, "resume": resume, "can_join": False}
    with stop_on_terminate(), nothing_for_nothing(place), start(place, **about) as run:
        recorder = Recorder.of(run, plan, secrets, retry, report or (lambda recorder: None))
        ask_models(recorder, models or {})
        _ask_llms(recorder, place, key, tool_cache)
        if not run.is_done:
            raise IncompleteRun(f"{place}: {recorder.line()}; go on with the same command and --resume")
        recorder.require_answer()
        return _finish(run, plan, target, prices or Prices({}))


def _ask_llms(recorder: Recorder, folder: Path, key: str | None, tool_cache: str | Path | None) -> None:
    if not set(recorder.plan.models) - set(recorder.plan.detectors):
        return
    from hitmiss.llm.inspecting import ask_llms

    cache = ToolCache(tool_cache or default_folder()) if recorder.plan.settings.tool_cache else None
    ask_llms(recorder, folder / LOGS, cache, key)


def _finish(run: Run, plan: Plan, target: Path, prices: Prices) -> Outcome:
    """Write the rows into the run, read them back as trials, call the run complete, and put the rows in their place."""
    rows = list(make_rows(plan, run.records(), prices))
    n = len(plan.cells) * plan.trials * len(plan.items)
    own, tested = rows[:n], rows[n:]
    folder = run.folder
    replace_file(folder / RESULTS, as_lines(own).encode())
    files = [RESULTS, *_save_files(plan, folder)]
    if tested:
        replace_file(folder / CANARIES, as_lines(tested).encode())
        files.append(CANARIES)
    trials = read_results(folder / RESULTS)
    head = trials.header
    facts = {"rows": RESULTS, "layout": LAYOUT.name, "positive": head.positive, "negative": head.negative}
    run.finish(trials.frame, files, **facts, **_media(plan, folder))
    replace_file(target, as_lines(own).encode())
    return Outcome(folder, target, trials, own, obedience(tested))


def _save_files(plan: Plan, folder: Path) -> list[str]:
    """The file of each item as a table beside the rows, so that reports and reviews find it; the table's name."""
    files = {item.id: item.file for item in plan.items if item.file}
    if not files:
        return []
    table = pl.DataFrame({"item": list(files), "file": list(files.values())})
    replace_file(folder / FILES, parquet(table))
    return [FILES]


def _media(plan: Plan, folder: Path) -> dict[str, str]:
    """Where the files lie, seen from the run."""
    item = next((item for item in plan.items if item.path is not None and item.file), None)
    if item is None or item.path is None:
        return {}
    root = item.path.parents[len(PurePosixPath(item.file).parts) - 1]
    return {MEDIA: os.path.relpath(root, folder)}
