"""Calibration: turn scores into natural-log likelihood ratios; the mapping is fitted on one set, applied to another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, Protocol

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.isotonic import rising_share
from hitmiss.core.results import SAME_DATA, Remark
from hitmiss.core.scale import ScoreScale
from hitmiss.core.sorting import Floats
from hitmiss.core.tally import Tally, check_trials
from hitmiss.core.trials import Trials

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


def calibrate(fit_on: Trials, apply_to: Trials, method: str = "affine", *, prior: float = 0.5) -> Trials:
    """Fit a calibration on one set of trials, and turn the scores of another set into natural-log likelihood ratios.

    The header of the result records what was done: the score kind `llr`, the fitted parameters in
    `provenance["calibration"]`, and a choice for the signature. It has a note if some trials were also used for the fit
    (the figures are then optimistic), or if higher scores mean the wrong class. Decisions are kept as they were made on
    the scores of the file; a new threshold is one of the likelihood ratios. Trials without a score stay without one.

    Scores that are declared probabilities are mapped to log-odds before an affine fit. Probabilities of exactly 0 or 1
    are taken as half as far from 0 or 1 as the nearest other one of the fit set, and a note says how many there are.

    Parameters
    ----------
    fit_on
        The development set, with both classes.
    apply_to
        The trials whose scores are replaced.
    method
        `affine` (see `fit_affine`) or `pav` (see `fit_pav`).
    prior
        For `affine`: the share of positives for which the fit is optimised. 0.5 minimises Cllr; `ASVSPOOF5_PRIOR` is
        the operating point of ASVspoof 5.

    Returns
    -------
    Trials
        The trials of `apply_to` with calibrated scores.

    Raises
    ------
    UsageError
        For an unknown method, a prior outside (0, 1), or sets that do not fit together.
    DataError
        If no fit exists: one class only, infinite scores, or (for `affine`) equal scores or separated classes.

    >>> dev = Trials.of(label=[1, 0, 1, 0, 1, 0], score=[3.0, 1.0, 2.0, 2.5, 4.0, 0.0])
    >>> calibrated = calibrate(dev, Trials.of(label=[1, 0], score=[9.0, -9.0], item=["x", "y"]))
    >>> calibrated.header.score_kind, bool(calibrated.score[0] > 0 > calibrated.score[1])
    ('llr', True)
    """
    if method not in METHODS:
        raise UnknownName("calibration method", method, METHODS)
    check_compatible(fit_on, apply_to)
    answered = fit_on.keep(pl.col("score").is_not_null())
    odds = odds_of(answered) if method == "affine" else None
    known = answered.score if odds is None else odds.apply(answered.score)
    fitted: Calibrator = (
        fit_pav(answered.label, known, answered.weights)
        if method == "pav"
        else fit_affine(answered.label, known, answered.weights, prior=prior)
    )
    scores = apply_to.column("score")
    given = scores.fill_null(0.5).to_numpy()
    filled = pl.Series("score", fitted.apply(given if odds is None else odds.apply(given)))
    llr = filled.zip_with(scores.is_not_null(), pl.Series([None] * len(scores), dtype=pl.Float64))
    described = {
        "method": method,
        **({"prior": prior} if method == "affine" else {}),
        **({"of": "log-odds"} if odds is not None else {}),
        **fitted.parameters,
    }
    notes = [*scale_notes(fit_on, apply_to, odds, method), *fit_notes(fitted, fit_on, apply_to)]
    return _retitle(apply_to, llr, described, answered, tuple(notes))


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
            raise DataError(
                "every probability of the fit set is exactly 0 or 1, so there is nothing to calibrate; give log-odds",
                code="saturated-scores",
            )
        return cls(float(inner.min()) / 2, float(1 - inner.max()) / 2)

    def apply(self, probability: ArrayLike) -> Floats:
        """Return the log-odds of probabilities, all finite."""
        given = np.asarray(probability, dtype=np.float64)
        with np.errstate(divide="ignore"):
            found = np.asarray(logit(given))
        if (given == 0).any():
            found = np.maximum(found, logit(self.least))
        return np.minimum(found, -logit(self.margin)) if (given == 1).any() else found


def scale_notes(fit_on: Trials, apply_to: Trials, odds: LogOdds | None, method: str) -> list[str]:
    """Say that probabilities were mapped, how many are saturated, or that raw scores may be probabilities."""
    sets = {"fit set": fit_on.column("score").drop_nulls(), "calibrated set": apply_to.column("score").drop_nulls()}
    if odds is None:
        if (
            method == "affine"
            and fit_on.header.score_kind == "raw"
            and all(s.is_between(0.0, 1.0).all() and s.n_unique() > 2 for s in sets.values())
        ):
            return [
                "calibration: all scores lie in 0..1 and were fitted as they are; if they are probabilities, declare "
                "--score-kind probability, so that their log-odds are fitted"
            ]
        return []
    counts = {name: int(((s == 0) | (s == 1)).sum()) for name, s in sets.items()}
    if not any(counts.values()):
        return ["calibration: the probabilities were mapped to log-odds"]
    found = " and ".join(f"{n:,} of {len(sets[name]):,} of the {name}" for name, n in counts.items())
    return [
        f"calibration: the probabilities were mapped to log-odds; saturated ones, exactly 0 or 1 ({found}), were taken as "
        f"{odds.least:.3g} and 1 - {odds.margin:.3g}, half as far from 0 or 1 as the nearest other score of the fit set"
    ]


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
        raise DataError(
            "a threshold separates the classes of the fit set, so an affine calibration has no finite slope; "
            "fit on more or harder trials, or use method='pav'"
        )
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
        raise UsageError(f"misleading must be above 0, or the ends become infinite; found {misleading}")
    check_fit(label, score, weight, 0.5, needs_spread=False)
    tally = Tally.of(label, score, weight)
    positives = np.concatenate([[misleading], tally.positive_counts, [0.0]])
    rising = rising_share(positives, np.concatenate([[0.0], tally.negative_counts, [misleading]]))[1:-1]
    llr = logit(rising) - np.log((tally.n_positive + misleading) / (tally.n_negative + misleading))
    edge = np.append(True, llr[1:] != llr[:-1]) | np.append(llr[1:] != llr[:-1], True)
    return PavCalibrator(tuple(tally.score[edge].tolist()), tuple(llr[edge].tolist()))


def fit_weights(x: Floats, positive: NDArray[np.bool_], shares: Floats, prior_log_odds: float) -> Floats:
    """Minimise the class-weighted logistic loss of x @ slopes + offset by Newton steps that never increase the loss.

    Returns the slopes, one per column of x, and the offset.
    """
    design = np.column_stack([x, np.ones(len(x))])

    def loss(theta: Floats) -> float:
        z = design @ theta + prior_log_odds
        return float(shares @ np.logaddexp(0.0, np.where(positive, -z, z)))

    theta = np.zeros(design.shape[1])
    for _ in range(200):
        p = expit(design @ theta + prior_log_odds)
        gradient = design.T @ (shares * (p - positive))
        curvature = design.T @ (design * (shares * p * (1 - p))[:, None])
        step = np.linalg.solve(curvature, gradient)
        gain = float(gradient @ step)
        if gain < 1e-14:  # so near that the next step removes the rest
            return np.asarray(theta - step)
        here, length = loss(theta), 1.0
        while loss(theta - length * step) > here - 1e-4 * length * gain and length > 1e-10:
            length /= 2
        theta = theta - length * step
    raise DataError("the affine calibration did not settle: the classes hardly overlap; use method='pav'")


def check_fit(
    label: ArrayLike, score: ArrayLike, weight: ArrayLike | None, prior: float, needs_spread: bool = True
) -> tuple[NDArray[np.bool_], Floats, Floats]:
    """Return checked arrays without trials of weight 0, and each trial's share of the objective."""
    if not 0 < prior < 1:
        raise UsageError(f"prior must lie between 0 and 1, both excluded; found {prior}")
    positive, values, given = check_trials(label, score, weight)
    weights = np.ones(len(values)) if given is None else given.astype(np.float64)
    positive, values, weights = positive[weights > 0], values[weights > 0], weights[weights > 0]
    if not positive.any() or positive.all():
        raise DataError(f"calibration needs both classes; found {positive.sum()} positives of {len(positive)} trials")
    if not np.isfinite(values).all():
        raise DataError(f"calibration needs finite scores; {int((~np.isfinite(values)).sum())} are infinite")
    if needs_spread and values.min() == values.max():
        raise DataError(f"all scores of the fit set are {values[0]:g}; there is nothing to calibrate")
    totals = np.where(positive, weights[positive].sum(), weights[~positive].sum())
    return positive, values, np.where(positive, prior, 1 - prior) * weights / totals


def is_separated(positive: Floats, negative: Floats) -> bool:
    return bool(positive.min() >= negative.max() or positive.max() <= negative.min())


def check_compatible(fit_on: Trials, apply_to: Trials) -> None:
    for trials in (fit_on, apply_to):
        trials.column("score")
    ours, theirs = fit_on.header, apply_to.header
    if ours.positive != theirs.positive:
        raise UsageError(f"fitted on {ours.positive!r} as the positive class, applied to {theirs.positive!r}")
    if ours.score_kind != theirs.score_kind:
        raise UsageError(f"fitted on {ours.score_kind} scores, applied to {theirs.score_kind} scores")
    for name in ("target", *ours.runs):
        found = fit_on.column(name).unique().sort().to_list()
        if len(found) > 1:
            raise UsageError(f"the fit set mixes {len(found)} values of {name!r}, as {found[:2]}; fit one at a time")


def fit_notes(fitted: Calibrator, fit_on: Trials, apply_to: Trials) -> tuple[str, ...]:
    notes = []
    falling = isinstance(fitted, AffineCalibrator) and fitted.slope < 0
    if falling or (isinstance(fitted, PavCalibrator) and fitted.llr[0] == fitted.llr[-1]):
        notes.append(
            "calibration: in the fit set higher scores do not mean the positive class; are the scores reversed?"
        )
    key = ["item", "target", "label", "score"]
    again = apply_to.frame.join(fit_on.frame.select(key).unique(), on=key, how="semi").height
    if again:
        notes.append(
            Remark(f"calibration: optimistic, {again} of {len(apply_to)} trials were also fitted on", SAME_DATA)
        )
    if apply_to.header.threshold is not None:
        is_decided = "decision" in apply_to.frame.columns
        kept = "the decisions stay those at the threshold of the old scores"
        notes.append(f"calibration: {kept if is_decided else 'the threshold of the old scores was dropped'}")
    if missing := fit_on.column("score").null_count():
        notes.append(f"calibration: {missing} trials without a score were left out of the fit")
    return tuple(notes)


def _retitle(
    trials: Trials, llr: pl.Series, described: dict[str, object], fit_on: Trials, notes: tuple[str, ...]
) -> Trials:
    head, digest = trials.header, fit_on.digest
    names = [s.name for s in fit_on.header.sources]
    origin = {"fit_n": len(fit_on), "fit_n_positive": fit_on.n_positive, "fit_digest": digest, "fit_sources": names}
    numbers = [f"{k}={v:.6g}" for k, v in described.items() if isinstance(v, float)]
    short = ", ".join([*(["log-odds"] if "of" in described else []), *numbers])
    choice = f"calibration={described['method']}({short}) fitted on {digest} (n={len(fit_on)})"
    changed = replace(
        head,
        score_kind="llr",
        threshold=None,
        scale=ScoreScale(),
        choices=(*head.choices, choice),
        notes=(*head.notes, *notes),
        provenance={**head.provenance, "calibration": {**described, **origin}},
    )
    return trials.put(changed, score=llr)


def odds_of(fit_on: Trials) -> LogOdds | None:
    """Return the mapping to log-odds, for probabilities."""
    return LogOdds.of(fit_on) if fit_on.header.score_kind == "probability" else None
