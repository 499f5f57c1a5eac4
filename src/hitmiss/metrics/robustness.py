"""Metrics of attacks on classifiers with several labels: the answers for each record before and after.

`robustness.attacks.records_of` makes one row per record of a run of attacks, with the columns that these metrics use:

| column       | of a record                                                                    |
|--------------|--------------------------------------------------------------------------------|
| changed_any  | 1 if any label differs from the clean answer (NaN: the record is untouched)    |
| right_all    | 1 if every label is right                                                      |
| right_clean  | 1 if every label was right before the attack                                   |
| aim_reached  | 1 if the label that was aimed at is as wanted (NaN: nothing was aimed at)      |
| aim_open     | 1 if that label was not as wanted before, so that it could change              |
| class_labels, class_scores | the true classes and the scores of all classes, one array per record |

Metrics of one class use `decision` and `decision_clean` of its rows. A record whose column is NaN does not count. Each
is an ordinary metric, so it has slices, gaps, intervals, comparisons and gates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.core.errors import DataError
from hitmiss.core.metric import Chance
from hitmiss.core.rates import Quantile, Rate
from hitmiss.core.registry import metric
from hitmiss.core.sorting import Array, Floats
from hitmiss.core.tally import check_weight
from hitmiss.metrics.means import form_of_mean, mean_of_known
from hitmiss.metrics.ranking import roc_auc
from hitmiss.stats.forms.trials import OfTerms, OfWeights

Terms = tuple[Floats, Floats]
"""What each record adds to the numerator and to the denominator."""


def _bits(values: ArrayLike, name: str) -> Floats:
    """Return a column of 0 and 1, or NaN for a record that does not count."""
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1 or not (np.isnan(found) | np.isin(found, (0.0, 1.0))).all():
        raise DataError.of("not-bits", name=name)
    return found


def _terms(hits: Floats, of: Floats | None = None) -> Terms:
    """Return the terms of a share of `hits` among `of`; a record without either does not count."""
    counted = np.ones_like(hits) if of is None else of
    known = ~(np.isnan(hits) | np.isnan(counted))
    below = np.where(known, counted, 0.0)
    return np.where(known, hits, 0.0) * below, below


def _rate(terms: Terms, weight: ArrayLike | None) -> Rate:
    weights = check_weight(weight, len(terms[0]))
    hits, of = terms if weights is None else (terms[0] * weights, terms[1] * weights)
    return Rate(float(hits.sum()), float(of.sum()))


def _share(terms: Callable[..., Terms], *columns: str) -> Callable[[], OfTerms]:
    """Return the form of a share of records."""

    def figure(*, weight: ArrayLike | None = None, **arrays: ArrayLike) -> float:
        return _rate(terms(**arrays), weight)

    return lambda: OfTerms(figure, columns, terms=terms, is_share=True)


def _changed(changed_any: ArrayLike) -> Terms:
    return _terms(_bits(changed_any, "changed_any"))


@metric(best="low", form=_share(_changed, "changed_any"), share=True)
def changed(changed_any: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Changed answers: share of the records with any label that differs from the clean answer.

    The documented success rate of an attack; it does not use the true labels. Best: low. Range: 0..1. Undefined (NaN)
    without an attack.

    >>> changed([1, 0, 0, 0])
    Rate(1/4 = 0.25)
    """
    return _rate(_changed(changed_any), weight)


def _changed_correct(changed_any: ArrayLike, right_clean: ArrayLike) -> Terms:
    return _terms(_bits(changed_any, "changed_any"), _bits(right_clean, "right_clean"))


@metric(best="low", form=_share(_changed_correct, "changed_any", "right_clean"), share=True)
def changed_correct(changed_any: ArrayLike, right_clean: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Changed answers that were right: changed, among the records that were right in every label before.

    The success rate in the literature. Best: low. Range: 0..1. Undefined (NaN) if no record was right.

    >>> changed_correct([1, 1, 0], [1, 0, 1])
    Rate(1/2 = 0.5)
    """
    return _rate(_changed_correct(changed_any, right_clean), weight)


def _exact_match(right_all: ArrayLike) -> Terms:
    return _terms(_bits(right_all, "right_all"))


@metric(best="high", form=_share(_exact_match, "right_all"), share=True)
def exact_match(right_all: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Exact match: share of the records that are right in every label.

    right in every label / n. Best: high. Range: 0..1. Undefined (NaN) without records.
    Reference: equals `sklearn.metrics.accuracy_score` of label matrices.

    >>> exact_match([1, 1, 0, 0])
    Rate(2/4 = 0.5)
    """
    return _rate(_exact_match(right_all), weight)


def _robust_accuracy(right_clean: ArrayLike, right_all: ArrayLike) -> Terms:
    return _terms(_bits(right_clean, "right_clean") * _bits(right_all, "right_all"))


@metric(best="high", form=_share(_robust_accuracy, "right_clean", "right_all"), share=True)
def robust_accuracy(right_clean: ArrayLike, right_all: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Robust accuracy: share of the records that are right in every label both before and after.

    right before and after / n: the accuracy that remains if the attacker may choose whether to attack a record.
    Best: high. Range: 0..1. Undefined (NaN) without records.

    >>> robust_accuracy([1, 1, 0, 0], [1, 0, 1, 0])
    Rate(1/4 = 0.25)
    """
    return _rate(_robust_accuracy(right_clean, right_all), weight)


def _target_success(aim_reached: ArrayLike) -> Terms:
    return _terms(_bits(aim_reached, "aim_reached"))


@metric(best="low", form=_share(_target_success, "aim_reached"), share=True)
def target_success(aim_reached: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Targeted success: share of all records whose label ends as the attack wants it.

    Force: the label is 1 afterwards; suppress: it goes from 1 to 0. Best: low. Range: 0..1. Undefined (NaN) without an
    aim.

    >>> target_success([1, 0])
    Rate(1/2 = 0.5)
    """
    return _rate(_target_success(aim_reached), weight)


def _target_eligible(aim_reached: ArrayLike, aim_open: ArrayLike) -> Terms:
    return _terms(_bits(aim_reached, "aim_reached"), _bits(aim_open, "aim_open"))


@metric(best="low", form=_share(_target_eligible, "aim_reached", "aim_open"), share=True)
def target_eligible(aim_reached: ArrayLike, aim_open: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Targeted success where possible: the same among the records whose label could change.

    reached / records that were not as aimed. Best: low. Range: 0..1. Undefined (NaN) if no label could change.

    >>> target_eligible([1, 1, 0], [0, 1, 1])
    Rate(1/2 = 0.5)
    """
    return _rate(_target_eligible(aim_reached, aim_open), weight)


def _target_base(aim_open: ArrayLike) -> Terms:
    return _terms(1.0 - _bits(aim_open, "aim_open"))


@metric(best="high", form=_share(_target_base, "aim_open"), two_sided=True, share=True)
def target_base(aim_open: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Already as aimed: share of the records that needed no attack.

    as aimed before / n. Best: high. It describes the records: this part of the targeted success is not due to the
    attack. Range: 0..1. Undefined (NaN) without records.

    >>> target_base([1, 0])
    Rate(1/2 = 0.5)
    """
    return _rate(_target_base(aim_open), weight)


def _moved(decision: ArrayLike, decision_clean: ArrayLike, old: int | None) -> Terms:
    now, before = (np.asarray(d, dtype=np.float64) == 1.0 for d in (decision, decision_clean))
    of = np.ones(len(now)) if old is None else (before == bool(old)).astype(np.float64)
    return _terms((now != before).astype(np.float64), of)


def _flipped(decision: ArrayLike, decision_clean: ArrayLike) -> Terms:
    return _moved(decision, decision_clean, None)


@metric(best="low", form=_share(_flipped, "decision", "decision_clean"), share=True)
def flipped(decision: ArrayLike, decision_clean: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Flipped labels: share of the records whose label of a class differs from the clean answer.

    differs / n. Best: low. Range: 0..1. Undefined (NaN) without records.

    >>> flipped([1, 0, 0, 1], [1, 1, 0, 0])
    Rate(2/4 = 0.5)
    """
    return _rate(_flipped(decision, decision_clean), weight)


def _lost(decision: ArrayLike, decision_clean: ArrayLike) -> Terms:
    return _moved(decision, decision_clean, 1)


@metric(best="low", form=_share(_lost, "decision", "decision_clean"), share=True)
def lost(decision: ArrayLike, decision_clean: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Lost labels: the label of a class goes from 1 to 0, among those at 1.

    from 1 to 0 / all at 1. Best: low. Range: 0..1. Undefined (NaN) if none was at 1.

    >>> lost([1, 0, 0, 1], [1, 1, 0, 0])
    Rate(1/2 = 0.5)
    """
    return _rate(_lost(decision, decision_clean), weight)


def _induced(decision: ArrayLike, decision_clean: ArrayLike) -> Terms:
    return _moved(decision, decision_clean, 0)


@metric(best="low", form=_share(_induced, "decision", "decision_clean"), share=True)
def induced(decision: ArrayLike, decision_clean: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Induced labels: the label of a class goes from 0 to 1, among those at 0.

    from 0 to 1 / all at 0. Best: low. Range: 0..1. Undefined (NaN) if none was at 0.

    >>> induced([1, 0, 0, 1], [1, 1, 0, 0])
    Rate(1/2 = 0.5)
    """
    return _rate(_induced(decision, decision_clean), weight)


def _areas(truth: Array, score: Array) -> list[int]:
    """Return the classes that have both labels."""
    if truth.ndim != 2 or truth.shape != score.shape:
        raise DataError.of(
            "wrong-shape", name="labels and scores", form="record × class", shape=f"{truth.shape!s} and {score.shape!s}"
        )
    return [k for k in range(truth.shape[1]) if 0 < truth[:, k].sum() < len(truth)]


@dataclass(frozen=True, eq=False)
class _MeanArea(OfWeights):
    """The mean over the classes of the area under the ROC curve, for many replicates at once."""

    def of_weights(self, arrays: Mapping[str, Array], weights: Floats) -> Floats:
        """Return the mean over the classes with both labels in the sample; NaN if a replicate lacks one of them."""
        truth, score = np.asarray(arrays["class_labels"]), np.asarray(arrays["class_scores"])
        each = [_area_replicates(truth[:, k] == 1, score[:, k], weights) for k in _areas(truth, score)]
        return np.asarray(np.mean(each, axis=0)) if each else np.full(len(weights), np.nan)


def _area_replicates(positive: NDArray[np.bool_], score: Floats, weights: Floats) -> Floats:
    """Return the area for each row of weights (replicate × record): pairs below each group of ties, half inside it."""
    order = np.argsort(score, kind="stable")
    ranked = score[order]
    starts = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1]))
    up, down = (
        np.add.reduceat(weights[:, order] * side[order], starts, axis=1, dtype=np.float64)
        for side in (positive, ~positive)
    )
    below = np.cumsum(down, axis=1) - 0.5 * down
    total = up.sum(axis=1) * down.sum(axis=1)
    empty = np.full(len(weights), np.nan)
    return np.asarray(np.divide((up * below).sum(axis=1), total, out=empty, where=total > 0))


def _mean_area() -> _MeanArea:
    return _MeanArea(macro_auc, ("class_labels", "class_scores"))


@metric(best="high", form=_mean_area, chance=Chance(0.5))
def macro_auc(class_labels: ArrayLike, class_scores: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Macro AUC: mean over the classes of the area under the ROC curve.

    Classes with one label only are left out. Best: high. Range: 0..1. Undefined (NaN) if every class has one label
    only. Reference: equals `sklearn.metrics.roc_auc_score(average="macro")`.

    >>> float(macro_auc([[1, 0], [0, 1], [1, 1]], [[0.9, 0.1], [0.2, 0.8], [0.1, 0.05]]))
    0.5
    """
    truth, score = np.asarray(class_labels), np.asarray(class_scores, dtype=np.float64)
    _areas(truth, score)  # refuses what is no table before rows are chosen
    weights = check_weight(weight, len(truth))
    kept = np.ones(len(truth), dtype=bool) if weights is None else weights > 0
    truth, score = truth[kept], score[kept]
    own = None if weights is None else weights[kept]
    both = _areas(truth, score)
    return float(np.mean([roc_auc(truth[:, k], score[:, k], own) for k in both])) if both else math.nan


@metric(best="low", range=(0.0, math.inf), form=form_of_mean("delta_l2"), two_sided=True)
def l2_mv(delta_l2: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Size of the change (L2): mean Euclidean norm of the change, in mV.

    mean of sqrt(Σ δ²). Best: low. It describes the attack. Undefined (NaN) if no norm was recorded.

    >>> float(l2_mv([1.0, 2.0]))
    1.5
    """
    return mean_of_known(delta_l2, weight)


@metric(best="low", range=(0.0, math.inf), form=form_of_mean("delta_linf", 1e3), two_sided=True)
def linf_uv(delta_linf: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Greatest change of a sample: mean largest change of any sample, in µV (the column is in mV).

    mean of max |δ|. Best: low. It describes the attack. Undefined (NaN) if no norm was recorded.

    >>> float(linf_uv([0.001, 0.003]))
    2.0
    """
    return mean_of_known(delta_linf, weight, 1e3)


@metric(best="high", range=(-math.inf, math.inf), form=form_of_mean("snr_db"), two_sided=True)
def snr_db(snr_db: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Signal to noise: mean ratio of signal to change, in dB.

    mean of 10 log10(Σ x² / Σ δ²). Best: high. It describes the attack. Undefined (NaN) if none was recorded.

    >>> float(snr_db([10.0, 20.0]))
    15.0
    """
    return mean_of_known(snr_db, weight)


@metric(best="low", range=(0.0, math.inf), form=form_of_mean("smoothness", 1e6), two_sided=True)
def smoothness_uv2(smoothness: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Roughness: mean squared difference of neighbouring samples of the change, in µV² (the column is in mV²).

    mean of (δ[t + 1] − δ[t])². Best: low. It describes the attack: a change with a low value is hard to see.
    Undefined (NaN) if none was recorded.

    >>> float(smoothness_uv2([1e-6, 3e-6]))
    2.0
    """
    return mean_of_known(smoothness, weight, 1e6)


@metric(best="high", range=(0.0, math.inf), one_by_one=True)
def median_minimal_strength(minimal_strength: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Median least strength: the strength at which half of the records have flipped (the lower median).

    Infinite if most records never flip. Best: high. Undefined (NaN) if no least strength was searched for.
    Reference: `numpy.quantile(…, 0.5, method="inverted_cdf")`.

    >>> float(median_minimal_strength([0.2, 0.4, math.inf]))
    0.4
    """
    given = np.asarray(minimal_strength, dtype=np.float64)
    weights = check_weight(weight, len(given))
    counted = np.ones(len(given)) if weights is None else np.asarray(weights, dtype=np.float64)
    kept = ~np.isnan(given) & (counted > 0)
    order = np.argsort(given[kept], kind="stable")
    ordered, upto = given[kept][order], np.cumsum(counted[kept][order])
    if not len(ordered):
        return math.nan
    return Quantile(float(ordered[int(np.argmax(upto >= upto[-1] / 2))]), 0.5, ordered)
