"""Error rates of three classes along one score: the search in cells against every threshold, one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitmiss.metrics.tandem_trials import ALL, SPF, SV, min_a_dcf_form
from hitmiss.stats.forms import three_classes
from hitmiss.stats.forms.three_classes import CLASSES, OfThreeClasses

Trial = tuple[str, int, int]
TRIALS = st.lists(st.tuples(st.sampled_from(CLASSES), st.integers(-6, 6), st.integers(0, 3)), min_size=1, max_size=40)
COSTS = (0.9, 0.05, 0.05, 1.0, 10.0, 20.0)


def rates(rows: list[tuple[str, int, float]], against: tuple[str, ...]) -> list[tuple[float, float]]:
    """Miss rate of targets and false-alarm rate of other classes at every threshold, from accepting all to none."""
    points = sorted({score for _, score, _ in rows})
    found = []
    for t in [-math.inf, *points]:
        held, of = [0.0, 0.0], [0.0, 0.0]
        for kind, score, weight in rows:
            side = 0 if kind == "target" else 1 if kind in against else None
            if side is not None:
                of[side] += weight
                held[side] += weight * ((score <= t) if side == 0 else (score > t))
        found.append((held[0] / of[0] if of[0] else math.nan, held[1] / of[1] if of[1] else math.nan))
    return found


def equal_error(against: tuple[str, ...]) -> Callable[[list[tuple[str, int, float]]], float]:
    """Where the two rates meet on straight lines between neighbouring thresholds."""

    def value(rows: list[tuple[str, int, float]]) -> float:
        points = rates(rows, against)
        if any(map(math.isnan, points[0])):
            return math.nan
        for (m0, a0), (m1, a1) in pairwise(points):
            if m0 < a0 and m1 >= a1:
                part = (a0 - m0) / ((a0 - m0) + (m1 - a1))
                return m0 + part * (m1 - m0)
        return points[0][0]

    return value


def least_cost(rows: list[tuple[str, int, float]]) -> float:
    """The least a-DCF over all thresholds."""
    p_target, p_nontarget, p_spoof, c_miss, c_fa, c_fa_spoof = COSTS
    both = zip(rates(rows, ("nontarget",)), rates(rows, ("spoof",)), strict=True)
    costs = [c_miss * p_target * m + c_fa * p_nontarget * n + c_fa_spoof * p_spoof * s for (m, n), (_, s) in both]
    return min(costs) / min(c_miss * p_target, c_fa * p_nontarget + c_fa_spoof * p_spoof)


FORMS: list[tuple[OfThreeClasses, Callable[[list[tuple[str, int, float]]], float]]] = [
    (min_a_dcf_form(*COSTS), least_cost),
    (SV, equal_error(("nontarget",))),
    (SPF, equal_error(("spoof",))),
    (ALL, equal_error(("nontarget", "spoof"))),
]


@pytest.mark.parametrize("cells", [1, 3, 512])
@pytest.mark.parametrize(("form", "slowly"), FORMS)
@given(trials=TRIALS, seed=st.integers(0, 5))
def test_units_and_trials_equal_every_threshold(
    cells: int, form: OfThreeClasses, slowly: Callable[..., float], trials: list[Trial], seed: int
) -> None:
    """The same numbers from weights of units, from weights of trials, and from looking at every threshold."""
    kind, score, unit = (list(own) for own in zip(*trials, strict=True))
    arrays = dict(zip(form.columns, (np.array(kind, dtype=object), np.array(score, dtype=np.float64)), strict=True))
    weights = np.random.default_rng(seed).integers(0, 3, size=(4, 4)).astype(np.uint16)
    of = np.array(unit)
    before = three_classes.CELLS
    three_classes.CELLS = cells  # type: ignore[misc]
    try:
        by_units = form.of_units(arrays, of, weights, None)
        by_trials = form.of_weights(arrays, weights[:, of].astype(np.float64))
    finally:
        three_classes.CELLS = before  # type: ignore[misc]
    expected = [slowly(list(zip(kind, score, w[of].astype(float).tolist(), strict=True))) for w in weights]
    assert by_units == pytest.approx(expected, abs=1e-12, nan_ok=True)
    assert by_trials == pytest.approx(expected, abs=1e-12, nan_ok=True)
