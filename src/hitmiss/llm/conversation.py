"""One item given to one language model: the question, the tools that it calls, its answer, and time and tokens."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from hitmiss.detection.detector import need
from hitmiss.llm.cache import ToolCache
from hitmiss.llm.chat import BoundTool, ChatModel, Dialogue, Message, Reply, picture_part, sound_part, text_part
from hitmiss.llm.items import Item
from hitmiss.llm.ledger import Asking, asking
from hitmiss.llm.mcp_servers import connected
from hitmiss.llm.outcomes import outcome_of
from hitmiss.llm.parsers import LENIENT, parse_record
from hitmiss.llm.plan import Call, CallPlan
from hitmiss.llm.prompts import DESCRIBED, REPAIR, STRUCTURING, VISION, as_data
from hitmiss.llm.sound import to_send
from hitmiss.llm.tools import BY_KIND, Tool, ToolCall, call_tool
from hitmiss.llm.tools.own import call_own
from hitmiss.llm.transcript import failed_calls
from hitmiss.llm.wire import Sent, listen


class Conversation:
    """One item given to one model: question, tools, answer; with time and tokens."""

    def __init__(self, call: Call, plan: CallPlan, cache: ToolCache | None, roles: Mapping[str, ChatModel]) -> None:
        self.call, self.plan, self.cache, self.roles = call, plan, cache, roles
        self.how = plan.variant(call.model)
        self.tool_calls: list[ToolCall] = []
        self.replies: list[Reply] = []
        self.sent: dict[str, object] | None = None
        self.wire: Sent = {}
        self.wire_by_role: dict[str, Sent] = {}
        self.asking = Asking(call.key)
        self.n_asked = 0
        self.talk: Dialogue | None = None
        """The conversation with the agent: kept if it fails, too."""

    async def hold(self, asked: ChatModel) -> dict[str, object]:
        """Ask until there is an answer; the last of `max_iterations` offers no tools, so that it must be an answer.

        If another model does the vision, the agent gets its description instead of the item; if another one does the
        structuring, it gets the agent's last message.
        """
        data = self.call.item.load()
        told: dict[str, object] = {}
        if "vision" in self.roles:
            looked = await self._in_role("vision", VISION, self._content(data))
            told["description"] = looked.text
            messages = self._messages(self._rules, [text_part(DESCRIBED), text_part(as_data(looked.text))])
        else:
            messages = self._messages(self._rules, self._content(data), self.how.prompts.examples)
        talk, reply = await self._reasoned(asked, messages, data)
        if "structuring" in self.roles:
            told["raw"] = reply.text
            formed = await self._in_role("structuring", STRUCTURING, [text_part(as_data(reply.text))])
            return {**self._record(formed), **told}
        record = self._record(reply)
        if self.how.settings.repair and outcome_of(record) == "unparsed":
            told["first_answer"] = record["answer"]
            talk.say(self.how.prompts.rules(text=REPAIR))
            record = self._record(await self._ask(talk, with_tools=False))
        return {**record, **told}

    async def _reasoned(self, asked: ChatModel, messages: list[Message], data: bytes) -> tuple[Dialogue, Reply]:
        """Have the agent answer, with or without tools."""
        self.wire = listen()
        async with self._tools(data) as tools:
            talk = self.talk = asked.begin(messages, tools)
            for left in range(self.how.settings.max_iterations - 1, -1, -1):
                reply = await self._ask(talk, with_tools=left > 0)
                if not reply.has_calls or not left:
                    break
                await talk.run_tools()
        return talk, reply

    async def _ask(self, talk: Dialogue, *, with_tools: bool, role: str = "agent") -> Reply:
        """Send one request, and keep what comes back; requests of all roles are noted in the same list."""
        self.n_asked += 1
        with asking(self.asking if role == self.asking.role else replace(self.asking, role=role)):
            reply = await talk.ask(with_tools=with_tools)
        self.replies.append(replace(reply, role=role))
        return reply

    def _record(self, reply: Reply) -> dict[str, object]:
        """Return the answer in stored form: its full text, how it ended, what it says, and how probable its verdict is."""
        record: dict[str, object] = {"answer": reply.text, "stop_reason": reply.stop_reason}
        question = self.how.prompts.question
        found = parse_record({**record, **({"refusal": True} if reply.is_refused else {})}, LENIENT, question)
        word = question.word(str(found.get("prediction") or ""))
        sure = reply.probability_of(word) if word and self.how.settings.logprobs else None
        return {**found, **({"confidence_logprobs": sure} if sure is not None else {})}

    @property
    def _rules(self) -> str:
        return self.how.prompts.rules(self.call.item)

    async def _in_role(self, role: str, rules: str, content: list[Message]) -> Reply:
        """Send one request to the model of another role; its parameters are recorded apart from the agent's."""
        self.wire_by_role[role] = listen()
        return await self._ask(self.roles[role].begin(self._messages(rules, content)), with_tools=False, role=role)

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
        is_known = bool(self.replies) and all(r.tokens is not None for r in self.replies)
        costs = [r.cost for r in self.replies if r.cost is not None] if is_known else []
        turns = self.talk.turns if self.talk is not None else []
        return {
            "timings": {name: round(value, 6) for name, value in times.items()} if is_whole else {},
            "latency_seconds": round(wall, 6),
            "retries": max(len(self.asking.attempts) - self.n_asked + sum(r.is_cached for r in self.replies), 0),
            "requests": len(self.asking.attempts),
            "ledger": list(self.asking.attempts),
            "tokens": _added(self.replies) if is_known else None,
            "provider_cost": sum(costs) if costs and len(costs) == len(self.replies) else None,
            "model_answered": next((r.model for r in reversed(self.replies) if r.role == "agent"), None),
            **({"tokens_by_role": self._tokens_by_role()} if self.roles and is_known else {}),
            "tool_details": [*(c.detail for c in self.tool_calls), *failed_calls(turns)],
            **({"turns": turns} if len(turns) > 1 or not is_whole else {}),
            "cache_hit": any(c.cached for c in self.tool_calls) or any(r.is_cached for r in self.replies),
            **({"sent": self.sent} if self.sent is not None else {}),
            **({"wire": self.wire} if self.wire else {}),
            **({"wire_by_role": self.wire_by_role} if any(self.wire_by_role.values()) else {}),
        }

    def _seconds(self, role: str) -> float:
        return sum(r.seconds for r in self.replies if r.role == role)

    def _tokens_by_role(self) -> dict[str, dict[str, int]]:
        roles = dict.fromkeys(r.role for r in self.replies)
        return {role: _added([r for r in self.replies if r.role == role]) for role in roles}

    def _messages(self, rules: str, content: list[Message], examples: Sequence[Item] = ()) -> list[Message]:
        """Return the rules as the system turn, examples with their answers, and data in the user turn."""
        shown: list[Message] = []
        for example in examples:
            shown.append({"role": "user", "content": self._content(example.load(), example)})
            shown.append({"role": "assistant", "content": self.how.prompts.answer(example)})
        return [{"role": "system", "content": rules}, *shown, {"role": "user", "content": content}]

    def _content(self, data: bytes, example: Item | None = None) -> list[Message]:
        """Return the item as data. Nothing else of it is sent."""
        item = example or self.call.item
        told = text_part(self.how.prompts.user[item.kind])
        if item.kind == "text":
            return [told, text_part(as_data(data.decode()))]
        if item.kind == "image":
            return [told, picture_part(item.media_type, data)]
        sound, form, sent = to_send(data, item.media_type)
        self.sent = sent if example is None else self.sent
        return [told, sound_part(form, sound)]

    @asynccontextmanager
    async def _tools(self, data: bytes) -> AsyncIterator[list[BoundTool]]:
        """Offer the tools of the item's kind, the user's own, and those of MCP servers, which run while this lasts."""
        if not self.call.use_tools:
            yield []
            return
        item = self.call.item
        tools = [self._bound(t, partial(call_tool, t.name, data, self.cache)) for t in BY_KIND.get(item.kind, ())]
        tools += [self._bound(t, partial(call_own, t, item)) for t in self.plan.own_tools]
        if not self.plan.servers:
            yield tools
            return
        async with connected(list(self.plan.servers), self.tool_calls.append, item.order) as others:
            yield [*tools, *others]

    def _bound(self, tool: Tool, call: Callable[..., ToolCall]) -> BoundTool:
        """Return a tool bound to this item; it runs in a thread, so that other conversations continue."""

        async def look(**arguments: object) -> str:
            anyio = need("anyio", "llm")
            found = await anyio.to_thread.run_sync(partial(call, arguments) if tool.is_own else call)
            self.tool_calls.append(found)
            order = {"note": self.call.item.order} if self.call.item.order else {}
            return json.dumps({**found.result, **order}, ensure_ascii=False)

        return BoundTool(tool.name, tool.about, look, tool.takes)


def _added(replies: Sequence[Reply]) -> dict[str, int]:
    """Return the tokens of several requests; input includes tokens that the provider had cached."""
    total = Counter({"input": 0, "output": 0, "reasoning": 0, "cached_input": 0})
    for reply in replies:
        total.update(reply.tokens or {})
    return dict(total)
