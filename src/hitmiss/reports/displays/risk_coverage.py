"""Wrong verdicts among the most confident answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hitmiss.core.errors import DataError
from hitmiss.core.sorting import Floats
from hitmiss.core.trials import Trials
from hitmiss.findings.wording import per_cent
from hitmiss.metrics.confidence import judged
from hitmiss.metrics.selective import risk_coverage
from hitmiss.reports.displays.display import Display, facts, light
from hitmiss.reports.displays.lines import Lines, NumberRows, PlateOptions, key_of, mark_styles, share_axis, share_text
from hitmiss.reports.displays.reliability import verdict_columns
from hitmiss.reports.plate import Curve, Plate
from hitmiss.reports.readings import Reading
from hitmiss.reports.thinning import PIXELS


@dataclass(frozen=True, eq=False)
class RiskCoverageDisplay(Display):
    """The share of wrong verdicts among the answers that are kept, the most confident first."""

    kind: ClassVar[str] = "risk_coverage"
    reading: ClassVar[Reading] = Reading(
        "Risk and coverage",
        "Wrong verdicts among the most confident answers. A line that rises late means useful confidence.",
    )
    coverage: Floats
    risk: Floats
    confidence: Floats

    @classmethod
    def from_trials(cls, trials: Trials) -> RiskCoverageDisplay:
        """Compute the curve of trials with decisions and confidences."""
        columns = verdict_columns(trials)
        tally = judged(*columns)
        if not len(tally.score):
            raise DataError.of("no-confidence")
        curve = risk_coverage(*columns)
        kept = light(PIXELS * curve.coverage, PIXELS * curve.risk)
        lines = curve.coverage[kept], curve.risk[kept], curve.threshold[kept]
        return cls(*facts(trials, tally), *lines)

    @staticmethod
    def plate(lines: Lines[RiskCoverageDisplay], how: PlateOptions) -> Plate:
        """Draw all runs in one plate."""
        shown: list[RiskCoverageDisplay] = [d for _, d in lines]
        styles = mark_styles(lines, lambda d: float(d.risk[-1]), how)
        marks = tuple(
            Curve(d.coverage, d.risk, style.color, name, width=style.width, label=style.label)
            for (name, d), style in zip(lines, styles, strict=True)
        )
        top = max(1.1 * max(float(d.risk.max()) for d in shown), 0.01)
        half = [float(np.interp(0.5, d.coverage, d.risk)) for d in shown]
        finding = (
            f"Of the more confident half {per_cent(half[0])} are wrong, of all {per_cent(float(shown[0].risk[-1]))}"
            if len(lines) == 1
            else ""
        )
        x = share_axis("answers kept, the most confident first")
        return Plate(
            x,
            share_axis("share of them that is wrong", top),
            marks,
            finding,
            key=key_of(styles, [n for n, _ in lines]),
        )

    @staticmethod
    def numbers(lines: Lines[RiskCoverageDisplay]) -> NumberRows:
        """Return the numbers behind the figure."""
        at = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
        rows = [(name, [share_text(v) for v in np.interp(at, d.coverage, d.risk)]) for name, d in lines]
        return tuple(f"wrong at {per_cent(a, 0)} coverage" for a in at), rows
