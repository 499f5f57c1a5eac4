"""One threshold through every view: the numbers that a page needs to move DET, histogram, confusion and cost together.

Rates come from the kept points of the DET curve, so every rate shown was counted and not interpolated.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import ndtri

from hitmiss.core.sorting import Floats
from hitmiss.reports.displays.det import DetDisplay
from hitmiss.reports.displays.display import Costs
from hitmiss.reports.displays.roc import RocDisplay
from hitmiss.reports.evaluations import Evaluation

MOST_RUNS: Final = 7
"""Number of runs that can be explored; more would make the page heavy."""
STEPS: Final = 160


@dataclass(frozen=True)
class Explorer:
    """The runs that can be explored as JSON, the class names, and the initial costs."""

    positive: str
    negative: str
    runs: tuple[str, ...]
    data: str
    costs: Costs
    n: tuple[int, int]
    higher: str
    """The class that scores from the threshold on are called."""
    first: tuple[float, float, float]
    """The EER threshold of the first run, with its miss and false-alarm rates: shown without scripts."""


def explorer(evaluation: Evaluation, costs: Costs | None) -> Explorer | None:
    """Return what can be explored of an evaluation; None if no run has a DET curve."""
    found: list[tuple[str, DetDisplay]] = [(n, d) for n, d in evaluation.leading("det") if isinstance(d, DetDisplay)][
        :MOST_RUNS
    ]
    if not found:
        return None
    whole = {name: d for name, d in evaluation.lines("roc") if isinstance(d, RocDisplay)}
    runs = []
    for name, d in found:
        threshold, far, frr = _rates(d, whole.get(name))
        held = np.flatnonzero(np.isfinite(threshold))
        if not len(held):
            continue
        held = held[np.unique(np.linspace(0, len(held) - 1, min(STEPS, len(held))).astype(int))]
        point = next((p for p in d.points if p.label == "EER"), None)
        at = int(np.argmin(np.abs(threshold[held] - point.threshold))) if point is not None else 0
        least = [0.5 / max(n, 1) for n in (d.n_negative, d.n_positive)]
        places = [np.clip(rate[held], end, 1 - end) for rate, end in zip((far, frr), least, strict=True)]
        runs.append(
            {
                "name": name,
                "n": [d.n_positive, d.n_negative],
                "t": [float(f"{v:.5g}") for v in threshold[held]],
                "far": [float(f"{v:.5g}") for v in far[held]],
                "frr": [float(f"{v:.5g}") for v in frr[held]],
                "x": [float(f"{v:.4g}") for v in ndtri(places[0])],
                "y": [float(f"{v:.4g}") for v in ndtri(places[1])],
                "start": at,
            }
        )
    if not runs:
        return None
    explored = {str(run["name"]) for run in runs}
    found = [(name, d) for name, d in found if name in explored]
    d = found[0][1]
    point = next((p for p in d.points if p.label == "EER"), None)
    first = (point.threshold, point.frr, point.far) if point is not None else (0.0, 0.0, 0.0)
    data = json.dumps(runs, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c").replace("&", "\\u0026")
    names = tuple(name for name, _ in found)
    sizes, higher = (d.n_positive, d.n_negative), d.higher or d.positive
    return Explorer(d.positive, d.negative, names, data, costs or Costs(0.5, 1.0, 1.0), sizes, higher, first)


def _rates(d: DetDisplay, whole: RocDisplay | None) -> tuple[Floats, Floats, Floats]:
    """Return thresholds with both error rates; a DET curve leaves out rates of 0 and 1, so a perfect one is empty."""
    if len(d.threshold) or whole is None:
        return d.threshold, d.far, d.frr
    return whole.threshold, whole.fpr, 1.0 - whole.tpr
