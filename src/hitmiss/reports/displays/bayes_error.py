"""The Bayes error rate over priors (APE)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from scipy.special import expit

from hitmiss.core.sorting import Floats
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials
from hitmiss.findings.wording import per_cent
from hitmiss.metrics.detection import pav_blocks
from hitmiss.reports.displays.display import Display, facts, require_llrs, tally_of
from hitmiss.reports.displays.lines import Lines, NumberRows, PlateOptions, key_of, mark_styles, share_axis, share_text
from hitmiss.reports.plate import MUTED, Axis, Curve, Mark, Plate, ticks
from hitmiss.reports.readings import Reading

PRIORS: Final = np.linspace(-7.0, 7.0, 141)
"""Prior log-odds at which Bayes error rates are shown: 0.1 % to 99.9 %."""


@dataclass(frozen=True, eq=False)
class BayesErrorDisplay(Display):
    """Applied probability of error (APE): the error rate of Bayes decisions over a range of priors.

    `actual` takes the scores as the LLRs they claim to be, `least` after the best monotone recalibration (PAV),
    `default` decides by the prior alone. Between actual and least lies what miscalibration costs.
    """

    kind: ClassVar[str] = "bayes_error"
    reading: ClassVar[Reading] = Reading(
        "Bayes error rate (APE)",
        "Error of decisions by these scores for every prior. Between the solid and the dashed line lies what miscalibration costs.",
    )
    prior: Floats
    actual: Floats
    least: Floats
    default: Floats

    @classmethod
    def from_trials(cls, trials: Trials, *, tally: Tally | None = None) -> BayesErrorDisplay:
        """Compute the error rates of LLR scores."""
        tally = tally_of(require_llrs(trials, "a Bayes error rate"), tally)
        return cls.from_tally(tally, *facts(trials, tally)[:2])

    @classmethod
    def from_tally(cls, tally: Tally, positive: str = "positive", negative: str = "negative") -> BayesErrorDisplay:
        """Compute the error rates of a tally of LLRs."""
        chance = expit(PRIORS)
        at = np.searchsorted(tally.score, -PRIORS, side="left")
        miss = tally.positives[at] / tally.n_positive
        alarm = (tally.n_negative - tally.negatives[at]) / tally.n_negative
        p, q = pav_blocks(tally)
        frr = np.concatenate([[0.0], np.cumsum(p) / tally.n_positive])
        far = 1.0 - np.concatenate([[0.0], np.cumsum(q) / tally.n_negative])
        least = np.min(chance[:, None] * frr + (1 - chance)[:, None] * far, axis=1)
        lines = PRIORS, chance * miss + (1 - chance) * alarm, least, np.minimum(chance, 1 - chance)
        return cls(positive, negative, int(tally.n_positive), int(tally.n_negative), *lines)

    @staticmethod
    def plate(lines: Lines[BayesErrorDisplay], how: PlateOptions) -> Plate:
        """Draw all runs in one plate."""
        first: BayesErrorDisplay = lines[0][1]
        styles = mark_styles(lines, lambda d: float(d.actual.max()), how)
        marks: list[Mark] = [Curve(first.prior, first.default, MUTED, "by the prior alone", "dot", 1.2)]
        for (name, d), style in zip(lines, styles, strict=True):
            marks += [
                Curve(d.prior, d.actual, style.color, f"{name} actual", label=style.label),
                Curve(d.prior, d.least, style.color, f"{name} after PAV", "dash", 1.5),
            ]
        top = 1.12 * min(0.5, max(float(max(d.actual.max(), d.least.max())) for _, d in lines))
        low, high = float(first.prior[0]), float(first.prior[-1])
        gap = max(float((d.actual - d.least).max()) for _, d in lines)
        key = (
            (0, "", "actual"),
            (0, "dash", "after the best recalibration (PAV)"),
            (MUTED, "dot", "by the prior alone"),
        )
        x = Axis(f"prior log-odds of {first.positive}", low, high, ticks(low, high))
        return Plate(
            x,
            share_axis("error rate", top),
            tuple(marks),
            f"Miscalibration costs at most {per_cent(gap)} errors",
            key=key if len(lines) == 1 and not how.named else (*key_of(styles, [n for n, _ in lines]), *key[1:]),
        )

    @staticmethod
    def numbers(lines: Lines[BayesErrorDisplay]) -> NumberRows:
        """Return the numbers behind the figure."""
        at = np.array([-4.0, -2.0, 0.0, 2.0, 4.0])
        rows = [
            (
                name,
                [f"{x:+.0f}", *(share_text(float(np.interp(x, d.prior, y))) for y in (d.actual, d.least, d.default))],
            )
            for name, d in lines
            for x in at
        ]
        return ("prior log-odds", "actual", "after PAV", "by the prior alone"), rows
