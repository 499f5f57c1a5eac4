"""The scores of both classes in bins, as an object that holds its numbers and can draw itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from hitmiss.core.errors import DataError
from hitmiss.core.score_keys import COARSE, bins_of, first_key, keys_of, scores_of
from hitmiss.core.sorting import Floats
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials
from hitmiss.reports.displays import Display, Point, facts, operating_points, tally_of

BINS: Final = 60
TAIL: Final = 0.0005
"""Share of the scores at each end that goes into the outer bins of a histogram, so that outliers cannot squash it."""


@dataclass(frozen=True, eq=False)
class HistogramDisplay(Display):
    """The scores of both classes in bins, each class as shares of itself. The outer bins hold what lies beyond.

    >>> h = HistogramDisplay.from_trials(Trials.of([1, 1, 0, 0], [1.0, 2.0, 0.0, 1.0]), bins=2)
    >>> h.edges.tolist(), h.positives.tolist(), h.negatives.tolist()
    ([0.0, 1.0, 2.0], [0.0, 1.0], [0.5, 0.5])
    """

    kind: ClassVar[str] = "histogram"
    edges: Floats
    positives: Floats
    negatives: Floats
    points: tuple[Point, ...] = ()
    higher: str = ""
    """The class that higher scores of the file mean, if it is not the positive one."""

    @classmethod
    def from_trials(cls, trials: Trials, *, bins: int = BINS, tally: Tally | None = None) -> HistogramDisplay:
        """Compute the histogram of scored trials; the threshold of the EER, or of the decisions, is marked."""
        tally = tally_of(trials, tally)
        marks = operating_points(tally, threshold=trials.header.decided_from)
        return cls.from_tally(tally, *facts(trials, tally)[:2], bins=bins, points=marks).on_scale_of(trials)

    @classmethod
    def from_tally(
        cls,
        tally: Tally,
        positive: str = "positive",
        negative: str = "negative",
        *,
        bins: int = BINS,
        points: tuple[Point, ...] = (),
    ) -> HistogramDisplay:
        """Compute the histogram of a tally."""
        edges = _edges(tally, bins)
        counts = _spread(tally, edges) if tally.is_short else _placed(tally, edges)
        shares = counts[0] / tally.n_positive, counts[1] / tally.n_negative
        return cls(positive, negative, int(tally.n_positive), int(tally.n_negative), edges, *shares, points)

    def _turned(self, trials: Trials) -> dict[str, Any]:
        bars = {"positives": self.positives[::-1], "negatives": self.negatives[::-1]}
        return {**super()._turned(trials), "edges": trials.header.scale.turned(self.edges)[::-1], **bars}


def _placed(tally: Tally, edges: Floats) -> list[Floats]:
    """Count the scores of each class between the edges."""
    inner, bins = np.clip(tally.score, edges[0], edges[-1]), len(edges) - 1
    place = np.minimum(np.searchsorted(edges, inner, side="right") - 1, bins - 1)
    counts = [np.bincount(place, weights=c, minlength=bins) for c in (tally.positive_counts, tally.negative_counts)]
    return [c.astype(np.float64) for c in counts]


def _spread(tally: Tally, edges: Floats) -> list[Floats]:
    """Count scores known only by their bins: those of a bin are assumed to be spread evenly in it."""
    keys = keys_of(tally.score)
    above = np.minimum(first_key(bins_of(keys, COARSE) + np.uint64(1), COARSE), keys_of([np.inf]))
    ends = np.minimum(scores_of(above), np.append(tally.score[1:], np.inf))
    points = np.clip(np.column_stack([tally.score, ends]), edges[0], edges[-1]).ravel()
    found = []
    for below in (tally.positives, tally.negatives):
        held = np.interp(edges, points, np.column_stack([below[:-1], below[1:]]).ravel().astype(np.float64))
        held[0], held[-1] = 0.0, float(below[-1])
        found.append(np.diff(held))
    return found


def _edges(tally: Tally, bins: int) -> Floats:
    """Return equal bins over the scores, except their outermost share."""
    finite = np.isfinite(tally.score)
    if not finite.any():
        raise DataError.of("no-finite-score-draw")
    score = tally.score[finite]
    below = np.cumsum((tally.positive_counts + tally.negative_counts)[finite])
    low, high = (float(score[np.searchsorted(below, share * below[-1])]) for share in (TAIL, 1 - TAIL))
    if low == high:
        low, high = float(score[0]), float(score[-1])
    half = 0.5 if low == high else 0.0
    return np.linspace(low - half, high + half, bins + 1)
