"""`hitmiss llm`: ask language models, functions and detectors about a dataset; write rows for `hitmiss triage`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from hitmiss.cli import printing
from hitmiss.cli.shared import JSON, METRICS_OUTPUT, ROOT, WEIGHTS
from hitmiss.core.run_spec import RunSpec
from hitmiss.core.spec import MEASURING, OTHERS, READING, RUNNING, WRITING, opt

if TYPE_CHECKING:
    from hitmiss.llm.detectors import Model
    from hitmiss.llm.estimate import CostEstimate
    from hitmiss.llm.items import Item
    from hitmiss.llm.plan import CallPlan, Settings
    from hitmiss.llm.run import Outcome

MODELS = "gpt-5.1, provider/name, a name behind --base-url; or module:function, model.onnx, hf-image:…"
DATASET = "JSON lines: id, image (or audio, or text), label, meta."
KEY = "Environment variable with the key (default: the provider's own, as OPENAI_API_KEY)."
VISION = "Another model sees each item and describes it; those of --models judge by what it says."
STRUCTURING = "Another model puts what those of --models say into the verdict's form."
BANDS = "For functions and detectors: real below the first, fake from the second on."


def llm(
    dataset: Annotated[Path, opt(DATASET, READING, metavar="FILE", common=True)],
    models: Annotated[list[str], opt(MODELS, takes_words=True, common=True)],
    output: Annotated[
        Path, opt("The result rows (JSON lines).", WRITING, "--output", "-o", metavar="FILE", common=True)
    ] = Path("results.jsonl"),
    tools: Annotated[
        Literal["both", "tools", "no-tools"], opt("With which tools the models are asked.", common=True)
    ] = "no-tools",
    trials: Annotated[int, opt("How often each item is asked.", common=True)] = 1,
    temperature: Annotated[float, opt("Temperature of the answers; 0 if the model allows it.", common=True)] = 0.0,
    metrics_output: Annotated[Path | None, METRICS_OUTPUT] = None,
    base_url: Annotated[str | None, opt("Any server that speaks the OpenAI protocol.", common=True)] = None,
    api_key_env: Annotated[str | None, opt(KEY, metavar="NAME")] = None,
    provider: Annotated[str | None, opt("Provider of inspect_ai for all models.")] = None,
    prompt: Annotated[Path | None, opt("Your own instructions (the system message).", metavar="FILE")] = None,
    root: Annotated[Path | None, ROOT] = None,
    canaries: Annotated[int, opt("Items with an injected instruction, to measure obedience.")] = 0,
    disable_tool_cache: Annotated[
        bool, opt("Compute every tool call, or keep results.", OTHERS, "--disable-tool-cache/--enable-tool-cache")
    ] = False,
    tool_cache_dir: Annotated[Path | None, opt("Where results of tools are kept.")] = None,
    answer_cache: Annotated[bool, opt("Take known answers from inspect_ai's cache.")] = False,
    max_iterations: Annotated[int, opt("Most requests about one item.")] = 15,
    max_tokens: Annotated[int | None, opt("Most tokens of an answer.")] = None,
    reasoning_effort: Annotated[str | None, opt("Reasoning effort as the provider names it, low to high.")] = None,
    max_connections: Annotated[
        int | None, opt("Requests at once (default: adaptive).", OTHERS, "--max-connections", "--num-workers")
    ] = None,
    skip_missing_images: Annotated[bool, opt("Leave out items whose file is missing.")] = False,
    vision_model: Annotated[str | None, opt(VISION)] = None,
    structuring_model: Annotated[str | None, opt(STRUCTURING)] = None,
    max_retries: Annotated[int, opt("How often a failed request is sent again.")] = 6,
    timeout: Annotated[int, opt("Seconds for one request with its retries.")] = 600,
    attempt_timeout: Annotated[int, opt("Seconds for one attempt; then it is repeated.")] = 150,
    parser: Annotated[str, opt("How answers are read: lenient or strict.")] = "lenient",
    reparse: Annotated[bool, opt("Read the answers of the run again; nothing is asked.", RUNNING)] = False,
    dry_run: Annotated[bool, opt("Only estimate calls, tokens and money.", RUNNING)] = False,
    requests_per_minute: Annotated[int | None, opt("Most requests in a minute.", RUNNING)] = None,
    tokens_per_minute: Annotated[int | None, opt("Most tokens in a minute, as far as known.", RUNNING)] = None,
    thresholds: Annotated[list[float] | None, opt(BANDS, MEASURING, takes_words=True)] = None,
    weights: Annotated[Path | None, WEIGHTS] = None,
    outputs: Annotated[Literal["auto", "logit", "multilabel", "probability"], opt("What a detector gives.")] = "auto",
    positive_index: Annotated[int | None, opt("Output column that means fake.")] = None,
    image_size: Annotated[int | None, opt("Pixels per side that a detector needs.")] = None,
    prices: Annotated[Path | None, opt("TOML or JSON: price per million tokens, by model.", metavar="FILE")] = None,
    run: Annotated[
        Path | None, opt("The run folder (default: beside the output).", RUNNING, metavar="FOLDER", common=True)
    ] = None,
    *,
    running: RunSpec,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Ask language models, functions or detectors whether items are real or fake. Runs can be resumed after a crash.

    $ hitmiss llm --dataset dataset.jsonl --models openai/gpt-5 --output run.jsonl
    """
    from hitmiss.cli.progress_bar import Progress
    from hitmiss.detection.outputs import Extraction
    from hitmiss.llm.detectors import open_models
    from hitmiss.llm.estimate import estimate_run
    from hitmiss.llm.items import read_items
    from hitmiss.llm.leaks import find_leaks
    from hitmiss.llm.plan import Settings
    from hitmiss.llm.prices import read_prices
    from hitmiss.llm.run import work_on_calls
    from hitmiss.llm.secrets import key_of

    _require_folder(metrics_output)
    roles = {"vision_model": vision_model, "structuring_model": structuring_model}
    _require_language_models(roles)
    address, doubts = _address([*models, *filter(None, roles.values())], base_url, provider)
    bands = _bands(thresholds)
    settings = Settings(
        temperature=temperature,
        max_tokens=max_tokens,
        reasoning_effort=reasoning_effort,
        seed=running.seed,
        max_iterations=max_iterations,
        thresholds=bands,
        base_url=address,
        provider=provider,
        vision_model=vision_model,
        structuring_model=structuring_model,
        tool_cache=not disable_tool_cache,
        answer_cache=answer_cache,
        max_connections=max_connections,
        max_retries=max_retries,
        timeout=timeout,
        attempt_timeout=attempt_timeout,
        requests_per_minute=requests_per_minute,
        tokens_per_minute=tokens_per_minute,
    )
    absent: list[str] = []
    order = (running.seed or 0) if running.shuffle else None
    items = read_items(
        dataset, root=root, limit=running.limit, absent=absent if skip_missing_images else None, shuffle=order
    )
    if absent:
        printing.note(f"! {len(absent):,} items are left out because their files are missing; the first is {absent[0]}")
    for warning in (*doubts, *find_leaks(items)):
        printing.note(f"! {warning}")
    extraction = Extraction(positive_index, outputs)
    opened = open_models(models, weights, thresholds=bands, image_size=image_size, extraction=extraction)
    plan = _plan(items, models, tools, trials, settings, prompt, canaries, opened)
    if dry_run:
        _emit_estimate(estimate_run(plan, read_prices(prices), run or output.with_suffix(".run"), running), json)
        return
    outcome = work_on_calls(
        plan,
        running,
        output=output,
        folder=run,
        models=opened,
        key=key_of(api_key_env),
        prices=read_prices(prices),
        tool_cache=tool_cache_dir,
        parser=parser,
        reparse=reparse,
        report=Progress(),
        tell=printing.note,
    )
    if outcome is None:
        printing.out("other processes are still working on it; the last one finishes the run")
        return
    if metrics_output is not None:
        _write_metrics(outcome, metrics_output)
    _emit(outcome, canaries, json)


def _require_language_models(roles: dict[str, str | None]) -> None:
    from hitmiss.core.errors import UsageError
    from hitmiss.core.finding import Option
    from hitmiss.llm.detectors import is_detector

    for role, name in roles.items():
        if name is not None and is_detector(name):
            raise UsageError.of("role", role=Option(role), name=name)


def _require_folder(path: Path | None) -> None:
    """Refuse an output file that could not be written, before any model is asked."""
    if path is not None and not path.parent.is_dir():
        from hitmiss.core.errors import UsageError

        raise UsageError.of("no-folder-write-into", parent=path.parent, path_name=path.name)


def _address(models: list[str], base_url: str | None, provider: str | None) -> tuple[str | None, list[str]]:
    """Check `--base-url`, and warn of every address where items and key could be read by others on the way."""
    from hitmiss.llm.addresses import VARIABLE, checked_address, server_of
    from hitmiss.llm.detectors import is_detector

    found = checked_address(base_url) if base_url else (None, None)
    asked = {server_of(m, base_url, provider) for m in models if not is_detector(m)} - {None, base_url}
    others = [checked_address(str(address), VARIABLE) for address in asked]
    return found[0], [doubt for _, doubt in (found, *others) if doubt]


def _bands(thresholds: list[float] | None) -> tuple[float, float]:
    from hitmiss.core.errors import UsageError

    if thresholds is None:
        return 0.5, 0.5
    if len(thresholds) != 2:
        raise UsageError.of("two-thresholds", n_thresholds=len(thresholds))
    return thresholds[0], thresholds[1]


def _plan(
    items: list[Item],
    models: list[str],
    tools: str,
    trials: int,
    settings: Settings,
    prompt: Path | None,
    canaries: int,
    opened: Mapping[str, Model],
) -> CallPlan:
    from hitmiss.llm.canaries import make_canaries
    from hitmiss.llm.plan import CallPlan, modes_of
    from hitmiss.llm.prompts import Prompts

    words = Prompts() if prompt is None else Prompts(system=prompt.read_text(encoding="utf-8"))
    identities = {name: model.identity for name, model in opened.items()}
    return CallPlan(
        items, models, modes_of(tools), trials, settings, words, make_canaries(items, canaries), detectors=identities
    )


def _write_metrics(outcome: Outcome, path: Path) -> None:
    import time

    from hitmiss.protocols.triage import evaluate_trials, write_metrics

    write_metrics(evaluate_trials(outcome.trials, bootstrap=0), path, made_at=time.time())


def _emit_estimate(found: Sequence[CostEstimate], json: bool) -> None:
    """Print what a run would take."""
    if json:
        printing.out_json({"schema": 1, "dry_run": True, "cells": [printing.plain(cell) for cell in found]})
        return
    header = ["model", "tools", "calls", "requests", "input tokens", "output tokens", "cost"]
    rows = [[c.model, c.mode, c.calls, c.requests, c.input_tokens, c.output_tokens, c.cost] for c in found]
    printing.out_table(header, [[str(value) for value in row] for row in rows])
    if not all(cell.is_measured for cell in found):
        printing.note(
            "assumed: 4 characters a token, 1,000 tokens a picture or sound, 200 tokens an answer, two requests where "
            "tools are used"
        )
    if any(cell.cost is None for cell in found):
        printing.note("cost is unknown: --prices FILE gives the price of a million tokens, by model")
    printing.out("nothing was asked")


def _emit(outcome: Outcome, canaries: int, json: bool) -> None:
    from hitmiss.llm.outcomes import outcome_rates

    cells = _cells(outcome)
    if json:
        told = [printing.plain(o) for o in outcome.obedience]
        rates = [printing.plain(rate) for rate in outcome_rates(outcome.rows)]
        about = {"run": str(outcome.folder), "output": str(outcome.output), "canaries": told, "outcomes": rates}
        printing.out_json({"schema": 1, **about, "cells": list(cells), "ledger": printing.plain(outcome.account)})
        return
    header = [
        "model",
        "tools",
        "calls",
        "answered",
        "not understood",
        "failed",
        "retries",
        "tokens",
        "cost",
        "tool calls (cached)",
    ]
    rows = [[str(cell[name.split(" (")[0]]) for name in header[:-1]] for cell in cells]
    printing.out_table(
        header, [[*row, f"{c['tool calls']} ({c['cached']})"] for row, c in zip(rows, cells, strict=True)]
    )
    reasons = Counter(str(row["cost_reason"]) for row in outcome.rows if row["cost_reason"])
    for reason, n in reasons.items():
        what = (
            "cost is undefined"
            if n == len(outcome.rows)
            else f"the cost of {n:,} of {len(outcome.rows):,} calls is unknown"
        )
        printing.out(f"{what}: {reason}")
    for rate in outcome_rates(outcome.rows):
        if rate.outcome != "answered":
            printing.out(f"{rate.model}|{rate.mode}: {rate}")
    if outcome.account.requests:
        printing.out(f"ledger: {outcome.account}")
    for text in dict.fromkeys(text for row in outcome.rows for text in _dropped(row)):
        printing.note(text)
    unsure = sum(row["prediction"] in ("real", "fake") and row["confidence"] is None for row in outcome.rows)
    if unsure:
        printing.note(f"! {unsure:,} verdicts have no confidence that can be read: they count, but not in calibration")
    for error, n in Counter(row["error"] for row in outcome.rows if "error" in row).most_common(5):
        printing.note(f"failed {n}×: {error}")
    for found in outcome.obedience:
        printing.out(f"canaries: {found}")
    if not canaries:
        printing.note("whether instructions inside items are obeyed was not measured; --canaries 20 measures it")
    printing.out(f"{outcome.output}: {len(outcome.rows):,} rows; score them: hitmiss triage {outcome.output}")


def _dropped(row: Mapping[str, object]) -> Iterator[str]:
    """Describe the settings that were asked for but not sent, for the agent and for each other role."""
    from hitmiss.llm.openai_forms import object_in

    config, models = object_in(row, "run_config"), object_in(row, "models")
    roles = object_in(config, "roles")
    for name, sent in ((row["model"], config), *((models[role], object_in(roles, role)) for role in roles)):
        lost = object_in(sent, "not_sent")
        what = " and ".join(f"{setting} {value}" for setting, value in lost.items())
        if lost:
            yield f"! {name} takes no {' and no '.join(lost)}: {what} was asked for and not sent"


def _cells(outcome: Outcome) -> list[dict[str, object]]:
    """Return the counts for each model and mode."""
    groups: dict[tuple[str, bool], list[dict[str, object]]] = {}
    for row in outcome.rows:
        groups.setdefault((str(row["model"]), bool(row["use_tools"])), []).append(row)
    return [_cell(model, use_tools, rows) for (model, use_tools), rows in groups.items()]


def _cell(model: str, use_tools: bool, rows: list[dict[str, object]]) -> dict[str, object]:
    from hitmiss.core.convert import fit
    from hitmiss.llm.openai_forms import object_in, objects_in

    failed = sum("error" in row for row in rows)
    unparsed = sum("error" not in row and row["prediction"] is None for row in rows)
    costs = [row["cost"] for row in rows]
    known = [cost for cost in costs if isinstance(cost, int | float)]
    tokens = [fit(int, object_in(row, "tokens")[k]) for row in rows if row["tokens"] for k in ("input", "output")]
    calls = [detail for row in rows for detail in objects_in(row, "tool_details")]
    return {
        "model": model,
        "tools": "tools" if use_tools else "no-tools",
        "calls": len(rows),
        "answered": len(rows) - failed - unparsed,
        "not understood": unparsed,
        "failed": failed,
        "retries": sum(fit(int, row["retries"]) for row in rows),
        "tokens": sum(tokens) if tokens else None,
        "cost": round(sum(known), 6) if known else None,
        "tool calls": len(calls),
        "cached": sum(bool(detail["cached"]) for detail in calls),
    }
