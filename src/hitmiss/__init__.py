"""hitmiss evaluates detectors: the official figures of a field, with honest confidence intervals, per domain.

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
    from hitmiss.claims.open import open_run
    from hitmiss.claims.verify import verify
    from hitmiss.core.errors import DataError, EnvironmentFault, HitmissError, UsageError
    from hitmiss.core.question import Design, ReadSpec
    from hitmiss.core.registry import metric
    from hitmiss.core.results import Estimate, Results
    from hitmiss.core.tally import Tally
    from hitmiss.core.trials import Header, Trials
    from hitmiss.derive.bands import at_bands
    from hitmiss.derive.calibration import calibrate, recalibrate
    from hitmiss.derive.decisions import at_threshold as decide
    from hitmiss.derive.decisions import best_threshold
    from hitmiss.engine.compare import Comparison, compare
    from hitmiss.engine.gate import gate
    from hitmiss.engine.measure import measure
    from hitmiss.engine.rank import Ranking
    from hitmiss.engine.rank import compare_all as rank
    from hitmiss.engine.repeats import over_repeats
    from hitmiss.evaluation.protocol import evaluate
    from hitmiss.io import read
    from hitmiss.probes.domain import probe
    from hitmiss.robustness.manipulation import drift

_HOMES = {
    "metrics": ("hitmiss.metrics", ""),
    "DataError": ("hitmiss.core.errors", "DataError"),
    "EnvironmentFault": ("hitmiss.core.errors", "EnvironmentFault"),
    "HitmissError": ("hitmiss.core.errors", "HitmissError"),
    "UsageError": ("hitmiss.core.errors", "UsageError"),
    "Design": ("hitmiss.core.question", "Design"),
    "ReadSpec": ("hitmiss.core.question", "ReadSpec"),
    "metric": ("hitmiss.core.registry", "metric"),
    "Estimate": ("hitmiss.core.results", "Estimate"),
    "Results": ("hitmiss.core.results", "Results"),
    "Tally": ("hitmiss.core.tally", "Tally"),
    "Header": ("hitmiss.core.trials", "Header"),
    "Trials": ("hitmiss.core.trials", "Trials"),
    "read": ("hitmiss.io", "read"),
    "decide": ("hitmiss.derive.decisions", "at_threshold"),
    "best_threshold": ("hitmiss.derive.decisions", "best_threshold"),
    "at_bands": ("hitmiss.derive.bands", "at_bands"),
    "calibrate": ("hitmiss.derive.calibration", "calibrate"),
    "recalibrate": ("hitmiss.derive.calibration", "recalibrate"),
    "measure": ("hitmiss.engine.measure", "measure"),
    "Comparison": ("hitmiss.engine.compare", "Comparison"),
    "compare": ("hitmiss.engine.compare", "compare"),
    "Ranking": ("hitmiss.engine.rank", "Ranking"),
    "rank": ("hitmiss.engine.rank", "compare_all"),
    "over_repeats": ("hitmiss.engine.repeats", "over_repeats"),
    "gate": ("hitmiss.engine.gate", "gate"),
    "drift": ("hitmiss.robustness.manipulation", "drift"),
    "probe": ("hitmiss.probes.domain", "probe"),
    "evaluate": ("hitmiss.evaluation.protocol", "evaluate"),
    "open_run": ("hitmiss.claims.open", "open_run"),
    "verify": ("hitmiss.claims.verify", "verify"),
}
"""Each public name, with the module that defines it and its name in that module."""

__all__ = [
    "Comparison",
    "DataError",
    "Design",
    "EnvironmentFault",
    "Estimate",
    "Header",
    "HitmissError",
    "Ranking",
    "ReadSpec",
    "Results",
    "Tally",
    "Trials",
    "UsageError",
    "__version__",
    "at_bands",
    "best_threshold",
    "calibrate",
    "compare",
    "decide",
    "drift",
    "evaluate",
    "gate",
    "measure",
    "metric",
    "metrics",
    "open_run",
    "over_repeats",
    "probe",
    "rank",
    "read",
    "recalibrate",
    "verify",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'hitmiss' has no attribute {name!r}")
    module, own = _HOMES[name]
    loaded = importlib.import_module(module)
    value: object = getattr(loaded, own) if own else loaded
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
