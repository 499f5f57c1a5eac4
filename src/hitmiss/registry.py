"""Who answers to which name: metrics, readers and protocols, ours and those of plug-ins.

Built-ins are imported when a name is first asked for, so that `import hitmiss` and `--help` stay light.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from hitmiss.errors import UnknownName, UsageError
from hitmiss.spec import Setting, Spec, parse

Best = Literal["low", "high"]
F = TypeVar("F", bound=Callable[..., Any])

COLUMNS = ("label", "score", "decision", "confidence", "unparsed", "seconds")
"""Columns of the trials that a metric may ask for by naming a positional parameter after them."""


@dataclass(frozen=True)
class Metric:
    """What the engine needs to know about a metric function."""

    name: str
    function: Callable[..., float]
    best: Best
    range: tuple[float, float]
    columns: tuple[str, ...]
    defaults: dict[str, Setting] = field(hash=False)
    form: Callable[..., Any] | None = None
    kinds: tuple[str, ...] = ()
    positive: str | None = None
    interval: bool = True
    judged: Callable[..., Any] | None = None

    def settings(self, spec: Spec) -> dict[str, Setting]:
        """Defaults overlaid by the spec's settings; an unknown setting is an error."""
        for key, _ in spec.settings:
            if key not in self.defaults:
                raise UnknownName(f"setting of {self.name}", key, self.defaults)
        return {**self.defaults, **dict(spec.settings)}


_metrics: dict[str, Metric] = {}
_others: dict[str, dict[str, Any]] = {"reader": {}, "protocol": {}}
HOMES = {"reader": "hitmiss.io.readers", "protocol": "hitmiss.protocols"}
_loaded: set[str] = set()


def metric(
    *,
    best: Best,
    range: tuple[float, float] = (0.0, 1.0),
    form: Callable[..., Any] | None = None,
    kinds: tuple[str, ...] = (),
    positive: str | None = None,
    interval: bool = True,
    judged: Callable[..., Any] | None = None,
) -> Callable[[F], F]:
    """Register a metric function under its own name.

    Positional parameters name columns of the trials (`label`, `score`, `decision`, …) and end with `weight`;
    keyword-only parameters are settings. `form` takes the settings and gives the metric's shape (`stats.forms`), which is
    how the engine counts and resamples it fast; without it the metric is called on arrays.
    `kinds` lists the score kinds on which the metric makes sense (empty: any); `positive` is the class that its name
    takes to be the positive one (None: any). `interval=False`: replicates are no guide to how sure the figure is.
    `judged` computes a metric of confidences from `metrics.confidence.Judged`, for many replicates at once.

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
        if not function.__module__.startswith("hitmiss."):
            _load("hitmiss.metrics")  # so that a name that is taken is the newcomer's fault
        if name in _metrics and _metrics[name].function.__module__ != function.__module__:
            raise UsageError(f"metric {name!r} exists already, from {_metrics[name].function.__module__}")
        _metrics[name] = Metric(name, function, best, range, columns, defaults, form, kinds, positive, interval, judged)
        return function

    return register


def _read_signature(function: Callable[..., Any]) -> tuple[tuple[str, ...], dict[str, Setting]]:
    parameters = inspect.signature(function).parameters.values()
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if "weight" not in positional:
        raise UsageError(f"metric {function.__name__!r} must take weight=None after its columns")
    for name in positional:
        if name not in (*COLUMNS, "weight"):
            raise UnknownName(f"column in the signature of {function.__name__}", name, COLUMNS)
    defaults = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    return tuple(n for n in positional if n != "weight"), defaults


def forget(name: str) -> None:
    """Take a metric out of the registry (plug-in authors' tests)."""
    _metrics.pop(name, None)


def find_metric(name: str) -> Metric:
    """The metric of that name, or UnknownName with the nearest. Plug-ins are looked for only where it is not ours."""
    _load("hitmiss.metrics")
    if name in _metrics:
        return _metrics[name]
    known = all_metrics()
    if name not in known:
        raise UnknownName("metric", name, known)
    return known[name]


def all_metrics() -> dict[str, Metric]:
    """Every known metric by name."""
    _load("hitmiss.metrics")
    _load_plugins()
    return dict(sorted(_metrics.items()))


def resolve(text: str | Spec) -> tuple[Spec, Metric, dict[str, Setting]]:
    """A metric's text to its parsed form, its entry and its full settings."""
    spec = parse(text)
    entry = find_metric(spec.name)
    return spec, entry, entry.settings(spec)


def add(kind: str, name: str, value: Any) -> None:
    """Register a reader or a protocol."""
    if name in _others[kind] and _others[kind][name] is not value:
        raise UsageError(f"{kind} {name!r} exists already")
    _others[kind][name] = value


def find(kind: str, name: str) -> Any:
    """The reader or protocol of that name, or UnknownName with the nearest. Plug-ins are asked after our own."""
    _load(HOMES[kind])
    if name in _others[kind]:
        return _others[kind][name]
    known = all_of(kind)
    if name not in known:
        raise UnknownName(kind, name, known)
    return known[name]


def all_of(kind: str) -> dict[str, Any]:
    """Every reader or protocol by name."""
    _load(HOMES[kind])
    _load_plugins()
    return dict(sorted(_others[kind].items()))


def load_plugin_file(path: str | Path) -> None:
    """Run a Python file that registers metrics, readers or protocols (`--plugin my_metrics.py`)."""
    path = Path(path)
    if not path.is_file():
        raise UsageError(f"no plug-in file {path}")
    name = f"hitmiss_plugin_{path.stem}_{zlib.crc32(str(path.resolve()).encode()):08x}"  # two files of one name are two
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


def _load(module: str) -> None:
    if module not in _loaded:
        _loaded.add(module)
        importlib.import_module(module)


def _load_plugins() -> None:
    if "plugins" in _loaded:
        return
    _loaded.add("plugins")
    from importlib.metadata import entry_points  # takes longer to import than most of us

    for entry in entry_points(group="hitmiss.plugins"):
        try:
            entry.load()
        except Exception as error:  # a broken plug-in must not take the tool down with it
            warnings.warn(f"the plug-in {entry.name!r} could not be loaded: {error}", stacklevel=2)
