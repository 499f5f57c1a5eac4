"""Drawing many trials with replacement: how often each was drawn, for many replicates at once."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hitmiss.stats.seeds import Random
from hitmiss.tally import Floats

Bytes = NDArray[np.uint8]
Counts = NDArray[np.int64]

PACK = 16
"""Trials whose counts are summed in one byte; 16 trials drawn 256 times between them has odds below 1e-180."""
_BLOCK = 1 << 16  # numbers worked on at a time: they stay in the cache
_LEVELS = 1 << 16


def uniform_counts(n: int, totals: Counts, rng: Random) -> Bytes:
    """How often each of `n` trials is drawn (trial × replicate) when replicate r draws totals[r] of them, each alike.

    Exactly multinomial: independent Poisson counts given their sum are multinomial, and so they stay when single draws
    are added. So a Poisson number is drawn for each trial, at a rate that rarely exceeds the total, and what is missing
    is drawn one by one. Totals must be such that a trial is drawn about once on average.
    """
    out = np.zeros((n, len(totals)), dtype=np.uint8)
    rate = 1.0 - 5.0 * math.sqrt(2.0 / max(n, 1))
    if rate > 0.0:
        _fill_poisson(out.reshape(-1), rate, rng)
    have = _column_sums(out)
    beyond = have > totals
    out[:, beyond] = 0
    missing = np.where(beyond, totals, totals - have)
    row = rng.integers(0, max(n, 1), size=int(missing.sum()))
    np.add.at(out.reshape(-1), row * len(totals) + np.repeat(np.arange(len(totals)), missing), np.uint8(1))
    return out


def _fill_poisson(out: Bytes, rate: float, rng: Random) -> None:
    """Poisson numbers from 16 random bits each: the odds are rounded down to multiples of 2⁻¹⁶, and the few draws that
    fall into the rest are drawn again from exactly what the rounding left."""
    odds = _LEVELS * _poisson_odds(rate)
    whole = np.floor(odds)
    rest = (odds - whole) / np.sum(odds - whole)
    steps = np.cumsum(whole[whole > 0]).astype(np.uint16)
    above = np.empty(_BLOCK, dtype=bool)
    for start in range(0, len(out), _BLOCK):
        part = out[start : start + _BLOCK]
        bits = np.frombuffer(rng.bytes(2 * len(part)), dtype="<u2")
        mask = above[: len(part)]
        for step in steps[:-1]:
            np.greater_equal(bits, step, out=mask)
            np.add(part, mask.view(np.uint8), out=part)
        again = np.flatnonzero(np.greater_equal(bits, steps[-1], out=mask))
        part[again] = rng.choice(len(rest), size=len(again), p=rest)


def _poisson_odds(rate: float) -> Floats:
    """Odds of 0, 1, 2 … up to where they vanish in double precision."""
    return np.array([math.exp(-rate + k * math.log(rate) - math.lgamma(k + 1)) for k in range(60)])


def _column_sums(counts: Bytes) -> Counts:
    whole = len(counts) // PACK * PACK
    packs = counts[:whole].reshape(-1, PACK, counts.shape[1]).sum(axis=1, dtype=np.uint8)
    return np.asarray(packs.sum(axis=0, dtype=np.int64) + counts[whole:].sum(axis=0, dtype=np.int64))
