"""What the core finds: warnings that every package shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import WARNING, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "free-text": Entry(WARNING, "{text}"),
}
