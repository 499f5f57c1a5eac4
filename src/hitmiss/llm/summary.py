"""What a run came to: counts, tokens and cost of each model and mode, and what was asked for and not sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from hitmiss.core.convert import fit
from hitmiss.llm.openai_forms import object_in, objects_in

Row = Mapping[str, object]


def cells_of(rows: Sequence[Row]) -> list[dict[str, object]]:
    """Return the counts for each model and mode."""
    groups: dict[tuple[str, bool], list[Row]] = {}
    for row in rows:
        groups.setdefault((str(row["model"]), bool(row["use_tools"])), []).append(row)
    return [_cell(model, use_tools, own) for (model, use_tools), own in groups.items()]


def _cell(model: str, use_tools: bool, rows: list[Row]) -> dict[str, object]:
    failed = sum("error" in row for row in rows)
    unparsed = sum("error" not in row and row["prediction"] is None for row in rows)
    known = [cost for row in rows if isinstance(cost := row["cost"], int | float)]
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


def costs_unknown(rows: Sequence[Row]) -> list[str]:
    """Say for how many calls the cost is not known, and why."""
    reasons = Counter(str(row["cost_reason"]) for row in rows if row["cost_reason"])
    return [
        f"cost is undefined: {reason}"
        if n == len(rows)
        else f"the cost of {n:,} of {len(rows):,} calls is unknown: {reason}"
        for reason, n in reasons.items()
    ]


def doubts_of(rows: Sequence[Row]) -> list[str]:
    """Return what a reader must know: settings that were not sent, verdicts without a confidence, failures."""
    found = list(dict.fromkeys(text for row in rows for text in _dropped(row)))
    unsure = sum(row["prediction"] not in (None, "uncertain") and row["confidence"] is None for row in rows)
    if unsure:
        found.append(f"! {unsure:,} verdicts have no confidence that can be read: they count, but not in calibration")
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
