"""Two people judge what a detector was not sure of, a third decides where they disagree: how good are all together?"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from hitmiss.io.triage import read_results, read_verdicts
from hitmiss.review.items import open_review
from hitmiss.review.store import Queue, decide, disputes
from hitmiss.review.summary import write_verdicts
from hitmiss.simulate.pictures import write
from hitmiss.verdicts.people import evaluate_teamwork


def main(folder: Path) -> None:
    """Make pictures, a detector that is often unsure, and three people. All of them are simulated."""
    rng = np.random.default_rng(5)
    rows = [json.loads(line) for line in (write(folder) / "dataset.jsonl").read_text().splitlines()]
    words = {"real": ("real", "fake", "uncertain"), "fake": ("fake", "real", "uncertain")}
    said = [
        {**row, "model": "agent", "prediction": str(rng.choice(words[row["label"]], p=[0.6, 0.1, 0.3]))} for row in rows
    ]
    (folder / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in said))
    truth = {row["id"]: "positive" if row["label"] == "fake" else "negative" for row in rows}

    # On a page: `hitmiss review results.jsonl --per-item 2 --adjudicator Zoe`. Here people are three loops.
    store, _ = open_review(folder / "results.jsonl", per_item=2)
    now = 1_750_000_000.0
    queue = Queue(store, clock=lambda: now)
    for name, skill in (("Ann", 0.9), ("Bob", 0.8)):
        who = store.sign_in(name, now)
        while (item := queue.take(who)) is not None:
            now += float(rng.lognormal(1.5, 0.5))
            wrong = "negative" if truth[item.item] == "positive" else "positive"
            verdict = str(rng.choice([truth[item.item], wrong, "uncertain"], p=[skill, 0.95 - skill, 0.05]))
            queue.judge(who, item.key, verdict)
    store.appoint("Zoe", now)
    for dispute in disputes(store)[:-1]:  # one is left open: nobody guesses it
        decide(store, store.sign_in("Zoe", now), dispute.item.key, truth[dispute.item.item], now=now)
    write_verdicts(store, folder / "verdicts.jsonl")
    store.close()

    found = evaluate_teamwork(read_results(folder / "results.jsonl"), read_verdicts(folder / "verdicts.jsonl"))
    print(*(e for e in found.figures if e.metric in ("accuracy", "coverage")), *found.loads, found.agreement, sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo/review"))
