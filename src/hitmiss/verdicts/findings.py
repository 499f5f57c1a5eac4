"""What `verdicts` finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.finding import ERROR, Entry

ENTRIES: Final[Mapping[str, Entry]] = {
    "bad-answers": Entry(ERROR, "answers must be counts, item × answer: whole numbers from 0 on"),
    "nothing-repeated": Entry(ERROR, "no run has more than one {column}"),
    "unknown-item/judged": Entry(
        ERROR, "people judged items that the results do not have: {n:,}, the first is {first!r}"
    ),
}
