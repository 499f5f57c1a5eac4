"""Result rows: what was stored of each call, with the plan's information, in the form of the triage document."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from hitmiss._version import __version__
from hitmiss.core.convert import fit
from hitmiss.io.verdicts import UNCERTAIN
from hitmiss.llm.items import content_digest
from hitmiss.llm.openai_forms import object_in, objects_in
from hitmiss.llm.outcomes import outcome_of
from hitmiss.llm.parsers import LENIENT, STRICT, Parser, parse_record
from hitmiss.llm.plan import Call, CallPlan
from hitmiss.llm.prices import Prices
from hitmiss.llm.prompts import ROLES
from hitmiss.runs.store import Run

PACKAGES: Final = ("inspect-ai", "openai", "anthropic", "mcp", "pillow", "numpy")
READINGS: Final = ("strict", "first", "agent")
"""Other readings of an answer: a row has the verdict of each that differs in how it is made."""
NO_TOKENS: Final = "the model is not a language model and has no tokens"


class StoredRows(Collection[dict[str, object]]):
    """The rows of a file: read anew each time, so that only one is in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            self._n = sum(1 for _ in file)

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[dict[str, object]]:
        with self.path.open(encoding="utf-8") as file:
            yield from map(json.loads, file)

    def __contains__(self, row: object) -> bool:
        return any(own == row for own in self)


def make_rows(plan: CallPlan, run: Run, prices: Prices, parser: Parser = LENIENT) -> Iterator[dict[str, object]]:
    """Yield a row for every record of a run, model by model."""
    calls, about = plan.calls, {**shared(plan), "parser": str(parser)}
    wires = _wires(plan, run)
    question = plan.prompts.question
    for at, record in run.records_of(plan.row_order):
        read = parse_record(record, parser, question)
        read |= _other_readings(read, parser, plan)
        yield row_of(plan, calls[at], {**wires.get(calls[at].model, {}), **read}, about, prices)


def _other_readings(read: Mapping[str, object], parser: Parser, plan: CallPlan) -> dict[str, object]:
    """Return what else could be read: by the strictest parser, before the repair, before another model's structuring."""
    if read.get("answer") is None or "error" in read:
        return {}
    question = plan.prompts.question

    def verdict(text: object, by: Parser) -> object:
        return parse_record({**read, "answer": text}, by, question)["prediction"]

    found = {"strict": verdict(read["answer"], STRICT)}
    if plan.settings.repair:
        found["first"] = verdict(read["first_answer"], parser) if "first_answer" in read else read["prediction"]
    if "raw" in read:
        found["agent"] = verdict(read["raw"], parser)
    return found


def _wires(plan: CallPlan, run: Run) -> dict[str, dict[str, object]]:
    """Return the settings that were sent to each model.

    The request of a failed call may be unknown: it is taken to have had the settings of the model's other calls.
    """
    found: dict[str, dict[str, object]] = {}
    for at, record in run.records():
        if record.get("wire"):
            names = ("wire", "wire_by_role")
            found.setdefault(plan.calls[at].model, {n: record[n] for n in names if record.get(n)})
        if len(found) == len(set(plan.models) - set(plan.detectors)):
            break
    return found


def shared(plan: CallPlan) -> dict[str, object]:
    """Return what is true of all rows: the digest of the dataset and the versions of packages."""
    found = {"hitmiss": __version__}
    for name in PACKAGES if set(plan.models) - set(plan.detectors) else PACKAGES[-2:]:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return {"dataset_content": content_digest(plan.items)[:16], "packages": found}


def row_of(
    plan: CallPlan, call: Call, record: Mapping[str, object], about: Mapping[str, object], prices: Prices
) -> dict[str, object]:
    """Return one row. A failed call has an error and no verdict; an answer that was not understood has neither."""
    is_llm, item = call.model not in plan.detectors, call.item

    def word(name: object) -> str | None:
        """Return a class in the words of the question; an abstention is always called uncertain."""
        return UNCERTAIN if name == UNCERTAIN else plan.prompts.question.word(None if name is None else str(name))

    row: dict[str, object] = {
        "id": item.id,
        "model": call.model,
        "use_tools": call.use_tools,
        "trial": call.trial,
        **({"label": word(item.label)} if item.label else {}),
        **({item.kind: item.file or item.text} if item.file or item.text else {}),
        "meta": dict(item.meta),
        "prediction": word(record.get("prediction")),
        "parsed_verdict": word(record.get("prediction")),
        **{f"{name}_verdict": word(record[name]) for name in READINGS if name in record},
        "confidence": record.get("confidence"),
        "rationale": record.get("rationale", ""),
        "raw_analysis": record.get("raw", record.get("answer", "")),
        "problem": record.get("problem", ""),
        "outcome": outcome_of(record),
        "models": models_of(plan, call, record, is_llm),
        "run_config": {**_settings(plan, call, record, is_llm), **_conditions(plan, call), **about},
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
    for name in ("sent", "turns", "first_answer", "confidence_word", "confidence_logprobs"):
        if record.get(name):
            row[name] = record[name]
    if is_llm:
        row["prompt_hashes"] = plan.prompt_hashes[call.model]
    for name in ("description", "tokens_by_role"):
        if name in record:
            row[name] = record[name]
    row["cost"], row["cost_reason"] = cost_of(plan, call, record, prices)
    if "error" in record:
        row |= {"error": record["error"], "error_type": record.get("error_type", "exception")}
    return row


def _settings(plan: CallPlan, call: Call, record: Mapping[str, object], is_llm: bool) -> dict[str, object]:
    """Return the settings as they were sent to the agent, and to each other role under its name.

    Those that were requested and not sent are listed apart.
    """
    if not is_llm:
        return {}
    asked, by_role = plan.variant(call.model).settings.run_config, object_in(record, "wire_by_role")
    roles = {role: _as_sent(asked, object_in(by_role, role)) for role in plan.settings.roles if by_role.get(role)}
    return {**_as_sent(asked, object_in(record, "wire")), **({"roles": roles} if roles else {})}


def _as_sent(asked: Mapping[str, object], wire: Mapping[str, object]) -> dict[str, object]:
    dropped = {name: asked[name] for name, value in wire.items() if value is None and asked.get(name) is not None}
    return {**asked, **wire, **({"not_sent": dropped} if dropped else {})}


def models_of(plan: CallPlan, call: Call, record: Mapping[str, object], is_llm: bool) -> dict[str, object]:
    """Return the models asked, in each of the documented roles, and the one that reports it answered as the agent."""
    if not is_llm:
        return {"agent": call.model}
    roles: dict[str, object] = {
        **dict.fromkeys(("agent", *ROLES), plan.variant(call.model).model),
        **plan.settings.roles,
    }
    return {**roles, "answered": record["model_answered"]} if record.get("model_answered") else roles


def _conditions(plan: CallPlan, call: Call) -> dict[str, object]:
    server = plan.settings.base_url if call.model in plan.detectors else plan.server(call.model)
    base = {"base_url": server} if server else {}
    return {**base, **({"thresholds": list(plan.settings.thresholds)} if plan.detectors else {})}


def cost_of(plan: CallPlan, call: Call, record: Mapping[str, object], prices: Prices) -> tuple[float | None, str]:
    """Return the cost as the provider reports it, else by the given prices, else None with the reason."""
    if call.model in plan.detectors:
        return None, NO_TOKENS
    if record.get("provider_cost") is not None:
        return fit(float, record["provider_cost"]), ""
    if record.get("tokens") is None and record.get("cache_hit"):
        return None, "the answer came from the cache"
    if not plan.settings.roles:
        return prices.cost(plan.variant(call.model).model, _tokens(record.get("tokens")))
    spent = object_in(record, "tokens_by_role") or {"agent": None}
    each = [
        prices.cost(plan.settings.roles.get(role, plan.variant(call.model).model), _tokens(tokens))
        for role, tokens in spent.items()
    ]
    costs = [cost for cost, _ in each if cost is not None]
    return (sum(costs), "") if len(costs) == len(each) else (None, next(why for _, why in each if why))


def tokens_used(record: Mapping[str, object]) -> int:
    """Return the tokens of all requests of a call; 0 if they are not known."""
    tokens = _tokens(record.get("tokens")) or {}
    return tokens.get("input", 0) + tokens.get("output", 0)


def _tokens(found: object) -> dict[str, int] | None:
    return None if found is None else fit(dict[str, int], found)


def as_lines(rows: Iterable[Mapping[str, object]]) -> Iterator[bytes]:
    """Yield rows as JSON lines."""
    for row in rows:
        yield json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n"
