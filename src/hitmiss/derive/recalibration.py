"""Recalibration: turn a stated confidence, or a score, into a calibrated probability."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
import polars as pl
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.finding import Remark
from hitmiss.core.isotonic import rising_share
from hitmiss.core.sorting import Array, Floats
from hitmiss.core.tally import Tally, check_trials
from hitmiss.core.trials import Trials
from hitmiss.core.weights import refuse_sampling
from hitmiss.stats.logistic import minimise_log_loss

Column = Literal["confidence", "score"]
EDGE: Final = 1e-6
"""Probabilities are kept this far from 0 and 1 before their log-odds are taken."""


@dataclass(frozen=True)
class Platt:
    """p = 1 / (1 + exp(−(slope · score + offset)))."""

    slope: float
    offset: float

    def apply(self, score: ArrayLike) -> Floats:
        """Return the probabilities of these scores."""
        return np.asarray(expit(self.slope * np.asarray(score, dtype=np.float64) + self.offset))


@dataclass(frozen=True)
class Temperature:
    """p = 1 / (1 + exp(−log-odds / temperature)); a temperature above 1 lowers the confidence."""

    temperature: float

    def apply(self, score: ArrayLike) -> Floats:
        """Return the recalibrated probabilities of these probabilities."""
        return np.asarray(expit(_log_odds(score) / self.temperature))


@dataclass(frozen=True)
class Isotonic:
    """Straight lines between the knots, constant below the first and above the last."""

    score: tuple[float, ...]
    probability: tuple[float, ...]

    def apply(self, score: ArrayLike) -> Floats:
        """Return the probabilities of these scores."""
        return np.interp(np.asarray(score, dtype=np.float64), self.score, self.probability)


Recalibrator = Platt | Temperature | Isotonic


def fit_platt(label: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None) -> Platt:
    """Fit the slope and the offset of the best logistic curve, with Platt's targets, which keep both finite.

    Minimises the log loss against (n⁺ + 1)/(n⁺ + 2) for positives and 1/(n⁻ + 2) for negatives, by Newton's method.
    Reference: Platt 1999; `sklearn.calibration` method "sigmoid".

    >>> fit_platt([1, 1, 0, 0], [1.0, 1.0, 0.0, 0.0]).apply([0.0, 1.0]).round(4)
    array([0.25, 0.75])
    """
    positive, values, weights = _checked(label, score, weight)
    n1, n0 = float(weights[positive].sum()), float(weights[~positive].sum())
    target = np.where(positive, (n1 + 1) / (n1 + 2), 1 / (n0 + 2))
    if values.min() == values.max():
        return Platt(0.0, float(logit(np.average(target, weights=weights))))
    centre, spread = float(values.mean()), float(values.std())
    design = np.stack([(values - centre) / spread, np.ones_like(values)], axis=1)
    (slope, offset), _ = minimise_log_loss(design, target, weights)
    return Platt(float(slope / spread), float(offset - slope * centre / spread))


def fit_temperature(label: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None) -> Temperature:
    """Fit the number, between 0.01 and 100, by which log-odds are divided for the least log loss.

    Reference: Guo et al. 2017. Probabilities are kept 1e-6 away from 0 and 1.

    >>> round(fit_temperature([1, 1, 1, 0], [0.9, 0.9, 0.9, 0.9]).temperature, 6)
    2.0
    """
    from scipy.optimize import minimize_scalar

    positive, values, weights = _checked(label, score, weight)
    odds = _log_odds(values)

    def loss(log_temperature: float) -> float:
        z = odds * math.exp(-log_temperature)
        return float(weights @ np.logaddexp(0.0, np.where(positive, -z, z)))

    end = math.log(100.0)
    found = minimize_scalar(loss, bounds=(-end, end), method="bounded", options={"xatol": 1e-12})
    return Temperature(math.exp(float(found.x)))


def fit_isotonic(label: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None) -> Isotonic:
    """Fit the non-decreasing function of the score with the least squared error (pool adjacent violators).

    Reference: Zadrozny & Elkan 2002; equals `sklearn.isotonic.IsotonicRegression(out_of_bounds="clip")`.

    >>> fit_isotonic([0, 1, 0, 1], [1, 2, 3, 4]).apply([0, 2, 3, 4])
    array([0. , 0.5, 0.5, 1. ])
    """
    _checked(label, score, weight)
    tally = Tally.of(label, score, weight)
    rising = rising_share(tally.positive_counts, tally.negative_counts)
    edge = np.append(True, rising[1:] != rising[:-1]) | np.append(rising[1:] != rising[:-1], True)
    return Isotonic(tuple(tally.score[edge].tolist()), tuple(rising[edge].tolist()))


FITS: Final[Mapping[str, Callable[..., Recalibrator]]] = {
    "platt": fit_platt,
    "temperature": fit_temperature,
    "isotonic": fit_isotonic,
}


def recalibrate(fit_on: Trials, apply_to: Trials, method: str = "platt", column: str = "confidence") -> Trials:
    """Replace the confidences (or the scores) of trials by calibrated probabilities, fitted on another set of trials.

    For `confidence` the probability is that the verdict is right; the fit uses answered trials that have a confidence.
    For `score` it is the probability that the trial is positive. The header records what was fitted and on which data,
    and has a note if trials were also used for the fit.

    Parameters
    ----------
    fit_on
        The trials to fit on.
    apply_to
        The trials whose values are replaced.
    method
        `platt`, `temperature` or `isotonic`.
    column
        `confidence` or `score`.

    Returns
    -------
    Trials
        The trials of `apply_to` with calibrated probabilities.

    Raises
    ------
    UsageError
        For an unknown method or column, or a temperature for scores that are not probabilities.
    DataError
        If the fit set has only one outcome or infinite values.

    >>> t = Trials.of([1, 1, 1, 0], decision=[1, 1, 0, 1], confidence=[0.9, 0.9, 0.9, 0.9])
    >>> recalibrate(t, t, "isotonic").column("confidence").to_list()
    [0.5, 0.5, 0.5, 0.5]
    """
    if method not in FITS:
        raise UnknownName("recalibration", method, FITS)
    if column not in ("confidence", "score"):
        raise UnknownName("column to recalibrate", column, ("confidence", "score"))
    if method == "temperature" and column == "score" and apply_to.header.score_kind != "probability":
        raise UsageError.of("not-probabilities/temperature")
    right, stated = _pairs(fit_on, column)
    fitted = FITS[method](right, stated)
    old = apply_to.column(column)
    new = pl.Series(column, fitted.apply(old.to_numpy()), nan_to_null=True).zip_with(old.is_not_null(), old)
    return _retitled(
        replace(apply_to, frame=apply_to.frame.with_columns(new)), fit_on, fitted, method, column, len(stated)
    )


def _pairs(trials: Trials, column: str) -> tuple[Array, Floats]:
    refuse_sampling(trials, "a recalibration")
    frame = trials.frame.filter(trials.column(column).is_not_null())
    if column == "score":
        return frame["label"].to_numpy(), frame["score"].to_numpy()
    answered = frame.filter(pl.col("decision").is_in([0, 1]))
    return (answered["decision"] == answered["label"]).to_numpy(), answered["confidence"].to_numpy()


def _retitled(trials: Trials, fit_on: Trials, fitted: Recalibrator, method: str, column: str, n: int) -> Trials:
    head = trials.header
    told = {"method": method, "column": column, "fit_n": n, "fit_digest": fit_on.digest, **vars(fitted)}
    again = trials.frame.select("item", "label").join(
        fit_on.frame.select("item", "label").unique(), on=["item", "label"], how="semi"
    )
    notes = [Remark.of("chosen-on-same-data/recalibration", n=again.height, total=len(trials))] * bool(again.height)
    changed = replace(
        head,
        score_kind="probability" if column == "score" else head.score_kind,
        choices=(*head.choices, f"recalibration={method}({column}) fitted on {fit_on.digest} (n={n})"),
        notes=(*head.notes, *notes),
        provenance={**head.provenance, "recalibration": told},
    )
    return replace(trials, header=changed)


def _checked(label: ArrayLike, score: ArrayLike, weight: ArrayLike | None) -> tuple[Array, Floats, Floats]:
    positive, values, given = check_trials(label, score, weight)
    weights = np.ones(len(values)) if given is None else given.astype(np.float64)
    if not positive[weights > 0].any() or positive[weights > 0].all():
        raise DataError.of("one-class/counted", what="a recalibration", n=int(positive.sum()), total=len(positive))
    if not np.isfinite(values).all():
        raise DataError.of("infinite-score", what="a recalibration", n=int((~np.isfinite(values)).sum()))
    return positive, values, weights


def _log_odds(probability: ArrayLike) -> Floats:
    given = np.asarray(probability, dtype=np.float64)
    if (given < 0).any() or (given > 1).any():
        raise DataError.of("not-probabilities/temperature")
    return np.asarray(logit(np.clip(given, EDGE, 1 - EDGE)))
