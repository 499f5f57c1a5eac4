"""Writing verdicts: rows in the format of the triage evaluation document, so that people form a run called `human`.

    {"id": "a7", "model": "human", "trial": "Ann", "prediction": "fake", "latency_seconds": 4.2, "note": "…",
     "timestamp": "2026-01-01T09:00:00Z", "per_item": 2}

Each reviewer is a trial of the run `human`; the decisions of adjudicators form the run `adjudication`. No labels.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Final

import polars as pl

from hitmiss.core import artifacts
from hitmiss.core.errors import UnknownName
from hitmiss.core.frames import parquet
from hitmiss.io.people import ADJUDICATION, HUMAN
from hitmiss.io.write import spreadsheet_safe, write_csv
from hitmiss.review.queue import NEGATIVE, POSITIVE
from hitmiss.review.store import Store

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
