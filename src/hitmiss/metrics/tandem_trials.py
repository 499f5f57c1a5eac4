"""Metrics of trials with three classes: target, nontarget and spoof, and scores of a CM, an ASV and both (SASV).

The countermeasure (CM) tells bona fide speech (target and nontarget trials) from spoofs: its scores and these two
classes are `score` and `label` of the trials. `asv_label` says which of the three classes a trial has, `asv_score` and
`sasv_score` are the scores of the speaker verifier (ASV) and of the whole system. `metrics.tandem` has the same numbers
for arrays of each class.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike

from hitmiss.core.errors import UnknownName
from hitmiss.core.metric import TRIVIAL, Chance
from hitmiss.core.registry import metric
from hitmiss.core.tally import Tally, check_weight
from hitmiss.metrics.tandem import ORGANISER_ASV, AsvRates, TandemCosts, Ties, t_eer
from hitmiss.stats.forms.base import Form
from hitmiss.stats.forms.least_cost import MinimumCost
from hitmiss.stats.forms.three_classes import CLASSES, EqualErrors, LeastCost, OfThreeClasses, class_codes

BROUGHT: Final = ("asv", "asv_miss", "asv_fa", "asv_fa_spoof")
Definition = Literal["formula", "package"]
DEFINITIONS: Final = ("formula", "package")
P_TARGET, P_NONTARGET, P_SPOOF = (1 - 0.05) * 0.99, (1 - 0.05) * 0.01, 0.05


@dataclass(frozen=True)
class TandemWeights:
    """The cost of a tandem as a function of the CM's error rates: C0 + C1 P_miss + C2 P_fa."""

    c0: float
    c1: float
    c2: float

    @classmethod
    def of(cls, costs: TandemCosts, asv: AsvRates) -> TandemWeights:
        """Return the weights of the revised cost (ASVspoof 2021 and 5)."""
        c0 = costs.p_target * costs.c_miss * asv.p_miss + costs.p_nontarget * costs.c_fa * asv.p_fa
        c1 = costs.p_target * costs.c_miss - c0
        return cls(c0, c1, costs.p_spoof * costs.c_fa_spoof * asv.p_fa_spoof)

    @classmethod
    def legacy(cls, costs: TandemCosts, asv: AsvRates) -> TandemWeights:
        """Return the weights of the cost of 2019, in which the ASV alone costs nothing."""
        c1 = costs.p_target * (costs.c_miss - costs.c_miss * asv.p_miss) - costs.p_nontarget * costs.c_fa * asv.p_fa
        return cls(0.0, c1, costs.c_fa_spoof * costs.p_spoof * asv.p_fa_spoof)

    def form(self) -> Form:
        """Return the form of the least cost, in units of the better of accepting and rejecting everything."""
        unit = self.c0 + min(self.c1, self.c2)
        unit = unit if unit else math.nan
        return MinimumCost(self.c1, self.c2, unit, self.c0 / unit)


def _rates(asv: str, miss: float | None, fa: float | None, fa_spoof: float | None, definition: str) -> AsvRates | None:
    """Return the error rates of the ASV; None if trials of a class are missing, so that a rate is undefined."""
    if definition not in DEFINITIONS:
        raise UnknownName("definition", definition, DEFINITIONS)
    if miss is None or fa is None or fa_spoof is None:
        return None
    # The full evaluation of the ASVspoof 5 package puts the share of spoofs that the ASV rejects here.
    swapped = definition == "package" and asv == "trials"
    return AsvRates(miss, fa, 1.0 - fa_spoof if swapped else fa_spoof)


UNDEFINED_COST: Final = MinimumCost(math.nan, math.nan, math.nan, math.nan)


def min_t_dcf_form(
    p_target: float,
    p_nontarget: float,
    p_spoof: float,
    c_miss: float,
    c_fa: float,
    c_fa_spoof: float,
    asv: str,
    asv_miss: float | None,
    asv_fa: float | None,
    asv_fa_spoof: float | None,
    definition: str,
) -> Form:
    """Return the form of `min_t_dcf`."""
    rates = _rates(asv, asv_miss, asv_fa, asv_fa_spoof, definition)
    if rates is None:
        return UNDEFINED_COST
    return TandemWeights.of(TandemCosts(p_target, p_nontarget, p_spoof, c_miss, c_fa, c_fa_spoof), rates).form()


def min_t_dcf_legacy_form(
    p_target: float,
    p_nontarget: float,
    p_spoof: float,
    c_miss: float,
    c_fa: float,
    c_fa_spoof: float,
    asv: str,
    asv_miss: float | None,
    asv_fa: float | None,
    asv_fa_spoof: float | None,
) -> Form:
    """Return the form of `min_t_dcf_legacy`."""
    rates = _rates(asv, asv_miss, asv_fa, asv_fa_spoof, "formula")
    if rates is None:
        return UNDEFINED_COST
    return TandemWeights.legacy(TandemCosts(p_target, p_nontarget, p_spoof, c_miss, c_fa, c_fa_spoof), rates).form()


@metric(
    best="low",
    form=min_t_dcf_form,
    prevalence=False,
    of="both",
    ranks=True,
    symbol="min t-DCF",
    chance=Chance(1.0, TRIVIAL),
    brought=BROUGHT,
    name="min_t_dcf",
)
def min_t_dcf_of_trials(
    label: ArrayLike,
    score: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    p_target: float = P_TARGET,
    p_nontarget: float = P_NONTARGET,
    p_spoof: float = P_SPOOF,
    c_miss: float = 1.0,
    c_fa: float = 10.0,
    c_fa_spoof: float = 10.0,
    asv: str = "fixed",
    asv_miss: float | None = ORGANISER_ASV.p_miss,
    asv_fa: float | None = ORGANISER_ASV.p_fa,
    asv_fa_spoof: float | None = ORGANISER_ASV.p_fa_spoof,
    definition: str = "formula",
) -> float:
    """Minimum tandem detection cost: what CM and ASV together cost at the CM's best threshold (revised, 2021 and 5).

    min over t of [C0 + C1 P_miss(t) + C2 P_fa(t)] / [C0 + min(C1, C2)], C0 = p_target c_miss asv_miss + p_nontarget c_fa
    asv_fa, C1 = p_target c_miss − C0, C2 = p_spoof c_fa_spoof asv_fa_spoof. Best: low. Range: 0..1; a perfect CM leaves
    C0 / (C0 + min(C1, C2)). Undefined (NaN) with one class, or if the ASV has no trials of a class in a slice.

    The rates of the ASV are settings; the default are those of the organisers of ASVspoof 5. With the ASV's own trials
    (`--asv`) they are computed from these, in every slice anew, and are held fixed in intervals; trials without ids (2019)
    are pooled, and `asv=own` takes the spoofs of each attack alone. `definition=package`
    then puts the share of spoofs that the ASV rejects where the formula has the share accepted, as the full evaluation
    of the ASVspoof 5 package does.

    Reference: Kinnunen et al. 2020, Tandem assessment of spoofing countermeasures and ASV, IEEE/ACM TASLP.

    >>> round(min_t_dcf_of_trials([1, 1, 0, 0], [2, 3, 0, 1], asv_miss=0.1, asv_fa=0.0, asv_fa_spoof=1.0), 6)
    0.15832
    """
    costs = (p_target, p_nontarget, p_spoof, c_miss, c_fa, c_fa_spoof)
    return min_t_dcf_form(*costs, asv, asv_miss, asv_fa, asv_fa_spoof, definition).value(Tally.of(label, score, weight))


@metric(
    best="low",
    form=min_t_dcf_legacy_form,
    prevalence=False,
    of="both",
    ranks=True,
    symbol="min t-DCF (2019)",
    chance=Chance(1.0, TRIVIAL),
    brought=BROUGHT,
)
def min_t_dcf_legacy(
    label: ArrayLike,
    score: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    p_target: float = P_TARGET,
    p_nontarget: float = P_NONTARGET,
    p_spoof: float = P_SPOOF,
    c_miss: float = 1.0,
    c_fa: float = 10.0,
    c_fa_spoof: float = 10.0,
    asv: str = "fixed",
    asv_miss: float | None = ORGANISER_ASV.p_miss,
    asv_fa: float | None = ORGANISER_ASV.p_fa,
    asv_fa_spoof: float | None = ORGANISER_ASV.p_fa_spoof,
) -> float:
    """Minimum tandem detection cost of 2019: the cost of errors of the CM, without what the ASV costs alone.

    min over t of [C1 P_miss(t) + C2 P_fa(t)] / min(C1, C2), C1 = p_target (c_miss − c_miss asv_miss) − p_nontarget c_fa
    asv_fa, C2 = c_fa_spoof p_spoof asv_fa_spoof. Best: low. Range: 0..1. Undefined (NaN) with one class, or if the ASV
    accepts no spoof. Reference: Kinnunen et al. 2018, t-DCF, Odyssey; tDCF_python v1 of ASVspoof 2019.

    >>> min_t_dcf_legacy([1, 1, 0, 0], [2, 3, 0, 1])
    0.0
    """
    costs = (p_target, p_nontarget, p_spoof, c_miss, c_fa, c_fa_spoof)
    return min_t_dcf_legacy_form(*costs, asv, asv_miss, asv_fa, asv_fa_spoof).value(Tally.of(label, score, weight))


def _of_classes(form: OfThreeClasses, kind: ArrayLike, score: ArrayLike, weight: ArrayLike | None) -> float:
    """Return the number of arrays."""
    labels, scores = np.asarray(kind, dtype=object), np.asarray(score, dtype=np.float64)
    given = check_weight(weight, len(labels))
    weights = np.ones(len(labels)) if given is None else np.asarray(given, dtype=np.float64)
    return float(form.of_weights(dict(zip(form.columns, (labels, scores), strict=True)), weights[None, :])[0])


def min_a_dcf_form(
    p_target: float, p_nontarget: float, p_spoof: float, c_miss: float, c_fa: float, c_fa_spoof: float
) -> OfThreeClasses:
    """Return the form of `min_a_dcf`."""
    costs = TandemCosts(p_target, p_nontarget, p_spoof, c_miss, c_fa, c_fa_spoof)
    settings = dict(zip(COSTS, (p_target, p_nontarget, p_spoof, c_miss, c_fa, c_fa_spoof), strict=True))
    return LeastCost(
        min_a_dcf_of_trials,
        SASV,
        settings,
        miss=costs.reject_all,
        nontarget=costs.c_fa * costs.p_nontarget,
        spoof=costs.c_fa_spoof * costs.p_spoof,
        unit=min(costs.accept_all, costs.reject_all),
    )


COSTS: Final = ("p_target", "p_nontarget", "p_spoof", "c_miss", "c_fa", "c_fa_spoof")
SASV: Final = ("asv_label", "sasv_score")


@metric(
    best="low",
    form=min_a_dcf_form,
    prevalence=False,
    ranks=True,
    symbol="min a-DCF",
    chance=Chance(1.0, TRIVIAL),
    name="min_a_dcf",
)
def min_a_dcf_of_trials(
    asv_label: ArrayLike,
    sasv_score: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    p_target: float = P_TARGET,
    p_nontarget: float = P_NONTARGET,
    p_spoof: float = P_SPOOF,
    c_miss: float = 1.0,
    c_fa: float = 10.0,
    c_fa_spoof: float = 10.0,
) -> float:
    """Minimum architecture-agnostic detection cost: what one score of the whole system costs at its best threshold.

    min over t of c_miss p_target P_miss(t) + c_fa p_nontarget P_fa(t) + c_fa_spoof p_spoof P_fa,spoof(t), divided by the
    cost of the better of accepting and rejecting everything. Best: low. Range: 0..1. Undefined (NaN) without targets,
    nontargets or spoofs. Reference: Shim et al. 2024, a-DCF, Odyssey.

    >>> round(min_a_dcf_of_trials(["target", "target", "nontarget", "nontarget", "spoof"], [3, 4, 1, 2, 5]), 6)
    0.840336
    """
    form = min_a_dcf_form(p_target, p_nontarget, p_spoof, c_miss, c_fa, c_fa_spoof)
    return _of_classes(form, asv_label, sasv_score, weight)


@metric(best="low", form=lambda: SV, prevalence=False, share=True, ranks=True, symbol="SV-EER", chance=Chance(0.5))
def sv_eer(asv_label: ArrayLike, sasv_score: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Equal error rate of speaker verification: targets against nontargets, without spoofs.

    P_miss = P_fa of target against nontarget, on straight lines between grouped points. Best: low. Range: 0..1.
    Undefined (NaN) without targets or nontargets. Reference: Jung et al. 2022, SASV 2022 (SV-EER).

    >>> sv_eer(["target", "target", "nontarget", "nontarget", "spoof"], [3, 1, 2, 0, 5])
    0.5
    """
    return _of_classes(SV, asv_label, sasv_score, weight)


@metric(best="low", form=lambda: SPF, prevalence=False, share=True, ranks=True, symbol="SPF-EER", chance=Chance(0.5))
def spf_eer(asv_label: ArrayLike, sasv_score: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Equal error rate of spoofs: targets against spoofs, without nontargets.

    P_miss = P_fa of target against spoof, on straight lines between grouped points. Best: low. Range: 0..1. Undefined
    (NaN) without targets or spoofs. Reference: Jung et al. 2022, SASV 2022 (SPF-EER).

    >>> spf_eer(["target", "target", "nontarget", "spoof", "spoof"], [3, 1, 9, 2, 0])
    0.5
    """
    return _of_classes(SPF, asv_label, sasv_score, weight)


@metric(best="low", form=lambda: ALL, share=True, ranks=True, symbol="SASV-EER", chance=Chance(0.5))
def sasv_eer(asv_label: ArrayLike, sasv_score: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Equal error rate of spoofing-robust verification: targets against nontargets and spoofs together.

    P_miss = P_fa of target against the rest, pooled as they come, on straight lines between grouped points; it depends
    on the share of spoofs. Best: low. Range: 0..1. Undefined (NaN) without targets or without the rest. Reference: Jung
    et al. 2022, SASV 2022 (SASV-EER).

    >>> sasv_eer(["target", "target", "nontarget", "spoof"], [3, 1, 2, 0])
    0.5
    """
    return _of_classes(ALL, asv_label, sasv_score, weight)


SV: Final[OfThreeClasses] = EqualErrors(sv_eer, SASV, against=(1,), needs=("target", "nontarget"))
SPF: Final[OfThreeClasses] = EqualErrors(spf_eer, SASV, against=(2,), needs=("target", "spoof"))
ALL: Final[OfThreeClasses] = EqualErrors(sasv_eer, SASV, against=(1, 2), needs=("target",))


@metric(best="low", prevalence=False, ranks=True, share=True, symbol="t-EER", name="t_eer")
def t_eer_of_trials(
    asv_label: ArrayLike,
    score: ArrayLike,
    asv_score: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    ties: Ties = "grouped",
) -> float:
    """Concurrent tandem equal error rate: the error of CM and ASV at the pair of thresholds where all errors balance.

    P_fa,spoof,asv × P_fa,cm at the pair of thresholds where it does not depend on the share of spoofs (see
    `metrics.tandem.t_eer`). Best: low. Range: 0..1. Undefined (NaN) without targets, nontargets or spoofs, or if no pair
    of thresholds is admissible. The ASVspoof 5 package prints it in percent. Reference: Kinnunen et al. 2023, t-EER.

    >>> kinds = ["target"] * 4 + ["nontarget"] * 4 + ["spoof"] * 4
    >>> cm = [11, 12, 13, 14, 10, 16, 17, 18, 1, 2, 3, 15]
    >>> t_eer_of_trials(kinds, cm, [1, 3, 4, 5, 0, 0.1, 0.2, 6, 7, 8, 9, 10])
    0.25
    """
    codes = class_codes(np.asarray(asv_label, dtype=object))
    cm, asv = np.asarray(score, dtype=np.float64), np.asarray(asv_score, dtype=np.float64)
    given = check_weight(weight, len(codes))
    classes = [codes == code for code in range(len(CLASSES))]
    weights = None if given is None else [given[own] for own in classes]
    return t_eer([cm[own] for own in classes], [asv[own] for own in classes], ties=ties, weight=weights)
