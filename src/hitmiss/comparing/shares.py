"""Shares of trials among the metrics of decisions: which trials they count, of which, and where two runs differ in them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hitmiss.comparing.paired_samples import OUTCOMES, Both, PairedSample, outcomes
from hitmiss.metrics.counts import Counts
from hitmiss.stats.forms import Functional, OfCounts
from hitmiss.values import Rate

Mask = NDArray[np.bool_]


@lru_cache(maxsize=256)
def share_of(form: Functional) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Which outcomes a share counts, and of which it is a share; None for figures that are no plain share of decisions.

    >>> from hitmiss.metrics.counts import accuracy_of, f1_of
    >>> share_of(OfCounts(accuracy_of))[0][:4], share_of(OfCounts(f1_of))
    ((1.0, 0.0, 0.0, 1.0), None)
    """
    if not isinstance(form, OfCounts):
        return None
    single = [form.function(Counts(*row)) for row in np.eye(OUTCOMES, dtype=int).tolist()]
    if not all(isinstance(rate, Rate) for rate in single):
        return None
    hits, of = (tuple(float(getattr(rate, name)) for rate in single) for name in ("hits", "of"))
    counts = [2**k for k in range(OUTCOMES)]  # sums of these are all different: a share must add up
    whole = form.function(Counts(*counts))
    adds_up = (whole.hits, whole.of) == (float(np.dot(hits, counts)), float(np.dot(of, counts)))
    return (hits, of) if adds_up and {*hits, *of} <= {0.0, 1.0} else None


def shared_denominator(question: Both, sample: PairedSample) -> list[tuple[Mask, Mask, Mask]] | None:
    """For a share whose denominator is the same trials in both runs, a part each: those trials, and the hits of both."""
    shares = [share_of(q.form) for q in question]
    if shares[0] is None or shares[1] is None:
        return None
    found = []
    for part in sample.parts:
        codes = [outcomes(s) for s in (part.a, part.b)]
        (hit_a, of_a), (hit_b, of_b) = (
            tuple(np.asarray(side, dtype=bool)[code] for side in share if share is not None)
            for share, code in zip(shares, codes, strict=True)
            if share is not None
        )
        if not np.array_equal(of_a, of_b):
            return None
        found.append((of_a, hit_a, hit_b))
    return found


def discordant(question: Both, sample: PairedSample) -> tuple[int, int, int]:
    """Of how many pairs a share is, and how many only the first or only the second run hits."""
    shared = shared_denominator(question, sample)
    assert shared is not None and len(shared) == 1
    inside, hit_a, hit_b = shared[0]
    return int(inside.sum()), int((inside & hit_a & ~hit_b).sum()), int((inside & hit_b & ~hit_a).sum())
