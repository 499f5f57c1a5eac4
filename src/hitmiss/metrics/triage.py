"""Metrics of triage: three-way verdicts, where `uncertain` sends an item to a person instead of guessing.

Conventions: the positive class is fake, so TP is a fake called fake and FN a fake passed as real; `decision` 1 = fake,
0 = real, -1 = uncertain, -2 = the call failed. A trial is answered if its verdict is fake or real. Precision, recall
and F1 are over the answered trials; slip, false flag, catch and pass are over **all** trials of the class, answered or
not, so that catch = recall × coverage of the class. An empty denominator gives NaN, never 0.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from hitmiss.core.errors import DataError
from hitmiss.core.metric import COMMONER, Chance, commoner
from hitmiss.core.rates import Rate
from hitmiss.core.registry import metric
from hitmiss.core.sorting import N
from hitmiss.core.tally import check_weight
from hitmiss.metrics.counts import Counts, f1, metric_of_counts, precision, recall, share, specificity

FAKE = "fake"
OF_PEOPLE: Final = ("accuracy", "coverage", "accuracy_answered", "fake_slip_rate", "real_false_flag_rate")
"""What a system, people, and both together are compared by."""
PARSED: Final = ("accuracy", "accuracy_answered", "coverage", "fake_slip_rate", "real_false_flag_rate")
"""What shows whether another way to read answers changes a result."""
WRONG: Final = ("fake_slip_rate", "real_false_flag_rate")
"""The rates of wrong verdicts of each class, which thresholds are chosen to limit."""


def mirrored(c: Counts[N]) -> Counts[N]:
    """Return the counts with real as the positive class."""
    return Counts(c.tn, c.fn, c.fp, c.tp)


@metric_of_counts(
    best="high",
    zero=True,
    of="answered",
    share=True,
    chance=Chance(commoner, f"{COMMONER} at the same coverage"),
)
def accuracy_answered(c: Counts[N]) -> N:
    """Share of the answered trials decided correctly (selective accuracy); read it together with `coverage`.

    (TP + TN) / answered. Best: high. Range: 0..1. Undefined (NaN) if nothing was answered.
    Reference: equals `sklearn.metrics.accuracy_score` on the answered trials.

    >>> accuracy_answered([1, 1, 0, 0], [1, 0, 0, -1])
    Rate(2/3 = 0.666667)
    """
    return share(c.tp + c.tn, c.answered)


@metric_of_counts(best="high", zero=True, of="all", share=True, covers="all")
def coverage(c: Counts[N]) -> N:
    """Share of all trials that were answered: neither abstained nor failed.

    answered / n. Best: high. Range: 0..1. Undefined (NaN) without trials.
    Reference: El-Yaniv & Wiener 2010 (selective classification).

    >>> coverage([1, 1, 0, 0], [1, 0, -1, -2])
    Rate(2/4 = 0.5)
    """
    return share(c.answered, c.n)


@metric_of_counts(
    best="high",
    positive=FAKE,
    prevalence=False,
    zero=True,
    of="positives",
    share=True,
    covers="positives",
)
def coverage_fake(c: Counts[N]) -> N:
    """Share of all fakes that were answered.

    (TP + FN) / all fakes. Best: high. Range: 0..1. Undefined (NaN) without fakes.
    Reference: `coverage` of one class; failed calls are not answered.

    >>> coverage_fake([1, 1, 1, 0], [1, 0, -2, -1])
    Rate(2/3 = 0.666667)
    """
    return share(c.tp + c.fn, c.n_positive)


@metric_of_counts(
    best="high",
    positive=FAKE,
    prevalence=False,
    zero=True,
    of="negatives",
    share=True,
    covers="negatives",
)
def coverage_real(c: Counts[N]) -> N:
    """Share of all reals that were answered.

    (TN + FP) / all reals. Best: high. Range: 0..1. Undefined (NaN) without reals.
    Reference: `coverage` of one class; failed calls are not answered.

    >>> coverage_real([1, 0, 0, 0], [1, 0, -1, -1])
    Rate(1/3 = 0.333333)
    """
    return share(c.tn + c.fp, c.n_negative)


@metric_of_counts(best="low", zero=True, of="all", share=True)
def abstain_rate(c: Counts[N]) -> N:
    """Share of all trials on which the detector abstained: what people would have to review.

    abstained / n; failed calls are not abstentions. Best: low. Range: 0..1. Undefined (NaN) without trials.
    Reference: coverage + abstain_rate + error_rate = 1.

    >>> abstain_rate([1, 1, 0, 0], [1, 0, -1, -2])
    Rate(1/4 = 0.25)
    """
    return share(c.abstained, c.n)


@metric_of_counts(best="low", zero=True, of="all", share=True)
def error_rate(c: Counts[N]) -> N:
    """Share of all trials whose call failed: no answer, and no abstention either.

    failed / n. Not 1 − accuracy. Best: low. Range: 0..1. Undefined (NaN) without trials.
    Reference: coverage + abstain_rate + error_rate = 1.

    >>> error_rate([1, 1, 0, 0], [1, 0, -1, -2])
    Rate(1/4 = 0.25)
    """
    return share(c.failed, c.n)


@metric(best="low", share=True)
def unparsed_rate(unparsed: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Share of all trials whose verdict could not be understood; they are among the abstentions.

    unparsed / n. Best: low. Range: 0..1. Undefined (NaN) without trials. Reference: a part of `abstain_rate`.

    >>> unparsed_rate([0, 0, 1, 0])
    Rate(1/4 = 0.25)
    """
    return _share_of(unparsed, "unparsed", weight)


@metric(best="low", share=True)
def refused_rate(refused: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Share of all trials that the model refused to answer.

    refused / n. Best: low. Range: 0..1. Undefined (NaN) without trials. Reference: a part of `unparsed_rate`.

    >>> refused_rate([0, 0, 1, 0])
    Rate(1/4 = 0.25)
    """
    return _share_of(refused, "refused", weight)


@metric(best="low", share=True)
def cut_rate(cut: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Share of all trials whose answer was cut off before it gave a verdict.

    cut / n. Best: low. Range: 0..1. Undefined (NaN) without trials. Reference: a part of `unparsed_rate`.

    >>> cut_rate([0, 0, 1, 0])
    Rate(1/4 = 0.25)
    """
    return _share_of(cut, "cut", weight)


@metric(best="low", share=True)
def filtered_rate(filtered: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Share of all trials whose answer the provider held back.

    filtered / n. Best: low. Range: 0..1. Undefined (NaN) without trials. Reference: a part of `unparsed_rate`.

    >>> filtered_rate([0, 0, 1, 0])
    Rate(1/4 = 0.25)
    """
    return _share_of(filtered, "filtered", weight)


def _share_of(marks: ArrayLike, name: str, weight: ArrayLike | None) -> float:
    flags = np.asarray(marks, dtype=np.float64)
    if flags.ndim != 1 or not ((flags == 0.0) | (flags == 1.0)).all():
        raise DataError.of("not-bits", name=name)
    weights = check_weight(weight, len(flags))
    return Rate(float(flags.sum()), len(flags)) if weights is None else Rate(float(flags @ weights), weights.sum())


@metric_of_counts(best="high", positive=FAKE, zero=True, of="both", share=True)
def precision_fake(c: Counts[N]) -> N:
    """When the verdict is fake, how often it is right.

    TP / (TP + FP), on answered trials. Best: high. Range: 0..1. Undefined (NaN) if nothing was called fake.
    Reference: equals `sklearn.metrics.precision_score` on the answered trials.

    >>> precision_fake([1, 1, 0, 0], [1, -1, 1, 0])
    Rate(1/2 = 0.5)
    """
    return precision.of(c)


@metric_of_counts(
    best="high",
    positive=FAKE,
    prevalence=False,
    zero=True,
    of="positives",
    share=True,
)
def recall_fake(c: Counts[N]) -> N:
    """Share of the answered fakes that were called fake. Not `fake_catch_rate`, which is over all fakes.

    TP / (TP + FN), on answered trials. Best: high. Range: 0..1. Undefined (NaN) if no fake was answered.
    Reference: equals `sklearn.metrics.recall_score` on the answered trials.

    >>> recall_fake([1, 1, 1, 0], [1, 0, -1, 0])
    Rate(1/2 = 0.5)
    """
    return recall.of(c)


@metric_of_counts(best="high", positive=FAKE, zero=True, of="both")
def f1_fake(c: Counts[N]) -> N:
    """Harmonic mean of precision and recall of fake.

    2 TP / (2 TP + FP + FN), on answered trials. Best: high. Range: 0..1. Undefined (NaN) if precision or recall is:
    no fake was answered, or nothing called fake. Reference: equals `sklearn.metrics.f1_score` on the answered trials.

    >>> f1_fake([1, 1, 0, 0], [1, 0, 1, -1])
    0.5
    """
    found = f1.of(c)
    defined = (c.tp + c.fp > 0) & (c.tp + c.fn > 0)
    if isinstance(found, np.ndarray):
        return np.where(defined, found, np.nan)
    return found if defined else float("nan")


@metric_of_counts(best="high", positive=FAKE, zero=True, of="both", share=True)
def precision_real(c: Counts[N]) -> N:
    """When the verdict is real, how often it is right.

    TN / (TN + FN), on answered trials. Best: high. Range: 0..1. Undefined (NaN) if nothing was called real.
    Reference: equals `sklearn.metrics.precision_score(pos_label=0)` on the answered trials.

    >>> precision_real([1, 1, 0, 0], [0, -1, 1, 0])
    Rate(1/2 = 0.5)
    """
    return precision.of(mirrored(c))


@metric_of_counts(
    best="high",
    positive=FAKE,
    prevalence=False,
    zero=True,
    of="negatives",
    share=True,
)
def recall_real(c: Counts[N]) -> N:
    """Share of the answered reals that were called real. Not `real_pass_rate`, which is over all reals.

    TN / (TN + FP), on answered trials. Best: high. Range: 0..1. Undefined (NaN) if no real was answered.
    Reference: equals `sklearn.metrics.recall_score(pos_label=0)` on the answered trials.

    >>> recall_real([1, 0, 0, 0], [1, 1, 0, -1])
    Rate(1/2 = 0.5)
    """
    return specificity.of(c)


@metric_of_counts(best="high", positive=FAKE, zero=True, of="both")
def f1_real(c: Counts[N]) -> N:
    """Harmonic mean of precision and recall of real.

    2 TN / (2 TN + FN + FP), on answered trials. Best: high. Range: 0..1. Undefined (NaN) if precision or recall is:
    no real was answered, or nothing called real. Reference: `sklearn.metrics.f1_score(pos_label=0)`, answered trials.

    >>> f1_real([0, 0, 1, 1], [0, 1, 0, -1])
    0.5
    """
    return f1_fake.of(mirrored(c))


@metric_of_counts(best="low", positive=FAKE, prevalence=False, zero=True, of="positives", share=True)
def fake_slip_rate(c: Counts[N]) -> N:
    """Share of all fakes that were passed as real: the harm that triage lets through.

    FN / all fakes, abstained and failed ones included. Best: low. Range: 0..1. Undefined (NaN) without fakes.
    Reference: DF3 evaluation methodology; slip + catch + abstained + failed = all fakes.

    >>> fake_slip_rate([1, 1, 1, 1], [0, 1, -1, -2])
    Rate(1/4 = 0.25)
    """
    return share(c.fn, c.n_positive)


@metric_of_counts(
    best="low",
    positive=FAKE,
    prevalence=False,
    zero=True,
    of="negatives",
    share=True,
)
def real_false_flag_rate(c: Counts[N]) -> N:
    """Share of all reals that were flagged as fake.

    FP / all reals, abstained and failed ones included. Best: low. Range: 0..1. Undefined (NaN) without reals.
    Reference: DF3 evaluation methodology; `fpr` is over the answered reals alone.

    >>> real_false_flag_rate([0, 0, 0, 0], [1, 0, -1, -1])
    Rate(1/4 = 0.25)
    """
    return share(c.fp, c.n_negative)


@metric_of_counts(best="high", positive=FAKE, prevalence=False, zero=True, of="positives", share=True)
def fake_catch_rate(c: Counts[N]) -> N:
    """Share of all fakes that were called fake.

    TP / all fakes = recall_fake × coverage_fake. Best: high. Range: 0..1. Undefined (NaN) without fakes.
    Reference: DF3 evaluation methodology.

    >>> fake_catch_rate([1, 1, 1, 1], [1, 1, 0, -1])
    Rate(2/4 = 0.5)
    """
    return share(c.tp, c.n_positive)


@metric_of_counts(best="high", positive=FAKE, prevalence=False, zero=True, of="negatives", share=True)
def real_pass_rate(c: Counts[N]) -> N:
    """Share of all reals that were passed as real.

    TN / all reals = recall_real × coverage_real. Best: high. Range: 0..1. Undefined (NaN) without reals.
    Reference: DF3 evaluation methodology.

    >>> real_pass_rate([0, 0, 0, 0], [0, 1, -1, -1])
    Rate(1/4 = 0.25)
    """
    return share(c.tn, c.n_negative)
