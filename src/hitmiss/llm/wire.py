"""The actual parameters of a request: providers silently drop parameters that a model does not accept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Final

Sent = dict[str, object]
SPELLINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "temperature": ("temperature",),
    "seed": ("seed",),
    "max_tokens": ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens"),
    "reasoning_effort": ("reasoning_effort", "effort"),
}
"""Settings of a run, under the names that providers use."""
CONTENT: Final = ("messages", "input", "contents", "tools", "system", "response_format", "text", "output_config")
"""Parts of a request that hold the question; names in them are not parameters."""
_sent: ContextVar[Sent | None] = ContextVar("sent", default=None)


def listen(found: Sent | None = None) -> Sent:
    """Return a mapping (or the one given) that is filled with the parameters of this conversation's next requests."""
    found = {} if found is None else found
    _sent.set(found)
    return found


def heard(result: object) -> None:
    """Record the request that a provider returns with its answer."""
    request = getattr(result[-1] if isinstance(result, tuple) and result else None, "request", None)
    if isinstance(request, Mapping) and request:
        note_parameters(request)


def note_parameters(request: Mapping[str, object]) -> None:
    """Record the parameters of a request for the conversation that sends it."""
    found = _sent.get()
    if found is not None:
        found.update(parameters(request))


def parameters(request: Mapping[str, object]) -> Sent:
    """Return the settings that a request held; None for those that it did not.

    >>> parameters({"model": "m", "temperature": 0.0, "reasoning": {"effort": "low"}, "messages": [{"seed": 1}]})
    {'temperature': 0.0, 'seed': None, 'max_tokens': None, 'reasoning_effort': 'low'}
    """
    inside = dict(_flat(request))
    return {
        name: next((inside[spelling] for spelling in spellings if spelling in inside), None)
        for name, spellings in SPELLINGS.items()
    }


def _flat(request: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for name, value in request.items():
        if isinstance(value, Mapping) and name not in CONTENT:
            yield from _flat(value)
        elif isinstance(value, bool | int | float | str):
            yield name, value
