"""The work of a run of models: every question is asked once; functions are called, language models are sent requests.

Conversations with language models run at the same time, in an event loop that belongs to the worker. A result is
yielded as soon as it is there, so that it is in the run before the next question is asked.
"""

from __future__ import annotations

import asyncio
import gc
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from hitmiss.core.errors import EnvironmentFault, HitmissError, UsageError
from hitmiss.llm.cache import ToolCache
from hitmiss.llm.chat import ChatModel
from hitmiss.llm.conversation import Conversation
from hitmiss.llm.detectors import Model, call_record
from hitmiss.llm.failures import broken, failure, fault_of, inner, kind_of, now
from hitmiss.llm.language_models import ModelOpener
from hitmiss.llm.ledger import Ledger
from hitmiss.llm.plan import Call, CallPlan
from hitmiss.llm.prices import Prices
from hitmiss.llm.rows import cost_of, tokens_used
from hitmiss.llm.secrets import Secrets, redact_error
from hitmiss.runs.worker import Result, Results

UNDER_WAY: Final = 100
"""Conversations at once, if the user gives no number; inspect_ai limits how many of them send requests."""


class CallWorker:
    """Asks models."""

    kind = "llm"
    grows: Collection[str] = ("dataset", "canaries", "prompts", "models", "modes", "tools", "trials", "thresholds")
    """Items, trials, models and modes may be added; what was answered is not asked again."""

    def __init__(
        self,
        plan: CallPlan,
        models: Mapping[str, Model],
        *,
        secrets: Secrets,
        key: str | None = None,
        cache: ToolCache | None = None,
        prices: Prices | None = None,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.plan, self.models, self.secrets, self.key = plan, models, secrets, key
        self.cache, self.prices, self.tell = cache, prices or Prices({}), tell
        self.ledger: Ledger | None = None
        """Where requests are written before they are sent."""
        self.calls = plan.calls
        self.items = [call.key for call in self.calls]
        self.n_unparsed = 0
        self._has_settled: set[str] = set()
        self._under_way: _Conversations | None = None

    @property
    def config(self) -> dict[str, object]:
        """Everything that could change an answer."""
        return self.plan.config

    def changed_inputs(self, records: Iterator[tuple[int, dict[str, object]]]) -> list[str]:
        """Return the items whose content is not what it was when they were asked about."""
        asked = ((self.calls[at].item, record["pin"]) for at, record in records if "pin" in record)
        return list(dict.fromkeys(item.id for item, pin in asked if item.sha256 != pin))

    def details(self) -> str:
        """Return how many answers were not understood."""
        return f", {self.n_unparsed:,} not understood" if self.n_unparsed else ""

    def work(self, todo: Iterator[int]) -> Results:
        """Ask, and yield answers as they arrive."""
        under_way = self._under_way = _Conversations(self)
        try:
            for at in todo:
                call = self.calls[at]
                if call.model in self.models:
                    yield self._call_model(at, call)
                else:
                    under_way.begin(at, call)
                while under_way.is_full:
                    yield from under_way.finished()
            while under_way.tasks:
                yield from under_way.finished()
        finally:
            under_way.close()

    def leftovers(self) -> list[Result]:
        """Return the answers that had arrived when the work was interrupted: they are paid for."""
        return list(self._under_way.arrived()) if self._under_way is not None else []

    def _call_model(self, at: int, call: Call) -> Result:
        """Ask a function or a detector; say once what it is taken for."""
        model = self.models[call.model]
        is_first = call.model not in self._has_settled
        if is_first:
            self._has_settled.add(call.model)
            model.settle(self.plan.items)
        contract = model.contract
        result = self.result(at, call, call_record(model.answer, call.item))
        if contract is None and model.contract is not None:
            self.tell(f"{call.model}: {model.contract}")
        return result

    async def converse(self, call: Call, asked: ChatModel, roles: Mapping[str, ChatModel]) -> dict[str, object]:
        """Return the record of a conversation: an answer or a failure, with time and tokens."""
        began, at = time.perf_counter(), now()
        conversation = Conversation(call, self.plan, self.cache, roles)
        try:
            record = await conversation.hold(asked)
        except (EnvironmentFault, UsageError):
            raise
        except Exception as found:
            error = redact_error(inner(found), self.secrets)
            record = failure(error, kind_of(error))
        is_whole = "error" not in record
        return {
            **record,
            **conversation.account(time.perf_counter() - began, is_whole=is_whole),
            "timestamp": at,
        }

    def result(self, at: int, call: Call, record: Mapping[str, object]) -> Result:
        """Return a record as a result: without keys, with whose fault a failure is, and what it has used."""
        clean = {name: self.secrets.clean(value) for name, value in record.items()}
        clean["pin"] = call.item.sha256
        has_failed = "error" in clean
        self.n_unparsed += not has_failed and clean.get("prediction") is None
        return Result(
            at,
            clean,
            fault_of(str(clean.get("error_type"))) if has_failed else "item" if clean.get("prediction") else "unread",
            calls=max(int(str(clean.get("requests", 1))), 1),
            tokens=tokens_used(clean),
            cost=cost_of(self.plan, call, clean, self.prices)[0] or 0.0,
            is_metered=has_failed or call.model in self.models or _is_metered(clean),
        )


def _is_metered(record: Mapping[str, object]) -> bool:
    return record.get("tokens") is not None or bool(record.get("cache_hit"))


class _Conversations:
    """The conversations that are under way, in an event loop of their own."""

    def __init__(self, worker: CallWorker) -> None:
        self.worker = worker
        settings = worker.plan.settings
        self.most = settings.batch or settings.max_connections or UNDER_WAY
        self.tasks: dict[asyncio.Task[dict[str, object]], tuple[int, Call]] = {}
        self._runner: asyncio.Runner | None = None  # turns Ctrl-C into a cancellation, which no library swallows
        self._opener = ModelOpener(worker.key, worker.secrets, worker.ledger)
        self._roles: dict[str, ChatModel] = {}

    @property
    def is_full(self) -> bool:
        """Whether an answer must come before the next question."""
        return len(self.tasks) >= self.most

    def begin(self, at: int, call: Call) -> None:
        """Begin a conversation."""
        if self._runner is None:
            self._runner = self._open()
        with _quiet():
            asked = self._asked(call.model, call.use_tools)
            task = self._runner.get_loop().create_task(self.worker.converse(call, asked, self._roles))
        self.tasks[task] = (at, call)

    def finished(self) -> Results:
        """Wait for an answer, and yield what is there; a fault of the machine ends the run."""
        assert self._runner is not None
        with _quiet():
            self._runner.run(asyncio.wait(list(self.tasks), return_when=asyncio.FIRST_COMPLETED))
        for error in [task.exception() for task in self.tasks if task.done() and not task.cancelled()]:
            if isinstance(error, HitmissError | KeyboardInterrupt):
                raise error
            if error is not None:
                raise broken(error, self.worker.secrets) from None
        yield from self.arrived()

    def arrived(self) -> Results:
        """Yield the answers that are there."""
        for task in [task for task in self.tasks if task.done()]:
            at, call = self.tasks.pop(task)
            if not task.cancelled() and task.exception() is None:
                yield self.worker.result(at, call, task.result())

    def close(self) -> None:
        """Give up what is under way, and close the connections."""
        if self._runner is None:
            return
        with _quiet():
            for task in self.tasks:
                task.cancel()
            with suppress(Exception, asyncio.CancelledError):
                self._runner.run(_all((*self.tasks, self._opener.aclose())))
            with suppress(Exception):
                self._runner.close()
            gc.collect()  # connections and streams that were left open warn when they are collected: collect them here
        self._runner = None

    def _open(self) -> asyncio.Runner:
        """Open every model that is asked, so that one that cannot be opened is known before any is asked."""
        plan, settings = self.worker.plan, self.worker.plan.settings
        with _quiet():
            for name, use_tools in plan.cells:
                if name not in self.worker.models:
                    self._asked(name, use_tools)
            self._roles = {
                role: self._opener.open(name, settings, is_last=role == "structuring")
                for role, name in settings.roles.items()
            }
        return asyncio.Runner()

    def _asked(self, name: str, use_tools: bool) -> ChatModel:
        how = self.worker.plan.variant(name)
        is_last = "structuring" not in how.settings.roles
        return self._opener.open(how.model, how.settings, is_last=is_last, use_tools=use_tools)


async def _all(waiting: tuple[object, ...]) -> None:
    await asyncio.gather(*waiting, return_exceptions=True)  # type: ignore[call-overload]


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide deprecations and open resources of the libraries: they do not concern the user."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
