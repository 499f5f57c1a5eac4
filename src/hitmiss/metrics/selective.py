"""Metrics of selective classification: what is gained by answering only if the confidence is high.

Conventions as in `confidence`: answered trials with a confidence, the most confident first. Trials of equal confidence
have no order, so every number is its expectation over all their orders, and no sort can change it. Risk is the share of
wrong verdicts among the accepted trials.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from hitmiss.core.errors import UsageError
from hitmiss.core.rates import PartialEstimate
from hitmiss.core.registry import metric
from hitmiss.core.sorting import Floats
from hitmiss.core.tally import check_weight
from hitmiss.metrics.confidence import judged, per_trial
from hitmiss.stats.judged import Judged

OF_CONFIDENCES: Final = ("ece", "smooth_ece", "brier_confidence", "aurc")
"""What several sources of confidence are compared by."""


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """The risk–coverage curve at every confidence that occurs, from the highest down.

    Accepting `confidence >= threshold[i]` covers the share `coverage[i]` of the answered trials, of which the share
    `risk[i]` is wrong; `generalized_risk[i]` is the share that is accepted and wrong.
    """

    threshold: Floats
    coverage: Floats
    risk: Floats
    generalized_risk: Floats


@dataclass(frozen=True, eq=False)
class _Groups:
    """Groups of equal confidence, the most confident first: size, errors, and what was accepted before each."""

    size: Floats
    wrong: Floats
    taken: Floats
    failed: Floats

    @classmethod
    def of(cls, j: Judged) -> _Groups:
        wrong = j.wrong[..., ::-1]
        size = wrong + j.right[..., ::-1]
        return cls(size, wrong, np.cumsum(size, axis=-1) - size, np.cumsum(wrong, axis=-1) - wrong)

    @property
    def rise(self) -> Floats:
        """Return the errors per trial inside each group; 0 in an empty one."""
        return self.wrong / np.maximum(self.size, 1e-300)

    @property
    def n(self) -> Floats:
        return np.asarray(self.size.sum(axis=-1))

    @property
    def n_wrong(self) -> Floats:
        return np.asarray(self.wrong.sum(axis=-1))


def aurc_of(j: Judged) -> Floats:
    """Return (1/n) Σ_k expected risk of the k most confident.

    Inside a group the expected errors rise linearly, so the sum over its positions is a difference of digamma values.
    """
    g = _Groups.of(j)
    total = np.sum(g.wrong + (g.failed - g.rise * g.taken) * _harmonic(g.taken, g.size), axis=-1)
    return per_trial(total, g.n)


def e_aurc_of(j: Judged) -> Floats:
    """Return AURC minus that of the best order."""
    g = _Groups.of(j)
    right, wrong = g.n - g.n_wrong, g.n_wrong
    best = per_trial(wrong - right * _harmonic(right, wrong), g.n)
    return np.maximum(0.0, aurc_of(j) - best)


def augrc_of(j: Judged) -> Floats:
    """Return the mean share of trials that are accepted and wrong."""
    g = _Groups.of(j)
    return per_trial(np.sum(g.size * (g.failed + g.wrong / 2), axis=-1), g.n**2)


def accuracy_at_coverage_of(j: Judged, coverage: float) -> Floats:
    """Return the expected accuracy of the most confident answers that cover a share of all trials."""
    g = _Groups.of(j)
    accepted = np.asarray(coverage * j.n_all)
    within = (accepted > 0) & (accepted <= g.n * (1 + 1e-12))
    part = np.clip((accepted[..., None] - g.taken) / np.maximum(g.size, 1e-300), 0.0, 1.0)
    risk = per_trial(np.sum(g.wrong * part, axis=-1), accepted)
    return np.where(within, 1.0 - risk, np.nan)


def coverage_at_accuracy_of(j: Judged, accuracy: float) -> Floats:
    """Return the greatest share of all trials that a threshold can answer with this accuracy."""
    g = _Groups.of(j)
    accepted, wrong = g.taken + g.size, g.failed + g.wrong
    reached = (g.size > 0) & (accepted - wrong >= accuracy * accepted * (1 - 1e-12))
    most = np.max(np.where(reached, accepted, 0.0), axis=-1, initial=0.0)
    return per_trial(most, j.n_all)


def risk_coverage(
    label: ArrayLike, decision: ArrayLike, confidence: ArrayLike, weight: ArrayLike | None = None
) -> RiskCoverage:
    """Return the risk–coverage curve of the answered trials.

    >>> curve = risk_coverage([1, 1, 0, 0], [1, 0, 0, 1], [0.9, 0.9, 0.8, 0.5])
    >>> curve.threshold.tolist(), curve.coverage.tolist(), curve.risk.round(3).tolist()
    ([0.9, 0.8, 0.5], [0.5, 0.75, 1.0], [0.5, 0.333, 0.5])
    """
    tally = judged(label, decision, confidence, weight)
    groups = _Groups.of(Judged.of(tally))
    accepted, wrong = groups.taken + groups.size, groups.failed + groups.wrong
    return RiskCoverage(tally.score[::-1], accepted / groups.n, wrong / accepted, wrong / groups.n)


@metric(best="low", judged=aurc_of, one_by_one=True)
def aurc(label: ArrayLike, decision: ArrayLike, confidence: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Area under the risk–coverage curve: the mean risk over all numbers of accepted trials.

    (1/n) Σ_k (expected errors among the k most confident) / k. Best: low. Range: 0..1; all wrong gives 1. Undefined
    (NaN) without an answered trial that has a confidence. Confidences without information give the error rate.
    Reference: Geifman et al. 2019, with the expectation over the order of ties.

    >>> aurc([1, 1], [1, 0], [0.9, 0.5])
    PartialEstimate(0.25 over 2)
    """
    return _over(aurc_of, _judged(label, decision, confidence, weight))


def _judged(label: ArrayLike, decision: ArrayLike, confidence: ArrayLike, weight: ArrayLike | None) -> Judged:
    return Judged.of(judged(label, decision, confidence, weight), _all(label, weight))


def _over(function: Callable[..., Floats], j: Judged, **settings: float) -> PartialEstimate:
    return PartialEstimate(float(function(j, **settings)), float(j.n))


def _harmonic(taken: Floats, size: Floats) -> Floats:
    """Return 1/(taken + 1) + … + 1/(taken + size)."""
    from scipy.special import digamma  # slow to import, and needed only here

    return np.asarray(digamma(taken + size + 1.0) - digamma(taken + 1.0))


@metric(best="low", judged=e_aurc_of, one_by_one=True)
def e_aurc(label: ArrayLike, decision: ArrayLike, confidence: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Excess area under the risk–coverage curve: `aurc` minus that of the best order, which has all errors last.

    aurc − (1/n) Σ_{j=1..e} j / (n − e + j), e the number of errors. Best: low. Range: 0..1; 0 if every error is less
    confident than every right verdict. Undefined (NaN) without an answered trial that has a confidence.
    Reference: Geifman et al. 2019; the best area is summed exactly here, not approximated.

    >>> e_aurc([1, 1], [1, 0], [0.9, 0.5]), e_aurc([1, 1], [1, 0], [0.5, 0.9])
    (PartialEstimate(0 over 2), PartialEstimate(0.5 over 2))
    """
    return _over(e_aurc_of, _judged(label, decision, confidence, weight))


@metric(best="low", range=(0.0, 0.5), judged=augrc_of)
def augrc(label: ArrayLike, decision: ArrayLike, confidence: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Area under the generalized risk–coverage curve: the mean share of trials that are accepted and wrong.

    ∫ (errors among the accepted) / n d(coverage) = (1 − AUROC_f) · a (1 − a) + (1 − a)² / 2, a the accuracy and AUROC_f
    the chance that a right verdict is more confident than a wrong one; ties do not change it. Best: low. Range: 0..0.5.
    Undefined (NaN) without an answered trial that has a confidence. Reference: Traub et al. 2024.

    >>> augrc([1, 1], [1, 0], [0.9, 0.5])
    PartialEstimate(0.125 over 2)
    """
    return _over(augrc_of, _judged(label, decision, confidence, weight))


@metric(best="high", judged=accuracy_at_coverage_of, share=True)
def accuracy_at_coverage(
    label: ArrayLike,
    decision: ArrayLike,
    confidence: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    coverage: float = 0.8,
) -> float:
    """Accuracy among the most confident answers that cover a given share of **all** trials.

    1 − (expected errors among the k most confident) / k, k = coverage · n, where n counts all trials, also abstentions
    and failures. Best: high. Range: 0..1. Undefined (NaN) if fewer trials than that were answered with a confidence.
    Reference: Geifman & El-Yaniv 2017.

    >>> accuracy_at_coverage([1, 1, 0, 0], [1, 0, 0, -1], [0.9, 0.5, 0.8, 0.99], coverage=0.5)
    PartialEstimate(1 over 2)
    """
    if not 0.0 < coverage <= 1.0:
        raise UsageError.of("out-of-range/up-to", name="coverage", low=0, high=1, found=coverage)
    j = _judged(label, decision, confidence, weight)
    return PartialEstimate(float(accuracy_at_coverage_of(j, coverage)), coverage * float(j.n_all))


@metric(best="high", judged=coverage_at_accuracy_of, share=True)
def coverage_at_accuracy(
    label: ArrayLike,
    decision: ArrayLike,
    confidence: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    accuracy: float = 0.95,
) -> float:
    """The greatest share of **all** trials that a threshold on the confidence can answer with at least this accuracy.

    max over thresholds t with accuracy{confidence >= t} >= accuracy of n{confidence >= t} / n, n all trials; 0 if no
    threshold reaches it. A threshold cannot separate equal confidences. The threshold is chosen on the data that it is
    judged on, so the number is optimistic. Best: high. Range: 0..1. Undefined (NaN) without trials.
    Reference: Geifman & El-Yaniv 2017.

    >>> coverage_at_accuracy([1, 1, 0, 0], [1, 0, 0, -1], [0.9, 0.5, 0.8, 0.99], accuracy=0.9)
    PartialEstimate(0.5 over 4)
    """
    if not 0.0 < accuracy <= 1.0:
        raise UsageError.of("out-of-range/up-to", name="accuracy", low=0, high=1, found=accuracy)
    j = _judged(label, decision, confidence, weight)
    return PartialEstimate(float(coverage_at_accuracy_of(j, accuracy)), float(j.n_all))


def _all(label: ArrayLike, weight: ArrayLike | None) -> float:
    size = int(np.size(label))
    weights = check_weight(weight, size)
    return float(size if weights is None else weights.sum())
