"""A question in two immutable objects: how files are read (`ReadSpec`), and what is asked (`Design`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, Final, Literal, Self

from hitmiss.core.classes import OPPOSITE, code_of, named_classes, same_class
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.kinds import SCORE_KINDS, Json, ScoreKind
from hitmiss.core.registry import Derived, Misdeclared, Setting, Spec, declare, fit_field, known_text, parse, plain

# ----------------------------------------------------------------------
# Names of columns: those that belong to the engine, and how a user's column of the same name is stored.
#
# A table of trials holds the engine's columns (`item`, `score`, …) beside the user's (`codec`, `language`, …). A user's
# column with the name of an engine column is stored as `user:NAME` and shown as NAME, so the two cannot be confused:
#
#     stored("codec")   -> "codec"            shown("codec")        -> "codec"
#     stored("target")  -> "user:target"      shown("user:target")  -> "target"
#
# `header.runs`, `header.slices` and `header.numbers` hold stored names, which are those of the frame. Callers (`by`,
# `unit`, `gap`, `where`) and results use shown names; `find` translates a shown name into a stored one.

ANSWERS: Final = ("score", "decision", "confidence", "error")
FIXED: Final = ("item", "target", "label", *ANSWERS)
MADE: Final = (
    "label_word", "system", "unparsed", "score_clean", "decision_clean", "changed_any", "right_all", "right_clean",
    "aim_reached", "aim_open", "class_labels", "class_scores",
)  # fmt: skip
"""Columns that readers add to the fixed ones."""
SCORES: Final = "score:"
"""Prefix of the names of score columns if a file holds the scores of several systems."""
OWN: Final = "user:"
INNER: Final = ":"
"""Prefix of temporary columns, which exist only inside one function."""


def stored(name: str) -> str:
    """Return the name under which a user's column is stored. Different names stay different.

    >>> stored("codec"), stored("score"), stored("user:score")
    ('codec', 'user:score', 'user:user:score')
    """
    is_taken = name in FIXED or name in MADE or name.startswith((OWN, INNER, SCORES))
    return apart(name) if is_taken else name


def apart(name: str) -> str:
    """Return the name of a user's column with the prefix that distinguishes it from every engine column."""
    return f"{OWN}{name}"


def shown(name: str) -> str:
    """Return the user's own name of a column.

    >>> shown("user:score"), shown("codec"), shown(stored("user:x"))
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


def find(name: str, columns: Collection[str]) -> str | None:
    """Return the column that a caller means by a name: the user's comes before the engine's. None if there is none.

    >>> find("target", ["item", "target", "user:target"]), find("target", ["item", "target"]), find("x", ["item"])
    ('user:target', 'target', None)
    >>> find("spk", ["item", "speaker"]), find("SPEAKER_ID", ["item", "speaker"])
    ('speaker', 'speaker')
    """
    ours = SYNONYMS.get(name.strip().lower().replace("-", "_").replace(" ", "_"), name)
    return next((known for known in (apart(name), name, ours) if known in columns), None)


# ----------------------------------------------------------------------
# ReadSpec: everything that a caller can state about files and that the files themselves do not state.

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
OPTION: Final = {
    "weight_kind": "weight-kind",
    "columns": "column",
    "key_columns": "key-column",
    "score_columns": "score-column",
    "score_kind": "score-kind",
    "positive_value": "positive-value",
    "on_nan": "on-nan",
    "allow_missing": "allow-missing",
}
"""Fields whose command-line option has another name."""
SYSTEM: Final = "system"
"""The run column that names the system if one file holds the scores of several systems."""


@dataclass(frozen=True)
class Stated:
    """An immutable object of stated options, which is changed by names of fields and stored as JSON."""

    _form, _option = "", "option"  # what a file calls it, and an error one of its fields; without a hint, no fields

    @property
    def _several(self) -> dict[str, Callable[[Any], object]]:
        """How each field that takes several is read, so that one text is one name and not a list of letters."""
        return {}

    def _read_several(self) -> None:
        for name, reading in self._several.items():
            given = getattr(self, name)
            if given:
                object.__setattr__(self, name, reading(given))

    def changed(self, **changes: object) -> Self:
        """Return the same with some fields changed; an unknown name is an error that gives the nearest name."""
        known = [f.name for f in fields(self)]
        for name in changes:
            if name not in known:
                raise UnknownName(self._option, name, known)
        several = self._several
        try:
            given = {name: several[name](value) if name in several else value for name, value in changes.items()}
            return replace(self, **{name: fit_field(type(self), name, value) for name, value in given.items()})
        except Misdeclared as fault:
            code = f"bad-{self._option.replace(' ', '-')}"
            raise UsageError(f"{self._option} {fault}; found {fault.value!r}", code=code) from None

    def to_plain(self) -> dict[str, Json]:
        """Return the JSON form, with every field."""
        return {f.name: plain(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    def from_plain(cls, data: object) -> Self:
        """Make it from its JSON form."""
        try:
            return declare(cls, data)
        except (Misdeclared, UsageError) as fault:
            raise DataError(
                f"the {cls._form} that the file states is not of the known form: {fault}", code=f"bad-{cls._form}"
            ) from None


@dataclass(frozen=True)
class ReadSpec(Stated):
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
    missing, threshold_rule, identities
        For prediction files (toxicity): what to do with rows without label, score or decision; what to do with
        different thresholds in one group; and the columns that say how far a text mentions an identity.

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
    weight: str | None = None
    weight_kind: WeightKind | None = None
    match: Matching | None = None
    layout: str | None = None
    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    missing: Missing | None = None
    threshold_rule: ThresholdRule | None = None
    identities: tuple[str, ...] = ()

    @property
    def _several(self) -> dict[str, Callable[[Any], object]]:
        return dict.fromkeys(("score_columns", "abstain", "slices", "runs", "numbers", "identities"), _names)

    def changed(self, **changes: object) -> Self:
        """Return the same with some fields changed; a class may be named by its label, as 1 or True."""
        return super().changed(**{n: label_text(v) if n in CLASSES else v for n, v in changes.items()})

    def __post_init__(self) -> None:
        self._read_several()
        for what, value, known in (
            ("on-nan rule", self.on_nan, ON_NAN),
            ("score kind", self.score_kind, SCORE_KINDS),
            ("way to match ids", self.match, MATCHING),
            ("kind of weight", self.weight_kind, tuple(WEIGHT_KINDS)),
        ):
            if value is not None and value not in known:
                raise UnknownName(what, value, known)
        refuse_unkind(self.weight, self.weight_kind)
        if self.separator is not None and len(self.separator.encode()) != 1:
            raise UsageError(f"a separator is one character; found {self.separator!r}", code="bad-separator")
        if self.decimal not in (None, ".", ","):
            raise UsageError(f"the decimal sign is '.' or ','; found {self.decimal!r}", code="bad-decimal")

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
        runs = tuple(apart(name) if name in taken else name for name in self.runs)
        slices = None if self.slices is None else tuple(apart(n) if n in FIXED else n for n in self.slices)
        return replace(self, runs=runs, slices=slices)

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
        said = {name: getattr(self, name) for name, unsaid in _unsaid().items() if getattr(self, name) != unsaid}
        for name in ("columns", "key_columns", "rename", "itself", "where"):
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
    def said(self) -> tuple[str, ...]:
        """The names of the fields in which something was stated."""
        return tuple(name for name, unsaid in _unsaid().items() if getattr(self, name) != unsaid)


def refuse_unkind(weight: str | None, kind: str | None) -> None:
    """Refuse a weight without its kind, and a kind without a weight."""
    if weight is not None and kind is None:
        ways = " or ".join(f"--weight {weight} --weight-kind {name} ({said})" for name, said in WEIGHT_KINDS.items())
        raise UsageError(
            f"say what the weights in {weight!r} are, because intervals differ: {ways}", code="weight-kind"
        )
    if weight is None and kind is not None:
        raise UsageError(
            f"--weight-kind {kind} needs the column: --weight COLUMN --weight-kind {kind}", code="weight-kind"
        )


CLASSES: Final = ("positive", "negative", "positive_value", "higher")


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
def _unsaid() -> dict[str, object]:
    empty = ReadSpec()
    return {f.name: getattr(empty, f.name) for f in fields(ReadSpec)}


# ----------------------------------------------------------------------
# Design: everything that is asked of trials, and the part of it that a protocol fixes; immutable and stored as JSON.

Method = Literal["auto", "percentile", "bca"]
METHODS: Final = ("auto", "percentile", "bca")
BY_CLASS: Final = "within classes"
OF_ALL: Final = "from all"
"""How trials or units are drawn: with fixed class sizes, or with class sizes that vary as in a new sample."""
Grouping = tuple[str, ...]
By = Sequence[str | Sequence[str]] | str
Undefined = Literal["null", "zero"]


@dataclass(frozen=True)
class Gap:
    """The difference between the trials outside and inside a domain: figure(out) − figure(in).

    Every value that is not inside counts as outside, unless `outside` lists values.
    """

    column: str
    inside: tuple[str, ...]
    outside: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Gap:
        """Read a gap from its text: `column=in`, `column=in1+in2` or `column=in:out`.

        >>> Gap.parse("codec=NONE:C01+C02")
        Gap(column='codec', inside=('NONE',), outside=('C01', 'C02'))
        """
        column, equals, values = text.partition("=")
        inside, _, outside = values.partition(":")
        if not column or not equals or not inside:
            raise UsageError(f"gap {text!r}: write column=in, column=in1+in2 or column=in:out", code="bad-gap")
        return cls(column, tuple(inside.split("+")), tuple(outside.split("+")) if outside else ())

    def __str__(self) -> str:
        return f"{self.column}={'+'.join(self.inside)}{':' if self.outside else ''}{'+'.join(self.outside)}"

    @property
    def label(self) -> str:
        """The text of the gap in tables."""
        return f"{'+'.join(self.outside) or 'rest'} − {'+'.join(self.inside)}"


Gaps = Gap | str | Sequence[Gap | str] | bool | None
"""One gap or several as a caller gives them; None leaves it to the protocol, True demands its gap, False wants none."""


@dataclass(frozen=True)
class Protocol:
    """The evaluation rules of a benchmark or standard, as a TOML file declares them; unknown keys are errors.

    Parameters
    ----------
    name, title, primary, reference
        Its name and title, its main metric, and where it is published.
    metrics, slice_metrics
        What is measured, and which of these metrics are shown in tables by slice (all if none is listed).
    read
        How its files are read.
    settings
        Settings of metrics that differ from their defaults.
    by, unit, bootstrap, threshold
        Defaults if the caller does not state them: groupings, the columns resampled as whole units, the number of
        replicates, and the threshold at which scores are decided.
    natural
        Units that such data naturally have, as `--unit` takes them, the widest first: `["speaker,attack", "speaker"]`.
        They are not used unless asked for; if one exists and trials were resampled, a warning says what it would
        change.
    names
        Names of metrics and derived figures in tables: `fpr = "APCER"`.
    derived
        Figures computed from those of `metrics`: `acer = "(max(APCER, species) + BPCER) / 2"` (see `registry.Derived`).
    negative_only, positive_only
        Columns whose values distinguish trials of one class only (such as the type of an attack): a slice of them is
        scored against all trials of the other class.
    both_eers
        Show the EER under both rules for ties if tied scores matter.
    zero_undefined
        A share with an empty denominator is 0, with a mark; otherwise it is undefined.
    delong
        Use DeLong's interval for an AUC even if there are replicates.
    within
        For each grouping, also show the AUC over the pairs within a slice, which does not change if scales or rates
        differ between slices.
    gap
        The domain that is "in".
    remarks
        Per column, a remark to print when figures are grouped by it.
    pooled
        Per column, a remark to print when the figures of all trials pool its values (such as subsets of a corpus).
    refuses
        Per layout of files, why this protocol does not score them.
    reader, measured_by, compared_by
        Functions of hitmiss that read, measure or compare instead, if a figure is about several trials together.
    """

    name: str = ""
    title: str = ""
    primary: str = ""
    metrics: tuple[str, ...] = ()
    read: ReadSpec = field(default_factory=ReadSpec)
    reference: str = ""
    slice_metrics: tuple[str, ...] = ()
    both_eers: bool = False
    zero_undefined: bool = False
    delong: bool = False
    within: bool = False
    reader: Literal["", "hitmiss.protocols.toxicity:read_files"] = ""
    measured_by: Literal["", "hitmiss.robustness.attacks:measure_attacks"] = ""
    compared_by: Literal["", "hitmiss.robustness.attacks:compare_attacks"] = ""
    by: tuple[str, ...] = ()
    unit: tuple[str, ...] = ()
    natural: tuple[str, ...] = ()
    bootstrap: int = 0
    threshold: float | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    derived: Mapping[str, str] = field(default_factory=dict)
    negative_only: tuple[str, ...] = ()
    positive_only: tuple[str, ...] = ()
    settings: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict)
    gap: Gap | None = None
    remarks: Mapping[str, str] = field(default_factory=dict)
    pooled: Mapping[str, str] = field(default_factory=dict)
    refuses: Mapping[str, str] = field(default_factory=dict)

    @property
    def undrawn(self) -> Protocol:
        """The same protocol without its own bootstrap, for callers that want no replicates."""
        return replace(self, bootstrap=0) if self.bootstrap else self

    def expressions(self, wanted: Sequence[str] = ()) -> tuple[Derived, ...]:
        """Return its derived figures, or those with the given names."""
        names = [name for name in wanted if name in self.derived] if wanted else list(self.derived)
        return tuple(Derived.parse(name, self.derived[name], self.names) for name in names)


REQUIRED: Final = ("name", "primary", "metrics", "read")


def declared(data: object) -> Protocol:
    """Make a protocol from the data of its file; `Misdeclared` says what is wrong and where. Its name may be its title."""
    protocol = declare(Protocol, data)
    protocol = replace(protocol, title=protocol.title or protocol.name)
    for name in REQUIRED:
        if not isinstance(data, Mapping) or name not in data:
            raise Misdeclared((name,), "it is missing")
    for name in ("positive", "negative"):
        if getattr(protocol.read, name) is None:
            raise Misdeclared(("read", name), "it is missing")
    _check_derived(protocol)
    return protocol


def _check_derived(protocol: Protocol) -> None:
    """Refuse a derived figure whose metrics the protocol does not measure, and display names of unknown figures."""
    metrics = [str(parse(text)) for text in protocol.metrics]
    for derived in protocol.expressions():
        for term in derived.terms:
            if term.metric not in metrics:
                raise Misdeclared(("derived", derived.name), f"{term.metric} is not among the metrics")
    for name in protocol.names:
        if name not in (*metrics, *protocol.derived):
            raise Misdeclared(("names", name), "it is neither a metric of the protocol nor a derived figure")


@dataclass(frozen=True)
class Plan:
    """How intervals are made: replicates, the unit that is resampled, the seed, the level and the kind of interval."""

    bootstrap: int = 0
    unit: tuple[str, ...] = ()
    seed: int = 0
    level: float = 0.95
    method: Method = "auto"
    stratify: bool | None = None

    def __post_init__(self) -> None:
        if self.bootstrap < 0 or self.bootstrap == 1:
            raise UsageError(
                f"an interval needs at least 2 replicates (0 for none); found {self.bootstrap}", code="bad-bootstrap"
            )
        if not 0.0 < self.level < 1.0:
            raise UsageError(f"the level must lie between 0 and 1; found {self.level}", code="bad-level")
        if self.method not in METHODS:
            raise UnknownName("kind of interval", self.method, METHODS)
        if len(self.unit) > 2:
            raise UsageError(f"at most two units can be crossed; found {', '.join(self.unit)}", code="bad-unit")

    def by_class(self, prevalence: bool) -> bool:
        """Return whether trials (or units of one class) are resampled within each class.

        They are if a figure does not depend on prevalence. Otherwise the number of positives is random too, so trials
        are drawn from both classes together.
        """
        return not prevalence if self.stratify is None else self.stratify

    def said(self, prevalence: bool, whole: bool = False) -> str:
        """Describe how the replicates of a figure were drawn; `whole`: units hold both classes."""
        what = f"unit={'*'.join(self.unit)}" if self.unit else "trials"
        how = "" if whole else f" {BY_CLASS if self.by_class(prevalence) else OF_ALL}"
        return f"{self.bootstrap},{what}{how},{self._rest}"

    def __str__(self) -> str:
        if not self.bootstrap:
            return "none"
        kind = f"unit={'*'.join(self.unit)}" if self.unit else "trials"
        asked = {None: "", True: f" {BY_CLASS}", False: f" {OF_ALL}"}[self.stratify]
        return f"{self.bootstrap},{kind}{asked},{self._rest}"

    @classmethod
    def parse(cls, text: str) -> Plan:
        """Read a plan from its text in a signature; older versions write `stratified` for trials.

        >>> str(Plan.parse("100,unit=speaker within classes,auto,0.9,seed=7"))
        '100,unit=speaker within classes,auto,0.9,seed=7'
        """
        try:
            count, kind, method, level, seed = text.split(",")
            drawn = next((how for how in (BY_CLASS, OF_ALL) if kind.endswith(f" {how}")), "")
            what = kind.removesuffix(drawn).strip()
            return cls(
                int(count),
                tuple(what.removeprefix("unit=").split("*")) if what.startswith("unit=") else (),
                int(seed.removeprefix("seed=")),
                float(level),
                fit_field(cls, "method", method),
                {BY_CLASS: True, OF_ALL: False}.get(drawn),
            )
        except (ValueError, Misdeclared):
            raise UsageError(f"{text!r} does not say how intervals were drawn", code="bad-plan") from None

    @property
    def _rest(self) -> str:
        return f"{self.method},{self.level:g},seed={self.seed}"


@dataclass(frozen=True)
class Bands:
    """Two thresholds and where they come from.

    >>> print(Bands(0.2, 0.8))
    real below 0.2, fake from 0.8 on, uncertain between (given)
    """

    low: float
    high: float
    origin: str = "given"

    def __post_init__(self) -> None:
        if math.isnan(self.low) or math.isnan(self.high) or self.low > self.high:
            raise UsageError(
                f"the low threshold must not exceed the high one; found {self.low} and {self.high}",
                code="bad-thresholds",
            )

    def __str__(self) -> str:
        return self.told("real", "fake")

    def told(self, negative: str, positive: str) -> str:
        """Describe the rule in words."""
        where = f"{negative} below {self.low:.6g}, {positive} from {self.high:.6g} on, uncertain between"
        return f"{where} ({self.origin})"


@dataclass(frozen=True)
class Sureness:
    """The least confidence at which a verdict of each class is accepted, and its origin; below it, a person decides.

    >>> print(Sureness(0.8, 0.6))
    real from confidence 0.8 on, fake from 0.6 on, uncertain otherwise (given)
    """

    negative: float
    positive: float
    origin: str = "given"

    def __post_init__(self) -> None:
        if math.isnan(self.negative) or math.isnan(self.positive):
            raise UsageError("a least confidence must be a number; found NaN", code="bad-least-confidence")

    def __str__(self) -> str:
        where = f"real from confidence {self.negative:.6g} on, fake from {self.positive:.6g} on, uncertain otherwise"
        return f"{where} ({self.origin})"


@dataclass(frozen=True)
class Triage:
    """What a triage evaluation fixes.

    That is: two thresholds of a score, or least confidences of verdicts; whether they were chosen on half of the rows,
    which are then left out; and how confidences were recalibrated on other rows.
    """

    bands: Bands | None = None
    half: bool = False
    recalibration: str | None = None
    sureness: Sureness | None = None


@dataclass(frozen=True)
class Languages:
    """What a toxicity evaluation fixes.

    That is: the tag of the run, the column of the groups, which groups are used, the threshold of groups that have
    none, and the share of annotators from which a label counts.
    """

    run_tag: str | None = None
    group: str | None = None
    names: tuple[str, ...] = ()
    skip_missing: bool = False
    default_threshold: float | None = None
    label_cut: float | None = None


@dataclass(frozen=True)
class Drift:
    """What a drift table fixes: the value that marks untouched clips, and the column that links copies."""

    clean: str | None = None
    pair_by: str | None = None


@dataclass(frozen=True)
class Side:
    """One run of a comparison: its name, how its file is read, its threshold, and a hash of its rows in any order."""

    name: str
    read: ReadSpec = field(default_factory=ReadSpec)
    threshold: float | None = None
    content: str = ""


@dataclass(frozen=True)
class Contest:
    """What a comparison fixes: the runs, the test, the correction, and whether it was forced."""

    sides: tuple[Side, ...] = ()
    test: str = "auto"
    correction: str = "auto"
    allow_missing: bool = False
    force: bool = False


@dataclass(frozen=True)
class Taken:
    """What was taken from a settings file: its name, and the values by their names.

    >>> print(Taken("hitmiss.toml", {"positive": "fake", "unit": "speaker"}))
    from hitmiss.toml: positive = fake, unit = speaker
    """

    file: str
    values: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"from {self.file}: {', '.join(f'{name} = {value}' for name, value in self.values.items())}"

    def __or__(self, other: Taken) -> Taken:
        return Taken(self.file, {**self.values, **other.values})


@dataclass(frozen=True)
class Design(Stated):
    """Everything that is asked of trials.

    Parameters
    ----------
    protocol
        The evaluation rules; None without a protocol.
    metrics
        Metrics with their settings, as texts; empty: those of the protocol.
    by
        Groupings, each of one or more slice columns.
    matrix
        Two slice columns to show as a matrix.
    gap
        The gap between two domains, or several gaps. `auto`: that of the protocol if its column is in `by`; `none`: no
        gap.
    unit
        Columns whose values are resampled as whole units.
    bootstrap, seed, level, interval, stratify
        The number of replicates (0: none), the seed of the draws, the level and the kind of intervals, and whether
        units are drawn within classes.
    threshold
        The threshold of decisions (`score >= threshold`).
    negative_only, positive_only
        Columns whose values distinguish trials of one class only, in addition to those of the protocol.
    undefined
        Shares with an empty denominator: `null`, or `zero`; None uses the rule of the protocol.
    seeds
        Each file is one run; figures are summarised over the runs.
    calibration
        The method by which scores are calibrated on other files; figures are shown before and after.
    triage, languages, drift, contest
        What a triage, a toxicity evaluation, a drift table or a comparison fixes in addition.
    taken
        What was taken from a settings file, of these values and of the read options; None if nothing was.

    Examples
    --------
    >>> design = Design.of(["eer"], by="codec", bootstrap=100)
    >>> Design.from_plain(design.to_plain()) == design
    True
    """

    protocol: Protocol | None = None
    _form = "design"
    metrics: tuple[str, ...] = ()
    by: tuple[Grouping, ...] = ()
    matrix: tuple[str, ...] = ()
    gap: Gap | tuple[Gap, ...] | Literal["auto", "none"] = "auto"
    unit: tuple[str, ...] = ()
    bootstrap: int = 0
    seed: int = 0
    level: float = 0.95
    interval: Method = "auto"
    stratify: bool | None = None
    threshold: float | None = None
    undefined: Undefined | None = None
    negative_only: tuple[str, ...] = ()
    positive_only: tuple[str, ...] = ()
    seeds: bool = False
    calibration: str | None = None
    triage: Triage | None = None
    languages: Languages | None = None
    drift: Drift | None = None
    contest: Contest | None = None
    taken: Taken | None = field(default=None, compare=False)

    def to_plain(self) -> dict[str, Json]:
        """Return the JSON form, with every field; without `taken` if nothing was."""
        return {name: value for name, value in super().to_plain().items() if name != "taken" or value is not None}

    @property
    def _several(self) -> dict[str, Callable[[Any], object]]:
        names = dict.fromkeys(("metrics", "negative_only", "positive_only"), _names)
        return {**names, "by": _groupings, "matrix": _columns, "unit": _columns, "gap": _gaps}

    def __post_init__(self) -> None:
        self._read_several()
        if self.metrics:
            object.__setattr__(self, "metrics", tuple(map(self._own_name, self.metrics)))
        _ = self.plan  # raises if the plan is invalid
        if self.threshold is not None and math.isnan(self.threshold):
            raise UsageError("a threshold must be a number; found NaN", code="nan-threshold")
        if len(self.matrix) not in (0, 2):
            raise UsageError(
                f"--matrix {','.join(self.matrix)!r}: write two columns, as attack,codec", code="bad-matrix"
            )

    @classmethod
    def of(
        cls,
        metrics: Sequence[str | Spec] = (),
        *,
        by: By = (),
        gap: Gaps = None,
        unit: str | Sequence[str] | None = None,
        **others: object,
    ) -> Design:
        """Make a design from a caller's arguments: columns as texts, a gap as None (auto), True (protocol) or False."""
        return cls().changed(
            metrics=(metrics,) if isinstance(metrics, str) else tuple(map(str, metrics)),
            by=parse_by(by),
            gap=_asked_gap(gap, others.get("protocol")),
            unit=names_of(unit),
            **others,
        )

    def _own_name(self, text: str) -> str:
        """Return a metric under its own name, which the protocol or the field may call otherwise."""
        protocol = self.protocol or Protocol()
        shown = {title.lower(): name for name, title in protocol.names.items()}
        return text if text in protocol.derived else known_text(shown.get(text.strip().lower(), text))

    @classmethod
    def by_plan(
        cls, plan: Plan, metrics: Sequence[str], by: tuple[Grouping, ...] = (), protocol: Protocol | None = None
    ) -> Design:
        """Make the design of metrics whose intervals a plan makes, without a gap."""
        return cls(
            protocol=protocol,
            metrics=tuple(metrics),
            by=by,
            gap="none",
            unit=plan.unit,
            bootstrap=plan.bootstrap,
            seed=plan.seed,
            level=plan.level,
            interval=plan.method,
            stratify=plan.stratify,
        )

    def alone(self, keywords: Design, unsaid: Design) -> Design:
        """Return this design, which was given instead of metrics or a protocol; other keywords would contradict it."""
        if keywords != unsaid:
            raise UsageError("a design holds all settings; remove the other options", code="design-and-options")
        return self

    @property
    def plan(self) -> Plan:
        """How intervals are made: what is resampled, and which intervals are computed from it."""
        return Plan(self.bootstrap, self.unit, self.seed, self.level, self.interval, self.stratify)

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """The gaps that were asked for; none if the protocol decides."""
        return (self.gap,) if isinstance(self.gap, Gap) else () if isinstance(self.gap, str) else self.gap

    @property
    def groupings(self) -> tuple[Grouping, ...]:
        """Everything that figures are split by: the groupings, and those of the matrix."""
        across = [(name,) for name in self.matrix] + ([self.matrix] if self.matrix else [])
        return tuple(dict.fromkeys((*self.by, *across)))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that groupings, the gap, units and derived figures need."""
        gap = [gap.column for gap in self.gaps]
        # a misspelt unit is refused anyway
        units = () if self.unit == ("item",) and not self.bootstrap else self.unit
        derived = self.protocol.expressions(self.metrics) if self.protocol else ()
        across = [c for one in derived for term in one.terms for c in term.columns]
        return tuple(dict.fromkeys([*(c for grouping in self.groupings for c in grouping), *gap, *units, *across]))

    @property
    def settled(self) -> Protocol:
        """The protocol of the measurement; without one, an empty protocol."""
        protocol = self.protocol or Protocol()
        return replace(
            protocol,
            zero_undefined=protocol.zero_undefined if self.undefined is None else self.undefined == "zero",
            negative_only=tuple(dict.fromkeys((*protocol.negative_only, *self.negative_only))),
            positive_only=tuple(dict.fromkeys((*protocol.positive_only, *self.positive_only))),
        )

    def filled(self) -> Design:
        """Return the design with the protocol's groupings, units, replicates and threshold where none was given."""
        protocol = self.protocol or Protocol()
        return replace(
            self,
            by=self.by or (() if self.matrix else parse_by(protocol.by)),
            unit=self.unit or protocol.unit,
            bootstrap=self.bootstrap or protocol.bootstrap,
            threshold=protocol.threshold if self.threshold is None else self.threshold,
        )


def _asked_gap(gap: Gaps, protocol: object) -> Gap | tuple[Gap, ...] | Literal["auto", "none"]:
    """Return a gap, or several, from a caller's argument; True means that of the protocol."""
    if gap is True:
        if not isinstance(protocol, Protocol) or protocol.gap is None:
            raise UsageError("no protocol says which domain is in; write --gap column=value", code="no-gap")
        return protocol.gap
    if not gap:
        return "auto" if gap is None else "none"
    given = [gap] if isinstance(gap, str | Gap) else list(gap)
    return parse_gaps([str(one) for one in given])


def parse_gaps(texts: Sequence[str]) -> Gap | tuple[Gap, ...] | Literal["auto", "none"]:
    """Read gaps from their texts, each `codec=NONE`, `codec=in:out`, or alone `auto` or `none`.

    >>> print(*parse_gaps(["codec=NONE", "codec=NONE:C01"]))
    codec=NONE codec=NONE:C01
    """
    given = tuple(dict.fromkeys(texts))
    if len(given) > 1 and {"auto", "none"} & {*given}:
        raise UsageError(f"--gap {' --gap '.join(given)}: auto and none cannot be combined", code="bad-gap")
    if given in ((), ("auto",)):
        return "auto"
    gaps = tuple(map(Gap.parse, given)) if given != ("none",) else ()
    return "none" if not gaps else gaps[0] if len(gaps) == 1 else gaps


def _names(given: object) -> object:
    """Return one text as a list of one; a list stays as it is, so that its type is checked."""
    return (given,) if isinstance(given, str) else given


def _columns(given: object) -> object:
    return names_of(given) if isinstance(given, str) else given


def _groupings(given: object) -> object:
    is_named = isinstance(given, str) or (isinstance(given, list | tuple) and any(isinstance(g, str) for g in given))
    return parse_by(given) if is_named else given  # type: ignore[arg-type]


def _gaps(given: object) -> object:
    is_named = isinstance(given, str) or (isinstance(given, list | tuple) and any(isinstance(g, str) for g in given))
    return _asked_gap(given, None) if is_named else given  # type: ignore[arg-type]


def parse_by(by: By) -> tuple[Grouping, ...]:
    """Read groupings from `["codec", "codec,codec_q", ("attack", "codec")]`.

    >>> parse_by(["codec", "codec,codec_q"])
    (('codec',), ('codec', 'codec_q'))
    """
    if not isinstance(by, str | Sequence):
        raise UsageError(
            f"by takes names of columns, as 'codec' or ['codec', 'attack']; found {by!r}", code="bad-grouping"
        )
    given = [by] if isinstance(by, str) else list(by)
    groupings = [tuple(p.strip() for p in g.split(",")) if isinstance(g, str) else tuple(g) for g in given]
    for grouping in groupings:
        if not all(grouping) or len(set(grouping)) != len(grouping):
            raise UsageError(f"cannot group by {', '.join(grouping)!r}; name each column once", code="bad-grouping")
    return tuple(dict.fromkeys(groupings))


def names_of(unit: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns whose values are resampled as whole units, from `speaker,attack` or a list of names.

    >>> names_of("speaker, attack"), names_of(None)
    (('speaker', 'attack'), ())
    """
    if unit is None:
        return ()
    return tuple(p.strip() for p in unit.split(",")) if isinstance(unit, str) else tuple(unit)
