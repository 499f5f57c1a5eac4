"""ReadSpec: everything that a caller may say about files which they do not say themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Final, Literal

from hitmiss.columns import FIXED, apart
from hitmiss.declared import Misdeclared, Plain, declare, fit_field, plain
from hitmiss.errors import DataError, UnknownName, UsageError
from hitmiss.values import SCORE_KINDS, ScoreKind

OnNan = Literal["refuse", "drop", "worst"]
ON_NAN: Final = ("refuse", "drop", "worst")
Matching = Literal["exact", "stem"]
Missing = Literal["refuse", "drop"]
ThresholdRule = Literal["same", "first", "per-row"]
MATCHING: Final = ("exact", "stem")
OPTION: Final = {
    "columns": "column",
    "key_columns": "key-column",
    "score_columns": "score-column",
    "score_kind": "score-kind",
    "positive_value": "positive-value",
    "on_nan": "on-nan",
    "allow_missing": "allow-missing",
}
"""Fields whose option on the command line is written otherwise."""
SYSTEM: Final = "system"
"""The run column that names the system where one file holds the scores of several."""


@dataclass(frozen=True)
class ReadSpec:
    """How to read trials from files. Nothing is guessed that changes a number; None means that nothing was said.

    Parameters
    ----------
    columns
        Our name -> the file's column (a header name, or the position from 1 where there is no header).
    key_columns
        The same for the key alone, where its columns are called otherwise than those of the score file.
    score_columns
        Several systems in one file; the trials get a run column `system`.
    positive, negative
        Names of the two classes; synonyms of both are understood.
    positive_value
        What the label column says for the positive class where it says no word, as `1`.
    higher
        The class that a higher score means; the negative one turns the scores round, and a note says so.
    abstain
        Words of a decision column that mean "no answer", beside those that are known.
    score_kind
        `llr`, `logit`, `probability` or `raw` (unsaid: raw).
    slices
        Columns to keep as slices; None keeps every column that has no other role.
    runs, numbers
        Columns that name the run, and columns to be summarised as numbers.
    rename
        Per column, values to be read as others: `{"codec": {"-": "NONE"}}`.
    itself
        Per column, the value that stands for the trial's own id.
    where
        Per column, the values of the rows to keep; the others are left out and counted.
    on_nan
        `refuse` (unsaid), `drop`, or `worst`: the worst possible score for the trial's own class.
    dedupe
        Merge rows that are identical; rows that share an id and differ are refused all the same.
    allow_missing
        Score the ids that both sides have, and put the coverage into the header.
    match
        How ids of scores and key are matched: `exact` (unsaid), or `stem`: without folder and ending.
    layout
        Name of a known layout, or of a plug-in's reader, to be used without recognition.
    separator, encoding, decimal
        Of the text files, where recognition is wrong or impossible.
    missing, threshold_rule, identities
        Of prediction files (toxicity): rows without label, score or decision, thresholds that differ in a group, and
        columns that say how far a text mentions an identity.

    Raises
    ------
    UsageError
        For a value that no reader understands.

    Examples
    --------
    >>> ReadSpec(positive="bonafide").changed(dedupe=True).dedupe
    True
    >>> ReadSpec.from_plain(ReadSpec(columns={"item": "utt"}).to_plain()).columns
    {'item': 'utt'}
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    key_columns: Mapping[str, str] = field(default_factory=dict)
    score_columns: tuple[str, ...] = ()
    positive: str | None = None
    negative: str | None = None
    positive_value: str | None = None
    higher: str | None = None
    abstain: tuple[str, ...] = ()
    score_kind: ScoreKind | None = None
    slices: tuple[str, ...] | None = None
    runs: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    rename: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    itself: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    on_nan: OnNan | None = None
    dedupe: bool = False
    allow_missing: bool = False
    match: Matching | None = None
    layout: str | None = None
    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    missing: Missing | None = None
    threshold_rule: ThresholdRule | None = None
    identities: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for what, value, known in (
            ("on-nan rule", self.on_nan, ON_NAN),
            ("score kind", self.score_kind, SCORE_KINDS),
            ("way to match ids", self.match, MATCHING),
        ):
            if value is not None and value not in known:
                raise UnknownName(what, value, known)
        if self.separator is not None and len(self.separator.encode()) != 1:
            raise UsageError(f"a separator is one character; found {self.separator!r}", code="bad-separator")
        if self.decimal not in (None, ".", ","):
            raise UsageError(f"the decimal sign is '.' or ','; found {self.decimal!r}", code="bad-decimal")

    @property
    def kind(self) -> ScoreKind:
        """What the scores are; `raw` where nobody said."""
        return self.score_kind or "raw"

    @property
    def nan_rule(self) -> OnNan:
        """What becomes of scores that are not numbers; `refuse` where nobody said."""
        return self.on_nan or "refuse"

    @property
    def decimal_sign(self) -> str:
        """The decimal sign; a point where nobody said."""
        return self.decimal or "."

    @property
    def matching(self) -> Matching:
        """How ids are matched; exactly where nobody said."""
        return self.match or "exact"

    @property
    def for_key(self) -> ReadSpec:
        """The spec that the key is read with: its own names of columns first."""
        return self if not self.key_columns else replace(self, columns={**self.columns, **self.key_columns})

    def changed(self, **changes: object) -> ReadSpec:
        """The same spec with some fields changed; an unknown name is an error with the nearest."""
        known = [f.name for f in fields(self)]
        for name in changes:
            if name not in known:
                raise UnknownName("read option", name, known)
        try:
            return replace(self, **{name: fit_field(ReadSpec, name, value) for name, value in changes.items()})
        except Misdeclared as fault:
            raise UsageError(f"read option {fault}; found {fault.value!r}", code="bad-read-option") from None

    def with_own_names(self) -> ReadSpec:
        """The same spec with runs and slices as they are stored: who says `target` there means a column of the files."""
        runs = tuple(apart(name) if name in FIXED else name for name in self.runs)
        slices = None if self.slices is None else tuple(apart(n) if n in FIXED else n for n in self.slices)
        return replace(self, runs=runs, slices=slices)

    def over(self, base: ReadSpec) -> ReadSpec:
        """What this spec says, and where it says nothing what `base` says: the caller's word over that of a protocol.

        >>> ReadSpec(score_kind="raw").over(ReadSpec(score_kind="llr", positive="real")).kind
        'raw'
        """
        said = {name: getattr(self, name) for name, unsaid in _unsaid().items() if getattr(self, name) != unsaid}
        for name in ("columns", "key_columns", "rename", "itself", "where"):
            if name in said:
                said[name] = {**getattr(base, name), **said[name]}
        return replace(base, **said)

    @property
    def said(self) -> tuple[str, ...]:
        """The names of the fields in which something was said."""
        return tuple(name for name, unsaid in _unsaid().items() if getattr(self, name) != unsaid)

    def to_plain(self) -> dict[str, Plain]:
        """The JSON form, every field."""
        data: dict[str, Plain] = plain(self)
        return data

    @classmethod
    def from_plain(cls, data: object) -> ReadSpec:
        """A spec from its JSON form."""
        try:
            return declare(cls, data)
        except (Misdeclared, UsageError) as fault:
            raise DataError(
                f"the reading that the file states is not of the known form: {fault}", code="bad-reading"
            ) from None


@cache
def _unsaid() -> dict[str, object]:
    empty = ReadSpec()
    return {f.name: getattr(empty, f.name) for f in fields(ReadSpec)}
