"""ReadSpec: everything that a caller can state about files and that the files themselves do not state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Annotated, Any, Final, Literal

from hitmiss.core.classes import OPPOSITE, code_of, named_classes, same_class
from hitmiss.core.columns import FIXED, MADE, SYSTEM, prefixed
from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.core.finding import Finding
from hitmiss.core.kinds import SCORE_KINDS, ScoreKind
from hitmiss.core.spec import READING, Spec, as_filters, as_names, as_pairs, keyword, opt

OnNan = Literal["refuse", "drop", "worst"]
ON_NAN: Final = ("refuse", "drop", "worst")
Matching = Literal["exact", "stem"]
Missing = Literal["refuse", "drop"]
ThresholdRule = Literal["same", "first", "per-row"]
MATCHING: Final = ("exact", "stem")
WeightKind = Literal["frequency", "sampling"]
WEIGHT_KINDS: Final[Mapping[WeightKind, str]] = {
    "frequency": "a row stands for so many rows",
    "sampling": "one over the chance that the row was sampled",
}
"""What a weight can mean. Intervals differ, so a weight is never used without its kind."""


@dataclass(frozen=True)
class ReadSpec(Spec):
    """How to read trials from files. Nothing that changes a number is guessed; None means that nothing was stated.

    Parameters
    ----------
    columns
        Our name -> the column of the file (a name in its header, or the position from 1 if it has no header).
    key_columns
        The same for the key alone, if its columns have other names than those of the score file.
    score_columns
        The score columns of several systems in one file; the trials get a run column `system`.
    positive, negative
        Names of the two classes; synonyms of both are understood. Needed where the labels do not say which class is
        positive, as real and fake; labels may be given too (`1`, `True`).
    positive_value
        The value of the label column for the positive class if it is not its name, such as `1` or `yes`.
    higher
        The class that a higher score means. If it is the negative class, the scores are negated, and a note says so.
    abstain
        Further words in a decision column that mean "no answer".
    score_kind
        `llr`, `logit`, `probability` or `raw` (default: raw).
    slices
        Columns to keep as slices; None keeps every column that has no other role.
    runs, numbers
        Columns that name the run, and columns to summarise as numbers.
    rename
        Per column, values to replace by others: `{"codec": {"-": "NONE"}}`.
    itself
        Per column, the value that means the trial's own id.
    where
        Per column, the values of the rows to keep; the other rows are left out and counted.
    on_nan
        `refuse` (default), `drop`, or `worst`: the worst possible score for the trial's own class.
    dedupe
        Merge identical rows. Rows with the same id and different content are refused in any case.
    allow_missing
        Score only the ids that scores and key share, and record the coverage in the header.
    weight, weight_kind
        The column with the weight of each row, and what a weight is: `frequency` (a row stands for so many rows; whole
        numbers) or `sampling` (one over the chance that the row was sampled; any number from 0).
    match
        How ids of scores and key are matched: `exact` (default), or `stem`: without folder and file extension.
    layout
        Name of a known layout, or of a plug-in's reader, to use instead of recognising the layout.
    separator, encoding, decimal
        Of text files, if they are not recognised or recognised wrongly.
    asv, asv_key
        Scores of the speaker verifier and the key of its trials, for the tandem costs of a protocol that uses them.
    pairs
        For wide files with several labels of a text side by side: label column -> score column. Without it, labels and
        scores with matching names are found (`toxic` and `toxic_prob`, or `toxic` in scores and key).
    label_cut
        Labels are shares of annotators: a row is positive from this share on.
    missing
        `refuse` (default), or `drop`: rows without label, score or decision are left out and counted; so are labels of
        -1, which mark rows that are not scored.
    threshold_rule, identities
        For prediction files (toxicity): what to do with different thresholds in one group, and the columns that say how
        far a text mentions an identity.

    Raises
    ------
    UsageError
        For a value that is not known.

    Examples
    --------
    >>> ReadSpec(positive="bonafide").changed(dedupe=True).dedupe
    True
    >>> ReadSpec.from_plain(ReadSpec(columns={"item": "utt"}).to_plain()).columns
    {'item': 'utt'}
    """

    _form, _option = "reading", "read option"
    columns: Annotated[
        Mapping[str, str],
        opt("Our name = the file's column, `item=utt`.", READING, "--column", read=as_pairs, common=True),
    ] = field(default_factory=dict)
    key_columns: Annotated[
        Mapping[str, str],
        opt("The same for the key, if its columns have other names.", READING, "--key-column", read=as_pairs),
    ] = field(default_factory=dict)
    score_columns: Annotated[
        tuple[str, ...],
        opt(
            "A score column; repeat it for several systems.",
            READING,
            "--score-column",
            read=as_names,
            complete="columns",
        ),
    ] = ()
    positive: Annotated[str | None, opt("Name of the positive class.", READING, read=label_text, common=True)] = None
    negative: Annotated[str | None, opt("Name of the other class.", READING, read=label_text)] = None
    positive_value: Annotated[
        str | None, opt("Value of the positive class in the label column, such as 1.", READING, read=label_text)
    ] = None
    higher: Annotated[str | None, opt("The class that a higher score means.", READING, read=label_text)] = None
    abstain: Annotated[
        tuple[str, ...], opt("A word in the decisions that means no answer.", READING, read=as_names)
    ] = ()
    score_kind: Annotated[ScoreKind | None, opt("What the scores are.", READING)] = None
    slices: Annotated[tuple[str, ...] | None, keyword("Columns to keep as slices; all if none is named.", as_names)] = (
        None
    )
    runs: Annotated[
        tuple[str, ...],
        opt(
            "A column that names the run, such as config; may be repeated.",
            READING,
            "--run-column",
            read=as_names,
            complete="columns",
        ),
    ] = ()
    numbers: Annotated[tuple[str, ...], keyword("Columns to summarise as numbers.", as_names)] = ()
    rename: Annotated[Mapping[str, Mapping[str, str]], keyword("Per column, values to replace by others.")] = field(
        default_factory=dict
    )
    itself: Annotated[Mapping[str, str], keyword("Per column, the value that means the trial's own id.")] = field(
        default_factory=dict
    )
    where: Annotated[
        Mapping[str, tuple[str, ...]],
        opt("Rows to keep, `codec=C01`; repeat it for more values or columns.", READING, read=as_filters),
    ] = field(default_factory=dict)
    on_nan: Annotated[OnNan | None, opt("What to do with scores that are not numbers.", READING)] = None
    dedupe: Annotated[bool, opt("Merge identical rows.", READING)] = False
    allow_missing: Annotated[bool, opt("Score only the ids that both files have.", READING)] = False
    weight: Annotated[
        str | None, opt("Column with the weight of each row; needs --weight-kind.", READING, complete="columns")
    ] = None
    weight_kind: Annotated[
        WeightKind | None,
        opt("frequency: a row stands for so many rows; sampling: 1 / the chance to be sampled.", READING),
    ] = None
    match: Annotated[Matching | None, opt("Match ids exactly, or without folder and suffix (stem).", READING)] = None
    layout: Annotated[str | None, opt("A layout (see `list readers`) instead of recognising one.", READING)] = None
    separator: Annotated[str | None, opt("Separator of the columns.", READING)] = None
    encoding: Annotated[str | None, opt("Encoding of the files.", READING)] = None
    decimal: Annotated[str | None, opt("Decimal sign, `.` or `,`.", READING, metavar=".|,")] = None
    asv: Annotated[str | None, opt("Scores of the speaker verifier, for tandem costs.", READING)] = None
    asv_key: Annotated[str | None, opt("Key of the speaker verifier's trials.", READING)] = None
    pairs: Annotated[
        Mapping[str, str],
        opt("In a wide file: a label column = its score column, `toxic=toxic_prob`.", READING, "--pair", read=as_pairs),
    ] = field(default_factory=dict)
    label_cut: Annotated[
        float | None, opt("Labels are shares of annotators: positive from this share on, such as 0.5.", READING)
    ] = None
    missing: Annotated[Missing | None, opt("What to do with rows without label, score or decision.", READING)] = None
    threshold_rule: Annotated[
        ThresholdRule | None, keyword("Prediction files: what to do with different thresholds in one group.")
    ] = None
    identities: Annotated[
        tuple[str, ...], keyword("Prediction files: columns that say how far a text mentions an identity.", as_names)
    ] = ()

    def __post_init__(self) -> None:
        self._read_fields()
        for what, value, known in (
            ("on-nan rule", self.on_nan, ON_NAN),
            ("score kind", self.score_kind, SCORE_KINDS),
            ("way to match ids", self.match, MATCHING),
            ("kind of weight", self.weight_kind, tuple(WEIGHT_KINDS)),
            ("rule for missing values", self.missing, ("refuse", "drop")),
        ):
            if value is not None and value not in known:
                raise UnknownName(what, value, known)
        if (self.weight is None) != (self.weight_kind is None):
            refuse_unkind(self.weight, self.weight_kind)
        if self.separator is not None and len(self.separator.encode()) != 1:
            raise UsageError.of("bad-separator", separator=self.separator)
        if self.label_cut is not None and not 0 < self.label_cut <= 1:
            raise UsageError.of("bad-label-cut", label_cut=self.label_cut)
        if self.decimal not in (None, ".", ","):
            raise UsageError.of("bad-decimal", decimal=self.decimal)

    @property
    def kind(self) -> ScoreKind:
        """The kind of the scores; `raw` if nothing was stated."""
        return self.score_kind or "raw"

    @property
    def nan_rule(self) -> OnNan:
        """What to do with scores that are not numbers; `refuse` if nothing was stated."""
        return self.on_nan or "refuse"

    @property
    def decimal_sign(self) -> str:
        """The decimal sign; a point if nothing was stated."""
        return self.decimal or "."

    @property
    def matching(self) -> Matching:
        """How ids are matched; exactly if nothing was stated."""
        return self.match or "exact"

    @property
    def for_key(self) -> ReadSpec:
        """The spec for reading the key: its own column names come first."""
        return self if not self.key_columns else replace(self, columns={**self.columns, **self.key_columns})

    def with_own_names(self) -> ReadSpec:
        """Return the same spec with runs and slices under their stored names.

        A name such as `target` in `runs` or `slices` means a column of the files, not the column of the engine.
        """
        own = {SYSTEM} if self.score_columns else set()  # with several score columns the engine names their systems
        taken = {*FIXED, *MADE} - own
        runs = tuple(prefixed(name) if name in taken else name for name in self.runs)
        slices = None if self.slices is None else tuple(prefixed(n) if n in FIXED else n for n in self.slices)
        return replace(self, runs=runs, slices=slices)

    def overridden(self, said: Mapping[str, Any]) -> ReadSpec:
        """Return the same with values that a caller states: tables are joined, and classes keep their meaning."""
        return ReadSpec(**said).over(self)

    def over(self, base: ReadSpec) -> ReadSpec:
        """Return what this spec states, and otherwise what `base` states; so a caller's options override a protocol's.

        >>> ReadSpec(score_kind="raw").over(ReadSpec(score_kind="llr", positive="real")).kind
        'raw'
        >>> found = ReadSpec(positive="fake").over(ReadSpec(positive="real", negative="fake", positive_value="1"))
        >>> found.negative, found.positive_value
        ('real', '0')
        """
        if self.positive is not None and self.positive_value is None and code_of(self.positive) is not None:
            return replace(self, positive=None, positive_value=self.positive).over(base)  # it names a value
        said = {name: getattr(self, name) for name in self.stated}
        for name in ("columns", "key_columns", "rename", "itself", "where", "pairs"):
            if name in said:
                said[name] = {**getattr(base, name), **said[name]}
        return replace(base._for_class(self.positive, self.negative), **said)

    def _for_class(self, positive: str | None, negative: str | None) -> ReadSpec:
        """Return the same spec about a positive class of the caller: our negative class, or one of another name."""
        if positive is None or self.positive is None or same_class(positive, self.positive):
            return self
        if self.negative is None:  # the value of the other class is that of ours no more
            other = code_of(self.positive_value) if self.positive_value is not None else None
            return replace(self, positive_value=None if other is None else OPPOSITE[other])
        if not same_class(positive, self.negative):
            higher = positive if self.higher == self.positive else self.higher
            return replace(self, negative=named_classes(positive, self.negative)[1], higher=higher)
        code = code_of(self.positive_value) if self.positive_value is not None else None
        value = self.positive_value if code is None else OPPOSITE[code]
        return replace(self, positive=self.negative, negative=negative or self.positive, positive_value=value)

    @property
    def stated(self) -> tuple[str, ...]:
        """The names of the fields in which something was stated."""
        return tuple(name for name, unsaid in _defaults().items() if getattr(self, name) != unsaid)


def refuse_unkind(weight: str | None, kind: str | None) -> None:
    """Refuse a weight without its kind, and a kind without a weight."""
    if weight is not None and kind is None:
        known = WEIGHT_KINDS.items()
        ways = [Finding("weight-way", values={"weight": weight, "kind": name, "said": said}) for name, said in known]
        raise UsageError.of("weight-kind", weight=weight, ways=ways)
    if weight is None and kind is not None:
        raise UsageError.of("weight-kind/column", kind=kind)


def label_text(value: object) -> object:
    """Return a label as a file writes it; labels in Python may be numbers and truth values.

    >>> label_text(True), label_text(1), label_text(0.0), label_text("toxic")
    ('true', '1', '0', 'toxic')
    """
    if type(value).__name__ in ("bool", "bool_"):  # numpy's, too
        return str(bool(value)).lower()
    is_whole = type(value) is int or (isinstance(value, float) and value.is_integer())
    return str(int(value)) if is_whole else value  # type: ignore[call-overload]


@cache
def _defaults() -> dict[str, object]:
    empty = ReadSpec()
    return {f.name: getattr(empty, f.name) for f in fields(ReadSpec)}
