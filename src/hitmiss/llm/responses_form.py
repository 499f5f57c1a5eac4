"""The two forms of the OpenAI protocol: a request to `/v1/responses` as one to `/v1/chat/completions`, the answer back.

Clients ask newer models by the first form and everything else by the second; the stand-in thinks in the second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

ROLES: Final = {"developer": "system"}


def as_chat(body: Mapping[str, Any]) -> dict[str, Any]:
    """A request of the Responses form in the Chat form.

    >>> as_chat({"model": "m", "input": [{"role": "user", "content": [{"type": "input_text", "text": "hello"}]}]})
    {'model': 'm', 'messages': [{'role': 'user', 'content': [{'type': 'text', 'text': 'hello'}]}]}
    """
    given = body["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    messages = [message for item in items if (message := _message(item)) is not None]
    tools = [{"type": "function", "function": t} for t in body.get("tools") or () if t["type"] == "function"]
    kept = {name: body[name] for name in ("model", "temperature", "seed") if name in body}
    return {**kept, "messages": messages, **({"tools": tools} if tools else {})}


def as_response(answer: Mapping[str, Any]) -> dict[str, Any]:
    """An answer of the Chat form in the Responses form."""
    message, usage = answer["choices"][0]["message"], answer["usage"]
    calls = message.get("tool_calls") or ()
    output = [_call(call) for call in calls] if calls else [_said(answer["id"], message["content"] or "")]
    tokens: dict[str, Any] = {"input_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"]}
    tokens |= {"total_tokens": usage["total_tokens"], "input_tokens_details": {"cached_tokens": 0}}
    about = {"id": answer["id"], "object": "response", "created_at": answer["created"], "model": answer["model"]}
    fixed = {"status": "completed", "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return {**about, **fixed, "output": output, "usage": {**tokens, "output_tokens_details": {"reasoning_tokens": 0}}}


def _message(item: Mapping[str, Any]) -> dict[str, Any] | None:
    kind = item.get("type", "message")
    if kind == "function_call":
        function = {"name": item["name"], "arguments": item["arguments"]}
        return {"role": "assistant", "tool_calls": [{"id": item["call_id"], "type": "function", "function": function}]}
    if kind == "function_call_output":
        return {"role": "tool", "tool_call_id": item["call_id"], "content": _content(item["output"])}
    if kind != "message":
        return None
    return {"role": ROLES.get(item["role"], item["role"]), "content": _content(item["content"])}


def _content(given: Any) -> Any:
    return given if isinstance(given, str) else [_part(part) for part in given]


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part["type"] == "input_image":
        return {"type": "image_url", "image_url": {"url": part["image_url"]}}
    if part["type"] in ("input_text", "output_text"):
        return {"type": "text", "text": part["text"]}
    return dict(part)


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    named = {"name": call["function"]["name"], "arguments": call["function"]["arguments"]}
    return {"type": "function_call", "id": f"fc-{call['id']}", "call_id": call["id"], "status": "completed", **named}


def _said(ident: str, text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": f"msg-{ident}", "role": "assistant", "status": "completed", "content": [part]}
