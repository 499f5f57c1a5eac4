"""What the core finds: warnings that every package shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, INFO, WARNING, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "free-text": Entry(WARNING, "{text}"),
    "free-refusal": Entry(ERROR, "{text}"),
    "settings-blamed": Entry(ERROR, "{what} ({said}; change it there, or switch it off with {--settings none})"),
    "bad-settings/placed": Entry(ERROR, "{place}: {what}"),
    "unknown-name": Entry(ERROR, "unknown {what} {name!r}{near} Known: {known}{more}"),
    "near-names": Entry(INFO, "; did you mean {names}?"),
    "more-names": Entry(INFO, " and {n:,} more"),
}
