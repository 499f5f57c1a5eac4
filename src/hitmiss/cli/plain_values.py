"""Plain values of options, taken as they are.

typer builds a pydantic validator for every option of a verb, given or not, which takes a fifth of a second of the start
of a verb with many. Nearly all values are texts, or whole numbers, or were not given at all: those need none. Anything
else goes the way of typer; so does everything where typer is built otherwise than it is today.
"""

from __future__ import annotations

from typing import Any

import typer

LAZY = "_runtime_param"
"""Where typer keeps an option's validator once it has built one."""


def take_plainly(command: Any) -> None:
    """Let the options of a command, and of its verbs, take plain values as they are."""
    for part in (command, *getattr(command, "commands", {}).values()):
        for param in part.get_params(typer.Context(part)):
            if getattr(param, LAZY, ...) is None and hasattr(param, "type_descriptor"):
                setattr(param, LAZY, _AsItIs())


class _AsItIs:
    """What stands in for the validator of one option until a value needs it."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as the verb wants it."""
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        described = param.type_descriptor
        if described.choices is None and not described.is_path and not described.is_ranged:
            kind = described.annotation
            if kind is str and type(value) is str:
                return value
            if kind is int and (
                type(value) is int or (isinstance(value, str) and value.isascii() and value.isdecimal())
            ):
                return int(value)
            if kind is float and type(value) is float:
                return value
            if kind == list[str] and isinstance(value, list | tuple) and all(type(v) is str for v in value):
                return list(value)
        setattr(param, LAZY, None)
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)
