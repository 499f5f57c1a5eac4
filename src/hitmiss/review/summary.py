"""How far a review is and how well people agree."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import median
from typing import Any

from hitmiss.review.adjudication import disputes
from hitmiss.review.queue import UNSURE, VERDICTS
from hitmiss.review.store import Store
from hitmiss.stats.agreement import Agreement, agreement, answer_counts


@dataclass(frozen=True)
class Pace:
    """What one reviewer has done: verdicts, and the median seconds an item."""

    name: str
    role: str
    n: int
    seconds: float | None


@dataclass(frozen=True)
class Summary:
    """The state of a review. `done` items have all their verdicts; `decided` disputes were settled by an adjudicator.

    `agreement` takes "cannot tell" as an answer of its own, `decided_agreement` as no answer.
    """

    items: int
    per_item: int
    done: int
    verdicts: int
    said: dict[str, int]
    disputed: int
    decided: int
    seconds: float | None
    reviewers: tuple[Pace, ...]
    agreement: Agreement
    decided_agreement: Agreement

    @property
    def is_done(self) -> bool:
        """Whether every item has its verdicts."""
        return self.done == self.items

    @property
    def wanted(self) -> int:
        """How many verdicts there will be."""
        return self.items * self.per_item


def summarise(store: Store, *, bootstrap: int = 1000, seed: int = 0) -> Summary:
    """Progress, pace and agreement of a review."""
    rows = store.rows("SELECT item, reviewer, verdict, seconds FROM verdicts ORDER BY item, event")
    by_item: dict[int, dict[str, str]] = {}
    for item, who, verdict, _ in rows:
        by_item.setdefault(item, {})[str(who)] = verdict
    said = Counter(verdict for _, _, verdict, _ in rows)
    open_ = disputes(store)
    plan: dict[str, Any] = {"bootstrap": bootstrap, "seed": seed}
    return Summary(
        items=store.n_items,
        per_item=store.per_item,
        done=sum(len(own) == store.per_item for own in by_item.values()),
        verdicts=len(rows),
        said={name: said[name] for name in VERDICTS},
        disputed=len(open_),
        decided=sum(d.decision is not None for d in open_),
        seconds=_median([seconds for *_, seconds in rows]),
        reviewers=_paces(store),
        agreement=agreement(answer_counts(by_item.values()), **plan),
        decided_agreement=agreement(answer_counts(by_item.values(), missing=[UNSURE]), **plan),
    )


def own_progress(store: Store, reviewer: int) -> tuple[int, int]:
    """How many verdicts are in from this reviewer, and from all."""
    return store.rows("SELECT count(*) FILTER (WHERE reviewer = ?), count(*) FROM verdicts", reviewer)[0]  # type: ignore[no-any-return]


def _paces(store: Store) -> tuple[Pace, ...]:
    found = []
    for id_, name, role in store.rows("SELECT id, name, role FROM reviewers ORDER BY id"):
        table = "decisions" if role == "adjudicator" else "verdicts"
        seconds = [s for (s,) in store.rows(f"SELECT seconds FROM {table} WHERE reviewer = ?", id_)]
        found.append(Pace(name, role, len(seconds), _median(seconds)))
    return tuple(found)


def _median(seconds: list[float | None]) -> float | None:
    known = [s for s in seconds if s is not None]
    return float(median(known)) if known else None
