"""What a run came to: counts, tokens and cost of each model and mode, and what was asked for and not sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from hitmiss.core.convert import fit
from hitmiss.llm.openai_forms import object_in, objects_in

Row = Mapping[str, object]


def cells_of(rows: Collection[Row]) -> list[dict[str, object]]:
    """Return the counts for each model and mode."""
    cells: dict[tuple[str, bool], dict[str, object]] = {}
    totals: dict[tuple[str, bool], Counter[str]] = {}
    for row in rows:
        cell = str(row["model"]), bool(row["use_tools"])
        own = totals.setdefault(cell, Counter())
        tokens, calls, cost = object_in(row, "tokens"), objects_in(row, "tool_details"), row["cost"]
        own["calls"] += 1
        own["failed"] += "error" in row
        own["not understood"] += "error" not in row and row["prediction"] is None
        own["retries"] += fit(int, row["retries"])
        own["with tokens"] += bool(tokens)
        own["tokens"] += sum(fit(int, tokens[k]) for k in ("input", "output")) if tokens else 0
        own["tool calls"] += len(calls)
        own["cached"] += sum(bool(detail["cached"]) for detail in calls)
        spent = cells.setdefault(cell, {"cost": None})
        if isinstance(cost, int | float):
            spent["cost"] = fit(float, spent["cost"] or 0.0) + cost
    return [_cell(*cell, own, cells[cell]["cost"]) for cell, own in totals.items()]


def _cell(model: str, use_tools: bool, own: Counter[str], cost: object) -> dict[str, object]:
    counts = {name: own[name] for name in ("not understood", "failed", "retries")}
    return {
        "model": model,
        "tools": "tools" if use_tools else "no-tools",
        "calls": own["calls"],
        "answered": own["calls"] - own["failed"] - own["not understood"],
        **counts,
        "tokens": own["tokens"] if own["with tokens"] else None,
        "cost": None if cost is None else round(fit(float, cost), 6),
        "tool calls": own["tool calls"],
        "cached": own["cached"],
    }


def costs_unknown(rows: Collection[Row]) -> list[str]:
    """Say for how many calls the cost is not known, and why."""
    reasons = Counter(str(row["cost_reason"]) for row in rows if row["cost_reason"])
    return [
        f"cost is undefined: {reason}"
        if n == len(rows)
        else f"the cost of {n:,} of {len(rows):,} calls is unknown: {reason}"
        for reason, n in reasons.items()
    ]


def doubts_of(rows: Collection[Row]) -> list[str]:
    """Return what a reader must know: settings that were not sent, verdicts without a confidence, failures."""
    found = list(dict.fromkeys(text for row in rows for text in _dropped(row)))
    unsure = sum(row["prediction"] not in (None, "uncertain") and row["confidence"] is None for row in rows)
    if unsure:
        found.append(f"! {unsure:,} verdicts have no confidence that can be read: they count, but not in calibration")
    words = Counter(
        str(row["confidence_word"]) for row in rows if row.get("confidence_word") and row["confidence"] is None
    )
    if words:
        listed = ", ".join(f"{word} {n:,}" for word, n in words.most_common(5))
        found.append(
            f"! confidences in words ({listed}) are no numbers: --reparse --confidence-words WORD=NUMBER,… says which"
        )
    errors = Counter(row["error"] for row in rows if "error" in row).most_common(5)
    return [*found, *(f"failed {n}×: {error}" for error, n in errors)]


def _dropped(row: Row) -> Iterator[str]:
    """Describe the settings that were asked for but not sent, for the agent and for each other role."""
    config, models = object_in(row, "run_config"), object_in(row, "models")
    roles = object_in(config, "roles")
    for name, sent in ((row["model"], config), *((models[role], object_in(roles, role)) for role in roles)):
        lost = object_in(sent, "not_sent")
        what = " and ".join(f"{setting} {value}" for setting, value in lost.items())
        if lost:
            yield f"! {name} takes no {' and no '.join(lost)}: {what} was asked for and not sent"
