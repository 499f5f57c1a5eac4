"""What the tests of LLM runs share as functions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

KEY = "canary-key-7f3a9b2c1d"
"""A key that must be found nowhere."""


def write_dataset(folder: Path, rows: list[dict[str, Any]], name: str = "dataset.jsonl") -> Path:
    """A dataset file."""
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSON lines file."""
    return [json.loads(line) for line in path.read_text().splitlines()]
