"""The run: every question is asked once, every answer is saved, then the rows are written."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath
from typing import Final

import polars as pl

from hitmiss._version import __version__
from hitmiss.core.convert import fit
from hitmiss.core.errors import HitmissError, IncompleteRun, UsageError
from hitmiss.core.trials import Trials
from hitmiss.detection.loop import stop_on_terminate
from hitmiss.io.runs import (
    CLAIMS,
    FILES,
    ITEMS,
    MANIFEST,
    MEDIA,
    OWNER,
    Claims,
    Owner,
    Run,
    SegmentReader,
    load_manifest,
    replace_file,
    segments,
    start,
)
from hitmiss.io.triage import LAYOUT, read_results
from hitmiss.io.write import parquet
from hitmiss.llm.backends import Model, ask_models
from hitmiss.llm.cache import ToolCache, default_folder
from hitmiss.llm.items import Obedience, content_digest, obedience
from hitmiss.llm.openai_forms import object_in, objects_in
from hitmiss.llm.plan import ROLES, Call, Plan, Prices, Recorder
from hitmiss.llm.secrets import Secrets

# ----------------------------------------------------------------------
# Result rows: what was stored of each call, with the plan's information, in the form of the triage evaluation document.

PACKAGES: Final = ("inspect-ai", "openai", "anthropic", "pillow", "numpy")
NO_TOKENS: Final = "the model is not a language model and has no tokens"


def make_rows(
    plan: Plan, records: Iterable[tuple[int, Mapping[str, object]]], prices: Prices
) -> Iterator[dict[str, object]]:
    """Yield a row for every record, in the order of the plan."""
    calls, about = plan.calls, shared(plan)
    ordered = sorted(records, key=lambda pair: pair[0])
    wires: dict[str, dict[str, object]] = {}
    for at, record in ordered:
        wires.setdefault(calls[at].model, {}).update({n: record[n] for n in ("wire", "wire_by_role") if record.get(n)})
    # the request of a failed call is unknown: assume the same settings as the model's other calls
    for at, record in ordered:
        yield row_of(plan, calls[at], {**wires[calls[at].model], **record}, about, prices)


def shared(plan: Plan) -> dict[str, object]:
    """Return what is true of all rows: the digest of the dataset and the versions of packages."""
    found = {"hitmiss": __version__}
    for name in PACKAGES if set(plan.models) - set(plan.detectors) else PACKAGES[-2:]:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return {"dataset_content": content_digest(plan.items)[:16], "packages": found}


def row_of(
    plan: Plan, call: Call, record: Mapping[str, object], about: Mapping[str, object], prices: Prices
) -> dict[str, object]:
    """Return one row. A failed call has an error and no verdict; an answer that was not understood has neither."""
    is_llm, item = call.model not in plan.detectors, call.item
    row: dict[str, object] = {
        "id": item.id,
        "model": call.model,
        "use_tools": call.use_tools,
        "trial": call.trial,
        "label": item.label,
        **({item.kind: item.file or item.text} if item.file or item.text else {}),
        "meta": dict(item.meta),
        "prediction": record.get("prediction"),
        "parsed_verdict": record.get("prediction"),
        "confidence": record.get("confidence"),
        "rationale": record.get("rationale", ""),
        "raw_analysis": record.get("raw", ""),
        "problem": record.get("problem", ""),
        "models": models_of(plan, call, record, is_llm),
        "run_config": {**_settings(plan, record, is_llm), **_conditions(plan, call), **about},
        "cache_state": plan.settings.cache_state,
        "cache_hit": bool(record.get("cache_hit", False)),
        "tool_usage": [detail["tool"] for detail in objects_in(record, "tool_details")],
        "tool_details": objects_in(record, "tool_details"),
        "timings": record.get("timings", {}),
        "latency_seconds": record.get("latency_seconds"),
        "retries": record.get("retries", 0),
        "timestamp": record.get("timestamp"),
        "tokens": record.get("tokens"),
    }
    if record.get("sent"):
        row["sent"] = record["sent"]
    if is_llm:
        row["prompt_hashes"] = plan.prompts.hashes(plan.kinds, plan.settings.roles)
    for name in ("description", "tokens_by_role"):
        if name in record:
            row[name] = record[name]
    row["cost"], row["cost_reason"] = _cost(plan, call, record, prices)
    if "error" in record:
        row |= {"error": record["error"], "error_type": record.get("error_type", "exception")}
    return row


def _settings(plan: Plan, record: Mapping[str, object], is_llm: bool) -> dict[str, object]:
    """Return the settings as they were sent to the agent, and to each other role under its name.

    Those that were requested and not sent are listed apart.
    """
    if not is_llm:
        return {}
    asked, by_role = plan.settings.run_config, object_in(record, "wire_by_role")
    roles = {role: _as_sent(asked, object_in(by_role, role)) for role in plan.settings.roles if by_role.get(role)}
    return {**_as_sent(asked, object_in(record, "wire")), **({"roles": roles} if roles else {})}


def _as_sent(asked: Mapping[str, object], wire: Mapping[str, object]) -> dict[str, object]:
    dropped = {name: asked[name] for name, value in wire.items() if value is None and asked.get(name) is not None}
    return {**asked, **wire, **({"not_sent": dropped} if dropped else {})}


def models_of(plan: Plan, call: Call, record: Mapping[str, object], is_llm: bool) -> dict[str, object]:
    """Return the models asked, in each of the documented roles, and the one that reports it answered as the agent."""
    if not is_llm:
        return {"agent": call.model}
    roles: dict[str, object] = {**dict.fromkeys(("agent", *ROLES), call.model), **plan.settings.roles}
    return {**roles, "answered": record["model_answered"]} if record.get("model_answered") else roles


def _conditions(plan: Plan, call: Call) -> dict[str, object]:
    server = plan.settings.base_url if call.model in plan.detectors else plan.server(call.model)
    base = {"base_url": server} if server else {}
    return {**base, **({"thresholds": list(plan.settings.thresholds)} if plan.detectors else {})}


def _cost(plan: Plan, call: Call, record: Mapping[str, object], prices: Prices) -> tuple[float | None, str]:
    """Return the cost as the provider reports it, else by the given prices, else None with the reason."""
    if call.model in plan.detectors:
        return None, NO_TOKENS
    if record.get("provider_cost") is not None:
        return fit(float, record["provider_cost"]), ""
    if record.get("tokens") is None and record.get("cache_hit"):
        return None, "the answer came from the cache"
    if not plan.settings.roles:
        return prices.cost(call.model, _tokens(record.get("tokens")))
    spent = object_in(record, "tokens_by_role") or {"agent": None}
    each = [prices.cost(plan.settings.roles.get(role, call.model), _tokens(tokens)) for role, tokens in spent.items()]
    costs = [cost for cost, _ in each if cost is not None]
    return (sum(costs), "") if len(costs) == len(each) else (None, next(why for _, why in each if why))


def _tokens(found: object) -> dict[str, int] | None:
    return None if found is None else fit(dict[str, int], found)


def as_lines(rows: Iterable[Mapping[str, object]]) -> str:
    """Return rows as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)


# ----------------------------------------------------------------------
# A run without a single answer is removed completely, and the next attempt starts afresh.

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


# ----------------------------------------------------------------------
# The run: every question is asked once, every answer is saved, then the rows, the canaries and the trials are made.

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
    from hitmiss.llm.backends import ask_llms

    cache = ToolCache(tool_cache or default_folder()) if recorder.plan.settings.tool_cache else None
    ask_llms(recorder, folder / LOGS, cache, key)


def _finish(run: Run, plan: Plan, target: Path, prices: Prices, contracts: Mapping[str, object]) -> Outcome:
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


def _save_files(plan: Plan, folder: Path) -> list[str]:
    """Write the file of each item as a table, so that reports and reviews find it; return the table's name."""
    files = {item.id: item.file for item in plan.items if item.file}
    if not files:
        return []
    table = pl.DataFrame({"item": list(files), "file": list(files.values())})
    replace_file(folder / FILES, parquet(table))
    return [FILES]


def _media(plan: Plan, folder: Path) -> dict[str, str]:
    """Return the path of the files, relative to the run."""
    item = next((item for item in plan.items if item.path is not None and item.file), None)
    if item is None or item.path is None:
        return {}
    root = item.path.parents[len(PurePosixPath(item.file).parts) - 1]
    return {MEDIA: os.path.relpath(root, folder)}
