"""Conversations through inspect_ai: tools, every provider, its cache of answers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hitmiss.core.errors import DataError
from hitmiss.detection.detector import need
from hitmiss.llm.chat import BoundTool, Message, Reply
from hitmiss.llm.openai_forms import object_in, objects_in
from hitmiss.llm.transcript import Turn, turns_of

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage, Content, Model, ModelOutput
    from inspect_ai.tool import ToolDef


@dataclass(frozen=True)
class InspectModel:
    """A model that inspect_ai has opened."""

    model: Model
    takes_cached: bool = False

    def begin(self, messages: Sequence[Message], tools: Sequence[BoundTool] = ()) -> InspectDialogue:
        """Begin a conversation, with a transcript of its own."""
        transcript = need("inspect_ai.log._transcript", "llm")
        transcript.init_transcript(transcript.Transcript())  # of this conversation alone, and gone with it
        return InspectDialogue(self, [_message(message) for message in messages], [_offered(tool) for tool in tools])

    async def aclose(self) -> None:
        """Close its connections."""
        await self.model.api.aclose()


@dataclass
class InspectDialogue:
    """A conversation through inspect_ai."""

    asked: InspectModel
    question: list[ChatMessage]
    tools: list[ToolDef]
    said: list[ChatMessage] = field(default_factory=list)

    @property
    def turns(self) -> list[Turn]:
        """What was said after the question."""
        return turns_of(self.said)

    async def ask(self, *, with_tools: bool) -> Reply:
        """Send what was said so far, and return the reply. A cached one carries the time of its first request: not ours."""
        began = time.perf_counter()
        output = await self.asked.model.generate(
            [*self.question, *self.said],
            tools=self.tools,
            tool_choice="auto" if with_tools else "none",
            cache=self.asked.takes_cached,
        )
        wall = time.perf_counter() - began
        if output.error:
            raise DataError.of("provider-refused", error=output.error)
        self.said.append(output.message)
        events = [e for e in need("inspect_ai.log", "llm").transcript().events if e.event == "model"]
        cached = bool(events) and events[-1].cache == "read"
        return _reply(output, wall if cached or output.time is None else float(output.time), cached)

    async def run_tools(self) -> None:
        """Run the tools that the last reply calls."""
        model = need("inspect_ai.model", "llm")
        self.said += (await model.execute_tools([*self.question, *self.said], self.tools)).messages

    def say(self, text: str) -> None:
        """Add a message of the user; no tools are offered from here on."""
        self.tools = []
        self.said.append(need("inspect_ai.model", "llm").ChatMessageUser(content=text))


def _reply(output: ModelOutput, seconds: float, is_cached: bool) -> Reply:
    content, usage = output.message.content if output.choices else "", output.usage
    logprobs = output.choices[0].logprobs if output.choices else None
    cached, written = ((usage.input_tokens_cache_read or 0), (usage.input_tokens_cache_write or 0)) if usage else (0, 0)
    return Reply(
        str(output.completion),
        str(output.stop_reason),
        output.model,
        seconds,
        None
        if usage is None or is_cached
        else {
            "input": usage.input_tokens + cached + written,
            "output": usage.output_tokens,
            "reasoning": usage.reasoning_tokens or 0,
            "cached_input": cached,
        },
        None if usage is None else usage.total_cost,
        is_cached,
        not isinstance(content, str) and any(getattr(part, "refusal", False) for part in content),
        bool(output.choices and output.message.tool_calls),
        [(token.token, token.logprob) for token in logprobs.content] if logprobs is not None else (),
    )


def _offered(tool: BoundTool) -> ToolDef:
    module = need("inspect_ai.tool", "llm")

    async def call(**kwargs: object) -> str:  # inspect_ai passes all arguments through to a function of this form
        return await tool.call(**kwargs)

    takes = module.ToolParams.model_validate(dict(tool.takes))
    return module.ToolDef(call, name=tool.name, description=tool.about, parameters=takes)


def _message(message: Message) -> ChatMessage:
    model = need("inspect_ai.model", "llm")
    kind = {"system": model.ChatMessageSystem, "user": model.ChatMessageUser, "assistant": model.ChatMessageAssistant}
    content = message["content"]
    given = content if isinstance(content, str) else [_part(part) for part in objects_in(message, "content")]
    return kind[str(message["role"])](content=given)


def _part(part: Message) -> Content:
    model = need("inspect_ai.model", "llm")
    if part["type"] == "text":
        return model.ContentText(text=part["text"])
    if part["type"] == "image_url":
        return model.ContentImage(image=object_in(part, "image_url")["url"])
    sound = object_in(part, "input_audio")
    return model.ContentAudio(audio=f"data:audio/{sound['format']};base64,{sound['data']}", format=sound["format"])
