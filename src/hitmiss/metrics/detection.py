"""Detection metrics: equal error rate, detection costs and the cost of log-likelihood ratios.

Conventions: `label` is 1 for the positive (target, bona fide) class; a higher score means positive; a trial is
accepted if `score >= threshold`. Rates are fractions. With one class only every metric here is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike

from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.isotonic import pooled
from hitmiss.core.metric import TRIVIAL, Chance
from hitmiss.core.registry import metric
from hitmiss.core.sorting import Floats, Number
from hitmiss.core.tally import Tally
from hitmiss.stats.forms.at_threshold import AtThreshold
from hitmiss.stats.forms.base import Form
from hitmiss.stats.forms.crossing import equal_error, tie_steps
from hitmiss.stats.forms.least_cost import MinimumCost
from hitmiss.stats.forms.sums import ClassSums
from hitmiss.stats.forms.whole import Whole
from hitmiss.stats.sketch import tally_for
from hitmiss.stats.unseen import equal_error_at_most

TieRule = Literal["grouped", "official", "interpolated", "hull"]
OF_SCORE_MODELS: Final = ("eer", "min_dcf", "act_dcf", "cllr", "min_cllr")
"""What calibration and fusion are judged by, where nothing else is asked for."""


def eer_form(ties: TieRule) -> Form:
    """Return the form of the EER under a rule for ties."""
    if ties == "hull":
        return Whole(hull_eer, equal_error_at_most, _passing_hull, is_fitted=True)
    return equal_error(ties)


@metric(
    best="low",
    form=eer_form,
    prevalence=False,
    also=("equal_error_rate",),
    of="both",
    share=True,
    ranks=True,
    symbol="EER",
    chance=Chance(0.5),
    tied="eer(ties=grouped)",
)
def eer(label: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None, *, ties: TieRule = "grouped") -> float:
    """Equal error rate: the error where misses and false alarms balance.

    EER = (FRR(t) + FAR(t)) / 2 at the threshold t with the smallest |FRR − FAR|; of several, the lowest t. The gaps are
    compared as doubles, as the official package does, so rounding may decide between thresholds that are equally near.
    Best: low. Range: 0..1. Undefined (NaN) with one class.

    Ties: `grouped` puts equal scores on one point of the curve; `official` takes them one by one, positives first, as
    the ASVspoof 5 package does (constant scores then give 1.0); `interpolated` reads the straight line between grouped
    points; `hull` the convex hull of the ROC. The first two agree if no score occurs twice.

    Reference: ASVspoof 5 evaluation package; Brümmer & de Villiers 2013, The BOSARIS Toolkit (hull).

    >>> eer([1, 1, 0, 0], [0.9, 0.4, 0.6, 0.1])
    0.5
    >>> eer([1, 1, 0, 0], [5, 5, 5, 5], ties="official"), eer([1, 1, 0, 0], [5, 5, 5, 5])
    (1.0, 0.5)
    """
    form = eer_form(ties)
    tally = tally_for(form, label, score, weight)
    if ties == "official":
        _refuse_fractions(tally)
    return form.value(tally)


@metric(best="high", range=(-math.inf, math.inf), prevalence=False, two_sided=True)
def eer_threshold(
    label: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None, *, ties: TieRule = "grouped"
) -> float:
    """The threshold at which `eer` is read: accept if score >= threshold.

    With ties="official" it is the last rejected score, as the ASVspoof 5 package prints it: accept if score >
    threshold, and min − 0.001 if nothing is rejected. The other rules give the lowest accepted score, and +inf
    if nothing is accepted. Undefined (NaN) with one class. Reference: as `eer`.

    >>> eer_threshold([1, 1, 0, 0], [0.9, 0.6, 0.4, 0.1])
    0.6
    >>> eer_threshold([1, 1, 0, 0], [0.9, 0.6, 0.4, 0.1], ties="official")
    0.4
    """
    eer_form(ties)  # raises for an unknown rule
    tally = Tally.of(label, score, weight)
    if ties == "official":
        _refuse_fractions(tally)
    if not tally.has_both_classes:
        return float("nan")
    return official_threshold(tally) if ties == "official" else tally.threshold_of(eer_point(tally))


def eer_point(tally: Tally) -> int:
    """Return the point of the tie-grouped curve with the smallest |FRR − FAR|; of equal ones, the first."""
    return equal_error("grouped").place(tally)


def official_threshold(tally: Tally) -> float:
    """Return the threshold that the ASVspoof packages print: the last rejected score, below all if none is."""
    low = equal_error("official").point(tally)
    cp, cn, n1, n0 = float(tally.positives[low]), float(tally.negatives[low]), tally.n_positive, tally.n_negative
    p, q = float(tally.positives[low + 1]) - cp, float(tally.negatives[low + 1]) - cn
    steps = tie_steps(cp, cn, p, q, n1, n0)
    gaps = [float(np.abs((cp + i) / n1 - (n0 - (cn + j)) / n0)) for i, j in steps]
    i, j = steps[int(np.argmin(gaps))]
    if i + j > 0:
        return float(tally.score[low])
    return float(tally.score[low - 1]) if low else float(tally.score[0]) - 0.001


def _refuse_fractions(tally: Tally) -> None:
    for counts in (tally.positive_counts, tally.negative_counts):
        if counts.dtype.kind == "f" and (counts != np.round(counts)).any():
            raise DataError.of("fractional-weights")


def dcf_weights(p_target: float, c_miss: float, c_fa: float, normalize: bool) -> tuple[float, float, float]:
    """Return the weights of a miss and a false alarm, and the unit: the cost of the better trivial system, or 1."""
    if not 0.0 < p_target < 1.0:
        raise UsageError.of("out-of-range/inside", name="p_target", low=0, high=1, found=p_target)
    if not (0.0 < c_miss < math.inf and 0.0 < c_fa < math.inf):
        raise UsageError.of("bad-costs/positive", c_miss=c_miss, c_fa=c_fa)
    miss, false_alarm = c_miss * p_target, c_fa * (1.0 - p_target)
    return miss, false_alarm, min(miss, false_alarm) if normalize else 1.0


def trivial_cost(_: float, settings: Mapping[str, object]) -> float | None:
    """Return the cost of the better trivial system: 1 if costs are in its units, otherwise it is not said here."""
    return 1.0 if settings.get("normalize", True) else None


def min_dcf_form(p_target: float, c_miss: float, c_fa: float, normalize: bool) -> Form:
    """Return the form of the minimum cost."""
    return MinimumCost(*dcf_weights(p_target, c_miss, c_fa, normalize))


def min_dcf_range(p_target: float, c_miss: float, c_fa: float, normalize: bool) -> tuple[float, float]:
    """Return the range of the minimum cost: no more than that of the better trivial system."""
    miss, false_alarm, unit = dcf_weights(p_target, c_miss, c_fa, normalize)
    return 0.0, min(miss, false_alarm) / unit


@metric(
    best="low",
    range=(0.0, 1.0),
    form=min_dcf_form,
    prevalence=False,
    ends=min_dcf_range,
    of="both",
    ranks=True,
    symbol="minDCF",
    chance=Chance(trivial_cost, TRIVIAL),
)
def min_dcf(
    label: ArrayLike,
    score: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    p_target: float = 0.95,
    c_miss: float = 1.0,
    c_fa: float = 10.0,
    normalize: bool = True,
) -> float:
    """Minimum detection cost: the cost at the best threshold.

    min over t of  c_miss · p_target · FRR(t) + c_fa · (1 − p_target) · FAR(t), divided by the cost of the better
    trivial system, min(c_miss · p_target, c_fa · (1 − p_target)). Accept-all and reject-all are on the curve, so the
    normalised number never exceeds 1; exactly 1 means that no threshold is better than a trivial system at this
    operating point. Best: low. Range: 0..1. Undefined (NaN) with one class. The defaults are those of ASVspoof 5:
    P_spoof = 0.05.

    Reference: ASVspoof 5 evaluation package; NIST SRE evaluation plans.

    >>> min_dcf([1, 1, 0, 0], [0.9, 0.6, 0.4, 0.1])
    0.0
    >>> round(min_dcf([1, 1, 0, 0], [0.9, 0.4, 0.6, 0.1]), 12)      # reject the lowest: 10 · 0.05 · 0.5 / 0.5
    0.5
    """
    form = min_dcf_form(p_target, c_miss, c_fa, normalize)
    return form.value(tally_for(form, label, score, weight))


def bayes_threshold(p_target: float, c_miss: float, c_fa: float) -> float:
    """Return the best threshold for true log-likelihood ratios: −ln(c_miss · p_target / (c_fa · (1 − p_target))).

    It is computed exactly in this way: the logit of an effective prior differs in the last digit.

    >>> round(bayes_threshold(0.95, 1.0, 10.0), 4)
    -0.6419
    """
    dcf_weights(p_target, c_miss, c_fa, normalize=True)  # raises for invalid settings
    p_spoof = round(1.0 - p_target, 15)  # 1 − 0.95 is 0.05 to the user, not 0.050000000000000044
    if not 0.0 < p_spoof < 1.0:
        raise UsageError.of("bad-prior/extreme", p_target=p_target)
    return -math.log(c_miss * (1.0 - p_spoof) / (c_fa * p_spoof))


def act_dcf_form(p_target: float, c_miss: float, c_fa: float, normalize: bool) -> Form:
    """Return the form of the cost at the Bayes threshold."""
    return dcf_at_form(p_target, c_miss, c_fa, normalize, bayes_threshold(p_target, c_miss, c_fa))


@metric(
    best="low",
    range=(0.0, math.inf),
    form=act_dcf_form,
    kinds=("llr",),
    prevalence=False,
    of="both",
    symbol="actDCF",
    at_best="min_dcf",
    chance=Chance(trivial_cost, TRIVIAL),
)
def act_dcf(
    label: ArrayLike,
    score: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    p_target: float = 0.95,
    c_miss: float = 1.0,
    c_fa: float = 10.0,
    normalize: bool = True,
) -> float:
    """Actual detection cost: the cost at the Bayes threshold, for scores that are natural-log likelihood ratios.

    The cost of `min_dcf` read at t = −ln(c_miss · p_target / (c_fa · (1 − p_target))), accepting score >= t.
    act_dcf − min_dcf is what miscalibration costs. Best: low. Range: 0..; above 1 is worse than a trivial system.
    Undefined (NaN) with one class; refused by the engine for scores that are not LLRs.

    Reference: ASVspoof 5 evaluation package.

    >>> act_dcf([1, 1, 0, 0], [3.0, -0.6, -0.7, -4.0])       # threshold −0.6419
    0.0
    """
    return act_dcf_form(p_target, c_miss, c_fa, normalize).value(Tally.of(label, score, weight))


def dcf_at_form(p_target: float, c_miss: float, c_fa: float, normalize: bool, threshold: float) -> Form:
    """Return the form of the cost at a fixed threshold."""
    miss, false_alarm, unit = dcf_weights(p_target, c_miss, c_fa, normalize)
    if math.isnan(threshold):
        raise UsageError.of("nan-threshold")

    def cost(missed: Number, positives: Number, accepted: Number, negatives: Number) -> Number:
        return (miss * (missed / positives) + false_alarm * (accepted / negatives)) / unit

    return AtThreshold(threshold, cost)


@metric(best="low", range=(0.0, math.inf), form=dcf_at_form, prevalence=False)
def dcf_at(
    label: ArrayLike,
    score: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    p_target: float = 0.95,
    c_miss: float = 1.0,
    c_fa: float = 10.0,
    normalize: bool = True,
    threshold: float = 0.0,
) -> float:
    """Detection cost at a given threshold, for example one chosen on a development set.

    The cost of `min_dcf` read at `threshold`, accepting score >= threshold. Best: low. Range: 0..
    Undefined (NaN) with one class. Reference: as `min_dcf`.

    >>> dcf_at([1, 1, 0, 0], [0.9, 0.6, 0.4, 0.1], threshold=0.5)
    0.0
    >>> dcf_at([1, 1, 0, 0], [0.9, 0.6, 0.4, 0.1], threshold=0.0)       # accept all
    1.0
    """
    return dcf_at_form(p_target, c_miss, c_fa, normalize, threshold).value(Tally.of(label, score, weight))


def cllr_form() -> Form:
    """Return the form of Cllr."""

    def bits(sum1: Number, n1: Number, sum0: Number, n0: Number) -> Number:
        return (sum1 / n1 + sum0 / n0) / (2.0 * math.log(2.0))

    return ClassSums(_softplus_of_minus, _softplus, bits)


def _softplus(score: Floats) -> Floats:
    return np.logaddexp(0.0, score)  # does not overflow, however large the score


def _softplus_of_minus(score: Floats) -> Floats:
    return np.logaddexp(0.0, -score)


@metric(
    best="low",
    range=(0.0, math.inf),
    form=cllr_form,
    kinds=("llr",),
    prevalence=False,
    of="both",
    symbol=r"$C_{\mathrm{llr}}$",
    chance=Chance(1.0, "uninformative scores"),
)
def cllr(label: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Cost of log-likelihood ratios, in bits: how good the scores are as natural-log LLRs, at all thresholds.

    ½ · [ mean over positives of log2(1 + e^−s) + mean over negatives of log2(1 + e^s) ].
    Best: low. Range: 0..; a system that always gives LLR = 0 gets 1. Undefined (NaN) with one class; infinite
    if a trial has infinite evidence for the wrong class. Refused by the engine for scores that are not LLRs.

    Reference: Brümmer & du Preez 2006, Application-independent evaluation of speaker detection.

    >>> cllr([1, 0], [0.0, 0.0])
    1.0
    """
    return cllr_form().value(Tally.of(label, score, weight))


@metric(
    best="low",
    range=(0.0, 1.0),
    form=lambda: Whole(min_cllr_of_tally, passes=_passing_min_cllr),
    prevalence=False,
    interval=False,
    of="both",
    symbol=r"$C_{\mathrm{llr}}^{\min}$",
    chance=Chance(1.0, "uninformative scores"),
)
def min_cllr(label: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Cllr after the best monotone recalibration (PAV): the loss that remains if only the order counts, in bits.

    The scores are replaced by the LLRs that isotonic regression (pool adjacent violators) gives on the same trials,
    then `cllr` is computed. cllr − min_cllr is the calibration loss. Best: low. Range: 0..1. Undefined (NaN) with one
    class.

    It gets no interval: the best monotone map is fitted to the sample, so the number is too low there and even lower in
    every replicate. Intervals from replicates contained the true value only 10 to 90 % of the time.

    Reference: Brümmer & du Preez 2006.

    >>> min_cllr([1, 1, 0, 0], [0.9, 0.6, 0.4, 0.1])
    0.0
    >>> min_cllr([1, 0], [5.0, 5.0])
    1.0
    """
    return min_cllr_of_tally(Tally.of(label, score, weight))


def min_cllr_of_tally(tally: Tally) -> float:
    """Return `min_cllr` of a tally."""
    if not tally.has_both_classes:
        return float("nan")
    p, q = pav_blocks(tally)
    with np.errstate(divide="ignore"):
        llr = np.log(p / tally.n_positive) - np.log(q / tally.n_negative)
    lost = [
        np.sum(c[c > 0] * np.logaddexp(0.0, sign * llr[c > 0])) / n
        for c, sign, n in ((p, -1.0, tally.n_positive), (q, 1.0, tally.n_negative))
    ]
    return float((lost[0] + lost[1]) / (2.0 * math.log(2.0)))


def pav_blocks(tally: Tally) -> tuple[Floats, Floats]:
    """Return positives and negatives in each block of pool adjacent violators: the segments of the ROC convex hull."""
    held = tally.positive_counts + tally.negative_counts > 0
    p, q = tally.positive_counts[held], tally.negative_counts[held]
    starts = pooled(p, q)
    return np.add.reduceat(p.astype(np.float64), starts), np.add.reduceat(q.astype(np.float64), starts)


def hull_eer(tally: Tally) -> float:
    """Return the EER on the convex hull of the ROC: where the hull meets FRR = FAR."""
    if not tally.has_both_classes:
        return float("nan")
    p, q = pav_blocks(tally)
    frr = np.concatenate([[0.0], np.cumsum(p) / tally.n_positive])
    far = 1.0 - np.concatenate([[0.0], np.cumsum(q) / tally.n_negative])
    last = int(np.flatnonzero(frr <= far)[-1])
    if last == len(frr) - 1:
        return float(frr[last])
    rise, fall = frr[last + 1] - frr[last], far[last] - far[last + 1]
    return float(frr[last] + rise * (far[last] - frr[last]) / (rise + fall))


@dataclass(eq=False)
class PassingBlocks:
    """A function of the PAV blocks, computed from stretches of scores (see `stats.forms.Passing`).

    Blocks that are pooled within a stretch stay pooled, so single trials need not be kept.
    """

    function: Callable[[Tally], float]
    counts: list[tuple[Floats, Floats]] = field(default_factory=list)

    def add(self, part: Tally) -> None:
        """Read the next stretch of scores."""
        if len(part.score):
            self.counts.append(pav_blocks(part))

    def value(self) -> float:
        """Return the function of all blocks."""
        p, q = (np.concatenate([np.zeros(1), *c]) for c in zip(*self.counts, strict=True))
        return float(self.function(Tally(np.arange(len(p) - 1, dtype=np.float64), np.cumsum(p), np.cumsum(q))))


def _passing_hull(*_: int) -> PassingBlocks:
    return PassingBlocks(hull_eer)


def _passing_min_cllr(*_: int) -> PassingBlocks:
    return PassingBlocks(min_cllr_of_tally)
