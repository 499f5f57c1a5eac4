"""Language models asked through inspect_ai: its providers, connections, retries, cache and transcripts; our run store.

Every answer is written into the run as soon as it is there, before inspect_ai logs it. A resumed run asks only
questions without an answer, so what a killed process had finished is neither lost nor asked again.
"""

from __future__ import annotations

import gc
import re
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

from hitmiss.core.errors import EnvironmentFault, HitmissError, UsageError
from hitmiss.detection.detector import need
from hitmiss.llm.addresses import (
    OPENAI,
    is_openai,
    refuse_redirects,
    require_plain_environment,
    require_server,
    server_of,
)
from hitmiss.llm.answers import SCHEMA
from hitmiss.llm.cache import ToolCache
from hitmiss.llm.failures import broken, failure, inner, kind_of, now, stopped
from hitmiss.llm.items import Item
from hitmiss.llm.plan import Call, Settings
from hitmiss.llm.recorder import Recorder
from hitmiss.llm.secrets import redact_api, redact_error

if TYPE_CHECKING:
    from inspect_ai import Task
    from inspect_ai.model import Model as LanguageModel
    from inspect_ai.model import ResponseSchema
    from inspect_ai.solver import Generate, Solver, TaskState
from hitmiss.llm.conversation import Conversation

SERVICE: Final = "hitmiss"
NO_KEY: Final = "none-needed"
MARKUP: Final = re.compile(r"\[/?[a-z ]+\]")
"""The colour markup in inspect_ai's errors."""


def ask_llms(recorder: Recorder, log_dir: Path, cache: ToolCache | None, key: str | None) -> None:
    """Ask language models every open question, all models and modes in parallel."""
    waiting = [c for c in recorder.calls if c.model not in recorder.plan.detectors]
    if not waiting:
        return
    need("inspect_ai", "llm")
    require_plain_environment()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations and open resources of its libraries do not concern the user
        try:
            is_whole = _evaluate(waiting, recorder, log_dir, cache, key)
        except (KeyboardInterrupt, HitmissError):
            raise
        except BaseException as error:  # inspect_ai raises groups of errors, some of which are not an Exception
            raise recorder.fatal or broken(error, recorder.secrets) from None
        gc.collect()  # connections and streams that were left open warn when they are collected: collect them here
    recorder.require_hope()
    if not is_whole:
        raise KeyboardInterrupt


def _evaluate(
    waiting: Sequence[Call], recorder: Recorder, log_dir: Path, cache: ToolCache | None, key: str | None
) -> bool:
    """Run the tasks; return False if the user interrupted, which inspect_ai handles by ending without logs."""
    models = open_language_models([call.model for call in waiting], recorder, key)
    roles = open_roles(recorder, key)
    tasks = [_task(part, recorder, models[part[0].model], cache, roles) for part in _parts(waiting)]
    logs = need("inspect_ai", "llm").eval(
        tasks,
        model=None,
        display="none",
        log_dir=str(log_dir),
        log_level="critical",  # failures are reported by our own messages and rows
        log_images=False,
        log_realtime=False,
        log_model_api=False,
        ctl_server=False,
        fail_on_error=False,
        score_display=False,
        max_tasks=len(tasks),
    )
    said = next((log.error.message for log in logs if log.status == "error" and log.error is not None), None)
    if said is not None and recorder.fatal is None:
        raise stopped(str(said), recorder.secrets)
    return bool(logs) and not any(log.status == "cancelled" for log in logs)


def _parts(waiting: Sequence[Call]) -> list[list[Call]]:
    """Group the open questions by model, mode and whether they are canaries: one task each."""
    parts: dict[tuple[str, bool, bool], list[Call]] = {}
    for call in waiting:
        parts.setdefault((call.model, call.use_tools, call.is_canary), []).append(call)
    return list(parts.values())


def open_language_models(names: Sequence[str], recorder: Recorder, key: str | None) -> dict[str, LanguageModel]:
    """Open the models, after checking that their servers, as far as known, can be reached."""
    settings = recorder.plan.settings
    asked = settings.base_url, settings.provider
    is_last = "structuring" not in settings.roles
    opened = {name: open_model(name, settings, key, recorder, is_last) for name in dict.fromkeys(names)}
    every = [*opened, *settings.roles.values()]
    known = [server_of(name, *asked) or (OPENAI if is_openai(name, *asked) else None) for name in every]
    for address in dict.fromkeys(a for a in known if a is not None):
        require_server(address)
    return opened


def open_roles(recorder: Recorder, key: str | None) -> dict[str, LanguageModel]:
    """Open the models that do vision or structuring for the agents."""
    settings = recorder.plan.settings
    return {
        role: open_model(name, settings, key, recorder, role == "structuring") for role, name in settings.roles.items()
    }


def open_model(
    name: str, settings: Settings, key: str | None, recorder: Recorder, is_last: bool = True
) -> LanguageModel:
    """Return the model as inspect_ai names it: `provider/name`, a bare name (OpenAI), or any name with `--base-url`.

    `is_last`: whether its message is the answer, which must follow the schema.
    """
    model = need("inspect_ai.model", "llm")
    connections = {"max_connections": settings.max_connections} if settings.max_connections else {}
    config = model.GenerateConfig(
        temperature=settings.temperature,
        max_tokens=settings.max_tokens,
        reasoning_effort=settings.reasoning_effort,
        reasoning_summary="none",  # otherwise inspect_ai makes an extra request to see whether summaries are allowed
        seed=settings.seed,
        max_retries=settings.max_retries,
        timeout=settings.timeout,
        attempt_timeout=settings.timeout,
        response_schema=_schema(model) if is_last else None,
        **connections,
    )
    server = server_of(name, settings.base_url, settings.provider)
    full, given = address_of(name, settings), {"base_url": server, "api_key": key}
    if full.startswith(f"openai-api/{SERVICE}/"):
        given["api_key"] = key or NO_KEY  # an OpenAI key must not be sent to other hosts
    try:
        found = model.get_model(full, config=config, memoize=False, **given)
    except Exception as error:
        why = MARKUP.sub("", recorder.secrets.redact(str(error) or type(error).__name__)).removeprefix("ERROR: ")
        raise EnvironmentFault(f"the model {name} cannot be asked: {' '.join(why.split())}") from None
    refuse_redirects(found.api)
    redact_api(found, recorder.secrets)
    return found


def address_of(name: str, settings: Settings) -> str:
    """Return a model's name for inspect_ai.

    >>> address_of("gpt-5.1", Settings()), address_of("anthropic/claude", Settings())
    ('openai/gpt-5.1', 'anthropic/claude')
    >>> address_of("org/model", Settings(base_url="http://127.0.0.1:1/v1"))
    'openai-api/hitmiss/org/model'
    """
    if settings.provider is not None:
        return f"{settings.provider}/{name}"
    if settings.base_url is not None:
        return f"openai-api/{SERVICE}/{name}"
    return name if "/" in name else f"openai/{name}"


def _schema(model: ModuleType) -> ResponseSchema:
    util = need("inspect_ai.util", "llm")
    return model.ResponseSchema(name="verdict", json_schema=util.JSONSchema.model_validate(SCHEMA), strict=True)


def _task(
    part: Sequence[Call],
    recorder: Recorder,
    model: LanguageModel,
    cache: ToolCache | None,
    roles: Mapping[str, LanguageModel],
) -> Task:
    """Make one task: the waiting items, with one epoch per trial; epochs that already have an answer are skipped."""
    inspect_ai, dataset = need("inspect_ai", "llm"), need("inspect_ai.dataset", "llm")
    first = part[0]
    items = {call.item.id: call.item for call in part}
    mode = "tools" if first.use_tools else "no-tools"
    return inspect_ai.Task(
        dataset=[dataset.Sample(input=item.kind, target=item.label, id=item.id) for item in items.values()],
        solver=_solver(first, items, recorder, cache, roles),
        model=model,
        epochs=1 if first.is_canary else recorder.plan.trials,
        name=f"{'canaries' if first.is_canary else 'items'}-{mode}",
        metadata=recorder.plan.config,
    )


def _solver(
    first: Call,
    items: Mapping[str, Item],
    recorder: Recorder,
    cache: ToolCache | None,
    roles: Mapping[str, LanguageModel],
) -> Solver:
    """Return the solver of a task: one conversation per item, with its answer written into the run."""
    solver = need("inspect_ai.solver", "llm")

    @solver.solver(name="hitmiss_verdict")  # type: ignore[untyped-decorator]
    def ask_all() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            del generate  # the model is called directly, to time and count each call
            call = Call(first.model, first.use_tools, state.epoch - 1, items[str(state.sample_id)], first.is_canary)
            if not recorder.is_open(call.key) or recorder.is_stopped:
                return state
            try:
                record = await _answered(Conversation(call, recorder.plan, cache, roles), recorder, state)
                recorder.add(call.key, record)
            except HitmissError as error:  # a fault of the machine, not of the item: nothing more is asked
                recorder.fatal = recorder.fatal or error
                return state
            if "error" in record:
                raise RuntimeError(recorder.secrets.redact(str(record["error"])))
            return state

        return solve

    return ask_all()


async def _answered(asked: Conversation, recorder: Recorder, state: TaskState) -> dict[str, object]:
    """Return the result of a call: an answer or a failure, with time and tokens."""
    began, at = time.perf_counter(), now()
    try:
        record = await asked.hold(state)
    except (EnvironmentFault, UsageError):
        raise
    except Exception as found:
        error = redact_error(inner(found), recorder.secrets)
        record = failure(error, kind_of(error))
    is_whole = "error" not in record
    return {**record, **asked.account(time.perf_counter() - began, is_whole=is_whole), "timestamp": at}
