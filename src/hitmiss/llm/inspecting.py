"""Language models asked through inspect_ai: its providers, connections, retries, cache and transcripts; our run store.

Every answer is written into the run the moment it is there, before inspect_ai logs it. A resumed run asks only what has
no answer yet, so what a killed process had finished is neither lost nor asked again.
"""

from __future__ import annotations

import gc
import re
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from hitmiss.detect.detector import need
from hitmiss.errors import EnvironmentFault, HitmissError, UsageError
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
from hitmiss.llm.conversation import Conversation
from hitmiss.llm.failures import broken, inner, kind_of, stopped
from hitmiss.llm.items import Item
from hitmiss.llm.plan import Call, Settings
from hitmiss.llm.recorder import Recorder, failure, now
from hitmiss.llm.redaction import redact_api, redact_error

SERVICE: Final = "hitmiss"
NO_KEY: Final = "none-needed"
MARKUP: Final = re.compile(r"\[/?[a-z ]+\]")
"""How inspect_ai colours its errors."""


def ask_llms(recorder: Recorder, log_dir: Path, cache: ToolCache | None, key: str | None) -> None:
    """Put every open question to its language model, all models and modes side by side."""
    waiting = [c for c in recorder.calls if c.model not in recorder.plan.detectors]
    if not waiting:
        return
    need("inspect_ai", "llm")
    require_plain_environment()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what its libraries deprecate, and leave open, is no affair of the user's
        try:
            is_whole = _evaluate(waiting, recorder, log_dir, cache, key)
        except (KeyboardInterrupt, HitmissError):
            raise
        except BaseException as error:  # of its own making: groups of errors, some of which are no Exception
            raise recorder.fatal or broken(error, recorder.secrets) from None
        gc.collect()  # connections and streams that were left open complain when they are collected: here
    recorder.require_hope()
    if not is_whole:
        raise KeyboardInterrupt


def _evaluate(
    waiting: Sequence[Call], recorder: Recorder, log_dir: Path, cache: ToolCache | None, key: str | None
) -> bool:
    """Run the tasks; False where the user interrupted, which inspect_ai takes and ends without logs."""
    models = open_models([call.model for call in waiting], recorder, key)
    tasks = [_task(part, recorder, models[part[0].model], cache) for part in _parts(waiting)]
    logs = need("inspect_ai", "llm").eval(
        tasks,
        model=None,
        display="none",
        log_dir=str(log_dir),
        log_level="critical",  # what fails is told by our own sentence and rows
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
    """The open questions by model, mode and whether they are canaries: one task each."""
    parts: dict[tuple[str, bool, bool], list[Call]] = {}
    for call in waiting:
        parts.setdefault((call.model, call.use_tools, call.is_canary), []).append(call)
    return list(parts.values())


def open_models(names: Sequence[str], recorder: Recorder, key: str | None) -> dict[str, Any]:
    """The models, after their servers, as far as they are known, have been found to be there."""
    settings = recorder.plan.settings
    asked = settings.base_url, settings.provider
    opened = {name: open_model(name, settings, key, recorder) for name in dict.fromkeys(names)}
    known = [server_of(name, *asked) or (OPENAI if is_openai(name, *asked) else None) for name in opened]
    for address in dict.fromkeys(a for a in known if a is not None):
        require_server(address)
    return opened


def open_model(name: str, settings: Settings, key: str | None, recorder: Recorder) -> Any:
    """The model as inspect_ai knows it: `provider/name`, a bare name (OpenAI), or any name behind `--base-url`."""
    model = need("inspect_ai.model", "llm")
    connections = {"max_connections": settings.max_connections} if settings.max_connections else {}
    config = model.GenerateConfig(
        temperature=settings.temperature,
        max_tokens=settings.max_tokens,
        reasoning_effort=settings.reasoning_effort,
        reasoning_summary="none",  # asked for, it would cost a request of its own to see whether it may be
        seed=settings.seed,
        max_retries=settings.max_retries,
        timeout=settings.timeout,
        attempt_timeout=settings.timeout,
        response_schema=_schema(model),
        **connections,
    )
    server = server_of(name, settings.base_url, settings.provider)
    full, given = address_of(name, settings), {"base_url": server, "api_key": key}
    if full.startswith(f"openai-api/{SERVICE}/"):
        given["api_key"] = key or NO_KEY  # a key of OpenAI's is not for other hosts
    try:
        found = model.get_model(full, config=config, memoize=False, **given)
    except Exception as error:
        why = MARKUP.sub("", recorder.secrets.redact(str(error) or type(error).__name__)).removeprefix("ERROR: ")
        raise EnvironmentFault(f"the model {name} cannot be asked: {' '.join(why.split())}") from None
    refuse_redirects(found.api)
    redact_api(found, recorder.secrets)
    return found


def address_of(name: str, settings: Settings) -> str:
    """A model's name for inspect_ai.

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


def _schema(model: Any) -> Any:
    util = need("inspect_ai.util", "llm")
    return model.ResponseSchema(name="verdict", json_schema=util.JSONSchema.model_validate(SCHEMA), strict=True)


def _task(part: Sequence[Call], recorder: Recorder, model: Any, cache: ToolCache | None) -> Any:
    """One task: the items that still wait, as many epochs as trials; epochs that have their answer are passed over."""
    inspect_ai, dataset = need("inspect_ai", "llm"), need("inspect_ai.dataset", "llm")
    first = part[0]
    items = {call.item.id: call.item for call in part}
    mode = "tools" if first.use_tools else "no-tools"
    return inspect_ai.Task(
        dataset=[dataset.Sample(input=item.kind, target=item.label, id=item.id) for item in items.values()],
        solver=_solver(first, items, recorder, cache),
        model=model,
        epochs=1 if first.is_canary else recorder.plan.trials,
        name=f"{'canaries' if first.is_canary else 'items'}-{mode}",
        metadata=recorder.plan.config,
    )


def _solver(first: Call, items: Mapping[str, Item], recorder: Recorder, cache: ToolCache | None) -> Any:
    """The solver of a task: one conversation an item, its answer into the run."""
    solver = need("inspect_ai.solver", "llm")

    @solver.solver(name="hitmiss_verdict")  # type: ignore[untyped-decorator]
    def ask_all() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            del generate  # the model is asked directly, to time and count each call
            call = Call(first.model, first.use_tools, state.epoch - 1, items[str(state.sample_id)], first.is_canary)
            if not recorder.is_open(call.key) or recorder.is_stopped:
                return state
            try:
                record = await _answered(call, recorder, cache, state)
                recorder.add(call.key, record)
            except HitmissError as error:  # the machine, not the item: nothing more is asked
                recorder.fatal = recorder.fatal or error
                return state
            if "error" in record:
                raise RuntimeError(recorder.secrets.redact(str(record["error"])))
            return state

        return solve

    return ask_all()


async def _answered(call: Call, recorder: Recorder, cache: ToolCache | None, state: Any) -> dict[str, Any]:
    """What came of a call: an answer or a failure, with what it took."""
    asked = Conversation(call, recorder.plan, cache)
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
