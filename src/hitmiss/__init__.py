"""hitmiss evaluates detectors: the official numbers of a field, with honest confidence intervals, per domain.

There are three levels, with one call each (docs/api.md lists every public name):

    hm.metrics.eer(label, score)                        arrays  -> a number
    hm.measure(trials, ["eer"], by=["codec"])           Trials  -> Results
    hm.evaluate("scores.tsv", key="protocol.tsv", protocol="asvspoof5")    files -> Results

A name is imported when it is first used, so `import hitmiss` itself is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from hitmiss._version import __version__

if TYPE_CHECKING:
    from hitmiss import metrics
    from hitmiss.attacks.campaign import attack
    from hitmiss.attacks.family import attack as register_attack
    from hitmiss.attacks.family import perturbation
    from hitmiss.attacks.signals import read_signals
    from hitmiss.boards.board import board
    from hitmiss.bridges.accumulator import Accumulator
    from hitmiss.bridges.learning import compute_metrics, scorer
    from hitmiss.bridges.sinks import log
    from hitmiss.claims.open import open_run
    from hitmiss.claims.verify import verify
    from hitmiss.cli.demo import demo_data
    from hitmiss.cli.main import run
    from hitmiss.core.design import Design
    from hitmiss.core.errors import DataError, EnvironmentFault, HitmissError, MissingFile, ResultWarning, UsageError
    from hitmiss.core.header import Header
    from hitmiss.core.read_spec import ReadSpec
    from hitmiss.core.registry import add as register
    from hitmiss.core.registry import metric
    from hitmiss.core.results import Estimate, Results
    from hitmiss.core.tally import Tally
    from hitmiss.core.trials import Trials
    from hitmiss.derive.bands import at_bands, guaranteed
    from hitmiss.derive.decisions import at_threshold as decide
    from hitmiss.derive.recalibration import recalibrate
    from hitmiss.derive.score_model import calibrate, fuse
    from hitmiss.derive.thresholds import best_threshold
    from hitmiss.engine.compare import compare
    from hitmiss.engine.comparison import Comparison
    from hitmiss.engine.measure import measure
    from hitmiss.engine.rank import compare_all as rank
    from hitmiss.engine.ranking import Ranking
    from hitmiss.engine.repeats import over_repeats
    from hitmiss.evaluation.detecting import detect
    from hitmiss.evaluation.evaluate import evaluate, read
    from hitmiss.evaluation.gate import gate
    from hitmiss.outofcore.stream import evaluate_streamed
    from hitmiss.probes.domain import probe
    from hitmiss.reports import figures
    from hitmiss.reports.html import report
    from hitmiss.robustness.manipulation import drift

_HOMES = {
    "metrics": "hitmiss.metrics",
    "figures": "hitmiss.reports.figures",
    "DataError": "hitmiss.core.errors.DataError",
    "EnvironmentFault": "hitmiss.core.errors.EnvironmentFault",
    "HitmissError": "hitmiss.core.errors.HitmissError",
    "MissingFile": "hitmiss.core.errors.MissingFile",
    "ResultWarning": "hitmiss.core.errors.ResultWarning",
    "UsageError": "hitmiss.core.errors.UsageError",
    "Design": "hitmiss.core.design.Design",
    "ReadSpec": "hitmiss.core.read_spec.ReadSpec",
    "metric": "hitmiss.core.registry.metric",
    "register": "hitmiss.core.registry.add",
    "Estimate": "hitmiss.core.results.Estimate",
    "Results": "hitmiss.core.results.Results",
    "Tally": "hitmiss.core.tally.Tally",
    "Header": "hitmiss.core.header.Header",
    "Trials": "hitmiss.core.trials.Trials",
    "read": "hitmiss.evaluation.evaluate.read",
    "at_bands": "hitmiss.derive.bands.at_bands",
    "guaranteed": "hitmiss.derive.bands.guaranteed",
    "calibrate": "hitmiss.derive.score_model.calibrate",
    "fuse": "hitmiss.derive.score_model.fuse",
    "recalibrate": "hitmiss.derive.recalibration.recalibrate",
    "decide": "hitmiss.derive.decisions.at_threshold",
    "best_threshold": "hitmiss.derive.thresholds.best_threshold",
    "measure": "hitmiss.engine.measure.measure",
    "Comparison": "hitmiss.engine.comparison.Comparison",
    "compare": "hitmiss.engine.compare.compare",
    "Ranking": "hitmiss.engine.ranking.Ranking",
    "rank": "hitmiss.engine.rank.compare_all",
    "over_repeats": "hitmiss.engine.repeats.over_repeats",
    "gate": "hitmiss.evaluation.gate.gate",
    "drift": "hitmiss.robustness.manipulation.drift",
    "probe": "hitmiss.probes.domain.probe",
    "attack": "hitmiss.attacks.campaign.attack",
    "read_signals": "hitmiss.attacks.signals.read_signals",
    "perturbation": "hitmiss.attacks.family.perturbation",
    "register_attack": "hitmiss.attacks.family.attack",
    "board": "hitmiss.boards.board.board",
    "evaluate": "hitmiss.evaluation.evaluate.evaluate",
    "detect": "hitmiss.evaluation.detecting.detect",
    "evaluate_streamed": "hitmiss.outofcore.stream.evaluate_streamed",
    "open_run": "hitmiss.claims.open.open_run",
    "verify": "hitmiss.claims.verify.verify",
    "report": "hitmiss.reports.html.report",
    "Accumulator": "hitmiss.bridges.accumulator.Accumulator",
    "compute_metrics": "hitmiss.bridges.learning.compute_metrics",
    "scorer": "hitmiss.bridges.learning.scorer",
    "log": "hitmiss.bridges.sinks.log",
    "run": "hitmiss.cli.main.run",
    "demo_data": "hitmiss.cli.demo.demo_data",
}
"""Each public name, with where it is defined."""
_MODULES = {"metrics", "figures"}
"""Public names that are modules."""

_CALLS = {
    "at_bands", "attack", "best_threshold", "board", "calibrate", "compare", "decide", "detect", "drift", "evaluate",
    "evaluate_streamed", "fuse", "gate", "guaranteed", "log", "measure", "open_run", "over_repeats", "probe", "rank",
    "read", "read_signals", "recalibrate", "report", "verify",
}  # fmt: skip
"""Functions that read, measure or write: their errors are those of hitmiss, and what they warn of is a Python warning."""

_RENAMED = {"at_threshold": ("decide", "0.3.0"), "compare_all": ("rank", "0.3.0")}
"""Each deprecated name, with the name that replaces it and the version in which it ends."""

__all__ = [
    "Accumulator",
    "Comparison",
    "DataError",
    "Design",
    "EnvironmentFault",
    "Estimate",
    "Header",
    "HitmissError",
    "MissingFile",
    "Ranking",
    "ReadSpec",
    "ResultWarning",
    "Results",
    "Tally",
    "Trials",
    "UsageError",
    "__version__",
    "at_bands",
    "attack",
    "best_threshold",
    "board",
    "calibrate",
    "compare",
    "compute_metrics",
    "decide",
    "demo_data",
    "detect",
    "drift",
    "evaluate",
    "evaluate_streamed",
    "figures",
    "fuse",
    "gate",
    "guaranteed",
    "log",
    "measure",
    "metric",
    "metrics",
    "open_run",
    "over_repeats",
    "perturbation",
    "probe",
    "rank",
    "read",
    "read_signals",
    "recalibrate",
    "register",
    "register_attack",
    "report",
    "run",
    "scorer",
    "verify",
]


def __getattr__(name: str) -> object:
    if name in _RENAMED:
        import warnings

        now, end = _RENAMED[name]
        warnings.warn(f"hm.{name} is now hm.{now}; the old name ends with {end}", DeprecationWarning, stacklevel=2)
        return __getattr__(now)
    if name not in _HOMES:
        raise AttributeError(f"module 'hitmiss' has no attribute {name!r}{_meant(name)}")
    module, _, own = _HOMES[name].rpartition(".")
    if name in _MODULES:
        value: object = importlib.import_module(_HOMES[name])
    else:
        value = getattr(importlib.import_module(module), own)
    if name in _CALLS:
        from hitmiss.core.public_call import public

        value = public(value, name)  # type: ignore[arg-type]
    globals()[name] = value
    return value


_OTHERWISE = {
    "score": "hm.evaluate", "score_file": "hm.evaluate", "load": "hm.Results.load", "load_results": "hm.Results.load",
    "plot": "results.plot()", "figure": "results.plot()", "threshold": "hm.best_threshold", "read_csv": "hm.read",
    "compute_eer": "hm.metrics.eer", "compute_min_dcf": "hm.metrics.min_dcf", "bootstrap_ci": "hm.evaluate(…, bootstrap=1000)",
    "evaluate_per_domain": "hm.evaluate(…, by='codec')",
}  # fmt: skip
"""What else people look for under these names."""


def _meant(name: str) -> str:
    """Return what was probably meant, as a question: a public name, a metric, or a verb of the command line."""
    from difflib import get_close_matches

    if name.startswith("_"):
        return ""
    if name in _OTHERWISE or "results" in name:
        return f"; did you mean {_OTHERWISE.get(name, 'hm.Results.load')}?"
    from hitmiss.core.registry import all_metrics, known_name

    if known_name(name) in all_metrics():
        return f"; did you mean hm.metrics.{known_name(name)}?"
    from hitmiss.cli.main import VERBS

    if name in VERBS:
        return f"; it is a verb of the command line: hitmiss {name}, in Python hm.run(['{name}', …])"
    near = get_close_matches(name, __all__, 1)
    return f"; did you mean hm.{near[0]}?" if near else "; docs/api.md and dir(hitmiss) list what there is"


def __dir__() -> list[str]:
    return sorted(__all__)
