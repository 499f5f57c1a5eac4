"""The log of a run of another tool: one row per answer, with how it was graded or what was chosen."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import polars as pl

from hitmiss.core.errors import DataError

RIGHT, WRONG = "right", "wrong"
LETTERS: Final = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
"""The grades that inspect_ai writes as letters, with the numbers that it takes them for."""
Row = dict[str, object]


@dataclass(frozen=True)
class Log:
    """What the log of a tool holds.

    rows          one per answer: `item`; `grade` (None: not graded) or `choice`; columns of the run and of the item
    runs          which columns name the run; those that number repetitions are called `trial`
    facts         how the run was made: the tool, its version, the model, the task, the settings
    scorers       what answers were graded by; the first is taken unless the caller names another
    summary       what the tool itself reports, to compare with: a number by its name
    sources       the files that were read, and the hash of their bytes
    """

    tool: str
    rows: Sequence[Row]
    runs: Sequence[str] = ("model",)
    facts: Mapping[str, object] = field(default_factory=dict)
    scorers: Sequence[str] = ()
    summary: Mapping[str, float] = field(default_factory=dict)
    sources: Sequence[Path] = ()
    notes: Sequence[str] = ()

    @property
    def is_graded(self) -> bool:
        """Whether answers are graded; otherwise people or models chose a class."""
        return bool(self.rows) and "grade" in self.rows[0]

    @property
    def sha256(self) -> str:
        """The hash of the file; of several files, that of their hashes."""
        each = [hashlib.sha256(path.read_bytes()).hexdigest() for path in self.sources]
        return each[0] if len(each) == 1 else hashlib.sha256("\n".join(each).encode()).hexdigest()


def grade_of(value: object) -> float | None:
    """Return a grade as a number: a number, yes or no, or one of the letters C, I, P and N; None for anything else.

    >>> grade_of("C"), grade_of(True), grade_of(0.25), grade_of("0.5"), grade_of("maybe")
    (1.0, 1.0, 0.25, 0.5, None)
    """
    if isinstance(value, bool | int | float):
        return float(value)
    if not isinstance(value, str):
        return None
    if value in LETTERS:
        return LETTERS[value]
    words = {"true": 1.0, "yes": 1.0, "correct": 1.0, "false": 0.0, "no": 0.0, "incorrect": 0.0}
    if value.strip().lower() in words:
        return words[value.strip().lower()]
    try:
        return float(value)
    except ValueError:
        return None


def as_text(value: object) -> str:
    """Return a cell as text."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def table_of(rows: Sequence[Row]) -> pl.DataFrame:
    """Return rows as a table of texts; a column that a row lacks is empty."""
    names = dict.fromkeys(name for row in rows for name in row)
    return pl.DataFrame({name: pl.Series([as_text(row.get(name)) for row in rows], dtype=pl.String) for name in names})


def object_of(text: str | bytes, path: Path, line: int | None = None) -> dict[str, object]:
    """Return the JSON object in a text."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise DataError.of("broken-log", path_name=path.name, line=f", line {line}" if line else "")
    return found


def inner(table: Mapping[str, object], name: str) -> Mapping[str, object]:
    """Return a field that is an object; an empty one if there is none."""
    found = table.get(name)
    return found if isinstance(found, Mapping) else {}


def objects(table: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    """Return a field that is a list of objects; what is no object is left out."""
    found = table.get(name)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []
