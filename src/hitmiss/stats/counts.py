"""Draw many trials with replacement: how often each trial was drawn, for many replicates at once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hitmiss.core.sorting import Floats

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Table: TypeAlias = Floats | csr_array
from hitmiss.stats.random import Random

Bytes = NDArray[np.uint8]
Counts = NDArray[np.int64]
PACK = 16
"""How many trials are summed in one byte: the chance that 16 trials are drawn 256 times or more is below 1e-180."""
_DRAWS_BLOCK = 1 << 16  # how many numbers are processed at a time, few enough to stay in the CPU cache
_LEVELS = 1 << 16


def uniform_counts(n: int, totals: Counts, rng: Random) -> Bytes:
    """Draw how often each of `n` trials is drawn (trial × replicate), if replicate r draws totals[r] trials uniformly.

    The counts are exactly multinomial: independent Poisson counts given their sum are multinomial, and they stay so
    when single draws are added. So one Poisson number is drawn per trial, at a rate at which the sum rarely exceeds the
    total, and the missing draws are added one by one. The totals must be such that a trial is drawn about once on
    average.
    """
    out = np.zeros((n, len(totals)), dtype=np.uint8)
    # Below 1 by several standard deviations of the sum, so that the sum hardly ever exceeds the total.
    rate = 1.0 - 5.0 * math.sqrt(2.0 / max(n, 1))
    if rate > 0.0:
        _fill_poisson(out.reshape(-1), rate, rng)
    have = _column_sums(out)
    # The rare replicate with too many draws starts again from zero, and all its trials are drawn one by one.
    beyond = have > totals
    out[:, beyond] = 0
    missing = np.where(beyond, totals, totals - have)
    row = rng.integers(0, max(n, 1), size=int(missing.sum()))
    np.add.at(out.reshape(-1), row * len(totals) + np.repeat(np.arange(len(totals)), missing), np.uint8(1))
    return out


def _fill_poisson(out: Bytes, rate: float, rng: Random) -> None:
    """Draw Poisson numbers from 16 random bits each.

    The probabilities are rounded down to multiples of 2⁻¹⁶. The few draws that fall into the remainder are drawn again
    from exactly the probabilities that the rounding left over, so the result is exact.
    """
    odds = _LEVELS * np.array([math.exp(-rate + k * math.log(rate) - math.lgamma(k + 1)) for k in range(60)])
    whole = np.floor(odds)
    rest = (odds - whole) / np.sum(odds - whole)
    steps = np.cumsum(whole[whole > 0]).astype(np.uint16)
    above = np.empty(_DRAWS_BLOCK, dtype=bool)
    for start in range(0, len(out), _DRAWS_BLOCK):
        part = out[start : start + _DRAWS_BLOCK]
        bits = np.frombuffer(rng.bytes(2 * len(part)), dtype="<u2")
        mask = above[: len(part)]
        for step in steps[:-1]:
            np.greater_equal(bits, step, out=mask)
            np.add(part, mask.view(np.uint8), out=part)
        again = np.flatnonzero(np.greater_equal(bits, steps[-1], out=mask))
        part[again] = rng.choice(len(rest), size=len(again), p=rest)


def _column_sums(counts: Bytes) -> Counts:
    whole = len(counts) // PACK * PACK
    packs = counts[:whole].reshape(-1, PACK, counts.shape[1]).sum(axis=1, dtype=np.uint8)
    return np.asarray(packs.sum(axis=0, dtype=np.int64) + counts[whole:].sum(axis=0, dtype=np.int64))
