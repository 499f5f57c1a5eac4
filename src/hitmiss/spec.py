"""A metric as text: `min_dcf(p_target=0.95, c_fa=10)` is argument, table header and JSON key at once."""

from __future__ import annotations

import ast
import keyword
from dataclasses import dataclass, field

from hitmiss.errors import UsageError

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
