"""The search for least strengths: brackets that hold, and no more attempts than are promised."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitmiss.attacks.minimal import SLACK, AttemptResult, minimal_strength
from hitmiss.core.errors import UsageError


def counted(least: np.ndarray, shape: Any, share: float = 1.0) -> tuple[Any, np.ndarray]:
    """An attempt on records that flip from `least` on, whose margin falls as `shape`; and how often each was tried."""
    tries = np.zeros(len(least), dtype=int)

    def attempt(at: np.ndarray, strength: np.ndarray) -> AttemptResult:
        tries[at] += 1
        flips = strength >= least[at]
        used = np.maximum(share * strength, least[at])  # an attack that stops early has used less
        return AttemptResult(np.where(flips, used, np.inf), shape(strength, least[at]))

    return attempt, tries


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0.0, 1.3), min_size=1, max_size=20),
    st.floats(0.2, 5.0),
    st.floats(0.5, 1.0),
    st.integers(2, 9),
    st.booleans(),
)
def test_every_bracket_holds_and_is_settled_in_time(
    least: list[float], power: float, share: float, rounds: int, misled: bool
) -> None:
    true = np.array(least)

    def shape(strength: np.ndarray, own: np.ndarray) -> np.ndarray:
        margin = own**power - strength**power
        return -margin if misled else margin  # what only steers must never be able to spoil

    attempt, tries = counted(true, shape, share)
    start = np.where(misled, 1.0, np.maximum(true**power, 1e-3))
    found = minimal_strength(attempt, len(true), rounds=rounds, start=start)
    flips = true <= 1.0
    assert np.isinf(found[~flips]).all() and (tries[~flips] == 1).all()
    assert (found[flips] >= true[flips]).all()
    assert (found[flips] - true[flips] <= 2.0**-rounds + 1e-12).all()
    assert (tries <= 1 + rounds + SLACK).all()


def test_a_straight_margin_takes_fewer_attempts_than_halving() -> None:
    true = np.random.default_rng(0).uniform(0.05, 1.0, 400)
    attempt, tries = counted(true, lambda s, own: own - s)
    halved, by_half = counted(true, lambda s, own: own - s)
    found = minimal_strength(attempt, 400, rounds=7, start=true)
    minimal_strength(halved, 400, rounds=7)
    assert (found - true <= 2**-7).all()
    assert tries.mean() < 5.0 and (by_half == 8).all()


def test_a_record_that_flips_untouched_needs_no_strength() -> None:
    found = minimal_strength(lambda at, s: np.zeros(len(at)), 3)
    assert found.tolist() == [0.0, 0.0, 0.0]


def test_wrong_limits_are_refused() -> None:
    for top, rounds in ((0.0, 7), (1.5, 7), (1.0, 0)):
        with pytest.raises(UsageError, match="runs from above 0"):
            minimal_strength(lambda at, s: s > 0.5, 3, top=top, rounds=rounds)
