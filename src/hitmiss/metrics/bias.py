"""Unintended bias of a text classifier: how it ranks texts that mention an identity and texts that do not.

Conventions: `label` 1 = toxic, higher score = toxic, `member` 1 if the text mentions the identity (the subgroup); all
other texts are the background. Reference for all: Borkan et al. 2019, Nuanced metrics for measuring unintended bias
with real data for text classification (WWW companion); the Jigsaw unintended-bias competition used the mean with p =
−5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.sorting import Array
from hitmiss.core.tally import check_label, check_trials, check_weight
from hitmiss.metrics.ranking import roc_auc

POWER = -5.0
OVERALL_WEIGHT = 0.25
SMALL_POWER, NO_POWER = 1e-3, 1e-30
KINDS = ("subgroup_auc", "bpsn_auc", "bnsp_auc")
FINAL: Final = "bias_score"
IDENTITY: Final = "identity"
"""The column of results that names an identity; the means stand at all of them, `*`."""
AVERAGE: Final = "power mean"
"""What the means over identities are called."""


def subgroup_auc(label: ArrayLike, score: ArrayLike, member: ArrayLike, weight: ArrayLike | None = None) -> float:
    """ROC AUC among the texts that mention the identity: can the model distinguish toxic from non-toxic texts there?

    AUC(subgroup positives, subgroup negatives). Best: high. Range: 0..1. Undefined (NaN) if the subgroup has one class.
    Reference: Borkan et al. 2019.

    >>> subgroup_auc([1, 0, 1, 0], [0.9, 0.2, 0.8, 0.1], member=[1, 1, 0, 0])
    1.0
    """
    return _auc(label, score, weight, *_sides(label, member)[0])


def bpsn_auc(label: ArrayLike, score: ArrayLike, member: ArrayLike, weight: ArrayLike | None = None) -> float:
    """AUC of background positives against subgroup negatives; low if harmless texts about the identity score too high.

    AUC(background positives, subgroup negatives). Best: high. Range: 0..1. Undefined (NaN) if either is empty.
    Reference: Borkan et al. 2019.

    >>> bpsn_auc([1, 0, 1, 0], [0.9, 0.85, 0.8, 0.1], member=[1, 1, 0, 0])     # 0.8 toxic, 0.85 harmless with identity
    0.0
    """
    return _auc(label, score, weight, *_sides(label, member)[1])


def bnsp_auc(label: ArrayLike, score: ArrayLike, member: ArrayLike, weight: ArrayLike | None = None) -> float:
    """AUC of subgroup positives against background negatives; low if toxic texts about the identity score too low.

    AUC(subgroup positives, background negatives). Best: high. Range: 0..1. Undefined (NaN) if either is empty.
    Reference: Borkan et al. 2019.

    >>> bnsp_auc([1, 0, 1, 0], [0.3, 0.2, 0.8, 0.1], member=[1, 1, 0, 0])
    1.0
    """
    return _auc(label, score, weight, *_sides(label, member)[2])


def power_mean(values: ArrayLike, p: float = POWER) -> float:
    """Generalised mean of positive numbers; the lower p is, the more the worst value counts. NaN values are left out.

    M_p = (Σ vᵢᵖ / n)^(1/p); p = 0 is the geometric mean. Best: high. Range: that of the values. Undefined (NaN) without
    values; 0 if p <= 0 and a value is 0. Reference: Borkan et al. 2019, p = −5.

    >>> power_mean([0.5, 1.0], p=1), round(power_mean([0.5, 1.0]), 4)
    (0.75, 0.5708)
    """
    given = np.asarray(values, dtype=np.float64)
    held = given[~np.isnan(given)]
    if (held < 0).any():
        raise DataError.of("bad-power-mean", held=float(held.min()))
    if not len(held):
        return math.nan
    if p <= 0 and (held == 0).any():
        return 0.0
    if abs(p) < NO_POWER:
        return float(np.exp(np.mean(np.log(held))))
    top = float(held.max())  # scaled, so that no power overflows
    if not top:
        return 0.0
    if abs(p) < SMALL_POWER:  # powers near 1 would lose their digits
        with np.errstate(divide="ignore"):
            return top * math.exp(math.log1p(float(np.mean(np.expm1(p * np.log(held / top))))) / p)
    return float(top * float(np.mean((held / top) ** p)) ** (1.0 / p))


def power_mean_slopes(values: ArrayLike, p: float = POWER) -> NDArray[np.float64]:
    """Return how fast a power mean rises with each of its values: (vᵢ / M)^(p − 1) / n. All values must be above 0.

    >>> power_mean_slopes([0.5, 0.5]).tolist(), power_mean_slopes([0.5, 1.0], p=1).tolist()
    ([0.5, 0.5], [0.5, 0.5])
    """
    given = np.asarray(values, dtype=np.float64)
    return np.asarray((given / power_mean(given, p)) ** (p - 1.0) / len(given))


RANGES: Final = dict.fromkeys((*KINDS, FINAL), (0.0, 1.0))
"""The least and greatest possible values of each number; higher is better."""


@dataclass(frozen=True)
class BiasScore:
    """The three power means over identities, the overall AUC, and the weighted mean of the four."""

    overall_auc: float
    power_means: Mapping[str, float]
    final: float


def bias_score(
    overall_auc: float,
    per_identity: Mapping[str, Sequence[float]],
    *,
    p: float = POWER,
    overall_weight: float = OVERALL_WEIGHT,
) -> BiasScore:
    """Compute the final number of the Jigsaw competition from the AUCs of each identity.

    final = w · AUC + (1 − w) / 3 · Σ over the three kinds of M_p. Best: high. Range: 0..1. Undefined (NaN) if a kind is
    undefined for every identity.

    >>> round(bias_score(0.9, {"subgroup_auc": [0.8], "bpsn_auc": [0.7], "bnsp_auc": [0.9]}).final, 4)
    0.825
    """
    unknown = set(per_identity) ^ set(KINDS)
    if unknown:
        raise UsageError.of("bad-bias-kinds", KINDS=tuple(KINDS), per_identity=tuple(per_identity))
    if not 0.0 <= overall_weight <= 1.0:
        raise UsageError.of("out-of-range", name="overall_weight", low=0, high=1, found=overall_weight)
    means = {kind: power_mean(per_identity[kind], p) for kind in KINDS}
    final = overall_weight * overall_auc + (1.0 - overall_weight) * sum(means.values()) / len(KINDS)
    return BiasScore(overall_auc, means, final)


Mask = NDArray[np.bool_]


def _sides(label: ArrayLike, member: ArrayLike) -> tuple[tuple[Mask, Mask], ...]:
    """Return, for each kind of AUC, the positives and the negatives that are compared."""
    positive, inside = check_label(label), check_label(member)
    if positive.shape != inside.shape:
        raise DataError.of("unequal-length", names=("label", "member"), sizes=(str(positive.shape), str(inside.shape)))
    return (
        (positive & inside, ~positive & inside),
        (positive & ~inside, ~positive & inside),
        (positive & inside, ~positive & ~inside),
    )


def _auc(label: ArrayLike, score: ArrayLike, weight: ArrayLike | None, positive: Mask, negative: Mask) -> float:
    check_trials(label, score)
    kept, values = positive | negative, np.asarray(score, dtype=np.float64)
    weights: Array | None = check_weight(weight, len(kept))
    return roc_auc(positive[kept], values[kept], None if weights is None else weights[kept])
