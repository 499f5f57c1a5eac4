"""The run: every question is asked once, every answer is saved, then the rows are written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final

import polars as pl

from hitmiss.core.errors import HitmissError, IncompleteRun, UsageError
from hitmiss.core.frames import parquet
from hitmiss.core.trials import Trials
from hitmiss.io.triage import LAYOUT, read_results
from hitmiss.llm.cache import ToolCache, default_folder
from hitmiss.llm.canaries import InjectionResult, obedience
from hitmiss.llm.detectors import Model, ask_models
from hitmiss.llm.plan import CallPlan
from hitmiss.llm.prices import Prices
from hitmiss.llm.recorder import Recorder
from hitmiss.llm.rows import as_lines, make_rows
from hitmiss.llm.secrets import Secrets
from hitmiss.runs.manifest import CLAIMS, FILES, ITEMS, MANIFEST, MEDIA, OWNER, load_manifest, segments
from hitmiss.runs.owner import Claims, Owner
from hitmiss.runs.segments import SegmentReader, replace_file
from hitmiss.runs.signals import stop_on_terminate
from hitmiss.runs.store import Run, start

KIND: Final = "llm"
LOGS: Final = "logs"


@contextmanager
def nothing_for_nothing(folder: Path) -> Iterator[None]:
    """Remove what an earlier attempt left without an answer, and what this one leaves without one if it fails."""
    forget(folder)
    try:
        yield
    except BaseException:
        forget(folder)
        raise


def forget(folder: Path) -> None:
    """Remove a run of language models without a running owner and without an answer; keep everything else."""
    if not (folder / MANIFEST).is_file():
        return
    claims = Claims(folder / CLAIMS)
    try:
        with claims.guard():
            if Owner(folder / OWNER).standing() is None and _is_without_answer(folder):
                _remove(folder)
    finally:
        claims.close()


def _is_without_answer(folder: Path) -> bool:
    """Return whether the run has begun and holds only failures. An unreadable record may be an answer."""
    try:
        manifest = load_manifest(folder)
        if manifest["kind"] != KIND or manifest["state"] == "complete":
            return False
        return all("error" in record for path in segments(folder) for record in SegmentReader(path).records())
    except HitmissError:
        return False


def _remove(folder: Path) -> None:
    """Remove the files of a run, the manifest last, and then the folder if it is empty."""
    for name in (ITEMS, LOGS):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in (OWNER, CLAIMS, MANIFEST):
        (folder / name).unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


RESULTS: Final = "results.jsonl"
CANARIES: Final = "canaries.jsonl"
Report = Callable[[Recorder], None]


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a run: its rows as trials, those of the canaries, and how many were followed."""

    folder: Path
    output: Path
    trials: Trials
    rows: list[dict[str, object]]
    obedience: list[InjectionResult]


def run_llm(
    plan: CallPlan,
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
    tell: Callable[[str], None] | None = None,
) -> Outcome:
    """Ask, and write the rows to `output`. The run folder (`results.run` beside `results.jsonl`) holds everything.

    `key` is passed to the provider and stored nowhere. With `resume` a run continues where it stopped; one that was
    begun with another dataset, prompt, model or setting is refused with the difference. `retry` asks failed calls
    again. A run without a single answer raises an error and leaves no files. `tell` gets the line that says what a
    function or a detector is taken for.
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
    begun = partial(start, place, kind=KIND, config=plan.config, items=keys, resume=resume, can_join=False)
    with stop_on_terminate(), nothing_for_nothing(place), begun() as run:
        recorder = Recorder.of(run, plan, secrets, retry, report or (lambda recorder: None))
        ask_models(recorder, models or {}, tell or (lambda line: None))
        _ask_llms(recorder, place, key, tool_cache)
        if not run.is_done:
            raise IncompleteRun(f"{place}: {recorder.line()}; go on with the same command and --resume")
        recorder.require_answer()
        contracts = {name: m.contract.stored for name, m in (models or {}).items() if m.contract is not None}
        return _finish(run, plan, target, prices or Prices({}), contracts)


def _ask_llms(recorder: Recorder, folder: Path, key: str | None, tool_cache: str | Path | None) -> None:
    if not set(recorder.plan.models) - set(recorder.plan.detectors):
        return
    from hitmiss.llm.language_models import ask_llms

    cache = ToolCache(tool_cache or default_folder()) if recorder.plan.settings.tool_cache else None
    ask_llms(recorder, folder / LOGS, cache, key)


def _finish(run: Run, plan: CallPlan, target: Path, prices: Prices, contracts: Mapping[str, object]) -> Outcome:
    """Write the rows into the run, read them back as trials, mark the run complete, and put the rows in place."""
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
    taken_for = {"contracts": dict(contracts)} if contracts else {}
    run.finish(trials.frame, files, **facts, **taken_for, **_media(plan, folder))
    replace_file(target, as_lines(own).encode())
    return Outcome(folder, target, trials, own, obedience(tested))


def _save_files(plan: CallPlan, folder: Path) -> list[str]:
    """Write the file of each item as a table, so that reports and reviews find it; return the table's name."""
    files = {item.id: item.file for item in plan.items if item.file}
    if not files:
        return []
    table = pl.DataFrame({"item": list(files), "file": list(files.values())})
    replace_file(folder / FILES, parquet(table))
    return [FILES]


def _media(plan: CallPlan, folder: Path) -> dict[str, str]:
    """Return the path of the files, relative to the run."""
    item = next((item for item in plan.items if item.path is not None and item.file), None)
    if item is None or item.path is None:
        return {}
    root = item.path.parents[len(PurePosixPath(item.file).parts) - 1]
    return {MEDIA: os.path.relpath(root, folder)}
