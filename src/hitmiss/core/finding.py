"""A finding: one thing that was found, as data. Its code is in the catalogue, and sentences are made from it last.

Warnings, notes, reasons, checks and refusals are findings. Programs decide on codes, severities and values; people read
`text`, which `hitmiss.findings` writes for each output from the one sentence that the catalogue has for the code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import ModuleType
from typing import Final, Literal, Protocol, TypeAlias

from hitmiss.core.rates import END_DIGITS, round_number

Severity = Literal["info", "note", "warning", "alarm", "error"]
INFO: Final[Severity] = "info"
"""All is well, or what was done."""
NOTE: Final[Severity] = "note"
"""What is not known, or was not checked."""
WARNING: Final[Severity] = "warning"
"""What speaks against the numbers or the detector."""
ALARM: Final[Severity] = "alarm"
"""The numbers do not mean what they seem to mean; `--strict` refuses them."""
ERROR: Final[Severity] = "error"
"""A refusal: there are no numbers."""

State = Literal["passed", "failed", "not checked"]
PASSED: Final[State] = "passed"
FAILED: Final[State] = "failed"
OPEN: Final[State] = "not checked"
MARKS: Final = {PASSED: "✓", FAILED: "✗", OPEN: "?"}
STATES: Final[Mapping[Severity, State]] = {INFO: PASSED, NOTE: OPEN, WARNING: FAILED, ALARM: FAILED, ERROR: FAILED}
"""What a finding of each severity does to the check or the claim that it decides."""


@dataclass(frozen=True)
class Place:
    """A place in the data: file, line (from 1), the value found there, the id of its row, and its column."""

    file: str | None = None
    row: int | None = None
    value: str | None = None
    item: str | None = None
    column: str | None = None

    def __str__(self) -> str:
        parts = [self.file] if self.file else []
        parts += [f"row {self.row}"] if self.row is not None else []
        return ", ".join([*parts, f"column {self.column}"] if self.column else parts)

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        return {"file": self.file, "row": self.row, "column": self.column, "value": self.value, "item": self.item}


class _Number(Protocol):
    """What findings need of an estimate."""

    @property
    def metric(self) -> str: ...
    @property
    def value(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...
    @property
    def run(self) -> Mapping[str, str]: ...
    @property
    def slice(self) -> Mapping[str, str]: ...
    @property
    def average(self) -> str | None: ...


@dataclass(frozen=True)
class Subject:
    """What a finding is about: a run, a slice of it, a metric, an average over slices, places. Blank: all of them."""

    run: str = ""
    slice: Mapping[str, str] = field(default_factory=dict)
    metric: str = ""
    average: str | None = None
    places: tuple[Place, ...] = ()

    @classmethod
    def of(cls, e: _Number) -> Subject:
        """Return the subject of an estimate."""
        return cls(run_of(e), dict(e.slice), e.metric, e.average)

    @property
    def where(self) -> str:
        """The slice in words; for an average, what it goes over."""
        if self.average is not None:
            return f"the {self.average} over {' × '.join(self.slice)}" if self.slice else f"the {self.average}"
        return ", ".join(f"{k} {v}" for k, v in self.slice.items())

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        found = {"run": self.run, "slice": dict(self.slice), "metric": self.metric, "average": self.average}
        return {**found, "places": [place.to_dict() for place in self.places]} if self.places else {**found}


def run_of(e: _Number) -> str:
    """Return the name of an estimate's run."""
    return ", ".join(e.run.values())


@dataclass(frozen=True)
class Option:
    """An option of the command line, which is a keyword of a function in Python; None: only its name is meant.

    The name is the keyword. `Option("higher", "spoof")` is read as `--higher spoof` or as `higher='spoof'`.
    """

    name: str
    value: str | float | bool | None = None
    flag: str = field(default="", compare=False, repr=False)
    """How the command line spells it, where it has several names."""

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        return {"option": self.name, "value": self.value}


@dataclass(frozen=True)
class Amount:
    """A number of a metric with its interval. `like` gives the digits of a number that has no interval of its own."""

    value: float
    metric: str = ""
    low: float | None = None
    high: float | None = None
    like: tuple[float, float] | None = None
    signed: bool = False
    apart: bool = False
    """Whether it is a difference without a sign; one of shares is given in percentage points, as signed ones are."""
    plain: bool = False
    """Whether it is exact, as a chance level is: it gets no more digits than it needs."""

    @classmethod
    def of(cls, e: _Number) -> Amount:
        """Return the value of an estimate."""
        assert e.value is not None
        return cls(e.value, e.metric, e.low, e.high)

    @classmethod
    def turned(cls, value: float, metric: str, low: float | None, high: float | None, *, sign: float) -> Amount:
        """Return a difference, or with the sign −1 the same difference seen from the other side."""
        if low is None or high is None:
            return cls(sign * value, metric, signed=True)
        ends = sorted((sign * low, sign * high))
        return cls(sign * value, metric, ends[0], ends[1], signed=True)

    def beside(self, value: float) -> Amount:
        """Return another number of the same metric, with as many digits."""
        ends = (self.low, self.high) if self.low is not None and self.high is not None else self.like
        return Amount(value, self.metric, like=ends)

    def as_far(self, value: float) -> Amount:
        """Return another difference of the same metric, without a sign and with as many digits."""
        return replace(self.beside(value), apart=True)

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        ends = {
            "low": _number(round_number(self.low, END_DIGITS)),
            "high": _number(round_number(self.high, END_DIGITS)),
        }
        return {"metric": self.metric, "value": _number(round_number(self.value)), **ends}


@dataclass(frozen=True)
class Decimals:
    """A number that is written with so many decimal places."""

    value: float
    places: int

    def to_dict(self) -> float | str | None:
        """Return the JSON form."""
        return _number(round_number(self.value))


@dataclass(frozen=True)
class PValue:
    """A p value; from so many draws it is never stated below 1 / (draws + 1)."""

    p: float
    draws: int | None = None

    @property
    def least(self) -> float:
        """The least p value that can be stated."""
        return 1.0 / (self.draws + 1) if self.draws else 0.0

    @property
    def stated(self) -> float:
        """The p value, not below what the draws can show."""
        return max(self.p, self.least)

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        return {"p": round_number(self.stated, END_DIGITS), "draws": self.draws, "is_bound": self.p < self.least}


@dataclass(frozen=True)
class Finding:
    """One thing that was found: its code in the catalogue, what it is about, and its values.

    Parameters
    ----------
    code
        What was found, as `scores-reversed`; it stays when the sentence is reworded. Where one code has several
        sentences, a slash and a word tell them apart: `vain-rule/never`.
    subject
        What it is about.
    values
        Numbers with their intervals, p values, names, options and further findings, by the names in the sentence.

    >>> found = Finding("few-trials", values={"n": 12, "least": 30})
    >>> found.severity, found.text
    ('warning', '12 trials of the rarer class: fewer than 30 are too few for a reliable number.')
    """

    code: str
    subject: Subject = field(default_factory=Subject)
    values: Mapping[str, Value] = field(default_factory=dict)
    written: str | None = field(default=None, compare=False, repr=False)
    """Its sentence as it was written elsewhere: in the file that it was read from, or together with its places."""

    @property
    def severity(self) -> Severity:
        """How grave it is, from the catalogue."""
        found: Severity = _renderer().severity_of(self)
        return found

    @property
    def state(self) -> State:
        """Whether it speaks for the detector (passed), against it (failed), or leaves the question open."""
        return STATES[self.severity]

    @property
    def text(self) -> str:
        """The sentence of the catalogue with options as the command line writes them."""
        return str(_renderer().text(self))

    def __str__(self) -> str:
        """Return the sentence with options as keywords of a function."""
        return str(_renderer().text(self, _renderer().PYTHON))

    @property
    def name(self) -> str:
        """The name that stands before the sentence; only checks have one."""
        return ""

    @property
    def status(self) -> State:
        """Its state, under the name that lines of a page use."""
        return self.state

    @property
    def mark(self) -> str:
        """Its sign."""
        return MARKS[self.state]

    def about(self, run: str) -> Finding:
        """Return the finding with the run that it is about."""
        return replace(self, subject=replace(self.subject, run=run))

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form; `text` is for people, everything else for programs."""
        return {
            "code": self.code,
            "severity": self.severity,
            "state": self.state,
            "subject": self.subject.to_dict(),
            "values": {k: plain(v) for k, v in self.values.items()},
            "text": self.text,
        }


class Remark(str):
    """A sentence that keeps the findings it was written from; programs decide on these, never on the text.

    >>> found = Remark("speakers were not drawn", "unit-not-used")
    >>> found.code, found
    ('unit-not-used', 'speakers were not drawn')
    """

    findings: tuple[Finding, ...]

    def __new__(cls, text: str, code: str, values: Mapping[str, object] | None = None) -> Remark:
        own = {k: as_value(v) for k, v in (values or {}).items()}
        return cls.written(text, (Finding(code, values=own, written=text),))

    @classmethod
    def written(cls, text: str, findings: tuple[Finding, ...]) -> Remark:
        """Return a text with the findings behind it."""
        made = str.__new__(cls, text)
        made.findings = findings
        return made

    @classmethod
    def of(cls, code: str, /, **values: object) -> Remark:
        """Write the sentence of a code with these values, options as the command line writes them."""
        finding = Finding(code, values={name: as_value(value) for name, value in values.items()})
        return cls.written(finding.text, (finding,))

    @property
    def code(self) -> str:
        """The code of the first finding."""
        return self.findings[0].code

    @property
    def values(self) -> Mapping[str, Value]:
        """The values of the first finding."""
        return self.findings[0].values

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Remark.written, (str(self), self.findings)


def findings_of(text: str | None) -> tuple[Finding, ...]:
    """Return the findings behind a sentence; a sentence from elsewhere is one by itself."""
    if not text:
        return ()
    return text.findings if isinstance(text, Remark) else (Finding("free-text", values={"text": text}),)


def has_code(text: str | None, *families: str) -> bool:
    """Say whether a sentence was written from a finding of one of these codes, or of one of their kinds.

    >>> has_code(Remark("only 3 spoof", "few-of-class"), "few-of-class"), has_code("only 3 spoof", "few-of-class")
    (True, False)
    """
    return any(f.code in families or f.code.partition("/")[0] in families for f in findings_of(text))


def joined(*texts: str | None) -> Remark | None:
    """Return several sentences as one, which keeps all their findings; None without any."""
    there = [text for text in texts if text]
    found = tuple(f for text in there for f in findings_of(text))
    return Remark.written("; ".join(there), found) if there else None


@dataclass(frozen=True)
class Entry:
    """What a code means.

    Parameters
    ----------
    severity
        How grave a finding is.
    text
        The sentence. `{who}`, `{where}` and `{title}` are the run, the slice and the metric of the subject, other names
        are values; `{n:rows}` adds the noun in its number; `{--unit speaker}` is an option, `{--unit <name>}` one with
        the value `name`, and `{--unit?}` the option's name alone.
    short, about
        The words of a headline: of the verdict's own subject, and of another run.
    fix
        What to do; it stands after the text and a semicolon.
    check
        The check that a finding decides, if it decides one.
    """

    severity: Severity
    text: str
    short: str = ""
    about: str = ""
    fix: str = field(default="", kw_only=True)
    check: str = field(default="", kw_only=True)

    @property
    def sentence(self) -> str:
        """The text with what to do."""
        return f"{self.text}; {self.fix}" if self.fix else self.text


Value: TypeAlias = "str | int | float | Amount | Decimals | PValue | Option | Finding | Sequence[str | Option | Finding] | Mapping[str, object] | None"
"""What a sentence can be filled with."""


def as_value(value: object) -> Value:
    """Return anything as a value of a finding: several things as a tuple, what is unknown as its text."""
    if getattr(value, "ndim", None) == 0:
        value = getattr(value, "item", lambda: value)()  # a number of numpy is one as any other
    if value is None or isinstance(value, str | int | float | Amount | Decimals | PValue | Option | Finding):
        return value
    if isinstance(value, Mapping):
        return {str(k): v for k, v in value.items()}
    if isinstance(value, Iterable):
        return tuple(one if isinstance(one, str | Option | Finding) else str(one) for one in value)
    return str(value)


def plain(value: object) -> object:
    """Return the JSON form of a value."""
    if isinstance(value, Amount | Decimals | PValue | Option | Finding):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [plain(one) for one in value]
    return _number(round_number(value)) if isinstance(value, float) else value


def _number(value: float | None) -> float | str | None:
    """Return a number that JSON can hold: infinities become text, and NaN becomes null."""
    if value is None or value != value:
        return None
    return value if abs(value) != float("inf") else "inf" if value > 0 else "-inf"


def _renderer() -> ModuleType:
    return import_module("hitmiss.findings.render")  # by name: sentences are above the data
