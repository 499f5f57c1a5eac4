"""One item put to one language model: the question, the tools that it calls, its answer, and what that took."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from hitmiss.detect.detector import need
from hitmiss.errors import DataError
from hitmiss.llm.answers import read_answer
from hitmiss.llm.cache import ToolCache
from hitmiss.llm.plan import Call, Plan
from hitmiss.llm.prompts import as_data
from hitmiss.llm.sounds import to_send
from hitmiss.llm.tools import BY_KIND, ToolCall, call_tool
from hitmiss.llm.wire import Sent, listen

ENDS: Final = {
    "max_tokens": ": it was cut off at the most tokens that an answer may have (--max-tokens)",
    "model_length": ": it was cut off where the model takes no more",
    "content_filter": ": the provider held it back",
}
"""Why an answer may have ended too soon."""


@dataclass(frozen=True)
class Reply:
    """What a model gave, how long the call itself took, and whether inspect_ai's cache had it."""

    output: Any
    seconds: float
    cached: bool

    @classmethod
    def of(cls, output: Any, wall: float) -> Reply:
        """The reply just received. A cached one carries the time of the call that it was first made by: not ours."""
        events = _model_events()
        cached = bool(events) and events[-1].cache == "read"
        return cls(output, wall if cached or output.time is None else float(output.time), cached)


class Conversation:
    """One item put to one model: question, tools, answer; and what it took."""

    def __init__(self, call: Call, plan: Plan, cache: ToolCache | None) -> None:
        self.call, self.plan, self.cache = call, plan, cache
        self.tool_calls: list[ToolCall] = []
        self.replies: list[Reply] = []
        self.sent: dict[str, Any] | None = None
        self.wire: Sent = {}

    async def hold(self, state: Any) -> dict[str, Any]:
        """Ask until there is an answer; the last of `max_iterations` offers no tools, so that it must be one."""
        model = need("inspect_ai.model", "llm")
        self.wire = listen()
        data = self.call.item.load()
        state.messages = self._messages(data)
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
            state.output = output
            if output.error:
                raise DataError(f"the provider refused: {output.error}")
            state.messages.append(output.message)
            if not output.message.tool_calls or not left:
                break
            state.messages += (await model.execute_tools(state.messages, tools)).messages
        return _record(state.output)

    def account(self, wall: float, *, is_whole: bool) -> dict[str, Any]:
        """Times, tokens and tools. Working time leaves out what was spent waiting for a connection or a retry; a
        conversation that failed has none, and one that was served from the cache spent no tokens that are known."""
        model, tools = sum(r.seconds for r in self.replies), sum(c.seconds for c in self.tool_calls)
        times = {"vision_llm_seconds": model, "agent_graph_seconds": model + tools, "total_seconds": model + tools}
        usages = [r.output.usage for r in self.replies]
        is_known = bool(usages) and None not in usages and not any(r.cached for r in self.replies)
        costs = [u.total_cost for u in usages] if is_known else [None]
        return {
            "timings": {name: round(value, 6) for name, value in times.items()} if is_whole else {},
            "latency_seconds": round(wall, 6),
            "retries": sum(event.retries or 0 for event in _model_events()),
            "requests": len(self.replies),
            "tokens": tokens_of(usages) if is_known else None,
            "provider_cost": sum(costs) if None not in costs else None,
            "model_answered": self.replies[-1].output.model if self.replies else None,
            "tool_details": [c.detail for c in self.tool_calls],
            "cache_hit": any(c.cached for c in self.tool_calls) or any(r.cached for r in self.replies),
            **({"sent": self.sent} if self.sent is not None else {}),
            **({"wire": self.wire} if self.wire else {}),
        }

    def _messages(self, data: bytes) -> list[Any]:
        """The rules as the system turn, the item as data in the user turn. Nothing else of the item is sent."""
        model, item, prompts = need("inspect_ai.model", "llm"), self.call.item, self.plan.prompts
        content: list[Any] = [model.ContentText(text=prompts.user[item.kind])]
        if item.kind == "text":
            content.append(model.ContentText(text=as_data(data.decode())))
        elif item.kind == "image":
            content.append(model.ContentImage(image=_as_url(item.media_type, data)))
        else:
            sound, form, self.sent = to_send(data, item.media_type)
            content.append(model.ContentAudio(audio=_as_url(f"audio/{form}", sound), format=form))
        return [model.ChatMessageSystem(content=prompts.system), model.ChatMessageUser(content=content)]

    def _tools(self, data: bytes) -> list[Any]:
        tool = need("inspect_ai.tool", "llm")
        return [
            tool.ToolDef(_bound(self, t.name, data), name=t.name, description=t.about, parameters=tool.ToolParams())
            for t in BY_KIND.get(self.call.item.kind, ())
        ]


def _bound(conversation: Conversation, name: str, data: bytes) -> Any:
    """A tool that looks at this item; it works in a thread, so that other conversations go on."""

    async def look() -> str:
        anyio = need("anyio", "llm")
        found = await anyio.to_thread.run_sync(call_tool, name, data, conversation.cache)
        conversation.tool_calls.append(found)
        return json.dumps(found.result, ensure_ascii=False)

    return look


def _as_url(media_type: str, data: bytes) -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def _record(output: Any) -> dict[str, Any]:
    """The answer as it is stored; its whole text is kept where it was not understood."""
    text = str(output.completion)
    found = read_answer(text)
    record = {"prediction": found.verdict, "confidence": found.confidence, "rationale": found.rationale}
    if found.is_parsed:
        return record
    why = ENDS.get(str(output.stop_reason), "")
    return {**record, "problem": found.problem + why, "raw": text, "stop_reason": str(output.stop_reason)}


def tokens_of(usages: Sequence[Any]) -> dict[str, int]:
    """Tokens of all requests of a conversation; input counts what the provider had cached too."""
    cached = sum(u.input_tokens_cache_read or 0 for u in usages)
    written = sum(u.input_tokens_cache_write or 0 for u in usages)
    return {
        "input": sum(u.input_tokens for u in usages) + cached + written,
        "output": sum(u.output_tokens for u in usages),
        "reasoning": sum(u.reasoning_tokens or 0 for u in usages),
        "cached_input": cached,
    }


def _model_events() -> list[Any]:
    log = need("inspect_ai.log", "llm")
    return [event for event in log.transcript().events if event.event == "model"]
