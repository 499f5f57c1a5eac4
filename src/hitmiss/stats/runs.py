"""The scores of many groups, sorted once: one run for each group and class, in one array.

Everything that ranks trials inside a group reads its two runs; nothing is sorted twice. Values are sorted, never
positions: that is several times faster and all that ranking needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitmiss.stats.delong import Steps
from hitmiss.tally import Array, Floats, Tally, ascending

SMALL = 2**8
"""Up to so many runs they are gathered piece by piece."""
PIECE = 2**17
"""Trials in a piece: few enough to stay in the cache, so that no whole-array order is ever written."""


@dataclass(frozen=True, eq=False)
class Runs:
    """Sorted scores; `ends[2 * group + is_positive]` is where the run of that group and class begins.

    >>> r = Runs.of(np.array([True, False, True, False]), np.array([0.9, 0.1, 0.3, 0.4]), np.array([0, 0, 1, 1]), 2)
    >>> r.positives(0), r.negatives(1), r.pair_share(1)
    (array([0.9]), array([0.4]), 0.0)
    """

    score: Floats
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, positive: NDArray[np.bool_], score: Floats, group: NDArray[np.integer], n_groups: int) -> Runs:
        """Put trials into runs; `group` counts from 0."""
        code = run_codes(positive, group, n_groups)
        ends = np.concatenate([[0], np.cumsum(counted(code, 2 * n_groups))])
        ordered = _gathered(score, code, ends) if 2 * n_groups <= SMALL else score[np.argsort(code, kind="stable")]
        for start, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            ordered[start:end] = ascending(ordered[start:end])
        return cls(ordered, ends)

    def positives(self, group: int) -> Floats:
        """The scores of a group's positives, ascending."""
        return self.score[self.ends[2 * group + 1] : self.ends[2 * group + 2]]

    def negatives(self, group: int) -> Floats:
        """The scores of a group's negatives, ascending."""
        return self.score[self.ends[2 * group] : self.ends[2 * group + 1]]

    def tally(self, group: int) -> Tally:
        """The tally of one group."""
        return Tally.of_classes(self.positives(group), self.negatives(group))

    def pair_share(self, group: int) -> float:
        """The area under the ROC curve of one group; NaN with one class."""
        return pair_share(self.positives(group), self.negatives(group))


def run_codes(positive: NDArray[np.bool_], group: NDArray[np.integer], n_groups: int) -> NDArray[np.integer]:
    """2 * group + is_positive, in the smallest integers that hold it."""
    kind: Any = np.uint8 if 2 * n_groups <= SMALL else np.uint16 if 2 * n_groups <= 2**16 else np.int64
    code: Array = (group.astype(kind) << kind(1)) | positive.astype(kind)
    return code


def counted(code: NDArray[np.integer], size: int) -> NDArray[np.int64]:
    """How often each code from 0 to `size` − 1 occurs: `bincount` piece by piece, which copies no whole array."""
    counts = np.zeros(size, dtype=np.int64)
    for start in range(0, len(code), PIECE):
        counts += np.bincount(code[start : start + PIECE], minlength=size)
    return counts


def _gathered(score: Floats, code: NDArray[np.integer], ends: NDArray[np.int64]) -> Floats:
    """The scores in the order of their codes."""
    gathered, filled = np.empty(len(score)), ends[:-1].copy()
    for start in range(0, len(score), PIECE):
        codes = code[start : start + PIECE]
        values = score[start : start + PIECE][np.argsort(codes, kind="stable")]
        counts = np.bincount(codes, minlength=len(filled))
        stops = np.cumsum(counts)
        for run in np.flatnonzero(counts).tolist():
            gathered[filled[run] : filled[run] + counts[run]] = values[stops[run] - counts[run] : stops[run]]
        filled += counts
    return gathered


def pair_share(positive: Floats, negative: Floats) -> float:
    """Share of (positive, negative) pairs in which the positive is higher, equal scores counting half; both ascending.

    The rarer class is looked up in the other one. The counts are integers, so the share is exact to the last bit.

    >>> pair_share(np.array([0.4, 0.9]), np.array([0.1, 0.6]))
    0.75
    """
    return Steps.of_classes(positive, negative).area
