"""Ranking metrics: how well the scores order positives above negatives.

Conventions as in `detection`: label 1 = positive, higher score = positive, accept if score >= threshold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from hitmiss.core.errors import UsageError
from hitmiss.core.metric import Chance
from hitmiss.core.registry import metric
from hitmiss.core.sorting import Floats
from hitmiss.core.tally import Tally
from hitmiss.stats.forms.base import Form
from hitmiss.stats.forms.crossing import Crossing
from hitmiss.stats.forms.sums import PairShare
from hitmiss.stats.forms.whole import Whole
from hitmiss.stats.sketch import tally_for


@metric(
    best="high",
    form=PairShare,
    prevalence=False,
    also=("auc", "auroc", "auc_roc", "roc_auc_score"),
    of="both",
    ranks=True,
    symbol="AUC",
    chance=Chance(0.5),
)
def roc_auc(label: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Area under the ROC curve: the chance that a positive scores higher than a negative, equal scores counting half.

    AUC = [#(s⁺ > s⁻) + ½ #(s⁺ = s⁻)] / (n⁺ n⁻). Best: high. Range: 0..1; 0.5 is no information, below 0.5 usually means
    that the scores point the other way. Undefined (NaN) with one class.

    Reference: Hanley & McNeil 1982; equals `sklearn.metrics.roc_auc_score`.

    >>> roc_auc([1, 1, 0, 0], [0.9, 0.4, 0.6, 0.1])
    0.75
    """
    return PairShare().value(Tally.of(label, score, weight))


@metric(
    best="high",
    form=lambda: Whole(average_precision_of_tally, passes=PassingPrecision, of_cells=average_precision_of_cells),
    also=("ap", "auprc", "auc_pr", "pr_auc", "average_precision_score"),
    of="both",
    ranks=True,
    chance=Chance(lambda share, _: share),
)
def average_precision(label: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Average precision: the precision at each threshold, weighted by the recall gained there (no interpolation).

    AP = Σ over thresholds, from high to low, of (R_k − R_{k−1}) · P_k. Best: high. Range: 0..1; a random order gives
    about the share of positives. Undefined (NaN) without positives.

    Reference: equals `sklearn.metrics.average_precision_score`.

    >>> round(average_precision([1, 0, 1, 0], [0.9, 0.6, 0.4, 0.1]), 12)     # (1/1 + 2/3) / 2
    0.833333333333
    """
    return average_precision_of_tally(Tally.of(label, score, weight))


def average_precision_of_tally(tally: Tally) -> float:
    """Return `average_precision` of a tally."""
    if tally.n_positive <= 0:
        return float("nan")
    accepted_positives = tally.n_positive - tally.positives[:-1].astype(np.float64)
    accepted = accepted_positives + (tally.n_negative - tally.negatives[:-1])
    gained = tally.positive_counts
    held = gained > 0
    return float(np.sum(gained[held] * accepted_positives[held] / accepted[held]) / tally.n_positive)


def average_precision_of_cells(p: Floats, q: Floats) -> Floats:
    """Return `average_precision` of many samples, from positives and negatives per group of equal scores, ascending."""
    positives, accepted = (np.cumsum(c[:, ::-1], axis=1) for c in (p, p + q))
    with np.errstate(divide="ignore", invalid="ignore"):
        gained = np.where(p[:, ::-1] > 0, p[:, ::-1] * positives / accepted, 0.0)
        return np.asarray(gained.sum(axis=1) / positives[:, -1])


def _own_fpr(_: float, settings: Mapping[str, object]) -> float | None:
    """Return the rate at which it is read: scores without information reach as many positives as negatives."""
    fpr = settings["fpr"]
    return fpr if isinstance(fpr, float) else None


def tpr_at_fpr_form(fpr: float) -> Form:
    """Return the form of `tpr_at_fpr`: read at the first point with few enough false alarms."""
    _check_share("fpr", fpr)
    return Crossing(
        lambda cp, cn, n1, n0: (n0 - cn) / n0 <= fpr,
        lambda cp, cn, p, q, n1, n0: (n1 - cp - p) / n1,
        read_at="after",
    )


@metric(
    best="high",
    form=tpr_at_fpr_form,
    prevalence=False,
    share=True,
    chance=Chance(_own_fpr),
)
def tpr_at_fpr(label: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None, *, fpr: float = 0.01) -> float:
    """The highest true-positive rate that a threshold reaches with a false-positive rate of at most `fpr`.

    max { TPR(t) : FPR(t) <= fpr }, over thresholds that exist (no interpolation). Best: high. Range: 0..1.
    Undefined (NaN) with one class. Reference: a point of `sklearn.metrics.roc_curve`.

    >>> tpr_at_fpr([1, 1, 0, 0], [0.9, 0.4, 0.6, 0.1], fpr=0.0)
    0.5
    """
    form = tpr_at_fpr_form(fpr)
    return form.value(tally_for(form, label, score, weight))


def fpr_at_tpr_form(tpr: float) -> Form:
    """Return the form of `fpr_at_tpr`: read at the last point with enough hits."""
    _check_share("tpr", tpr)
    return Crossing(
        lambda cp, cn, n1, n0: (n1 - cp) / n1 < tpr,
        lambda cp, cn, p, q, n1, n0: (n0 - cn) / n0,
        read_at="before",
    )


@metric(best="low", form=fpr_at_tpr_form, prevalence=False, share=True)
def fpr_at_tpr(label: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None, *, tpr: float = 0.95) -> float:
    """The lowest false-positive rate of a threshold that reaches a true-positive rate of at least `tpr`.

    min { FPR(t) : TPR(t) >= tpr }, over thresholds that exist (no interpolation). Best: low. Range: 0..1.
    Undefined (NaN) with one class. Reference: a point of `sklearn.metrics.roc_curve`.

    >>> fpr_at_tpr([1, 1, 0, 0], [0.9, 0.4, 0.6, 0.1], tpr=1.0)
    0.5
    """
    form = fpr_at_tpr_form(tpr)
    return form.value(tally_for(form, label, score, weight))


def _check_share(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise UsageError.of("out-of-range", name=name, low=0, high=1, found=value)


@dataclass(eq=False)
class PassingPrecision:
    """Average precision from stretches of scores (see `stats.forms.Passing`), as a sum over positive scores."""

    n_positive: int
    n_negative: int
    below: tuple[int, int] = (0, 0)
    sums: list[float] = field(default_factory=list)

    def add(self, part: Tally) -> None:
        """Read the next stretch of scores."""
        p, q = self.below
        accepted_positives = (self.n_positive - p) - part.positives[:-1].astype(np.float64)
        accepted = accepted_positives + ((self.n_negative - q) - part.negatives[:-1])
        gained = part.positive_counts
        held = gained > 0
        self.sums.append(float(np.sum(gained[held] * accepted_positives[held] / accepted[held])))
        self.below = p + int(part.n_positive), q + int(part.n_negative)

    def value(self) -> float:
        """Return the mean over the positives."""
        return math.fsum(self.sums) / self.n_positive if self.n_positive else math.nan
