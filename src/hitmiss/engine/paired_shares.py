"""Metrics of decisions that are shares of trials: which trials they count, among which, and where two runs differ."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hitmiss.engine.columns import Sample
from hitmiss.engine.paired_samples import Both, PairedSample, outcomes
from hitmiss.engine.shares import share_of
from hitmiss.stats.forms.base import Functional
from hitmiss.stats.forms.trials import OfTerms

Mask = NDArray[np.bool_]


def shared_denominator(question: Both, sample: PairedSample) -> list[tuple[Mask, Mask, Mask]] | None:
    """Return the trials behind a share, per part, and the hits of both runs.

    None if the runs count different trials.
    """
    found = []
    for part in sample.parts:
        a, b = (_hits(q.form, side) for q, side in zip(question, (part.a, part.b), strict=True))
        if a is None or b is None or not np.array_equal(a[1], b[1]):
            return None
        found.append((a[1], a[0], b[0]))
    return found


def _hits(form: Functional, sample: Sample) -> tuple[Mask, Mask] | None:
    """Return which trials a share counts, and among which; None if the number is not a share."""
    if isinstance(form, OfTerms):
        return form.shares(sample)
    share = share_of(form)
    if share is None:
        return None
    code = outcomes(sample)
    hits, of = (np.asarray(side, dtype=bool)[code] for side in share)
    return hits, of


def discordant(question: Both, sample: PairedSample) -> tuple[int, int, int]:
    """Return the number of pairs behind a share, and how many only the first or only the second run hits."""
    shared = shared_denominator(question, sample)
    assert shared is not None and len(shared) == 1
    inside, hit_a, hit_b = shared[0]
    return int(inside.sum()), int((inside & hit_a & ~hit_b).sum()), int((inside & hit_b & ~hit_a).sum())
