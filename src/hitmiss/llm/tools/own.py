"""The user's own tools: Python functions of an item, with arguments that the model gives.

    def words(item, least: int = 1) -> dict:
        "Count the words of the text that occur at least so often."
        ...

The name, the first paragraph of the docstring and the annotated arguments are what the model is told.
"""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, get_type_hints

from hitmiss.core.errors import UsageError
from hitmiss.detection.opening import find_object
from hitmiss.detection.pinning import source_digest
from hitmiss.llm.items import Item
from hitmiss.llm.tools import TOOLS, Tool, ToolCall

KINDS: Final = {str: "string", int: "integer", float: "number", bool: "boolean"}
"""Types of arguments, as a schema names them."""


def open_tools(names: Sequence[str]) -> list[Tool]:
    """Open functions as tools: `mine.py:words`, `package.module:words`."""
    found = [open_tool(name) for name in names]
    require_own_names([tool.name for tool in found])
    return found


def require_own_names(names: Sequence[str]) -> None:
    """Refuse two tools of one name: the model could not tell which one it calls."""
    known = set(TOOLS)
    for name in names:
        if name in known:
            raise UsageError.of("tool-twice", name=name)
        known.add(name)


def open_tool(text: str) -> Tool:
    """Return a function as a tool.

    >>> open_tool("math:sqrt")
    Traceback (most recent call last):
    hitmiss.core.errors.UsageError: math:sqrt cannot be a tool: it has no docstring that says to the model what it does
    """
    function = find_object(text)
    if not callable(function):
        raise UsageError.of("not-a-tool", text=text, why=f"it is a {type(function).__name__} and no function")
    told = inspect.getdoc(function) if inspect.isfunction(function) else None
    if not told:
        raise UsageError.of("not-a-tool", text=text, why="it has no docstring that says to the model what it does")
    about = " ".join(told.partition("\n\n")[0].split())
    name = str(getattr(function, "__name__", text))
    return Tool(
        name, about, function, version=source_digest(function) or "", takes=_schema(function, text), is_own=True
    )


def _schema(function: Callable[..., object], text: str) -> dict[str, object]:
    """Return the JSON schema of the arguments after the first, which is the item."""
    try:
        hints = get_type_hints(function)
    except Exception as error:  # an annotation of the user's that names nothing
        raise UsageError.of("not-a-tool", text=text, why=f"its annotations cannot be read ({error})") from None
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters:
        raise UsageError.of("not-a-tool", text=text, why="it takes no item")
    properties: dict[str, object] = {}
    for one in parameters[1:]:
        kind = KINDS.get(hints.get(one.name, object))
        if kind is None or one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD, one.POSITIONAL_ONLY):
            raise UsageError.of(
                "not-a-tool", text=text, why=f"its argument {one.name} is not annotated as str, int, float or bool"
            )
        default = {} if one.default is one.empty else {"default": one.default}
        properties[one.name] = {"type": kind, "description": one.name.replace("_", " "), **default}
    needed = [one.name for one in parameters[1:] if one.default is one.empty]
    return {"type": "object", "properties": properties, "required": needed}


def call_own(tool: Tool, item: Item, arguments: Mapping[str, object]) -> ToolCall:
    """Call a function with an item; its errors are results that the model sees and the row keeps."""
    began = time.perf_counter()
    try:
        said = tool.function(item, **arguments)
        result = dict(said) if isinstance(said, Mapping) else {"result": said}
        json.dumps(result, allow_nan=False)
    except Exception as error:  # the user's own code
        result = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
    return ToolCall(tool.name, result, time.perf_counter() - began, cached=False)
