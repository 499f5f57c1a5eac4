"""Design: everything that is asked of trials; immutable and stored as JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Annotated, Final, Literal

from hitmiss.core.criteria import Criteria
from hitmiss.core.errors import UsageError
from hitmiss.core.kinds import Json
from hitmiss.core.metric_spec import MetricSpec
from hitmiss.core.protocol import Gap, Gaps, Protocol
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.registry import known_text
from hitmiss.core.sampling import Method, SamplingPlan
from hitmiss.core.spec import CERTAINTY, MEASURING, Spec, as_names, opt

Grouping = tuple[str, ...]
By = Sequence[str | Sequence[str]] | str
Undefined = Literal["null", "zero"]
INDEPENDENT: Final = ("none",)
"""The unit of trials that are drawn one by one, although a protocol may name others."""


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
            raise UsageError.of("bad-thresholds", low=self.low, high=self.high)

    def __str__(self) -> str:
        return self.in_words("real", "fake")

    def in_words(self, negative: str, positive: str) -> str:
        """Describe the rule in words."""
        where = f"{negative} below {self.low:.6g}, {positive} from {self.high:.6g} on, uncertain between"
        return f"{where} ({self.origin})"


@dataclass(frozen=True)
class LeastConfidence:
    """The least confidence at which a verdict of each class is accepted, and its origin; below it, a person decides.

    >>> print(LeastConfidence(0.8, 0.6))
    real from confidence 0.8 on, fake from 0.6 on, uncertain otherwise (given)
    """

    negative: float
    positive: float
    origin: str = "given"

    def __post_init__(self) -> None:
        if math.isnan(self.negative) or math.isnan(self.positive):
            raise UsageError.of("nan-threshold")

    def __str__(self) -> str:
        where = f"real from confidence {self.negative:.6g} on, fake from {self.positive:.6g} on, uncertain otherwise"
        return f"{where} ({self.origin})"


@dataclass(frozen=True)
class TriageRules:
    """What a triage evaluation fixes.

    That is: two thresholds of a score, or least confidences of verdicts; whether they were chosen on half of the rows,
    which are then left out; and how confidences were recalibrated on other rows.
    """

    bands: Bands | None = None
    half: bool = False
    recalibration: str | None = None
    sureness: LeastConfidence | None = None


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
class ComparisonRules:
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
class Design(Spec):
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
    identity
        Columns that say which texts mention an identity: each has its subgroup, BPSN and BNSP AUC, and all of them
        their power means and the final number (see `hitmiss.metrics.bias`).
    unit
        Columns whose values are resampled as whole units; empty: the natural units of the protocol if the trials have
        them, otherwise single trials; `none`: single trials, whatever the protocol names.
    bootstrap, seed, level, interval, stratify
        The number of replicates (0: none), the seed of the draws, the level and the kind of intervals, and whether
        units are drawn within classes.
    threshold, threshold_origin
        The threshold of decisions (`score >= threshold`), and where it comes from.
    negative_only, positive_only
        Columns whose values distinguish trials of one class only, in addition to those of the protocol.
    undefined
        Shares with an empty denominator: `null`, or `zero`; None uses the rule of the protocol.
    require
        What must be shown (see `hitmiss.engine.requirement`); the verdict ends in PASS, FAIL or NOT SHOWN.
    criteria
        The locked criteria that requirements were taken from (`hitmiss lock`).
    seeds
        Each file is one run; numbers are summarised over the runs.
    calibration
        The method by which scores are calibrated on other files; numbers are shown before and after.
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

    _form = "design"
    protocol: Annotated[
        Protocol | None,
        opt(
            "A protocol, or a .toml file.",
            MEASURING,
            "--protocol",
            "-p",
            metavar="NAME|FILE",
            complete="protocols",
            common=True,
        ),
    ] = None
    metrics: Annotated[
        tuple[str, ...],
        opt(
            "A metric; may be repeated.",
            MEASURING,
            "--metric",
            "-m",
            read=_metric_texts,
            complete="metrics",
            common=True,
        ),
    ] = ()
    by: Annotated[
        tuple[Grouping, ...],
        opt(
            "Slice column(s), `codec` or `codec,codec_q`.", MEASURING, read=_groupings, complete="columns", common=True
        ),
    ] = ()
    matrix: Annotated[
        tuple[str, ...],
        opt(
            "Two slice columns as a matrix, `attack,codec`.",
            MEASURING,
            read=_columns,
            is_single=True,
            complete="columns",
        ),
    ] = ()
    gap: Annotated[
        Gap | tuple[Gap, ...] | Literal["auto", "none"],
        opt(
            "In-domain value(s), `codec=NONE` or `codec=in:out`; `group=ref:*` each against ref; `group=*` greatest − least and "
            "their ratio; `… within column`; or none; may be repeated.",
            MEASURING,
            read=_gaps,
        ),
    ] = "auto"
    identity: Annotated[
        tuple[str, ...],
        opt(
            "Column(s) that say which texts mention an identity: subgroup, BPSN and BNSP AUC, power means, final number.",
            MEASURING,
            read=_identities,
            takes_words=True,
            complete="columns",
        ),
    ] = ()
    unit: Annotated[
        tuple[str, ...],
        opt(
            "Column(s) whose values are resampled as a whole, `speaker` or `speaker,attack`; none: single trials. Without it, the "
            "natural units of the protocol.",
            CERTAINTY,
            read=_columns,
            is_joined=True,
            complete="columns",
            common=True,
        ),
    ] = ()
    bootstrap: Annotated[int, opt("Replicates of the bootstrap; 0 for none.", CERTAINTY, common=True)] = 0
    seed: Annotated[int, opt("Seed of the resampling.", CERTAINTY)] = 0
    level: Annotated[float, opt("Level of the intervals.", CERTAINTY)] = 0.95
    interval: Annotated[Method, opt("Kind of interval.", CERTAINTY)] = "auto"
    stratify: Annotated[
        bool | None, opt("Resample units within each class (refused if one holds both).", CERTAINTY)
    ] = None
    threshold: Annotated[float | None, opt("Decide at this threshold (score >= t), for accuracy, f1 …", MEASURING)] = (
        None
    )
    threshold_origin: str = "given"
    undefined: Undefined | None = None
    negative_only: Annotated[
        tuple[str, ...],
        opt(
            "A column about negatives; each slice is measured with all positives.",
            MEASURING,
            read=as_names,
            complete="columns",
        ),
    ] = ()
    positive_only: Annotated[
        tuple[str, ...],
        opt(
            "A column about positives; each slice is measured with all negatives.",
            MEASURING,
            read=as_names,
            complete="columns",
        ),
    ] = ()
    require: Annotated[
        tuple[str, ...],
        opt(
            "What must be shown, as 'eer.high <= 0.05', 'precision >= 0.9 at prevalence 1%', or requirements.toml; may be "
            "repeated.",
            CERTAINTY,
            read=as_names,
            common=True,
        ),
    ] = ()
    criteria: Criteria | None = None
    seeds: bool = False
    calibration: str | None = None
    triage: TriageRules | None = None
    languages: Languages | None = None
    drift: Drift | None = None
    contest: ComparisonRules | None = None
    taken: Taken | None = field(default=None, compare=False)

    def to_plain(self) -> dict[str, Json]:
        """Return the JSON form, with every field; without `taken` and some others if they are not said."""
        unsaid: dict[str, Json] = {
            "taken": None,
            "criteria": None,
            "require": [],
            "identity": [],
            "threshold_origin": "given",
        }
        return {
            name: value for name, value in super().to_plain().items() if name not in unsaid or value != unsaid[name]
        }

    def __post_init__(self) -> None:
        self._read_fields()
        if self.metrics:
            object.__setattr__(self, "metrics", tuple(map(self._own_name, self.metrics)))
        _ = self.plan  # raises if the plan is invalid
        if self.threshold is not None and math.isnan(self.threshold):
            raise UsageError.of("nan-threshold")
        if len(self.matrix) not in (0, 2):
            raise UsageError.of("bad-matrix", matrix=",".join(self.matrix))

    @classmethod
    def of(
        cls,
        metrics: Sequence[str | MetricSpec] = (),
        *,
        by: By = (),
        gap: Gaps = None,
        unit: str | Sequence[str] | None = None,
        **others: object,
    ) -> Design:
        """Make a design from a caller's arguments: columns as texts, a gap as None (auto), True (protocol) or False."""
        return cls().changed(
            metrics=_metric_texts(metrics),
            by=parse_by(by),
            gap=as_gap(gap, others.get("protocol")),
            unit=names_of(unit),
            **others,
        )

    def _own_name(self, text: str) -> str:
        """Return a metric under its own name, which the protocol or the field may call otherwise."""
        protocol = self.protocol or Protocol()
        titles = {title.lower(): name for name, title in protocol.names.items()}
        return text if text in protocol.derived else known_text(titles.get(text.strip().lower(), text))

    @classmethod
    def by_plan(
        cls, plan: SamplingPlan, metrics: Sequence[str], by: tuple[Grouping, ...] = (), protocol: Protocol | None = None
    ) -> Design:
        """Make the design of metrics whose intervals a plan makes, without a gap."""
        return cls(
            protocol=protocol,
            metrics=tuple(metrics),
            by=by,
            gap="none",
            unit=plan.unit or INDEPENDENT,
            bootstrap=plan.bootstrap,
            seed=plan.seed,
            level=plan.level,
            interval=plan.method,
            stratify=plan.stratify,
        )

    def alone(self, keywords: Design, unsaid: Design) -> Design:
        """Return this design, which was given instead of metrics or a protocol; other keywords would contradict it."""
        if keywords != unsaid:
            raise UsageError.of("design-and-options")
        return self

    @property
    def plan(self) -> SamplingPlan:
        """How intervals are made: what is resampled, and which intervals are computed from it."""
        return SamplingPlan(self.bootstrap, self.units, self.seed, self.level, self.interval, self.stratify)

    @property
    def units(self) -> tuple[str, ...]:
        """The columns whose values are resampled as a whole, as far as the design names them.

        >>> Design(unit=("none",)).units, Design(unit=("speaker",)).units
        ((), ('speaker',))
        """
        return () if self.unit == INDEPENDENT else self.unit

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """The gaps that were asked for; none if the protocol decides."""
        return (self.gap,) if isinstance(self.gap, Gap) else () if isinstance(self.gap, str) else self.gap

    @property
    def groupings(self) -> tuple[Grouping, ...]:
        """Everything that numbers are split by: the groupings, and those of the matrix."""
        across = [(name,) for name in self.matrix] + ([self.matrix] if self.matrix else [])
        return tuple(dict.fromkeys((*self.by, *across)))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that groupings, the gap, identities, units and derived numbers need."""
        gap = [column for gap in self.gaps for column in gap.columns]
        # a misspelt unit is refused anyway
        units = () if self.unit == ("item",) and not self.bootstrap else self.units
        derived = self.protocol.expressions(self.metrics) if self.protocol else ()
        across = [c for one in derived for term in one.terms for c in term.columns]
        return tuple(
            dict.fromkeys(
                [*(c for grouping in self.groupings for c in grouping), *gap, *self.identity, *units, *across]
            )
        )

    def refuse_identities(self, why: str) -> None:
        """Refuse identities that are named where there is no area to compare."""
        if self.identity:
            raise UsageError.of("identity-unfit", names=" ".join(self.identity), why=why)

    @property
    def rules(self) -> Protocol:
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


def as_gap(gap: Gaps, protocol: object) -> Gap | tuple[Gap, ...] | Literal["auto", "none"]:
    """Return a gap, or several, from a caller's argument; True means that of the protocol."""
    if gap is True:
        if not isinstance(protocol, Protocol) or protocol.gap is None:
            raise UsageError.of("no-gap")
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
        raise UsageError.of("bad-gap", given=" --gap ".join(given))
    if given in ((), ("auto",)):
        return "auto"
    gaps = tuple(map(Gap.parse, given)) if given != ("none",) else ()
    return "none" if not gaps else gaps[0] if len(gaps) == 1 else gaps


def _metric_texts(given: object) -> object:
    """Return metrics as texts: one text is one metric, a metric with settings is written out, a function is its name."""
    if isinstance(given, str | MetricSpec | FunctionType):
        return (_metric_text(given),)
    return tuple(map(_metric_text, given)) if isinstance(given, Sequence) else given


def _metric_text(given: object) -> object:
    if isinstance(given, FunctionType) and given.__module__.startswith("hitmiss."):
        return given.__name__  # hm.metrics.eer
    return str(given) if isinstance(given, MetricSpec) else given


def _columns(given: object) -> object:
    return names_of(given) if isinstance(given, str) else given


def _identities(given: object) -> object:
    """Return names of columns: a text is split at commas; in a list each is the name of a column, whatever it holds."""
    if isinstance(given, str):
        return tuple(dict.fromkeys(name.strip() for name in given.split(",") if name.strip()))
    if not isinstance(given, Sequence) or not all(isinstance(word, str) for word in given):
        return given
    return tuple(dict.fromkeys(given))


def _groupings(given: object) -> object:
    is_named = isinstance(given, str) or (isinstance(given, list | tuple) and any(isinstance(g, str) for g in given))
    return parse_by(given) if is_named else given  # type: ignore[arg-type]


def _gaps(given: object) -> object:
    if given in ("auto", "none"):
        return given
    is_named = isinstance(given, str) or (isinstance(given, list | tuple) and any(isinstance(g, str) for g in given))
    return as_gap(given, None) if is_named else given  # type: ignore[arg-type]


def parse_by(by: By) -> tuple[Grouping, ...]:
    """Read groupings from `["codec", "codec,codec_q", ("attack", "codec")]`; numbers after a colon cut it into bands.

    >>> parse_by(["codec", "codec,codec_q", "seconds:0,2,5,codec"])
    (('codec',), ('codec', 'codec_q'), ('seconds:0,2,5', 'codec'))
    """
    if not isinstance(by, str | Sequence):
        raise UsageError.of("bad-grouping/type", by=by)
    given = [by] if isinstance(by, str) else list(by)
    groupings = [_parts(g) if isinstance(g, str) else tuple(g) for g in given]
    for grouping in groupings:
        if not all(grouping) or len(set(grouping)) != len(grouping):
            raise UsageError.of("bad-grouping/twice", grouping=tuple(grouping))
    return tuple(dict.fromkeys(groupings))


def _parts(grouping: str) -> Grouping:
    """Split a grouping at its commas, except those between the edges of bands."""
    parts: list[str] = []
    for part in (p.strip() for p in grouping.split(",")):
        if parts and ":" in parts[-1] and re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", part):
            parts[-1] += f",{part}"
        else:
            parts.append(part)
    return tuple(parts)


def names_of(unit: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns whose values are resampled as whole units, from `speaker,attack` or a list of names.

    >>> names_of("speaker, attack"), names_of(None)
    (('speaker', 'attack'), ())
    """
    if unit is None:
        return ()
    if not isinstance(unit, str | Sequence):
        raise UsageError.of("bad-unit", unit=unit)
    return tuple(p.strip() for p in unit.split(",")) if isinstance(unit, str) else tuple(unit)
