"""Metrics of decisions: accuracy, precision, recall, F1, specificity, error rates, MCC.

Conventions: `label` 1 = positive; `decision` 1 = said positive, 0 = said negative, -1 = abstained,
-2 = the call failed. `accuracy` counts abstentions and failures as wrong; every other number is over the trials that
were answered. An empty denominator is NaN, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, Generic, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.core.errors import DataError
from hitmiss.core.kinds import ABSTAIN, FAILED
from hitmiss.core.metric import COMMONER, Chance, commoner
from hitmiss.core.rates import Rate
from hitmiss.core.registry import metric
from hitmiss.core.sorting import Array, N
from hitmiss.core.tally import check_label, check_weight
from hitmiss.stats.forms.trials import OfCounts

OUTCOMES = 8
"""How many outcomes a decision can have (see `outcome`)."""
CODES = (1, 0, ABSTAIN, FAILED)
"""The codes of decisions."""


@dataclass(frozen=True)
class Counts(Generic[N]):
    """How often each outcome occurred; numbers, or arrays with one entry per replicate."""

    tp: N
    fp: N
    fn: N
    tn: N
    abstained_positive: N | float = 0
    abstained_negative: N | float = 0
    failed_positive: N | float = 0
    failed_negative: N | float = 0

    @classmethod
    def of(cls, label: ArrayLike, decision: ArrayLike, weight: ArrayLike | None = None) -> Counts[float]:
        """Count decisions.

        >>> c = Counts.of([1, 1, 0, 0, 1, 0], [1, 0, 1, 0, -1, -2])
        >>> (c.tp, c.fp, c.fn, c.tn), (c.abstained_positive, c.abstained_negative), (c.failed_positive, c.failed_negative)
        ((1, 1, 1, 1), (1, 0), (0, 1))
        """
        weights = check_weight(weight, np.size(label))
        counted = np.bincount(outcome(label, decision), weights=weights, minlength=OUTCOMES)
        return Counts(*(c.item() for c in counted.astype(_kind(weight))))

    @property
    def n(self) -> N:
        """All trials."""
        return self.n_positive + self.n_negative

    @property
    def n_positive(self) -> N:
        """All positives, answered or not."""
        return self.tp + self.fn + self.abstained_positive + self.failed_positive

    @property
    def n_negative(self) -> N:
        """All negatives, answered or not."""
        return self.tn + self.fp + self.abstained_negative + self.failed_negative

    @property
    def abstained(self) -> N | float:
        """Trials on which the detector declined to decide."""
        return self.abstained_positive + self.abstained_negative

    @property
    def failed(self) -> N | float:
        """Trials whose call failed."""
        return self.failed_positive + self.failed_negative

    @property
    def answered(self) -> N:
        """Trials with a decision."""
        return self.tp + self.fp + self.fn + self.tn


def outcome(label: ArrayLike, decision: ArrayLike) -> NDArray[np.int8]:
    """Return each trial's outcome as a number: 0 TP, 1 FP, 2 FN, 3 TN, then 4 to 7.

    4 and 5 are positives and negatives on which the detector abstained, 6 and 7 those whose call failed.

    >>> outcome([1, 0, 1, 0, 1, 0, 1, 0], [1, 1, 0, 0, -1, -1, -2, -2])
    array([0, 1, 2, 3, 4, 5, 6, 7], dtype=int8)
    """
    positive, said = check_label(label), np.asarray(decision)
    if said.shape != positive.shape:
        raise DataError.of("unequal-length", names=("label", "decision"), sizes=(str(positive.shape), str(said.shape)))
    if not _all_are_codes(said):
        wrong = ~np.isin(said, CODES)
        raise DataError.of("bad-decision", said=said[wrong][0], wrong=int(np.argmax(wrong)))
    return np.int8(3) - np.int8(2) * said.astype(np.int8, copy=False) - positive.view(np.int8)


def _all_are_codes(said: Array) -> bool:
    """Return whether every decision is a known code; for integers the least and the greatest are enough."""
    if said.dtype.kind in "iub":
        return said.size == 0 or bool(int(said.min()) >= min(CODES) and int(said.max()) <= max(CODES))
    return bool(np.isin(said, CODES).all())


def _kind(weight: ArrayLike | None) -> type:
    return np.int64 if weight is None or np.asarray(weight).dtype.kind in "iub" else np.float64


def share(hits: N | float, of: N) -> N:
    """Return a `Rate` of two numbers, or an array of shares of two arrays; NaN if the denominator is 0."""
    if isinstance(of, np.ndarray) or isinstance(hits, np.ndarray):
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.true_divide(hits, of)
    return Rate(hits, of)


class Formula(Protocol):
    """A number of counts, or one number per replicate."""

    def __call__(self, c: Counts[N], /) -> N: ...


class MetricOfCounts(Protocol):
    """A metric of labels and decisions that is also known as a function of their counts, `recall.of(counts)`."""

    __name__: str

    def __call__(self, label: ArrayLike, decision: ArrayLike, weight: ArrayLike | None = None) -> float:
        """Return the number of the decisions."""

    @property
    def of(self) -> Formula:
        """The number of counts."""


def metric_of_counts(**declared: object) -> Callable[[Formula], MetricOfCounts]:
    """Register a function of counts as a metric of labels and decisions. Use it as a decorator, as `hitmiss.metric`."""

    def register(formula: Formula) -> MetricOfCounts:
        def of_decisions(label: ArrayLike, decision: ArrayLike, weight: ArrayLike | None = None) -> float:
            return formula(Counts.of(label, decision, weight))

        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(of_decisions, name, getattr(formula, name))
        of_decisions.__dict__["of"] = formula
        return cast(MetricOfCounts, metric(form=lambda: OfCounts(formula), **declared)(of_decisions))  # type: ignore[arg-type]

    return register


ONE_LESS: Final = {"specificity": "fpr", "fnr": "recall"}
"""Rates that are 1 less another one, which says the same."""
FROM_RATES: Final = ("recall", "fpr")
"""The rates that do not depend on the share of positives, and from which numbers at another share follow."""


def at_share(share: float, recall: float, fpr: float) -> Counts[float]:
    """Return the shares of the outcomes among trials with a share of positives.

    >>> at_share(0.5, 0.5, 0.25)
    Counts(tp=0.25, fp=0.125, fn=0.25, tn=0.375, abstained_positive=0, abstained_negative=0, failed_positive=0, failed_negative=0)
    """
    return Counts(share * recall, (1 - share) * fpr, share * (1 - recall), (1 - share) * (1 - fpr))


def fbeta_of(c: Counts[N], beta: float = 1.0) -> N:
    """Return (1 + β²) TP / ((1 + β²) TP + β² FN + FP)."""
    of = (1.0 + beta**2) * c.tp
    found = share(of, of + beta**2 * c.fn + c.fp)
    return float(found) if isinstance(found, Rate) else found


def decision_cost_of(c: Counts[N], c_fp: float = 1.0, c_fn: float = 1.0) -> N:
    """Return (c_fp FP + c_fn FN) / answered trials."""
    found = share(c_fp * c.fp + c_fn * c.fn, c.tp + c.fp + c.fn + c.tn)
    return float(found) if isinstance(found, Rate) else found


@metric_of_counts(
    best="high",
    also=("acc", "accuracy_score"),
    of="all",
    share=True,
    answered="accuracy_answered",
    chance=Chance(commoner, COMMONER),
    from_rates=True,
)
def accuracy(c: Counts[N]) -> N:
    """Share of all trials decided correctly; abstentions and failed calls count as wrong.

    accuracy = (TP + TN) / n. Best: high. Range: 0..1. Undefined (NaN) without trials.
    Reference: equals `sklearn.metrics.accuracy_score` if nothing abstains.

    >>> accuracy([1, 1, 0, 0], [1, 0, 0, -1])
    Rate(2/4 = 0.5)
    """
    return share(c.tp + c.tn, c.n)


@metric_of_counts(
    best="high",
    zero=True,
    also=("ppv", "precision_score"),
    of="both",
    share=True,
    from_rates=True,
)
def precision(c: Counts[N]) -> N:
    """Share of the trials called positive that are positive.

    precision = TP / (TP + FP). Best: high. Range: 0..1. Undefined (NaN) if nothing was called positive.
    Reference: equals `sklearn.metrics.precision_score` where defined.

    >>> precision([1, 1, 0, 0], [1, 0, 1, 0])
    Rate(1/2 = 0.5)
    """
    return share(c.tp, c.tp + c.fp)


@metric_of_counts(
    best="high",
    prevalence=False,
    zero=True,
    also=("tpr", "sensitivity", "true_positive_rate", "recall_score"),
    of="positives",
    share=True,
)
def recall(c: Counts[N]) -> N:
    """Share of the answered positives that were called positive (true-positive rate).

    recall = TP / (TP + FN). Best: high. Range: 0..1. Undefined (NaN) without answered positives.
    Reference: equals `sklearn.metrics.recall_score` where defined.

    >>> recall([1, 1, 1, 0], [1, 1, 0, 0])
    Rate(2/3 = 0.666667)
    """
    return share(c.tp, c.tp + c.fn)


@metric_of_counts(
    best="high",
    prevalence=False,
    also=("tnr", "true_negative_rate"),
    of="negatives",
    share=True,
)
def specificity(c: Counts[N]) -> N:
    """Share of the answered negatives that were called negative (true-negative rate).

    specificity = TN / (TN + FP). Best: high. Range: 0..1. Undefined (NaN) without answered negatives.
    Reference: equals `sklearn.metrics.recall_score(pos_label=0)` where defined.

    >>> specificity([1, 0, 0, 0], [1, 1, 0, 0])
    Rate(2/3 = 0.666667)
    """
    return share(c.tn, c.tn + c.fp)


@metric_of_counts(
    best="low",
    prevalence=False,
    also=("false_positive_rate", "far", "false_acceptance_rate"),
    of="negatives",
    share=True,
)
def fpr(c: Counts[N]) -> N:
    """False-positive rate (false alarms): share of the answered negatives that were called positive.

    fpr = FP / (FP + TN). Best: low. Range: 0..1. Undefined (NaN) without answered negatives. Reference: 1 −
    specificity.

    >>> fpr([1, 0, 0, 0], [1, 1, 0, 0])
    Rate(1/3 = 0.333333)
    """
    return share(c.fp, c.fp + c.tn)


@metric_of_counts(
    best="low",
    prevalence=False,
    also=("false_negative_rate", "miss_rate", "frr", "false_rejection_rate"),
    of="positives",
    share=True,
)
def fnr(c: Counts[N]) -> N:
    """False-negative rate (misses): share of the answered positives that were called negative.

    fnr = FN / (FN + TP). Best: low. Range: 0..1. Undefined (NaN) without answered positives. Reference: 1 − recall.

    >>> fnr([1, 1, 1, 0], [1, 1, 0, 0])
    Rate(1/3 = 0.333333)
    """
    return share(c.fn, c.fn + c.tp)


@metric_of_counts(
    best="high",
    zero=True,
    also=("f1_score",),
    of="both",
    symbol="F1",
    chance=Chance(lambda share, _: 2 * share / (1 + share), "calling everything positive"),
    from_rates=True,
)
def f1(c: Counts[N]) -> N:
    """Harmonic mean of precision and recall of the positive class.

    F1 = 2 TP / (2 TP + FP + FN). Best: high. Range: 0..1. Undefined (NaN) without positives, true or claimed.
    Reference: equals `sklearn.metrics.f1_score` where defined.

    >>> f1([1, 1, 0, 0], [1, 0, 1, 0])
    0.5
    """
    found = share(2 * c.tp, 2 * c.tp + c.fp + c.fn)
    return float(found) if isinstance(found, Rate) else found  # not a binomial proportion: Wilson does not apply


@metric(
    best="high",
    form=lambda beta=1.0: OfCounts(partial(fbeta_of, beta=beta)),
    zero=True,
    also=("fbeta_score", "f_beta"),
    of="both",
    symbol="Fβ",
)
def fbeta(label: ArrayLike, decision: ArrayLike, weight: ArrayLike | None = None, *, beta: float = 1.0) -> float:
    """Weighted harmonic mean of precision and recall: recall counts β times as much as precision.

    Fβ = (1 + β²) TP / ((1 + β²) TP + β² FN + FP). Best: high. Range: 0..1. Undefined (NaN) without positives, true or
    claimed. Reference: equals `sklearn.metrics.fbeta_score` where defined.

    >>> round(fbeta([1, 1, 1, 0], [1, 0, 0, 0], beta=2), 6)
    0.384615
    """
    return fbeta_of(Counts.of(label, decision, weight), beta)


@metric_of_counts(
    best="low",
    also=("selection_rate", "flagged_rate"),
    from_rates=True,
    of="all",
    share=True,
    two_sided=True,
)
def flag_rate(c: Counts[N]) -> N:
    """Share of the answered trials that were called positive: what reaches a queue.

    flag_rate = (TP + FP) / answered. Best: neither. Range: 0..1. Undefined (NaN) without answered trials.
    Reference: equals `fairlearn.metrics.selection_rate`.

    >>> flag_rate([1, 1, 0, 0], [1, 0, 1, 1])
    Rate(3/4 = 0.75)
    """
    return share(c.tp + c.fp, c.tp + c.fp + c.fn + c.tn)


@metric(
    best="low",
    form=lambda c_fp=1.0, c_fn=1.0: OfCounts(partial(decision_cost_of, c_fp=c_fp, c_fn=c_fn)),
    of="all",
    range=(0.0, math.inf),
    ends=lambda c_fp=1.0, c_fn=1.0: (0.0, max(c_fp, c_fn)),
)
def decision_cost(
    label: ArrayLike, decision: ArrayLike, weight: ArrayLike | None = None, *, c_fp: float = 1.0, c_fn: float = 1.0
) -> float:
    """Mean cost of a decision, where a false alarm and a miss cost what you say.

    decision_cost = (c_fp FP + c_fn FN) / answered. Best: low. Range: 0..max(c_fp, c_fn). Undefined (NaN) without answered
    trials. Reference: with equal costs of 1 it is 1 − accuracy of what was answered.

    >>> decision_cost([1, 1, 0, 0], [1, 0, 1, 0], c_fn=5)
    1.5
    """
    return decision_cost_of(Counts.of(label, decision, weight), c_fp, c_fn)


@metric_of_counts(
    best="high",
    prevalence=False,
    also=("bacc", "balanced_acc", "balanced_accuracy_score"),
    of="both",
    share=True,
    chance=Chance(0.5),
)
def balanced_accuracy(c: Counts[N]) -> N:
    """Mean of recall and specificity: accuracy if both classes were equally frequent.

    (recall + specificity) / 2. Best: high. Range: 0..1; 0.5 is no information. Undefined (NaN) with one class.
    Reference: equals `sklearn.metrics.balanced_accuracy_score`.

    >>> balanced_accuracy([1, 1, 0, 0], [1, 0, 0, 0])
    0.75
    """
    return (recall.of(c) + specificity.of(c)) / 2


@metric_of_counts(
    best="high",
    range=(-1.0, 1.0),
    also=("matthews_corrcoef", "matthews"),
    of="both",
    chance=Chance(0.0),
)
def mcc(c: Counts[N]) -> N:
    """Matthews correlation coefficient between label and decision.

    (TP·TN − FP·FN) / sqrt((TP+FP)(TP+FN)(TN+FP)(TN+FN)). Best: high. Range: −1..1; 0 is no information.
    Undefined (NaN) if a row or column of the table is empty.
    Reference: equals `sklearn.metrics.matthews_corrcoef` where defined.

    >>> mcc([1, 1, 0, 0], [1, 1, 0, 0])
    1.0
    """
    root = np.sqrt(np.multiply(1.0, c.tp + c.fp) * (c.tp + c.fn) * (c.tn + c.fp) * (c.tn + c.fn))
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.true_divide(np.multiply(1.0, c.tp) * c.tn - np.multiply(1.0, c.fp) * c.fn, root)
    if isinstance(c.tp, np.ndarray):
        return np.asarray(value, dtype=np.float64)
    return float(value)
