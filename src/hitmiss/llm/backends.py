"""The models that are asked: language models through inspect_ai, functions and classic detectors."""

from __future__ import annotations

import base64
import gc
import importlib.util
import json
import math
import re
import time
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

import numpy as np

from hitmiss.core.errors import DataError, EnvironmentFault, HitmissError, UsageError
from hitmiss.core.sorting import Array, Floats
from hitmiss.detection.contract import Contract, Origin, Term, detector_contract
from hitmiss.detection.detector import (
    Batch,
    CallableDetector,
    Detector,
    EstimatorDetector,
    need,
    open_detector,
    opener_of,
)
from hitmiss.detection.outputs import Extraction, pick_output, settled_kind, to_probability
from hitmiss.llm.answers import SCHEMA, Answer, answer_of, read_answer
from hitmiss.llm.cache import ToolCache
from hitmiss.llm.items import Item
from hitmiss.llm.media import to_send
from hitmiss.llm.plan import (
    DESCRIBED,
    STRUCTURING,
    VISION,
    Call,
    Plan,
    Recorder,
    Settings,
    as_data,
    broken,
    failure,
    inner,
    kind_of,
    now,
    stopped,
)
from hitmiss.llm.secrets import (
    OPENAI,
    Sent,
    is_openai,
    listen,
    redact_api,
    redact_error,
    refuse_redirects,
    require_plain_environment,
    require_server,
    server_of,
)
from hitmiss.llm.tools import BY_KIND, ToolCall, call_tool

if TYPE_CHECKING:
    from inspect_ai import Task
    from inspect_ai.event import ModelEvent
    from inspect_ai.model import ChatMessage, Content, ModelOutput, ModelUsage, ResponseSchema
    from inspect_ai.model import Model as LanguageModel
    from inspect_ai.solver import Generate, Solver, TaskState
    from inspect_ai.tool import ToolDef

# ----------------------------------------------------------------------
# One item given to one language model: the question, the tools that it calls, its answer, and time and tokens.

ENDS: Final = {
    "max_tokens": ": it was cut off at the most tokens that an answer may have (--max-tokens)",
    "model_length": ": it was cut off where the model takes no more",
    "content_filter": ": the provider held it back",
}
"""Why an answer may have ended too early."""


@dataclass(frozen=True)
class Reply:
    """A model's reply, how long the call itself took, and whether it came from inspect_ai's cache."""

    output: ModelOutput
    seconds: float
    cached: bool
    role: str = "agent"

    @classmethod
    def of(cls, output: ModelOutput, wall: float, role: str = "agent") -> Reply:
        """Make it from the reply just received. A cached one carries the time of its original call: not ours."""
        events = _model_events()
        cached = bool(events) and events[-1].cache == "read"
        return cls(output, wall if cached or output.time is None else float(output.time), cached, role)


class Conversation:
    """One item given to one model: question, tools, answer; with time and tokens."""

    def __init__(self, call: Call, plan: Plan, cache: ToolCache | None, roles: Mapping[str, LanguageModel]) -> None:
        self.call, self.plan, self.cache, self.roles = call, plan, cache, roles
        self.tool_calls: list[ToolCall] = []
        self.replies: list[Reply] = []
        self.sent: dict[str, object] | None = None
        self.wire: Sent = {}
        self.wire_by_role: dict[str, Sent] = {}

    async def hold(self, state: TaskState) -> dict[str, object]:
        """Ask until there is an answer; the last of `max_iterations` offers no tools, so that it must be an answer.

        If another model does the vision, the agent gets its description instead of the item; if another one does the
        structuring, it gets the agent's last message.
        """
        model = need("inspect_ai.model", "llm")
        data = self.call.item.load()
        told: dict[str, object] = {}
        if "vision" in self.roles:
            looked = await self._in_role("vision", VISION, self._content(data))
            seen = str(looked.completion)
            told["description"] = seen
            state.messages = self._turns(self.plan.prompts.system, [DESCRIBED, as_data(seen)])
        else:
            state.messages = self._turns(self.plan.prompts.system, self._content(data))
        self.wire = listen()
        tools = self._tools(data) if self.call.use_tools else []
        asked = model.get_model()
        for left in range(self.plan.settings.max_iterations - 1, -1, -1):
            began = time.perf_counter()
            output = await asked.generate(
                state.messages,
                tools=tools,
                tool_choice="auto" if left else "none",
                cache=self.plan.settings.answer_cache,
            )
            self.replies.append(Reply.of(output, time.perf_counter() - began))
            state.output = _whole(output)
            state.messages.append(output.message)
            if not output.message.tool_calls or not left:
                break
            state.messages += (await model.execute_tools(state.messages, tools)).messages
        if "structuring" not in self.roles:
            return {**_record(state.output), **told}
        words = str(state.output.completion)
        state.output = await self._in_role("structuring", STRUCTURING, [as_data(words)])
        return {**_record(state.output), **told, "raw": words}

    async def _in_role(self, role: str, rules: str, content: list[str | Content]) -> ModelOutput:
        """Send one request to the model of another role; its parameters are recorded apart from the agent's."""
        self.wire_by_role[role] = listen()
        began = time.perf_counter()
        answer_cache = self.plan.settings.answer_cache
        output = await self.roles[role].generate(self._turns(rules, content), cache=answer_cache)
        self.replies.append(Reply.of(output, time.perf_counter() - began, role))
        return _whole(output)

    def account(self, wall: float, *, is_whole: bool) -> dict[str, object]:
        """Return times, tokens and tools.

        Working time excludes waiting for a connection or a retry; a failed conversation has none, and one that was
        served from the cache used no known tokens.
        """
        model, tools = sum(r.seconds for r in self.replies), sum(c.seconds for c in self.tool_calls)
        times = {
            "vision_llm_seconds": self._seconds("vision") if "vision" in self.roles else model,
            "agent_graph_seconds": self._seconds("agent") + tools,
            "total_seconds": model + tools,
        }
        if "structuring" in self.roles:
            times["structuring_seconds"] = self._seconds("structuring")
        usages = [r.output.usage for r in self.replies]
        is_known = bool(usages) and None not in usages and not any(r.cached for r in self.replies)
        costs = [u.total_cost for u in usages if u.total_cost is not None] if is_known else []
        return {
            "timings": {name: round(value, 6) for name, value in times.items()} if is_whole else {},
            "latency_seconds": round(wall, 6),
            "retries": sum(event.retries or 0 for event in _model_events()),
            "requests": len(self.replies),
            "tokens": tokens_of(usages) if is_known else None,
            "provider_cost": sum(costs) if costs and len(costs) == len(usages) else None,
            "model_answered": next((r.output.model for r in reversed(self.replies) if r.role == "agent"), None),
            **({"tokens_by_role": self._tokens_by_role()} if self.roles and is_known else {}),
            "tool_details": [c.detail for c in self.tool_calls],
            "cache_hit": any(c.cached for c in self.tool_calls) or any(r.cached for r in self.replies),
            **({"sent": self.sent} if self.sent is not None else {}),
            **({"wire": self.wire} if self.wire else {}),
            **({"wire_by_role": self.wire_by_role} if any(self.wire_by_role.values()) else {}),
        }

    def _seconds(self, role: str) -> float:
        return sum(r.seconds for r in self.replies if r.role == role)

    def _tokens_by_role(self) -> dict[str, dict[str, int]]:
        roles = dict.fromkeys(r.role for r in self.replies)
        return {role: tokens_of([r.output.usage for r in self.replies if r.role == role]) for role in roles}

    def _turns(self, rules: str, content: list[str | Content]) -> list[ChatMessage]:
        """Return the rules as the system turn, and data in the user turn."""
        model = need("inspect_ai.model", "llm")
        parts = [model.ContentText(text=part) if isinstance(part, str) else part for part in content]
        return [model.ChatMessageSystem(content=rules), model.ChatMessageUser(content=parts)]

    def _content(self, data: bytes) -> list[str | Content]:
        """Return the item as data. Nothing else of it is sent."""
        model, item, prompts = need("inspect_ai.model", "llm"), self.call.item, self.plan.prompts
        content: list[str | Content] = [prompts.user[item.kind]]
        if item.kind == "text":
            content.append(as_data(data.decode()))
        elif item.kind == "image":
            content.append(model.ContentImage(image=_as_url(item.media_type, data)))
        else:
            sound, form, self.sent = to_send(data, item.media_type)
            content.append(model.ContentAudio(audio=_as_url(f"audio/{form}", sound), format=form))
        return content

    def _tools(self, data: bytes) -> list[ToolDef]:
        tool = need("inspect_ai.tool", "llm")
        return [
            tool.ToolDef(_bound(self, t.name, data), name=t.name, description=t.about, parameters=tool.ToolParams())
            for t in BY_KIND.get(self.call.item.kind, ())
        ]


def _bound(conversation: Conversation, name: str, data: bytes) -> Callable[[], Awaitable[str]]:
    """Return a tool bound to this item; it runs in a thread, so that other conversations continue."""

    async def look() -> str:
        anyio = need("anyio", "llm")
        found = await anyio.to_thread.run_sync(call_tool, name, data, conversation.cache)
        conversation.tool_calls.append(found)
        return json.dumps(found.result, ensure_ascii=False)

    return look


def _as_url(media_type: str, data: bytes) -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def _whole(output: ModelOutput) -> ModelOutput:
    """Return an output that the provider did not refuse."""
    if output.error:
        raise DataError(f"the provider refused: {output.error}")
    return output


def _record(output: ModelOutput) -> dict[str, object]:
    """Return the answer in stored form; the full text is kept if a part of it was not understood."""
    text = str(output.completion)
    found = read_answer(text)
    record: dict[str, object] = {
        "prediction": found.verdict,
        "confidence": found.confidence,
        "rationale": found.rationale,
    }
    if not found.problem:
        return record
    why = "" if found.is_parsed else ENDS.get(str(output.stop_reason), "")
    return {**record, "problem": found.problem + why, "raw": text, "stop_reason": str(output.stop_reason)}


def tokens_of(usages: Sequence[ModelUsage]) -> dict[str, int]:
    """Return the tokens of all requests of a conversation; input includes tokens that the provider had cached."""
    cached = sum(u.input_tokens_cache_read or 0 for u in usages)
    written = sum(u.input_tokens_cache_write or 0 for u in usages)
    return {
        "input": sum(u.input_tokens for u in usages) + cached + written,
        "output": sum(u.output_tokens for u in usages),
        "reasoning": sum(u.reasoning_tokens or 0 for u in usages),
        "cached_input": cached,
    }


def _model_events() -> list[ModelEvent]:
    log = need("inspect_ai.log", "llm")
    return [event for event in log.transcript().events if event.event == "model"]


# ----------------------------------------------------------------------
# Functions and classic detectors as models, asked about the same items as language models.
#
# A function takes an `Item` (`load()` returns its bytes, `kind` is its kind) and returns a verdict: a mapping with
# `verdict` and `confidence`, only the word, or the probability of fake. A classic detector (ONNX, torch, transformers,
# scikit-learn, a program) gets the decoded item (a picture as 1 × 3 × height × width from 0 to 1, a sound as mono
# samples, a text unchanged); its probability of fake becomes a verdict by two thresholds.

DOTTED: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
SAMPLE_RATE: Final = 16000
PROBED: Final = 32
"""Items whose outputs decide whether a detector gives logits or probabilities."""


class Model:
    """A model that answers about one item; `identity` pins it in the configuration of a run."""

    def __init__(
        self,
        detector: Detector,
        thresholds: tuple[float, float] = (0.5, 0.5),
        extraction: Extraction | None = None,
        image_size: int | None = None,
    ) -> None:
        self.detector, self.thresholds, self.image_size = detector, thresholds, image_size
        self.extraction = extraction or Extraction()
        self.contract: Contract | None = None
        """What it is taken for; None before its first answer."""
        self._kept: dict[str, Array] = {}
        if self.extraction.kind == "raw":
            raise UsageError(
                "a verdict needs a probability: --outputs logit or --outputs probability", code="raw-outputs"
            )
        if not thresholds[0] <= thresholds[1]:
            raise UsageError(f"--thresholds takes the lower number first; found {thresholds[0]:g} {thresholds[1]:g}")

    @property
    def identity(self) -> dict[str, object]:
        """What pins it."""
        how = {"outputs": self.extraction.kind, "positive_index": self.extraction.positive_index}
        return {**getattr(self.detector, "identity", {}), **how, "image_size": self.image_size}

    def settle(self, items: Sequence[Item]) -> None:
        """Decide once the kind of a detector's outputs, from those of the first items; a single item is not enough.

        These outputs are kept for the answers about the same items: nothing is computed or paid for twice.
        """
        if isinstance(self.detector, CallableDetector) or self.extraction.kind != "auto":
            return
        if getattr(self.detector, "output_kind", "auto") != "auto":
            return  # the detector declares it
        seen = [found for item in items[:PROBED] if (found := self._tried(item)) is not None]
        if not seen:
            return  # every item fails, and its row says so
        try:
            kind = settled_kind(np.concatenate(seen))
        except DataError as error:
            raise UsageError(f"{self.detector.name}: {error}") from None
        self.extraction = replace(self.extraction, kind=kind)

    def answer(self, item: Item) -> Answer:
        """Return the verdict about an item."""
        if isinstance(self.detector, CallableDetector):
            said = self.detector.function(item)
            found = self._understood(said)
            self.contract = self.contract or _contract_of_answers(said)
            return found
        outputs = self._kept.pop(item.id, None)
        outputs = self._outputs(item) if outputs is None else outputs
        columns = np.asarray(pick_output(outputs), dtype=np.float64).reshape(1, -1)
        rule = self.extraction.settled(self.detector, "fake", columns.shape[1])
        found = self._from_probability(float(to_probability(rule.log_odds(outputs))[0]))
        self.contract = self.contract or self._taken_for(rule, columns)
        return found

    def _taken_for(self, rule: Extraction, columns: Floats) -> Contract:
        """Return what a detector is taken for."""
        own = getattr(self.detector, "output_kind", "auto")
        origin: Origin = getattr(self.detector, "kind_from", "the model") if rule.kind == own else "its values"
        given = (self.extraction.positive_index is not None, getattr(self.detector, "sides", None) is not None)
        labels, rate = getattr(self.detector, "labels", None), self.detector.sample_rate
        return detector_contract(
            rule, origin, columns, ("fake", "real"), labels, given, (rate, "the model" if rate else ""), None
        )

    def _outputs(self, item: Item) -> Array:
        batch = self._batch(item)
        prepare = getattr(self.detector, "prepare", None)  # a user's own detector may have none
        return self.detector.outputs(prepare(batch) if prepare is not None else batch)

    def _tried(self, item: Item) -> Floats | None:
        try:
            self._kept[item.id] = np.asarray(pick_output(self._outputs(item)), dtype=np.float64).reshape(1, -1)
            return self._kept[item.id]
        except (UsageError, EnvironmentFault):
            raise
        except Exception:  # it will fail again when it is asked, and then become a row
            return None

    def _understood(self, said: object) -> Answer:
        if isinstance(said, str):
            said = {"verdict": said}
        if isinstance(said, Mapping):
            return answer_of(said)
        if isinstance(said, bool) or not isinstance(said, int | float | np.number):
            raise DataError(
                f"the function gave a {type(said).__name__}; a verdict, a mapping or a probability is expected"
            )
        return self._from_probability(float(said))

    def _from_probability(self, p: float) -> Answer:
        if math.isnan(p) or not 0.0 <= p <= 1.0:
            raise DataError(f"{p:g} is not a probability of fake")
        low, high = self.thresholds
        verdict = "fake" if p >= high else "real" if p < low else "uncertain"
        sureness = {"fake": p, "real": 1.0 - p, "uncertain": max(p, 1.0 - p)}
        return Answer(verdict, sureness[verdict], f"probability of fake {p:.6g}")

    def _batch(self, item: Item) -> Batch:
        if item.kind == "text":
            return [item.text or ""]
        if item.kind == "audio":
            from hitmiss.media.audio import load_audio

            assert item.path is not None
            return load_audio(item.path, self.detector.sample_rate or SAMPLE_RATE)[None]
        from hitmiss.llm.media import decode, resized

        pixels = decode(item.load())
        if self.image_size is not None:
            pixels = resized(pixels, self.image_size)
        if self.detector.name.startswith("hf-image"):
            return [pixels]
        scaled = (pixels.transpose(2, 0, 1)[None] / 255.0).astype(np.float32)
        return scaled.reshape(1, -1) if isinstance(self.detector, EstimatorDetector) else scaled


def _contract_of_answers(said: object) -> Contract:
    """Return what a function is taken for, by its first answer: that answer is a result, and is not asked for again."""
    if isinstance(said, str | Mapping):
        return Contract((Term("answers", "verdict", "verdicts", "its values"),))
    return Contract((Term("answers", "probability", "probabilities of fake", "assumed"),))


def is_detector(text: str) -> bool:
    """Return whether a model's name refers to a function or a classic detector rather than to a language model.

    >>> is_detector("json:loads"), is_detector("model.onnx"), is_detector("gpt-5.1"), is_detector("llama3:8b")
    (True, True, False, False)
    """
    if opener_of(text) is not None:
        return True
    place, colon, _ = text.rpartition(":")
    if colon and place.endswith(".py"):
        return True
    if not DOTTED.fullmatch(text):
        return False
    try:
        return importlib.util.find_spec(place) is not None or _is_beside(place)
    except (ImportError, ValueError):
        return _is_beside(place)


def _is_beside(place: str) -> bool:
    return Path(*place.split(".")).with_suffix(".py").is_file()


def open_models(
    names: Sequence[str],
    weights: str | Path | None = None,
    *,
    thresholds: tuple[float, float] = (0.5, 0.5),
    extraction: Extraction | None = None,
    image_size: int | None = None,
) -> dict[str, Model]:
    """Open the models among these names that are functions or classic detectors."""
    return {
        name: Model(open_detector(name, weights=weights), thresholds, extraction, image_size)
        for name in filter(is_detector, names)
    }


def ask_models(
    recorder: Recorder, models: Mapping[str, Model], tell: Callable[[str], None] = lambda line: None
) -> None:
    """Ask functions and detectors every open question, one after the other; say once what each is taken for."""
    told: set[str] = set()
    asked = {call.model for call in recorder.calls}
    for name in filter(asked.__contains__, models):
        models[name].settle(recorder.plan.items)
    for call in recorder.calls:
        if call.model not in models:
            continue
        recorder.add(call.key, _callables_record(models[call.model].answer, call.item))
        contract = models[call.model].contract
        if contract is not None and call.model not in told:
            told.add(call.model)
            tell(f"{call.model}: {contract}")
        recorder.require_hope()


def _callables_record(answer: Callable[[Item], Answer], item: Item) -> dict[str, object]:
    began, at = time.perf_counter(), now()
    try:
        found = answer(item)
    except (UsageError, EnvironmentFault):
        raise
    except Exception as error:  # the user's own code: an item that it cannot handle is one failed call
        found = failure(error)  # type: ignore[assignment]
    seconds = round(time.perf_counter() - began, 6)
    times = {"timings": {"total_seconds": seconds}, "latency_seconds": seconds, "timestamp": at}
    if isinstance(found, dict):
        return {**found, **times}
    told = {"prediction": found.verdict, "confidence": found.confidence, "rationale": found.rationale}
    return {**told, **({"problem": found.problem} if found.problem else {}), **times}


# ----------------------------------------------------------------------
# Language models asked through inspect_ai: its providers, connections, retries, cache and transcripts; our run store.
#
# Every answer is written into the run as soon as it is there, before inspect_ai logs it. A resumed run asks only
# questions without an answer, so what a killed process had finished is neither lost nor asked again.

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
