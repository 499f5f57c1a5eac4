"""Plain requests to a server that speaks the OpenAI protocol, without inspect_ai: no tools, no other provider.

A request holds what inspect_ai would send, and costs a fifth of the processor time or less. It is in the ledger before it is
sent, repeated where a repetition may help, and never follows a redirect.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from hitmiss.core.ask_spec import AskSpec
from hitmiss.core.errors import DataError
from hitmiss.detection.detector import need
from hitmiss.llm.answers import schema_of
from hitmiss.llm.chat import BoundTool, Message, Reply
from hitmiss.llm.failures import MalformedAnswer, StatusError, kind_of
from hitmiss.llm.ledger import HEADER, Ledger, object_of, tokens_in
from hitmiss.llm.openai_forms import object_in, objects_in
from hitmiss.llm.question import Question
from hitmiss.llm.secrets import Secrets
from hitmiss.llm.transcript import Turn
from hitmiss.llm.wire import note_parameters

if TYPE_CHECKING:
    from httpx import AsyncClient, Response

AT_ONCE: Final = 20
"""Requests at once, if the user gives no number."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0
"""Seconds before the first repetition, at most, and before a later one; each pause may be twice as long as the last."""
AGAIN: Final = (408, 409, 429)
"""What a server says if the same request may succeed later; every error of the server itself is one, too."""
ENDS: Final = {"length": "max_tokens", "function_call": "tool_calls"}
PARTICULAR: Final = re.compile(r"(?:^|/)(?:o\d|gpt-[5-9])")
"""Names of models that take some settings under other names, or not at all: inspect_ai knows which."""


def is_plain(name: str, settings: AskSpec) -> bool:
    """Return whether a model can be asked without inspect_ai, as long as it is offered no tools.

    >>> is_plain("judge", AskSpec(base_url="http://127.0.0.1:1/v1")), is_plain("gpt-5.1", AskSpec())
    (True, False)
    """
    is_own = settings.base_url is not None and settings.provider is None
    return is_own and not (settings.answer_cache or settings.batch) and PARTICULAR.search(name.lower()) is None


class PlainModel:
    """A model behind an address."""

    def __init__(
        self,
        name: str,
        settings: AskSpec,
        key: str | None,
        secrets: Secrets,
        ledger: Ledger | None,
        *,
        has_schema: bool = True,
    ) -> None:
        httpx = need("httpx", "llm")
        self.name, self.settings, self.secrets, self.ledger = name, settings, secrets, ledger
        self.address = f"{str(settings.base_url).rstrip('/')}/chat/completions"
        self.fixed = request_of(name, settings, has_schema=has_schema)
        most = settings.max_connections or AT_ONCE
        self._turn = asyncio.Semaphore(most)
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        limits = httpx.Limits(max_connections=most, max_keepalive_connections=most)
        self._client: AsyncClient = httpx.AsyncClient(headers=headers, timeout=None, limits=limits)

    def begin(self, messages: Sequence[Message], tools: Sequence[BoundTool] = ()) -> PlainDialogue:
        """Begin a conversation."""
        assert not tools, "tools need inspect_ai"
        return PlainDialogue(self, list(messages))

    async def aclose(self) -> None:
        """Close its connections."""
        await self._client.aclose()

    async def send(self, messages: Sequence[Message]) -> Reply:
        """Send messages, again where that may help, and return the reply."""
        body = {**self.fixed, "messages": messages}
        note_parameters(body)
        data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        async with self._turn:
            until = time.monotonic() + self.settings.timeout
            for n_before in range(self.settings.max_retries + 1):
                until += await self._wait_for_rates()
                try:
                    return await self._attempt(body, data, until - time.monotonic())
                except Exception as error:
                    pause = _pause(error, n_before)
                    is_over = n_before == self.settings.max_retries or time.monotonic() + pause >= until
                    if is_over or not _may_recover(error):
                        raise
                await asyncio.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    async def _wait_for_rates(self) -> float:
        """Wait until another request may be sent; return for how long, which is no time of the request."""
        began = time.monotonic()
        if self.ledger is not None:
            await self.ledger.turn()
        return time.monotonic() - began

    async def _attempt(self, body: Mapping[str, object], data: bytes, left: float) -> Reply:
        name = ""
        if self.ledger is not None:
            name = await self.ledger.sent(self.name, self.address, body, len(data))
        began = time.perf_counter()
        try:
            async with asyncio.timeout(min(left, self.settings.attempt_timeout)):
                response = await self._client.post(self.address, content=data, headers={HEADER: f"hitmiss-{name}"})
        except BaseException as error:
            self._note(name, time.perf_counter() - began, error=kind_of(error), why=type(error).__name__)
            raise
        seconds = time.perf_counter() - began
        found = object_of(response.content)
        about = {"answered": found.get("model"), "tokens": tokens_in(found), "body": None if found else "malformed"}
        self._note(name, seconds, status=response.status_code, **about)
        return self._reply(response, found, seconds)

    def _note(self, name: str, seconds: float, **facts: object) -> None:
        if self.ledger is not None:
            self.ledger.ended(name, self.name, seconds, **facts)

    def _reply(self, response: Response, found: Mapping[str, object], seconds: float) -> Reply:
        if not 200 <= response.status_code < 300:
            said = self.secrets.redact(response.text or response.reason_phrase)
            raise StatusError(response.status_code, said, response.headers)
        if not found:
            raise MalformedAnswer("the body of the answer is not JSON")
        choice = next(iter(objects_in(found, "choices")), None)
        if choice is None:
            raise DataError.of("provider-refused", error=self.secrets.redact(json.dumps(found)[:400]))
        message, usage, used = object_in(choice, "message"), object_in(found, "usage"), tokens_in(found)
        details, cost = object_in(usage, "completion_tokens_details"), usage.get("cost")
        if used is not None:
            thought = details.get("reasoning_tokens")
            used = {"cached_input": 0, "reasoning": thought if isinstance(thought, int) else 0, **used}
        end, refusal = str(choice.get("finish_reason") or "unknown"), message.get("refusal")
        words = objects_in(object_in(choice, "logprobs"), "content")
        return Reply(
            _text(message.get("content")) or str(refusal or ""),
            ENDS.get(end, end),
            str(found.get("model") or self.name),
            seconds,
            used,
            float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) else None,
            is_refused=bool(refusal),
            logprobs=[(str(word["token"]), float(str(word["logprob"]))) for word in words],
        )


@dataclass
class PlainDialogue:
    """A conversation without tools."""

    asked: PlainModel
    messages: list[Message]
    turns: list[Turn] = field(default_factory=list)

    async def ask(self, *, with_tools: bool) -> Reply:  # noqa: ARG002 (there are none to offer)
        """Send what was said so far, and return the reply."""
        reply = await self.asked.send(
            [*self.messages, *({"role": t["role"], "content": t["text"]} for t in self.turns)]
        )
        self.turns.append({"role": "assistant", "text": reply.text})
        return reply

    async def run_tools(self) -> None:
        """There are none."""

    def say(self, text: str) -> None:
        """Add a message of the user."""
        self.turns.append({"role": "user", "text": text})


def request_of(name: str, settings: AskSpec, *, has_schema: bool = True) -> dict[str, object]:
    """Return a request without its messages: what inspect_ai would send with these settings.

    >>> request_of("m", AskSpec(seed=7), has_schema=False)
    {'model': 'm', 'seed': 7, 'temperature': 0.0}
    """
    asked = {n: getattr(settings, n) for n in ("max_tokens", "seed", "temperature", "reasoning_effort")}
    schema = {"name": "verdict", "schema": schema_of(Question.of(settings).words), "description": None, "strict": True}
    return {
        "model": name,
        **{n: value for n, value in asked.items() if value is not None},
        **({"logprobs": True} if settings.logprobs else {}),
        **({"response_format": {"type": "json_schema", "json_schema": schema}} if has_schema else {}),
    }


def _text(content: object) -> str:
    """Return the text of a message: one text, or several parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _may_recover(error: Exception) -> bool:
    """Return whether the same request may succeed later."""
    if isinstance(error, StatusError):
        return (error.status in AGAIN and not error.is_final) or error.status >= 500
    return isinstance(error, MalformedAnswer | TimeoutError | need("httpx", "llm").TransportError)


def _pause(error: Exception, n_before: int) -> float:
    """Return how long to wait before a repetition: as long as the server says, else longer each time, at random."""
    said = error.wait if isinstance(error, StatusError) else None
    if said is not None:
        return min(said, LONGEST_PAUSE)
    return float(min(FIRST_PAUSE * 2**n_before, LONGEST_PAUSE) * random.uniform(0.5, 1.0))
