"""What a request really held: providers drop parameters that a model does not take, and say so to nobody."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Final

Sent = dict[str, Any]

SPELLINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "temperature": ("temperature",),
    "seed": ("seed",),
    "max_tokens": ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens"),
    "reasoning_effort": ("reasoning_effort", "effort"),
}
"""Settings of a run, by the names that providers give them."""
CONTENT: Final = ("messages", "input", "contents", "tools", "system", "response_format", "text", "output_config")
"""Parts of a request that hold the question, in which a name is no parameter."""

_sent: ContextVar[Sent | None] = ContextVar("sent", default=None)


def listen() -> Sent:
    """A mapping that is filled with the parameters of the next requests of this conversation."""
    found: Sent = {}
    _sent.set(found)
    return found


def heard(result: Any) -> None:
    """Take note of the request that a provider gives back beside its answer."""
    found, call = _sent.get(), result[-1] if isinstance(result, tuple) and result else None
    request = getattr(call, "request", None)
    if found is not None and isinstance(request, Mapping) and request:
        found.update(parameters(request))


def parameters(request: Mapping[str, Any]) -> Sent:
    """The settings that a request held; None for one that it did not.

    >>> parameters({"model": "m", "temperature": 0.0, "reasoning": {"effort": "low"}, "messages": [{"seed": 1}]})
    {'temperature': 0.0, 'seed': None, 'max_tokens': None, 'reasoning_effort': 'low'}
    """
    inside = dict(_flat(request))
    return {
        name: next((inside[spelling] for spelling in spellings if spelling in inside), None)
        for name, spellings in SPELLINGS.items()
    }


def _flat(request: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in request.items():
        if isinstance(value, Mapping) and name not in CONTENT:
            yield from _flat(value)
        elif isinstance(value, bool | int | float | str):
            yield name, value
