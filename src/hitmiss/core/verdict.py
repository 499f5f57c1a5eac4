"""The data of a conclusion: checks, the test behind it, the verdict. Nothing here is a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Final, Literal

from hitmiss.core.finding import FAILED, MARKS, OPEN, PASSED, Amount, Finding, PValue, State, Subject

Status = Literal["shown", "not shown", "refuted"]
SHOWN: Final[Status] = "shown"
NOT_SHOWN: Final[Status] = "not shown"
REFUTED: Final[Status] = "refuted"
OUTCOMES: Final = ("FAIL", "NOT SHOWN", "PASS")
"""The outcomes of requirements; of several the first of these counts."""


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
    requirements
        What was required, each with its outcome.
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
    requirements: tuple[Finding, ...] = ()

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
    def outcome(self) -> str | None:
        """PASS if every requirement is shown to be met, FAIL if one is shown to be broken, else NOT SHOWN; None: none."""
        found = {f.values["outcome"] for f in self.requirements}
        return next((str(worst) for worst in OUTCOMES if worst in found), None)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Every finding of the verdict: answers, failures, what was looked at, requirements and checks."""
        return (*self.answers, *self.fails, *self.looked, *self.requirements, *(c.finding for c in self.checks))

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
        against = any(f.state == FAILED for f in (*self.answers, *self.fails, *self.requirements))
        if self.status == REFUTED or against:
            return FAILED
        return PASSED if self.status == SHOWN else OPEN

    @property
    def headline(self) -> str:
        """One sentence: the claim, what fails, and which checks failed; options as the command line writes them."""
        return str(import_module("hitmiss.conclude.headline").headline(self))  # by name: a higher layer

    @property
    def sections(self) -> tuple[tuple[str, tuple[Finding | Check, ...]], ...]:
        """The questions with their answers, in order; long lists are cut, with the number left out."""
        found: tuple[tuple[str, tuple[Finding | Check, ...]], ...] = import_module(
            "hitmiss.conclude.headline"
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
            **(
                {"outcome": self.outcome, "requirements": [f.to_dict() for f in self.requirements]}
                if self.requirements
                else {}
            ),
        }
