"""Names of columns: those that belong to the engine, and how a user's column of the same name is stored.

A table of trials holds the engine's columns (`item`, `score`, …) beside the user's (`codec`, `language`, …). A user's
column with the name of an engine column is stored as `user:NAME` and shown as NAME, so the two cannot be confused:

    column_name("codec")   -> "codec"            user_name("codec")        -> "codec"
    column_name("target")  -> "user:target"      user_name("user:target")  -> "target"

`header.runs`, `header.slices` and `header.numbers` hold stored names, which are those of the frame. Callers (`by`,
`unit`, `gap`, `where`) and results use the user's names; `find_column` translates a user's name into a stored one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, TypedDict

ANSWERS: Final = ("score", "decision", "confidence", "error")
FIXED: Final = ("item", "target", "label", *ANSWERS)
MADE: Final = (
    "label_word", "system", "unparsed", "refused", "cut", "filtered", "decision_strict", "decision_first", "decision_agent", "confidence_logprobs",
    "score_clean", "decision_clean", "changed_any", "right_all", "right_clean", "aim_reached", "aim_open", "class_labels", "class_scores",
)  # fmt: skip
"""Columns that readers add to the fixed ones."""
SCORES: Final = "score:"
"""Prefix of the names of score columns if a file holds the scores of several systems."""
OWN: Final = "user:"
INNER: Final = ":"
"""Prefix of temporary columns, which exist only inside one function."""


class RoleKeywords(TypedDict, total=False):
    """Columns by their roles, as names or as arrays."""

    item: object
    label: object
    score: object
    decision: object
    confidence: object
    verdict: object
    run: object


class ColumnKeywords(RoleKeywords, total=False):
    """What the columns of a table are, as functions that take trials let it be said of files and tables."""

    positive: str | bool | float | None
    negative: str | bool | float | None
    positive_value: str | bool | float | None
    higher: str | bool | float | None
    score_kind: str | None


def column_name(name: str) -> str:
    """Return the name under which a user's column is stored. Different names stay different.

    >>> column_name("codec"), column_name("score"), column_name("user:score")
    ('codec', 'user:score', 'user:user:score')
    """
    is_taken = name in FIXED or name in MADE or name.startswith((OWN, INNER, SCORES))
    return prefixed(name) if is_taken else name


def prefixed(name: str) -> str:
    """Return the name of a user's column with the prefix that distinguishes it from every engine column."""
    return f"{OWN}{name}"


def user_name(name: str) -> str:
    """Return the user's own name of a column.

    >>> user_name("user:score"), user_name("codec"), user_name(column_name("user:x"))
    ('score', 'codec', 'user:x')
    """
    return name.removeprefix(OWN)


SYNONYMS: Final[Mapping[str, str]] = {
    "speaker_id": "speaker",
    "spk": "speaker",
    "speaker_gender": "gender",
    "attack_label": "attack",
    "attack_anon": "attack",
}
"""Names that published files use for columns of ours; either name may be used to ask for the column."""


def find_column(name: str, columns: Collection[str]) -> str | None:
    """Return the column that a caller means by a name: the user's comes before the engine's. None if there is none.

    >>> find_column("target", ["item", "target", "user:target"]), find_column("target", ["item", "target"]), find_column("x", ["item"])
    ('user:target', 'target', None)
    >>> find_column("spk", ["item", "speaker"]), find_column("SPEAKER_ID", ["item", "speaker"])
    ('speaker', 'speaker')
    """
    ours = SYNONYMS.get(name.strip().lower().replace("-", "_").replace(" ", "_"), name)
    return next((known for known in (prefixed(name), name, ours) if known in columns), None)


SYSTEM: Final = "system"
"""The run column that names the system if one file holds the scores of several systems."""
