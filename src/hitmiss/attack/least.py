"""The least strength of every record: the search of `search`, with an attack as what is tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hitmiss.attack.batch import Floats
from hitmiss.attack.blackbox import margins
from hitmiss.attack.config import PerturbationConfig
from hitmiss.attack.perform import Gradients, Performed, Records, perform
from hitmiss.attack.search import Tried, minimal_strength
from hitmiss.detect.extract import to_probability
from hitmiss.errors import UsageError


def least_strengths(
    records: Records,
    config: PerturbationConfig,
    rows: Sequence[int],
    rng_of: Callable[[int], Generator],
    *,
    rounds: int = 7,
) -> tuple[Floats, Performed]:
    """The least strength at which each record was seen to flip (infinite where it never does), and what flipped it.

    An attack that flips a record with less than its budget has found a flip at that lesser strength. Every attempt at a record draws
    from the same generator, so that noise grows and does not change.
    """
    if records.model is None:
        raise UsageError("a search for least strengths needs a model")
    model, places = records.model, np.asarray(rows, dtype=np.int64)
    criterion, target, clean = config.criterion, records.target_of(config), records.clean_bits
    quick = replace(config, extra={**config.extra, "early_stop": True}) if config.needs_gradient else config
    best: list[Performed] = []
    first: Gradients = {}

    def attempt(at: NDArray[np.int64], strength: Floats) -> Tried:
        own = places[at]
        tried = [replace(quick, strength=float(s)) for s in strength]
        done = perform(records, own.tolist(), tried, [rng_of(int(row)) for row in own], first)
        log_odds = model.log_odds(done.x)
        flips = criterion(clean[own], records.bits(to_probability(log_odds)), target)
        best.append(done) if not best else best[0].take(at[flips], done, flips)
        used = strength * done.share_used(records.x[own])
        return Tried(np.where(flips, used, np.inf), _margin(records, config, own, log_odds))

    start = _margin(records, config, places, records.clean[places])
    return minimal_strength(attempt, len(places), rounds=rounds, start=start), best[0]


def _margin(records: Records, config: PerturbationConfig, rows: NDArray[np.int64], log_odds: Floats) -> Floats:
    """How far records are from flipping the bit aimed at, or any; a criterion of the user's own is steered by the same."""
    target, value = np.full(len(rows), records.target_of(config)), np.full(len(rows), config.target_value)
    return margins(log_odds, records.limits, records.clean_bits[rows], target, value)
