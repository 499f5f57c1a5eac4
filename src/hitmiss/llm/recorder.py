"""Where answers are written as soon as they arrive: into the run's segment, without keys, and counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from hitmiss.core.errors import EnvironmentFault, HitmissError
from hitmiss.llm.plan import Call, CallPlan
from hitmiss.llm.secrets import Secrets
from hitmiss.runs.store import Run

HOPELESS: Final = 20
"""After this many failures before the first success nothing more is asked: the items are not the cause."""
REFUSALS: Final = ("authentication", "not_found", "redirect")
"""Failures that no item can cause: one before the first success is enough to stop."""


@dataclass
class Recorder:
    """The open questions of a run, and the only way to write answers."""

    run: Run
    plan: CallPlan
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
    def of(
        cls, run: Run, plan: CallPlan, secrets: Secrets, retry: bool, report: Callable[[Recorder], None]
    ) -> Recorder:
        """Collect every question without an answer (`retry`: also those that failed)."""
        todo = list(run.todo(retry))
        return cls(run, plan, secrets, {run.items[at]: at for at in todo}, report, len(run.items) - len(todo))

    @property
    def calls(self) -> list[Call]:
        """The open questions."""
        return [call for call in self.plan.calls if call.key in self.open]

    @property
    def is_stopped(self) -> bool:
        """Whether nothing more may be asked: the machine failed, or the first calls all failed."""
        return self.fatal is not None or (self.n_answered == 0 and (self.is_refused or self.n_failed >= HOPELESS))

    @property
    def has_answer(self) -> bool:
        """Whether any question of the run has been answered, now or before."""
        return self.run.n_done > int(self.run.has_error.sum())

    @property
    def n_total(self) -> int:
        """The number of questions in the run."""
        return len(self.run.items)

    @property
    def n_done(self) -> int:
        """The number of questions answered, successfully or not, since this process began."""
        return self.n_answered + self.n_failed

    def line(self) -> str:
        """Return the progress in words."""
        rate = self.n_done / max(1e-9, time.monotonic() - self.started)
        left = f", about {round(len(self.open) / rate):,} s left" if self.n_done and self.open else ""
        done = self.n_before + self.n_done
        return f"{done:,} of {self.n_total:,} calls, {self.n_failed:,} failed, {self.n_unparsed:,} not understood{left}"

    def is_open(self, key: str) -> bool:
        """Return whether the question still waits for its answer."""
        return key in self.open

    def add(self, key: str, record: Mapping[str, object]) -> None:
        """Write an answer; once this returns, killing the process cannot lose it. A second answer is refused."""
        at = self.open.pop(key)
        self.run.add(at, {name: self.secrets.clean(value) for name, value in record.items()})
        if "error" in record:
            self.n_failed += 1
            self.is_refused = self.is_refused or record.get("error_type") in REFUSALS
            self.first_failure = self.first_failure or self.secrets.redact(str(record["error"]))
        else:
            self.n_answered += 1
            self.n_unparsed += record.get("prediction") is None
        self.report(self)

    def require_hope(self) -> None:
        """Raise the error that stopped the run, if there is one."""
        if self.fatal is not None:
            raise self.fatal
        if self.is_stopped:
            many = "call" if self.n_failed == 1 else f"{self.n_failed} calls all"
            raise self.hopeless(f"the first {many} failed, so nothing more was asked")

    def require_answer(self) -> None:
        """Raise if every call failed: that is not an evaluation."""
        if not self.has_answer:
            raise self.hopeless(f"all {self.n_total:,} calls failed")

    def hopeless(self, what: str) -> EnvironmentFault:
        """Return an error that says what happened, why, and how to continue."""
        then = "go on with --resume --retry" if self.has_answer else "give the command again; nothing was kept"
        return EnvironmentFault(f"{what}: {self.first_failure}; fix it and {then}")
