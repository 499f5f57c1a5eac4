"""Where answers go the moment they are there: into the run's segment, without keys, counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from hitmiss.errors import EnvironmentFault, HitmissError
from hitmiss.io.runs import Run
from hitmiss.llm.plan import Call, Plan
from hitmiss.llm.secrets import Secrets

HOPELESS: Final = 20
"""So many failures before the first success, and nothing more is asked: it is not the items."""
REFUSALS: Final = ("authentication", "not_found", "redirect")
"""Failures that no item can be the reason of: one before the first success is enough."""
LONGEST_ERROR: Final = 600


@dataclass
class Recorder:
    """The open questions of a run, and the only way by which answers are written."""

    run: Run
    plan: Plan
    secrets: Secrets
    open: dict[str, int]
    report: Callable[[Recorder], None] = lambda recorder: None
    n_before: int = 0
    n_answered: int = 0
    n_failed: int = 0
    n_unparsed: int = 0
    first_failure: str = ""
    is_refused: bool = False
    fatal: HitmissError | None = None
    started: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, run: Run, plan: Plan, secrets: Secrets, retry: bool, report: Callable[[Recorder], None]) -> Recorder:
        """Everything that nobody has answered (`retry`: or that failed)."""
        todo = list(run.todo(retry))
        return cls(run, plan, secrets, {run.items[at]: at for at in todo}, report, len(run.items) - len(todo))

    @property
    def calls(self) -> list[Call]:
        """The open questions."""
        return [call for call in self.plan.calls if call.key in self.open]

    @property
    def is_stopped(self) -> bool:
        """Whether nothing more may be asked: the machine failed, or the first calls all did."""
        return self.fatal is not None or (self.n_answered == 0 and (self.is_refused or self.n_failed >= HOPELESS))

    @property
    def has_answer(self) -> bool:
        """Whether any question of the run has been answered, now or before."""
        return self.run.n_done > int(self.run.has_error.sum())

    @property
    def n_total(self) -> int:
        """How many questions the run has."""
        return len(self.run.items)

    @property
    def n_done(self) -> int:
        """How many were answered, well or not, since this process began."""
        return self.n_answered + self.n_failed

    def line(self) -> str:
        """How far it is, in words."""
        rate = self.n_done / max(1e-9, time.monotonic() - self.started)
        left = f", about {round(len(self.open) / rate):,} s left" if self.n_done and self.open else ""
        done = self.n_before + self.n_done
        return f"{done:,} of {self.n_total:,} calls, {self.n_failed:,} failed, {self.n_unparsed:,} not understood{left}"

    def is_open(self, key: str) -> bool:
        """Whether the question still waits for its answer."""
        return key in self.open

    def add(self, key: str, record: Mapping[str, Any]) -> None:
        """Write an answer; when this returns, killing the process cannot lose it. A second answer is refused."""
        at = self.open.pop(key)
        self.run.add(at, self.secrets.clean(record))
        if "error" in record:
            self.n_failed += 1
            self.is_refused = self.is_refused or record.get("error_type") in REFUSALS
            self.first_failure = self.first_failure or self.secrets.redact(str(record["error"]))
        else:
            self.n_answered += 1
            self.n_unparsed += record.get("prediction") is None
        self.report(self)

    def require_hope(self) -> None:
        """Raise what stopped the run, where something did."""
        if self.fatal is not None:
            raise self.fatal
        if self.is_stopped:
            many = "call" if self.n_failed == 1 else f"{self.n_failed} calls all"
            raise self.hopeless(f"the first {many} failed, so nothing more was asked")

    def require_answer(self) -> None:
        """Raise where every call failed: that is no evaluation."""
        if not self.has_answer:
            raise self.hopeless(f"all {self.n_total:,} calls failed")

    def hopeless(self, what: str) -> EnvironmentFault:
        """What happened, why, and how to go on."""
        then = "go on with --resume --retry" if self.has_answer else "give the command again; nothing was kept"
        return EnvironmentFault(f"{what}: {self.first_failure}; mend it and {then}")


def failure(error: BaseException, kind: str = "exception") -> dict[str, Any]:
    """The record of a failed call.

    >>> failure(ValueError("no answer"))
    {'error': 'ValueError: no answer', 'error_type': 'exception'}
    """
    said = getattr(error, "provider_message", None) or str(error)
    text = " ".join([f"{type(error).__name__}:", *str(said).split()])
    return {"error": text.removesuffix(":")[:LONGEST_ERROR], "error_type": kind}


def now() -> str:
    """The time, in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
