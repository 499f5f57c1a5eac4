"""Verdicts of a function on pictures, asked and scored as a language model would be.

The "model" here is a function that measures the picture by a fixed rule; it is not a language model. With a real one, give
its name as inspect_ai does, `anthropic/…`; its key is taken from the environment.
"""

from __future__ import annotations

import sys
from pathlib import Path

import hitmiss as hm
from hitmiss.protocols.triage import evaluate_triage


def main(folder: Path, model: str = "hitmiss.llm.standin:look") -> None:
    """Write simulated pictures into a folder, ask, and print a few figures."""
    data = hm.demo_data("llm", folder, share=0.2)
    asked = ["--dataset", str(data / "dataset.jsonl"), "--output", str(data / "answers.jsonl"), "--models", model]
    if code := hm.run(["llm", *asked, "--run", str(data / "run")]):
        raise SystemExit(code)
    found = evaluate_triage(data / "answers.jsonl", bootstrap=0)
    for e in found.figures:
        if e.metric in ("accuracy", "coverage", "fake_slip_rate"):
            print(e)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo/llm_example"), *sys.argv[2:3])
