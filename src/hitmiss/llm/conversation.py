"""One item given to one language model: the question, the tools that it calls, its answer, and time and tokens."""

from __future__ import annotations

import base64
import json
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from hitmiss.core.errors import DataError
from hitmiss.detection.detector import need
from hitmiss.llm.cache import ToolCache
from hitmiss.llm.items import Item
from hitmiss.llm.ledger import Asking, asking
from hitmiss.llm.outcomes import outcome_of
from hitmiss.llm.parsers import LENIENT, parse_record
from hitmiss.llm.plan import Call, CallPlan
from hitmiss.llm.prompts import DESCRIBED, REPAIR, STRUCTURING, VISION, as_data
from hitmiss.llm.sound import to_send
from hitmiss.llm.tools import BY_KIND, ToolCall, call_tool
from hitmiss.llm.transcript import failed_calls, turns_of
from hitmiss.llm.wire import Sent, listen

if TYPE_CHECKING:
    from inspect_ai.event import ModelEvent
    from inspect_ai.model import ChatMessage, Content, ModelOutput, ModelUsage
    from inspect_ai.model import Model as LanguageModel
    from inspect_ai.tool import ToolDef


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

    def __init__(self, call: Call, plan: CallPlan, cache: ToolCache | None, roles: Mapping[str, LanguageModel]) -> None:
        self.call, self.plan, self.cache, self.roles = call, plan, cache, roles
        self.how = plan.variant(call.model)
        self.tool_calls: list[ToolCall] = []
        self.replies: list[Reply] = []
        self.sent: dict[str, object] | None = None
        self.wire: Sent = {}
        self.wire_by_role: dict[str, Sent] = {}
        self.asking = Asking(call.key)
        self.n_asked = 0
        self.said: list[ChatMessage] = []
        """What was said after the question: kept if the conversation fails, too."""

    async def hold(self, asked: LanguageModel) -> dict[str, object]:
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
            messages = self._turns(self._rules, [DESCRIBED, as_data(seen)])
        else:
            messages = self._turns(self._rules, self._content(data), self.how.prompts.examples)
        self.wire = listen()
        tools = self._tools(data) if self.call.use_tools else []
        for left in range(self.how.settings.max_iterations - 1, -1, -1):
            output = await self._ask(asked, messages, tools, "auto" if left else "none")
            if not output.message.tool_calls or not left:
                break
            self.said += (await model.execute_tools([*messages, *self.said], tools)).messages
        if "structuring" in self.roles:
            told["raw"] = str(output.completion)
            output = await self._in_role("structuring", STRUCTURING, [as_data(str(told["raw"]))])
            return {**self._record(output), **told}
        record = self._record(output)
        if self.how.settings.repair and outcome_of(record) == "unparsed":
            told["first_answer"] = record["answer"]
            repair = self.how.prompts.rules(text=REPAIR)
            self.said.append(model.ChatMessageUser(content=repair))
            record = self._record(await self._ask(asked, messages, [], "none"))
        return {**record, **told}

    async def _ask(
        self,
        asked: LanguageModel,
        messages: Sequence[ChatMessage],
        tools: list[ToolDef],
        choice: Literal["auto", "none"],
    ) -> ModelOutput:
        """Send one request to the agent, and keep what it says."""
        began = time.perf_counter()
        self.n_asked += 1
        with asking(self.asking):
            output = await asked.generate(
                [*messages, *self.said], tools=tools, tool_choice=choice, cache=self.how.settings.answer_cache
            )
        self.replies.append(Reply.of(output, time.perf_counter() - began))
        output = _whole(output)
        self.said.append(output.message)
        return output

    def _record(self, output: ModelOutput) -> dict[str, object]:
        """Return the answer in stored form: its full text, how it ended, what it says, and how probable its verdict is."""
        content = output.message.content if output.choices else ""
        refused = not isinstance(content, str) and any(getattr(part, "refusal", False) for part in content)
        record: dict[str, object] = {"answer": str(output.completion), "stop_reason": str(output.stop_reason)}
        question = self.how.prompts.question
        found = parse_record({**record, **({"refusal": True} if refused else {})}, LENIENT, question)
        word = question.word(str(found.get("prediction") or ""))
        sure = verdict_probability(output, word) if word and self.how.settings.logprobs else None
        return {**found, **({"confidence_logprobs": sure} if sure is not None else {})}

    @property
    def _rules(self) -> str:
        return self.how.prompts.rules(self.call.item)

    async def _in_role(self, role: str, rules: str, content: list[str | Content]) -> ModelOutput:
        """Send one request to the model of another role; its parameters are recorded apart from the agent's."""
        self.wire_by_role[role] = listen()
        began = time.perf_counter()
        answer_cache = self.how.settings.answer_cache
        self.n_asked += 1
        with asking(replace(self.asking, role=role)):  # it notes its requests in the same list
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
        turns = turns_of(self.said)
        return {
            "timings": {name: round(value, 6) for name, value in times.items()} if is_whole else {},
            "latency_seconds": round(wall, 6),
            "retries": max(len(self.asking.attempts) - self.n_asked + sum(r.cached for r in self.replies), 0),
            "requests": len(self.asking.attempts),
            "ledger": list(self.asking.attempts),
            "tokens": tokens_of(usages) if is_known else None,
            "provider_cost": sum(costs) if costs and len(costs) == len(usages) else None,
            "model_answered": next((r.output.model for r in reversed(self.replies) if r.role == "agent"), None),
            **({"tokens_by_role": self._tokens_by_role()} if self.roles and is_known else {}),
            "tool_details": [*(c.detail for c in self.tool_calls), *failed_calls(turns)],
            **({"turns": turns} if len(turns) > 1 or not is_whole else {}),
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

    def _turns(self, rules: str, content: list[str | Content], examples: Sequence[Item] = ()) -> list[ChatMessage]:
        """Return the rules as the system turn, examples with their answers, and data in the user turn."""
        model = need("inspect_ai.model", "llm")

        def user(parts: list[str | Content]) -> ChatMessage:
            return model.ChatMessageUser(
                content=[model.ContentText(text=p) if isinstance(p, str) else p for p in parts]
            )

        shown = [
            turn
            for example in examples
            for turn in (
                user(self._content(example.load(), example)),
                model.ChatMessageAssistant(content=self.how.prompts.answer(example)),
            )
        ]
        return [model.ChatMessageSystem(content=rules), *shown, user(content)]

    def _content(self, data: bytes, example: Item | None = None) -> list[str | Content]:
        """Return the item as data. Nothing else of it is sent."""
        model, item, prompts = need("inspect_ai.model", "llm"), example or self.call.item, self.how.prompts
        content: list[str | Content] = [prompts.user[item.kind]]
        if item.kind == "text":
            content.append(as_data(data.decode()))
        elif item.kind == "image":
            content.append(model.ContentImage(image=_as_url(item.media_type, data)))
        else:
            sound, form, sent = to_send(data, item.media_type)
            self.sent = sent if example is None else self.sent
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
        raise DataError.of("provider-refused", error=output.error)
    return output


def verdict_probability(output: ModelOutput, word: str) -> float | None:
    """Return the probability that a model gave to the words of its verdict, if the provider reports it.

    It is that of the tokens of the last place where the answer has the word.
    """
    logprobs = output.choices[0].logprobs if output.choices else None
    tokens = logprobs.content if logprobs is not None else []
    text = "".join(token.token for token in tokens)
    start = text.lower().rfind(word.lower())
    if start < 0:
        return None
    at, total = 0, 0.0
    for token in tokens:
        end = at + len(token.token)
        total += token.logprob if at < start + len(word) and end > start else 0.0
        at = end
    return math.exp(total)


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
