"""The run: every question is asked once, every answer is saved, then the rows are written."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Final

import polars as pl

from hitmiss.core.errors import EnvironmentFault, IncompleteRun, UsageError
from hitmiss.core.frames import parquet
from hitmiss.core.run_spec import RunSpec
from hitmiss.core.trials import Trials
from hitmiss.io.triage import LAYOUT, read_results
from hitmiss.llm.cache import ToolCache, default_folder
from hitmiss.llm.canaries import InjectionResult, obedience
from hitmiss.llm.detectors import Model
from hitmiss.llm.ledger import FOLDER as LEDGER
from hitmiss.llm.ledger import Account, Ledger, account_of
from hitmiss.llm.logs import write_logs
from hitmiss.llm.parsers import LENIENT, Parser, find_parser
from hitmiss.llm.plan import CallPlan
from hitmiss.llm.prices import Prices
from hitmiss.llm.rows import StoredRows, as_lines, make_rows
from hitmiss.llm.secrets import Secrets
from hitmiss.llm.worker import CallWorker
from hitmiss.runs.loop import open_run, run_loop
from hitmiss.runs.manifest import FILES, MANIFEST, MEDIA, as_manifest, load_manifest
from hitmiss.runs.progress import Report
from hitmiss.runs.segments import replace_file
from hitmiss.runs.store import Run

RESULTS: Final = "results.jsonl"
CANARIES: Final = "canaries.jsonl"
MEMORY: Final = 1 << 34
"""Bytes that the trials of a run may take; their rows are read in pieces."""
TOLD: Final = {"item": pl.String, "prediction": pl.String}
"""The table of a run without labels."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a run: its rows as trials, those of the canaries, and how many were followed."""

    folder: Path
    output: Path
    trials: Trials | None
    """The rows as trials; None if the items have no labels."""
    rows: Collection[dict[str, object]]
    obedience: list[InjectionResult]
    account: Account
    """What all requests of the run add up to."""


def work_on_calls(
    plan: CallPlan,
    spec: RunSpec,
    *,
    output: str | Path,
    folder: str | Path | None = None,
    models: Mapping[str, Model] | None = None,
    key: str | None = None,
    prices: Prices | None = None,
    tool_cache: str | Path | None = None,
    parser: str = LENIENT.name,
    words: Mapping[str, float] | None = None,
    reparse: bool = False,
    report: Report = lambda progress: None,
    tell: Callable[[str], None] = lambda line: None,
) -> Outcome | None:
    """Ask, and write the rows to `output`; None if other processes still work on the run.

    The run folder (`results.run` beside `results.jsonl`) holds everything. `key` is passed to the provider and stored
    nowhere. `parser` reads the answers, and takes `words` for a confidence as these numbers; with `reparse` those of a run are read again, and nothing is asked. A run that was begun with another dataset, prompt, model or setting is refused with the difference. `tell`
    gets the line that says what a function or a detector is taken for.
    """
    target, opened, reading = Path(output), models or {}, find_parser(parser, words)
    spec = spec.changed(resume=True) if reparse else spec
    place = Path(folder) if folder is not None else target.with_suffix(".run")
    if not target.parent.is_dir():
        raise UsageError.of("no-folder/write", parent=target.parent, target_name=target.name)
    if target.exists() and not (place / MANIFEST).exists():
        raise UsageError.of("file-taken", target=target, place=place)
    if not (spec.resume or spec.join) and (place / MANIFEST).is_file() and load_manifest(place)["state"] == "complete":
        raise UsageError.of("run-finished/rows", place=place)
    worker = CallWorker(
        plan,
        opened,
        secrets=Secrets.of_environment(key),
        key=key,
        cache=ToolCache(tool_cache or default_folder()) if not plan.settings.disable_tool_cache else None,
        prices=prices,
        tell=tell,
    )
    if spec.max_cost is not None and not reparse:
        _require_prices(plan, worker.prices)
    if reparse and not (place / MANIFEST).is_file():
        raise UsageError.of("no-run", place=place)
    with open_run(worker, place, spec) as run:
        if reparse:
            if not run.is_done:
                raise IncompleteRun.of("run-unfinished/reparse", place=place)
            return _finish(run, plan, target, prices or Prices({}), {}, reading)
        settings = plan.settings
        worker.ledger = Ledger(
            place, worker.prices, worker.secrets, settings.requests_per_minute, settings.tokens_per_minute
        )
        try:
            end = run_loop(worker, run, spec, report)
        finally:
            worker.ledger.close()
        end.require_hope(place, "calls", EnvironmentFault)
        if not run.is_done:
            return None
        if not end.has_success:
            raise EnvironmentFault.of(
                "all-failed", n_items=len(worker.items), first_failure=end.progress.first_failure or "see the records"
            )
        end.require_few_failures(place, int(run.has_error.sum()), spec.fail_rate)
        contracts = {name: m.contract.stored for name, m in opened.items() if m.contract is not None}
        return _finish(run, plan, target, prices or Prices({}), contracts, reading)


def _require_prices(plan: CallPlan, prices: Prices) -> None:
    """Refuse a budget that could not be kept: of a model without a price nobody knows what it has cost so far."""
    asked = [plan.variant(name).model for name in plan.models if name not in plan.detectors]
    for name in dict.fromkeys((*asked, *plan.settings.roles.values())):
        if prices.cost(name, {"input": 1, "output": 1})[0] is None:
            raise UsageError.of("no-price", name=name)


def _finish(
    run: Run, plan: CallPlan, target: Path, prices: Prices, contracts: Mapping[str, object], parser: Parser
) -> Outcome:
    """Write the rows into the run, read them back as trials, mark the run complete, and put the rows in place."""
    rows = make_rows(plan, run, prices, parser)
    folder = run.folder
    replace_file(folder / RESULTS, as_lines(islice(rows, len(plan.cells) * plan.trials * len(plan.items))))
    own, tested = StoredRows(folder / RESULTS), list(rows)
    files = [RESULTS, *_save_files(plan, folder), *(f"{LEDGER}/{p.name}" for p in (folder / LEDGER).glob("*.jsonl"))]
    if tested:
        replace_file(folder / CANARIES, as_lines(tested))
        files.append(CANARIES)
    write_logs(plan, own, folder)
    question = plan.prompts.question
    own_words = {} if question.is_usual else {"positive": question.positive, "negative": question.negative}
    trials = read_results(folder / RESULTS, memory=MEMORY, **own_words) if plan.is_labelled else None
    classes = {"positive": question.positive, "negative": question.negative}
    facts = {"rows": RESULTS, "layout": LAYOUT.name, **classes}
    facts["parser"] = str(parser)
    before = as_manifest(run.manifest).facts.get("contracts")
    taken_for = {"contracts": dict(contracts) or before} if contracts or before else {}
    table = (
        trials.frame
        if trials is not None
        else pl.DataFrame([(r["id"], r["prediction"]) for r in own], TOLD, orient="row")
    )
    run.finish(table, files, **facts, **taken_for, **_media(plan, folder))
    with (folder / RESULTS).open("rb") as file:
        replace_file(target, iter(lambda: file.read(1 << 20), b""))
    return Outcome(folder, target, trials, own, obedience(tested, question), account_of(folder))


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
