"""Plain values of options, taken as they are.

typer builds a pydantic validator for every option of a verb, given or not, and imports pydantic for it: a fifth of a
second at the start of a verb with many. No way of declaring an option keeps it from that (`parser`, `click_type` and a
default of None all get one). Nearly all values are texts, or whole numbers, or were not given at all, and need none, so
they are taken here, where click lets a parameter process its value. Anything else goes the way of typer; so does
everything where typer no longer says what an option is declared as, and then a test of the start fails.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import typer

DECLARED: Final = "type_descriptor"
"""Where typer keeps what an option is declared as."""
OTHER: Final = object()
"""A value that is not plain."""


def take_plainly(command: Any) -> None:
    """Let the options of a command, and of its verbs, take plain values as they are."""
    for part in (command, *getattr(command, "commands", {}).values()):
        for param in part.get_params(typer.Context(part, **part.context_settings)):
            if hasattr(param, DECLARED):
                param.process_value = partial(_process, param, param.process_value)


def _process(param: Any, usual: Callable[[Any, Any], Any], ctx: Any, value: Any) -> Any:
    """The value as the verb wants it; `usual` is how typer gets there."""
    plain = _plain(param, value)
    if plain is OTHER:
        return usual(ctx, value)
    return plain if param.callback is None else param.callback(ctx, param, plain)


def _plain(param: Any, value: Any) -> Any:
    if value is None:
        return OTHER if param.required else () if param.multiple or param.nargs == -1 else None
    declared = getattr(param, DECLARED)
    if declared.choices is not None or declared.is_path or declared.is_ranged:
        return OTHER
    kind = declared.annotation
    if (kind is str and type(value) is str) or (kind is float and type(value) is float):
        return value
    if kind is int and (type(value) is int or (isinstance(value, str) and value.isascii() and value.isdecimal())):
        return int(value)
    if kind == list[str] and value and isinstance(value, list | tuple) and all(type(v) is str for v in value):
        return list(value)
    return OTHER
