"""Every kind of figure of trials, in the order of the report."""

from __future__ import annotations

from typing import Final

from hitmiss.reports.displays.bayes_error import BayesErrorDisplay
from hitmiss.reports.displays.det import DetDisplay
from hitmiss.reports.displays.display import Display
from hitmiss.reports.displays.histogram import HistogramDisplay
from hitmiss.reports.displays.precision_recall import PrDisplay
from hitmiss.reports.displays.reliability import ReliabilityDisplay
from hitmiss.reports.displays.risk_coverage import RiskCoverageDisplay
from hitmiss.reports.displays.roc import RocDisplay
from hitmiss.reports.displays.tippett import TippettDisplay

KINDS: Final[dict[str, type[Display]]] = {
    display.kind: display
    for display in (
        DetDisplay,
        RocDisplay,
        PrDisplay,
        HistogramDisplay,
        ReliabilityDisplay,
        BayesErrorDisplay,
        TippettDisplay,
        RiskCoverageDisplay,
    )
}
