"""Metrics of selective classification: what is gained by answering only where confidence is high.

Conventions as in `confidence`: answered trials with a confidence, the most confident first. Trials of equal confidence
have no order, so every figure is its expectation over all orders of them; no sort can change it. Risk is the share of
wrong verdicts among the accepted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hitmiss.errors import UsageError
from hitmiss.metrics.confidence import judged
from hitmiss.registry import metric
from hitmiss.tally import Floats, Tally, check_weight
from hitmiss.values import Over


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
    def of(cls, tally: Tally) -> _Groups:
        wrong = tally.negative_counts[::-1].astype(np.float64)
        size = wrong + tally.positive_counts[::-1]
        return cls(size, wrong, np.cumsum(size) - size, np.cumsum(wrong) - wrong)

    @property
    def n(self) -> float:
        return float(self.size.sum())

    @property
    def n_wrong(self) -> float:
        return float(self.wrong.sum())

    def wrong_among(self, accepted: float) -> float:
        """Expected errors among the `accepted` most confident trials."""
        at = min(int(np.searchsorted(self.taken, accepted, side="right")) - 1, len(self.size) - 1)
        return float(self.failed[at] + self.wrong[at] * (accepted - self.taken[at]) / self.size[at])


def risk_coverage(
    label: ArrayLike, decision: ArrayLike, confidence: ArrayLike, weight: ArrayLike | None = None
) -> RiskCoverage:
    """The risk–coverage curve of the answered trials.

    >>> curve = risk_coverage([1, 1, 0, 0], [1, 0, 0, 1], [0.9, 0.9, 0.8, 0.5])
    >>> curve.threshold.tolist(), curve.coverage.tolist(), curve.risk.round(3).tolist()
    ([0.9, 0.8, 0.5], [0.5, 0.75, 1.0], [0.5, 0.333, 0.5])
    """
    tally = judged(label, decision, confidence, weight)
    groups = _Groups.of(tally)
    accepted, wrong = groups.taken + groups.size, groups.failed + groups.wrong
    return RiskCoverage(tally.score[::-1], accepted / groups.n, wrong / accepted, wrong / groups.n)


@metric(best="low")
def aurc(label: ArrayLike, decision: ArrayLike, confidence: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Area under the risk–coverage curve: the mean risk over all numbers of accepted trials.

    (1/n) Σ_k (expected errors among the k most confident) / k. Best: low. Range: 0..1; all wrong gives 1. Undefined
    (NaN) without an answered trial that has a confidence. Confidences that say nothing give the error rate.
    Reference: Geifman et al. 2019, with the expectation over the order of ties.

    >>> aurc([1, 1], [1, 0], [0.9, 0.5])
    Over(0.25 over 2)
    """
    groups = _Groups.of(judged(label, decision, confidence, weight))
    return Over(_area(groups), groups.n)


def _area(g: _Groups) -> float:
    """Inside a group the expected errors rise evenly, so the sum over its places is a difference of digammas."""
    if not g.n:
        return math.nan
    rise = g.wrong / g.size
    return float(np.sum(g.wrong + (g.failed - rise * g.taken) * _harmonic(g.taken, g.size)) / g.n)


def _harmonic(taken: Floats, size: Floats) -> Floats:
    """1/(taken + 1) + … + 1/(taken + size)."""
    from scipy.special import digamma  # a fifth of a second that other metrics need not pay

    return np.asarray(digamma(taken + size + 1.0) - digamma(taken + 1.0))


@metric(best="low")
def e_aurc(label: ArrayLike, decision: ArrayLike, confidence: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Excess area under the risk–coverage curve: `aurc` less that of the best order for as many errors, all of them last.

    aurc − (1/n) Σ_{j=1..e} j / (n − e + j), e the number of errors. Best: low. Range: 0..1; 0 where every error is less
    confident than every right verdict. Undefined (NaN) without an answered trial that has a confidence.
    Reference: Geifman et al. 2019; the best area is summed exactly here, not approximated.

    >>> e_aurc([1, 1], [1, 0], [0.9, 0.5]), e_aurc([1, 1], [1, 0], [0.5, 0.9])
    (Over(0 over 2), Over(0.5 over 2))
    """
    groups = _Groups.of(judged(label, decision, confidence, weight))
    if not groups.n:
        return Over(math.nan, 0)
    right, wrong = groups.n - groups.n_wrong, groups.n_wrong
    best = (wrong - right * float(_harmonic(np.array([right]), np.array([wrong]))[0])) / groups.n
    return Over(max(0.0, _area(groups) - best), groups.n)


@metric(best="low")
def augrc(label: ArrayLike, decision: ArrayLike, confidence: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Area under the generalized risk–coverage curve: the mean share of trials that are accepted and wrong.

    ∫ (errors among the accepted) / n d(coverage) = (1 − AUROC_f) · a (1 − a) + (1 − a)² / 2, a the accuracy and AUROC_f
    the chance that a right verdict is the more confident one; ties do not move it. Best: low. Range: 0..0.5. Undefined
    (NaN) without an answered trial that has a confidence. Reference: Traub et al. 2024.

    >>> augrc([1, 1], [1, 0], [0.9, 0.5])
    Over(0.125 over 2)
    """
    g = _Groups.of(judged(label, decision, confidence, weight))
    return Over(float(g.size @ (g.failed + g.wrong / 2)) / g.n**2 if g.n else math.nan, g.n)


@metric(best="high")
def accuracy_at_coverage(
    label: ArrayLike,
    decision: ArrayLike,
    confidence: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    coverage: float = 0.8,
) -> float:
    """Accuracy among the most confident answers that cover a given share of **all** trials.

    1 − (expected errors among the k most confident) / k, k = coverage · n, n all trials with abstentions and failures.
    Best: high. Range: 0..1. Undefined (NaN) where fewer trials than that were answered with a confidence.
    Reference: Geifman & El-Yaniv 2017.

    >>> accuracy_at_coverage([1, 1, 0, 0], [1, 0, 0, -1], [0.9, 0.5, 0.8, 0.99], coverage=0.5)
    Over(1 over 2)
    """
    if not 0.0 < coverage <= 1.0:
        raise UsageError(f"coverage must lie in 0..1, 0 excluded; found {coverage}")
    groups = _Groups.of(judged(label, decision, confidence, weight))
    accepted = coverage * _all(label, weight)
    if not 0.0 < accepted <= groups.n * (1 + 1e-12):
        return Over(math.nan, 0)
    return Over(1.0 - groups.wrong_among(min(accepted, groups.n)) / accepted, accepted)


@metric(best="high")
def coverage_at_accuracy(
    label: ArrayLike,
    decision: ArrayLike,
    confidence: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    accuracy: float = 0.95,
) -> float:
    """The greatest share of **all** trials that a threshold on the confidence can answer with at least this accuracy.

    max over thresholds t with accuracy{confidence >= t} >= accuracy of n{confidence >= t} / n, n all trials; 0 where no
    threshold reaches it. A threshold cannot part equal confidences. Chosen on the data that it is read from, so
    optimistic. Best: high. Range: 0..1. Undefined (NaN) without trials.
    Reference: Geifman & El-Yaniv 2017.

    >>> coverage_at_accuracy([1, 1, 0, 0], [1, 0, 0, -1], [0.9, 0.5, 0.8, 0.99], accuracy=0.9)
    Over(0.5 over 4)
    """
    if not 0.0 < accuracy <= 1.0:
        raise UsageError(f"accuracy must lie in 0..1, 0 excluded; found {accuracy}")
    groups, n = _Groups.of(judged(label, decision, confidence, weight)), _all(label, weight)
    if not n:
        return Over(math.nan, 0)
    accepted, wrong = groups.taken + groups.size, groups.failed + groups.wrong
    reached = accepted[accepted - wrong >= accuracy * accepted * (1 - 1e-12)]
    return Over(float(reached.max()) / n if len(reached) else 0.0, n)


def _all(label: ArrayLike, weight: ArrayLike | None) -> float:
    size = int(np.size(label))
    weights = check_weight(weight, size)
    return float(size if weights is None else weights.sum())
