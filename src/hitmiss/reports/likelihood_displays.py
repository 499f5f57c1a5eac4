"""What likelihood ratios are worth: the Bayes error rate over priors (APE), and the Tippett plot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from scipy.special import expit

from hitmiss.core.errors import DataError
from hitmiss.core.sorting import Floats
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials
from hitmiss.metrics.detection import pav_blocks
from hitmiss.reports.displays import Display, facts, light, tally_of
from hitmiss.reports.thinning import PIXELS

PRIORS: Final = np.linspace(-7.0, 7.0, 141)
"""Prior log-odds at which Bayes error rates are shown: 0.1 % to 99.9 %."""


@dataclass(frozen=True, eq=False)
class BayesErrorDisplay(Display):
    """Applied probability of error (APE): the error rate of Bayes decisions over a range of priors.

    `actual` takes the scores as the LLRs they claim to be, `least` after the best monotone recalibration (PAV),
    `default` decides by the prior alone. Between actual and least lies what miscalibration costs.
    """

    kind: ClassVar[str] = "bayes_error"
    prior: Floats
    actual: Floats
    least: Floats
    default: Floats

    @classmethod
    def from_trials(cls, trials: Trials, *, tally: Tally | None = None) -> BayesErrorDisplay:
        """Compute the error rates of LLR scores."""
        tally = tally_of(_llrs(trials, "a Bayes error rate"), tally)
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


def _llrs(trials: Trials, what: str) -> Trials:
    if trials.header.score_kind != "llr":
        raise DataError.of("needs-llr-scores-declared", what=what, score_kind=trials.header.score_kind)
    return trials


@dataclass(frozen=True, eq=False)
class TippettDisplay(Display):
    """Tippett plot: the share of each class whose likelihood ratio is at least x, x in powers of ten."""

    kind: ClassVar[str] = "tippett"
    positive_lr: Floats
    positive_share: Floats
    negative_lr: Floats
    negative_share: Floats

    @classmethod
    def from_trials(cls, trials: Trials, *, tally: Tally | None = None) -> TippettDisplay:
        """Compute the cumulative shares of LLR scores."""
        tally = tally_of(_llrs(trials, "a Tippett plot"), tally)
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
