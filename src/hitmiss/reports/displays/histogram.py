"""The scores of both classes in bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from hitmiss.core.errors import DataError
from hitmiss.core.score_keys import COARSE, bins_of, first_key, keys_of, scores_of
from hitmiss.core.sorting import Floats
from hitmiss.core.tally import Tally
from hitmiss.core.trials import Trials
from hitmiss.findings.wording import per_cent
from hitmiss.reports.displays.display import Display, Point, facts, operating_points, tally_of
from hitmiss.reports.displays.lines import Lines, NumberRows, PlateOptions, share_axis, share_text
from hitmiss.reports.plate import Axis, Bars, GuideLine, Mark, Plate, ticks
from hitmiss.reports.readings import Reading

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
    reading: ClassVar[Reading] = Reading(
        "Scores by class", "Each class as shares of itself. The less they overlap, the better.", True
    )
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

    @staticmethod
    def plate(lines: Lines[HistogramDisplay], how: PlateOptions) -> Plate:
        """Draw the first run."""
        del how
        return histogram_plate(lines[0][1])

    @staticmethod
    def numbers(lines: Lines[HistogramDisplay]) -> NumberRows:
        """Return the numbers behind the figure."""
        rows: list[tuple[str, list[str]]] = []
        for name, d in lines:
            step = max(len(d.positives) // 10, 1)
            for i in range(0, len(d.positives), step):
                ends = f"{d.edges[i]:.3g} to {d.edges[min(i + step, len(d.edges) - 1)]:.3g}"
                rows.append(
                    (
                        name,
                        [
                            ends,
                            share_text(d.positives[i : i + step].sum()),
                            share_text(d.negatives[i : i + step].sum()),
                        ],
                    )
                )
        return ("score", lines[0][1].positive, lines[0][1].negative), rows


def histogram_plate(d: HistogramDisplay, ends: tuple[float, float] | None = None) -> Plate:
    """Draw both classes as bars, one behind the other; `ends`: a range shared with other plates."""
    top = 1.08 * float(max(d.positives.max(), d.negatives.max()))
    overlap = float(np.minimum(d.positives, d.negatives).sum())
    marks: list[Mark] = [
        Bars(d.edges, d.negatives, 1, f"{d.negative} ({d.n_negative:,})"),
        Bars(d.edges, d.positives, 0, f"{d.positive} ({d.n_positive:,})"),
    ]
    low, high = ends or (float(d.edges[0]), float(d.edges[-1]))
    marks += [
        GuideLine(p.threshold, True, f"{p.label} {p.threshold:.3g}") for p in d.points if low <= p.threshold <= high
    ]
    x = Axis(f"score (higher = {d.higher or d.positive})", low, high, ticks(low, high))
    key = ((1, "bar", f"{d.negative} ({d.n_negative:,})"), (0, "bar", f"{d.positive} ({d.n_positive:,})"))
    finding = f"{per_cent(overlap, 0)} of the scores overlap"
    return Plate(
        x,
        share_axis("share of the class", top),
        tuple(marks),
        finding,
        key=key,
        note="The outer bins hold what lies beyond.",
    )


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
        raise DataError.of("nothing-to-draw/scores")
    score = tally.score[finite]
    below = np.cumsum((tally.positive_counts + tally.negative_counts)[finite])
    low, high = (float(score[np.searchsorted(below, share * below[-1])]) for share in (TAIL, 1 - TAIL))
    if low == high:
        low, high = float(score[0]), float(score[-1])
    half = 0.5 if low == high else 0.0
    return np.linspace(low - half, high + half, bins + 1)
