"""Expressions of estimates, as a protocol writes them: `acer = "(max(APCER, species) + BPCER) / 2"`.

A name is a metric over all trials; `max`, `min` or `mean` of a metric and one or more columns is taken over the
slices of those columns. The text is parsed, never executed: only estimates, numbers and + - * / are understood.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final, Literal

from hitmiss.core.errors import UsageError

if TYPE_CHECKING:
    from hitmiss.core.sorting import Number
from hitmiss.core.metric_spec import MetricSpec, parse

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
    """A named expression of numbers.

    >>> d = Derived.parse("acer", "(max(APCER, species) + fnr) / 2", {"fpr": "APCER"})
    >>> [str(t) for t in d.terms], d.of([0.25, 0.5])
    (['max(fpr, species)', 'fnr'], 0.375)
    """

    name: str
    text: str
    terms: tuple[Term, ...]
    places: Mapping[str, int]
    """The index of the term for each part of the text."""

    @classmethod
    def parse(cls, name: str, text: str, shown: Mapping[str, str] | None = None) -> Derived:
        """Read an expression from its text; `shown` gives the display names of metrics, which may be used in it."""
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
            raise UsageError.of("bad-expression/form", name=name, text=text, HOW=HOW) from None
        if not terms:
            raise UsageError.of("bad-expression", name=name, text=text, HOW=HOW)
        return cls(name, text, tuple(terms), places)

    @property
    def alone(self) -> Term | None:
        """The only term, if the expression is nothing else; None if it computes something."""
        return self.terms[0] if isinstance(_tree(self.text), ast.Name | ast.Call) else None

    @property
    def is_extreme(self) -> bool:
        """Whether the expression contains the greatest or least of several numbers."""
        return any(term.over in ("max", "min") for term in self.terms)

    def of(self, values: Sequence[Number]) -> Number:
        """Evaluate the expression for the values of its terms."""

        def read(node: ast.expr) -> Number:
            if isinstance(node, ast.BinOp):
                return APPLIED[type(node.op)](read(node.left), read(node.right))
            if isinstance(node, ast.UnaryOp):
                return -read(node.operand)
            if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
                return node.value
            return values[self.places[ast.unparse(node)]]

        return read(_tree(self.text))

    def range(self, ranges: Sequence[tuple[float, float]]) -> tuple[float, float]:
        """Return the least and greatest possible values, which occur at the ends of the ranges of the terms."""
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
    """Return a metric by its own name, or by its display name."""
    spec = parse(ast.unparse(node))
    return str(MetricSpec(metrics.get(spec.name.lower(), spec.name), spec.settings))
