"""One loop for every run: what is to do, what came back, and when to stop.

    with open_run(worker, folder, spec) as run:
        end = run_loop(worker, run, spec)
        end.require_hope(folder)
        if run.is_done:
            run.finish(table)

detect, attack, llm and runs on a cluster differ in their workers only. The loop owns what is to do (`--resume`,
`--retry`, `--join`), changed inputs, interruptions, patience, the budget and the progress.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from hitmiss.core.errors import DataError, HitmissError, IncompleteRun, UsageError
from hitmiss.core.run_spec import RunSpec
from hitmiss.runs.progress import Progress, Report
from hitmiss.runs.signals import stop_on_terminate
from hitmiss.runs.store import Run, start
from hitmiss.runs.worker import Result, Store, Worker

REFUSALS: Final = 5
"""A run stops after this many refusals among the last results, such as those of a key that was revoked."""
WINDOW: Final = 20
"""How many results are the last ones."""
SHOWN: Final = 5
"""Changed inputs that are named."""
SAID: Final = 200
"""Characters of an answer that are shown."""


@contextmanager
def open_run(worker: Worker, folder: str | Path, spec: RunSpec) -> Iterator[Run]:
    """Begin, continue or join the run of a worker; refuse to continue if the inputs of what is done have changed."""
    if spec.retry and not spec.resume:
        raise UsageError.of("option-unused/retry")
    with (
        stop_on_terminate(),
        start(
            folder,
            kind=worker.kind,
            config=worker.config,
            items=worker.items,
            resume=spec.resume,
            join=spec.join,
            grows=worker.grows,
        ) as run,
    ):
        if spec.resume or spec.join:
            _refuse_other_inputs(worker.changed_inputs(run.records()))
        yield run


def run_loop(worker: Worker, store: Store, spec: RunSpec, report: Report = lambda progress: None) -> End:
    """Do what is to do; return how it ended.

    An interruption is raised as `KeyboardInterrupt`, after everything that came back has been kept.
    """
    n_open_again = int(store.has_error.sum()) if spec.retry else 0
    progress = Progress(len(store.items), store.n_done - n_open_again, details=worker.details)
    budget, patience = Budget(spec, progress), Patience(store, progress, spec.patience)
    with stop_on_terminate():
        if not store.is_done or spec.retry:
            with closing(worker.work(budget.within(store.todo(spec.retry)))) as results:
                try:
                    for result in results:
                        _keep(store, progress, result)
                        report(progress)
                        if patience.is_lost(result):
                            return End("hopeless", progress, patience.has_success, last_unread=patience.last_unread)
                except KeyboardInterrupt:
                    for result in worker.leftovers():
                        _keep(store, progress, result)
                    raise
        report(progress)
        if budget.used_up and not store.is_done:
            return End("over budget", progress, patience.has_success, budget.used_up)
        return End("complete" if store.is_done else "shared", progress, patience.has_success)


@dataclass(frozen=True)
class End:
    """How a run ended: complete, shared (other processes still work on it), hopeless, or over its budget."""

    state: Literal["complete", "shared", "hopeless", "over budget"]
    progress: Progress
    has_success: bool
    """Whether any item of the run has succeeded, now or before."""
    limit: str = ""
    """The option whose limit was reached."""
    last_unread: str = ""
    """What the last answer says, if the run stopped because answers came that cannot be used."""

    def require_hope(self, folder: str | Path, noun: str = "items", kind: type[HitmissError] = DataError) -> None:
        """Raise if the run stopped before its end, with an error of this kind if nothing succeeded.

        Everything that was done is kept.
        """
        if self.state == "over budget":
            raise IncompleteRun.of("over-budget", folder=folder, limit=self.limit, progress=self.progress.line())
        if self.state != "hopeless":
            return
        if self.last_unread:
            raise IncompleteRun.of("answers-unread", folder=folder, said=self.last_unread)
        why = self.progress.first_failure
        if self.has_success:
            raise IncompleteRun.of("service-failed", folder=folder, why=why)
        n = self.progress.n_failed
        many = f"the first {n} {noun} all" if n > 1 else f"the first {noun.removesuffix('s')}"
        many = f"all {n:,} {noun}" if n == self.progress.n_total else many
        raise kind.of("all-failed/stopped", many=many, why=why)

    def require_few_failures(self, folder: str | Path, n_failed: int, most: float | None) -> None:
        """Raise if a larger share of the items failed than is allowed."""
        share = n_failed / max(self.progress.n_total, 1)
        if self.state == "complete" and most is not None and share > most:
            raise IncompleteRun.of(
                "too-many-failures",
                folder=folder,
                n_failed=n_failed,
                n_total=self.progress.n_total,
                share=share,
                most=f"{most:g}",
                first_failure=self.progress.first_failure or "see the records",
            )


@dataclass
class Budget:
    """What a run may use. When it is used up, nothing more is handed out; what is under way is kept."""

    spec: RunSpec
    progress: Progress
    used_up: str = ""
    n_taken: int = 0

    def within(self, todo: Iterator[int]) -> Iterator[int]:
        """Yield positions until the budget is used up."""
        for at in todo:
            self.used_up = self._reached()
            if self.used_up:
                return
            self.n_taken += 1
            yield at

    def _reached(self) -> str:
        spec, used = self.spec, self.progress
        under_way = self.n_taken - used.n_done
        limits = {
            "--max-calls": (used.calls + under_way, spec.max_calls),
            "--max-time": (used.elapsed, spec.max_time),
            "--max-total-tokens": (used.tokens, spec.max_total_tokens),
            "--max-cost": (used.cost, spec.max_cost),
        }
        metered = {name: limits[name][1] for name in ("--max-total-tokens", "--max-cost")}
        if used.n_unmetered and (kept := next((f"{n} {most:g}" for n, most in metered.items() if most), "")):
            return f"{kept}, which cannot be kept (the service does not say what it uses)"
        return next((f"{name} {most:g}" for name, (n, most) in limits.items() if most is not None and n >= most), "")


@dataclass
class Patience:
    """When results show that going on makes no sense: failures before the first success, a service that fails for good,
    or answers that cannot be used, one after the other.
    """

    store: Store
    progress: Progress
    most: int = 20
    """Results in a row that single items do not explain; 0: any number."""
    has_success: bool = field(init=False)
    last_unread: str = ""
    _failures: int = 0
    _in_a_row: int = 0
    _last: deque[str] = field(default_factory=lambda: deque(maxlen=WINDOW))

    def __post_init__(self) -> None:
        self.has_success = self.store.n_done > int(self.store.has_error.sum())

    def is_lost(self, result: Result) -> bool:
        """Count a result; return whether the run should stop."""
        is_unread = not result.has_failed and result.fault == "unread"
        self._last.append(result.fault if result.has_failed else "")
        is_general = is_unread or (result.has_failed and result.fault != "item")
        self._in_a_row = self._in_a_row + 1 if is_general else 0
        self.has_success = self.has_success or not result.has_failed
        is_over = bool(self.most) and self._in_a_row >= self.most
        if is_unread:
            self.last_unread = " ".join(str(result.record.get("answer") or "nothing").split())[:SAID] if is_over else ""
            return is_over
        if not result.has_failed:
            return False
        self._failures += result.is_decisive
        if not self.has_success:
            most = min(self.most, len(self.store.items))
            return result.fault == "refused" or (bool(most) and self._failures >= most)
        return self._last.count("refused") >= REFUSALS or is_over


def _keep(store: Store, progress: Progress, result: Result) -> None:
    """Write a result, and count it."""
    store.add(result.at, result.record)
    item = store.items[result.at]
    progress.n_done += 1
    progress.calls += result.calls
    progress.tokens += result.tokens
    progress.cost += result.cost
    progress.n_unmetered += not result.is_metered
    if result.has_failed:
        progress.n_failed += 1
        progress.first_failure = progress.first_failure or f"{item}: {result.record['error']}"


def _refuse_other_inputs(changed: list[str]) -> None:
    """Refuse to continue if an input has changed: the run would mix two sets of items."""
    if not changed:
        return
    names = ", ".join(changed[:SHOWN])
    more = f" and {len(changed) - SHOWN:,} more" if len(changed) > SHOWN else ""
    raise IncompleteRun.of("changed-files", n_changed=len(changed), names=names, more=more)
