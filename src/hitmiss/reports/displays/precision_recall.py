"""Precision against recall."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hitmiss.core.sorting import Floats
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials
from hitmiss.findings.wording import per_cent
from hitmiss.metrics.curves import pr_of_tally
from hitmiss.metrics.ranking import average_precision_of_tally
from hitmiss.reports.displays.display import Display, facts, light, tally_of
from hitmiss.reports.displays.lines import (
    Lines,
    NumberRows,
    PlateOptions,
    area_text,
    key_of,
    mark_styles,
    share_axis,
    share_text,
)
from hitmiss.reports.plate import Curve, GuideLine, Mark, Plate
from hitmiss.reports.readings import Reading
from hitmiss.reports.thinning import PIXELS


@dataclass(frozen=True, eq=False)
class PrDisplay(Display):
    """Precision against recall; `prevalence` is the precision of accepting everything."""

    kind: ClassVar[str] = "pr"
    reading: ClassVar[Reading] = Reading(
        "Precision and recall",
        "How pure the accepted trials are for each share that is found. It depends on how common the positive class is here.",
    )
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

    @staticmethod
    def plate(lines: Lines[PrDisplay], how: PlateOptions) -> Plate:
        """Draw all runs in one plate."""
        first: PrDisplay = lines[0][1]
        styles = mark_styles(lines, lambda d: -d.area, how)
        marks: list[Mark] = [GuideLine(first.prevalence, False, "accept everything")]
        marks += [
            Curve(d.recall, d.precision, style.color, name, width=style.width, label=style.label)
            for (name, d), style in zip(lines, styles, strict=True)
        ]
        words = [
            f"{name} · AP {how.text(name, d.metric, f'{d.area:.4f}')}" if d.has_area else name for name, d in lines
        ]
        name, best = max(lines, key=lambda line: line[1].area if not np.isnan(line[1].area) else -1.0)
        who = f"{name} is highest: average" if len(lines) > 1 else "Average"
        value = how.text(name, best.metric, f"{best.area:.3f}")
        finding = f"{who} precision {value}; accepting everything gives {first.prevalence:.3f}" if best.has_area else ""
        x, y = (
            share_axis(f"recall ({first.positive} found)"),
            share_axis(f"precision ({first.positive} among accepted)"),
        )
        return Plate(x, y, tuple(marks), finding, key=key_of(styles, words))

    @staticmethod
    def numbers(lines: Lines[PrDisplay]) -> NumberRows:
        """Return the numbers behind the figure."""
        at = (0.5, 0.8, 0.9, 0.95)
        rows = [
            (n, [area_text(d.area), *map(share_text, np.interp(at, d.recall[::-1], d.precision[::-1]))])
            for n, d in lines
        ]
        return ("average precision", *(f"precision at {per_cent(a, 0)} recall" for a in at)), rows
