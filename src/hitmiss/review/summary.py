"""Progress of a review, agreement between people, and their verdicts as rows."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

import polars as pl

from hitmiss.core import artifacts
from hitmiss.core.errors import UnknownName
from hitmiss.core.frames import parquet
from hitmiss.io.triage import ADJUDICATION, HUMAN
from hitmiss.io.write import spreadsheet_safe, write_csv
from hitmiss.review.store import NEGATIVE, POSITIVE, UNSURE, VERDICTS, Store, disputes
from hitmiss.verdicts.agreement import Agreement, agreement, answer_counts

# ----------------------------------------------------------------------
# Progress of a review and agreement between people.


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


# ----------------------------------------------------------------------
# Writing verdicts: rows in the format of the triage evaluation document, so that people form a run called `human`.
#
#     {"id": "a7", "model": "human", "trial": "Ann", "prediction": "fake", "latency_seconds": 4.2, "note": "…",
#      "timestamp": "2026-01-01T09:00:00Z", "per_item": 2}
#
# Each reviewer is a trial of the run `human`; the decisions of adjudicators form the run `adjudication`. No labels.

FORMS: Final = (".jsonl", ".csv", ".parquet")


def rows(store: Store) -> list[dict[str, object]]:
    """Return every current verdict, then every decision, in the order of the queue."""
    return [*_rows(store, "verdicts", HUMAN), *_rows(store, "decisions", ADJUDICATION)]


def _rows(store: Store, table: str, model: str) -> list[dict[str, object]]:
    words = {NEGATIVE: store.config["negative"], POSITIVE: store.config["positive"]}
    found = store.rows(
        f"SELECT i.item, r.name, t.verdict, t.seconds, t.note, t.time FROM {table} t "
        "JOIN items i ON i.at = t.item JOIN reviewers r ON r.id = t.reviewer ORDER BY t.item, t.event"
    )
    return [
        {
            "id": item,
            "model": model,
            "trial": name,
            "prediction": words.get(verdict, verdict),
            "latency_seconds": seconds,
            "note": note,
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when)),
            "per_item": store.per_item,
        }
        for item, name, verdict, seconds, note, when in found
    ]


def write_verdicts(store: Store, path: str | Path) -> int:
    """Write verdicts as JSON lines, CSV (safe for spreadsheets) or Parquet, by the extension; return how many."""
    target, found = Path(path), rows(store)
    if target.suffix not in FORMS:
        raise UnknownName("ending of a file of verdicts", target.suffix or target.name, FORMS)
    if target.suffix == ".jsonl":
        artifacts.write(target, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in found))
        return len(found)
    kinds = {"latency_seconds": pl.Float64, "per_item": pl.Int64}
    names = ("id", "model", "trial", "prediction", "latency_seconds", "note", "timestamp", "per_item")
    table = pl.DataFrame(found, schema={name: kinds.get(name, pl.String) for name in names}, orient="row")
    if target.suffix == ".csv":
        write_csv(spreadsheet_safe(table), target)
    else:
        artifacts.write(target, parquet(table))
    return len(found)
