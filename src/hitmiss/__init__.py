"""hitmiss evaluates detectors: the official numbers, with honest intervals, per domain.

Three levels, one call each:

    hm.metrics.eer(label, score)                        arrays  -> a number
    hm.measure(trials, ["eer"], by=["codec"])           Trials  -> Results
    hm.evaluate("scores.tsv", key="protocol.tsv", protocol="asvspoof5")    files -> Results

Names are imported when first used, so that `import hitmiss` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hitmiss._version import __version__

if TYPE_CHECKING:
    from hitmiss import metrics
    from hitmiss.claims.verify import verify
    from hitmiss.core.errors import DataError, HitmissError, UsageError
    from hitmiss.core.question import Design, ReadSpec
    from hitmiss.core.registry import metric
    from hitmiss.core.results import Estimate, Results
    from hitmiss.core.tally import Tally
    from hitmiss.core.trials import Header, Trials
    from hitmiss.derive.calibration import calibrate
    from hitmiss.engine.compare import compare
    from hitmiss.engine.measure import measure
    from hitmiss.evaluation.protocol import evaluate
    from hitmiss.io import read

_HOMES = {
    "metrics": "hitmiss.metrics",
    "Tally": "hitmiss.core.tally",
    "Trials": "hitmiss.core.trials",
    "Header": "hitmiss.core.trials",
    "Estimate": "hitmiss.core.results",
    "Results": "hitmiss.core.results",
    "calibrate": "hitmiss.derive.calibration",
    "compare": "hitmiss.engine.compare",
    "read": "hitmiss.io",
    "Design": "hitmiss.core.question",
    "ReadSpec": "hitmiss.core.question",
    "verify": "hitmiss.claims.verify",
    "measure": "hitmiss.engine.measure",
    "evaluate": "hitmiss.evaluation.protocol",
    "metric": "hitmiss.core.registry",
    "DataError": "hitmiss.core.errors",
    "HitmissError": "hitmiss.core.errors",
    "UsageError": "hitmiss.core.errors",
}

__all__ = [
    "DataError",
    "Design",
    "Estimate",
    "Header",
    "HitmissError",
    "ReadSpec",
    "Results",
    "Tally",
    "Trials",
    "UsageError",
    "__version__",
    "calibrate",
    "compare",
    "evaluate",
    "measure",
    "metric",
    "metrics",
    "read",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hitmiss' has no attribute {name!r}")
    module = importlib.import_module(_HOMES[name])
    value = module if _HOMES[name] == f"hitmiss.{name}" and name == "metrics" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
