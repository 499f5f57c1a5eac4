"""What `cli` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import WARNING, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "comparison-forced": Entry(WARNING, "INVALID BASELINE, forced: {w}"),
}
