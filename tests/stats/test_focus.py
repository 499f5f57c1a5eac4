"""The focused tally gives exactly the figures of the full one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitmiss import metrics
from hitmiss.core.tally import Tally
from hitmiss.metrics.detection import eer_form, min_dcf_form
from hitmiss.metrics.ranking import fpr_at_tpr_form, tpr_at_fpr_form
from hitmiss.stats import sketch
from hitmiss.stats.sketch import focused

FORMS = [
    eer_form("grouped"),
    eer_form("official"),
    eer_form("interpolated"),
    min_dcf_form(0.95, 1.0, 10.0, True),
    min_dcf_form(0.01, 1.0, 1.0, True),
    tpr_at_fpr_form(0.01),
    fpr_at_tpr_form(0.95),
]

SHAPES = {
    "continuous": lambda rng, y: rng.normal(size=len(y)) + 2 * y,
    "tied": lambda rng, y: np.round(rng.normal(size=len(y)) + y, 1),
    "constant": lambda rng, y: np.full(len(y), 3.0),
    "outliers": lambda rng, y: rng.standard_cauchy(len(y)) ** 3 + y,
    "infinite": lambda rng, y: np.where(
        rng.random(len(y)) < 0.1, rng.choice([-np.inf, np.inf], len(y)), rng.normal(size=len(y)) + y
    ),
    "reversed": lambda rng, y: rng.normal(size=len(y)) - 2 * y,
    "saturated": lambda rng, y: np.clip(rng.normal(0.5, 0.5, len(y)) + 0.3 * y, 0, 1),
    "separated": lambda rng, y: rng.random(len(y)) + 10 * y,
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("share", [0.5, 0.02])
def test_equal_to_the_full_tally(shape: str, share: float) -> None:
    rng = np.random.default_rng(len(shape))
    positive = rng.random(60_000) < share
    score = SHAPES[shape](rng, positive)
    full, some = Tally.of(positive, score), focused(positive, score, FORMS)
    assert [f.value(some) for f in FORMS] == [f.value(full) for f in FORMS]
    if shape == "continuous":
        assert len(some.score) < len(full.score) / 3


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.sampled_from(["normal", "cauchy", "steps"]))
def test_any_data(seed: int, decimals: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    positive = rng.random(2000) < rng.random()
    raw = {
        "normal": rng.normal(size=2000),
        "cauchy": rng.standard_cauchy(2000),
        "steps": rng.integers(0, 9, 2000).astype(float),
    }[kind]
    score = np.round(raw, decimals) + rng.random() * positive
    least, sketch.LEAST = sketch.LEAST, 10  # so that small data takes the way of large data
    try:
        some = focused(positive, score, FORMS)
    finally:
        sketch.LEAST = least
    full = Tally.of(positive, score)
    np.testing.assert_array_equal([f.value(some) for f in FORMS], [f.value(full) for f in FORMS])


def test_the_metric_functions_take_this_way_and_agree_with_weights_of_one() -> None:
    rng = np.random.default_rng(3)
    label = (rng.random(50_000) < 0.2).astype(np.int8)
    score = rng.normal(size=50_000) + 1.5 * label
    ones = np.ones(50_000, dtype=np.int64)
    for metric in (metrics.eer, metrics.min_dcf, metrics.tpr_at_fpr, metrics.fpr_at_tpr):
        assert metric(label, score) == metric(label, score, ones)
