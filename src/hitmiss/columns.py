"""Names of columns: those that the engine owns, and how a user's column of the same name is kept apart from them.

A table of trials holds the engine's columns (`item`, `score`, …) beside the user's (`codec`, `language`, …). A user's
column whose name the engine owns is stored under `user:NAME` and shown as NAME, so neither can stand in for the other:

    stored("codec")   -> "codec"            shown("codec")        -> "codec"
    stored("target")  -> "user:target"      shown("user:target")  -> "target"

`header.runs`, `header.slices` and `header.numbers` hold stored names, which are those of the frame. What a caller asks
for (`by`, `unit`, `gap`, `where`) and what a result says are shown names; `find` leads from the one to the other.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

ANSWERS: Final = ("score", "decision", "confidence", "error")
FIXED: Final = ("item", "target", "label", *ANSWERS)
MADE: Final = ("label_word", "system", "unparsed", "score_clean", "decision_clean")
"""Columns that readers make beside the fixed ones."""
SCORES: Final = "score:"
"""What the names of score columns begin with where a file holds those of several systems."""
OWN: Final = "user:"
INNER: Final = ":"
"""What names of columns begin with that live inside one function only."""


def stored(name: str) -> str:
    """The name under which a user's column is kept. Different names stay different.

    >>> stored("codec"), stored("score"), stored("user:score")
    ('codec', 'user:score', 'user:user:score')
    """
    is_taken = name in FIXED or name in MADE or name.startswith((OWN, INNER, SCORES))
    return apart(name) if is_taken else name


def apart(name: str) -> str:
    """The name of a user's column that no reader may take for anything else."""
    return f"{OWN}{name}"


def shown(name: str) -> str:
    """The user's own name of a column.

    >>> shown("user:score"), shown("codec"), shown(stored("user:x"))
    ('score', 'codec', 'user:x')
    """
    return name.removeprefix(OWN)


def find(name: str, columns: Collection[str]) -> str | None:
    """The column of a frame that a caller means by a name: the user's own before the engine's; None where there is none.

    >>> find("target", ["item", "target", "user:target"]), find("target", ["item", "target"]), find("x", ["item"])
    ('user:target', 'target', None)
    """
    return next((known for known in (apart(name), name) if known in columns), None)
