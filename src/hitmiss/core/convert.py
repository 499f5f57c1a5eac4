"""Plain data to typed objects and back: declarations of TOML, YAML and JSON files as frozen dataclasses.

No key is silently ignored, no type is guessed. Pydantic is not used: every command reads a declaration (its protocol),
and importing pydantic and building its models takes an eighth of a second, more than everything else that many commands
do. The declarations here need only the type hints of plain fields: texts, numbers, lists, tables, other declarations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from hitmiss.core.kinds import Json

T = TypeVar("T")
NAMES = {str: "a text", bool: "true or false", int: "a whole number", float: "a number", NoneType: "nothing"}
JSON_TYPES: dict[object, str] = {str: "string", bool: "boolean", int: "integer", NoneType: "null"}


class InvalidField(ValueError):
    """What is wrong with a declaration, and where: the keys that lead to it."""

    def __init__(self, where: tuple[str, ...], what: str, value: object = None, is_unknown: bool = False) -> None:
        super().__init__(f"{'.'.join(where)}: {what}")
        self.where, self.what, self.value, self.is_unknown = where, what, value, is_unknown


def declare(kind: type[T], data: object, *, ignore: bool = False, where: tuple[str, ...] = ()) -> T:
    """Make a dataclass from a mapping, its fields checked by their type hints; unknown keys are errors unless `ignore`.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Point:
    ...     x: float
    ...     tags: tuple[str, ...] = ()
    >>> declare(Point, {"x": 1, "tags": ["a"]})
    Point(x=1.0, tags=('a',))
    >>> declare(Point, {"x": "1"})
    Traceback (most recent call last):
    hitmiss.core.convert.InvalidField: x: it must be a number
    """
    hints: dict[str, Any] = _hints(kind)  # type: ignore[arg-type]
    if not isinstance(data, Mapping):
        raise InvalidField(where, "it must be a table of names", data)
    for key in data:
        if key not in hints and not ignore:
            raise InvalidField((*where, str(key)), "there is no such key", data[key], is_unknown=True)
    for each in fields(kind):  # type: ignore[arg-type]
        if each.name not in data and each.default is MISSING and each.default_factory is MISSING:
            raise InvalidField((*where, each.name), "it is missing")
    return kind(**{key: _fit(hints[key], value, (*where, key)) for key, value in data.items() if key in hints})


def fit_field(kind: type[object], name: str, value: object) -> Any:
    """Convert a value to the type of a field of a dataclass."""
    return _fit(_hints(kind)[name], value, (name,))  # type: ignore[arg-type]


def plain(value: object) -> Json:
    """Convert a declaration to plain JSON data, from which `declare` makes an equal one; infinities become text.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Point:
    ...     x: float
    ...     tags: tuple[str, ...] = ()
    >>> plain(Point(1.0, ("a",)))
    {'x': 1.0, 'tags': ['a']}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, float) and value in (math.inf, -math.inf):
        return "inf" if value > 0 else "-inf"
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{type(value).__name__} is not JSON data")


def schema_of(kind: object, defs: dict[str, Json]) -> dict[str, Json]:
    """Return the JSON Schema of the data that `plain` makes of a type; dataclasses are put into `defs` and referenced.

    >>> schema_of(tuple[str, ...] | None, {})
    {'anyOf': [{'type': 'array', 'items': {'type': 'string'}}, {'type': 'null'}]}
    """
    origin, inner = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        name = kind.__name__  # type: ignore[union-attr]
        if name not in defs:
            defs[name] = {}  # entered first, because the type may refer to itself
            fields_of: dict[str, Json] = {key: schema_of(hint, defs) for key, hint in _hints(kind).items()}  # type: ignore[arg-type]
            defs[name] = {"type": "object", "additionalProperties": False, "properties": fields_of}
        return {"$ref": f"#/$defs/{name}"}
    if origin in (Union, UnionType):
        return {"anyOf": [schema_of(one, defs) for one in inner]}
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (tuple, list):
        return {"type": "array", "items": schema_of(inner[0], defs)}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": schema_of(inner[1], defs)}
    if kind is float:
        return {"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf"]}]}
    return {"type": JSON_TYPES[kind]}


def _is_fixed(kind: Any) -> bool:
    """Whether a type is of tuples of one length, as `tuple[str, str]` is."""
    return get_origin(kind) is tuple and Ellipsis not in get_args(kind)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def fit(kind: type[T], value: object, where: tuple[str, ...] = ()) -> T:
    """Convert a value to a type, or raise `InvalidField`.

    A tuple accepts a list, of its own length if it has one, and a float accepts an integer.

    >>> fit(dict[str, float], {"a": 1})
    {'a': 1.0}
    >>> fit(tuple[str, str], ["a"])
    Traceback (most recent call last):
    hitmiss.core.convert.InvalidField: : it must be a list of 2
    """
    found: T = _fit(kind, value, where)
    return found


def _fit(kind: Any, value: object, where: tuple[str, ...]) -> Any:
    """Convert a value to a type hint, which may be a union or a literal."""
    if kind in (Any, object):
        return value
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _fit_one(inner, value, where)
    if origin is Literal:
        if value not in inner:
            raise InvalidField(where, f"it must be one of {', '.join(map(repr, inner))}", value)
        return value
    if origin in (tuple, list):
        if not isinstance(value, list | tuple):
            raise InvalidField(where, "it must be a list", value)
        kinds = inner if _is_fixed(kind) else inner[:1] * len(value)
        if len(kinds) != len(value):
            raise InvalidField(where, f"it must be a list of {len(kinds)}", value)
        return origin(_fit(k, v, (*where, str(i))) for i, (k, v) in enumerate(zip(kinds, value, strict=True)))
    if origin in (dict, Mapping) or is_dataclass(kind):
        if is_dataclass(kind):
            return value if isinstance(value, kind) else declare(kind, value, where=where)  # type: ignore[arg-type]
        if not isinstance(value, Mapping):
            raise InvalidField(where, "it must be a table of names", value)
        return {_fit(inner[0], k, where): _fit(inner[1], v, (*where, str(k))) for k, v in value.items()}
    if kind is float and type(value) is int:
        return float(value)
    if kind is float and value in ("inf", "-inf"):  # as `plain` writes them
        return float(value)
    if type(value) is not kind:
        raise InvalidField(where, f"it must be {NAMES.get(kind, kind.__name__)}", value)
    return value


def _fit_one(kinds: tuple[Any, ...], value: object, where: tuple[str, ...]) -> object:
    """Convert a value to the first of several types that fits; integers stay integers where allowed."""
    if type(value) in kinds:
        return value
    faults = []
    for kind in kinds:
        try:
            return _fit(kind, value, where)
        except InvalidField as fault:
            faults.append(fault)
    simple = all(fault.where == where for fault in faults)
    words = " or ".join(NAMES.get(k, getattr(k, "__name__", str(k))) for k in kinds if k is not NoneType)
    told = next(fault for fault, kind in zip(faults, kinds, strict=True) if kind is not NoneType)
    raise InvalidField(where, f"it must be {words}", value) if simple and len(kinds) > 2 else told
