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
    from hitmiss.calibration import calibrate
    from hitmiss.comparing.comparison import compare
    from hitmiss.design import Design
    from hitmiss.errors import DataError, HitmissError, UsageError
    from hitmiss.io import read
    from hitmiss.measuring.measurement import measure
    from hitmiss.protocol import evaluate
    from hitmiss.readspec import ReadSpec
    from hitmiss.registry import metric
    from hitmiss.results import Estimate, Results
    from hitmiss.tally import Tally
    from hitmiss.trials import Header, Trials
    from hitmiss.verification import verify

_HOMES = {
    "metrics": "hitmiss.metrics",
    "Tally": "hitmiss.tally",
    "Trials": "hitmiss.trials",
    "Header": "hitmiss.trials",
    "Estimate": "hitmiss.results",
    "Results": "hitmiss.results",
    "calibrate": "hitmiss.calibration",
    "compare": "hitmiss.comparing.comparison",
    "read": "hitmiss.io",
    "Design": "hitmiss.design",
    "ReadSpec": "hitmiss.readspec",
    "verify": "hitmiss.verification",
    "measure": "hitmiss.measuring.measurement",
    "evaluate": "hitmiss.protocol",
    "metric": "hitmiss.registry",
    "DataError": "hitmiss.errors",
    "HitmissError": "hitmiss.errors",
    "UsageError": "hitmiss.errors",
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
