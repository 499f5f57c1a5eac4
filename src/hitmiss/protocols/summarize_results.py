"""The script summarize_results.py of the triage evaluation document: Wilson intervals, and McNemar's test of tools.

    python -m hitmiss.protocols.summarize_results results.jsonl [--bootstrap 0 …]

The first words are results files, the options those of `hitmiss triage`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from hitmiss.io.triage import read_results


def main(words: Sequence[str]) -> int:
    """Print the figures of all files, then for each model asked both ways the effect of tools; return the exit code."""
    run = import_module("hitmiss.cli.main").run
    code = int(run(["triage", *words]))
    files = list(words[: next((i for i, word in enumerate(words) if word.startswith("-")), len(words))])
    for file in files if code == 0 else ():
        for model in _asked_both_ways(file):
            sides = [f"{file}[model={model},tools={mode}]" for mode in ("no-tools", "tools")]
            code = max(code, int(run(["compare", *sides, "-p", "triage", "-m", "accuracy", "-m", "coverage"])))
    return code


def _asked_both_ways(file: str) -> list[str]:
    trials = read_results(file)
    if not {"model", "tools"} <= {*trials.header.runs}:
        return []
    pairs = trials.frame.select("model", "tools").unique().rows()
    return sorted({m for m, _ in pairs if {(m, "tools"), (m, "no-tools")} <= {*pairs}})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
