"""Result rows: what was stored of each call, with what the plan knows of it, in the triage document's form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from hitmiss._version import __version__
from hitmiss.llm.items import content_digest
from hitmiss.llm.plan import Call, Plan
from hitmiss.llm.prices import Prices

PACKAGES: Final = ("inspect-ai", "openai", "anthropic", "pillow", "numpy")
NO_TOKENS: Final = "the model is no language model and has no tokens"


def make_rows(plan: Plan, records: Iterable[tuple[int, Mapping[str, Any]]], prices: Prices) -> Iterator[dict[str, Any]]:
    """A row for every record, in the order of the plan."""
    calls, about = plan.calls, shared(plan)
    ordered = sorted(records, key=lambda pair: pair[0])
    wires = {calls[at].model: record["wire"] for at, record in ordered if record.get("wire")}
    for at, record in ordered:  # of a call that failed no request is known: it was made as the model's others
        yield row_of(plan, calls[at], {"wire": wires.get(calls[at].model, {}), **record}, about, prices)


def shared(plan: Plan) -> dict[str, Any]:
    """What is true of all rows: the digest of the dataset and the versions of packages."""
    found = {"hitmiss": __version__}
    for name in PACKAGES if set(plan.models) - set(plan.detectors) else PACKAGES[-2:]:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return {"dataset_content": content_digest(plan.items)[:16], "packages": found}


def row_of(
    plan: Plan, call: Call, record: Mapping[str, Any], about: Mapping[str, Any], prices: Prices
) -> dict[str, Any]:
    """One row. A failed call has an error and no verdict; an answer that was not understood has neither."""
    is_llm, item = call.model not in plan.detectors, call.item
    row: dict[str, Any] = {
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
        "models": models_of(call, record, is_llm),
        "run_config": {**_settings(plan, record, is_llm), **_conditions(plan, call), **about},
        "cache_state": plan.settings.cache_state,
        "cache_hit": bool(record.get("cache_hit", False)),
        "tool_usage": [detail["tool"] for detail in record.get("tool_details", ())],
        "tool_details": list(record.get("tool_details", ())),
        "timings": record.get("timings", {}),
        "latency_seconds": record.get("latency_seconds"),
        "retries": record.get("retries", 0),
        "timestamp": record.get("timestamp"),
        "tokens": record.get("tokens"),
    }
    if record.get("sent"):
        row["sent"] = record["sent"]
    if is_llm:
        row["prompt_hashes"] = plan.prompts.hashes(plan.kinds)
    row["cost"], row["cost_reason"] = _cost(call, record, prices, is_llm)
    if "error" in record:
        row |= {"error": record["error"], "error_type": record.get("error_type", "exception")}
    return row


def _settings(plan: Plan, record: Mapping[str, Any], is_llm: bool) -> dict[str, Any]:
    """The settings as they were sent; what was asked for and not sent stands by itself."""
    if not is_llm:
        return {}
    asked, wire = plan.settings.run_config, record.get("wire") or {}
    dropped = {name: asked[name] for name, value in wire.items() if value is None and asked.get(name) is not None}
    return {**asked, **wire, **({"not_sent": dropped} if dropped else {})}


def models_of(call: Call, record: Mapping[str, Any], is_llm: bool) -> dict[str, Any]:
    """The model asked, in each of the document's roles, and the one that says it answered."""
    if not is_llm:
        return {"agent": call.model}
    roles: dict[str, Any] = dict.fromkeys(("agent", "vision", "structuring"), call.model)
    return {**roles, "answered": record["model_answered"]} if record.get("model_answered") else roles


def _conditions(plan: Plan, call: Call) -> dict[str, Any]:
    server = plan.settings.base_url if call.model in plan.detectors else plan.server(call.model)
    base = {"base_url": server} if server else {}
    return {**base, **({"thresholds": list(plan.settings.thresholds)} if plan.detectors else {})}


def _cost(call: Call, record: Mapping[str, Any], prices: Prices, is_llm: bool) -> tuple[float | None, str]:
    """As the provider reports it, else by the prices given, else undefined with the reason."""
    if not is_llm:
        return None, NO_TOKENS
    if record.get("provider_cost") is not None:
        return float(record["provider_cost"]), ""
    if record.get("tokens") is None and record.get("cache_hit"):
        return None, "the answer came from the cache"
    return prices.cost(call.model, record.get("tokens"))


def as_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
