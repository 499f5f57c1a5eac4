"""Declarations: frozen dataclasses from the plain data of TOML and YAML files. No key is ignored in silence, no type guessed.

Not pydantic: every command reads a declaration (its protocol), and to import pydantic and to build its models takes an
eighth of a second, more than all else that many commands do. What is declared here needs no more than the type hints of
plain fields: texts, numbers, lists, tables, other declarations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]
"""What JSON can hold."""
NAMES = {str: "a text", bool: "true or false", int: "a whole number", float: "a number", NoneType: "nothing"}


JSON_TYPES: dict[Any, str] = {str: "string", bool: "boolean", int: "integer", NoneType: "null"}


class Misdeclared(ValueError):
    """What is wrong with a declaration, and where: the keys that lead there."""

    def __init__(self, where: tuple[str, ...], what: str, value: Any = None, is_unknown: bool = False) -> None:
        super().__init__(f"{'.'.join(where)}: {what}")
        self.where, self.what, self.value, self.is_unknown = where, what, value, is_unknown


def declare(kind: type[T], data: object, *, ignore: bool = False, where: tuple[str, ...] = ()) -> T:
    """A dataclass from a mapping, its fields checked by their type hints; unknown keys are errors unless `ignore`.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Point:
    ...     x: float
    ...     tags: tuple[str, ...] = ()
    >>> declare(Point, {"x": 1, "tags": ["a"]})
    Point(x=1.0, tags=('a',))
    >>> declare(Point, {"x": "1"})
    Traceback (most recent call last):
    hitmiss.declared.Misdeclared: x: it must be a number
    """
    hints: dict[str, Any] = _hints(kind)  # type: ignore[arg-type]
    if not isinstance(data, Mapping):
        raise Misdeclared(where, "it must be a table of names", data)
    for key in data:
        if key not in hints and not ignore:
            raise Misdeclared((*where, str(key)), "there is no such key", data[key], is_unknown=True)
    for each in fields(kind):  # type: ignore[arg-type]
        if each.name not in data and each.default is MISSING and each.default_factory is MISSING:
            raise Misdeclared((*where, each.name), "it is missing")
    return kind(**{key: fit(hints[key], value, (*where, key)) for key, value in data.items() if key in hints})


def fit_field(kind: type[Any], name: str, value: object) -> Any:
    """A value as a field of a dataclass wants it."""
    hints: dict[str, Any] = _hints(kind)  # type: ignore[arg-type]
    return fit(hints[name], value, (name,))


def plain(value: Any) -> Any:
    """A declaration as the plain data of JSON, from which `declare` makes an equal one; infinities are text.

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
    return value


def schema_of(kind: Any, defs: dict[str, Plain]) -> dict[str, Plain]:
    """The JSON Schema of what `plain` makes of a type; dataclasses go into `defs`, and are referred to.

    >>> schema_of(tuple[str, ...] | None, {})
    {'anyOf': [{'type': 'array', 'items': {'type': 'string'}}, {'type': 'null'}]}
    """
    origin, inner = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        name = kind.__name__  # type: ignore[union-attr]
        if name not in defs:
            defs[name] = {}  # known already, where it refers to itself
            fields_of: dict[str, Plain] = {key: schema_of(hint, defs) for key, hint in _hints(kind).items()}  # type: ignore[arg-type]
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


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def fit(kind: Any, value: Any, where: tuple[str, ...] = ()) -> Any:
    """A value as a type hint wants it, or `Misdeclared`. A list may stand for a tuple and a whole number for a number."""
    if kind is Any:
        return value
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _fit_one(inner, value, where)
    if origin is Literal:
        if value not in inner:
            raise Misdeclared(where, f"it must be one of {', '.join(map(repr, inner))}", value)
        return value
    if origin in (tuple, list):
        if not isinstance(value, list | tuple):
            raise Misdeclared(where, "it must be a list", value)
        return origin(fit(inner[0], v, (*where, str(i))) for i, v in enumerate(value))
    if origin in (dict, Mapping) or is_dataclass(kind):
        if is_dataclass(kind):
            return value if isinstance(value, kind) else declare(kind, value, where=where)  # type: ignore[arg-type]
        if not isinstance(value, Mapping):
            raise Misdeclared(where, "it must be a table of names", value)
        return {fit(inner[0], k, where): fit(inner[1], v, (*where, str(k))) for k, v in value.items()}
    if kind is float and type(value) is int:
        return float(value)
    if kind is float and value in ("inf", "-inf"):  # as `plain` writes them
        return float(value)
    if type(value) is not kind:
        raise Misdeclared(where, f"it must be {NAMES.get(kind, kind.__name__)}", value)
    return value


def _fit_one(kinds: tuple[Any, ...], value: Any, where: tuple[str, ...]) -> Any:
    """The first of several types that fits; whole numbers stay whole where they may."""
    if type(value) in kinds:
        return value
    faults = []
    for kind in kinds:
        try:
            return fit(kind, value, where)
        except Misdeclared as fault:
            faults.append(fault)
    simple = all(fault.where == where for fault in faults)
    words = " or ".join(NAMES.get(k, getattr(k, "__name__", str(k))) for k in kinds if k is not NoneType)
    told = next(fault for fault, kind in zip(faults, kinds, strict=True) if kind is not NoneType)
    raise Misdeclared(where, f"it must be {words}", value) if simple and len(kinds) > 2 else told
