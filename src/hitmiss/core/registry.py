"""Who answers to which name: metrics, readers, protocols, detectors, attacks and codecs, ours and those of plug-ins.

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

from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.core.schema import Setting, Spec, parse

Best = Literal["low", "high"]
F = TypeVar("F", bound=Callable[..., Any])

Kind = Literal["metric", "reader", "protocol", "detector", "attack", "codec"]
HOMES: dict[Kind, tuple[str, ...]] = {
    "metric": ("hitmiss.metrics",),
    "reader": ("hitmiss.io.readers",),
    "protocol": ("hitmiss.protocols",),
    "detector": ("hitmiss.detect.detector",),
    "attack": ("hitmiss.attack.audio", "hitmiss.attack.ecg", "hitmiss.attack.text", "hitmiss.attack.image"),
    "codec": ("hitmiss.attack.codecs",),
}
"""The modules that register our own entries when a name of their kind is first asked for."""


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
    prevalence: bool = True

    def settings(self, spec: Spec) -> dict[str, Setting]:
        """Defaults overlaid by the spec's settings; an unknown setting is an error."""
        for key, _ in spec.settings:
            if key not in self.defaults:
                raise UnknownName(f"setting of {self.name}", key, self.defaults)
        for key, value in spec.settings:
            default = self.defaults[key]
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
    form: Callable[..., Any] | None = None,
    kinds: tuple[str, ...] = (),
    positive: str | None = None,
    interval: bool = True,
    judged: Callable[..., Any] | None = None,
    prevalence: bool = True,
) -> Callable[[F], F]:
    """Register a metric function under its own name.

    Positional parameters name columns of the trials (`label`, `score`, `decision`, or one of the user's own) and end with
    `weight`; keyword-only parameters are settings. `form` takes the settings and gives the metric's shape (`stats.forms`), which is
    how the engine counts and resamples it fast; without it the metric is called on arrays.
    `kinds` lists the score kinds on which the metric makes sense (empty: any); `positive` is the class that its name
    takes to be the positive one (None: any). `interval=False`: replicates are no guide to how sure the figure is.
    `judged` computes a metric of confidences from `metrics.confidence.Judged`, for many replicates at once.
    `prevalence`: whether the figure depends on how many trials are positive (F1, precision, Brier, average precision);
    then trials are drawn from all, and else within each class (EER, AUC, recall: `prevalence=False`).

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
            name, function, best, range, columns, defaults, form, kinds, positive, interval, judged, prevalence
        )
        add("metric", name, entry, origin=function.__module__)
        return function

    return register


def _read_signature(function: Callable[..., Any]) -> tuple[tuple[str, ...], dict[str, Setting]]:
    parameters = inspect.signature(function).parameters.values()
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if "weight" not in positional:
        raise UsageError(f"metric {function.__name__!r} must take weight=None after its columns")
    defaults = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    return tuple(n for n in positional if n != "weight"), defaults


def forget(name: str, kind: Kind = "metric") -> None:
    """Take an entry out of the registry (plug-in authors' tests)."""
    _entries[kind].pop(name, None)
    _origins.pop((kind, name), None)


def find_metric(name: str) -> Metric:
    """The metric of that name, or UnknownName with the nearest."""
    found: Metric = find("metric", name)
    return found


def all_metrics() -> dict[str, Metric]:
    """Every known metric by name."""
    return all_of("metric")


def resolve(text: str | Spec) -> tuple[Spec, Metric, dict[str, Setting]]:
    """A metric's text to its parsed form, its entry and its full settings."""
    spec = parse(text)
    entry = find_metric(spec.name)
    return spec, entry, entry.settings(spec)


def add(kind: Kind, name: str, value: Any, *, origin: str = "") -> None:
    """Register an entry.

    Parameters
    ----------
    kind
        `metric`, `reader`, `protocol`, `detector`, `attack` or `codec`.
    name
        What it is called from now on, in every verb.
    value
        A metric is registered by `hitmiss.metric`, an attack by `hitmiss.attack.family.attack`. A reader takes a file and
        gives a frame or the names of its columns, a protocol is a `Protocol`, a codec a `hitmiss.attack.codecs.Codec`, a
        detector takes the text after `name:` and an `Opening` and gives a detector.
    origin
        The module that it comes from: the same module may register a name again.

    Raises
    ------
    UsageError
        Where the name is taken.
    """
    if kind not in HOMES:
        raise UnknownName("kind of entry", kind, HOMES)
    if not origin.startswith("hitmiss."):
        _load(kind)  # so that a name that is taken is the newcomer's fault
    held = _entries[kind].get(name)
    if held is not None and held is not value and (not origin or _origins.get((kind, name)) != origin):
        whose = _origins.get((kind, name))
        raise UsageError(f"{kind} {name!r} exists already{f', from {whose}' if whose else ''}", code="name-taken")
    _entries[kind][name] = value
    _origins[kind, name] = origin


def find(kind: Kind, name: str) -> Any:
    """The entry of that name, or UnknownName with the nearest. Plug-ins are looked for only where it is not ours."""
    _load(kind)
    if name in _entries[kind]:
        return _entries[kind][name]
    known = all_of(kind)
    if name not in known:
        raise UnknownName(kind, name, known)
    return known[name]


def all_of(kind: Kind) -> dict[str, Any]:
    """Every entry of a kind by name."""
    _load(kind)
    _load_plugins()
    return dict(sorted(_entries[kind].items()))


def load_plugin_file(path: str | Path) -> None:
    """Run a Python file that registers entries of any kind (`--plugin my_metrics.py`)."""
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


def _load(kind: Kind) -> None:
    if kind not in _loaded:
        _loaded.add(kind)
        for module in HOMES[kind]:
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
