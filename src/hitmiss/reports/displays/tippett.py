"""The Tippett plot: the cumulative likelihood ratios of both classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hitmiss.core.sorting import Floats
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials
from hitmiss.findings.wording import per_cent
from hitmiss.reports.displays.display import Display, facts, light, require_llrs, tally_of
from hitmiss.reports.displays.lines import Lines, NumberRows, PlateOptions, key_of, mark_styles, share_axis, share_text
from hitmiss.reports.plate import MUTED, Axis, Curve, GuideLine, Mark, Plate, ticks
from hitmiss.reports.readings import Reading
from hitmiss.reports.thinning import PIXELS


@dataclass(frozen=True, eq=False)
class TippettDisplay(Display):
    """Tippett plot: the share of each class whose likelihood ratio is at least x, x in powers of ten."""

    kind: ClassVar[str] = "tippett"
    reading: ClassVar[Reading] = Reading(
        "Tippett plot",
        "Share of each class with at least this likelihood ratio. Solid on the left or dashed on the right of 0 is misleading evidence.",
    )
    positive_lr: Floats
    positive_share: Floats
    negative_lr: Floats
    negative_share: Floats

    @classmethod
    def from_trials(cls, trials: Trials, *, tally: Tally | None = None) -> TippettDisplay:
        """Compute the cumulative shares of LLR scores."""
        tally = tally_of(require_llrs(trials, "a Tippett plot"), tally)
        return cls.from_tally(tally, *facts(trials, tally)[:2])

    @classmethod
    def from_tally(cls, tally: Tally, positive: str = "positive", negative: str = "negative") -> TippettDisplay:
        """Compute the cumulative shares of a tally of LLRs."""
        finite = np.isfinite(tally.score)
        tens = tally.score[finite] / np.log(10.0)
        scale = PIXELS / max(float(np.ptp(tens)), 1e-9) if len(tens) else 1.0
        sides: list[Floats] = []
        for below, n in ((tally.positives, tally.n_positive), (tally.negatives, tally.n_negative)):
            share = (n - below[:-1][finite]) / n
            kept = light(scale * tens, PIXELS * share)
            sides += [tens[kept], share[kept]]
        return cls(positive, negative, int(tally.n_positive), int(tally.n_negative), *sides)

    @staticmethod
    def plate(lines: Lines[TippettDisplay], how: PlateOptions) -> Plate:
        """Draw all runs in one plate."""
        shown: list[TippettDisplay] = [d for _, d in lines]
        styles = mark_styles(lines, lambda d: 0.0, how)
        marks: list[Mark] = [GuideLine(0.0)]
        for (name, d), style in zip(lines, styles, strict=True):
            marks += [
                Curve(d.positive_lr, d.positive_share, style.color, f"{name} {d.positive}", label=style.label),
                Curve(d.negative_lr, d.negative_share, style.color, f"{name} {d.negative}", "dash", 1.5),
            ]
        every = np.concatenate([np.concatenate([d.positive_lr, d.negative_lr]) for d in shown])
        low, high = max(float(every.min()), -12.0), min(float(every.max()), 12.0)
        key = ((0, "", shown[0].positive), (0, "dash", shown[0].negative))
        misled = max(float(np.interp(0.0, d.negative_lr, d.negative_share, left=1.0, right=0.0)) for d in shown)
        x = Axis("log₁₀ likelihood ratio, at least", low, high, ticks(low, high))
        finding = f"For {per_cent(misled)} of {shown[0].negative} the evidence misleads"
        return Plate(
            x,
            share_axis("share of the class"),
            tuple(marks),
            finding,
            key=key
            if len(lines) == 1 and not how.named
            else (*key_of(styles, [n for n, _ in lines]), (MUTED, "dash", shown[0].negative)),
        )

    @staticmethod
    def numbers(lines: Lines[TippettDisplay]) -> NumberRows:
        """Return the numbers behind the figure."""
        at = (-2.0, -1.0, 0.0, 1.0, 2.0)
        rows = [
            (name, [f"{10.0**x:g}", *(share_text(float(np.interp(x, lr, share, left=1.0, right=0.0))) for lr, share in ((d.positive_lr, d.positive_share), (d.negative_lr, d.negative_share)))])
            for name, d in lines
            for x in at
        ]  # fmt: skip
        first = lines[0][1]
        return ("likelihood ratio at least", first.positive, first.negative), rows
