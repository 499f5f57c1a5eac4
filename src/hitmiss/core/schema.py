"""Text and plain data to typed objects: declarations of TOML and YAML files, metrics with settings, expressions of figures."""

from __future__ import annotations

import ast
import keyword
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from itertools import product
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from hitmiss.core.errors import UsageError

# ----------------------------------------------------------------------
# Declarations: frozen dataclasses from the plain data of TOML and YAML files. No key is ignored in silence, no type guessed.
#
# Not pydantic: every command reads a declaration (its protocol), and to import pydantic and to build its models takes an
# eighth of a second, more than all else that many commands do. What is declared here needs no more than the type hints of
# plain fields: texts, numbers, lists, tables, other declarations.

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
    hitmiss.core.schema.Misdeclared: x: it must be a number
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


# ----------------------------------------------------------------------
# A metric as text: `min_dcf(p_target=0.95, c_fa=10)` is argument, table header and JSON key at once.

Setting = str | float | int | bool | None
NOT_WORDS = ("inf", "nan")
"""Words that are numbers: `threshold=inf`."""


@dataclass(frozen=True)
class Spec:
    """A name with settings; prints and parses as the same text, compares and hashes by value.

    >>> parse("min_dcf(c_fa=10, p_target=0.95)")
    Spec(min_dcf(c_fa=10, p_target=0.95))
    >>> parse("eer") == Spec("eer")
    True
    """

    name: str
    settings: tuple[tuple[str, Setting], ...] = field(default=())

    @classmethod
    def of(cls, name: str, **settings: Setting) -> Spec:
        """A spec from keywords, in alphabetical order so that equal settings are equal specs."""
        return cls(name, tuple(sorted(settings.items())))

    def __str__(self) -> str:
        inner = ", ".join(f"{key}={_text(value)}" for key, value in self.settings)
        return f"{self.name}({inner})" if inner else self.name

    def __repr__(self) -> str:
        return f"Spec({self})"


def parse(text: str | Spec) -> Spec:
    """Read a spec from its text. Only a name and literal keyword settings are allowed; nothing is run.

    >>> parse("eer(ties='official')").settings
    (('ties', 'official'),)
    >>> parse("eer(ties=official)").settings
    (('ties', 'official'),)
    """
    if isinstance(text, Spec):
        return text
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UsageError(f"cannot read {text[:200]!r} as a metric; write a name, or name(setting=value)") from None
    if isinstance(node, ast.Name):
        return Spec(node.id)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args:
        given = {_key(k, text): _literal(k.value, text) for k in node.keywords}
        if len(given) < len(node.keywords):
            raise UsageError(f"{text!r}: a setting is given twice")
        return Spec.of(node.func.id, **given)
    raise UsageError(f"cannot read {text!r} as a metric; write a name, or name(setting=value)")


def _key(keyword: ast.keyword, text: str) -> str:
    if keyword.arg is None:
        raise UsageError(f"{text!r}: settings are written setting=value")
    return keyword.arg


def _literal(node: ast.expr, text: str) -> Setting:
    if isinstance(node, ast.Name):  # ties=official reads as well as ties="official"
        return float(node.id) if node.id in NOT_WORDS else node.id
    if ast.unparse(node) == "-inf":
        return float("-inf")
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError):
        raise UsageError(f"{text!r}: a setting must be a number, a word, True, False or None") from None
    if not isinstance(value, str | int | float | bool | None):
        raise UsageError(f"{text!r}: a setting must be a number, a word, True, False or None")
    return value


def _text(value: Setting) -> str:
    if isinstance(value, str):
        plain = value.isascii() and value.isidentifier() and not keyword.iskeyword(value) and value not in NOT_WORDS
        return value if plain else repr(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value)


# ----------------------------------------------------------------------
# Expressions of figures, as a protocol writes them: `acer = "(max(APCER, species) + BPCER) / 2"`.
#
# A name is a metric over all trials; `max`, `min` or `mean` of a metric and one or more columns goes over the slices of those
# columns. Nothing is run that is written there: the text is read, and only figures, numbers and + - * / are understood.

Number = Any  # a float, or an array with one entry per replicate: the arithmetic is the same
Over = Literal["", "max", "min", "mean"]
OVER: Final = ("max", "min", "mean")
APPLIED: Final[Mapping[type[ast.operator], Callable[[Number, Number], Number]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
HOW: Final = "write metrics, numbers, + - * / and max, min or mean(metric, column)"


@dataclass(frozen=True)
class Term:
    """A metric over all trials, or over the slices of some columns."""

    metric: str
    over: str = ""
    columns: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.over}({self.metric}, {', '.join(self.columns)})" if self.over else self.metric


@dataclass(frozen=True)
class Derived:
    """A named expression of figures.

    >>> d = Derived.parse("acer", "(max(APCER, species) + fnr) / 2", {"fpr": "APCER"})
    >>> [str(t) for t in d.terms], d.of([0.25, 0.5])
    (['max(fpr, species)', 'fnr'], 0.375)
    """

    name: str
    text: str
    terms: tuple[Term, ...]
    places: Mapping[str, int]
    """Which of the terms a part of the text is."""

    @classmethod
    def parse(cls, name: str, text: str, shown: Mapping[str, str] | None = None) -> Derived:
        """An expression from its text; `shown` are the display names of metrics, which may stand for them."""
        metrics = {title.lower(): metric for metric, title in (shown or {}).items()}
        terms: dict[Term, int] = {}
        places: dict[str, int] = {}

        def visit(node: ast.expr) -> None:
            if isinstance(node, ast.BinOp) and type(node.op) in APPLIED:
                visit(node.left)
                visit(node.right)
            elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
                visit(node.operand)
            elif isinstance(node, ast.Name | ast.Call):
                places[ast.unparse(node)] = terms.setdefault(_term(node, metrics), len(terms))
            elif not (isinstance(node, ast.Constant) and type(node.value) in (int, float)):
                raise ValueError

        try:
            visit(_tree(text))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise UsageError(f"cannot read {name} = {text!r}; {HOW}", code="bad-expression") from None
        if not terms:
            raise UsageError(f"{name} = {text!r} names no metric; {HOW}", code="bad-expression")
        return cls(name, text, tuple(terms), places)

    @property
    def is_extreme(self) -> bool:
        """Whether it holds the greatest or least of several figures."""
        return any(term.over in ("max", "min") for term in self.terms)

    def of(self, values: Sequence[Number]) -> Number:
        """The expression of the values of its terms."""

        def read(node: ast.expr) -> Number:
            if isinstance(node, ast.BinOp):
                return APPLIED[type(node.op)](read(node.left), read(node.right))
            if isinstance(node, ast.UnaryOp):
                return -read(node.operand)
            return node.value if isinstance(node, ast.Constant) else values[self.places[ast.unparse(node)]]

        return read(_tree(self.text))

    def range(self, ranges: Sequence[tuple[float, float]]) -> tuple[float, float]:
        """The least and greatest values that it can have, given those of its terms: reached at their ends."""
        try:
            corners = [float(self.of(corner)) for corner in product(*ranges)]
        except ZeroDivisionError:
            return -math.inf, math.inf
        return (-math.inf, math.inf) if any(map(math.isnan, corners)) else (min(corners), max(corners))


def _tree(text: str) -> ast.expr:
    return ast.parse(text.strip(), mode="eval").body


def _term(node: ast.Name | ast.Call, metrics: Mapping[str, str]) -> Term:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in OVER):
        return Term(_metric(node, metrics))
    first, *columns = node.args
    if node.keywords or not isinstance(first, ast.Name | ast.Call) or not columns:
        raise ValueError
    names = [c.id if isinstance(c, ast.Name) else getattr(c, "value", None) for c in columns]
    if not all(isinstance(name, str) for name in names):
        raise ValueError
    return Term(_metric(first, metrics), node.func.id, tuple(map(str, names)))


def _metric(node: ast.Name | ast.Call, metrics: Mapping[str, str]) -> str:
    """A metric by its own name, or by the one that it is shown under."""
    spec = parse(ast.unparse(node))
    return str(Spec(metrics.get(spec.name.lower(), spec.name), spec.settings))
