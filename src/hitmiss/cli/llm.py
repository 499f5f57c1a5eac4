"""`hitmiss llm`: ask language models, functions and detectors about a dataset; write rows for `hitmiss triage`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from hitmiss.cli import printing
from hitmiss.cli.shared import JSON, METRICS_OUTPUT
from hitmiss.core.ask_spec import AskSpec
from hitmiss.core.run_spec import ROOT, WEIGHTS, RunSpec
from hitmiss.core.spec import READING, RUNNING, WRITING, opt

if TYPE_CHECKING:
    from hitmiss.llm.detectors import Model
    from hitmiss.llm.estimate import CostEstimate
    from hitmiss.llm.items import Item
    from hitmiss.llm.plan import CallPlan
    from hitmiss.llm.run import Outcome

MODELS = "gpt-5.1, provider/name, a name behind --base-url; or module:function, model.onnx, hf-image:…"
DATASET = "JSON lines: id, image (or audio, or text), label, meta; without any label nothing is scored."
KEY = "Environment variable with the key (default: the provider's own, as OPENAI_API_KEY)."
PROMPT = (
    "Your own instructions (the system message), with {{positive}}, {{meta.NAME}}, …; several files are a run each."
)
VARY = "A setting and its values, each a run of its own, as temperature=0,0.7; may be repeated."

WORDS = "What a confidence in words stands for, as high=0.9,low=0.6; --reparse applies it to a finished run."
TOOL = "With --tools: a function of yours, offered as a tool; may be repeated."
MCP = "With --tools: an MCP server whose tools are offered (a command or an address); may be repeated."


def llm(
    dataset: Annotated[Path, opt(DATASET, READING, metavar="FILE", common=True)],
    models: Annotated[list[str], opt(MODELS, takes_words=True, common=True)],
    output: Annotated[
        Path, opt("The result rows (JSON lines).", WRITING, "--output", "-o", metavar="FILE", common=True)
    ] = Path("results.jsonl"),
    tools: Annotated[
        Literal["both", "tools", "no-tools"], opt("With which tools the models are asked.", common=True)
    ] = "no-tools",
    tool: Annotated[list[str] | None, opt(TOOL, metavar="FILE:FUNCTION")] = None,
    mcp: Annotated[list[str] | None, opt(MCP, metavar="COMMAND")] = None,
    trials: Annotated[int, opt("How often each item is asked.", common=True)] = 1,
    metrics_output: Annotated[Path | None, METRICS_OUTPUT] = None,
    api_key_env: Annotated[str | None, opt(KEY, metavar="NAME")] = None,
    prompt: Annotated[list[Path] | None, opt(PROMPT, metavar="FILE", takes_words=True)] = None,
    examples: Annotated[
        Path | None, opt("Items with labels that are shown first, with their answers.", metavar="FILE")
    ] = None,
    vary: Annotated[list[str] | None, opt(VARY, metavar="SETTING=VALUES")] = None,
    root: Annotated[Path | None, ROOT] = None,
    canaries: Annotated[int, opt("Items with an injected instruction, to measure obedience.")] = 0,
    tool_cache_dir: Annotated[Path | None, opt("Where results of tools are kept.")] = None,
    skip_missing_images: Annotated[bool, opt("Leave out items whose file is missing.")] = False,
    parser: Annotated[str, opt("How answers are read: lenient or strict.")] = "lenient",
    confidence_words: Annotated[str | None, opt(WORDS, metavar="WORD=NUMBER,…")] = None,
    reparse: Annotated[bool, opt("Read the answers of the run again; nothing is asked.", RUNNING)] = False,
    dry_run: Annotated[bool, opt("Only estimate calls, tokens and money.", RUNNING)] = False,
    weights: Annotated[Path | None, WEIGHTS] = None,
    outputs: Annotated[Literal["auto", "logit", "multilabel", "probability"], opt("What a detector gives.")] = "auto",
    positive_index: Annotated[int | None, opt("Output column that means fake.")] = None,
    image_size: Annotated[int | None, opt("Pixels per side that a detector needs.")] = None,
    prices: Annotated[Path | None, opt("TOML or JSON: price per million tokens, by model.", metavar="FILE")] = None,
    run: Annotated[
        Path | None, opt("The run folder (default: beside the output).", RUNNING, metavar="FOLDER", common=True)
    ] = None,
    *,
    asking: AskSpec,
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
    from hitmiss.llm.parsers import confidence_words as confidence_words_of
    from hitmiss.llm.prices import read_prices
    from hitmiss.llm.question import Question
    from hitmiss.llm.run import work_on_calls
    from hitmiss.llm.secrets import key_of

    _require_folder(metrics_output)
    asking, doubts = _checked_address(asking.changed(seed=running.seed), models)
    question, absent = Question.of(asking), list[str]()
    items = read_items(
        dataset,
        root=root,
        limit=running.limit,
        absent=absent if skip_missing_images else None,
        shuffle=(running.seed or 0) if running.shuffle else None,
        question=question,
    )
    if absent:
        printing.note(f"! {len(absent):,} items are left out because their files are missing; the first is {absent[0]}")
    for warning in (*doubts, *(find_leaks(items) if items[0].label else ())):
        printing.note(f"! {warning}")
    extraction = Extraction(positive_index, outputs)
    opened = open_models(
        models, weights, thresholds=asking.bands, image_size=image_size, extraction=extraction, question=question
    )
    shown = read_items(examples, root=root, question=question) if examples is not None else []
    words = [path.read_text(encoding="utf-8") for path in prompt or ()]
    named = {path.stem: text for path, text in zip(prompt or (), words, strict=True)}
    plan = _plan(
        items, models, tools, trials, asking, named, shown, vary or [], canaries, opened, tool or [], mcp or []
    )
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
        words=confidence_words_of(confidence_words) if confidence_words is not None else None,
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


def _require_folder(path: Path | None) -> None:
    """Refuse an output file that could not be written, before any model is asked."""
    if path is not None and not path.parent.is_dir():
        from hitmiss.core.errors import UsageError

        raise UsageError.of("no-folder/write", parent=path.parent, target_name=path.name)


def _checked_address(asking: AskSpec, models: list[str]) -> tuple[AskSpec, list[str]]:
    """Check `--base-url` and the roles; warn of every address where items and key could be read by others on the way."""
    from hitmiss.core.errors import UsageError
    from hitmiss.core.finding import Option
    from hitmiss.llm.addresses import VARIABLE, checked_address, server_of
    from hitmiss.llm.detectors import is_detector

    for role, name in asking.roles.items():
        if is_detector(name):
            raise UsageError.of("not-a-language-model", role=Option(f"{role}_model"), name=name)
    base_url = asking.base_url
    found = checked_address(base_url) if base_url else (None, None)
    names = [name for name in (*models, *asking.roles.values()) if not is_detector(name)]
    asked = {server_of(name, base_url, asking.provider) for name in names} - {None, base_url}
    others = [checked_address(str(address), VARIABLE) for address in asked]
    return asking.changed(base_url=found[0]), [doubt for _, doubt in (found, *others) if doubt]


def _plan(
    items: list[Item],
    models: list[str],
    tools: str,
    trials: int,
    asking: AskSpec,
    prompts: Mapping[str, str],
    examples: list[Item],
    vary: list[str],
    canaries: int,
    opened: Mapping[str, Model],
    own: list[str],
    servers: list[str],
) -> CallPlan:
    from hitmiss.core.errors import UsageError
    from hitmiss.llm.canaries import make_canaries
    from hitmiss.llm.mcp_servers import describe
    from hitmiss.llm.plan import CallPlan, kinds_with_tools, matrix, modes_of
    from hitmiss.llm.prompts import Prompts
    from hitmiss.llm.question import Question
    from hitmiss.llm.tools.own import open_tools

    if canaries and not items[0].label:
        raise UsageError.of("no-labels/option", option="--canaries")
    question = Question.of(asking)
    words = {name: Prompts.of(text, question, examples) for name, text in prompts.items()}
    first = next(iter(words.values()), Prompts.of(None, question, examples))
    own_tools = open_tools(own)
    described = describe(servers, [tool.name for tool in own_tools])
    asked = [name for name in models if name not in opened]
    several = words if len(words) > 1 else {"": first}
    variants = matrix(asked, several, asking, _varied(vary)) if len(words) > 1 or vary else {}
    names = [name for model in models for name in ([n for n, v in variants.items() if v.model == model] or [model])]
    identities = {name: model.identity for name, model in opened.items()}
    modes = modes_of(tools)
    tested = make_canaries(items, canaries, question, kinds_with_tools(modes, bool(own or servers)))
    return CallPlan(
        items, names, modes, trials, asking, first, tested, identities, variants, own_tools=own_tools, servers=described
    )


def _varied(texts: list[str]) -> dict[str, list[object]]:
    """Return the settings that are varied, with their values."""
    from hitmiss.core.errors import UsageError

    found: dict[str, list[object]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not values or name not in ("temperature", "max_tokens", "reasoning_effort", "max_iterations"):
            raise UsageError.of("not-varied", text=text)
        found[name] = [value if name == "reasoning_effort" else _number(value, text) for value in values.split(",")]
    return found


def _number(value: str, text: str) -> float | int:
    from hitmiss.core.errors import UsageError

    try:
        return int(value) if value.strip().isdecimal() else float(value)
    except ValueError:
        raise UsageError.of("not-varied", text=text) from None


def _write_metrics(outcome: Outcome, path: Path) -> None:
    import time

    from hitmiss.core.errors import UsageError
    from hitmiss.protocols.triage import evaluate_trials, write_metrics

    if outcome.trials is None:
        raise UsageError.of("no-labels/option", option="--metrics-output")
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
    from hitmiss.llm.summary import cells_of, costs_unknown, doubts_of

    rows, cells, rates = outcome.rows, cells_of(outcome.rows), outcome_rates(outcome.rows)
    if json:
        told, counted = ([printing.plain(one) for one in own] for own in (outcome.obedience, rates))
        about = {"run": str(outcome.folder), "output": str(outcome.output), "canaries": told, "outcomes": counted}
        printing.out_json({"schema": 1, **about, "cells": list(cells), "ledger": printing.plain(outcome.account)})
        return
    header = ["model", "tools", "calls", "answered", "not understood", "failed", "retries", "tokens", "cost"]
    table = [[*(str(c[name]) for name in header), f"{c['tool calls']} ({c['cached']})"] for c in cells]
    printing.out_table([*header, "tool calls (cached)"], table)
    for line in costs_unknown(rows):
        printing.out(line)
    for rate in rates:
        if rate.outcome != "answered":
            printing.out(f"{rate.model}|{rate.mode}: {rate}")
    if outcome.account.requests:
        printing.out(f"ledger: {outcome.account}")
    for line in doubts_of(rows):
        printing.note(line)
    for found in outcome.obedience:
        printing.out(f"{found}" if found.part else f"canaries: {found}")
    if not canaries and outcome.trials is not None:
        printing.note("whether instructions inside items are obeyed was not measured; --canaries 20 measures it")
    then = f"score them: hitmiss triage {outcome.output}" if outcome.trials is not None else "the items have no labels"
    printing.out(f"{outcome.output}: {len(rows):,} rows; {then}")
