"""Metrics of confidence: does a stated confidence match how often the verdict is right?

Conventions: `confidence` 0..1 is the detector's own number for the verdict that it gave. Only answered trials with a
confidence count: the confidence of an abstention or of a failed call is never used, and NaN means no confidence.
Everything is computed from one tally, whose scores are the confidences and whose positives are the right verdicts. A
number is NaN without such a trial.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import PCG64
from numpy.typing import ArrayLike, NDArray

from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.rates import PartialEstimate
from hitmiss.core.registry import metric
from hitmiss.core.sorting import Array, Floats
from hitmiss.core.tally import Tally, check_weight
from hitmiss.metrics.counts import outcome
from hitmiss.stats.judged import Judged
from hitmiss.stats.random import Random

Closed = Literal["left", "right"]
CLOSED = ("left", "right")
NARROWEST = 1e-3
"""The least bandwidth of `smooth_ece`."""
FINEST = 1000
"""With more distinct confidences than this, each is split between its neighbours on a grid of this many steps."""


def judged(label: ArrayLike, decision: ArrayLike, confidence: ArrayLike, weight: ArrayLike | None = None) -> Tally:
    """Return the answered trials with a confidence as a tally; its positives are the right verdicts.

    >>> t = judged([1, 1, 0, 0], [1, 0, 0, -1], [0.9, 0.6, 0.9, 0.8])
    >>> t.score.tolist(), t.positive_counts.tolist(), t.negative_counts.tolist()
    ([0.6, 0.9], [0, 2], [1, 0])
    """
    happened = outcome(label, decision)
    stated = np.asarray(confidence, dtype=np.float64)
    if stated.shape != happened.shape:
        raise DataError.of(
            "unequal-length", names=("decision", "confidence"), sizes=(str(happened.shape), str(stated.shape))
        )
    used = (happened < 4) & ~np.isnan(stated)
    beyond = used & ~((stated >= 0.0) & (stated <= 1.0))
    if beyond.any():
        first = int(np.argmax(beyond))
        raise DataError.of("bad-confidence", stated=stated[first], first=first)
    weights = check_weight(weight, len(stated))
    right = (happened == 0) | (happened == 3)
    return Tally.of(right[used], stated[used], None if weights is None else weights[used])


def per_trial(total: float | Floats, n: float | Floats) -> Floats:
    """Divide a total by a number; NaN if the number is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.true_divide(total, n))


def brier_of(j: Judged) -> Floats:
    """Return the mean of (confidence − right)²."""
    return per_trial(j.right @ (1.0 - j.confidence) ** 2 + j.wrong @ j.confidence**2, j.n)


@dataclass(frozen=True, eq=False)
class Bins:
    """Trials by confidence: the edges, and per bin the number of trials, of right ones, and the sum of confidences."""

    edges: Floats
    n: Array
    right: Array
    stated: Floats

    @property
    def gaps(self) -> Floats:
        """|share right − mean confidence| of each bin that holds trials."""
        held = self.n > 0
        gaps: Floats = np.abs(self.right[held] - self.stated[held]) / self.n[held]
        return gaps


def bin_of(confidence: Floats, bins: int, closed: str) -> NDArray[np.intp]:
    """Return the bin of each confidence among equal bins with edges k/bins.

    Bins are [lo, hi) with the last one closed, or (lo, hi] with the first one closed.

    >>> bin_of(np.array([0.0, 0.3, 0.31, 1.0]), 10, "left").tolist(), bin_of(np.array([0.0, 0.3]), 10, "right").tolist()
    ([0, 3, 3, 9], [0, 2])
    """
    if closed not in CLOSED:
        raise UnknownName("closed side", closed, CLOSED)
    if not isinstance(bins, int) or bins < 1:
        raise UsageError.of("out-of-range/least", name="bins", least=1, found=bins)
    edges = np.arange(1, bins) / bins
    return np.searchsorted(edges, confidence, side="right" if closed == "left" else "left")


def binned(tally: Tally, bins: int = 10, closed: str = "left") -> Bins:
    """Count a tally of confidences in equal bins (see `bin_of`)."""
    place = bin_of(tally.score, bins, closed)
    right, wrong = tally.positive_counts, tally.negative_counts
    n = right + wrong
    sums = [np.bincount(place, weights=w, minlength=bins).astype(np.float64) for w in (n, right, tally.score * n)]
    return Bins(np.arange(bins + 1) / bins, sums[0], sums[1], sums[2])


@metric(best="low", interval=False, also=("expected_calibration_error",), by_chance="ece_by_chance")
def ece(
    label: ArrayLike,
    decision: ArrayLike,
    confidence: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    bins: int = 10,
    closed: Closed = "left",
) -> float:
    """Expected calibration error: the mean distance between confidence and accuracy over bins of confidence.

    Σ_b (n_b / n) · |share right in b − mean confidence in b|, over equal bins with edges k/bins that are [lo, hi), the
    last closed (`closed="right"`: (lo, hi], the first closed). Best: low. Range: 0..1. Undefined (NaN) without an
    answered trial that has a confidence. It is never below 0, so chance alone makes it positive and resampling inflates
    it. So it gets no interval; `calibrated_ece` returns what a calibrated detector would show.
    Of trials whose scores are declared probabilities and that state no confidence, it takes the probability of the
    decided class; without decisions, that of the more probable class.
    Reference: Naeini et al. 2015; `netcal.metrics.ECE` for `closed="left"`.

    >>> ece([1, 1, 0, 0], [1, 1, 0, 1], [0.9, 0.9, 0.7, 0.7])
    PartialEstimate(0.15 over 4)
    """
    tally = judged(label, decision, confidence, weight)
    found, n = binned(tally, bins, closed), _size(tally)
    return PartialEstimate(float(found.gaps @ found.n[found.n > 0]) / n if n else math.nan, n)


@metric(best="low", interval=False, also=("mce", "maximum_calibration_error"))
def max_calibration_error(
    label: ArrayLike,
    decision: ArrayLike,
    confidence: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    bins: int = 10,
    closed: Closed = "left",
) -> float:
    """Maximum calibration error: the gap between confidence and accuracy in the worst bin, even if it has few trials.

    max_b |share right in b − mean confidence in b|, bins as for `ece`. Best: low. Range: 0..1. Undefined (NaN) without
    an answered trial that has a confidence. Reference: Naeini et al. 2015; `netcal.metrics.MCE` for `closed="left"`.

    >>> max_calibration_error([1, 1, 0, 0], [1, 1, 0, 1], [0.9, 0.9, 0.7, 0.7])
    PartialEstimate(0.2 over 4)
    """
    tally = judged(label, decision, confidence, weight)
    gaps = binned(tally, bins, closed).gaps
    return PartialEstimate(float(gaps.max()) if len(gaps) else math.nan, _size(tally))


@metric(best="low", judged=brier_of)
def brier_confidence(
    label: ArrayLike, decision: ArrayLike, confidence: ArrayLike, weight: ArrayLike | None = None
) -> float:
    """Mean squared difference between the confidence and whether the verdict was right. Not `brier`, of probabilities.

    mean of (confidence − right)², on answered trials. Best: low. Range: 0..1; a constant 0.5 gets 0.25. Undefined
    (NaN) without an answered trial that has a confidence.
    Reference: Brier 1950; equals `sklearn.metrics.brier_score_loss(right, confidence)`.

    >>> brier_confidence([1, 0, 0], [1, 1, -1], [0.5, 1.0, 0.2])
    PartialEstimate(0.625 over 2)
    """
    j = Judged.of(judged(label, decision, confidence, weight))
    return PartialEstimate(float(brier_of(j)), float(j.n))


@metric(best="low", interval=False)
def smooth_ece(label: ArrayLike, decision: ArrayLike, confidence: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Smooth calibration error: the expected calibration error without bins, so it does not depend on their edges.

    smECE_σ = ∫₀¹ |(1/n) Σ_i (right_i − c_i) K_σ(c_i, t)| dt with the Gaussian kernel reflected at 0 and 1, at the
    bandwidth where smECE_σ = σ (not below 0.001). Best: low. Range: 0..1. Undefined (NaN) without an answered trial
    that has a confidence. If there are more than 1,000 distinct confidences, each is split between its neighbours
    on a grid of 1/1000, which changes the number by less than 0.0001.
    Reference: Błasiok & Nakkiran 2023; `relplot.smECE` approximates it.

    >>> round(smooth_ece([1, 1, 0, 0], [1, 1, 0, 1], [0.9, 0.9, 0.7, 0.7]), 4)
    0.1037
    """
    tally = judged(label, decision, confidence, weight)
    n = _size(tally)
    if not n:
        return PartialEstimate(math.nan, 0)
    residual = (tally.positive_counts * (1.0 - tally.score) - tally.negative_counts * tally.score) / n
    return PartialEstimate(_smooth(*_few_places(tally.score, residual)), n)


def _smooth(place: Floats, residual: Floats) -> float:
    """Return the bandwidth that equals its own smoothed error.

    The error falls as the bandwidth grows, so there is one.
    """
    from scipy.optimize import brentq

    def excess(width: float) -> float:
        return _smoothed(place, residual, width) - width

    width = 1.0
    while excess(width) < 0.0:
        if width <= NARROWEST:
            return _smoothed(place, residual, NARROWEST)
        width = max(width / 2, NARROWEST)
    if width == 1.0:
        return _smoothed(place, residual, 1.0)
    return float(brentq(excess, width, min(2 * width, 1.0), xtol=1e-13, rtol=1e-13))


def _smoothed(place: Floats, residual: Floats, width: float) -> float:
    """Return ∫|r| for the smoothed residual r, from the values of its antiderivative at the zeros of r."""
    from scipy.special import ndtr  # slow to import, and needed only here

    images = _images(place, width)
    grid = np.linspace(0.0, 1.0, max(256, math.ceil(5 / width)) + 1)

    def primitive(t: Floats) -> Floats:
        return np.asarray(ndtr((t[:, None, None] - images) / width).sum(axis=2) @ residual)

    value = _density(grid, images, residual, width)
    turns = np.flatnonzero(value[:-1] * value[1:] < 0)
    zero = grid[turns] + (grid[1] - grid[0]) * value[turns] / (value[turns] - value[turns + 1])
    for _ in range(2 if len(turns) else 0):  # the result depends on the error of a zero only quadratically
        slope = (value[turns + 1] - value[turns]) / (grid[1] - grid[0])
        zero = np.clip(zero - _density(zero, images, residual, width) / slope, grid[turns], grid[turns + 1])
    # A zero that lies exactly on the grid has no sign change beside it; whether it is exact depends on the processor.
    stops = np.sort(np.concatenate([[0.0], zero, grid[value == 0.0], [1.0]]))
    return float(np.abs(np.diff(primitive(stops))).sum())


def _density(t: Floats, images: Floats, residual: Floats, width: float) -> Floats:
    """Return the smoothed residual at some places, up to a factor."""
    parts = np.array_split(t, max(1, len(t) * images.size // 10**6))
    return np.concatenate(
        [np.exp(-0.5 * ((p[:, None, None] - images) / width) ** 2).sum(axis=2) @ residual for p in parts]
    )


def _images(place: Floats, width: float) -> Floats:
    """Return each place and its mirror images at 0 and 1, as far as the kernel reaches."""
    shifts = 2.0 * np.arange(-5, 6)
    straight = shifts[np.abs(shifts) - 1.0 < 9 * width]
    mirrored = shifts[np.abs(shifts - 1.0) - 1.0 < 9 * width]
    return np.concatenate([place[:, None] + straight, mirrored - place[:, None]], axis=1)


def _few_places(place: Floats, residual: Floats) -> tuple[Floats, Floats]:
    if len(place) <= FINEST:
        return place, residual
    below = np.minimum((place * FINEST).astype(np.int64), FINEST - 1)
    upper = place * FINEST - below
    sums = np.bincount(below, residual * (1 - upper), FINEST + 1) + np.bincount(below + 1, residual * upper, FINEST + 1)
    return np.arange(FINEST + 1) / FINEST, sums.astype(np.float64)


def calibrated_ece(
    tally: Tally, *, bins: int = 10, closed: str = "left", level: float = 0.95, draws: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """Return the `ece` that a perfectly calibrated detector with these confidences would show: mean and upper quantile.

    Each verdict is drawn as right with the stated probability; the mean and the `level` quantile of the error are
    returned. An `ece` above the quantile is more than chance. Reference: Bröcker & Smith 2007 (consistency resampling).

    >>> calibrated_ece(judged([1, 1], [1, 1], [1.0, 1.0]))
    (0.0, 0.0)
    """
    n = (tally.positive_counts + tally.negative_counts).astype(np.int64)
    if not n.sum():
        return math.nan, math.nan
    right = Random(PCG64(seed)).binomial(n, tally.score, size=(draws, len(n)))
    place = bin_of(tally.score, bins, closed)
    starts = np.flatnonzero(np.append(True, place[1:] != place[:-1]))
    gaps = np.abs(np.add.reduceat(right - n * tally.score, starts, axis=1)).sum(axis=1) / n.sum()
    return float(gaps.mean()), float(np.quantile(gaps, level))


def _size(tally: Tally) -> float:
    return tally.n_positive + tally.n_negative
