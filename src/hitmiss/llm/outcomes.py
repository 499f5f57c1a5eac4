"""What came of a call: answered, abstained, refused, unparsed, cut, filtered or failed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from hitmiss.engine.interval import share_interval

OUTCOMES: Final = ("answered", "abstained", "refused", "unparsed", "cut", "filtered", "failed")
CUT: Final = ("max_tokens", "model_length")
REFUSAL: Final = re.compile(
    r"\s*(i'?m sorry|i am sorry|sorry,|i (can ?not|can'?t|won'?t|am unable|'m unable|must decline)|"
    r"(es )?tut mir leid|ich kann (das|dies|hier)?\s*nicht|je suis désolé|je ne peux pas|lo siento|no puedo)",
    re.IGNORECASE,
)
"""How refusals begin, in English, German, French and Spanish."""


def outcome_of(record: Mapping[str, object]) -> str:
    """Return what came of a call, by its record.

    >>> outcome_of({"prediction": "fake"}), outcome_of({"prediction": "uncertain"}), outcome_of({"error": "429"})
    ('answered', 'abstained', 'failed')
    >>> outcome_of({"prediction": None, "answer": "I cannot help with that.", "stop_reason": "stop"})
    'refused'
    >>> outcome_of({"prediction": None, "answer": '{"verdict": "fa', "stop_reason": "max_tokens"})
    'cut'
    """
    if "error" in record:
        return "failed"
    if record.get("prediction") is not None:
        return "abstained" if record["prediction"] == "uncertain" else "answered"
    stop = str(record.get("stop_reason", ""))
    if stop == "content_filter":
        return "filtered"
    if stop in CUT:
        return "cut"
    return "refused" if record.get("refusal") or REFUSAL.match(str(record.get("answer", ""))) else "unparsed"


@dataclass(frozen=True)
class OutcomeRate:
    """How often calls of one model and mode came to this, with the interval over items."""

    model: str
    mode: str
    outcome: str
    count: int
    calls: int
    share: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.outcome} {self.count:,} of {self.calls:,} ({self.share:.3f} [{self.low:.3f}, {self.high:.3f}])"


def outcome_rates(rows: Collection[Mapping[str, object]]) -> list[OutcomeRate]:
    """Return the rate of every outcome that occurs; repeated calls about an item count as that item's own share."""
    groups: dict[tuple[str, bool], dict[str, Counter[str]]] = {}
    for row in rows:
        own = groups.setdefault((str(row["model"]), bool(row["use_tools"])), {})
        own.setdefault(str(row["id"]), Counter())[str(row["outcome"])] += 1
    found = []
    for (model, use_tools), by_item in groups.items():
        calls = sum(said.total() for said in by_item.values())
        for outcome in OUTCOMES:
            count = sum(said[outcome] for said in by_item.values())
            if not count:
                continue
            total = sum(said[outcome] / said.total() for said in by_item.values())
            low, high = share_interval(total, len(by_item))
            mode = "tools" if use_tools else "no-tools"
            share = total / len(by_item)
            found.append(OutcomeRate(model, mode, outcome, count, calls, share, float(low), float(high)))
    return found
