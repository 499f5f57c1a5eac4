"""Protocol: the evaluation rules of a benchmark or standard, as a TOML file declares them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

from hitmiss.core.convert import InvalidField, declare
from hitmiss.core.errors import UsageError
from hitmiss.core.metric_spec import Setting, parse
from hitmiss.core.read_spec import ReadSpec

if TYPE_CHECKING:
    from hitmiss.core.expressions import Derived

EVERY: Final = "*"
WITHIN: Final = " within "
GROUPS: Final = "groups"
"""The setting of a spread that says over how many groups it is."""


@dataclass(frozen=True)
class Gap:
    """The difference between the trials outside and inside a domain: value(out) − value(in).

    Every value that is not inside counts as outside, unless `outside` lists values. `*` outside: each other value on its
    own against the domain. `*` inside: the spread over all values, greatest − least, and least / greatest. `within` names
    columns in each of whose values the same is asked.
    """

    column: str
    inside: tuple[str, ...]
    outside: tuple[str, ...] = ()
    within: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Gap:
        """Read a gap from its text: `column=in`, `column=in1+in2`, `column=in:out`, `column=in:*`, `column=*`.

        >>> Gap.parse("codec=NONE:C01+C02")
        Gap(column='codec', inside=('NONE',), outside=('C01', 'C02'), within=())
        >>> print(Gap.parse("language=* within platform"))
        language=* within platform
        """
        asked, _, within = text.partition(WITHIN)
        column, equals, values = asked.strip().partition("=")
        inside, _, outside = values.partition(":")
        control = tuple(name.strip() for name in within.split(",")) if within else ()
        if not column or not equals or not inside or (inside == EVERY and outside) or column in control:
            raise UsageError.of("bad-gap/form", text=text)
        return cls(column, tuple(inside.split("+")), tuple(outside.split("+")) if outside else (), control)

    def __str__(self) -> str:
        sides = f"{'+'.join(self.inside)}{':' if self.outside else ''}{'+'.join(self.outside)}"
        return f"{self.column}={sides}{WITHIN if self.within else ''}{','.join(self.within)}"

    @property
    def label(self) -> str:
        """The text of the gap in tables."""
        return f"{'+'.join(self.outside) or 'rest'} − {'+'.join(self.inside)}"

    @property
    def is_spread(self) -> bool:
        """Whether the greatest and the least of all values are asked for."""
        return self.inside == (EVERY,)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it needs."""
        return (*self.within, self.column)


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
        Names of metrics and derived numbers in tables: `fpr = "APCER"`.
    derived
        Numbers computed from those of `metrics`: `acer = "(max(APCER, species) + BPCER) / 2"` (see `registry.Derived`).
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
        Per column, a remark to print when numbers are grouped by it.
    pooled
        Per column, a remark to print when the numbers of all trials pool its values (such as subsets of a corpus).
    refuses
        Per layout of files, why this protocol does not score them.
    verdicts
        Trials are three-way verdicts: abstentions, failed calls, times, repeats and people belong to the evaluation.
    claims_speaker
        A trial is a pair of a claimed speaker and an utterance, and its id is both.
    rule_of_30
        Error rates that are named if they rest on fewer than 30 errors, with the bound by the rule of 3 if on none.
    split
        Columns that mean one thing for positives and another for negatives, each with its two names:
        `distance = ["talker_distance", "device_distance"]`.
    asv, asv_columns, asv_key_columns
        What the scores of a speaker verifier (`--asv`) are: `pairs` with ids, joined with a key, or `sources` without
        ids; and the columns of the two files.
    reader, measured_by, compared_by
        Functions of hitmiss that read, measure or compare instead, if a number is about several trials together.
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
    claims_speaker: bool = False
    verdicts: bool = False
    rule_of_30: tuple[str, ...] = ()
    split: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    asv: Literal["", "pairs", "sources"] = ""
    asv_columns: Mapping[str, str] = field(default_factory=dict)
    asv_key_columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def without_bootstrap(self) -> Protocol:
        """The same protocol without its own bootstrap, for callers that want no replicates."""
        return replace(self, bootstrap=0) if self.bootstrap else self

    def expressions(self, wanted: Sequence[str] = ()) -> tuple[Derived, ...]:
        """Return its derived numbers, or those with the given names."""
        names = [name for name in wanted if name in self.derived] if wanted else list(self.derived)
        if not names:
            return ()
        from hitmiss.core.expressions import Derived

        return tuple(Derived.parse(name, self.derived[name], self.names) for name in names)


REQUIRED: Final = ("name", "primary", "metrics", "read")


def make_protocol(data: object) -> Protocol:
    """Make a protocol from the data of its file; `InvalidField` says what is wrong and where. Its name may be its title."""
    protocol = declare(Protocol, data)
    protocol = replace(protocol, title=protocol.title or protocol.name)
    for name in REQUIRED:
        if not isinstance(data, Mapping) or name not in data:
            raise InvalidField((name,), "it is missing")
    for name in ("positive", "negative"):
        if getattr(protocol.read, name) is None:
            raise InvalidField(("read", name), "it is missing")
    _check_derived(protocol)
    return protocol


def _check_derived(protocol: Protocol) -> None:
    """Refuse a derived number whose metrics the protocol does not measure, and display names of unknown numbers."""
    metrics = [str(parse(text)) for text in protocol.metrics]
    for derived in protocol.expressions():
        for term in derived.terms:
            if term.metric not in metrics:
                raise InvalidField(("derived", derived.name), f"{term.metric} is not among the metrics")
    for name in protocol.names:
        if name not in (*metrics, *protocol.derived):
            raise InvalidField(("names", name), "it is neither a metric of the protocol nor a derived number")
