"""From names to objects: metrics with settings as text, expressions of estimates, and the registry of names."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import keyword
import math
import operator
import re
import sys
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from hitmiss.core.errors import UnknownName, UsageError

if TYPE_CHECKING:
    from hitmiss.core.sorting import Floats, Number


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
        raise UsageError(f"cannot read {text[:200]!r} as a metric; write a name, or name(setting=value)") from None
    if isinstance(node, ast.Name):
        return MetricSpec(node.id)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args:
        given = {_key(k, text): _literal(k.value, text) for k in node.keywords}
        if len(given) < len(node.keywords):
            raise UsageError(f"{text!r}: a setting is given twice")
        return MetricSpec.of(node.func.id, **given)
    fix = "write a name, or name(setting=value)"
    if isinstance(node, ast.Tuple) and node.elts:
        fix = f"give several one by one: {' '.join(f'-m {ast.unparse(one)}' for one in node.elts)}"
    raise UsageError(f"cannot read {text!r} as a metric; {fix}")


def _key(keyword: ast.keyword, text: str) -> str:
    if keyword.arg is None:
        raise UsageError(f"{text!r}: settings are written setting=value")
    return keyword.arg


CONSTANTS: Final[Mapping[str, bool | None]] = {"true": True, "false": False, "none": None, "null": None}


def _literal(node: ast.expr, text: str) -> Setting:
    if isinstance(node, ast.Name):  # both ties=official and ties="official" are accepted, true as well as True
        return float(node.id) if node.id in NOT_WORDS else CONSTANTS.get(node.id, node.id)
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
            raise UsageError(f"cannot read {name} = {text!r}; {HOW}", code="bad-expression") from None
        if not terms:
            raise UsageError(f"{name} = {text!r} names no metric; {HOW}", code="bad-expression")
        return cls(name, text, tuple(terms), places)

    @property
    def alone(self) -> Term | None:
        """The only term, if the expression is nothing else; None if it computes something."""
        return self.terms[0] if isinstance(_tree(self.text), ast.Name | ast.Call) else None

    @property
    def is_extreme(self) -> bool:
        """Whether the expression contains the greatest or least of several figures."""
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


Best = Literal["low", "high"]
F = TypeVar("F", bound=Callable[..., float])
Kind = Literal["metric", "reader", "protocol", "detector", "attack", "codec"]
HOMES: dict[Kind, tuple[str, ...]] = {
    "metric": ("hitmiss.metrics",),
    "reader": ("hitmiss.io.readers",),
    "protocol": ("hitmiss.protocols",),
    "detector": ("hitmiss.detection.detector",),
    "attack": ("hitmiss.attacks.audio", "hitmiss.attacks.ecg", "hitmiss.attacks.text", "hitmiss.attacks.image"),
    "codec": ("hitmiss.attacks.codecs",),
}
"""The modules that register the built-in entries; imported when a name of their kind is first looked up."""


@dataclass(frozen=True)
class Metric:
    """What the engine needs to know about a metric function."""

    name: str
    function: Callable[..., float]
    best: Best
    range: tuple[float, float]
    columns: tuple[str, ...]
    defaults: dict[str, Setting] = field(hash=False)
    form: Callable[..., object] | None = None
    kinds: tuple[str, ...] = ()
    positive: str | None = None
    interval: bool = True
    judged: Callable[..., Floats] | None = None
    prevalence: bool = True
    one_by_one: bool = False
    zero: bool = False
    also: tuple[str, ...] = ()
    two_sided: bool = False
    ends: Callable[..., tuple[float, float]] | None = None

    def range_of(self, settings: Mapping[str, object]) -> tuple[float, float]:
        """Return the least and greatest possible values with these settings."""
        return self.range if self.ends is None else self.ends(**{**self.defaults, **settings})

    def settings(self, spec: MetricSpec) -> dict[str, Setting]:
        """Return the default settings, overridden by those of the spec; an unknown setting is an error."""
        for key, _ in spec.settings:
            if key not in self.defaults:
                raise UnknownName(f"setting of {self.name}", key, self.defaults)
        for key, value in spec.settings:
            default = self.defaults[key]
            if isinstance(default, bool) and not isinstance(value, bool):
                raise UsageError(f"{spec.name}: {key} must be true or false; found {value!r}", code="bad-setting")
            if isinstance(value, str) and isinstance(default, int | float) and not isinstance(default, bool):
                raise UsageError(f"{spec.name}: {key} must be a number; found {value!r}", code="bad-setting")
        return {**self.defaults, **dict(spec.settings)}


_entries: dict[Kind, dict[str, Any]] = {kind: {} for kind in HOMES}
_origins: dict[tuple[Kind, str], str] = {}
_loaded: set[str] = set()


def metric(
    *,
    best: Best,
    range: tuple[float, float] = (0.0, 1.0),
    form: Callable[..., object] | None = None,
    kinds: tuple[str, ...] = (),
    positive: str | None = None,
    interval: bool = True,
    judged: Callable[..., Floats] | None = None,
    prevalence: bool = True,
    one_by_one: bool = False,
    zero: bool = False,
    also: tuple[str, ...] = (),
    two_sided: bool = False,
    ends: Callable[..., tuple[float, float]] | None = None,
) -> Callable[[F], F]:
    """Register a metric function under its own name. Use it as a decorator.

    The positional parameters of the function name columns of the trials (`label`, `score`, `decision`, or a column of
    the user) and end with `weight`; its keyword-only parameters are the settings of the metric.

    Parameters
    ----------
    best
        `low` or `high`: which values are better.
    range
        The least and greatest possible values.
    form
        A function that takes the settings and returns the metric's form (`stats.forms`), with which the engine counts
        and resamples it fast. Without a form, the metric function is called on arrays.
    kinds
        The score kinds for which the metric makes sense; empty: any.
    positive
        The class that the name of the metric takes to be positive; None: any.
    interval
        False if replicates do not show how uncertain the figure is; it then gets no interval.
    judged
        Computes a metric of confidences from `metrics.confidence.Judged`, for many replicates at once.
    prevalence
        Whether the figure depends on the share of positives (F1, precision, Brier, average precision). If it does,
        trials are resampled from both classes together; otherwise (EER, AUC, recall) within each class.
    one_by_one
        Whether the figure goes through the trials one by one (a median, the area of a risk–coverage curve), so that a
        weight is a number of trials. Such a figure is refused for sampling weights.
    zero
        Whether the figure is 0 if there is nothing to divide by, under a protocol with that convention (precision,
        recall, F1). Any other figure is undefined then.
    also
        Other names by which the metric is understood, such as `auc` for `roc_auc`.
    two_sided
        Whether neither end is better in itself, as for a threshold or the size of a change; a rule of a gate may then
        set a limit on either side.
    ends
        A function that takes the settings and returns the range, if it depends on them.

    Returns
    -------
    Callable
        The decorator; it returns the function unchanged.

    Raises
    ------
    UsageError
        If the name is already taken.

    >>> @metric(best="low")
    ... def half_of_mean(score, weight=None, *, scale=0.5):
    ...     return scale * sum(score) / len(score)
    >>> find_metric("half_of_mean").columns
    ('score',)
    >>> forget("half_of_mean")
    """

    def register(function: F) -> F:
        columns, defaults = _read_signature(function)
        name = function.__name__
        entry = Metric(
            name,
            function,
            best,
            range,
            columns,
            defaults,
            form,
            kinds,
            positive,
            interval,
            judged,
            prevalence,
            one_by_one,
            zero,
            also,
            two_sided,
            ends,
        )
        add("metric", name, entry, origin=function.__module__)
        return function

    return register


def _read_signature(function: Callable[..., object]) -> tuple[tuple[str, ...], dict[str, Setting]]:
    parameters = inspect.signature(function).parameters.values()
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if "weight" not in positional:
        raise UsageError(f"metric {function.__name__!r} must take weight=None after its columns")
    defaults = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    return tuple(n for n in positional if n != "weight"), defaults


def forget(name: str, kind: Kind = "metric") -> None:
    """Remove an entry from the registry (for tests of plug-ins)."""
    _entries[kind].pop(name, None)
    _origins.pop((kind, name), None)


def find_metric(name: str) -> Metric:
    """Return the metric of that name, in any of its spellings, or raise `UnknownName` with the nearest ones."""
    found: Metric = find("metric", known_name(name))
    return found


def known_name(name: str) -> str:
    """Return the metric's own name for another spelling or a usual synonym; a name of no metric is returned as it is.

    >>> known_name("AUROC"), known_name("minDCF"), known_name("eer"), known_name("nothing")
    ('roc_auc', 'min_dcf', 'eer', 'nothing')
    """
    _load("metric")
    if name in _entries["metric"]:
        return name
    return _spellings().get(_folded(name), name)


def known_text(text: str) -> str:
    """Return a metric with settings under the metric's own name: `roc_auc` for `ROC-AUC`.

    >>> known_text("minDCF(c_fa=1)"), known_text("average-precision"), known_text("eer + 1")
    ('min_dcf(c_fa=1)', 'average_precision', 'eer + 1')
    """
    name, paren, rest = text.partition("(")
    is_name = re.fullmatch(r"\s*[A-Za-z_][\w -]*", name) is not None
    return f"{known_name(name.strip())}{paren}{rest}" if is_name else text


def _spellings() -> dict[str, str]:
    """Return the names of the metrics by their spellings without case, dashes and underscores; names win over synonyms."""
    own = {name: name for name in all_metrics()}
    return {_folded(word): name for word, name in {**_synonyms(), **own}.items()}


def _synonyms() -> dict[str, str]:
    return {word: name for name, entry in all_metrics().items() for word in entry.also}


def _folded(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).casefold()


def all_metrics() -> dict[str, Metric]:
    """Return every known metric by name."""
    return all_of("metric")


def resolve(text: str | MetricSpec) -> tuple[MetricSpec, Metric, dict[str, Setting]]:
    """Return the parsed form, the entry and the full settings of a metric given as text."""
    spec = parse(text)
    entry = find_metric(spec.name)
    return spec, entry, entry.settings(spec)


def add(kind: Kind, name: str, value: object, *, origin: str = "") -> None:
    """Register an entry.

    Parameters
    ----------
    kind
        `metric`, `reader`, `protocol`, `detector`, `attack` or `codec`.
    name
        The name of the entry in every command.
    value
        A metric is registered by `hitmiss.metric`, an attack by `hitmiss.attacks.family.attack`. A reader takes a file
        and returns a frame or the names of its columns; a protocol is a `Protocol`, a codec a
        `hitmiss.attacks.codecs.Codec`; a detector takes the text after `name:` and an `Opening` and returns a detector.
    origin
        The module that the entry comes from: the same module may register a name again.

    Raises
    ------
    UsageError
        If the name is already taken.

    >>> add("codec", "telephone", object(), origin="lab")
    >>> "telephone" in all_of("codec")
    True
    >>> forget("telephone", "codec")
    """
    if kind not in HOMES:
        raise UnknownName("kind of entry", kind, HOMES)
    if not origin.startswith("hitmiss."):
        _load(kind)  # load the built-in entries first, so that a conflict is reported for the new entry
    held = _entries[kind].get(name)
    if held is not None and held is not value and (not origin or _origins.get((kind, name)) != origin):
        whose = _origins.get((kind, name))
        raise UsageError(f"{kind} {name!r} exists already{f', from {whose}' if whose else ''}", code="name-taken")
    _entries[kind][name] = value
    _origins[kind, name] = origin


@dataclass(frozen=True, eq=False)
class Later:
    """An entry that is made when it is first asked for."""

    make: Callable[[], object]


def _made(kind: Kind, name: str) -> Any:
    held = _entries[kind][name]
    if isinstance(held, Later):
        held = _entries[kind][name] = held.make()
    return held


def find(kind: Kind, name: str) -> Any:
    """Return the entry of that name, or raise `UnknownName`; plug-ins are searched only if it is not built in."""
    _load(kind)
    if name in _entries[kind]:
        return _made(kind, name)
    known = all_of(kind)
    if name not in known:
        raise UnknownName(kind, name, known, _synonyms() if kind == "metric" else None)
    return known[name]


def all_of(kind: Kind) -> dict[str, Any]:
    """Return every entry of a kind by name."""
    _load(kind)
    _load_plugins()
    return {name: _made(kind, name) for name in sorted(_entries[kind])}


def load_plugin_file(path: str | Path) -> None:
    """Run a Python file that registers entries of any kind (`--plugin my_metrics.py`)."""
    from hitmiss.core import artifacts

    path = Path(path)
    if not path.is_file():
        raise UsageError(f"no plug-in file {path}")
    artifacts.note_input(path)
    name = f"hitmiss_plugin_{path.stem}_{zlib.crc32(str(path.resolve()).encode()):08x}"  # two files of one name differ
    module_spec = importlib.util.spec_from_file_location(name, path)
    if module_spec is None or module_spec.loader is None:
        raise UsageError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[name] = module
    try:
        module_spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise UsageError(f"the plug-in {path.name} could not be loaded: {type(error).__name__}: {error}") from error


def _load(kind: Kind) -> None:
    if kind not in _loaded:
        _loaded.add(kind)
        for module in HOMES[kind]:
            importlib.import_module(module)


def _load_plugins() -> None:
    if "plugins" in _loaded:
        return
    _loaded.add("plugins")
    from importlib.metadata import entry_points  # imported here because it is slow to import

    for entry in entry_points(group="hitmiss.plugins"):
        try:
            entry.load()
        except Exception as error:  # a broken plug-in must not take the tool down with it
            warnings.warn(f"the plug-in {entry.name!r} could not be loaded: {error}", stacklevel=2)
