"""Segment EER: how well segments of partly spoofed utterances are told apart (PartialSpoof)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from hitmiss.core.errors import DataError, UnknownName, UsageError
from hitmiss.core.metric import Chance
from hitmiss.core.registry import metric
from hitmiss.core.sorting import Array, Floats
from hitmiss.core.tally import Tally, check_weight
from hitmiss.stats.forms.crossing import equal_error
from hitmiss.stats.forms.trials import OfWeights

COLUMNS = ("label", "score", "utterance", "segment")
TIES = ("official", "grouped")


@dataclass(frozen=True, eq=False)
class _OfBlocks(OfWeights):
    """The EER of blocks of neighbouring segments, for many replicates of utterances."""

    merge: int = field(kw_only=True)
    ties: str = field(kw_only=True)

    def of_weights(self, arrays: Mapping[str, Array], weights: Floats) -> Floats:
        """Return the EER of every replicate; a block is drawn with its whole utterance."""
        first, label, score, block = _blocks(*(np.asarray(arrays[name]) for name in self.columns), merge=self.merge)
        form = equal_error("official" if self.ties == "official" else "grouped")
        if self.merge > 1 and len(block) and (weights != weights[:, first[block]]).any():
            raise UsageError.of("segments-torn")
        return np.array([form.value(Tally.of(label, score, own[first])) for own in weights])


def _blocks(
    label: Array, score: Array, utterance: Array, segment: Array, *, merge: int
) -> tuple[Array, Array, Array, Array]:
    """Return a segment of each block, the label and score of the block, and the block of each segment.

    A block is as spoofed as its most spoofed segment: its label and its score are the lowest of its segments.
    """
    if np.isnan(np.asarray(score, dtype=np.float64)).any():
        raise DataError.of("nan-score", n=int(np.isnan(score).sum()), total=len(score))
    names, own = np.unique(np.asarray(utterance, dtype=object).astype(str), return_inverse=True)
    order = np.lexsort((np.asarray(segment, dtype=np.float64), own))
    begins = np.searchsorted(own[order], np.arange(len(names)))
    number = np.arange(len(order)) - begins[own[order]]
    twice = (own[order][1:] == own[order][:-1]) & (segment[order][1:] == segment[order][:-1])
    if merge > 1 and twice.any():
        at = order[1:][twice][0]
        raise DataError.of("segment-twice", utterance=str(utterance[at]), segment=f"{float(segment[at]):g}")
    starts = np.flatnonzero(number % merge == 0)
    block = np.empty(len(order), dtype=np.intp)
    block[order] = np.cumsum(number % merge == 0) - 1
    least = [np.minimum.reduceat(one[order], starts) if len(order) else one for one in (label, score)]
    return order[starts], least[0], least[1], block


def segment_eer_form(merge: int, ties: str) -> _OfBlocks:
    """Return the form of `segment_eer`."""
    if isinstance(merge, bool) or merge != int(merge) or merge < 1:
        raise UsageError.of("bad-merge", merge=merge)
    if ties not in TIES:
        raise UnknownName("tie rule", ties, TIES)
    return _OfBlocks(segment_eer, COLUMNS, {"merge": merge, "ties": ties}, merge=int(merge), ties=ties)


@metric(
    best="low",
    form=segment_eer_form,
    prevalence=False,
    of="both",
    share=True,
    ranks=True,
    symbol="segment EER",
    chance=Chance(0.5),
)
def segment_eer(
    label: ArrayLike,
    score: ArrayLike,
    utterance: ArrayLike,
    segment: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    merge: int = 1,
    ties: str = "official",
) -> float:
    """Equal error rate of segments: bona fide segments against spoofed ones, in utterances that may be partly spoofed.

    The EER over blocks of `merge` neighbouring segments of one utterance (the last may be shorter), with the lowest label
    and the lowest score of its segments: a block with one spoofed segment is spoofed. `merge=4` measures scores of every
    20 ms at 80 ms. Best: low. Range: 0..1. Undefined (NaN) with one class. Merged segments are drawn with their utterance:
    `--unit utterance`. `ties` is as in `eer`. Reference: Zhang et al. 2023, The PartialSpoof database, IEEE/ACM TASLP;
    `metric/SegmentEER.py` of nii-yamagishilab/PartialSpoof.

    >>> segment_eer([1, 1, 0, 1], [3, 2, 0, 1], ["a", "a", "b", "b"], [0, 1, 0, 1], merge=2)
    0.0
    """
    arrays = dict(zip(COLUMNS, (np.asarray(one) for one in (label, score, utterance, segment)), strict=True))
    given = check_weight(weight, len(arrays["label"]))
    weights = np.ones(len(arrays["label"])) if given is None else np.asarray(given, dtype=np.float64)
    found = segment_eer_form(merge, ties).of_weights(arrays, weights[None, :]) if len(weights) else np.array([math.nan])
    return float(found[0])
