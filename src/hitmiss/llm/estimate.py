"""What a run of language models would take, before anything is asked: calls, requests, tokens and money."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hitmiss.core.errors import HitmissError
from hitmiss.core.run_spec import RunSpec
from hitmiss.llm.items import Item
from hitmiss.llm.ledger import read_ledger
from hitmiss.llm.plan import Call, CallPlan
from hitmiss.llm.prices import Prices
from hitmiss.runs.manifest import segments
from hitmiss.runs.segments import SegmentReader

CHARACTERS: Final = 4
"""Characters per token, assumed."""
MEDIA_TOKENS: Final = 1000
"""Tokens of a picture or a sound, assumed."""
ANSWER_TOKENS: Final = 200
"""Tokens of an answer, assumed where --max-tokens says no less."""
TOOL_TOKENS: Final = 800
"""Tokens of the tools and their results in the second request, assumed."""


@dataclass(frozen=True)
class CostEstimate:
    """What one model in one mode would take."""

    model: str
    mode: str
    calls: int
    requests: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    is_measured: bool = False
    """Whether the tokens are the mean of what the run has used so far, and not an assumption."""


def estimate_run(plan: CallPlan, prices: Prices, folder: Path, spec: RunSpec) -> list[CostEstimate]:
    """Estimate what is left to do of a run; functions and detectors cost nothing."""
    done = _done(folder, spec.retry) if spec.resume or spec.join else set()
    groups: dict[tuple[str, bool], list[Call]] = {}
    for call in plan.calls:
        if call.model not in plan.detectors and call.key not in done:
            groups.setdefault((call.model, call.use_tools), []).append(call)
    return [_estimate(plan, prices, folder, *key, calls) for key, calls in groups.items()]


def _estimate(
    plan: CallPlan, prices: Prices, folder: Path, model: str, use_tools: bool, calls: Sequence[Call]
) -> CostEstimate:
    rounds = (2 if use_tools else 1) + len(plan.settings.roles)
    requests = len(calls) * rounds
    known = _used(folder, plan.variant(model).model)
    if known:
        given, made = (round(sum(pair[i] for pair in known) / len(known) * requests) for i in (0, 1))
    else:
        words = plan.variant(model).prompts
        prompt = len(words.system) + max(map(len, words.user.values())) + CHARACTERS * sum(map(_size, words.examples))
        given = sum(rounds * (prompt // CHARACTERS + _size(call.item)) for call in calls)
        given += TOOL_TOKENS * len(calls) * use_tools
        made = requests * min(plan.settings.max_tokens or ANSWER_TOKENS, ANSWER_TOKENS)
    cost = prices.cost(plan.variant(model).model, {"input": given, "output": made})[0]
    mode = "tools" if use_tools else "no-tools"
    return CostEstimate(model, mode, len(calls), requests, given, made, cost, bool(known))


def _size(item: Item) -> int:
    return len(item.text or "") // CHARACTERS if item.kind == "text" else MEDIA_TOKENS


def _used(folder: Path, model: str) -> list[tuple[int, int]]:
    """Return the tokens of each answered request of a model in the run so far."""
    found = (e["outcome"] for e in read_ledger(folder) if e["model"] in (model, model.rpartition("/")[2]))
    tokens = [o["tokens"] for o in found if isinstance(o, dict) and isinstance(o.get("tokens"), dict)]
    return [(t["input"], t["output"]) for t in tokens]


def _done(folder: Path, retry: bool) -> set[str]:
    try:
        records = [record for path in segments(folder) for record in SegmentReader(path).records()]
    except HitmissError:
        return set()
    return {str(record["item"]) for record in records if "error" not in record or not retry}
