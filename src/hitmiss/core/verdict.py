"""The data of a conclusion: subject, finding, check, verdict. Nothing here is a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Final, Literal

from hitmiss.core.rates import END_DIGITS, round_number
from hitmiss.core.results import Estimate, finite

Status = Literal["shown", "not shown", "refuted"]
SHOWN: Final[Status] = "shown"
NOT_SHOWN: Final[Status] = "not shown"
REFUTED: Final[Status] = "refuted"

State = Literal["passed", "failed", "not checked"]
PASSED: Final[State] = "passed"
FAILED: Final[State] = "failed"
OPEN: Final[State] = "not checked"
MARKS: Final = {PASSED: "✓", FAILED: "✗", OPEN: "?"}


@dataclass(frozen=True)
class Subject:
    """What a conclusion is about: a run, a slice of it, a metric, and an average over slices. Blank: all of them."""

    run: str = ""
    slice: Mapping[str, str] = field(default_factory=dict)
    metric: str = ""
    average: str | None = None

    @classmethod
    def of(cls, e: Estimate) -> Subject:
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
        return {"run": self.run, "slice": dict(self.slice), "metric": self.metric, "average": self.average}


def run_of(e: Estimate) -> str:
    """Return the name of an estimate's run."""
    return ", ".join(e.run.values())


@dataclass(frozen=True)
class Amount:
    """A number of a metric with its interval. `like` gives the digits of a number that has no interval of its own."""

    value: float
    metric: str = ""
    low: float | None = None
    high: float | None = None
    like: tuple[float, float] | None = None
    signed: bool = False
    plain: bool = False
    """Whether it is exact, as a chance level is: it gets no more digits than it needs."""

    @classmethod
    def of(cls, e: Estimate) -> Amount:
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

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        ends = {"low": finite(round_number(self.low, END_DIGITS)), "high": finite(round_number(self.high, END_DIGITS))}
        return {"metric": self.metric, "value": finite(round_number(self.value)), **ends}


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


Value = str | int | float | Amount | PValue | tuple[str, ...]


@dataclass(frozen=True)
class Finding:
    """One conclusion: its code in the catalogue, what it is about, and its numbers."""

    code: str
    subject: Subject = field(default_factory=Subject)
    values: Mapping[str, Value] = field(default_factory=dict)

    @property
    def state(self) -> State:
        """Whether it speaks for the detector (passed), against it (failed), or leaves the question open."""
        found: State = import_module("hitmiss.conclude.catalogue").ENTRIES[self.code].state  # by name: a higher layer
        return found

    @property
    def text(self) -> str:
        """The sentence, from the catalogue."""
        return str(import_module("hitmiss.conclude.catalogue").sentence(self))

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

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form; `text` is for people, everything else for programs."""
        return {
            "code": self.code,
            "state": self.state,
            "subject": self.subject.to_dict(),
            "values": {k: _plain(v) for k, v in self.values.items()},
            "text": self.text,
        }


def _plain(value: Value) -> object:
    if isinstance(value, Amount | PValue):
        return value.to_dict()
    return (
        list(value) if isinstance(value, tuple) else finite(round_number(value)) if isinstance(value, float) else value
    )


@dataclass(frozen=True)
class Check:
    """A check of the data or of the design, with what it found."""

    name: str
    finding: Finding

    @property
    def state(self) -> State:
        """Passed, failed, or not checked."""
        return self.finding.state

    @property
    def status(self) -> State:
        """Its state, under the name that lines of a page use."""
        return self.state

    @property
    def text(self) -> str:
        """The sentence."""
        return self.finding.text

    @property
    def mark(self) -> str:
        """Its sign."""
        return MARKS[self.state]

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        found = self.finding.to_dict()
        return {"name": self.name, **{k: found[k] for k in ("state", "code", "subject", "values", "text")}}


@dataclass(frozen=True)
class Basis:
    """The test behind a verdict: its name, whether pairs were tested, and its p value, adjusted for all that were tested."""

    name: str
    paired: bool = False
    p: PValue | None = None

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        return {"name": self.name, "paired": self.paired, "p": self.p.to_dict() if self.p is not None else None}


@dataclass(frozen=True)
class Verdict:
    """What some numbers allow to conclude.

    Parameters
    ----------
    claim
        The main finding: its code says what is claimed, its subject which run it is about.
    status
        Whether the claim that would be good news is shown, not shown, or refuted.
    test
        The test that decides, with its adjusted p value; None if nothing was tested.
    effect
        The number that is tested, with its interval: a metric against its chance level, or a difference.
    answers
        All findings on whether it is good, the claim first.
    fails
        Where it fails: every slice, label, group or average that a test shows to be worse.
    looked
        What was looked at besides, so that silence is no good news.
    checks
        Whether it can be trusted: checks that passed, failed, or were not made.
    notes
        Warnings that no check covers.
    """

    claim: Finding
    status: Status
    test: Basis | None = None
    effect: Amount | None = None
    answers: tuple[Finding, ...] = ()
    fails: tuple[Finding, ...] = ()
    looked: tuple[Finding, ...] = ()
    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def code(self) -> str:
        """The code of the claim."""
        return self.claim.code

    @property
    def subject(self) -> Subject:
        """What the claim is about."""
        return self.claim.subject

    @property
    def p(self) -> float | None:
        """The adjusted p value; never below what its draws can show."""
        return self.test.p.stated if self.test is not None and self.test.p is not None else None

    @property
    def slices(self) -> tuple[Subject, ...]:
        """The slices and averages in which a test shows a failure, each once for each run."""
        found: dict[tuple[object, ...], Subject] = {}
        for f in self.fails:
            s = f.subject
            if s.slice:
                found.setdefault((s.run, tuple(s.slice.items()), s.average), s)
        return tuple(found.values())

    @property
    def failed_checks(self) -> tuple[str, ...]:
        """The names of the checks that failed, each once."""
        return tuple(dict.fromkeys(c.name for c in self.checks if c.state == FAILED))

    @property
    def state(self) -> State:
        """Failed if anything is shown against the detector, passed if its claim is shown, otherwise open."""
        against = any(f.state == FAILED for f in (*self.answers, *self.fails))
        if self.status == REFUTED or against:
            return FAILED
        return PASSED if self.status == SHOWN else OPEN

    @property
    def headline(self) -> str:
        """One sentence: the claim, what fails, and which checks failed."""
        return str(import_module("hitmiss.conclude.catalogue").headline(self))

    @property
    def sections(self) -> tuple[tuple[str, tuple[Finding | Check, ...]], ...]:
        """The questions with their answers, in order; long lists are cut, with the number left out."""
        found: tuple[tuple[str, tuple[Finding | Check, ...]], ...] = import_module(
            "hitmiss.conclude.catalogue"
        ).sections(self)
        return found

    def __str__(self) -> str:
        return self.headline

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form; `headline` and each `text` are for people, everything else for programs."""
        return {
            "subject": self.subject.to_dict(),
            "code": self.code,
            "status": self.status,
            "headline": self.headline,
            "test": self.test.to_dict() if self.test is not None else None,
            "effect": self.effect.to_dict() if self.effect is not None else None,
            "p": self.p,
            "slices": [s.to_dict() for s in self.slices],
            "answers": [f.to_dict() for f in self.answers],
            "fails": [f.to_dict() for f in self.fails],
            "looked": [f.to_dict() for f in self.looked],
            "checks": [c.to_dict() for c in self.checks],
        }
