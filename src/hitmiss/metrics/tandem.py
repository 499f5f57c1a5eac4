"""Spoofing-robust speaker verification (ASVspoof 5 Track 2): a-DCF, ASV-constrained t-DCF and the tandem EER.

There are three kinds of trial: the *target* speaker, a *nontarget* speaker, and a *spoof* of the target. A
countermeasure (CM) decides whether speech is bona fide, a speaker verifier (ASV) decides whether the voice is the
target's, and a tandem accepts what both accept. Higher scores always mean acceptance.

Every function here returns a **fraction**. The official package prints its t-EER in percent: divide that by 100.
Scores may be infinite (only their order counts) but not NaN. A weight is the number of times that a trial counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.tally import check_weight

Floats = NDArray[np.float64]
Ties = Literal["grouped", "official"]
TIES = ("grouped", "official")


class ByClass(NamedTuple):
    """One array for each kind of trial. A plain tuple in this order works as well."""

    target: ArrayLike
    nontarget: ArrayLike
    spoof: ArrayLike


@dataclass(frozen=True)
class TandemCosts:
    """How frequent each kind of trial is and what each error costs; the defaults are those of ASVspoof 5.

    >>> costs = TandemCosts()
    >>> round(costs.accept_all, 6), round(costs.reject_all, 6)
    (0.595, 0.9405)
    """

    p_target: float = (1 - 0.05) * 0.99
    p_nontarget: float = (1 - 0.05) * 0.01
    p_spoof: float = 0.05
    c_miss: float = 1.0
    c_fa: float = 10.0
    c_fa_spoof: float = 10.0

    def __post_init__(self) -> None:
        priors, costs = (self.p_target, self.p_nontarget, self.p_spoof), (self.c_miss, self.c_fa, self.c_fa_spoof)
        if min(*priors, *costs) < 0 or abs(sum(priors) - 1) > 1e-10:
            raise UsageError.of("bad-prior/sum", priors=priors, costs=costs)
        if min(self.accept_all, self.reject_all) == 0:
            raise UsageError.of("bad-costs/trivial")

    @property
    def accept_all(self) -> float:
        """The cost of accepting everything."""
        return self.c_fa * self.p_nontarget + self.c_fa_spoof * self.p_spoof

    @property
    def reject_all(self) -> float:
        """The cost of rejecting everything."""
        return self.c_miss * self.p_target


@dataclass(frozen=True)
class AsvRates:
    """Error rates of the speaker verifier at its own threshold; the defaults are those of the organisers' system."""

    p_miss: float = 0.01880141010575793
    p_fa: float = 0.01881016557566423
    p_fa_spoof: float = 0.4607082907604729

    def __post_init__(self) -> None:
        if not all(0 <= rate <= 1 for rate in (self.p_miss, self.p_fa, self.p_fa_spoof)):
            raise UsageError.of("bad-asv-rates", self_2=self)


ASVSPOOF5_COSTS = TandemCosts()
ORGANISER_ASV = AsvRates()


def min_a_dcf(
    target: ArrayLike,
    nontarget: ArrayLike,
    spoof: ArrayLike,
    *,
    costs: TandemCosts = ASVSPOOF5_COSTS,
    weight: Sequence[ArrayLike] | None = None,
) -> float:
    """Return the least architecture-agnostic detection cost that one threshold on the final (SASV) score can reach.

    a-DCF(t) = c_miss p_target P_miss(t) + c_fa p_nontarget P_fa(t) + c_fa_spoof p_spoof P_fa,spoof(t), divided by
    the cost of the better of accepting everything and rejecting everything. The result is a fraction of that cost.

    Best 0, range 0..1 (both trivial systems are on the curve). NaN if a kind of trial is absent. Ties do not matter.
    `weight`: one array for each kind, in the order of the arguments.

    Reference: Shim et al., "a-DCF", Odyssey 2024; equals the official ASVspoof 5 package.

    In the example, accepting from 3 upwards lets the spoof through: 10 × 0.05 / (10 × 0.0095 + 10 × 0.05) = 0.5 /
    0.595.

    >>> round(min_a_dcf(target=[3, 4], nontarget=[1, 2], spoof=[5]), 6)
    0.840336
    """
    rejected = _curve((target, nontarget, spoof), weight).rejected
    if not _all_present(rejected):
        return float("nan")
    p_miss, kept_nontarget, kept_spoof = _rates(rejected)
    cost = (
        costs.reject_all * p_miss
        + costs.c_fa * costs.p_nontarget * kept_nontarget
        + costs.c_fa_spoof * costs.p_spoof * kept_spoof
    )
    return float(cost.min() / min(costs.accept_all, costs.reject_all))


def min_t_dcf(
    bonafide_cm: ArrayLike,
    spoof_cm: ArrayLike,
    *,
    asv: AsvRates = ORGANISER_ASV,
    costs: TandemCosts = ASVSPOOF5_COSTS,
    weight: Sequence[ArrayLike] | None = None,
) -> float:
    """Return the least tandem detection cost that one threshold on the CM score can reach, for a fixed ASV.

    t-DCF(t) = C0 + C1 P_miss,cm(t) + C2 P_fa,cm(t), divided by C0 + min(C1, C2), the cost of the better trivial CM:
    C0 = p_target c_miss P_miss,asv + p_nontarget c_fa P_fa,asv; C1 = p_target c_miss − C0; C2 = p_spoof c_fa_spoof
    P_fa,spoof,asv. A fraction; even a perfect CM leaves C0 / (C0 + min(C1, C2)).

    Range 0..1, lower is better. NaN if a class is absent. Raises `DataError` for fewer than three distinct scores
    (decisions are not scores) and for an ASV so poor that C1 < 0. `weight`: one array for each class.

    Reference: Kinnunen et al., IEEE/ACM TASLP 2020; equals the official ASVspoof 5 package with the organisers' ASV.
    With another ASV, `evaluation_full` of that package uses the share of spoofs *rejected* where the formula has the
    share *accepted*; here the formula is used (see `asv_rates`). To reproduce the package's number, pass
    `dataclasses.replace(rates, p_fa_spoof=1 - rates.p_fa_spoof)`.

    In the example a perfect CM precedes an ASV that accepts every spoof: C0 = 0.09405, C2 = 0.5, so 0.09405 / 0.59405.

    >>> round(min_t_dcf([2, 3], [0, 1], asv=AsvRates(p_miss=0.1, p_fa=0, p_fa_spoof=1)), 6)
    0.15832
    """
    curve = _curve((bonafide_cm, spoof_cm), weight)
    if not _all_present(curve.rejected):
        return float("nan")
    if len(curve.threshold) < 3:
        raise DataError.of("few-distinct-scores")
    fixed = costs.reject_all * asv.p_miss + costs.p_nontarget * costs.c_fa * asv.p_fa
    per_miss, per_spoof = costs.reject_all - fixed, costs.p_spoof * costs.c_fa_spoof * asv.p_fa_spoof
    if per_miss < 0:
        raise DataError.of("asv-too-weak", asv=asv)
    p_miss, p_fa = _rates(curve.rejected)
    cost = fixed + per_miss * p_miss + per_spoof * p_fa
    return float(cost.min() / (fixed + min(per_miss, per_spoof)))


def asv_rates(target: ArrayLike, nontarget: ArrayLike, spoof: ArrayLike, *, threshold: float | None = None) -> AsvRates:
    """Return the ASV's error rates at a threshold, by default at its EER threshold as the official package finds it.

    Accepts score ≥ threshold. The default threshold is the score at which |P_miss − P_fa| of target against nontarget
    is smallest on the official curve (ties not grouped, target first). Raises `DataError` if a kind of trial is absent.

    >>> asv_rates(target=[2, 3, 4, 5], nontarget=[0, 1, 2.5, 1], spoof=[2, 4], threshold=2.5)
    AsvRates(p_miss=0.25, p_fa=0.25, p_fa_spoof=0.5)
    """
    scores = [_check_scores(s) for s in (target, nontarget, spoof)]
    if not all(len(s) for s in scores):
        raise DataError.of("asv-kinds")
    if threshold is None:
        curve = _curve(scores[:2], None, ties="official")
        p_miss, p_fa = _rates(curve.rejected)
        point = int(np.argmin(np.abs(p_miss - p_fa)))
        threshold = float(curve.threshold[point - 1]) if point else float("-inf")
    accepted = [float(np.mean(s >= threshold)) for s in scores]
    return AsvRates(1 - accepted[0], accepted[1], accepted[2])


def t_eer(
    cm: ByClass | Sequence[ArrayLike],
    asv: ByClass | Sequence[ArrayLike],
    *,
    ties: Ties = "grouped",
    weight: Sequence[ArrayLike] | None = None,
) -> float:
    """Return the concurrent tandem equal error rate, which does not depend on the share of spoofs among the attacks.

    `cm` and `asv` hold the two scores of the same trials: (target, nontarget, spoof). A tandem of thresholds misses
    P_miss = m + (1 − m) P_miss,asv with m the CM's miss rate on bona fide speech, and accepts
    P_fa = (1 − ρ)(1 − m) P_fa,asv + ρ P_fa,cm P_fa,spoof,asv. For each ASV threshold take the CM threshold with the
    smallest |P_miss − P_fa| at ρ = 1/2 (only where P_miss,asv < the false alarms of the ASV alone); among these
    pairs take the one where P_fa,asv / P_fa,spoof,asv is nearest to P_fa,cm / (1 − m), at which ρ cancels; the t-EER
    is P_fa,spoof,asv × P_fa,cm there. Of equally good pairs the first is taken.

    A **fraction** (the official package prints percent). Best 0, range 0..1. NaN if a kind of trial is absent or
    no pair of thresholds is admissible. `weight`: one array for each kind of trial.

    Every pair is searched, by bisection. The official package does the same below 3,000 points per curve; above, it
    tries every k-th point and then 1,600 points on each side of the best, and could choose another pair. A
    reimplementation of that search gave the same number (difference 0.0) on 50 simulated sets of 50,000 to 300,000
    trials.

    `ties="official"` takes tied scores one trial at a time (bona fide first), as the package does; weights must then be
    integers. `"grouped"` uses only thresholds that exist: it gives the same number if no two scores are equal; on
    scores rounded to one decimal it was 0.067 lower to 0.006 higher.

    Reference: Kinnunen et al., "t-EER", IEEE TPAMI 2023 (arXiv 2309.12237).

    In the example the ASV at 3 misses one target of four, and accepts one nontarget of four and every spoof; the CM at
    10 misses nothing and lets one spoof of four through. All error rates of that tandem are 1/4:

    >>> cm = ByClass(target=[11, 12, 13, 14], nontarget=[10, 16, 17, 18], spoof=[1, 2, 3, 15])
    >>> asv = ByClass(target=[1, 3, 4, 5], nontarget=[0, 0.1, 0.2, 6], spoof=[7, 8, 9, 10])
    >>> t_eer(cm, asv)
    0.25
    """
    if ties not in TIES:
        raise UnknownName("tie rule", ties, TIES)
    cm_scores, asv_scores, weights = _check_pairs(cm, asv, weight)
    cm_curve = _curve(_bonafide_and_spoof(cm_scores), _bonafide_and_spoof(weights) if weights else None, ties)
    asv_curve = _curve(asv_scores, weights, ties)
    if not _all_present(asv_curve.rejected):
        return float("nan")
    return _concurrent_point(_rates(cm_curve.rejected), _rates(asv_curve.rejected))


def _concurrent_point(cm: Sequence[Floats], asv: Sequence[Floats]) -> float:
    (cm_miss, cm_fa), (asv_miss, asv_fa, asv_fa_spoof) = cm, asv
    # An ASV that accepts no spoof has no ratio to compare: such points never win, so they need no CM threshold.
    admissible = (asv_miss < 0.5 * asv_fa + 0.5 * asv_fa_spoof) & (asv_fa_spoof > 0)
    asv_miss, asv_fa, asv_fa_spoof = asv_miss[admissible], asv_fa[admissible], asv_fa_spoof[admissible]

    def imbalance(point: NDArray[np.intp]) -> Floats:
        miss = cm_miss[point] + (1 - cm_miss[point]) * asv_miss
        false_alarms = 0.5 * (1 - cm_miss[point]) * asv_fa + 0.5 * cm_fa[point] * asv_fa_spoof
        return np.asarray(miss - false_alarms)

    point = _nearest_to_zero(imbalance, len(asv_miss), len(cm_miss))
    passed = 1 - cm_miss[point]
    usable = passed > 0
    if not usable.any():
        return float("nan")
    distance = np.abs(asv_fa[usable] / asv_fa_spoof[usable] - cm_fa[point][usable] / passed[usable])
    best = np.flatnonzero(usable)[np.argmin(distance)]
    return float(asv_fa_spoof[best] * cm_fa[point[best]])


def _nearest_to_zero(rising: Callable[[NDArray[np.intp]], Floats], n_functions: int, n_points: int) -> NDArray[np.intp]:
    """Return, for each of the rising functions, the first point where it is nearest to zero; bisected all at once."""
    low, high = np.zeros(n_functions, dtype=np.intp), np.full(n_functions, n_points - 1, dtype=np.intp)
    while (low < high).any():
        middle = (low + high) // 2
        reached = rising(middle) >= 0
        high = np.where(reached, middle, high)
        low = np.where(reached, low, np.minimum(middle + 1, high))
    before = np.maximum(low - 1, 0)
    return np.where(np.abs(rising(before)) <= np.abs(rising(low)), before, low)


class _Curve(NamedTuple):
    """For each class, the weight rejected at each point, from none to all; point i + 1 rejects up to threshold i."""

    rejected: list[Floats]
    threshold: Floats


def _curve(classes: Sequence[ArrayLike], weight: Sequence[ArrayLike] | None, ties: Ties = "grouped") -> _Curve:
    scores = [_check_scores(s) for s in classes]
    weights = _check_weights(scores, weight)
    present = [w > 0 for w in weights]
    scores = [s[p] for s, p in zip(scores, present, strict=True)]
    weights = [w[p] for w, p in zip(weights, present, strict=True)]
    if ties == "official":
        return _one_by_one(scores, weights)
    threshold = np.unique(np.concatenate(scores))
    return _Curve([_rejected_up_to(threshold, s, w) for s, w in zip(scores, weights, strict=True)], threshold)


def _rejected_up_to(threshold: Floats, score: Floats, weight: Floats) -> Floats:
    order = np.argsort(score, kind="stable")
    cumulative = np.concatenate([[0.0], np.cumsum(weight[order])])
    places = np.searchsorted(score[order], threshold, side="right")
    return np.concatenate([[0.0], cumulative[places]])


def _one_by_one(scores: list[Floats], weights: list[Floats]) -> _Curve:
    if any((w != np.round(w)).any() for w in weights):
        raise UsageError.of("fractional-weights")
    repeated = [np.repeat(s, w.astype(np.intp)) for s, w in zip(scores, weights, strict=True)]
    kind = np.repeat(np.arange(len(repeated)), [len(s) for s in repeated])
    merged = np.concatenate(repeated)
    order = np.argsort(merged, kind="stable")
    rejected = [np.concatenate([[0.0], np.cumsum(kind[order] == k)]) for k in range(len(repeated))]
    return _Curve(rejected, merged[order])


def _rates(rejected: Sequence[Floats]) -> list[Floats]:
    """Return the miss rate of the first class and the false-alarm rates of the others."""
    miss, *others = rejected
    return [miss / miss[-1], *((r[-1] - r) / r[-1] for r in others)]


def _all_present(rejected: Sequence[Floats]) -> bool:
    return all(r[-1] > 0 for r in rejected)


def _bonafide_and_spoof(classes: Sequence[Floats]) -> tuple[Floats, Floats]:
    target, nontarget, spoof = classes
    return np.concatenate([target, nontarget]), spoof


def _check_pairs(
    cm: Sequence[ArrayLike], asv: Sequence[ArrayLike], weight: Sequence[ArrayLike] | None
) -> tuple[list[Floats], list[Floats], list[Floats] | None]:
    if len(cm) != 3 or len(asv) != 3:
        raise UsageError.of("cm-asv-kinds", n_cm=len(cm), n_asv=len(asv))
    cm_scores, asv_scores = [_check_scores(s) for s in cm], [_check_scores(s) for s in asv]
    sizes = [len(s) for s in cm_scores], [len(s) for s in asv_scores]
    if sizes[0] != sizes[1]:
        raise DataError.of("cm-asv-trials", sizes=sizes[0], sizes_2=sizes[1])
    return cm_scores, asv_scores, _check_weights(cm_scores, weight) if weight is not None else None


def _check_scores(score: ArrayLike) -> Floats:
    values = np.asarray(score, dtype=np.float64)
    if values.ndim != 1:
        raise DataError.of("not-flat", name="scores", shape=str(values.shape))
    if np.isnan(values).any():
        raise DataError.of("nan-score", n=int(np.isnan(values).sum()), total=len(values))
    return values


def _check_weights(scores: Sequence[Floats], weight: Sequence[ArrayLike] | None) -> list[Floats]:
    if weight is None:
        return [np.ones(len(s)) for s in scores]
    if len(weight) != len(scores):
        raise UsageError.of("bad-weight/classes", n_scores=len(scores), n_weight=len(weight))
    return [np.asarray(check_weight(w, len(s)), dtype=np.float64) for w, s in zip(weight, scores, strict=True)]
