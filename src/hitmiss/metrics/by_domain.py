"""True-positive rate at thresholds that each domain has of its own (RAID)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.registry import metric
from hitmiss.core.sorting import Array, Floats
from hitmiss.core.tally import check_weight
from hitmiss.stats.forms.trials import OfWeights

COLUMNS = ("label", "score", "domain", "attack")
NO_ATTACK = "none"
"""What the column `attack` holds for a text as it was written."""


@dataclass(frozen=True, eq=False)
class _AtDomainRate(OfWeights):
    """The share of positives above the threshold of their domain, for many replicates at once."""

    fpr: float = field(kw_only=True)

    def of_weights(self, arrays: Mapping[str, Array], weights: Floats) -> Floats:
        """Return the share of every replicate; NaN if a domain with positives has no negative to set a threshold on."""
        label, score, domain, attack = (np.asarray(arrays[name]) for name in self.columns)
        if n := int(np.isnan(score.astype(np.float64)).sum()):
            raise DataError.of("nan-score", n=n, total=len(score))
        sets = (label == 0) & (attack.astype(object) == NO_ATTACK)
        hits, of = np.zeros(len(weights)), np.zeros(len(weights))
        for name in dict.fromkeys(domain.tolist()):
            own = np.flatnonzero((domain == name) & (sets | (label == 1)))
            own = own[np.argsort(-score[own].astype(np.float64), kind="stable")]
            value, positive = score[own], label[own] == 1
            drawn = weights[:, own]
            # Points after each group of equal scores, from accepting nothing on.
            ends = np.append(0, np.flatnonzero(np.append(value[1:] != value[:-1], True)) + 1 if len(own) else [])
            below = np.zeros((2, len(weights), len(own) + 1))
            for k, side in enumerate((positive, ~positive)):
                np.cumsum(drawn * side, axis=1, out=below[k, :, 1:])
            found, alarms = below[0][:, ends.astype(np.intp)], below[1][:, ends.astype(np.intp)]
            with np.errstate(divide="ignore", invalid="ignore"):
                allowed = alarms / alarms[:, -1:] <= self.fpr
            last = allowed.shape[1] - 1 - np.argmax(allowed[:, ::-1], axis=1)
            reached = np.where(alarms[:, -1] > 0, found[np.arange(len(found)), last], np.nan)
            hits += np.where(found[:, -1] > 0, reached, 0.0)
            of += found[:, -1]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(hits / of)


def tpr_at_domain_fpr_form(fpr: float) -> _AtDomainRate:
    """Return the form of `tpr_at_domain_fpr`."""
    if not 0.0 <= fpr <= 1.0:
        raise UsageError.of("out-of-range", name="fpr", low=0, high=1, found=fpr)
    return _AtDomainRate(tpr_at_domain_fpr, COLUMNS, {"fpr": fpr}, fpr=fpr)


@metric(best="high", form=tpr_at_domain_fpr_form, prevalence=False, share=True, symbol="TPR at FPR")
def tpr_at_domain_fpr(
    label: ArrayLike,
    score: ArrayLike,
    domain: ArrayLike,
    attack: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    fpr: float = 0.05,
) -> float:
    """True-positive rate where every domain has a threshold of its own, at a false-positive rate of at most `fpr`.

    Σ over domains of positives with score >= t(domain), divided by all positives; t(domain) is the lowest score that at
    most a share `fpr` of its negatives with attack `none` reach. Best: high. Range: 0..1. Undefined (NaN) without
    positives, or if a domain with positives has no such negative. Reference: Dugan et al. 2024, RAID; its package searches
    the threshold in at most 50 steps, here it is exact.

    >>> domain, attack = ["news"] * 4 + ["poetry"] * 4, ["none"] * 8
    >>> tpr_at_domain_fpr([1, 1, 0, 0, 1, 1, 0, 0], [3, 1, 2, 0, 13, 12, 11, 10], domain, attack, fpr=0.0)
    0.75
    """
    arrays = dict(zip(COLUMNS, (np.asarray(one) for one in (label, score, domain, attack)), strict=True))
    given = check_weight(weight, len(arrays["label"]))
    weights = np.ones(len(arrays["label"])) if given is None else np.asarray(given, dtype=np.float64)
    return float(tpr_at_domain_fpr_form(fpr).of_weights(arrays, weights[None, :])[0])
