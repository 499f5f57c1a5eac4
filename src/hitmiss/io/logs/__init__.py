"""Logs of other tools, read as runs: inspect_ai, lm-eval, promptfoo, garak, Label Studio, Argilla."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ENDINGS: Final = (".eval", ".json", ".jsonl")


def may_be_log(source: str | Path) -> bool:
    """Return whether a source may be the log of another tool, by its name alone; a folder may be one.

    >>> may_be_log("run.eval"), may_be_log("scores.tsv")
    (True, False)
    """
    return str(source).endswith(ENDINGS) or Path(str(source)).is_dir()
