"""The script evaluate_llms.py of the triage evaluation document: it runs `hitmiss llm` with the documented flags."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module


def main(words: Sequence[str]) -> int:
    """Ask the models; return the exit code."""
    return int(import_module("hitmiss.cli.main").run(["llm", *words]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
