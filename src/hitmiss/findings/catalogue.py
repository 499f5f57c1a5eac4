"""The catalogue: what each code means. The entries stand in the `findings.py` of the package that finds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Final

from hitmiss.core.finding import Entry

HOMES: Final = (
    "core", "conclude", "engine", "io", "evaluation", "protocols", "cli", "stats", "derive", "claims", "outofcore", "reports",
    "verdicts", "robustness", "boards", "runs", "detection", "media", "llm", "attacks", "probes", "cluster", "review", "bridges", "metrics",
)  # fmt: skip
"""The packages with entries, those that are needed most first."""
FREE: Final = "free-text"
"""The code of a sentence that comes from elsewhere: from a file of an older version, or from a plug-in."""


@cache
def entries_of(package: str) -> Mapping[str, Entry]:
    """Return the entries of a package; none if it finds nothing."""
    if find_spec(f"hitmiss.{package}.findings") is None:
        return {}
    found: Mapping[str, Entry] = import_module(f"hitmiss.{package}.findings").ENTRIES  # by name: mostly higher layers
    return found


def entry_of(code: str) -> Entry:
    """Return the entry of a code; a code that the catalogue does not have stands for itself."""
    for package in HOMES:
        if (found := entries_of(package).get(code)) is not None:
            return found
    return entries_of("core")[FREE]


def everything() -> Iterator[tuple[str, str, Entry]]:
    """Yield package, code and entry of the whole catalogue."""
    for package in HOMES:
        for code, entry in entries_of(package).items():
            yield package, code, entry
