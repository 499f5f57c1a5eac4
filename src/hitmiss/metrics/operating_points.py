"""Operating points: mean costs at several priors (NIST SRE), and what decisions at the EER threshold give.

Conventions are those of `metrics.detection`: `label` is 1 for the positive class, higher scores mean positive.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from hitmiss.core.errors import UnknownName, UsageError
from hitmiss.core.metric import TRIVIAL, Chance
from hitmiss.core.registry import metric
from hitmiss.core.sorting import Number
from hitmiss.core.tally import Tally
from hitmiss.metrics.detection import act_dcf_form, eer_form, min_dcf_form, official_threshold
from hitmiss.stats.forms.base import Form
from hitmiss.stats.forms.crossing import Crossing
from hitmiss.stats.forms.mean_of import LeastMeanOf, MeanOf
from hitmiss.stats.forms.whole import Whole
from hitmiss.stats.sketch import tally_for

ERROR_RATES = ("fpr", "fnr")
"""What is measured at a threshold that was fixed on other data."""
OWN_THRESHOLD = "eer"
"""Whose threshold is fixed if no metric is named."""
SRE_POINTS = "0.01+0.005"
"""The priors of a target in NIST SRE 2016 to 2021, with costs of 1 for a miss and for a false alarm."""


def parse_points(text: str) -> list[tuple[float, float, float]]:
    """Read operating points: the prior of a target and the costs of a miss and of a false alarm (1 each, if left out).

    >>> parse_points("0.01+0.05:1:10")
    [(0.01, 1.0, 1.0), (0.05, 1.0, 10.0)]
    """
    points = []
    for part in str(text).split("+"):
        try:
            numbers = [float(word) for word in part.split(":")]
        except ValueError:
            numbers = []
        if len(numbers) not in (1, 3):
            raise UsageError.of("bad-operating-points", text=text)
        points.append((numbers[0], *numbers[1:]) if len(numbers) == 3 else (numbers[0], 1.0, 1.0))
    return [(float(p), float(miss), float(alarm)) for p, miss, alarm in points]


def min_c_primary_form(points: str) -> Form:
    """Return the form of `min_c_primary`."""
    return LeastMeanOf(tuple(min_dcf_form(*point, normalize=True) for point in parse_points(points)))


def act_c_primary_form(points: str) -> Form:
    """Return the form of `act_c_primary`."""
    return MeanOf(tuple(act_dcf_form(*point, normalize=True) for point in parse_points(points)))


@metric(
    best="low",
    form=min_c_primary_form,
    prevalence=False,
    of="both",
    ranks=True,
    symbol=r"min $C_{\mathrm{primary}}$",
    chance=Chance(1.0, TRIVIAL),
)
def min_c_primary(
    label: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None, *, points: str = SRE_POINTS
) -> float:
    """Mean of the minimum detection costs at several operating points, each at its own best threshold.

    (1/k) Σ min_dcf(p_target, c_miss, c_fa), normalised, over the k `points`, written as `0.01+0.005` (priors of a target,
    costs of 1) or `0.01:1:1+0.05:1:10` (prior, cost of a miss, cost of a false alarm). Best: low. Range: 0..1.
    Undefined (NaN) with one class. Reference: NIST 2021 Speaker Recognition Evaluation plan, C_primary.

    >>> round(min_c_primary([1, 1, 0, 0], [0.9, 0.4, 0.6, 0.1], points="0.5+0.01"), 12)
    0.5
    """
    return min_c_primary_form(points).value(Tally.of(label, score, weight))


@metric(
    best="low",
    range=(0.0, math.inf),
    form=act_c_primary_form,
    kinds=("llr",),
    prevalence=False,
    of="both",
    symbol=r"$C_{\mathrm{primary}}$",
    chance=Chance(1.0, TRIVIAL),
)
def act_c_primary(
    label: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None, *, points: str = SRE_POINTS
) -> float:
    """Mean of the actual detection costs at several operating points, each at its Bayes threshold, for LLRs.

    (1/k) Σ act_dcf(p_target, c_miss, c_fa), normalised, over the k `points` (written as in `min_c_primary`). Best: low.
    Range: 0..; above 1 is worse than a trivial system. Undefined (NaN) with one class; refused by the engine for scores
    that are not LLRs. Reference: NIST 2021 Speaker Recognition Evaluation plan, C_primary.

    >>> act_c_primary([1, 1, 0, 0], [9.0, 8.0, -9.0, -8.0])
    0.0
    """
    return act_c_primary_form(points).value(Tally.of(label, score, weight))


TIES = ("grouped", "official")
Decided = Callable[[Number, Number, Number, Number], Number]
"""A number made of missed positives, positives, accepted negatives and negatives."""


def at_eer_form(of: Decided, ties: str) -> Form:
    """Return the form of a number at the threshold of the EER."""
    if ties not in TIES:
        raise UnknownName("tie rule", ties, TIES)
    if ties == "official":
        return Whole(lambda tally: _at_official(of, tally))

    def read(cp: Number, cn: Number, p: Number, q: Number, n1: Number, n0: Number) -> Number:
        before = np.abs(cp / n1 - (n0 - cn) / n0) <= np.abs((cp + p) / n1 - (n0 - cn - q) / n0)
        return np.where(before, of(cp, n1, n0 - cn, n0), of(cp + p, n1, n0 - cn - q, n0))

    crossing = eer_form("grouped")
    assert isinstance(crossing, Crossing)
    return Crossing(crossing.passed, read)


def _at_official(of: Decided, tally: Tally) -> float:
    if not tally.has_both_classes:
        return math.nan
    point = tally.point_at(official_threshold(tally))
    accepted = tally.n_negative - tally.negatives[point].item()
    return float(of(tally.positives[point].item(), tally.n_positive, accepted, tally.n_negative))


def _f1(missed: Number, positives: Number, accepted: Number, negatives: Number) -> Number:
    del negatives
    hits = positives - missed
    return 2.0 * hits / (hits + positives + accepted)


def _accuracy(missed: Number, positives: Number, accepted: Number, negatives: Number) -> Number:
    return (positives - missed + negatives - accepted) / (positives + negatives)


def f1_at_eer_form(ties: str) -> Form:
    """Return the form of `f1_at_eer`."""
    return at_eer_form(_f1, ties)


def accuracy_at_eer_form(ties: str) -> Form:
    """Return the form of `accuracy_at_eer`."""
    return at_eer_form(_accuracy, ties)


@metric(best="high", form=f1_at_eer_form, of="both", ranks=True, symbol="F1 at EER")
def f1_at_eer(label: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None, *, ties: str = "grouped") -> float:
    """F1 of the positive class at the threshold of the EER of the same trials.

    F1 = 2 TP / (2 TP + FP + FN), accepting score >= t at the threshold t with the smallest |FRR − FAR|. `ties=official`
    takes the last rejected score as t, so that it is accepted again, as the Speech DF Arena does; with many trials the
    two hardly differ. Best: high. Range: 0..1. Undefined (NaN) with one class. The threshold is chosen on these trials,
    so the number is optimistic. Reference: Speech DF Arena (arXiv 2509.02859), `utils/metrics.py` of its toolkit.

    >>> f1_at_eer([1, 1, 0, 0], [0.9, 0.4, 0.6, 0.1])
    0.5
    """
    form = f1_at_eer_form(ties)
    return form.value(tally_for(form, label, score, weight))


@metric(best="high", form=accuracy_at_eer_form, of="both", ranks=True, symbol="accuracy at EER")
def accuracy_at_eer(
    label: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None, *, ties: str = "grouped"
) -> float:
    """Accuracy at the threshold of the EER of the same trials; `ties` is as in `f1_at_eer`.

    (TP + TN) / n, accepting score >= t at the threshold t with the smallest |FRR − FAR|. Best: high. Range: 0..1.
    Undefined (NaN) with one class. The threshold is chosen on these trials, so the number is optimistic. Reference:
    Speech DF Arena (arXiv 2509.02859), `utils/metrics.py` of its toolkit.

    >>> accuracy_at_eer([1, 1, 0, 0], [0.9, 0.4, 0.6, 0.1])
    0.5
    """
    form = accuracy_at_eer_form(ties)
    return form.value(tally_for(form, label, score, weight))
