"""From names to objects: metrics with settings as text, expressions of estimates, and the registry of names."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from hitmiss.core.errors import UnknownName, UsageError

if TYPE_CHECKING:
    from hitmiss.core.sorting import Floats
from hitmiss.core.metric import Best, Chance, Metric, Of
from hitmiss.core.metric_spec import MetricSpec, Setting, parse

F = TypeVar("F", bound=Callable[..., float])
Kind = Literal["metric", "reader", "protocol", "detector", "attack", "codec"]
HOMES: dict[Kind, tuple[str, ...]] = {
    "metric": ("hitmiss.metrics.families",),
    "reader": ("hitmiss.io.readers",),
    "protocol": ("hitmiss.protocols",),
    "detector": ("hitmiss.detection.opening",),
    "attack": ("hitmiss.attacks.audio", "hitmiss.attacks.ecg", "hitmiss.attacks.text", "hitmiss.attacks.image"),
    "codec": ("hitmiss.attacks.codecs",),
}
"""The modules that register the built-in entries; imported when a name of their kind is first looked up."""
LISTED: dict[Kind, str] = {"metric": "hitmiss.metrics"}
"""Packages that list, in `HOMES`, the module of each name, so that one name can be looked up without the other modules."""
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
    title: str = "",
    formula: str = "",
    undefined: str = "",
    symbol: str = "",
    chance: float | Chance | None = None,
    of: Of = "",
    share: bool = False,
    ranks: bool = False,
    answered: str = "",
    covers: Of = "",
    name: str = "",
    brought: tuple[str, ...] = (),
    tied: str = "",
    from_rates: bool = False,
    at_best: str = "",
    by_chance: str = "",
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
        False if replicates do not show how uncertain the number is; it then gets no interval.
    judged
        Computes a metric of confidences from `metrics.confidence.Judged`, for many replicates at once.
    prevalence
        Whether the number depends on the share of positives (F1, precision, Brier, average precision). If it does,
        trials are resampled from both classes together; otherwise (EER, AUC, recall) within each class.
    one_by_one
        Whether the number goes through the trials one by one (a median, the area of a risk–coverage curve), so that a
        weight is a number of trials. Such an estimate is refused for sampling weights.
    zero
        Whether the number is 0 if there is nothing to divide by, under a protocol with that convention (precision,
        recall, F1). Any other number is undefined then.
    also
        Other names by which the metric is understood, such as `auc` for `roc_auc`.
    two_sided
        Whether neither end is better in itself, as for a threshold or the size of a change; a rule of a gate may then
        set a limit on either side.
    ends
        A function that takes the settings and returns the range, if it depends on them.
    title, formula, undefined
        The name in words, how the metric is computed, and when it is undefined; each is read from the docstring if it
        is not given: its first line is `Title: what it is`, the next paragraph begins with the formula and says
        `Undefined (NaN) …`.
    symbol
        The name in tables of papers; LaTeX is allowed.
    chance
        The value without any detector: a number, or a `Chance`, which says also what gives that value. Verdicts
        compare with it.
    of
        The trials that the metric is over: `all`, `answered`, `positives`, `negatives`, or `both` if it compares the
        classes. It says in which slices of one class the metric means something.
    share
        Whether the metric is a share of trials, shown in per cent in a headline.
    ranks
        Whether the metric depends on the order of the scores, so that it shows reversed and constant scores.
    answered
        The metric with the same meaning over the answered trials, by which a system that abstains is judged.
    covers
        The trials of which the metric is the share that was answered: `all`, `positives` or `negatives`.
    name
        The name of the metric, if it is not that of the function.
    brought
        Settings that trials may bring with them, each slice its own: the error rates of a speaker verifier.
    tied
        The metric under another rule for tied scores, shown beside it where ties change the number.
    from_rates
        Whether the number at any share of positives follows from recall and FPR, rising or falling with each.
    at_best
        The same cost at the best threshold: the difference is what miscalibration costs.
    by_chance
        The name of the row beside it that says how large it is by chance where confidences are right.

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
        called = name or function.__name__
        entry = Metric(
            called,
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
            title,
            formula,
            undefined,
            symbol,
            Chance(chance) if isinstance(chance, int | float) else chance,
            of,
            share,
            ranks,
            answered,
            covers,
            brought,
            tied,
            from_rates,
            at_best,
            by_chance,
        )
        add("metric", called, entry, origin=function.__module__)
        return function

    return register


def _read_signature(function: Callable[..., object]) -> tuple[tuple[str, ...], dict[str, Setting]]:
    parameters = inspect.signature(function).parameters.values()
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if "weight" not in positional:
        raise UsageError.of("metric-without-weight", name=function.__name__)
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


def metric_of(text: str) -> Metric | None:
    """Return the metric of a name in a table, with or without settings; None if no metric is called so.

    >>> metric_of("min_dcf(c_fa=1)").symbol, metric_of("gap")
    ('minDCF', None)
    """
    try:
        name = known_name(parse(text).name)
    except UsageError:
        return None
    return _made("metric", name) if name in _entries["metric"] else None


def known_name(name: str) -> str:
    """Return the metric's own name for another spelling or a usual synonym; a name of no metric is returned as it is.

    >>> known_name("AUROC"), known_name("minDCF"), known_name("eer"), known_name("nothing")
    ('roc_auc', 'min_dcf', 'eer', 'nothing')
    """
    _load("metric", name)
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
        raise UsageError.of("name-taken", kind=kind, name=name, part=f", from {whose}" if whose else "")
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
    _load(kind, name)
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
        raise UsageError.of("missing-file", what="plug-in file", file=path)
    artifacts.note_input(path)
    name = f"hitmiss_plugin_{path.stem}_{zlib.crc32(str(path.resolve()).encode()):08x}"  # two files of one name differ
    module_spec = importlib.util.spec_from_file_location(name, path)
    if module_spec is None or module_spec.loader is None:
        raise UsageError.of("bad-plugin/python", path=path)
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[name] = module
    try:
        module_spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise UsageError.of("bad-plugin", path_name=path.name, name=type(error).__name__, error=error) from error


def _load(kind: Kind, name: str = "") -> None:
    """Import the modules that register a kind; for a name, only the module it is listed under if that registers it."""
    if kind in _loaded or (name and _load_listed(kind, name)):
        return
    _loaded.add(kind)
    for module in HOMES[kind]:
        importlib.import_module(module)


def _load_listed(kind: Kind, name: str) -> bool:
    """Import the module that a name is listed under, and return whether the name is registered now."""
    if kind in LISTED and name not in _entries[kind]:
        homes: dict[str, str] = importlib.import_module(LISTED[kind]).HOMES
        if name in homes:
            importlib.import_module(homes[name])
    return name in _entries[kind]


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
