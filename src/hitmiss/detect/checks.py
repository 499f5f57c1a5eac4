"""What to worry about after a run: scores that depend on the batch, that are constant, saturated, missing or reversed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hitmiss.stats.delong import auc_interval
from hitmiss.stats.forms import PairShare
from hitmiss.tally import Tally

Floats = NDArray[np.float64]
TOLERANCE: Final = 1e-3
"""A change of log-odds with the batch that is worth a warning; rounding alone gives a hundredth of it."""
SATURATED: Final = 0.01
SAMPLE: Final = 8


@dataclass(frozen=True)
class Invariance:
    """How much scores change when a clip is scored alone."""

    n: int
    largest: float
    item: str

    @property
    def holds(self) -> bool:
        """Whether the change is rounding."""
        return self.largest <= TOLERANCE

    def __str__(self) -> str:
        end = "" if self.holds else f", so a score depends on what else is in the batch (most for {self.item!r})"
        return f"{self.n} clips scored again one by one: log-odds change by at most {self.largest:.2g}{end}"


def rescored(
    items: Sequence[str], scores: Floats, score_alone: Callable[[int], float], n: int = SAMPLE
) -> Invariance | None:
    """Score `n` of the items again, alone, spread over the whole list.

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


def alarms(scores: Floats, label: Any, positive: str, negative: str, n_failed: int = 0) -> list[str]:
    """Sentences about the scores of a run; none where all is well. `label` (1, 0) may be None.

    >>> alarms(np.zeros(5), None, "real", "fake")
    ['all 5 scores are 0: the detector says nothing']
    """
    found = [f"{n_failed:,} item{'s' * (n_failed > 1)} without a score; failures.tsv says why"] if n_failed else []
    if not len(scores):
        return [*found, "no item has a score"]
    if len(scores) > 1 and np.ptp(scores[np.isfinite(scores)] if np.isfinite(scores).any() else np.zeros(1)) == 0:
        return [*found, f"all {len(scores):,} scores are {scores[0]:g}: the detector says nothing"]
    found += _saturated(scores)
    if label is not None:
        found += _reversed(scores, np.asarray(label) == 1, positive, negative)
    return found


def _saturated(scores: Floats) -> list[str]:
    at_ends = (scores == scores.max()) | (scores == scores.min())
    ends, between = float(at_ends.mean()), scores[~at_ends]
    is_continuous = len(np.unique(between)) > len(between) / 2  # a detector with few different scores ties everywhere
    if ends <= max(SATURATED, 2.5 / len(scores)) or not is_continuous:
        return []
    return [
        f"{ends:.1%} of the scores are tied at the ends ({scores.min():g} and {scores.max():g}): the outputs saturate, "
        f"so their order is lost; have the model give logits"
    ]


def _reversed(scores: Floats, is_positive: NDArray[np.bool_], positive: str, negative: str) -> list[str]:
    if not 1 < is_positive.sum() < len(scores) - 1:
        return []
    tally = Tally.of(is_positive, scores)
    low, high = auc_interval(tally)
    if not high < 0.5:
        return []
    return [
        f"the scores look REVERSED: ROC AUC is {PairShare().value(tally):.4f} [{low:.4f}, {high:.4f}], so higher scores go "
        f"with {negative}; nothing was flipped. Say which output means {positive} (--positive-index, or --higher {negative})"
    ]
