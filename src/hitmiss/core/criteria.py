"""Criteria: requirements with level, unit, slices and data, locked before a test; what results name as their criteria."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hitmiss.core import artifacts
from hitmiss.core.errors import DataError

KIND: Final = "criteria"
SCHEMA: Final = 1
ENDING: Final = ".json"


@dataclass(frozen=True)
class Criteria:
    """What was locked: requirements as texts, what they are measured with, and the digests of data files by name."""

    schema: int
    kind: str
    hitmiss: str
    stated_at: str
    require: tuple[str, ...]
    level: float
    unit: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    bootstrap: int = 0
    seed: int = 0
    data: Mapping[str, str] = field(default_factory=dict)
    digest: str = ""

    @property
    def plain(self) -> dict[str, object]:
        """The JSON form, with its digest."""
        own = {k: list(v) if isinstance(v, tuple) else v for k, v in vars(self).items() if k != artifacts.DIGEST}
        return artifacts.sealed(own)


def load_criteria(path: str | Path) -> Criteria:
    """Read locked criteria; a file without a digest, or one that was edited, is refused."""
    data = artifacts.load(path, "criteria")
    if data.get("schema") != SCHEMA or data.get("kind") != KIND:
        raise DataError.of("not-criteria", file=Path(path).name)
    return artifacts.check(Criteria, data, "criteria")
