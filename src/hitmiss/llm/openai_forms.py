"""The two forms of the OpenAI protocol: a request to `/v1/responses` as one to `/v1/chat/completions`, and its answer back.

Clients use the first form for newer models and the second for everything else; the stand-in works with the second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hitmiss.core.convert import fit

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
    tokens |= {
        "total_tokens": usage["total_tokens"],
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    }
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
