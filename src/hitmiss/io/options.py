"""What a caller may declare about files that they do not say themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Literal

from hitmiss.errors import UnknownName, UsageError
from hitmiss.values import SCORE_KINDS, ScoreKind

OnNan = Literal["refuse", "drop", "worst"]
ON_NAN: Final = ("refuse", "drop", "worst")
SYSTEM: Final = "system"
"""The run column that names the system where one file holds the scores of several."""


@dataclass(frozen=True)
class ReadOptions:
    """How to read trials from files. The defaults guess nothing that changes a number.

    columns         our name -> the file's column (a header name, or the position from 1 where there is no header)
    score_columns   several systems in one file; the trials get a run column `system`
    positive        name of the positive class, and `negative` of the other; synonyms of both are understood
    positive_value  what the label column says for the positive class where it says no word, as `1`
    higher          the class that a higher score means; the negative one turns the scores round, and a note says so
    slices          columns to keep as slices; None keeps every column that has no other role
    runs, numbers   columns that name the run, and columns to be summarised as numbers
    rename          per column, values to be read as others: `{"codec": {"-": "NONE"}}`
    on_nan          `refuse`, `drop`, or `worst`: the worst possible score for the trial's own class
    dedupe          merge rows that are identical; rows that share an id and differ are refused all the same
    allow_missing   score the ids that both sides have, and put the coverage into the header
    layout          name of a known layout, or of a plug-in's reader, to be used without recognition
    separator, encoding, decimal   of the text files, where recognition is wrong or impossible

    >>> ReadOptions(positive="bonafide").changed(dedupe=True).dedupe
    True
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    score_columns: tuple[str, ...] = ()
    positive: str | None = None
    negative: str | None = None
    positive_value: str | None = None
    higher: str | None = None
    score_kind: ScoreKind = "raw"
    slices: tuple[str, ...] | None = None
    runs: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    rename: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    on_nan: OnNan = "refuse"
    dedupe: bool = False
    allow_missing: bool = False
    layout: str | None = None
    separator: str | None = None
    encoding: str | None = None
    decimal: str = "."

    def __post_init__(self) -> None:
        if self.on_nan not in ON_NAN:
            raise UnknownName("on-nan rule", self.on_nan, ON_NAN)
        if self.score_kind not in SCORE_KINDS:
            raise UnknownName("score kind", self.score_kind, SCORE_KINDS)
        if self.separator is not None and len(self.separator.encode()) != 1:
            raise UsageError(f"a separator is one character; found {self.separator!r}")
        if self.decimal not in (".", ","):
            raise UsageError(f"the decimal sign is '.' or ','; found {self.decimal!r}")

    def changed(self, **changes: Any) -> ReadOptions:
        """The same options with some changed; an unknown name is an error with the nearest."""
        known = [f.name for f in fields(self)]
        for name, value in changes.items():
            if name not in known:
                raise UnknownName("read option", name, known)
            if isinstance(value, list):
                changes[name] = tuple(value)
        return replace(self, **changes)
