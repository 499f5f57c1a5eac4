"""What the core finds: warnings that every package shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, INFO, WARNING, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "bad-bands/numbers": Entry(ERROR, "bands are a column and numbers, as seconds:0,2,5,10; found {text!r}"),
    "bad-bands/order": Entry(ERROR, "the edges of bands ascend, as in seconds:0,2,5,10; found {text!r}"),
    "not-a-number/bands": Entry(
        ERROR,
        "{column} cannot be cut into bands: {value!r} in row {row} is not a number",
        fix="name a column of numbers",
    ),
    "free-text": Entry(WARNING, "{text}"),
    "free-refusal": Entry(ERROR, "{text}"),
    "settings-blamed": Entry(ERROR, "{what} ({said}; change it there, or switch it off with {--settings none})"),
    "bad-settings/placed": Entry(ERROR, "{place}: {what}"),
    "unknown-name": Entry(ERROR, "unknown {what} {name!r}{near} Known: {known}{more}"),
    "near-names": Entry(INFO, "; did you mean {names}?"),
    "more-names": Entry(INFO, " and {n:,} more"),
}
