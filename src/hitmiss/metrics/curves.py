"""Curves as numbers: ROC, DET and precision–recall. The report draws them.

Point `i` of each curve accepts `score >= thresholds[i]`; equal scores are one point; the last point accepts nothing
(threshold +inf).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hitmiss.core.sorting import Floats
from hitmiss.core.tally import Tally


@dataclass(frozen=True, eq=False)
class DetCurve:
    """Miss rate against false-alarm rate, from accept-all to reject-all.

    >>> c = det_curve([1, 1, 0, 0], [0.9, 0.4, 0.6, 0.1])
    >>> c.frr.tolist(), c.far.tolist()
    ([0.0, 0.0, 0.5, 0.5, 1.0], [1.0, 0.5, 0.5, 0.0, 0.0])
    """

    far: Floats
    frr: Floats
    thresholds: Floats

    def probit(self, floor: float = 1e-6) -> tuple[Floats, Floats]:
        """Return both rates on the normal-deviate axes of a DET plot, cut at `floor` so that 0 and 1 stay finite."""
        from scipy.special import ndtri

        return ndtri(np.clip(self.far, floor, 1 - floor)), ndtri(np.clip(self.frr, floor, 1 - floor))


@dataclass(frozen=True, eq=False)
class RocCurve:
    """True-positive rate against false-positive rate, from accept-all to reject-all."""

    fpr: Floats
    tpr: Floats
    thresholds: Floats

    @property
    def area(self) -> float:
        """The area under the curve by the trapezoid rule: `roc_auc`.

        >>> roc_curve([1, 1, 0, 0], [0.9, 0.4, 0.6, 0.1]).area
        0.75
        """
        return float(np.sum((self.fpr[:-1] - self.fpr[1:]) * (self.tpr[:-1] + self.tpr[1:])) / 2)


@dataclass(frozen=True, eq=False)
class PrCurve:
    """Precision against recall; the last point (nothing accepted) has precision 1 by convention.

    >>> pr_curve([1, 0, 1, 0], [0.9, 0.6, 0.4, 0.1]).precision.round(3).tolist()
    [0.5, 0.667, 0.5, 1.0, 1.0]
    """

    recall: Floats
    precision: Floats
    thresholds: Floats


def det_curve(label: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None) -> DetCurve:
    """Return the detection error trade-off (DET) curve."""
    return det_of_tally(Tally.of(label, score, weight))


def det_of_tally(tally: Tally) -> DetCurve:
    """Return the DET curve of a tally; rates are NaN for a class that is absent."""
    frr = _share(tally.positives, tally.n_positive)
    return DetCurve(_share(tally.n_negative - tally.negatives, tally.n_negative), frr, _thresholds(tally))


def roc_curve(label: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None) -> RocCurve:
    """Return the receiver operating characteristic (ROC) curve."""
    return roc_of_tally(Tally.of(label, score, weight))


def roc_of_tally(tally: Tally) -> RocCurve:
    """Return the ROC curve of a tally."""
    tpr = _share(tally.n_positive - tally.positives, tally.n_positive)
    return RocCurve(_share(tally.n_negative - tally.negatives, tally.n_negative), tpr, _thresholds(tally))


def pr_curve(label: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None) -> PrCurve:
    """Return the precision–recall curve."""
    return pr_of_tally(Tally.of(label, score, weight))


def pr_of_tally(tally: Tally) -> PrCurve:
    """Return the precision–recall curve of a tally."""
    hits = (tally.n_positive - tally.positives).astype(np.float64)
    accepted = hits + (tally.n_negative - tally.negatives)
    precision = np.divide(hits, accepted, out=np.ones_like(hits), where=accepted > 0)
    return PrCurve(_share(hits, tally.n_positive), precision, _thresholds(tally))


def _share(counts: ArrayLike, total: float) -> Floats:
    values = np.asarray(counts, dtype=np.float64)
    return values / total if total else np.full_like(values, np.nan)


def _thresholds(tally: Tally) -> Floats:
    return np.append(tally.score, np.inf)
