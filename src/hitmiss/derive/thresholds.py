"""The best threshold of a tally: over all observed scores (exact), or over the grid that baselines use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Unpack

import numpy as np
from numpy.typing import ArrayLike

from hitmiss.core.columns import ColumnKeywords
from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.metric_spec import MetricSpec
from hitmiss.core.registry import resolve
from hitmiss.core.scale import ScoreScale
from hitmiss.core.sorting import Array, Floats
from hitmiss.core.tally import Tally
from hitmiss.core.trials import TrialsLike, demanded
from hitmiss.core.weights import refuse_sampling
from hitmiss.metrics.counts import Counts
from hitmiss.metrics.usual import OBJECTIVE
from hitmiss.stats.forms.base import Form
from hitmiss.stats.forms.trials import OfCounts

SEARCHES: Final = ("exact", "grid")
GRID: Final = tuple(k / 100 for k in range(10, 91))
"""0.10, 0.11, … 0.90: 81 points."""


@dataclass(frozen=True)
class ThresholdChoice:
    """A threshold, the value of the metric at it on the data it was chosen on, and how it was searched for."""

    threshold: float
    value: float
    metric: str
    search: str


def best_threshold(
    tally: Tally | TrialsLike | ArrayLike,
    scores: ArrayLike | str | MetricSpec | None = None,
    /,
    maximize: str | MetricSpec = OBJECTIVE,
    search: str = "exact",
    scale: ScoreScale | None = None,
    **reading: Unpack[ColumnKeywords],
) -> ThresholdChoice:
    """Find the threshold (accept if score >= t) at which a metric of decisions is best.

    Parameters
    ----------
    tally
        Trials with scores, or counted trials, as `Tally.of(label, score)` makes them; or labels.
    scores
        The scores after labels: `best_threshold(y, s)`. After trials, what to maximise may be written here.
    maximize
        The metric. One for which low values are better (`fpr`) is minimised. A metric of scores that is read at one
        threshold (`eer`, `min_dcf`, `tpr_at_fpr`) gives this threshold.
    search
        `exact` tries every observed score, so no threshold that accepts at least one trial is better. `grid` tries
        0.10, 0.11, … 0.90.
    scale
        How the scores of a file became those of the tally: the threshold is one of the file. Trials know theirs; the
        scores of a tally are by default those of the file.
    **reading
        What the columns of a table are, as for `hm.read`: `label="truth"`, `score="p"`, `positive="fake"`, …

    Returns
    -------
    Choice
        The threshold and the value at it; of several equally good thresholds, the lowest. Thresholds at which the
        metric is undefined are never chosen.

    Raises
    ------
    UsageError
        For an unknown search, or a metric that is neither computed from decisions nor read at one threshold.
    DataError
        If there are no trials, or the metric is undefined at every threshold.

    >>> t = Tally.of([1, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.1])
    >>> best_threshold(t)
    ThresholdChoice(threshold=0.6, value=0.8571428571428571, metric='f1', search='exact')
    >>> best_threshold(t, search="grid").threshold
    0.11
    """
    if isinstance(scores, str | MetricSpec):
        search, maximize = (str(maximize), scores) if maximize in SEARCHES else (search, scores)
    elif scores is not None:
        tally = Tally.of(np.asarray(tally), np.asarray(scores))
    if search not in SEARCHES:
        raise UnknownName("search", search, SEARCHES)
    if not isinstance(tally, Tally):
        trials = demanded(tally, "best_threshold", reading)
        refuse_sampling(trials, "the choice of a threshold")
        tally, scale = Tally.of(trials.label, trials.score), scale or trials.header.scale
    scale = scale or ScoreScale()
    if not len(tally.score):
        raise DataError.of("no-trials/threshold")
    is_exact = search == "exact"
    candidates = tally.score if is_exact else np.array([scale.to_inside(t) for t in GRID])
    _, entry, settings = resolve(maximize)
    form = entry.form(**settings) if entry.form is not None else None
    if isinstance(form, Form) and is_exact and tally.has_both_classes and (point := form.place(tally)) is not None:
        return ThresholdChoice(scale.threshold_of(tally, point), form.value(tally), str(maximize), search)
    values = figures_at(tally, candidates, maximize)
    gain = np.where(np.isnan(values), -np.inf, values if entry.best == "high" else -values)
    if not np.isfinite(gain).any():
        raise DataError.of("undefined-everywhere", maximize=maximize)
    best = np.flatnonzero(gain == gain.max())
    place = int(best[-1] if is_exact and scale.is_reversed else best[0])  # the lowest threshold of the file
    threshold = scale.threshold_of(tally, place) if is_exact else GRID[place]
    return ThresholdChoice(threshold, float(values[place]), str(maximize), search)


def figures_at(tally: Tally, thresholds: ArrayLike, metric: str | MetricSpec = OBJECTIVE) -> Floats:
    """Compute a metric of decisions at each threshold; NaN where it is undefined.

    >>> figures_at(Tally.of([1, 1, 0], [0.9, 0.4, 0.6]), [0.5, 0.4], "recall")
    array([0.5, 1. ])
    """
    spec, entry, settings = resolve(metric)
    form = entry.form(**settings) if entry.form is not None else None
    if not isinstance(form, OfCounts):
        raise UsageError.of("not-a-threshold-metric", spec=spec)
    return form.of_counts(counts_at(tally, thresholds))


def counts_at(tally: Tally, thresholds: ArrayLike) -> Counts[Floats]:
    """Count the decisions at each threshold."""
    points = np.searchsorted(tally.score, np.asarray(thresholds, dtype=np.float64), side="left")
    missed, passed = _wide(tally.positives[points]), _wide(tally.negatives[points])
    return Counts(tp=tally.n_positive - missed, fp=tally.n_negative - passed, fn=missed, tn=passed)


def _wide(counts: Array) -> Array:
    return counts.astype(np.int64) if counts.dtype.kind == "i" else counts
