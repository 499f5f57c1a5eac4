"""Checks after a run: scores that depend on the batch, or are constant, saturated, missing or reversed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.finding import Remark
from hitmiss.core.tally import Tally
from hitmiss.engine.interval import area_interval
from hitmiss.stats.forms.sums import PairShare

Floats = NDArray[np.float64]
TOLERANCE: Final = 1e-3
"""A change of log-odds with the batch that causes a warning; rounding alone gives about a hundredth of it."""
SATURATED: Final = 0.01
SAMPLE: Final = 8


@dataclass(frozen=True)
class Invariance:
    """How much scores change when a clip is scored alone."""

    n: int
    largest: float
    item: str
    is_random: bool = False
    """Whether the model answers one item differently each time, so that the batch is not the cause."""

    @property
    def holds(self) -> bool:
        """Whether the change is only rounding."""
        return self.largest <= TOLERANCE

    def __str__(self) -> str:
        why = "because the model is randomised" if self.is_random else "so a score depends on what else is in the batch"
        end = "" if self.holds else f", {why} (most for {self.item!r})"
        return f"{self.n} clips scored again one by one: log-odds change by at most {self.largest:.2g}{end}"


def rescored(
    items: Sequence[str], scores: Floats, score_alone: Callable[[int], float], n: int = SAMPLE
) -> Invariance | None:
    """Score `n` of the items again, one by one, spread over the whole list.

    >>> print(rescored(["a", "b"], np.array([1.0, 2.0]), lambda i: [1.0, 2.5][i]))
    2 clips scored again one by one: log-odds change by at most 0.5, so a score depends on what else is in the batch (most for 'b')
    """
    if not len(items) or n <= 0:
        return None
    places = np.unique(np.linspace(0, len(items) - 1, min(n, len(items))).astype(int)).tolist()
    changes = [(_change(float(scores[i]), score_alone(i)), items[i]) for i in places]
    largest, item = max(changes)
    return Invariance(len(changes), largest, item)


def _change(before: float, alone: float) -> float:
    return 0.0 if before == alone else abs(before - alone)


def alarms(
    scores: Floats, label: NDArray[np.integer] | None, positive: str, negative: str, n_failed: int = 0
) -> list[str]:
    """Return warnings about the scores of a run; empty if there are none. `label` (1, 0) may be None.

    >>> alarms(np.zeros(5), None, "real", "fake")
    ['all 5 scores are 0: the scores carry no information']
    """
    found = [f"{n_failed:,} item{'s' * (n_failed > 1)} without a score; failures.tsv says why"] if n_failed else []
    if not len(scores):
        return [*found, "no item has a score"]
    if len(scores) > 1 and (scores == scores[0]).all():
        return [*found, f"all {len(scores):,} scores are {scores[0]:g}: the scores carry no information"]
    found += _decisions(scores) or _saturated(scores)
    if label is not None:
        found += _reversed(scores, np.asarray(label) == 1, positive, negative)
    return found


def _decisions(scores: Floats) -> list[str]:
    """Describe outputs that are decisions: two values, or the two ends of the scale."""
    values = np.unique(scores)
    if len(values) != 2 or len(scores) < 3:
        return []
    low, high = ("0 and 1" if np.isinf(values).all() else f"{values[0]:g} and {values[1]:g}").split(" and ")
    return [
        f"the outputs are hard decisions: only {low} and {high} occur. Rates at the one threshold between them are sound; "
        f"EER, AUC and curves have a single point, and there is no calibration; have the model give probabilities or logits"
    ]


def _saturated(scores: Floats) -> list[str]:
    at_ends = (scores == scores.max()) | (scores == scores.min())
    ends, between = float(at_ends.mean()), scores[~at_ends]
    # a detector with few distinct scores has ties everywhere
    is_continuous = len(np.unique(between)) > len(between) / 2
    if ends <= max(SATURATED, 2.5 / len(scores)) or not is_continuous:
        return []
    return [Remark.of("scores-saturated", ends=f"{ends:.1%}", low=float(scores.min()), high=float(scores.max()))]


def _reversed(scores: Floats, is_positive: NDArray[np.bool_], positive: str, negative: str) -> list[str]:
    if not 1 < is_positive.sum() < len(scores) - 1:
        return []
    tally = Tally.of(is_positive, scores)
    low, high = area_interval(tally)
    if not high < 0.5:
        return []
    return [
        Remark.of(
            "scores-reversed",
            PairShare=PairShare().value(tally),
            low=low,
            high=high,
            negative=negative,
            positive=positive,
        )
    ]
