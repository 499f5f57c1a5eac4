"""A metric as text: `min_dcf(p_target=0.95, c_fa=10)` is used as argument, table header and JSON key."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hitmiss.core.errors import UsageError

Setting = str | float | int | bool | None
NOT_WORDS = ("inf", "nan")
"""Words that are read as numbers: `threshold=inf`."""


@dataclass(frozen=True)
class MetricSpec:
    """A name with settings. It prints and parses as the same text, and compares and hashes by value.

    >>> parse("min_dcf(c_fa=10, p_target=0.95)")
    Spec(min_dcf(c_fa=10, p_target=0.95))
    >>> parse("eer") == MetricSpec("eer")
    True
    """

    name: str
    settings: tuple[tuple[str, Setting], ...] = field(default=())

    @classmethod
    def of(cls, name: str, /, **settings: Setting) -> MetricSpec:
        """Make a spec from keywords (also from one called `name`), in alphabetical order so that equal settings give equal specs."""
        return cls(name, tuple(sorted(settings.items())))

    def __str__(self) -> str:
        inner = ", ".join(f"{key}={_text(value)}" for key, value in self.settings)
        return f"{self.name}({inner})" if inner else self.name

    def __repr__(self) -> str:
        return f"Spec({self})"


def parse(text: str | MetricSpec) -> MetricSpec:
    """Read a spec from its text. Only a name and literal keyword settings are allowed; nothing is run.

    >>> parse("eer(ties='official')").settings
    (('ties', 'official'),)
    >>> parse("eer(ties=official)").settings
    (('ties', 'official'),)
    """
    if isinstance(text, MetricSpec):
        return text
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UsageError.of("bad-metric/form", text=text[:200]) from None
    if isinstance(node, ast.Name):
        return MetricSpec(node.id)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args:
        given = {_key(k, text): _literal(k.value, text) for k in node.keywords}
        if len(given) < len(node.keywords):
            raise UsageError.of("bad-metric/twice", text=text)
        return MetricSpec.of(node.func.id, **given)
    fix = "write a name, or name(setting=value)"
    if isinstance(node, ast.Tuple) and node.elts:
        fix = f"give several one by one: {' '.join(f'-m {ast.get_source_segment(text.strip(), one)}' for one in node.elts)}"
    raise UsageError.of("bad-metric", text=text, fix=fix)


def _key(keyword: ast.keyword, text: str) -> str:
    if keyword.arg is None:
        raise UsageError.of("bad-metric/setting", text=text)
    return keyword.arg


CONSTANTS: Final[Mapping[str, bool | None]] = {"true": True, "false": False, "none": None, "null": None}


def _literal(node: ast.expr, text: str) -> Setting:
    if isinstance(node, ast.Name):  # both ties=official and ties="official" are accepted, true as well as True
        return float(node.id) if node.id in NOT_WORDS else CONSTANTS.get(node.id, node.id)
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Name(id="inf")):
            return float("-inf")
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError):
        raise UsageError.of("bad-metric/value", text=text) from None
    if not isinstance(value, str | int | float | bool | None):
        raise UsageError.of("bad-metric/value", text=text)
    return value


def _text(value: Setting) -> str:
    if isinstance(value, str):
        plain = value.isascii() and value.isidentifier() and not keyword.iskeyword(value) and value not in NOT_WORDS
        return value if plain else repr(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value)
