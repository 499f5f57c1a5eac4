"""What a conversation needs of a model, whoever sends its requests: inspect_ai, or a plain client for plain requests.

Messages are those of the OpenAI protocol, which every server that is asked without inspect_ai speaks.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hitmiss.llm.transcript import Turn

Message = dict[str, object]
"""A message: `{"role": "user", "content": [{"type": "text", "text": "…"}]}`."""


@dataclass(frozen=True)
class Reply:
    """A model's reply, what it used, and how long the request itself took."""

    text: str
    stop_reason: str
    model: str
    seconds: float
    tokens: Mapping[str, int] | None = None
    """None if the provider reports none."""
    cost: float | None = None
    is_cached: bool = False
    """Whether it came from inspect_ai's cache."""
    is_refused: bool = False
    has_calls: bool = False
    """Whether it calls tools."""
    logprobs: Sequence[tuple[str, float]] = ()
    role: str = "agent"

    def probability_of(self, word: str) -> float | None:
        """Return the probability that the model gave to a word of its answer, if the provider reports it.

        It is that of the tokens of the last place where the answer has the word.

        >>> reply = Reply("is fake", "stop", "m", 0.0, logprobs=[("is ", -1.0), ("fa", 0.0), ("ke", math.log(0.5))])
        >>> reply.probability_of("fake"), reply.probability_of("real")
        (0.5, None)
        """
        start = "".join(token for token, _ in self.logprobs).lower().rfind(word.lower())
        if start < 0:
            return None
        at, total = 0, 0.0
        for token, logprob in self.logprobs:
            end = at + len(token)
            total += logprob if at < start + len(word) and end > start else 0.0
            at = end
        return math.exp(total)


@dataclass(frozen=True)
class BoundTool:
    """A tool, bound to the item of a conversation; `takes` is the JSON schema of what the model gives to it."""

    name: str
    about: str
    call: Callable[..., Awaitable[str]]
    takes: Mapping[str, object] = field(default_factory=dict)


class Dialogue(Protocol):
    """One conversation with a model."""

    @property
    def turns(self) -> list[Turn]:
        """What was said after the question."""

    async def ask(self, *, with_tools: bool) -> Reply:
        """Send what was said so far, and return the reply."""

    async def run_tools(self) -> None:
        """Run the tools that the last reply calls."""

    def say(self, text: str) -> None:
        """Add a message of the user."""


class ChatModel(Protocol):
    """A model that can be asked."""

    def begin(self, messages: Sequence[Message], tools: Sequence[BoundTool] = ()) -> Dialogue:
        """Begin a conversation."""

    async def aclose(self) -> None:
        """Close its connections."""


def text_part(text: str) -> Message:
    """Return a text as a part of a message."""
    return {"type": "text", "text": text}


def picture_part(media_type: str, data: bytes) -> Message:
    """Return a picture as a part of a message."""
    url = f"data:{media_type};base64,{base64.b64encode(data).decode()}"
    return {"type": "image_url", "image_url": {"url": url, "detail": "auto"}}


def sound_part(form: str, data: bytes) -> Message:
    """Return a sound as a part of a message."""
    return {"type": "input_audio", "input_audio": {"data": base64.b64encode(data).decode(), "format": form}}
