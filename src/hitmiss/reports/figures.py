"""Figures for papers and notebooks: every picture of the report as an object with numbers and a `plot`.

    from hitmiss.reports import figures

    ax = figures.DetDisplay.from_trials(trials).plot()          # axes of a paper's column width
    figures.save(ax, "det.pdf")                                 # .svg, .pdf, .png
    figures.RocDisplay.from_trials(trials).plot(ax=my_axes, name="ours")

`displays(trials)` gives every picture that the trials allow.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from hitmiss.core.errors import DataError
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials
from hitmiss.core.weights import effective_weights
from hitmiss.reports.displays.bayes_error import BayesErrorDisplay
from hitmiss.reports.displays.det import DetDisplay
from hitmiss.reports.displays.display import Costs, Display, Point, operating_points, tally_of
from hitmiss.reports.displays.histogram import HistogramDisplay
from hitmiss.reports.displays.precision_recall import PrDisplay
from hitmiss.reports.displays.reliability import ReliabilityDisplay
from hitmiss.reports.displays.risk_coverage import RiskCoverageDisplay
from hitmiss.reports.displays.robustness import RobustnessDisplay
from hitmiss.reports.displays.roc import RocDisplay
from hitmiss.reports.displays.tippett import TippettDisplay
from hitmiss.reports.matplots import PALETTE, STYLE, save

__all__ = [
    "PALETTE",
    "STYLE",
    "BayesErrorDisplay",
    "Costs",
    "DetDisplay",
    "Display",
    "HistogramDisplay",
    "Point",
    "PrDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "RobustnessDisplay",
    "RocDisplay",
    "TippettDisplay",
    "displays",
    "save",
    "save_figures",
]


def displays(trials: Trials, costs: Costs | None = None) -> list[Display]:
    """Return every picture that the trials of one run allow: of scores with both classes, of stated confidences.

    >>> [d.kind for d in displays(Trials.of([1, 1, 0, 0], [0.9, 0.4, 0.6, 0.1]))]
    ['det', 'roc', 'pr', 'histogram']
    """
    made, tally = list[Display](), _tally(trials)
    if tally is not None:
        made += [
            DetDisplay.from_trials(trials, costs=costs, tally=tally),
            RocDisplay.from_trials(trials, costs=costs, tally=tally),
            PrDisplay.from_trials(trials, tally=tally),
            HistogramDisplay.from_trials(trials, tally=tally),
        ]
        if trials.header.score_kind == "llr":
            made += [d.from_trials(trials, tally=tally) for d in (BayesErrorDisplay, TippettDisplay)]
    for make in (partial(ReliabilityDisplay.from_trials, tally=tally), RiskCoverageDisplay.from_trials):
        try:
            made.append(make(trials))
        except (DataError, ValueError):
            continue  # no confidence was stated
    return made


def _tally(trials: Trials) -> Tally | None:
    """Count the scores once for every display; None without scores of both classes."""
    try:
        return tally_of(trials) if "score" in trials.frame.columns else None
    except DataError:
        return None


def save_figures(folder: str | Path, trials: Trials, threshold: float) -> list[Path]:
    """Draw histogram, ROC and DET of scores into a folder, as PNG, and mark a threshold (accept above it).

    Raises
    ------
    DataError
        `one-class`: there are no finite scores of both classes.
    """
    label, score = trials.label, trials.score
    if not (np.isfinite(score).any() and 0 < label.sum() < len(label)):
        raise DataError.of("one-class", what="a picture of scores")
    tally, head = Tally.of(label, score, effective_weights(trials)), trials.header
    points = operating_points(tally, threshold=float(np.nextafter(threshold, np.inf)))  # accepted are scores above it
    made: list[Display] = [
        HistogramDisplay.from_tally(tally, head.positive, head.negative, points=points),
        RocDisplay.from_tally(tally, head.positive, head.negative, points),
        DetDisplay.from_tally(tally, head.positive, head.negative, points),
    ]
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for display in made:
        save(display.plot(), target / f"{display.kind}.png", dpi=200)
    return [target / f"{display.kind}.png" for display in made]


def __getattr__(name: str) -> object:
    """Name the picture that was probably meant."""
    near = [one for one in __all__ if name.lower().replace("_", "") in one.lower()] if len(name) > 1 else []
    hint = f"; did you mean hm.figures.{near[0]}.from_trials(trials).plot()?" if near and name[0] != "_" else ""
    raise AttributeError(f"module 'hitmiss.reports.figures' has no attribute {name!r}{hint}")
