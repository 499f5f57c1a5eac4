"""Plain types that all parts share: JSON data, kinds of scores, codes of decisions, one value or several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias, TypeVar

T = TypeVar("T")

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""Data that JSON can hold."""
JsonObject: TypeAlias = "dict[str, Json]"

ABSTAIN: Final = -1
"""The decision of a detector that abstained."""
FAILED: Final = -2
"""In arrays, the decision of a detector whose call failed; in a table of trials this decision is null."""

ScoreKind = Literal["llr", "logit", "probability", "raw"]
SCORE_KINDS: Final[tuple[str, ...]] = ("llr", "logit", "probability", "raw")
"""llr: natural-log likelihood ratio; logit: log-odds; probability: 0..1; raw: only the order has a meaning."""


def one_or_several(given: T | Sequence[T] | None) -> tuple[T, ...]:
    """Return what a keyword that takes several was given; one text is one name, not a list of letters.

    >>> one_or_several("eer"), one_or_several(["eer", "f1"]), one_or_several(None)
    (('eer',), ('eer', 'f1'), ())
    """
    if given is None:
        return ()
    return tuple(given) if isinstance(given, Sequence) and not isinstance(given, str | bytes) else (given,)
