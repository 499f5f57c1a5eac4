"""Calibration: turn scores into natural-log likelihood ratios; the mapping is fitted on one set, applied to another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit

from hitmiss.core.errors import DataError, UsageError
from hitmiss.core.isotonic import rising_share
from hitmiss.core.sorting import Floats
from hitmiss.core.tally import Tally, check_trials
from hitmiss.core.trials import Trials
from hitmiss.stats.logistic import minimise_log_loss

Method = Literal["affine", "pav"]
METHODS: Final = ("affine", "pav")
ASVSPOOF5_PRIOR: Final = (1 - 0.05) / ((1 - 0.05) + 10 * 0.05)
"""The P(bonafide) at which equal costs give the decisions of ASVspoof 5: 0.95 × 1 against 0.05 × 10, i.e. 0.655."""


class Calibrator(Protocol):
    """Any object that maps scores to log-likelihood ratios."""

    def apply(self, score: ArrayLike) -> Floats:
        """Return the log-likelihood ratios of these scores."""
        ...

    @property
    def parameters(self) -> dict[str, object]:
        """The fitted parameters, as plain values."""
        ...


@dataclass(frozen=True)
class AffineCalibrator:
    """The mapping llr = slope × score + offset.

    >>> AffineCalibrator(slope=2.0, offset=-1.0).apply([0.0, 3.0])
    array([-1.,  5.])
    """

    slope: float
    offset: float

    def apply(self, score: ArrayLike) -> Floats:
        """Return the log-likelihood ratios of these scores."""
        return self.slope * np.asarray(score, dtype=np.float64) + self.offset

    @property
    def parameters(self) -> dict[str, object]:
        """The fitted parameters, as plain values."""
        return {"slope": self.slope, "offset": self.offset}


@dataclass(frozen=True)
class PavCalibrator:
    """A non-decreasing mapping: straight lines between the knots, constant below the first and above the last.

    >>> PavCalibrator(score=(0.0, 1.0), llr=(-2.0, 2.0)).apply([-9.0, 0.75, 9.0])
    array([-2.,  1.,  2.])
    """

    score: tuple[float, ...]
    llr: tuple[float, ...]

    def apply(self, score: ArrayLike) -> Floats:
        """Return the log-likelihood ratios of these scores."""
        return np.interp(np.asarray(score, dtype=np.float64), self.score, self.llr)

    @property
    def parameters(self) -> dict[str, object]:
        """The fitted parameters, as plain values."""
        return {"score": list(self.score), "llr": list(self.llr)}


@dataclass(frozen=True)
class LogOdds:
    """The mapping of probabilities to log-odds; those of exactly 0 and 1 are taken as `least` and 1 - `margin`.

    Where a set has such probabilities, others that are still nearer to 0 or 1 are taken so as well: the order is kept.

    >>> LogOdds(least=0.25, margin=0.25).apply([0.0, 0.5, 1.0]).round(4)
    array([-1.0986,  0.    ,  1.0986])
    """

    least: float
    margin: float

    @classmethod
    def of(cls, fit_on: Trials) -> LogOdds:
        """Take the ends from the fit set: half as far from 0 and 1 as the nearest probability that is neither."""
        inner = fit_on.score[(fit_on.score > 0) & (fit_on.score < 1)]
        if not len(inner):
            raise DataError.of("saturated-scores")
        return cls(float(inner.min()) / 2, float(1 - inner.max()) / 2)

    def apply(self, probability: ArrayLike) -> Floats:
        """Return the log-odds of probabilities, all finite."""
        given = np.asarray(probability, dtype=np.float64)
        with np.errstate(divide="ignore"):
            found = np.asarray(logit(given))
        if (given == 0).any():
            found = np.maximum(found, logit(self.least))
        return np.minimum(found, -logit(self.margin)) if (given == 1).any() else found


def fit_affine(
    label: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None, *, prior: float = 0.5
) -> AffineCalibrator:
    """Fit the slope and the offset with which slope × score + offset is the best log-likelihood ratio at a prior.

    Minimises prior × mean over positives of ln(1 + e^−z) + (1 − prior) × mean over negatives of ln(1 + e^z), where
    z = llr + ln(prior / (1 − prior)): logistic regression with the classes weighted to the prior, without penalty. At
    prior 0.5 the objective is ln 2 × Cllr. Newton's method on standardised scores.

    Raises `DataError` if no best fit exists: one class only, all scores equal, infinite scores, or classes that a
    threshold separates (the slope would grow without limit; use a larger set, or `pav`, which stays bounded).
    Reference: Brümmer & du Preez, Computer Speech & Language 2006.

    In the example two of three positives have score 1 and two of three negatives score 0: the ratio is 2 at 1 and 1/2
    at 0.

    >>> fit = fit_affine([1, 1, 1, 0, 0, 0], [1, 1, 0, 0, 0, 1])
    >>> np.exp(fit.apply([0, 1])).round(6)
    array([0.5, 2. ])
    """
    positive, values, shares = check_fit(label, score, weight, prior)
    if is_separated(values[positive], values[~positive]):
        raise DataError.of("no-fit/separated")
    centre, spread = float(values.mean()), float(values.std())
    slope, offset = fit_weights((values - centre) / spread, positive, shares, float(logit(prior))).tolist()
    return AffineCalibrator(slope / spread, offset - slope * centre / spread)


def fit_pav(
    label: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None, *, misleading: float = 1.0
) -> PavCalibrator:
    """Fit the non-decreasing function of the score with the least Cllr, kept finite at its ends.

    Isotonic regression of the labels (pool adjacent violators); the log-odds of each step minus the log-odds of the
    set are its log-likelihood ratio. Pure steps at the ends would be infinite, so one `misleading` trial of each class
    is added: a positive below all scores, a negative above. With n positives and m negatives, no ratio then leaves
    (m + 1) / (n + 1) × [1 / m, n]. As `misleading` goes to 0, Cllr on the fit set goes to min Cllr.

    Unseen scores are interpolated between the knots; beyond the knots the function is constant. Raises `DataError` for
    one class or infinite scores. Reference: Zadrozny & Elkan, KDD 2002.

    In the example the low step holds two negatives and the added positive, the high step two positives and the added
    negative.

    >>> fit = fit_pav([0, 0, 1, 1], [1, 2, 3, 4])
    >>> np.exp(fit.apply([1, 2, 2.5, 3, 4])).round(6)
    array([0.5, 0.5, 1. , 2. , 2. ])
    """
    if misleading <= 0:
        raise UsageError.of("out-of-range/above", name="misleading", low=0, found=misleading)
    check_fit(label, score, weight, 0.5, needs_spread=False)
    tally = Tally.of(label, score, weight)
    positives = np.concatenate([[misleading], tally.positive_counts, [0.0]])
    rising = rising_share(positives, np.concatenate([[0.0], tally.negative_counts, [misleading]]))[1:-1]
    llr = logit(rising) - np.log((tally.n_positive + misleading) / (tally.n_negative + misleading))
    edge = np.append(True, llr[1:] != llr[:-1]) | np.append(llr[1:] != llr[:-1], True)
    return PavCalibrator(tuple(tally.score[edge].tolist()), tuple(llr[edge].tolist()))


def fit_weights(x: Floats, positive: NDArray[np.bool_], shares: Floats, prior_log_odds: float) -> Floats:
    """Return the slopes, one per column of x, and the offset with the least class-weighted logistic loss."""
    found, is_settled = minimise_log_loss(
        np.column_stack([x, np.ones(len(x))]), positive, shares, offset=prior_log_odds
    )
    if not is_settled:
        raise DataError.of("no-fit")
    return found


def check_fit(
    label: ArrayLike, score: ArrayLike, weight: ArrayLike | None, prior: float, needs_spread: bool = True
) -> tuple[NDArray[np.bool_], Floats, Floats]:
    """Return checked arrays without trials of weight 0, and each trial's share of the objective."""
    if not 0 < prior < 1:
        raise UsageError.of("out-of-range/inside", name="prior", low=0, high=1, found=prior)
    positive, values, given = check_trials(label, score, weight)
    weights = np.ones(len(values)) if given is None else given.astype(np.float64)
    positive, values, weights = positive[weights > 0], values[weights > 0], weights[weights > 0]
    if not positive.any() or positive.all():
        raise DataError.of("one-class/counted", what="a calibration", n=positive.sum(), total=len(positive))
    if not np.isfinite(values).all():
        raise DataError.of("infinite-score", what="a calibration", n=int((~np.isfinite(values)).sum()))
    if needs_spread and values.min() == values.max():
        raise DataError.of("equal-scores/all", values_2=values[0])
    totals = np.where(positive, weights[positive].sum(), weights[~positive].sum())
    return positive, values, np.where(positive, prior, 1 - prior) * weights / totals


def is_separated(positive: Floats, negative: Floats) -> bool:
    return bool(positive.min() >= negative.max() or positive.max() <= negative.min())
