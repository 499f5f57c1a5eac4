"""What was said after the question: the model's turns, the calls of tools with what came back, and failures.

A turn is a plain object, so that a run can be read without inspect_ai:

    {"role": "assistant", "text": "…", "calls": [{"id": "c1", "tool": "metadata", "arguments": {}}]}
    {"role": "tool", "id": "c1", "tool": "metadata", "text": "{…}"}
    {"role": "tool", "id": "c2", "tool": "no_such", "text": "", "error": "Tool no_such not found"}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from hitmiss.core.convert import fit

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage

Turn = dict[str, object]
FALLBACK: Final = "unknown"
"""The kind that inspect_ai gives to an error of a tool without another."""


def turns_of(messages: Sequence[ChatMessage]) -> list[Turn]:
    """Return messages of inspect_ai as turns."""
    return [_turn(message) for message in messages]


def _turn(message: ChatMessage) -> Turn:
    turn: Turn = {"role": message.role, "text": message.text}
    if message.role == "assistant":
        calls = [{"id": c.id, "tool": c.function, "arguments": dict(c.arguments)} for c in message.tool_calls or ()]
        return {**turn, **({"calls": calls} if calls else {})}
    if message.role != "tool":
        return turn
    failed = {"error": message.error.message} if message.error is not None else {}
    return {**turn, "id": message.tool_call_id or "", "tool": message.function or "", **failed}


def failed_calls(turns: Sequence[Turn]) -> list[dict[str, object]]:
    """Return the calls of tools that failed before a tool was reached, as result rows have them.

    >>> failed_calls([{"role": "tool", "tool": "no_such", "text": "", "error": "Tool no_such not found"}])
    [{'tool': 'no_such', 'seconds': 0.0, 'cached': False, 'error': 'Tool no_such not found'}]
    """
    failed = [turn for turn in turns if turn.get("error") is not None]
    return [{"tool": t["tool"], "seconds": 0.0, "cached": False, "error": t["error"]} for t in failed]


def as_messages(turns: Sequence[Turn]) -> list[Turn]:
    """Return turns as messages in a log of inspect_ai."""
    return [_message(turn) for turn in turns]


def _message(turn: Turn) -> Turn:
    message: Turn = {"role": turn["role"], "content": turn["text"]}
    if turn["role"] == "assistant":
        calls = [{"id": c["id"], "function": c["tool"], "arguments": c["arguments"]} for c in _calls(turn)]
        return {**message, **({"tool_calls": calls} if calls else {})}
    if turn["role"] == "tool":
        return {**message, "tool_call_id": turn["id"], "function": turn["tool"], **_error(turn)}
    return message


def as_events(turns: Sequence[Turn], n_before: int, name: str, at: str) -> list[Turn]:
    """Return turns as the events of a transcript in `inspect view`: answers of the model, and calls of tools.

    The messages that a model was given are named by their places in the conversation, which begins with `n_before`
    messages of the question.
    """
    found: list[Turn] = []
    asked: dict[str, object] = {}
    for place, turn in enumerate(turns, start=n_before):
        shared: Turn = {"uuid": f"e{place}", "timestamp": at, "working_start": 0.0}
        if turn["role"] == "assistant":
            asked |= {str(call["id"]): call["arguments"] for call in _calls(turn)}
            choice = {"message": {**_message(turn), "id": f"m{place}"}, "stop_reason": "stop"}
            output = {"model": name, "choices": [choice], "completion": turn["text"]}
            given = {"model": name, "input": [], "input_refs": [[0, place]], "tools": [], "tool_choice": "auto"}
            found.append({**shared, "event": "model", **given, "config": {}, "output": output})
        elif turn["role"] == "tool":
            call = {"id": turn["id"], "function": turn["tool"], "arguments": asked.get(str(turn["id"]), {})}
            found.append(
                {**shared, "event": "tool", "type": "function", **call, "result": turn["text"], **_error(turn)}
            )
    return found


def as_text(turns: Sequence[Mapping[str, object]]) -> str:
    """Return turns as lines for people.

    >>> print(as_text([{"role": "assistant", "text": "", "calls": [{"tool": "metadata", "arguments": {}}]},
    ...                {"role": "tool", "tool": "metadata", "text": "", "error": "no file"}]))
    → metadata()
    ✗ metadata: no file
    """
    lines = []
    for turn in turns:
        if turn["role"] == "tool":
            mark = "✗" if turn.get("error") is not None else "←"
            lines.append(f"{mark} {turn['tool']}: {turn.get('error') or turn['text']}")
            continue
        lines += [str(turn["text"])] if turn["text"] else []
        for call in _calls(turn):
            given = ", ".join(f"{k}={v!r}" for k, v in fit(dict[str, object], call["arguments"]).items())
            lines.append(f"→ {call['tool']}({given})")
    return "\n".join(lines)


def _calls(turn: Mapping[str, object]) -> list[dict[str, object]]:
    return fit(list[dict[str, object]], turn.get("calls") or [])


def _error(turn: Turn) -> Turn:
    return {} if turn.get("error") is None else {"error": {"type": FALLBACK, "message": str(turn["error"])}}
