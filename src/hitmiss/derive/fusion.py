"""Fusion: one log-likelihood ratio from the scores of several systems, by the same fit as the affine calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import ArrayLike
from scipy.special import logit

from hitmiss.core.errors import DataError
from hitmiss.core.sorting import Floats
from hitmiss.core.trials import Trials
from hitmiss.derive.calibration import check_fit, fit_weights, is_separated


@dataclass(frozen=True)
class LinearFusion:
    """The mapping llr = offset + Σ slope × score, with one slope per system.

    >>> LinearFusion(slopes=(2.0, 1.0), offset=-1.0).apply([[1.0, 3.0], [0.0, 0.0]])
    array([ 4., -1.])
    """

    slopes: tuple[float, ...]
    offset: float

    def apply(self, score: ArrayLike) -> Floats:
        """Return the log-likelihood ratios of scores, one column per system."""
        return np.asarray(np.asarray(score, dtype=np.float64) @ np.array(self.slopes) + self.offset)

    @property
    def parameters(self) -> dict[str, object]:
        """The fitted parameters, as plain values."""
        return {"slopes": list(self.slopes), "offset": self.offset}


def fit_fusion(label: ArrayLike, scores: Floats, names: Sequence[str], *, prior: float = 0.5) -> LinearFusion:
    """Fit slopes and offset by logistic regression with the classes weighted to a prior, without penalty.

    Raises `DataError` if no best fit exists: one class only, a system whose scores are all equal, a combination that
    separates the classes, or systems that are copies of each other.

    >>> scores = np.array([[3.0, 0], [1, 3], [0, -1], [2, 1], [1, 1], [0, -1], [-1, 2], [2, 0]])
    >>> fit = fit_fusion([1, 1, 1, 1, 0, 0, 0, 0], scores, ["a", "b"])
    >>> len(fit.slopes), bool(fit.slopes[0] > 0)
    (2, True)
    """
    positive, _, shares = check_fit(label, scores[:, 0], None, prior, needs_spread=False)
    centre, spread = scores.mean(axis=0), scores.std(axis=0)
    if same := [own for own, width in zip(names, spread, strict=True) if width == 0]:
        raise DataError.of("equal-scores", same=tuple(same))
    try:
        theta = fit_weights((scores - centre) / spread, positive, shares, float(logit(prior)))
    except (np.linalg.LinAlgError, DataError):
        raise DataError.of("no-fusion") from None
    slopes = theta[:-1] / spread
    together = scores @ slopes
    if is_separated(together[positive], together[~positive]):  # the slopes would grow without end
        raise DataError.of("no-fusion")
    return LinearFusion(tuple(slopes.tolist()), float(theta[-1] - slopes @ centre))


def score_matrix(systems: Mapping[str, Trials]) -> Floats:
    """Return the scores of several systems as one column each, in the order of the trials of the first."""
    (first, known), *others = systems.items()
    key = ["item", "target"]
    table = known.frame.select(*key, "label", pl.col("score").alias(f"0 {first}"))
    for at, (name, trials) in enumerate(others, 1):
        other = trials.frame.select(*key, pl.col("label").alias("other"), pl.col("score").alias(f"{at} {name}"))
        met = table.join(other, on=key, how="left", maintain_order="left")
        if len(trials) != len(known) or met["other"].null_count():
            raise DataError.of("unpaired", first=first, name=name)
        if (met["other"] != met["label"]).any():
            raise DataError.of("unlike-labels", first=first, name=name)
        table = met.drop("other")
    scores = table.select(pl.exclude(*key, "label"))
    if missing := [c for c in scores.columns if scores[c].null_count()]:
        raise DataError.of("no-score", missing=missing[0].partition(" ")[2])
    found = scores.to_numpy().astype(np.float64)
    if not np.isfinite(found).all():
        raise DataError.of("infinite-score", what="a fusion", n=int((~np.isfinite(found)).sum()))
    return found
