"""Curves of a detector that hold their numbers and can draw themselves: DET, ROC, precision and recall.

    DetDisplay.from_trials(trials).plot()                       # matplotlib axes
    ax = DetDisplay.from_trials(a).plot(name="a")
    DetDisplay.from_trials(b).plot(ax=ax, name="b")             # both in one figure

Points are thinned to what the eye can distinguish; each keeps its threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np
from scipy.special import ndtri

from hitmiss.core.sorting import Floats
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials
from hitmiss.metrics.curves import det_of_tally, pr_of_tally, roc_of_tally
from hitmiss.metrics.ranking import average_precision_of_tally
from hitmiss.reports.displays import Costs, Display, Point, facts, light, operating_points, tally_of
from hitmiss.reports.thinning import PIXELS

PER_DEVIATE: Final = 200.0
"""Pixels of a DET plot per normal deviate: 600 for the three from 0.1 % to 50 %."""


@dataclass(frozen=True, eq=False)
class DetDisplay(Display):
    """Detection error trade-off on normal-deviate axes. Rates of 0 and 1 lie at infinity and are not drawn.

    >>> d = DetDisplay.from_trials(Trials.of([1, 1, 1, 0, 0, 0], [3.0, 2.0, 0.5, 1.0, 0.0, -1.0]))
    >>> [(p.label, round(p.far, 3), round(p.frr, 3)) for p in d.points]
    [('EER', 0.333, 0.333)]
    """

    kind: ClassVar[str] = "det"
    metric: ClassVar[str] = "eer"
    far: Floats
    frr: Floats
    threshold: Floats
    points: tuple[Point, ...] = ()
    higher: str = ""
    """The class that higher scores of the file mean, if it is not the positive one."""
    worth_negative: Floats = field(default_factory=lambda: np.zeros(0))
    """As how many independent trials the false alarms at each point are known, if whole units are drawn."""
    worth_positive: Floats = field(default_factory=lambda: np.zeros(0))
    over: str = ""
    """The units."""

    @classmethod
    def from_trials(cls, trials: Trials, *, costs: Costs | None = None, tally: Tally | None = None) -> DetDisplay:
        """Compute the curve of scored trials with operating points; `costs` marks the minimum and the actual cost."""
        points = {"is_llr": trials.header.score_kind == "llr", "threshold": trials.header.decided_from}
        tally = tally_of(trials, tally)
        marks = operating_points(tally, costs=costs, **points)  # type: ignore[arg-type]
        return cls.from_tally(tally, *facts(trials, tally)[:2], marks).on_scale_of(trials)

    @classmethod
    def from_tally(
        cls, tally: Tally, positive: str = "positive", negative: str = "negative", points: Sequence[Point] = ()
    ) -> DetDisplay:
        """Compute the curve of a tally."""
        curve = det_of_tally(tally)
        drawn = (curve.far > 0) & (curve.far < 1) & (curve.frr > 0) & (curve.frr < 1)
        far, frr, threshold = curve.far[drawn], curve.frr[drawn], curve.thresholds[drawn]
        kept = light(PER_DEVIATE * ndtri(far), PER_DEVIATE * ndtri(frr))
        counts = int(tally.n_positive), int(tally.n_negative)
        return cls(positive, negative, *counts, far[kept], frr[kept], threshold[kept], tuple(points))


@dataclass(frozen=True, eq=False)
class RocDisplay(Display):
    """Receiver operating characteristic: hits against false alarms."""

    kind: ClassVar[str] = "roc"
    metric: ClassVar[str] = "roc_auc"
    fpr: Floats
    tpr: Floats
    threshold: Floats
    area: float
    points: tuple[Point, ...] = ()
    worth_negative: Floats = field(default_factory=lambda: np.zeros(0))
    """As how many independent trials the false alarms at each point are known, if whole units are drawn."""
    worth_positive: Floats = field(default_factory=lambda: np.zeros(0))
    over: str = ""
    """The units."""

    @property
    def has_area(self) -> bool:
        """Say whether the area is known; of curves from bins of scores it may not be."""
        return not np.isnan(self.area)

    @classmethod
    def from_trials(cls, trials: Trials, *, costs: Costs | None = None, tally: Tally | None = None) -> RocDisplay:
        """Compute the curve of scored trials; `costs` marks the minimum and the actual cost."""
        tally = tally_of(trials, tally)
        marks = operating_points(tally, costs=costs, is_llr=trials.header.score_kind == "llr")
        return cls.from_tally(tally, *facts(trials, tally)[:2], marks).on_scale_of(trials)

    @classmethod
    def from_tally(
        cls, tally: Tally, positive: str = "positive", negative: str = "negative", points: Sequence[Point] = ()
    ) -> RocDisplay:
        """Compute the curve of a tally."""
        curve = roc_of_tally(tally)
        kept = light(PIXELS * curve.fpr, PIXELS * curve.tpr)
        counts = int(tally.n_positive), int(tally.n_negative)
        lines = curve.fpr[kept], curve.tpr[kept], curve.thresholds[kept]
        return cls(positive, negative, *counts, *lines, curve.area, tuple(points))


@dataclass(frozen=True, eq=False)
class PrDisplay(Display):
    """Precision against recall; `prevalence` is the precision of accepting everything."""

    kind: ClassVar[str] = "pr"
    metric: ClassVar[str] = "average_precision"
    recall: Floats
    precision: Floats
    threshold: Floats
    area: float

    @property
    def has_area(self) -> bool:
        """Say whether the area is known; of curves from bins of scores it may not be."""
        return not np.isnan(self.area)

    @property
    def prevalence(self) -> float:
        """The share of positives."""
        return self.n_positive / (self.n_positive + self.n_negative)

    @classmethod
    def from_trials(cls, trials: Trials, *, tally: Tally | None = None) -> PrDisplay:
        """Compute the curve of scored trials."""
        tally = tally_of(trials, tally)
        return cls.from_tally(tally, *facts(trials, tally)[:2]).on_scale_of(trials)

    @classmethod
    def from_tally(cls, tally: Tally, positive: str = "positive", negative: str = "negative") -> PrDisplay:
        """Compute the curve of a tally."""
        curve = pr_of_tally(tally)
        kept = light(PIXELS * curve.recall, PIXELS * curve.precision)
        lines = curve.recall[kept], curve.precision[kept], curve.thresholds[kept]
        counts = int(tally.n_positive), int(tally.n_negative)
        return cls(positive, negative, *counts, *lines, average_precision_of_tally(tally))
