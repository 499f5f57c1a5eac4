"""Progress of a review, and agreement between people."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import median

from hitmiss.review.disputes import disputes
from hitmiss.review.queue import UNSURE, VERDICTS
from hitmiss.review.store import Store
from hitmiss.verdicts.agreement import Agreement, agreement, answer_counts


@dataclass(frozen=True)
class Pace:
    """The work of one reviewer: the number of verdicts, and the median seconds per item."""

    name: str
    role: str
    n: int
    seconds: float | None


@dataclass(frozen=True)
class Summary:
    """The state of a review. `done` items have all their verdicts; `decided` disputes were settled by an adjudicator.

    `agreement` treats "cannot tell" as a separate answer, `decided_agreement` as no answer.
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
        """Say whether every item has all its verdicts."""
        return self.done == self.items

    @property
    def wanted(self) -> int:
        """The number of verdicts that there will be."""
        return self.items * self.per_item


def summarise(store: Store, *, bootstrap: int = 1000, seed: int = 0) -> Summary:
    """Measure the progress, the pace and the agreement of a review."""
    rows = store.rows("SELECT item, reviewer, verdict, seconds FROM verdicts ORDER BY item, event")
    by_item: dict[int, dict[str, str]] = {}
    for item, who, verdict, _ in rows:
        by_item.setdefault(item, {})[str(who)] = verdict
    said = Counter(verdict for _, _, verdict, _ in rows)
    open_ = disputes(store)
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
        agreement=agreement(answer_counts(by_item.values()), bootstrap=bootstrap, seed=seed),
        decided_agreement=agreement(answer_counts(by_item.values(), missing=[UNSURE]), bootstrap=bootstrap, seed=seed),
    )


def own_progress(store: Store, reviewer: int) -> tuple[int, int]:
    """Return the number of verdicts from this reviewer, and from all reviewers."""
    ((own, whole),) = store.rows("SELECT count(*) FILTER (WHERE reviewer = ?), count(*) FROM verdicts", reviewer)
    return own, whole


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
