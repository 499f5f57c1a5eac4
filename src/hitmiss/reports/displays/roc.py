"""Receiver operating characteristic: hits against false alarms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from hitmiss.core.sorting import Floats
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials
from hitmiss.findings.wording import per_cent
from hitmiss.metrics.curves import roc_of_tally
from hitmiss.reports.displays.band import band_note, band_of
from hitmiss.reports.displays.display import Costs, Display, Point, facts, light, operating_points, tally_of
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
from hitmiss.reports.plate import MUTED, Curve, Mark, Plate
from hitmiss.reports.readings import Reading
from hitmiss.reports.thinning import PIXELS


@dataclass(frozen=True, eq=False)
class RocDisplay(Display):
    """Receiver operating characteristic: hits against false alarms."""

    kind: ClassVar[str] = "roc"
    reading: ClassVar[Reading] = Reading(
        "ROC", "What is rightly accepted against what is wrongly accepted. Nearer to the upper left is better."
    )
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

    @staticmethod
    def plate(lines: Lines[RocDisplay], how: PlateOptions) -> Plate:
        """Draw all runs in one plate."""
        styles = mark_styles(lines, lambda d: -d.area, how)
        marks: list[Mark] = [Curve(np.array([0.0, 1.0]), np.array([0.0, 1.0]), MUTED, dash="dot", width=1)]
        for (name, d), style in zip(lines, styles, strict=True):
            found = band_of(d, slice(None), d.fpr, 1.0 - d.tpr, np.asarray, how) if len(lines) <= 2 else None
            band = None if found is None else (found[0], 1.0 - found[1], found[2], 1.0 - found[3])
            marks.append(Curve(d.fpr, d.tpr, style.color, name, width=style.width, band=band, label=style.label))
        first = lines[0][1]
        words = [
            f"{name} · AUC {how.text(name, d.metric, f'{d.area:.4f}')}" if d.has_area else name for name, d in lines
        ]
        name, best = max(lines, key=lambda line: line[1].area if not np.isnan(line[1].area) else -1.0)
        who = f"{name} is highest: area" if len(lines) > 1 else "Area"
        value = how.text(name, best.metric, f"{best.area:.4f}")
        finding = f"{who} under the curve {value}" if best.has_area else ""
        x = share_axis(f"false alarms ({first.negative} accepted)")
        y = share_axis(f"hits ({first.positive} accepted)")
        key = key_of(styles, words)
        return Plate(x, y, tuple(marks), finding, True, key, band_note([d for _, d in lines], how))

    @staticmethod
    def numbers(lines: Lines[RocDisplay]) -> NumberRows:
        """Return the numbers behind the figure."""
        at = (0.001, 0.01, 0.05, 0.1)
        rows = [(n, [area_text(d.area), *map(share_text, np.interp(at, d.fpr[::-1], d.tpr[::-1]))]) for n, d in lines]
        return ("AUC", *(f"hits at {per_cent(a)} false alarms" for a in at)), rows
