"""How to read each figure, and its numbers as a table, also for screen readers and browsers without scripts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

from hitmiss.core.sorting import Floats
from hitmiss.findings.wording import per_cent
from hitmiss.reports.confidence_displays import ReliabilityDisplay, RiskCoverageDisplay
from hitmiss.reports.curve_displays import DetDisplay, PrDisplay, RocDisplay
from hitmiss.reports.histogram_display import HistogramDisplay
from hitmiss.reports.likelihood_displays import BayesErrorDisplay, TippettDisplay
from hitmiss.reports.robustness_display import RobustnessDisplay
from hitmiss.reports.table import Table, TableCell

D = TypeVar("D")
Lines = Sequence[tuple[str, D]]


@dataclass(frozen=True)
class Reading:
    """A figure's title, how to read it, and whether it shows a single run."""

    title: str
    text: str
    single: bool = False


READINGS: Final = {
    "det": Reading(
        "Detection error trade-off",
        "Both kinds of error at every threshold, on normal-deviate axes. Nearer to the lower left is better.",
    ),
    "roc": Reading(
        "ROC", "What is rightly accepted against what is wrongly accepted. Nearer to the upper left is better."
    ),
    "pr": Reading(
        "Precision and recall",
        "How pure the accepted trials are for each share that is found. It depends on how common the positive class is here.",
    ),
    "histogram": Reading("Scores by class", "Each class as shares of itself. The less they overlap, the better.", True),
    "reliability": Reading(
        "Reliability",
        "What was stated against what happened. On the diagonal, stated probabilities are right.",
    ),
    "bayes_error": Reading(
        "Bayes error rate (APE)",
        "Error of decisions by these scores for every prior. Between the solid and the dashed line lies what miscalibration costs.",
    ),
    "tippett": Reading(
        "Tippett plot",
        "Share of each class with at least this likelihood ratio. Solid on the left or dashed on the right of 0 is misleading evidence.",
    ),
    "risk_coverage": Reading(
        "Risk and coverage",
        "Wrong verdicts among the most confident answers. A line that rises late means useful confidence.",
    ),
}
"""Every kind of figure of trials, in the order of the report."""
ROBUSTNESS: Final = Reading(
    "Robustness",
    "Each attack in its interval. An attack that does no more than noise of the same norm has found nothing.",
)
FLOW: Final = Reading(
    "What became of the trials",
    "Each box is as high as it has trials; ribbons show where they went next, coloured by how they ended.",
)
RANKS: Final = Reading(
    "Ranks", "The rank of each run; the line holds its true rank, of all runs at once with the level of the ranking."
)
SYSTEMS: Final = Reading("Runs, the best first", "Each dot is a run, the line its own interval.")
LEVELS: Final = Reading("Robustness", "The value at each level of this manipulation; dotted, the untouched items.")


def numbers_of(kind: str, lines: Lines[D]) -> Table:
    """Return the numbers behind a figure."""
    header, rows = TABLES[kind](lines)
    cells = tuple((TableCell(name), *(TableCell(text) for text in texts)) for name, texts in rows)
    title = READINGS[kind].title if kind in READINGS else ROBUSTNESS.title
    return Table(title, (FIRST.get(kind, "run"), *header), cells)


Rows = tuple[tuple[str, ...], list[tuple[str, list[str]]]]


def _det(lines: Lines[DetDisplay]) -> Rows:
    rows = [(n, [p.label, _share(p.frr), _share(p.far), f"{p.threshold:.4g}"]) for n, d in lines for p in d.points]
    return ("point", "miss rate", "false-alarm rate", "threshold"), rows


def _roc(lines: Lines[RocDisplay]) -> Rows:
    at = (0.001, 0.01, 0.05, 0.1)
    rows = [(n, [_area(d.area), *map(_share, np.interp(at, d.fpr[::-1], d.tpr[::-1]))]) for n, d in lines]
    return ("AUC", *(f"hits at {per_cent(a)} false alarms" for a in at)), rows


def _pr(lines: Lines[PrDisplay]) -> Rows:
    at = (0.5, 0.8, 0.9, 0.95)
    rows = [(n, [_area(d.area), *map(_share, np.interp(at, d.recall[::-1], d.precision[::-1]))]) for n, d in lines]
    return ("average precision", *(f"precision at {per_cent(a, 0)} recall" for a in at)), rows


def _area(value: float) -> str:
    return "not measured" if np.isnan(value) else f"{value:.4f}"


def _histogram(lines: Lines[HistogramDisplay]) -> Rows:
    rows: list[tuple[str, list[str]]] = []
    for name, d in lines:
        step = max(len(d.positives) // 10, 1)
        for i in range(0, len(d.positives), step):
            ends = f"{d.edges[i]:.3g} to {d.edges[min(i + step, len(d.edges) - 1)]:.3g}"
            rows.append(
                (name, [ends, _share(d.positives[i : i + step].sum()), _share(d.negatives[i : i + step].sum())])
            )
    return ("score", lines[0][1].positive, lines[0][1].negative), rows


def _reliability(lines: Lines[ReliabilityDisplay]) -> Rows:
    rows = [
        (name, [f"{s:.3f}", f"{h:.3f}", f"[{low:.3f}, {high:.3f}]", f"{int(n):,}"])
        for name, d in lines
        for s, h, low, high, n in zip(d.stated, d.happened, d.low, d.high, d.n, strict=True)
    ]
    return ("stated", "happened", "95\u00a0% interval", "n"), rows


def _bayes_error(lines: Lines[BayesErrorDisplay]) -> Rows:
    at = np.array([-4.0, -2.0, 0.0, 2.0, 4.0])
    rows = [
        (name, [f"{x:+.0f}", *(_share(float(np.interp(x, d.prior, y))) for y in (d.actual, d.least, d.default))])
        for name, d in lines
        for x in at
    ]
    return ("prior log-odds", "actual", "after PAV", "by the prior alone"), rows


def _tippett(lines: Lines[TippettDisplay]) -> Rows:
    at = (-2.0, -1.0, 0.0, 1.0, 2.0)
    rows = [
        (name, [f"{10.0**x:g}", *(_share(_beyond(x, lr, share)) for lr, share in ((d.positive_lr, d.positive_share), (d.negative_lr, d.negative_share)))])
        for name, d in lines
        for x in at
    ]  # fmt: skip
    first = lines[0][1]
    return ("likelihood ratio at least", first.positive, first.negative), rows


def _beyond(x: float, lr: Floats, share: Floats) -> float:
    return float(np.interp(x, lr, share, left=1.0, right=0.0))


def _risk_coverage(lines: Lines[RiskCoverageDisplay]) -> Rows:
    at = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
    rows = [(name, [_share(v) for v in np.interp(at, d.coverage, d.risk)]) for name, d in lines]
    return tuple(f"wrong at {per_cent(a, 0)} coverage" for a in at), rows


def _robustness(lines: Lines[RobustnessDisplay]) -> Rows:
    d = lines[0][1]
    rows = [
        (own.name, [f"{x:g}", f"{v:.4f}", f"[{low:.4f}, {high:.4f}]" if np.isfinite(low) else ""])
        for own in d.lines
        for x, v, low, high in zip(own.x, own.value, own.low, own.high, strict=True)
    ]
    return (d.across, d.metric, "interval"), rows


def _share(value: float) -> str:
    return per_cent(value, 2)


TABLES: Final[dict[str, Callable[..., Rows]]] = {
    "det": _det,
    "roc": _roc,
    "pr": _pr,
    "histogram": _histogram,
    "reliability": _reliability,
    "bayes_error": _bayes_error,
    "tippett": _tippett,
    "risk_coverage": _risk_coverage,
    "robustness": _robustness,
}
FIRST: Final = {"robustness": "attack"}
"""The heading of the first column, if it is not the run."""
