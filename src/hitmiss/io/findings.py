"""What `io` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import WARNING, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "mixed-conditions": Entry(WARNING, "{what}; {fix}"),
}
