"""Two people judge what a detector was not sure of, a third decides where they disagree: how good are all together?"""

from __future__ import annotations

import sys
from pathlib import Path

import hitmiss as hm


def main(folder: Path) -> None:
    """Simulate a detector that is often unsure and three people; then evaluate them alone and together."""
    hm.demo_data("review", folder, share=1.0)
    results, verdicts = str(folder / "results.jsonl"), str(folder / "verdicts.jsonl")

    # People work on a page: `hitmiss review results.jsonl --per-item 2 --adjudicator Zoe`.
    hm.run(["review", results, "--status"])
    hm.run(["triage", results, "--human", verdicts])


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo/review"))
