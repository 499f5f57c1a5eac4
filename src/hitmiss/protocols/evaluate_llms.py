"""The triage document's evaluate_llms.py: `python -m hitmiss.protocols.evaluate_llms` takes its flags, as `hitmiss llm`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module


def main(words: Sequence[str]) -> int:
    """Ask the models; the exit code."""
    return int(import_module("hitmiss.cli.main").run(["llm", *words]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
