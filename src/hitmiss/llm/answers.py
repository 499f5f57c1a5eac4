"""What a model answered, and the two forms of the OpenAI protocol."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from hitmiss.core.registry import fit

# ----------------------------------------------------------------------
# What a model answered: the one JSON object that the schema requires, or the reason why it is missing.
#
# The verdict is only taken from the schema's field. An answer that does not fit is never turned into a verdict: it is
# `unparsed`, with its text kept.

VERDICTS: Final = ("real", "fake", "uncertain")
SCHEMA: Final[dict[str, object]] = {
    "type": "object",
    "properties": {
        "verdict": {"type": "string", "enum": list(VERDICTS), "description": "real, fake, or uncertain"},
        "confidence": {"type": "number", "description": "from 0 to 1: the probability that the verdict is right"},
        "rationale": {"type": "string", "description": "the evidence, in a few sentences"},
    },
    "required": ["verdict", "confidence", "rationale"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Answer:
    """A verdict with its confidence and rationale, or no verdict and the problem."""

    verdict: str | None
    confidence: float | None
    rationale: str
    problem: str = ""

    @property
    def is_parsed(self) -> bool:
        """Whether the answer could be understood."""
        return self.verdict is not None


def read_answer(text: str) -> Answer:
    """Return the verdict in an answer.

    It may be the whole text, a fenced block, or one object within prose. Two objects that disagree are not an answer.

    >>> read_answer('{"verdict": "fake", "confidence": 0.9, "rationale": "a grid"}').verdict
    'fake'
    >>> read_answer("It is real.").problem
    'the answer holds no JSON object with a verdict'
    """
    if not text.strip():
        return _unparsed("the answer is empty")
    found = [value for value in objects(text) if "verdict" in value]
    if not found:
        return _unparsed("the answer holds no JSON object with a verdict")
    answers = [answer_of(value) for value in found]
    if len({(a.verdict, a.confidence, a.problem) for a in answers}) > 1:
        return _unparsed(f"the answer holds {len(answers)} verdicts that disagree")
    return answers[0]


def answer_of(value: Mapping[str, object]) -> Answer:
    """Return an answer from the fields of the schema, each of which must be valid."""
    verdict, confidence, rationale = (value.get(name) for name in ("verdict", "confidence", "rationale"))
    if not isinstance(verdict, str) or verdict.strip().lower() not in VERDICTS:
        return _unparsed(f"the verdict is {_shown(verdict)}, not real, fake or uncertain")
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not math.isfinite(confidence):
        return _unparsed(f"the confidence is {_shown(confidence)}, not a number")
    if not 0.0 <= confidence <= 1.0:
        return _unparsed(f"the confidence is {_shown(confidence)}, not from 0 to 1")
    return Answer(verdict.strip().lower(), float(confidence), rationale if isinstance(rationale, str) else "")


def objects(text: str) -> Iterator[dict[str, object]]:
    """Yield the JSON objects in a text, outermost ones only, from left to right.

    >>> list(objects('so: {"a": {"b": 1}} and {"c": 2}'))
    [{'a': {'b': 1}}, {'c': 2}]
    """
    decoder, at = json.JSONDecoder(), 0
    while (start := text.find("{", at)) >= 0:
        try:
            value, at = decoder.raw_decode(text, start)
        except ValueError:
            at = start + 1
            continue
        except RecursionError:
            return  # where an object nested this deeply ends is unknown, and what it holds is not outermost
        if isinstance(value, dict):
            yield value


def _unparsed(problem: str) -> Answer:
    return Answer(None, None, "", problem)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


# ----------------------------------------------------------------------
# The two forms of the OpenAI protocol: convert a request to `/v1/responses` to one to `/v1/chat/completions`, and the
# answer back.
#
# Clients use the first form for newer models and the second for everything else; the stand-in works with the second.

ROLES: Final = {"developer": "system"}


def object_in(body: Mapping[str, object], name: str) -> dict[str, object]:
    """Return an object inside a body; empty if it has none of that name."""
    return fit(dict[str, object], body.get(name) or {})


def objects_in(body: Mapping[str, object], name: str) -> list[dict[str, object]]:
    """Return a list of objects inside a body; empty if it has none of that name."""
    return fit(list[dict[str, object]], body.get(name) or [])


def as_chat(body: Mapping[str, object]) -> dict[str, object]:
    """Convert a request from the Responses form to the Chat form.

    >>> as_chat({"model": "m", "input": [{"role": "user", "content": [{"type": "input_text", "text": "hello"}]}]})
    {'model': 'm', 'messages': [{'role': 'user', 'content': [{'type': 'text', 'text': 'hello'}]}]}
    """
    given = body["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else objects_in(body, "input")
    messages = [message for item in items if (message := _message(item)) is not None]
    tools = [{"type": "function", "function": t} for t in objects_in(body, "tools") if t["type"] == "function"]
    kept = {name: body[name] for name in ("model", "temperature", "seed") if name in body}
    return {**kept, "messages": messages, **({"tools": tools} if tools else {})}


def as_response(answer: Mapping[str, object]) -> dict[str, object]:
    """Convert an answer from the Chat form to the Responses form."""
    message, usage = object_in(objects_in(answer, "choices")[0], "message"), object_in(answer, "usage")
    calls = objects_in(message, "tool_calls")
    output = [_call(call) for call in calls] or [_said(str(answer["id"]), str(message["content"] or ""))]
    tokens: dict[str, object] = {"input_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"]}
    tokens |= {"total_tokens": usage["total_tokens"], "input_tokens_details": {"cached_tokens": 0}}
    about = {"id": answer["id"], "object": "response", "created_at": answer["created"], "model": answer["model"]}
    fixed = {"status": "completed", "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return {**about, **fixed, "output": output, "usage": {**tokens, "output_tokens_details": {"reasoning_tokens": 0}}}


def _message(item: Mapping[str, object]) -> dict[str, object] | None:
    kind = item.get("type", "message")
    if kind == "function_call":
        function = {"name": item["name"], "arguments": item["arguments"]}
        return {"role": "assistant", "tool_calls": [{"id": item["call_id"], "type": "function", "function": function}]}
    if kind == "function_call_output":
        return {"role": "tool", "tool_call_id": item["call_id"], "content": _content(item["output"])}
    if kind != "message":
        return None
    return {"role": ROLES.get(role := str(item["role"]), role), "content": _content(item["content"])}


def _content(given: object) -> object:
    return given if isinstance(given, str) else [_part(part) for part in fit(list[dict[str, object]], given)]


def _part(part: Mapping[str, object]) -> dict[str, object]:
    if part["type"] == "input_image":
        return {"type": "image_url", "image_url": {"url": part["image_url"]}}
    if part["type"] in ("input_text", "output_text"):
        return {"type": "text", "text": part["text"]}
    return dict(part)


def _call(call: Mapping[str, object]) -> dict[str, object]:
    function = object_in(call, "function")
    named = {"name": function["name"], "arguments": function["arguments"]}
    return {"type": "function_call", "id": f"fc-{call['id']}", "call_id": call["id"], "status": "completed", **named}


def _said(ident: str, text: str) -> dict[str, object]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": f"msg-{ident}", "role": "assistant", "status": "completed", "content": [part]}
