"""Results: immutable rows with one number each, in the same form whatever was asked."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, SupportsFloat, overload

import polars as pl

from hitmiss.core import artifacts
from hitmiss.core.design import Design
from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.finding import Finding, Remark, findings_of, plain
from hitmiss.core.method import Method
from hitmiss.core.metric import Best
from hitmiss.core.rates import END_DIGITS, round_number
from hitmiss.core.read_spec import ReadSpec
from hitmiss.core.rows import Named, Presented, one_named, rows_named
from hitmiss.core.trials import Trials

if TYPE_CHECKING:
    from hitmiss.core.verdict import Verdict


SCHEMA = 1
"""Version of the JSON form. Files with another version are refused."""
NUMBERS = ("value", "low", "high", "settings")
"""Fields in which the texts `inf` and `-inf` are read as numbers."""


@dataclass(frozen=True)
class Estimate(Named):
    """One estimate: its metric, its value, its confidence interval, its number of trials, and its run and slice.

    Parameters
    ----------
    metric
        The name of the metric, with its settings.
    value
        The number; None if it is undefined. `note` then says why.
    low, high
        The ends of the confidence interval; None if there is no interval. They keep 10 significant digits, and the
        value keeps 13 in JSON, because later digits differ between processors.
    n, n_positive, n_failed
        How many trials there are, how many of them are positive, and how many failed.
    run, slice
        The run and the slice that the number belongs to, as column names with their values; empty for all trials.
    average
        None for a plain number; otherwise what the number summarises: `pooled`, `macro`, `worst`, `gap`, …
    method
        How the interval was computed.
    note
        Why the number is undefined or has no interval, or that it rests on few trials.
    settings
        The settings of the metric.
    best
        Whether `low` or `high` values are better.
    of
        The number of trials in the denominator, for a metric that is a share.
    title
        The name that a protocol gives to the metric.
    units, units_effective
        How many units were resampled, and how many units of equal size would carry the same information.
    weight, weight_positive
        The sums of the sampling weights of all trials and of the positive ones; None without such weights.
    """

    _USUAL: ClassVar[Mapping[str, str]] = {
        "ci": "low and high",
        "interval": "low and high",
        "upper": "high",
        "name": "metric",
    }

    metric: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    n_positive: int = 0
    n_failed: int = 0
    run: Mapping[str, str] = field(default_factory=dict)
    slice: Mapping[str, str] = field(default_factory=dict)
    average: str | None = None
    method: str | None = None
    note: str | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    best: Best = "low"
    of: float | None = None
    title: str | None = None
    units: int | None = None
    units_effective: float | None = None
    weight: float | None = None
    weight_positive: float | None = None

    @property
    def shown(self) -> str:
        """The name of the metric in tables: the name that a protocol gives it, otherwise its own."""
        return self.title or self.metric

    def __post_init__(self) -> None:
        for end in ("low", "high"):
            object.__setattr__(self, end, round_number(getattr(self, end), END_DIGITS))

    @property
    def how(self) -> Method:
        """The method of the interval, as data."""
        return Method.read(self.method)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Why the number is undefined or has no interval, or that it rests on few trials, as data; `note` in words."""
        return findings_of(self.note)

    def __str__(self) -> str:
        where = ", ".join(f"{k}={v}" for k, v in {**self.run, **self.slice}.items())
        name = " ".join(filter(None, (self.average, self.metric, f"[{where}]" if where else "")))
        return f"{name} = {number(self.value)}{interval(self)}"

    def __float__(self) -> float:
        """The value; NaN if it is undefined."""
        return math.nan if self.value is None else self.value

    def __format__(self, spec: str) -> str:
        """The value in the format of a number, as `f"{estimate:.2%}"`; without a format, the line of `str`."""
        return format(float(self), spec) if spec else str(self)

    def __round__(self, digits: int = 0) -> float:
        """The value, rounded."""
        return round(float(self), digits)

    def __lt__(self, other: SupportsFloat) -> bool:
        """Whether the value is below a number, or below another estimate."""
        return float(self) < float(other)

    def __gt__(self, other: SupportsFloat) -> bool:
        """Whether the value is above a number, or above another estimate."""
        return float(self) > float(other)


WEIGHED = ("weight", "weight_positive")
UNUSED = "unit-not-used"
"""Code of the warning that the data have a unit (such as speakers) that was not resampled."""
UNDIRECTED = "direction-not-shown"
"""Code of the warning that an AUC does not show which class higher scores go with."""
MIXED = "mixed-conditions"
"""Code of the warning that a run mixes answers that were given under different conditions."""
REVERSED = "scores-reversed"
"""Code of the warning that higher scores go with the wrong class."""
CONSTANT = "scores-constant"
"""Code of the warning that all scores are equal."""
COARSE = "scores-too-large"
"""Code of the warning that scores are so large that neighbouring whole numbers are one number."""
TIED = "ties-matter"
"""Code of the warning that the rule for tied scores changes the EER."""
SATURATED = "scores-saturated"
"""Code of the warning that many scores are tied at the ends of their range."""
SAME_DATA = "chosen-on-same-data"
"""Code of the warning that a threshold or a calibration was chosen on the trials that are measured."""
SIMULATED = "data-simulated"
"""Code of the warning that the data are simulated."""
FORCED = "comparison-forced"
"""Code of the warning that runs were compared although they are not comparable."""
ATTACK_SUSPECT = "attack-suspect"
"""Code of the warning that an attack probably failed or broke its budget."""
REPEATED = "no-interval/items-repeat"
"""Code of the note of an estimate whose items repeat without being drawn as wholes."""


def prefixed(prefix: str, warning: str) -> str:
    """Return a warning with words before it; it keeps its code.

    >>> prefixed("a: ", Remark("speakers were not drawn", "unit-not-used")).code
    'unit-not-used'
    """
    text = f"{prefix}{warning}"
    return Remark.written(text, warning.findings) if isinstance(warning, Remark) else text


def values_of(warning: str) -> Mapping[str, object]:
    """Return the numbers behind a warning; empty if it has none."""
    return warning.values if isinstance(warning, Remark) else {}


def code_of(warning: str) -> str | None:
    """Return the code of a warning, or None if it has no code."""
    return warning.code.partition("/")[0] if isinstance(warning, Remark) else None


def coded(
    texts: Sequence[str], codes: Sequence[str | None], values: Sequence[Mapping[str, object]] = ()
) -> tuple[str, ...]:
    """Return the warnings of a file with the codes and the numbers that the file stores in further lists."""
    known = [*codes, *[None] * (len(texts) - len(codes))]
    numbers = [*values, *[{}] * (len(texts) - len(values))]
    return tuple(
        text if code is None else Remark(text, code, own)
        for text, code, own in zip(texts, known, numbers, strict=False)
    )


def warning_fields(warnings: Sequence[str]) -> dict[str, object]:
    """Return warnings for JSON: the texts, their codes, and their numbers where there are some."""
    values = [{k: plain(v) for k, v in values_of(w).items()} for w in warnings]
    return {
        "warnings": list(map(str, warnings)),
        "warning_codes": list(map(code_of, warnings)),
        **({"warning_values": values} if any(values) else {}),
    }


@dataclass(frozen=True)
class Results(Presented):
    """An immutable sequence of estimates, with the signature that records how they were made.

    Parameters
    ----------
    estimates
        The numbers, one `Estimate` per metric, run and slice.
    signature
        One line that records every choice behind the numbers and a hash of the numbers.
    warnings
        What a reader of the numbers should know.
    protocol
        The name of the protocol, if one was used.
    behind
        What the numbers were measured on, for `plot`: the trials, or the curves that a file stores.
    reading, design
        How the files were read, and what was asked; None if this is not known.
    content, questions
        Hashes of the rows, and of the items with their true classes; empty if they are not known.
    facts
        What is known about how the answers were made: models, prompts, temperature, cache, …
    decisions
        What the threshold of the decisions means for scores of the file, as "score >= 0.5 means fake, below it real".

    Examples
    --------
    >>> r = Results((Estimate("eer", 0.1, n=20, n_positive=8), Estimate("eer", None, slice={"codec": "C01"}, note="one class")))
    >>> r.one("eer").value
    0.1
    >>> r.one("eer", codec="C01").note
    'one class'
    """

    estimates: tuple[Estimate, ...]
    signature: str = ""
    warnings: tuple[str, ...] = ()
    protocol: str | None = None
    behind: object = field(default=None, repr=False, compare=False)
    """What the numbers were measured on, for `plot`: the trials, or the curves that a file stores."""
    reading: ReadSpec | None = field(default=None, repr=False)
    """How the files were read; None if the trials do not come from files."""
    design: Design | None = field(default=None, repr=False)
    """What was asked; None in files of older versions."""
    content: str = field(default="", repr=False, compare=False)
    """Hash of the rows that were measured; the order of the rows does not change it. Empty if it is not known."""
    questions: str = field(default="", repr=False, compare=False)
    """Hash of the items and their true classes (see `Trials.questions`); empty if it is not known."""
    facts: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """What is known about how the answers were made: models, prompts, temperature, cache, … (see `engine.comparability`)."""
    decisions: str = field(default="", repr=False, compare=False)
    """What the threshold of the decisions means for scores of the file; empty if no threshold was used."""

    def __post_init__(self) -> None:
        given: object = self.estimates
        if isinstance(given, str | Path):
            raise UsageError.of("results-of-file", file=str(given))

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.estimates)

    def __len__(self) -> int:
        return len(self.estimates)

    def __contains__(self, key: object) -> bool:
        """Return whether there is a row of this name, or this row."""
        if isinstance(key, Estimate):
            return key in self.estimates
        try:
            return bool(rows_named(self.estimates, key, self._runs))
        except UsageError:
            return False

    @overload
    def __getitem__(self, key: int | str | tuple[object, ...]) -> Estimate: ...

    @overload
    def __getitem__(self, key: slice) -> tuple[Estimate, ...]: ...

    def __getitem__(self, key: int | str | slice | tuple[object, ...]) -> Estimate | tuple[Estimate, ...]:
        """Return an estimate by its place or name, or some by a slice of places.

        `results["eer"]` is that of all trials, `results["eer", "codec=C01"]` that of a slice, `results["eer", "worst"]`
        an average.
        """
        if isinstance(key, slice):
            return self.estimates[key]
        if not isinstance(key, int):
            return one_named(self.estimates, key, self._runs)
        if not -len(self) <= key < len(self):
            raise IndexError(
                f"there are {len(self)} estimates; found the place {key}"
            )  # as a loop over places needs it
        return self.estimates[key]

    @property
    def _runs(self) -> dict[int, Mapping[str, str]]:
        return {place: e.run for place, e in enumerate(self.estimates)}

    def __add__(self, other: Results) -> Results:
        signature = "\n".join(s for s in merged((self.signature,), (other.signature,)) if s)
        rows, warnings = self.estimates + other.estimates, merged(self.warnings, other.warnings)
        return replace(self, estimates=rows, signature=signature, warnings=warnings, behind=None)

    def where(self, keep: Callable[[Estimate], bool]) -> Results:
        """Return the estimates for which `keep` returns True."""
        return replace(self, estimates=tuple(e for e in self.estimates if keep(e)))

    def find(self, metric: str | None = None, *, average: str | None = None, **cell: str) -> Results:
        """Return the estimates of a metric in exactly this cell.

        Parameters
        ----------
        metric
            The name of the metric; None for every metric.
        average
            The kind of average; None for plain numbers.
        **cell
            The columns of runs and slices with their values; none for the numbers of all trials.

        Returns
        -------
        Results
            The matching estimates, possibly none.
        """

        def matches(e: Estimate) -> bool:
            inside = {**e.run, **e.slice} if not e.run or set(e.run) & set(cell) else dict(e.slice)
            return (metric is None or e.metric == metric) and e.average == average and inside == cell

        return self.where(matches)

    def one(self, metric: str, *, average: str | None = None, **cell: str) -> Estimate:
        """Return the single estimate of a metric in a cell.

        Parameters
        ----------
        metric, average, **cell
            As for `find`.

        Returns
        -------
        Estimate
            The matching estimate.

        Raises
        ------
        UsageError
            If no estimate matches, or more than one.
        """
        found = self.find(metric, average=average, **cell).estimates
        if len(found) != 1:
            raise UsageError.of(
                "not-one-row",
                n=len(found),
                what="estimates",
                metric=metric,
                average=average,
                cell=cell,
                known=str(sorted({e.metric for e in self})),
            )
        return found[0]

    @property
    def short_signature(self) -> str:
        """The signature in at most 60 characters, short enough for a paper."""
        return str(import_module("hitmiss.engine.signature").short(self.signature))

    @property
    def verdict(self) -> Verdict:
        """What these results allow to conclude: the claim with its test, every failure, and the checks, as data."""
        made: Verdict = import_module("hitmiss.conclude.verdict").conclude(
            self, self._primary
        )  # by name, as for `plot`
        return made

    @property
    def _primary(self) -> str:
        """The metric that counts most by the protocol; empty without one."""
        protocol = self.design.protocol if self.design is not None else None
        name = str(getattr(protocol, "primary", "") or "")
        return name if any(e.metric == name for e in self) else ""

    @property
    def plot(self) -> object:
        """Plots of these results: `results.plot.det()`, `.roc()`, `.pr()`, `.reliability()`, … (needs matplotlib)."""
        return import_module("hitmiss.reports.plotting").Plots(
            self
        )  # imported by name: `core` must not import `report`

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "behind": None}  # only the numbers are sent to another process, not the trials

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form: `{"schema": 1, "signature": …, "warnings": […], "estimates": [{…}]}`."""
        names = [field.name for field in fields(Estimate)]  # `asdict` would copy every value, which takes far longer
        plain = [name for name in names if name not in WEIGHED]  # only rows with weights have these
        rows = [
            {
                **{name: finite(getattr(e, name)) for name in (plain if e.weight is None else names)},
                "value": finite(round_number(e.value)),
            }
            for e in self.estimates
        ]
        return {
            "schema": SCHEMA,
            "signature": self.signature,
            "protocol": self.protocol,
            **warning_fields(self.warnings),
            **note_fields(self.estimates),
            "reading": self.reading.to_plain() if self.reading is not None else None,
            "design": self.design.to_plain() if self.design is not None else None,
            "content": self.content or (self.behind.content if isinstance(self.behind, Trials) else ""),
            "questions": self.asked,
            "facts": dict(self.made_with),
            **({"decisions": self.decided} if self.decided else {}),
            "estimates": rows,
        }

    @property
    def asked(self) -> str:
        """The hash of the items and their true classes, computed from the trials if they are available."""
        return self.questions or (self.behind.questions if isinstance(self.behind, Trials) else "")

    @property
    def decided(self) -> str:
        """What the threshold of the decisions means, taken from the trials if they are available."""
        return self.decisions or (self.behind.header.decided if isinstance(self.behind, Trials) else "")

    @property
    def made_with(self) -> Mapping[str, str]:
        """What is known about how the answers were made, taken from the trials if they are available."""
        if self.facts or not isinstance(self.behind, Trials):
            return self.facts
        found: Mapping[str, str] = import_module("hitmiss.engine.comparability").decisive(
            self.behind
        )  # imported by name, as for `plot`
        return found

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Results:
        """Make results from their JSON form. Every field is checked, and other schema versions are refused.

        Parameters
        ----------
        data
            The JSON form, as `to_dict` returns it.

        Returns
        -------
        Results
            The results that were stored.

        Raises
        ------
        DataError
            `results-schema`: the schema version is different; `malformed-results`: a field is missing, unknown or of
            another type; `edited-artifact`: the digest does not match the content.
        """
        schema = data.get("schema") if isinstance(data, Mapping) else None
        if type(schema) is not int or schema != SCHEMA:
            raise DataError.of("results-schema", schema=schema, SCHEMA=SCHEMA)
        artifacts.check_seal(data, "these results")
        stored = artifacts.check(_Stored, {k: data[k] for k in _STORED if k in data}, "results")
        rows = [
            {k: infinite(v) if k in NUMBERS else v for k, v in row.items()} if isinstance(row, Mapping) else row
            for row in stored.estimates
        ]
        estimates = [artifacts.check(Estimate, row, "results", ("estimates", str(i))) for i, row in enumerate(rows)]
        return cls(
            tuple(_noted(e, stored.note_codes.get(str(i), ())) for i, e in enumerate(estimates)),
            stored.signature,
            coded(stored.warnings, stored.warning_codes, stored.warning_values),
            stored.protocol,
            data.get("pictures"),
            stored.reading,
            stored.design,
            stored.content,
            stored.questions,
            stored.facts,
            stored.decisions,
        )

    @classmethod
    def load(cls, path: str | Path) -> Results:
        """Read a file that `save` wrote; one without a digest is refused."""
        return cls.from_dict(load_results(path))

    def to_polars(self) -> pl.DataFrame:
        """Return a polars frame with one row per estimate.

        Runs and slices become columns; one with the name of a field, such as `method`, becomes `method_`.
        """
        names = sorted({k for e in self for k in (*e.run, *e.slice)})
        plain = ("metric", "value", "low", "high", "n", "n_positive", "n_failed", "average", "method", "note")
        column = {k: f"{k}_" if k in plain else k for k in names}
        cells = [{column[k]: {**e.run, **e.slice}.get(k) for k in names} for e in self]
        rows = [{**{k: getattr(e, k) for k in plain}, **cell} for e, cell in zip(self, cells, strict=True)]
        return pl.DataFrame(rows, infer_schema_length=None)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.estimates), *(f"warning: {w}" for w in self.warnings), self.signature]).strip()

    def __repr__(self) -> str:
        metrics = ", ".join(dict.fromkeys(e.metric for e in self.estimates))
        return f"<Results: {len(self.estimates):,} estimates of {metrics or 'nothing'}>"


def note_fields(estimates: Sequence[Estimate]) -> dict[str, object]:
    """Return the codes of the notes for JSON, by the place of the estimate; a row holds the sentence."""
    found = {str(i): [f.code for f in e.findings] for i, e in enumerate(estimates) if isinstance(e.note, Remark)}
    return {"note_codes": found} if found else {}


def _noted(e: Estimate, codes: Sequence[str]) -> Estimate:
    """Return an estimate whose note has its codes again."""
    if not e.note or not codes:
        return e
    found = tuple(Finding(code, values={"text": e.note}) for code in codes)
    return replace(e, note=Remark.written(e.note, found))


@dataclass(frozen=True)
class _Stored:
    """The fields of the JSON form from which results are made."""

    schema: int
    signature: str
    warnings: tuple[str, ...]
    estimates: tuple[object, ...]
    protocol: str | None = None
    reading: ReadSpec | None = None
    design: Design | None = None
    content: str = ""
    warning_codes: tuple[str | None, ...] = ()
    warning_values: tuple[Mapping[str, object], ...] = ()
    note_codes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    questions: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    decisions: str = ""


_STORED = tuple(field.name for field in fields(_Stored))


def rows_of(estimates: object, signature: str = "") -> Results:
    """Make results from a list of estimates in JSON form, as other artifacts store them."""
    return Results.from_dict({"schema": SCHEMA, "signature": signature, "warnings": [], "estimates": estimates})


def demanded_results(value: object, verb: str) -> Results:
    """Return results, read from their file if a path is given; for anything else the error says how to make them."""
    if isinstance(value, str | Path):
        return Results.load(value)
    if isinstance(value, Results):
        return value
    raise UsageError.of("not-results", verb=verb, name=type(value).__name__)


def load_results(path: str | Path) -> dict[str, object]:
    """Read the JSON form of results from a file and check its digest."""
    return artifacts.load(path, "results")


def number(value: float | None, digits: int = 4) -> str:
    """Format a number for tables.

    >>> number(0.123456), number(None), number(float("inf"))
    ('0.1235', 'undefined', 'inf')
    """
    return "undefined" if value is None else f"{value:.{digits}f}"


def interval(e: Estimate, digits: int = 4) -> str:
    """Return ` [low, high]`, or an empty text if there is no interval."""
    return f" [{e.low:.{digits}f}, {e.high:.{digits}f}]" if e.low is not None and e.high is not None else ""


def merged(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    """Return both lists joined, each text once, in their order."""
    return tuple(dict.fromkeys((*first, *second)))


def finite(value: object) -> object:
    """Return a value that JSON can hold: infinities become text, and NaN becomes null."""
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        return float(value)
    return {k: finite(v) for k, v in value.items()} if isinstance(value, dict) else value


def infinite(value: object) -> object:
    """Undo `finite`, for the fields that hold numbers."""
    if isinstance(value, dict):
        return {k: infinite(v) for k, v in value.items()}
    return float(value) if isinstance(value, str) and value in ("inf", "-inf") else value
